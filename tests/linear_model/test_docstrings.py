"""The help of the private linear models describes every parameter as the signature has it."""

import inspect
import re

import pytest

import skdptune.linear_model

MODELS = [
    model
    for name in skdptune.linear_model.__all__
    if hasattr(model := getattr(skdptune.linear_model, name), "fit")
]


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
        if "default=" not in kinds:
            # Optional, or a bound that must be given.
            assert parameter.default is None
            assert kinds.endswith("optional") or name == "target_bound"
            continue
        described = kinds.partition("default=")[2].strip('"')
        assert described == str(parameter.default) or float(described) == parameter.default


def test_parameters_of_one_name_have_one_default():
    for name in ("epsilon", "delta", "data_norm", "fit_intercept", "random_state", "n_public"):
        defaults = {inspect.signature(kind).parameters[name].default for kind in MODELS}
        assert len(defaults) == 1
