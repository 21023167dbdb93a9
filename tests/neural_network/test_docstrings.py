"""The help of private nets describes every parameter, and the package lists its classes alone."""

import inspect
import re

import pytest

import skdptune.neural_network
from skdptune.neural_network import (
    DPNeuralNetBinaryClassifier,
    DPNeuralNetClassifier,
    DPNeuralNetRegressor,
)

NETS = [DPNeuralNetBinaryClassifier, DPNeuralNetClassifier, DPNeuralNetRegressor]


@pytest.mark.parametrize("kind", NETS)
def test_every_parameter_is_described_in_the_order_of_the_signature(kind):
    text = inspect.getdoc(kind)
    section = text[text.index("Parameters\n---") : text.index("Attributes\n---")]
    described = re.findall(r"^\*{0,2}(\w+)", section, flags=re.MULTILINE)
    assert described[1:] == list(inspect.signature(kind).parameters)
    assert not re.search(r"^ *\{\w+\}$", text, flags=re.MULTILINE)


@pytest.mark.parametrize("kind", NETS)
def test_described_defaults_are_those_of_the_signature(kind):
    text = inspect.getdoc(kind)
    for name, parameter in inspect.signature(kind).parameters.items():
        described = re.search(rf"^{name} : .*, default=(\S+)$", text, flags=re.MULTILINE)
        if described:
            default = parameter.default
            value = default.__name__ if isinstance(default, type) else default
            text_of_default = described[1].strip('"')
            assert text_of_default == str(value) or float(text_of_default) == value


def test_package_lists_its_classes_alone():
    names = dir(skdptune.neural_network)
    assert names == skdptune.neural_network.__all__
    assert all(isinstance(getattr(skdptune.neural_network, name), type) for name in names)
    with pytest.raises(AttributeError, match="no attribute 'importlib'"):
        _ = skdptune.neural_network.importlib
