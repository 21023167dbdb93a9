"""The bridge to dp_accounting: both ways, and against its own slower computations."""

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant, pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss

from skdptune.accounting._losses import _dp_accounting
from skdptune.accounting._losses._distribution import LossDistribution


def distribution(masses, step=0.25, lowest=-2, infinity=0.0):
    masses = np.array(masses, dtype=float)
    return LossDistribution(step, lowest, masses / masses.sum() * (1.0 - infinity), infinity)


def test_there_and_back_again():
    original = (
        distribution([0.1, 0.2, 0.4, 0.3], infinity=0.01),
        distribution([0.3, 0.2, 0.5], infinity=0.02),
    )
    back = _dp_accounting.from_pld(_dp_accounting.to_pld(*original))
    for before, after in zip(original, back, strict=True):
        assert (after.step, after.lowest) == (before.step, before.lowest)
        np.testing.assert_allclose(after.masses, before.masses, rtol=1e-14)
        assert after.infinity == pytest.approx(before.infinity, rel=1e-12, abs=0.0)


def test_the_foreign_object_answers_alike():
    sides = (
        distribution([0.1, 0.2, 0.4, 0.3], infinity=0.01),
        distribution([0.3, 0.2, 0.5], infinity=0.02),
    )
    foreign = _dp_accounting.to_pld(*sides)
    assert isinstance(foreign, pld.PrivacyLossDistribution)
    for epsilon in (0.0, 0.1, 0.3, 1.0):
        worst = max(float(side.delta(np.array([epsilon]))[0]) for side in sides)
        assert foreign.get_delta_for_epsilon(epsilon) == pytest.approx(worst, rel=1e-9, abs=0.0)


def test_directions_are_not_swapped():
    """Sampling makes removal cost more than adding at large epsilon."""
    event = dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(1.0))
    remove, add = _dp_accounting.losses_of_event(event, 1e-3)
    at = np.array([1.0])
    assert float(remove.delta(at)[0]) > 1e-4
    assert float(add.delta(at)[0]) <= 1e-12


def test_events_without_an_answer():
    assert _dp_accounting.losses_of_event(dp_event.UnsupportedDpEvent(), 1e-3) is None
    assert not _dp_accounting.is_renyi_supported(dp_event.UnsupportedDpEvent())
    assert _dp_accounting.is_renyi_supported(dp_event.GaussianDpEvent(1.0))


def test_an_event_that_reveals_everything_is_certain_disclosure():
    for event in (
        dp_event.NonPrivateDpEvent(),
        dp_event.GaussianDpEvent(0.0),
        dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(1.0), dp_event.NonPrivateDpEvent()]),
    ):
        for side in _dp_accounting.losses_of_event(event, 1e-2):
            assert side.infinity == 1.0


@pytest.mark.parametrize("noise", [0.3, 1.0, 7.0])
def test_masses_of_an_event_sum_to_one(noise):
    """The accountant's own masses miss 1 by some 1e-5; the bridge never does from below."""
    for side in _dp_accounting.losses_of_event(dp_event.GaussianDpEvent(noise), 1e-3):
        assert side.masses.min() >= 0.0
        assert side.masses.sum() + side.infinity >= 1.0 - 1e-12


def test_an_event_agrees_with_its_accountant():
    event = dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(1.3), dp_event.LaplaceDpEvent(2.0)])
    accountant = PLDAccountant(value_discretization_interval=1e-3).compose(event)
    sides = _dp_accounting.losses_of_event(event, 1e-3)
    for delta in (0.1, 1e-3, 1e-6, 1e-9):
        ours = max(side.epsilon(delta) for side in sides)
        theirs = accountant.get_epsilon(delta)
        assert theirs - 1e-9 <= ours <= theirs + 1e-6


@pytest.mark.parametrize("deviation", [0.15, 0.5, 1.0, 8.0])
@pytest.mark.parametrize("rate", [1e-6, 2e-4, 0.01, 0.3, 0.999])
def test_losses_are_those_of_dp_accounting(deviation, rate):
    # Theorem P7.
    # Their time grows with the number of losses, and those of little noise reach far.
    step = 1e-3 if deviation >= 0.5 else 1e-2
    known = pld.from_gaussian_mechanism(
        deviation, value_discretization_interval=step, sampling_prob=rate
    )
    found = _dp_accounting._sampled_gaussian_pld(deviation, rate, step)
    for side in ("_pmf_remove", "_pmf_add"):
        one, other = (getattr(each, side).to_dense_pmf() for each in (known, found))
        assert one._lower_loss == other._lower_loss
        assert other._infinity_mass == pytest.approx(one._infinity_mass, rel=1e-9, abs=1e-30)
        np.testing.assert_allclose(other._probs, one._probs, rtol=1e-6, atol=2e-11)


@pytest.mark.parametrize(
    "event",
    [
        dp_event.PoissonSampledDpEvent(0.0, dp_event.GaussianDpEvent(2.0)),
        dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(0.0)),
        dp_event.PoissonSampledDpEvent(1.0, dp_event.GaussianDpEvent(2.0)),
        dp_event.PoissonSampledDpEvent(0.1, dp_event.LaplaceDpEvent(2.0)),
        dp_event.ComposedDpEvent(
            [
                dp_event.GaussianDpEvent(3.0),
                dp_event.SelfComposedDpEvent(
                    dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(2.0)), 30
                ),
            ]
        ),
    ],
)
def test_events_cost_what_the_accountant_says(event):
    accountant = PLDAccountant(value_discretization_interval=1e-3)
    accountant.compose(event)
    remove, add = _dp_accounting.losses_of_event(event, 1e-3)
    for epsilon in (0.01, 0.3, 1.0, 2.0):
        found = max(_delta(side, epsilon) for side in (remove, add))
        assert found == pytest.approx(accountant.get_delta(epsilon), rel=1e-6, abs=1e-13)


def _delta(losses, epsilon):
    grid = (losses.lowest + np.arange(losses.masses.size)) * losses.step
    return losses.infinity - np.sum(losses.masses * np.minimum(np.expm1(epsilon - grid), 0.0))


def test_rates_of_single_precision_cost_no_less():
    rate = np.float32(1.0 - 1e-6)
    exact = _dp_accounting.losses_of_event(_sampled(float(rate)), 1e-3)
    for found, known in zip(
        _dp_accounting.losses_of_event(_sampled(rate), 1e-3), exact, strict=True
    ):
        np.testing.assert_array_equal(found.masses, known.masses)


def _sampled(rate):
    return dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(0.5))


# What is private in dp_accounting ---------------------------------------------------------

BRIDGE = Path(_dp_accounting.__file__)
WHAT_TO_DO = (
    f"dp_accounting is no longer the one that {BRIDGE.name} was written for. Read the new source "
    "of what is named here, adapt the overrides, run all tests of the accounting, then record the "
    "new signature or attributes in this test and the tested versions in pyproject.toml."
)
# Parameters and defaults of all that the bridge overrides, or calls without a promise to stay.
SIGNATURES = [
    (PLDAccountant._maybe_compose, "self, event, count, do_compose"),
    (
        PLDAccountant.__init__,
        "self, neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE, "
        "value_discretization_interval=0.0001",
    ),
    (GaussianPrivacyLoss.get_delta_for_epsilon, "self, epsilon"),
    (
        GaussianPrivacyLoss.__init__,
        "self, standard_deviation, sensitivity=1, pessimistic_estimate=True, "
        "log_mass_truncation_bound=-50, sampling_prob=1.0, adjacency_type=AdjacencyType.REMOVE",
    ),
    (GaussianPrivacyLoss.mu_upper_cdf, "self, x"),
    (GaussianPrivacyLoss.mu_lower_log_cdf, "self, x"),
    (GaussianPrivacyLoss._inverse_privacy_loss_without_subsampling_add, "self, privacy_loss"),
    (GaussianPrivacyLoss._inverse_privacy_loss_without_subsampling_remove, "self, privacy_loss"),
    (
        pld._create_pld_pmf_from_monotone_privacy_loss,
        "monotone_privacy_loss, pessimistic_estimate=True, value_discretization_interval=0.0001, "
        "use_connect_dots=False",
    ),
    (pld.PrivacyLossDistribution.__init__, "self, pmf_remove, pmf_add=None"),
    (
        pld_pmf.DensePLDPmf.__init__,
        "self, discretization, lower_loss, probs, infinity_mass, pessimistic_estimate",
    ),
    (pld_pmf.DensePLDPmf.compose, "self, other, tail_mass_truncation=0"),
    (pld_pmf.DensePLDPmf.self_compose, "self, num_times, tail_mass_truncation=1e-15"),
    (pld_pmf.DensePLDPmf.to_dense_pmf, "self"),
    (pld_pmf.SparsePLDPmf.to_dense_pmf, "self"),
]
# Attributes that the bridge reads or sets, of an object as dp_accounting makes it.
ATTRIBUTES = [
    (PLDAccountant(), {"_contains_non_dp_event", "_pld", "_value_discretization_interval"}),
    (pld.from_laplace_mechanism(1.0), {"_pmf_add", "_pmf_remove"}),
    (
        pld.from_laplace_mechanism(1.0)._pmf_remove.to_dense_pmf(),
        {"_discretization", "_infinity_mass", "_lower_loss", "_probs"},
    ),
    (GaussianPrivacyLoss(1.0), {"adjacency_type", "sampling_prob"}),
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


def test_directions_have_the_names_the_bridge_was_written_for():
    assert {"ADD", "REMOVE"} <= {each.name for each in AdjacencyType}, WHAT_TO_DO


def test_overridden_functions_are_still_called():
    """An override that dp_accounting no longer calls would be correct, slow, and unnoticed."""
    accountant = _dp_accounting._Accountant(value_discretization_interval=1e-2)
    calls = []

    class Counted(_dp_accounting._SampledGaussianLoss):
        def get_delta_for_epsilon(self, epsilon):
            calls.append(np.size(epsilon))
            return super().get_delta_for_epsilon(epsilon)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_dp_accounting, "_SampledGaussianLoss", Counted)
        accountant.compose(_sampled(0.1), 3)
    assert len(calls) == 2 and min(calls) > 1, WHAT_TO_DO


def test_no_other_module_overrides_or_reads_what_is_private():
    private = {name for _, names in ATTRIBUTES for name in names if name.startswith("_")}
    private |= {f.__name__ for f, _ in SIGNATURES if not f.__name__.startswith("__")}
    private -= {"compose", "self_compose", "get_delta_for_epsilon"}
    package = BRIDGE.parents[2]
    for path in sorted(set(package.rglob("*.py")) - {BRIDGE}):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dp_accounting")
            for alias in node.names
        }
        assert not {name for name in imported if name.startswith("_")}, path
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                assert not imported & {ast.unparse(base).split(".")[0] for base in node.bases}, (
                    path
                )
            if isinstance(node, ast.Attribute) and "accounting" in path.parts:
                assert node.attr not in private, f"{path} reads {node.attr}"
