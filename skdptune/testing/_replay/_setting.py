"""What an estimator claims, and whether it may use the number of records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdptune.accounting import PrivacyProfile
from skdptune.base import (
    ADD_OR_REMOVE,
    DEFAULT_DELTA,
    REPLACE,
    assumptions_of,
    neighbouring_of,
    nested_estimators,
    own_parameters,
    profile_of,
)
from skdptune.testing._replay._claims import agreement_chance, allowed_shift
from skdptune.testing._replay._fits import Neighbours, fit, has_returned, with_public_size
from skdptune.testing._replay._judgement import ADDED, REPLACED, Claim
from skdptune.testing._replay._published import Leaf, Leaves, Whole
from skdptune.testing._replay._result import NeighbourReplay, Row

# Of the chance to fail, at which a claim of nothing shows.
_HALF = 0.5
_PUBLIC_SIZES = ("number of records is public", "public number of records")


@dataclass(frozen=True)
class Setting:
    """An estimator, with and without a public constant in place of the number of records.

    Attributes
    ----------
    given, sized : estimator
        As the user has it, and with ``n_public`` wherever that is a parameter.
    profile : PrivacyProfile
        The claim of `sized`.
    relation : str
        How neighbours differ.
    n_samples, n_features, n_repeats : int
    """

    given: Any
    sized: Any
    profile: PrivacyProfile
    relation: str
    n_samples: int
    n_features: int
    n_repeats: int

    @property
    def name(self) -> str:
        """Name of the estimator's class."""
        return type(self.given).__name__

    @property
    def is_changed(self) -> bool:
        """Whether the user has left ``n_public`` open."""
        return self.sized is not self.given and any(
            own_parameters(part).get("n_public", 0) is None
            for _, part in nested_estimators(self.given)
        )

    def claim(self, leaves: Leaves) -> Claim:
        """Return what the claim allows `sized`, given all that one fit of it has published."""
        states_size = self.states_size(leaves)
        has_constant = self._has_constant()
        return Claim(
            shift=allowed_shift(self.profile),
            chances={
                ADDED: agreement_chance(self.profile, self.n_repeats, 1),
                REPLACED: agreement_chance(self.profile, self.n_repeats, self._replacing),
            },
            adds=self.relation == ADD_OR_REMOVE,
            replacing=self._replacing,
            size_is_public=states_size and not has_constant,
            # Noise that follows from a public size is another one for another size.
            compares_sizes=has_constant or not states_size,
            n_samples=self.n_samples,
        )

    def claim_of_given(self, leaves: Leaves) -> Claim:
        """Return what the claim allows the estimator as the user has it."""
        claim = self.claim(leaves)
        return (
            replace(claim, size_is_public=self.states_size(leaves)) if self.is_changed else claim
        )

    def states_size(self, leaves: Leaves) -> bool:
        """Return whether the number of records is stated to be public."""
        stated = [
            self.relation,
            *assumptions_of(self.given, self.n_samples, self.n_features),
            *_sentences(leaves),
        ]
        return any(words in sentence for sentence in stated for words in _PUBLIC_SIZES)

    def announced(self) -> dict[str, tuple[Leaf, Leaf]]:
        """Return what is announced before a fit to `n_samples` records, and to one more."""
        found: dict[str, tuple[Leaf, Leaf]] = {}
        sizes = self.n_samples, self.n_samples + 1
        costs = [Whole(profile_of(self.given, size, self.n_features)) for size in sizes]
        found["privacy_profile(n)"] = costs[0], costs[1]
        level = getattr(self.given, "noise_level", None)
        if level is not None:
            noise = [np.array([float(level(size, self.n_features))]) for size in sizes]
            found["noise_level(n)"] = noise[0], noise[1]
        return found

    def result(self, rows: Sequence[Row]) -> NeighbourReplay:
        """Return the result of a replay."""
        delta = 0.0 if math.isfinite(self.profile.epsilon(0.0)) else DEFAULT_DELTA
        return NeighbourReplay(
            estimator=self.name,
            n_repeats=self.n_repeats,
            epsilon=self.profile.epsilon(delta),
            delta=delta,
            neighbouring=self.relation,
            rows=tuple(rows),
        )

    @property
    def _replacing(self) -> int:
        # Replacing a record is removing one and adding another.
        return 1 if self.relation == REPLACE else 2

    def _has_constant(self) -> bool:
        """Return whether ``n_public`` stands for the number of records wherever data are used."""
        if self.relation != ADD_OR_REMOVE:
            return False
        sizes = [part.get("n_public") for part in self._private_parts()]
        return bool(sizes) and None not in sizes

    def _private_parts(self) -> Iterator[dict[str, Any]]:
        """Iterate over the parameters of the parts with a cost of their own."""
        for _, part in nested_estimators(self.sized):
            if hasattr(part, "privacy_profile"):
                cost = profile_of(part, self.n_samples, self.n_features)
                if cost != PrivacyProfile.pure(0.0):
                    yield own_parameters(part)


def make_setting(estimator: Any, data: Neighbours, n_repeats: int) -> Setting:
    """Return the setting of an estimator on some data; raise if it claims nothing."""
    relation = neighbouring_of(estimator)
    sized = estimator
    if relation == ADD_OR_REMOVE:
        found = with_public_size(estimator, data.n_samples)
        # Some take no such constant with their other parameters.
        if has_returned(fit(found, data.without, data.rows, np.random.SeedSequence(0))):
            sized = found
    profile = profile_of(sized, data.n_samples, data.n_features)
    if math.isinf(profile.epsilon(_HALF)):
        raise ValueError(
            f"estimator must claim some privacy; got {type(estimator).__name__} with a profile "
            "that allows everything. Give it a finite epsilon."
        )
    return Setting(
        given=estimator,
        sized=sized,
        profile=profile,
        relation=relation,
        n_samples=data.n_samples,
        n_features=data.n_features,
        n_repeats=n_repeats,
    )


def _sentences(leaves: Leaves) -> Iterator[str]:
    """Iterate over the assumptions of the reports that a fit has published."""
    for place, leaf in leaves.items():
        if "privacy_" in place and isinstance(leaf, Whole) and isinstance(leaf.value, str):
            yield leaf.value
