"""Adaptive interactions, enumerated with all their outcomes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from skdptune.accounting import PrivacyProfile

EPSILONS = np.array([0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0])
# A public cap on the number of parts only lowers the cost.
DEEPEST = 8


class Interaction:
    """All courses of an adaptive interaction, enumerated with their masses on both data sets."""

    def __init__(self, total, choose, parts):
        self.ends = []
        self.depth = 0
        self._go(total, choose, parts, (), (), 1.0, 1.0)

    def _go(self, total, choose, parts, history, recorded, p, q):
        pair, profile = parts[choose(history)]
        if len(history) == DEEPEST or not total.fits(profile):
            self.ends.append((p, q))
            self.depth = max(self.depth, len(history))
            return
        after = total.emptied()
        for one in (*recorded, profile):
            after.record(one)
        for outcome, (a, b) in enumerate(pair):
            if a > 0.0 or b > 0.0:
                self._go(
                    after, choose, parts, (*history, outcome), (*recorded, profile), p * a, q * b
                )

    def delta(self, epsilon, mirrored=False):
        p, q = np.array(self.ends).T
        if mirrored:
            p, q = q, p
        return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def response(epsilon):
    high = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    return ((high, 1.0 - high), (1.0 - high, high)), PrivacyProfile.pure(epsilon)


def leaky(epsilon, delta):
    """Return randomised response that with some probability tells all."""
    pair, _ = response(epsilon)
    rest = [((1.0 - delta) * a, (1.0 - delta) * b) for a, b in pair]
    return (*rest, (delta, 0.0), (0.0, delta)), PrivacyProfile.approximate(epsilon, delta)


PURE = [response(epsilon) for epsilon in (0.3, 0.6, 1.0)]
LEAKY = [*PURE[1:], leaky(0.25, 0.004), leaky(0.5, 0.001)]


def greedy(history):
    """Choose an expensive part where the losses are high so far, and a cheap one elsewhere."""
    return 2 if 2 * sum(outcome == 0 for outcome in history) > len(history) else 0


def adverse(history):
    return 0 if 2 * sum(outcome == 0 for outcome in history) > len(history) else 2


def chosen_by(seed, n_parts):
    def choose(history):
        words = [seed, len(history), *history]
        return int(np.random.default_rng(words).integers(n_parts))

    return choose


def filled(total, part):
    while total.fits(part):
        total.record(part)
    return total


def check_all_courses(total, choose, parts):
    """Check what a filter promises against all courses of an interaction."""
    found = Interaction(total, choose, parts)
    assert found.depth >= 2
    p, q = np.array(found.ends).T
    assert math.fsum(p) == pytest.approx(1.0) and math.fsum(q) == pytest.approx(1.0)
    for epsilon, mirrored in itertools.product(EPSILONS, (False, True)):
        exact = found.delta(epsilon, mirrored)
        assert exact <= total.profile.delta(epsilon) * (1.0 + 1e-9)
    return found
