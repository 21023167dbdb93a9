"""Searches whose records are dealt out: some train, some score, some wait for the final fit.

**Setting.** Each record is put, by its own coin and independently of all others, into validation
with probability ``v``, into tuning with probability ``q``, or into neither. All runs of the
search share the one deal. The final fit, if there is one, uses the records that the variant says.

**Guarantee.** Couple the coins of all records but the differing one. Then the data sets differ
in one record of one part, and the laws of everything that is published are mixtures over
where that record went. The hockey-stick divergence is jointly convex, so in each direction

    delta(e) <= v delta_scored(e) + (1 - v) delta_trained(e),

where *scored* prices the case that the record is in validation: the selection sees it in scores
alone, and the final fit sees it too; and *trained* prices the others, among whom a record
trains with probability ``q / (1 - v)``. The mixture is taken after the selection, since the
place of a record is the same in all runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from skdptune._validation import FloatArray, check_kind, check_option, check_real
from skdptune.accounting._losses import RenyiMaximum
from skdptune.accounting._losses import curves as _curves
from skdptune.accounting._profile import PrivacyProfile
from skdptune.accounting._tuning._tune_then_fit import VARIANTS, tune_then_fit

_POINTS = 2**13
_SUM_SLACK = 1e-9


def mixture(profiles: Sequence[PrivacyProfile], weights: Sequence[float]) -> PrivacyProfile:
    """Return the profile of a release that is one of several, by a secret and public-odds coin.

    Parameters
    ----------
    profiles : sequence of PrivacyProfile
        What the release costs in each case.
    weights : sequence of float
        Chances of the cases, the same for neighbouring data sets; they sum to 1.

    Returns
    -------
    PrivacyProfile

    Notes
    -----
    Theorem T3.

    Joint convexity of the hockey-stick divergence: ``H(sum w_i P_i | sum w_i Q_i)`` is at most
    ``sum w_i H(P_i | Q_i)``, in each direction.

    Examples
    --------
    >>> from skdptune.accounting import PrivacyProfile, mixture
    >>> rarely = mixture([PrivacyProfile.pure(1.0), PrivacyProfile.pure(0.0)], [0.1, 0.9])
    >>> round(rarely.delta(0.0) / PrivacyProfile.pure(1.0).delta(0.0), 6)
    0.1
    """
    pairs = list(zip(profiles, weights, strict=True))
    for profile, weight in pairs:
        check_kind(profile, name="profiles", kind=PrivacyProfile, domain="PrivacyProfiles")
        check_real(weight, name="weights", lower=0.0, upper=1.0)
    if not pairs or abs(sum(weights) - 1.0) > _SUM_SLACK:
        raise ValueError(f"weights must sum to 1; got {list(weights)}.")
    cases: dict[PrivacyProfile, float] = {}
    for profile, weight in pairs:
        if weight > 0.0:
            cases[profile] = cases.get(profile, 0.0) + weight
    return _mixed(list(cases.items())) if len(cases) > 1 else next(iter(cases))


def _common_step(profiles: Sequence[PrivacyProfile]) -> float:
    """Return a step fine enough for curves that cross, on whose grid the bends lie if they can.

    A pure profile's own grid is its epsilon: far too coarse for the curve of another.
    """
    wanted = max(max(profile._end for profile in profiles) / _POINTS, 1e-9)
    shared = reduce(_curves._finest, (profile._remove.step for profile in profiles))
    if shared < wanted:
        return _curves.step_at_most(wanted)
    return shared / math.ceil(shared / wanted - 1e-9)


def _mixed(pairs: list[tuple[PrivacyProfile, float]]) -> PrivacyProfile:
    step = _common_step([profile for profile, _ in pairs])
    size = max(_curves.sampled(p._remove, step).size for p, _ in pairs)
    size = max(size, *(_curves.sampled(p._add, step).size for p, _ in pairs))
    halves = []
    for direction in ("_remove", "_add"):
        total: FloatArray = np.zeros(size)
        for profile, weight in pairs:
            curve = _curves.sampled(getattr(profile, direction), step)
            total += weight * np.pad(curve, (0, size - curve.size), mode="edge")
        halves.append(total)
    renyi = RenyiMaximum(tuple(profile._renyi for profile, _ in pairs))
    return PrivacyProfile._from_halves(step, halves[0], halves[1], renyi)


def search_on_split(
    trained: PrivacyProfile,
    scored: PrivacyProfile | None = None,
    final: PrivacyProfile | None = None,
    *,
    validation_fraction: float = 0.0,
    tuning_fraction: float | None = None,
    variant: int = 1,
    bound: str = "profile",
) -> PrivacyProfile:
    """Return the profile of a search on one random deal of the records, and of the final fit.

    Parameters
    ----------
    trained : PrivacyProfile
        The whole selection, as seen by a record that its runs train on.
    scored : PrivacyProfile, optional
        The whole selection, as seen by a record that its runs are scored on; needed where
        `validation_fraction` is not 0.
    final : PrivacyProfile, optional
        The final fit, for every value that the search may return. Without it the search ends with
        the winning run's own model.
    validation_fraction : float, default=0.0
        Chance that a record is kept for validation; such records join the final fit.
    tuning_fraction : float, optional
        Chance that a record is used for tuning. The default is all that are not in validation.
    variant : {1, 2}, default=1
        With a `tuning_fraction`: whether the final fit leaves out the tuning records (1) or uses
        all records (2). Without, it uses all.
    bound : {"profile", "rdp"}, default="profile"
        As in `tune_then_fit`.

    Returns
    -------
    PrivacyProfile

    Notes
    -----
    Theorem T3.

    Examples
    --------
    >>> from skdptune.accounting import Geometric, PrivacyProfile
    >>> fit, score = PrivacyProfile.gaussian(0.25), PrivacyProfile.gaussian(0.05)
    >>> law = Geometric.from_mean(15)
    >>> total = search_on_split(
    ...     fit.selected(law), score.selected(law), fit,
    ...     validation_fraction=0.2, tuning_fraction=0.05,
    ... )
    >>> round(total.epsilon(1e-5), 2)
    0.98
    """
    validation = check_real(
        validation_fraction, name="validation_fraction", lower=0.0, upper=1.0, upper_open=True
    )
    check_option(variant, name="variant", options=VARIANTS)
    if validation > 0.0 and scored is None:
        raise ValueError(
            "scored must be given with a validation_fraction; got None. Scores are outputs too."
        )
    share = _share_among_others(tuning_fraction, validation)
    others = _without_validation(trained, final, share, variant, bound)
    if scored is None or validation == 0.0:
        return others
    seen = scored if final is None else scored + final
    return mixture([seen, others], [validation, 1.0 - validation])


def _share_among_others(tuning_fraction: float | None, validation: float) -> float | None:
    """Return the chance to be used for tuning of a record that is not in validation."""
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
        return trained if final is None else trained + final
    if final is None:
        return trained.subsampled(share)
    return tune_then_fit(trained, final, share, variant, bound)
