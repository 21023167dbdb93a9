"""The help of the boosting machines describes every parameter as the signature has it."""

from __future__ import annotations

import inspect
import re

import pytest

from skdptune import ensemble

MODELS = [getattr(ensemble, name) for name in ensemble.__all__]


@pytest.mark.parametrize("kind", MODELS)
def test_every_parameter_is_described_in_the_order_of_the_signature(kind):
    text = inspect.getdoc(kind)
    section = text[text.index("Parameters\n---") : text.index("Attributes\n---")]
    described = re.findall(r"^(\w+) : ", section, flags=re.MULTILINE)
    assert described == list(inspect.signature(kind).parameters)
    assert not re.search(r"^ *\{\w+\}$", text, flags=re.MULTILINE)


@pytest.mark.parametrize("kind", MODELS)
def test_described_defaults_are_those_of_the_signature(kind):
    text = inspect.getdoc(kind)
    for name, parameter in inspect.signature(kind).parameters.items():
        kinds = re.search(rf"^{name} : (.*)$", text, flags=re.MULTILINE)[1]
        described = kinds.partition("default=")[2]
        if described:
            assert described == str(parameter.default) or float(described) == parameter.default
        else:
            assert parameter.default is None
            assert kinds.endswith("optional")
