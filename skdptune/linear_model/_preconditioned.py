"""Noisy gradient descent on all records, in coordinates that a first noisy release chooses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from skdptune._validation import check_real, check_share
from skdptune.accounting import PrivacyProfile
from skdptune.linear_model._regression import SufficientStatistics, squared_radius
from skdptune.linear_model._solvers import (
    Coordinates,
    Design,
    DesignInParts,
    ExactGradients,
    Residuals,
    cut_basis,
    descend,
    descend_together,
    fit_noisy_gradient,
    noise_of_steps,
)
from skdptune.mechanisms import gaussian_profile, gaussian_release, noise_for_budget
from skdptune.mechanisms._shared import (
    WHOLE,
    Batch,
    NoisyGradientPlan,
    of_unit_total,
    unit_total,
)

# Share of the squared shift of all releases that pays for the second moments.
_MOMENT_SHARE = 0.08
# Eigenvalues of the second moments are raised by this, in units of the noise on them.
_FLOOR = 1.0
# At least by this share of their mean.
_LEAST_FLOOR = 1e-6
# Wider designs, and those whose moments the noise would hide, are scaled as a whole.
_LARGEST_WIDTH = 1024
_LARGEST_NOISE = 5.0
# Clipping norm, in units of the usual norm of a row: the first number divided by the square root
# of the noise on the moments, limited by the next two numbers.
_CLIPPING, _LEAST_CLIPPING, _LARGEST_CLIPPING = 0.35, 0.15, 1.0
# Margins are steeper than the labels' by one over the clipping norm to this power. For several
# classes in unscaled coordinates this is divided by the second number.
_STEEPNESS, _UNSCALED_STEEPNESS = 1.0 / 3.0, 1.3
# Variance of margins by noise, with as many columns as the next number at most: the first number
# times the noise on the moments, which counts up to 1. Margins become shorter by the square of its
# ratio to all of their squares, times the third number, and keep the last number at least.
_MARGIN_NOISE, _FEW_COLUMNS, _NOISE_WEIGHT, _LEAST_KEPT = 1.2, 20.0, 2.5, 0.4
# Approximate distance by which noise moves a decision: with coordinates of moments and without.
_NOISE_DISTANCE, _UNSCALED_NOISE_DISTANCE = 4.0, 2.0
_LONGEST_STEP = 5.0
# Minimum number of steps in unscaled coordinates; more steps as the noise on a decision falls.
_LEAST_STEPS, _STEPS_BY_NOISE = 30, 1.2
# Lengths of a record's parts in the release of the mean row and the mean squared norm, and the
# largest length of the noise on that mean, in units of the bound on rows.
_MEAN_PART, _SQUARE_PART, _LARGEST_MEAN_NOISE = 0.8, 0.59, 0.5
# Constant column for an intercept, in units of a row's norm. The second number is for rows less
# their mean, which have nothing else that is constant.
_CONSTANT, _CENTRED_CONSTANT = 0.125, 0.25
# Number of rows whose norms are computed at once.
_ROWS_AT_ONCE = 1 << 12


@dataclass(frozen=True)
class PreconditionedPlan:
    """The noise of a release of second moments and of the descent after it, and their cost.

    Attributes
    ----------
    n_samples : int
        The public number of records, by which sums are divided.
    steps : int
        Number of steps, each with all records.
    noise_multiplier : float
        Noise of a step in units of the clipping norm.
    moment_noise : float
        Noise of the second moments in units of a record's influence on them.
    profile : PrivacyProfile
        Joint cost of all releases.
    """

    n_samples: int
    steps: int
    noise_multiplier: float
    moment_noise: float
    profile: PrivacyProfile

    def noise_of_moments(self, width: int) -> float:
        """Return about the noise on an eigenvalue of the moments, in units of their mean."""
        return self.moment_noise * width**1.5 / self.n_samples

    def scales(self, width: int) -> bool:
        """Return whether coordinates are scaled by released moments."""
        return width <= _LARGEST_WIDTH and self.noise_of_moments(width) <= _LARGEST_NOISE

    def clipping_share(self, width: int) -> float:
        """Return the clipping norm by rule, in units of the usual norm of a row.

        Short gradients, nearly all of one length, withstand noise best, but carry less information
        about probabilities.
        """
        wanted = _CLIPPING / math.sqrt(max(self.noise_of_moments(width), 1e-300))
        return min(max(wanted, _LEAST_CLIPPING), _LARGEST_CLIPPING)

    def margin_factor(self, width: int, n_outputs: int, share: float) -> float:
        """Return `margin_factor` at a clipping norm in units of the usual norm of a row."""
        if n_outputs > 1 and not self.scales(width):
            return min(_UNSCALED_STEEPNESS * margin_factor(share), 1.0)
        # A residual of several classes is up to sqrt(2) times as long as what its label lacks.
        return margin_factor(share / math.sqrt(min(n_outputs, 2)))

    def descent(self, steps: int | None = None) -> NoisyGradientPlan:
        """Return the plan of the steps, with the cost of all releases.

        Fewer steps with less noise each have the same cost: a step of noise ``s / sqrt(k)`` is the
        mean of k steps of noise s at one point.
        """
        steps = self.steps if steps is None else steps
        return NoisyGradientPlan(
            n_samples=self.n_samples,
            batch_size=self.n_samples,
            sampling="poisson",
            rate=1.0,
            steps=steps,
            noise_multiplier=self.noise_multiplier * math.sqrt(steps / self.steps),
            profile=self.profile,
        )


def margin_factor(share: float) -> float:
    """Return the factor of logistic margins with which probabilities fit the labels.

    A residual counts at most as much as the clipping norm, as with a hinge loss, so margins grow
    until it is smaller. They grow more for a smaller norm, and only very little more with more
    noise.

    Parameters
    ----------
    share : float
        The clipping norm divided by the usual norm of a row, both public.

    Notes
    -----
    Theorem M7: this costs nothing.
    """
    return min(share, 1.0) ** _STEEPNESS


def noise_factor(plan: PreconditionedPlan, basis: Basis, weights: np.ndarray) -> float:
    """Return the factor of margins that noise makes too long.

    Parameters
    ----------
    plan : PreconditionedPlan
    basis : Basis
    weights : ndarray of shape (width, n_outputs)
        After multiplication by `margin_factor`.

    Notes
    -----
    Theorem M7: the weights and the moments were released, so that this costs nothing. With few
    records for the noise and labels that columns say little about, weights are mostly noise. The
    variance of margins by noise is a function of public numbers. Noise that is small beside the
    squares of margins, as with a rare class, leaves them nearly as they are. Margins of several
    classes are differences from their mean.
    """
    if basis.moments is None:
        return 1.0
    noise = min(plan.noise_of_moments(basis.width), 1.0) * min(_FEW_COLUMNS / basis.width, 1.0)
    if weights.shape[1] > 1:
        weights = weights - weights.mean(axis=1, keepdims=True)
    squares = float(np.sum(weights * (basis.moments @ weights))) / weights.shape[1]
    ratio = _MARGIN_NOISE * noise / max(squares, 1e-9)
    return max(1.0 / (1.0 + _NOISE_WEIGHT * ratio**2), _LEAST_KEPT)


def plan_preconditioned(
    n_samples: int,
    *,
    steps: int,
    epsilon: float | None = None,
    delta: float,
    noise_multiplier: float | None = None,
) -> PreconditionedPlan:
    """Return the releases that meet a budget, or the cost of a given noise.

    Parameters
    ----------
    n_samples : int
        The public number of records; the cost does not depend on it.
    steps : int
        Number of steps.
    epsilon, delta : float
        Budget of all releases together; an infinite epsilon means no noise.
    noise_multiplier : float, optional
        Noise of a step in units of the clipping norm; epsilon is then not used.

    Notes
    -----
    Theorem M7.

    Examples
    --------
    >>> plan = plan_preconditioned(1000, steps=100, epsilon=1.0, delta=1e-5)
    >>> round(plan.noise_multiplier, 1), round(plan.moment_noise, 1)
    (38.9, 13.2)
    >>> 0.99 <= plan.profile.epsilon(1e-5) <= 1.0
    True
    """
    # Share of the squared shift for one step, in units of the whole.
    of_step = (1.0 - _MOMENT_SHARE) / steps
    if noise_multiplier is None:
        hint = "Use solver='objective' for delta=0."
        delta = check_share(delta, name="delta", hint=hint)
        epsilon = check_real(epsilon, name="epsilon", lower=0.0, lower_open=True)
        noise, profile = noise_for_budget(epsilon, delta)
        step_noise = noise / math.sqrt(of_step)
    else:
        step_noise = check_real(noise_multiplier, name="noise_multiplier", lower=0.0, upper=1e9)
        noise = step_noise * math.sqrt(of_step)
        profile = gaussian_profile(1.0, noise)
    return PreconditionedPlan(
        n_samples, steps, step_noise, noise / math.sqrt(_MOMENT_SHARE), profile
    )


@dataclass(frozen=True)
class Basis:
    """Coordinates of a descent, chosen by public numbers and by released values.

    Attributes
    ----------
    matrix : ndarray of shape (width, width), or (width,) for a diagonal one
        Weights are this matrix times the coordinates.
    usual_norm : float
        Approximate norm of a row in these coordinates.
    moment : float
        Approximate mean second moment of a coordinate.
    noise_distance : float
        Distance by which noise may move a decision.
    steps : int
        Number of steps to take.
    moments : ndarray of shape (width, width), optional
        Released second moments of the rows, if coordinates are scaled by them.
    centre : ndarray of shape (n_features,), optional
        Released mean of the rows, which is subtracted from them.
    """

    matrix: np.ndarray
    usual_norm: float
    moment: float
    noise_distance: float
    steps: int
    moments: np.ndarray | None = None
    centre: np.ndarray | None = None

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return len(self.matrix)


def release_basis(
    plan: PreconditionedPlan,
    design: Design | DesignInParts,
    data_norm: float,
    n_outputs: int,
    rng: np.random.Generator,
    known: dict[Any, Any] | None = None,
) -> Basis:
    """Release second moments of the rows, and return coordinates in which they are about equal.

    Parameters
    ----------
    plan : PreconditionedPlan
    design : Design or DesignInParts
        The rows; those longer than `data_norm` are shortened for this release only.
    data_norm : float
        Bound on the norm of a row.
    n_outputs : int
        Number of linear functions.
    rng : numpy.random.Generator
        Source of the noise.
    known : dict, optional
        Sums of these rows that other releases have computed; a new sum is added.

    Notes
    -----
    Theorem M7.

    With ``M`` the second moments, of deviation ``s`` in each entry, the coordinates are those in
    which ``M + s sqrt(width)`` is the identity. The eigenvalues of ``M`` are first corrected for
    the noise, so that directions that it hides are scaled alike, and not farther than it allows.
    If it would hide nearly all of them, and for wide data, the mean row and the mean squared norm
    are released in place of the moments. The mean is subtracted from the rows, since noise along
    it would move the decisions of all records alike.
    """
    known = {} if known is None else known
    if plan.scales(design.width):
        return _basis_of_moments(plan, design, data_norm, n_outputs, rng, known)
    return _basis_of_mean_norm(plan, design, data_norm, rng, known)


def _basis_of_moments(
    plan: PreconditionedPlan,
    design: Design | DesignInParts,
    data_norm: float,
    n_outputs: int,
    rng: np.random.Generator,
    known: dict[Any, Any],
) -> Basis:
    longest2, width = 1.0 + _CONSTANT**2 * float(design.intercept), design.width
    radius2, data_radius = squared_radius(False), data_norm * math.sqrt(longest2)
    if data_norm not in known:
        known[data_norm] = design.total(partial(_sums_of_moments, data_norm, data_radius))
    sums = known[data_norm]
    scale = radius2 * plan.moment_noise
    upper = np.triu_indices(width)
    moments = np.zeros((width, width))
    moments[upper] = gaussian_release(sums.gram_and_moment[0][upper], radius2, scale, rng)
    moments = (moments + np.triu(moments, 1).T) / plan.n_samples
    spread = math.sqrt(width) * scale / plan.n_samples
    squares = float(np.trace(moments))
    # Convert from units of the bound and of the constant column for the intercept.
    units = np.full(width, 1.0 / data_radius)
    if design.intercept:
        # If rows are much shorter than the bound, the constant becomes shorter in proportion.
        constant = _CONSTANT**2 / longest2
        share = min(max((squares - constant) * longest2, spread, 1e-12), 1.0)
        squares += constant * (share - 1.0)
        moments[-1] *= math.sqrt(share)
        moments[:, -1] *= math.sqrt(share)
        units[-1] *= _CONSTANT * data_norm * math.sqrt(share)
    noisy, vectors = np.linalg.eigh(moments)
    values, noisy = _without_noise(noisy, spread), np.maximum(noisy, 0.0)
    floor = max(_FLOOR * spread, _LEAST_FLOOR * values.mean(), 1e-12)
    matrix = units[:, None] * ((vectors / np.sqrt(values + floor)) @ vectors.T)
    # No coordinate is scaled by more than the floor, so that the trace of the moments is a bound.
    usual2 = min(float((noisy / (noisy + floor)).sum()), squares / floor)
    distance = _NOISE_DISTANCE * (2.0 / max(n_outputs, 2)) ** 0.25
    root = vectors * np.sqrt(noisy) / units[:, None]
    return Basis(matrix, math.sqrt(max(usual2, 1.0)), 1.0, distance, plan.steps, root @ root.T)


def _without_noise(values: np.ndarray, spread: float) -> np.ndarray:
    """Return about the true second moments along the eigenvectors of noisy moments.

    Noise makes large eigenvalues larger and small ones smaller. This inverts it for Gaussian noise
    that changes each eigenvalue by up to `2 * spread` (Bun, Allez, Bouchaud and Potters,
    "Rotational invariant estimator for general noisy matrices", 2016). If the noise hides all
    directions, the results are about equal.
    """
    gaps = values[:, None] - values
    moved = gaps / np.maximum(gaps**2 + spread**2 / len(values), 1e-300)
    return np.maximum(values - 2.0 * spread**2 * moved.mean(axis=1), 0.0)


def _sums_of_moments(
    data_norm: float, data_radius: float, design: Design, codes: np.ndarray | None
) -> SufficientStatistics:
    sums = SufficientStatistics(data_radius, 1.0, fit_intercept=False)
    # Integer weights of rows, of which a record has `WHOLE`, and their places.
    whole = [(WHOLE, slice(None))]
    for weight, places in whole if design.persons is None else design.persons.by_weight():
        for rows in _bounded_rows(design.take(places), data_norm):
            sums.add_weighted(rows, np.zeros(rows.shape[0]), weight)
    return sums


def _basis_of_mean_norm(
    plan: PreconditionedPlan,
    design: Design | DesignInParts,
    data_norm: float,
    rng: np.random.Generator,
    known: dict[Any, Any],
) -> Basis:
    n_features = design.width - int(design.intercept)
    noise = plan.moment_noise / plan.n_samples
    # Only an intercept makes up for what is subtracted. Whether rows are sparse does not matter: a
    # ColumnTransformer makes them so or not by the number of zeros, which one record may decide.
    is_precise = noise * math.sqrt(n_features) <= _LARGEST_MEAN_NOISE * _MEAN_PART
    has_mean = design.intercept and is_precise
    key = "norms", data_norm, has_mean
    if key not in known:
        known[key] = of_unit_total(design.total(partial(_total_shares, data_norm, has_mean)))
    shares = gaussian_release(known[key], 1.0, plan.moment_noise, rng) / plan.n_samples
    squares, centre = shares, None
    if has_mean:
        squares = shares[-1] / _SQUARE_PART
        of_mean = shares[:-1] / _MEAN_PART
        length2 = float(of_mean @ of_mean)
        # The mean is shortened by the noise on it, and if that hides it, it is 0.
        kept = max(1.0 - n_features * (noise / _MEAN_PART) ** 2 / max(length2, 1e-300), 0.0)
        centre = kept * data_norm * of_mean
        squares -= kept**2 * length2
    # A square that the noise hides is replaced by the size of the noise.
    mean = math.sqrt(min(max(float(squares), noise, 1e-12), 1.0)) * data_norm
    diagonal, usual = np.ones(design.width), mean
    if design.intercept:
        diagonal[-1] = (_CENTRED_CONSTANT if has_mean else _CONSTANT) * mean
        usual = math.hypot(mean, diagonal[-1])
    return Basis(
        diagonal,
        usual,
        usual**2 / design.width,
        _UNSCALED_NOISE_DISTANCE,
        _unscaled_steps(plan, design.width),
        centre=centre,
    )


def _total_shares(
    data_norm: float, has_mean: bool, design: Design, codes: np.ndarray | None
) -> np.ndarray:
    """Return sums in units of `unit_total`: of squared norms as shares of the bound, and of rows.

    With rows, a record is a vector of length 1 at most, of which the last number is the share.
    """
    squares = np.maximum(design.squared_norms - float(design.intercept), 0.0)
    shares = np.minimum(squares / data_norm**2, 1.0)
    if has_mean:
        shorter = np.minimum(1.0, data_norm / np.maximum(np.sqrt(squares), 1e-300))
        factor = _MEAN_PART / data_norm * design.scale * shorter
        if sparse.issparse(design.rows):
            rows = sparse.diags_array(factor) @ design.rows
            shares = sparse.hstack([rows, (_SQUARE_PART * shares)[:, None]], format="csr")
        else:
            shares = np.column_stack([design.rows * factor[:, None], _SQUARE_PART * shares])
    return unit_total(shares if design.persons is None else design.persons.means(shares))


def _unscaled_steps(plan: PreconditionedPlan, width: int) -> int:
    """Return the number of steps in unscaled coordinates; more steps would fit the noise."""
    # Noise of all steps together, relative to the number of records.
    noise = plan.noise_multiplier * math.sqrt(width / plan.steps) / plan.n_samples
    wanted = max(_STEPS_BY_NOISE / max(noise, 1e-9), _LEAST_STEPS)
    return min(plan.steps, round(wanted))


@dataclass(frozen=True)
class DescentTask:
    """What one of several fits to the same rows has to itself.

    Attributes
    ----------
    plan : PreconditionedPlan
    data_norm : float
        See `release_basis`.
    rng : numpy.random.Generator
    initial : ndarray of shape (width, n_outputs) or None
    regularization : float
        See `fit_noisy_gradient`, as for the two above.
    learning_rate : float or None
        In units of `learning_rate_by_rule`.
    max_grad_norm : float or None
        In units of the usual norm of a row in these coordinates; None uses `clipping_share`.
    keeps_steps : bool, default=False
        Whether all steps are taken, if the rule would take fewer with less noise.
    is_logistic : bool, default=False
        Whether margins should match the labels' probabilities.
    """

    plan: PreconditionedPlan
    data_norm: float
    rng: np.random.Generator
    initial: np.ndarray | None = None
    regularization: float = 0.0
    learning_rate: float | None = None
    max_grad_norm: float | None = None
    keeps_steps: bool = False
    is_logistic: bool = False

    def begun(
        self, design: Design | DesignInParts, n_outputs: int, known: dict[Any, Any]
    ) -> tuple[Basis, float, dict[str, Any]]:
        """Return the basis, the factor of margins and the settings of the descent."""
        plan = self.plan
        basis = release_basis(plan, design, self.data_norm, n_outputs, self.rng, known)
        if self.keeps_steps:
            basis = replace(basis, steps=plan.steps)
        share = self.max_grad_norm
        if share is None:
            share = plan.clipping_share(basis.width)
        factor = plan.margin_factor(basis.width, n_outputs, share) if self.is_logistic else 1.0
        limit = share * basis.usual_norm
        rate = learning_rate_by_rule(plan, basis, limit)
        if self.learning_rate is not None:
            rate *= self.learning_rate
        initial = None if self.initial is None else self.initial / factor
        if initial is not None and basis.centre is not None:
            initial[-1] += basis.centre @ initial[:-1]
        settings = {
            "learning_rate": rate,
            "max_grad_norm": limit,
            "regularization": self.regularization,
            "rng": self.rng,
            "initial": initial,
            "basis": basis.matrix,
            "averages": True,
        }
        return basis, factor, settings

    def ended(self, basis: Basis, factor: float, weights: np.ndarray) -> np.ndarray:
        """Return the weights that a descent leads to, with margins of the right length."""
        weights = weights * factor
        # Steps that go on from other weights leave these as they are.
        if self.is_logistic and self.initial is None:
            weights *= noise_factor(self.plan, basis, weights)
        if basis.centre is not None:
            weights[-1] -= basis.centre @ weights[:-1]
        return weights


def fit_preconditioned(
    tasks: Sequence[DescentTask],
    design: Design | DesignInParts,
    problem_of: Callable[[Any, int], tuple[Residuals, np.ndarray]],
    codes: np.ndarray | None,
    n_outputs: int,
) -> list[np.ndarray]:
    """Return for each task the mean of the last half of a descent's weights; they share passes.

    Parameters
    ----------
    tasks : sequence of DescentTask
        The weights of each do not depend on the others, to the last bit.
    design : Design or DesignInParts
    problem_of : callable
        From labels 0, 1, ... and the number of outputs to the residuals and targets of
        `fit_noisy_gradient`.
    codes : ndarray of shape (n_samples,) or None
        Labels; None if they come with rows that lie in parts.
    n_outputs : int
        See `fit_noisy_gradient`.

    Returns
    -------
    list of ndarray of shape (width, n_outputs)

    Notes
    -----
    Theorem M7.
    """
    known: dict[Any, Any] = {}
    begun = [task.begun(design, n_outputs, known) for task in tasks]
    alike: dict[Any, list[int]] = {}
    for place, (task, (basis, _, settings)) in enumerate(zip(tasks, begun, strict=True)):
        plan, is_free = task.plan, task.plan.noise_multiplier == 0.0
        # Only one fit uses rows less its mean. None differs from each place, but True equals 1.
        whose = None if basis.centre is None else place
        sizes = plan.n_samples, basis.steps, basis.matrix.ndim, whose
        alike.setdefault((*sizes, settings["regularization"] > 0.0, is_free), []).append(place)
    found: list[Any] = [None] * len(tasks)
    for places in alike.values():
        plans = [tasks[place].plan.descent(begun[place][0].steps) for place in places]
        own = [begun[place][2] for place in places]
        centre = begun[places[0]][0].centre
        rows = design if centre is None else design.centred(centre)
        descents: Any
        if isinstance(rows, DesignInParts):
            descents = [
                _descent_in_parts(plan, rows, problem_of, n_outputs, each)
                for plan, each in zip(plans, own, strict=True)
            ]
        else:
            problem = (rows, problem_of, codes, n_outputs)
            if len(places) > 1:
                descents = descend_together(plans, *problem, own)
            else:
                descents = [fit_noisy_gradient(plans[0], *problem, **own[0])]
        for place, weights in zip(places, descents, strict=True):
            found[place] = tasks[place].ended(*begun[place][:2], weights)
    return found


def _descent_in_parts(
    plan: NoisyGradientPlan,
    design: DesignInParts,
    problem_of: Callable[[Any, int], tuple[Residuals, np.ndarray]],
    n_outputs: int,
    settings: dict[str, Any],
) -> np.ndarray:
    """Return the weights of a descent along exact sums, each of which is a pass over the parts."""
    basis, limit = cut_basis(settings["basis"]), settings["max_grad_norm"]

    def gradient_at(point: np.ndarray, batch: Batch) -> np.ndarray:
        sums = ExactGradients(problem_of, basis, limit, point)
        return sums.of_total(design.total(sums))

    coordinates = Coordinates(basis, design.width)
    return descend(
        plan,
        gradient_at,
        coordinates,
        # Theorem R10: a step reads all rows, whatever their number.
        iter([slice(None)] * plan.steps),
        coordinates.start(settings["initial"], n_outputs),
        noise_of_steps([plan], [limit], design.width * n_outputs, [settings["rng"]]),
        learning_rate=settings["learning_rate"],
        regularization=settings["regularization"],
        averages=True,
    )


def learning_rate_by_rule(plan: PreconditionedPlan, basis: Basis, limit: float) -> float:
    """Return the learning rate, from public numbers and released values.

    Parameters
    ----------
    plan : PreconditionedPlan
    basis : Basis
    limit : float
        The clipping norm.

    Notes
    -----
    In all steps, noise moves the coordinates by ``learning_rate * sqrt(steps) * deviation / n``,
    and a decision by the usual norm times that: a distance that the rule keeps fixed. If there is
    little noise, the rate is the longest that was stable at this clipping norm.
    """
    noise = plan.descent(basis.steps).noise_multiplier * math.sqrt(basis.steps) / plan.n_samples
    rate = basis.noise_distance / max(noise * limit * basis.usual_norm, 1e-300)
    return min(rate, _LONGEST_STEP * basis.usual_norm / (limit * basis.moment))


def _bounded_rows(design: Design, data_norm: float) -> Iterator[np.ndarray]:
    """Iterate over pieces of the rows, none longer than a norm, with an intercept's constant.

    There is at least one piece, so that without records sums have the right shape.
    """
    n_features = design.width - int(design.intercept)
    lengths = np.sqrt(np.maximum(design.squared_norms - float(design.intercept), 0.0))
    scale = design.scale * np.minimum(1.0, data_norm / np.maximum(lengths, 1e-300))
    for start in range(0, max(design.n_samples, 1), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        rows = design.rows[part]
        dense = rows.toarray() if sparse.issparse(rows) else rows
        piece = np.full((dense.shape[0], design.width), _CONSTANT * data_norm)
        np.multiply(dense, scale[part, None], out=piece[:, :n_features])
        yield piece
