"""Fits of a rung: noted before data are read, with the noise and the steps of their share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPAdaptiveSearchCV
from skdptune.model_selection._strategies._adaptive_session import RungFits
from tests.flat import flat

pytest.importorskip("optuna")

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 3))
Y = X[:, 0] > 0.0


def fits_of(begin: Any = None, **more: Any) -> tuple[RungFits, Any]:
    search = flat(
        DPAdaptiveSearchCV,
        DPLogisticRegression(solver="sgd", epochs=9, batch_size=0.1),
        {"learning_rate": (0.1, 1.0)},
        epsilon=2.0,
        delta=1e-5,
        n_trials=2,
        random_state=0,
        **more,
    )
    session = search.start(X, Y)
    fits = session._rung_fits
    made = RungFits(fits.running, fits.material, begin or (lambda *arguments: None))
    return made, session


def test_every_fit_is_noted_before_any_is_made() -> None:
    # Theorem G6.
    noted: list[tuple[int, int]] = []
    fits, session = fits_of(lambda trial, place: noted.append((trial.number, place)))
    trials = [session.ask() for _ in range(2)]
    results = fits.of(trials, 0)
    assert noted == [(0, 0), (1, 0)]
    assert all(0.0 <= result.score + 0.5 for result in results)

    def refuse(trial: Any, place: int) -> None:
        raise RuntimeError("not paid for")

    fits, session = fits_of(refuse)
    with pytest.raises(RuntimeError, match="not paid for"):
        fits.of([session.ask()], 0)


def test_early_rungs_have_fewer_epochs_more_noise_and_shorter_steps() -> None:
    fits, session = fits_of(pruner="halving")
    trial = session.ask({"learning_rate": 0.5})
    made = [fits._run_of(trial, place).estimator for place in range(3)]
    assert [one.epochs for one in made] == [1, 3, 9]
    # A third of the epochs and of the budget take about the same noise at each step.
    noises = [one.noise_multiplier for one in made]
    assert max(noises) < 1.2 * min(noises)
    rates = [one.learning_rate for one in made]
    assert rates[0] < rates[1] < rates[2]
    ratios = [fits._material_at(place).scoring.ratio for place in range(3)]
    assert ratios[0] / ratios[2] == pytest.approx(3.0)
    assert ratios[2] / fits.material.scoring.ratio == pytest.approx(math.sqrt(13 / 9))


def test_what_is_not_pruned_has_the_steps_that_were_solved_for() -> None:
    fits, session = fits_of()
    made = fits._run_of(session.ask({"learning_rate": 0.5}), 0).estimator
    model = fits.running.plan.model
    share = math.sqrt(model.train_size.n_samples / model.train_size.n_final)
    assert made.learning_rate == pytest.approx(0.5 * share * model.rate_factor)
