"""The bridge to dp_accounting: both ways, and against its own slower computations."""

import ast
import inspect
import logging
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant, pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld

from skdptune.accounting import _dp_accounting
from skdptune.accounting._loss_distribution import LossDistribution


def distribution(masses, step=0.25, lowest=-2, infinity=0.0):
    masses = np.array(masses, dtype=float)
    return LossDistribution(step, lowest, masses / masses.sum() * (1.0 - infinity), infinity)


def test_there_and_back_again():
    original = (
        distribution([0.1, 0.2, 0.4, 0.3], infinity=0.01),
        distribution([0.3, 0.2, 0.5], infinity=0.02),
    )
    there = _dp_accounting.to_pld(*original)
    back = map(_dp_accounting._from_pmf, (there._pmf_remove, there._pmf_add))
    for before, after in zip(original, back, strict=True):
        assert (after.step, after.lowest) == (before.step, before.lowest)
        np.testing.assert_allclose(after.masses, before.masses, rtol=1e-14)
        assert after.infinity == pytest.approx(before.infinity, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("noise", [0.3, 1.0, 7.0])
def test_masses_of_an_event_sum_to_one(noise):
    """The accountant's own masses miss 1 by some 1e-5; the bridge never does from below."""
    for event in (dp_event.GaussianDpEvent(noise), dp_event.DiscreteLaplaceDpEvent(1 / noise, 1)):
        for side in _dp_accounting.losses_of_single_event(event, 1e-3):
            assert side.masses.min() >= 0.0
            assert side.masses.sum() + side.infinity >= 1.0 - 1e-12


def test_rounding_of_an_event_is_paid_at_the_top():
    pure = dp_event.DiscreteLaplaceDpEvent(0.5, 2)
    for side in _dp_accounting.losses_of_single_event(pure, 1e-2):
        # A pure guarantee gets no mass at infinity.
        assert side.infinity == 0.0 and side.epsilon(0.0) == pytest.approx(1.0, rel=1e-9)
    for side in _dp_accounting.losses_of_single_event(dp_event.GaussianDpEvent(1.0), 1e-2):
        assert 1e-15 <= side.infinity <= 4e-15


# What is private in dp_accounting ---------------------------------------------------------

BRIDGE = Path(_dp_accounting.__file__)
WHAT_TO_DO = (
    f"dp_accounting is no longer the one that {BRIDGE.name} was written for. Read the new source "
    "of what is named here, adapt the bridge, run all tests of the accounting, then record the "
    "new signature or attributes in this test and the tested versions in pyproject.toml."
)
# Parameters and defaults of what the bridge calls without a promise to stay.
SIGNATURES = [
    (
        PLDAccountant.__init__,
        "self, neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE, "
        "value_discretization_interval=0.0001",
    ),
    (pld.PrivacyLossDistribution.__init__, "self, pmf_remove, pmf_add=None"),
    (
        pld_pmf.DensePLDPmf.__init__,
        "self, discretization, lower_loss, probs, infinity_mass, pessimistic_estimate",
    ),
    (pld_pmf.DensePLDPmf.to_dense_pmf, "self"),
    (pld_pmf.SparsePLDPmf.to_dense_pmf, "self"),
]
# Attributes that the bridge reads or sets, of an object as dp_accounting makes it.
ATTRIBUTES = [
    (PLDAccountant(), {"_contains_non_dp_event", "_pld"}),
    (pld.from_laplace_mechanism(1.0), {"_pmf_add", "_pmf_remove"}),
    (
        pld.from_laplace_mechanism(1.0)._pmf_remove.to_dense_pmf(),
        {"_discretization", "_infinity_mass", "_lower_loss", "_probs"},
    ),
]


@pytest.mark.parametrize(
    ("function", "recorded"), SIGNATURES, ids=[f.__qualname__ for f, _ in SIGNATURES]
)
def test_signatures_are_those_the_bridge_was_written_for(function, recorded):
    parameters = inspect.signature(function).parameters.values()
    found = ", ".join(
        each.name if each.default is each.empty else f"{each.name}={each.default!s}"
        for each in parameters
    )
    assert found == recorded, f"{function.__qualname__}({found}). {WHAT_TO_DO}"


@pytest.mark.parametrize(("instance", "wanted"), ATTRIBUTES, ids=lambda each: type(each).__name__)
def test_attributes_are_those_the_bridge_was_written_for(instance, wanted):
    missing = wanted - set(vars(instance))
    assert not missing, f"{type(instance).__name__} has no {sorted(missing)}. {WHAT_TO_DO}"


def test_no_module_overrides_and_no_other_reads_what_is_private():
    private = {name for _, names in ATTRIBUTES for name in names if name.startswith("_")}
    private |= {f.__name__ for f, _ in SIGNATURES if not f.__name__.startswith("__")}
    package = BRIDGE.parents[1]
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "dp_accounting" not in text and not any(f".{name}" in text for name in private):
            continue
        tree = ast.parse(text)
        imported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dp_accounting")
            for alias in node.names
        }
        assert not {name for name in imported if name.startswith("_")}, path
        is_free = "accounting" not in path.parts or path == BRIDGE
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                assert not imported & {ast.unparse(base).split(".")[0] for base in node.bases}, (
                    path
                )
            if isinstance(node, ast.Attribute) and not is_free:
                assert node.attr not in private, f"{path} reads {node.attr}"


def test_orders_without_an_answer_are_infinite_and_nobody_is_warned(caplog):
    event = dp_event.PoissonSampledDpEvent(0.5, dp_event.GaussianDpEvent(200.0))
    assert _dp_accounting.renyi_divergences(event, (1.1,)) == np.inf
    assert not caplog.records
    logging.getLogger("absl").warning("something else")
    assert len(caplog.records) == 1
