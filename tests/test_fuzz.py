"""For any argument, a public constructor or `fit` works, or raises a proper error.

No input may take more than ten seconds, or raise anything except a ValueError, a TypeError or an
error class of the library. No input may lead to an epsilon that is negative or not a number, or to
a fitted model that cannot predict. Each input has a number. The nightly run tries 10^5 of them.
``SKDPTUNE_FUZZ=START:COUNT`` selects others, such as a single one that failed::

    SKDPTUNE_FUZZ=1234:1 python -m pytest -m slow tests/test_fuzz.py
"""

from __future__ import annotations

import inspect
import os

import numpy as np
import pytest

from tests.fuzz import recipes, run

SHARDS = 20
START, COUNT = map(int, os.environ.get("SKDPTUNE_FUZZ", "0:100000").split(":"))


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch) -> None:
    # A storage may be any file name.
    monkeypatch.chdir(tmp_path)


def test_some_inputs_find_no_fault():
    ends, faults = run.survey(10**6, 150)
    assert faults == []
    # Both outcomes must be frequent.
    assert min(ends["done"], ends["refused"]) > 25


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_inputs_find_no_fault(shard):
    first, end = (START + COUNT * place // SHARDS for place in (shard, shard + 1))
    ends, faults = run.survey(first, end - first)
    print(f"inputs {first} to {end}: {dict(ends)}")
    assert not faults, "\n\n".join(faults)


def is_called_rightly(name, thing, number):
    rng = np.random.default_rng(number)
    try:
        with run.quiet():
            run.made_of(thing, run.arguments(rng, name, thing, spoilt=0))
    except run.ALLOWED:
        return False
    return True


def test_every_public_constructor_is_called_rightly():
    # Correct calls of all kinds, so that modified calls get past the first check.
    wrong = [
        name
        for name, thing in recipes.public_callables()
        if not any(is_called_rightly(name, thing, number) for number in range(40))
    ]
    assert wrong == [], "tests/fuzz/recipes.py has no right values for these"


def flags():
    """Yield every parameter of a public estimator that is True or False by default."""
    for name, thing in recipes.public_callables():
        if recipes.is_estimator(thing):
            for key, parameter in inspect.signature(thing).parameters.items():
                if isinstance(parameter.default, bool) and (name, key) != (
                    "DParetoSearchCV",
                    "refit",
                ):
                    yield name, key


@pytest.mark.parametrize(("name", "flag"), list(flags()))
def test_flags_of_estimators_are_true_or_false(name, flag):
    # Theorem M0: an intercept of 0.5 was fitted, but the noise was that of a fit without
    # intercept.
    thing = dict(recipes.public_callables())[name]
    given = {key: values[0] for key, values in recipes.recipe(name, thing).items()}
    X = np.linspace(-1.0, 1.0, 40).reshape(20, 2)
    for value in (0.5, 1, "yes", None):
        with pytest.raises(TypeError, match=f"^{flag} must be True or False; got "):
            thing(**given | {flag: value}).fit(X, np.arange(20) % 2)


def faulty(error):
    def function(epsilon):
        raise error

    return function


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (ValueError("no"), "refused"),
        (KeyError("a"), "KeyError"),
        (RuntimeError("x"), "RuntimeError"),
        (RecursionError(), "RecursionError"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_only_proper_errors_count_as_refusals(error, end, monkeypatch):
    monkeypatch.setattr(run, "targets", lambda: ([("f", faulty(error))], np.ones(1)))
    monkeypatch.setattr(run, "recipe", lambda name, thing: {"epsilon": [1.0]})
    assert run.run(0)[1] == end


def test_a_hang_is_a_fault(monkeypatch):
    def endless(epsilon):
        while True:
            pass

    monkeypatch.setattr(run, "SECONDS", 1)
    monkeypatch.setattr(run, "targets", lambda: ([("f", endless)], np.ones(1)))
    monkeypatch.setattr(run, "recipe", lambda name, thing: {"epsilon": [1.0]})
    assert run.run(0)[1] == "Hang"
