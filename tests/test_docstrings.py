"""Docstrings that share text are filled in, and those of models agree with the signatures."""

from __future__ import annotations

import inspect
import re

import pytest

from tests.testing.public_estimators import FOLDERS, found_in

MODELS = {
    name: kind
    for folder in FOLDERS
    if folder in ("ensemble", "linear_model", "neural_network")
    for name, kind in found_in(folder).items()
}
# Parameters without a default that must be given, or must be None.
# Their defaults differ between the classes that share the text.
WITHOUT_DEFAULT = {"components", "lr", "target_bound", "train_split"}


def described(kind: type) -> list[tuple[str, str]]:
    """Return the parameters in the docstring of a class, each with the text after its name."""
    text = inspect.getdoc(kind) or ""
    section = text[text.index("Parameters\n---") : text.index("Attributes\n---")]
    assert not re.search(r"^ *\{\w+\}$", text, flags=re.MULTILINE)
    return re.findall(r"^(?:\*\*)?(\w+)(?: : (.*))?$", section, flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_of_a_model_is_described_in_order_with_its_default(name: str) -> None:
    parameters = inspect.signature(MODELS[name]).parameters
    found = described(MODELS[name])
    assert [parameter for parameter, _ in found] == list(parameters)
    for parameter, text in found:
        default = parameters[parameter].default
        kinds, is_given, written = text.partition("default=")
        if is_given:
            written = written.strip('"')
            value = default.__name__ if isinstance(default, type) else default
            assert written == str(value) or float(written) == value
        elif parameter not in WITHOUT_DEFAULT:
            assert default is None and kinds.endswith("optional")


def test_parameters_of_linear_models_have_one_default() -> None:
    kinds = found_in("linear_model").values()
    for name in ("epsilon", "delta", "data_norm", "fit_intercept", "random_state", "n_public"):
        assert len({inspect.signature(kind).parameters[name].default for kind in kinds}) == 1
