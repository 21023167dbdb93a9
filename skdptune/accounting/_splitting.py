"""Searches on a random split of the records into training, scoring and final-fit parts.

**Setting.** Each record is put, at random and independently of all others, into validation with
probability ``v``, into tuning with probability ``q``, or into neither. All runs of the search
share this split. The final fit, if there is one, uses the records according to the variant.

**Guarantee.** Couple the places of all records except the differing one. Then the data sets differ
in one record of one subset, and the distributions of everything published are mixtures over the
subset of that record. The hockey-stick divergence is jointly convex, so in each direction

    delta(e) <= v delta_scored(e) + (1 - v) delta_trained(e),

where *scored* is the cost if the record is in validation: the selection depends on it only through
scores, and the final fit depends on it as well. *trained* is the cost otherwise, when a record is
used for training with probability ``q / (1 - v)``. The mixture is formed after the selection,
since a record is in the same subset in all runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from skdptune._formatting import shown
from skdptune._validation import check_flag, check_kind, check_option, check_real
from skdptune.accounting._curves import Halves, common_step, largest_loss, step_at_most, upper_half
from skdptune.accounting._profile import Numbers, PrivacyProfile
from skdptune.accounting._renyi import RenyiOfParts
from skdptune.accounting._tune_then_fit import TUNING_BOUNDS, VARIANTS, composed, tune_then_fit

_POINTS = 2**13
_SUM_SLACK = 1e-9


def mixture(profiles: Sequence[PrivacyProfile], weights: Sequence[float]) -> PrivacyProfile:
    """Return the profile of one of several releases, drawn secretly with public probabilities.

    Parameters
    ----------
    profiles : sequence of PrivacyProfile
        The cost of the release in each case.
    weights : sequence of float
        Probabilities of the cases, the same for neighbouring data sets; they sum to 1.

    Returns
    -------
    PrivacyProfile

    Notes
    -----
    Theorem T3.

    This follows from joint convexity of the hockey-stick divergence: ``H(sum w_i P_i | sum w_i
    Q_i)`` is at most ``sum w_i H(P_i | Q_i)``, in each direction.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile, mixture
    >>> rarely = mixture([PrivacyProfile.pure(1.0), PrivacyProfile.pure(0.0)], [0.1, 0.9])
    >>> round(rarely.delta(0.0) / PrivacyProfile.pure(1.0).delta(0.0), 6)
    0.1
    """
    if len(profiles) != len(weights):
        raise ValueError(
            f"weights must have as many entries as profiles; got {len(weights)} for "
            f"{len(profiles)}."
        )
    pairs = list(zip(profiles, weights, strict=True))
    for profile, weight in pairs:
        check_kind(profile, name="profiles", kind=PrivacyProfile, domain="PrivacyProfiles")
        check_real(weight, name="each of weights", lower=0.0, upper=1.0, is_entry=True)
    if not pairs or abs(sum(weights) - 1.0) > _SUM_SLACK:
        raise ValueError(f"weights must sum to 1; got {shown(weights)}.")
    cases: dict[PrivacyProfile, float] = {}
    for profile, weight in pairs:
        if weight > 0.0:
            cases[profile] = cases.get(profile, 0.0) + weight
    if len(cases) == 1:
        return next(iter(cases))
    return PrivacyProfile._of(_mixed, tuple(cases.values()), *cases)


def _common_step(profiles: Sequence[PrivacyProfile]) -> float:
    """Return a step fine enough for curves that cross, with their bends on the grid if possible.

    The grid of a pure profile has its epsilon as step, which is far too coarse for other curves.
    """
    sides = [profile._finite_sides for profile in profiles]
    wanted = max(max(map(largest_loss, sides)) / _POINTS, 1e-9)
    shared = reduce(common_step, (remove.step for remove, _ in sides))
    if shared < wanted:
        return step_at_most(wanted)
    return shared / math.ceil(shared / wanted - 1e-9)


def _mixed(weights: tuple[float, ...], *profiles: PrivacyProfile) -> Numbers:
    step = _common_step(profiles)
    curves = [
        ([upper_half(side, step) for side in profile._finite_sides], weight)
        for profile, weight in zip(profiles, weights, strict=True)
    ]
    size = max(curve.size for sides, _ in curves for curve in sides)
    remove, add = np.zeros(size), np.zeros(size)
    for sides, weight in curves:
        for total, curve in zip((remove, add), sides, strict=True):
            total += weight * np.pad(curve, (0, size - curve.size), mode="edge")
    renyi = RenyiOfParts(np.max, tuple(profile._renyi for profile in profiles))
    return Halves(step, remove, add), renyi


def search_on_split(
    trained: PrivacyProfile,
    scored: PrivacyProfile | None = None,
    final: PrivacyProfile | None = None,
    *,
    validation_fraction: float = 0.0,
    tuning_fraction: float | None = None,
    variant: int = 1,
    bound: str = "profile",
    by_rule: bool = False,
) -> PrivacyProfile:
    """Return the profile of a search on one random split of the records, with its final fit.

    Parameters
    ----------
    trained : PrivacyProfile
        Cost of the whole selection for a record that is used for training in its runs.
    scored : PrivacyProfile, optional
        Cost of the whole selection for a record that is used for scoring; required if
        `validation_fraction` is not 0.
    final : PrivacyProfile, optional
        Cost of the final fit, for every value that the search may return. If None, the search ends
        with the model of the winning run.
    validation_fraction : float, default=0.0
        Probability that a record is used for validation; such records join the final fit.
    tuning_fraction : float, optional
        Probability that a record is used for tuning. By default, all records that are not in
        validation are.
    variant : {1, 2}, default=1
        With a `tuning_fraction`: whether the final fit leaves out the tuning records (1) or uses
        all records (2). Without it, the final fit uses all records.
    bound : {"profile", "rdp"}, default="profile"
        See `tune_then_fit`.
    by_rule : bool, default=False
        Whether a public rule of each record says which ones are kept for validation, in place of
        a random draw. `validation_fraction` is then the share that it is expected to keep, and
        any other record is used for tuning with probability
        ``tuning_fraction / (1 - validation_fraction)``.

    Returns
    -------
    PrivacyProfile

    Notes
    -----
    Theorem T3, and Theorem T9 for a rule.

    Examples
    --------
    >>> from skdptune.accounting import Geometric, PrivacyProfile
    >>> fit, score = PrivacyProfile.gaussian(0.25), PrivacyProfile.gaussian(0.05)
    >>> distribution = Geometric.from_mean(15)
    >>> total = search_on_split(
    ...     fit.selected(distribution),
    ...     score.selected(distribution),
    ...     fit,
    ...     validation_fraction=0.2,
    ...     tuning_fraction=0.05,
    ... )
    >>> round(total.epsilon(1e-5), 2)
    0.98
    """
    validation = check_real(
        validation_fraction, name="validation_fraction", lower=0.0, upper=1.0, upper_open=True
    )
    check_option(variant, name="variant", options=VARIANTS)
    check_option(bound, name="bound", options=TUNING_BOUNDS)
    check_flag(by_rule, name="by_rule")
    for name, profile in (("trained", trained), ("scored", scored), ("final", final)):
        if profile is not None or name == "trained":
            check_kind(profile, name=name, kind=PrivacyProfile, domain="a PrivacyProfile")
    if validation > 0.0 and scored is None:
        raise ValueError(
            "scored must be given with a validation_fraction; got None. Scores are outputs too."
        )
    share = _share_among_others(tuning_fraction, validation)
    others = _without_validation(trained, final, share, variant, bound)
    if scored is None or validation == 0.0:
        return others
    seen = scored if final is None else composed(scored, final)
    if by_rule:
        # Theorem T9: no coin hides where a record is.
        return seen | others
    return mixture([seen, others], [validation, 1.0 - validation])


def _share_among_others(tuning_fraction: float | None, validation: float) -> float | None:
    """Return the probability that a record outside of validation is used for tuning."""
    if tuning_fraction is None:
        return None
    tuning = check_real(
        tuning_fraction,
        name="tuning_fraction",
        lower=0.0,
        upper=1.0 - validation,
        lower_open=True,
        upper_open=True,
        hint="Together with the validation fraction it must leave records for the final fit.",
    )
    return tuning / (1.0 - validation)


def _without_validation(
    trained: PrivacyProfile,
    final: PrivacyProfile | None,
    share: float | None,
    variant: int,
    bound: str,
) -> PrivacyProfile:
    if share is None:
        return trained if final is None else composed(trained, final)
    if final is None:
        return trained.subsampled(share)
    return tune_then_fit(trained, final, share, variant, bound)
