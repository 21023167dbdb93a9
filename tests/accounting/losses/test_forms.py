"""Closed forms of compositions: what composes to what, and which costs more."""

import math
from dataclasses import astuple

import numpy as np
import pytest

from skdptune.accounting._losses._forms import GaussianForm, ResponseForm, SampledGaussianForm
from tests.accounting.oracles_profile import approximate_composition, gaussian_delta

FORMS = [
    GaussianForm(0.7),
    ResponseForm(0.3, 0.0),
    ResponseForm(0.3, 1e-6, 4),
    SampledGaussianForm(0.7, 0.1, 5),
]


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_equal_forms_compose_to_two_copies(form):
    # Theorem P4.
    for together, copies in (
        (form.composed(form), 2),
        (form.repeated(3).composed(form), 4),
        (form, 1),
    ):
        wanted = form.repeated(copies)
        assert type(together) is type(wanted)
        assert astuple(together) == pytest.approx(astuple(wanted), rel=1e-15)


def test_squares_of_gaussian_shifts_add_up():
    # Theorem P6.
    assert GaussianForm(3.0).composed(GaussianForm(4.0)) == GaussianForm(5.0)
    assert GaussianForm(0.5).repeated(16) == GaussianForm(2.0)


def test_a_sample_of_a_sample_is_one():
    # Theorem P7.
    assert GaussianForm(0.5).subsampled(0.1) == SampledGaussianForm(0.5, 0.1)
    assert SampledGaussianForm(0.5, 0.1).subsampled(0.5) == SampledGaussianForm(0.5, 0.05)
    # A sample from which several releases are made is another matter.
    assert SampledGaussianForm(0.5, 0.1, 2).subsampled(0.5) is None
    assert ResponseForm(0.5, 0.0).subsampled(0.5) is None


def test_different_forms_have_none_together():
    for index, one in enumerate(FORMS):
        for other in FORMS[:index]:
            assert one.composed(other) is None and other.composed(one) is None
    assert SampledGaussianForm(0.7, 0.1).composed(SampledGaussianForm(0.7, 0.2)) is None
    assert ResponseForm(0.3, 0.0).composed(ResponseForm(0.4, 0.0)) is None
    # Too many numbers to be written out.
    assert ResponseForm(0.3, 0.0).repeated(10**7) is None


@pytest.mark.parametrize(
    ("more", "less"),
    [
        (GaussianForm(1.0), GaussianForm(0.9)),
        (ResponseForm(0.3, 1e-6, 4), ResponseForm(0.2, 1e-7, 4)),
        (ResponseForm(0.3, 1e-6, 4), ResponseForm(0.3, 1e-6, 1)),
        (SampledGaussianForm(0.7, 0.1, 5), SampledGaussianForm(0.5, 0.05, 4)),
    ],
)
def test_what_covers_costs_no_less_anywhere(more, less):
    # Theorem P8.
    assert more.covers(less) and more.covers(more) and not less.covers(more)
    for one, other in zip(more.sides(), less.sides(), strict=True):
        points = np.linspace(0.0, one.highest * one.step, 300)
        assert np.all(one.delta(points) >= other.delta(points) * (1.0 - 1e-9) - 1e-16)


def test_what_is_larger_in_one_respect_and_smaller_in_another_covers_nothing():
    assert not GaussianForm(9.0).covers(ResponseForm(0.1, 0.0))
    assert not ResponseForm(0.3, 0.0).covers(ResponseForm(0.2, 1e-9))
    assert not SampledGaussianForm(0.7, 0.1, 5).covers(SampledGaussianForm(0.5, 0.2, 5))


@pytest.mark.parametrize(
    ("epsilon", "failure", "count"),
    [(0.1, 0.0, 1), (0.05, 0.0, 2000), (1.0, 0.0, 77), (0.2, 1e-8, 400), (0.0, 1e-5, 30)],
)
def test_responses_are_binomial_and_never_below(epsilon, failure, count):
    # Theorem P5.
    losses, other = ResponseForm(epsilon, failure, count).sides()
    assert other is losses
    top = min(0.999 * count * epsilon, 12.0 * epsilon * math.sqrt(count))
    points = np.linspace(0.0, top, 25)
    for point, value in zip(points, losses.delta(points), strict=True):
        exact = approximate_composition(epsilon, failure, count, point)
        assert exact * (1.0 - 1e-14) <= value <= exact * (1.0 + 1e-9) + 1e-300


def test_no_number_of_lies_is_impossible():
    for count in (1100, 10**5):
        losses, _ = ResponseForm(1.0, 0.0, count).sides()
        assert losses.infinity == 0.0 and losses.highest == count
        assert losses.masses[::2].min() > 0.0 and losses.masses[1::2].max() == 0.0


@pytest.mark.parametrize("mu", [1e-6, 0.01, 1.0, 7.0, 40.0, 300.0])
def test_gaussian_dots_are_the_closed_form_and_never_below(mu):
    # Theorem P6.
    losses, other = GaussianForm(mu).sides()
    assert other is losses
    for place in np.linspace(0, min(losses.highest, 600.0 / losses.step), 12).astype(int):
        exact = gaussian_delta(mu, place * losses.step)
        value = float(losses.delta(np.array([place * losses.step]))[0])
        assert exact <= value <= exact * (1.0 + 1e-9) + 1e-20


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_a_given_grid_is_used_and_costs_no_less(form):
    for given, best in zip(form.sides(5e-3), form.sides(), strict=True):
        assert given.step == 5e-3
        points = np.linspace(0.0, best.highest * best.step, 99)
        assert np.all(given.delta(points) >= best.delta(points) * (1.0 - 1e-4) - 1e-13)
