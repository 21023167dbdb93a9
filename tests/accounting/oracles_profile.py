"""Slow oracles for profiles: closed forms in many digits, enumeration, naive transcriptions.

Nothing here shares code with the package. A pair is two lists of masses of the same outcomes;
direction *remove* reads it as ``(p, q)``, direction *add* as ``(q, p)``.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
from scipy import fft, optimize, special, stats

DIRECTIONS = ("remove", "add")


def gaussian_delta(mu, epsilon):
    """Balle and Wang's curve in 60 digits."""
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        value = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        return float(value)


def gaussian_curve(mu, epsilon):
    """The same by scipy, for arrays of numbers of either sign; good to about 1e-15."""
    tail = special.log_ndtr(-mu / 2 - epsilon / mu)
    return special.ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + tail)


def gaussian_epsilon(mu, delta):
    """The least epsilon >= 0 of the curve, by bisection in double precision of epsilon."""
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    low, high = 0.0, mu * mu / 2.0 + 40.0 * mu
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gaussian_delta(mu, middle) > delta else (low, middle)
    return high


def hockey_stick(p, q, epsilon):
    """``sum [p - exp(epsilon) q]_+`` of two lists of masses."""
    return math.fsum(max(a - math.exp(epsilon) * b, 0.0) for a, b in zip(p, q, strict=True))


def one_way(pair, direction):
    """Return the pair as a direction reads it."""
    return pair if direction == "remove" else pair[::-1]


def binary_composition(p, q, count, epsilon):
    """Hockey-stick divergence of ``count`` copies of a pair with two outcomes.

    ``p`` and ``q`` are the masses of the first outcome.
    """
    with mpmath.workdps(80):
        p, q, alpha = mpmath.mpf(p), mpmath.mpf(q), mpmath.exp(mpmath.mpf(epsilon))
        # Both products are carried along: binomial coefficients times powers.
        mine, theirs = (1 - p) ** count, (1 - q) ** count
        step_p, step_q = p / (1 - p), q / (1 - q)
        total, coefficient = mpmath.mpf(0), mpmath.mpf(1)
        for k in range(count + 1):
            total += coefficient * max(mine - alpha * theirs, 0)
            mine, theirs = mine * step_p, theirs * step_q
            coefficient = coefficient * (count - k) / (k + 1)
        return float(total)


def approximate_composition(epsilon_each, delta_each, count, epsilon):
    """Kairouz, Oh and Viswanath (2015), Theorem 3.3 as a sum over the number of flips."""
    with mpmath.workdps(80):
        truth = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon_each)))
        kept = (1 - mpmath.mpf(delta_each)) ** count
        finite = binary_composition(truth, 1 - truth, count, epsilon)
        return float(1 - kept + kept * finite)


def losses_of_pair(p, q):
    """Finite losses with their masses under ``p``, and the mass at infinity."""
    atoms = [(math.log(a / b), a) for a, b in zip(p, q, strict=True) if a > 0.0 and b > 0.0]
    infinity = math.fsum(a for a, b in zip(p, q, strict=True) if b == 0.0)
    return atoms, infinity


def hockey_stick_of_losses(atoms, infinity, epsilon):
    """``infinity + sum mass [1 - exp(epsilon - loss)]_+``."""
    return infinity + math.fsum(
        -mass * math.expm1(epsilon - loss) for loss, mass in atoms if loss > epsilon
    )


def neyman_pearson(p, q, alpha):
    """Least ``Q(accept)`` over tests that reject ``p`` with probability ``alpha``.

    ``p`` is the hypothesis: the test keeps the outcomes with the largest p/q until the
    power ``1 - alpha`` is reached.
    """
    ratio = [math.inf if b == 0.0 else a / b for a, b in zip(p, q, strict=True)]
    wanted, error = 1.0 - alpha, 0.0
    for _, a, b in sorted(zip(ratio, p, q, strict=True), reverse=True):
        if a <= 0.0:
            continue
        share = min(wanted / a, 1.0)
        error += share * b
        wanted -= share * a
    return error


def gaussian_tradeoff(mu, alpha):
    """``Phi(Phi^{-1}(1 - alpha) - mu)``."""
    return stats.norm.cdf(stats.norm.isf(alpha) - mu)


def lower_hull(x, y):
    """Indices of the lower convex hull of points with increasing x."""
    kept = []
    for i in range(len(x)):
        while len(kept) > 1:
            j, k = kept[-2], kept[-1]
            if (y[k] - y[j]) * (x[i] - x[k]) >= (y[i] - y[k]) * (x[k] - x[j]):
                kept.pop()
            else:
                break
        kept.append(i)
    return kept


def least_pair_curve(epsilons, deltas, deltas_add, epsilon, direction):
    """What the points of both directions prove together.

    Points of the other direction are points of this one at ``exp(-epsilon)``, and the hull of
    all, ``(0, 1)`` included, is the largest convex curve that respects every point.
    """
    own, other = (deltas, deltas_add) if direction == "remove" else (deltas_add, deltas)
    best = min(own[0], other[0]) if epsilons[0] == 0.0 else 1.0
    points = {0.0: 1.0}
    for place, height in zip(epsilons, np.minimum.accumulate(other), strict=True):
        alpha = math.exp(-place)
        points[alpha] = 1.0 - alpha + alpha * min(height, best)
    for place, height in zip(epsilons, np.minimum.accumulate(own), strict=True):
        points[math.exp(place)] = min(height, best)
    # To the right of the last point the curve falls no further, so it may stay.
    points[math.exp(epsilons[-1]) * 1e6] = points[math.exp(epsilons[-1])]
    x = sorted(points)
    y = [points[place] for place in x]
    kept = lower_hull(x, y)
    return float(np.interp(math.exp(epsilon), np.array(x)[kept], np.array(y)[kept]))


def renyi_of_pair(p, q, order):
    """Rényi divergence of two lists of masses, in many digits."""
    with mpmath.workdps(60):
        order = mpmath.mpf(order)
        moment = mpmath.fsum(
            mpmath.mpf(a) ** order * mpmath.mpf(b) ** (1 - order)
            for a, b in zip(p, q, strict=True)
        )
        return mpmath.log(moment) / (order - 1)


def renyi_of_response(epsilon, order):
    """Rényi divergence of randomised response."""
    with mpmath.workdps(60):
        truth = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        lie = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        return float(renyi_of_pair((truth, lie), (lie, truth), order))


def renyi_of_sampled_gaussian(mu, fraction, order):
    """Exact moment of the mixture against the plain distribution, integer orders."""
    with mpmath.workdps(60):
        m, share = mpmath.mpf(mu), mpmath.mpf(fraction)
        moment = mpmath.fsum(
            mpmath.binomial(order, k)
            * (1 - share) ** (order - k)
            * share**k
            * mpmath.exp(m * m * k * (k - 1) / 2)
            for k in range(order + 1)
        )
        return float(mpmath.log(moment) / (order - 1))


def renyi_of_tune_then_fit(tune, fit, fraction, order):
    """Koskela and Kulkarni (2023), equations 3.6 and 3.7.

    ``tune`` and ``fit`` are functions of the order; a factor ``exp(0 * divergence(1))`` is 1.
    """

    def moment(divergence, k):
        return mpmath.mpf(1) if k <= 1 else mpmath.exp((k - 1) * mpmath.mpf(divergence(k)))

    with mpmath.workdps(60):
        share = mpmath.mpf(fraction)
        rest = 1 - share
        first = share**order * moment(tune, order) + rest**order * moment(fit, order)
        second = rest ** (order - 1) * moment(fit, order)
        for j in range(1, order):
            first += (
                mpmath.binomial(order, j)
                * share ** (order - j)
                * rest**j
                * moment(tune, order - j)
                * moment(fit, j)
            )
            second += (
                mpmath.binomial(order - 1, j)
                * share**j
                * rest ** (order - 1 - j)
                * moment(tune, j + 1)
                * moment(fit, order - j)
            )
        return float(mpmath.log(max(first, second)) / (order - 1))


def sampled_gaussian_epsilons(rate, noise, count, deltas, points):
    """Epsilons of removing a record from ``count`` noisy sums of Poisson samples, about.

    The loss of one is moved to the nearest points of a grid, which leaves its mean alone and adds
    ``step**2 / 6`` to its variance at most; the transform is one of long doubles, whose noise is
    2,000 times lower than that of doubles. Two grids give the limit of a fine one.
    """
    coarse, fine = (
        _sampled_gaussian_epsilons(rate, noise, count, deltas, n) for n in (points, 2 * points)
    )
    return fine + (fine - coarse) / 3.0


def _sampled_gaussian_epsilons(rate, noise, count, deltas, points):
    mu = 1.0 / noise
    outcomes = np.linspace(-12.0, 12.0 + mu, 400_001)
    losses = np.log1p(rate * np.expm1(mu * outcomes - mu * mu / 2.0))
    density = (1.0 - rate) * np.exp(-0.5 * outcomes**2) + rate * np.exp(
        -0.5 * (outcomes - mu) ** 2
    )
    masses = density / density.sum()
    spread = math.sqrt(masses @ losses**2)
    step = spread / points
    cells = np.floor(losses / step)
    share = losses / step - cells
    low = int(cells.min())
    line = np.zeros(int(cells.max()) - low + 2, dtype=np.longdouble)
    np.add.at(line, (cells - low).astype(int), masses * (1.0 - share))
    np.add.at(line, (cells - low).astype(int) + 1, masses * share)
    mean = count * float(masses @ losses)
    reach = losses.max() + 14.0 * spread * math.sqrt(count)
    length = fft.next_fast_len(int(2.0 * reach / step), real=True)
    folded = np.append(line, np.zeros(-line.size % length)).reshape(-1, length).sum(axis=0)
    together = fft.irfft(_long_power(fft.rfft(folded), count), length)
    # The loss of each place within half a length of the mean.
    first = math.floor(mean / step) - length // 2
    places = first + (np.arange(length) + count * low - first) % length
    order = np.argsort(places)
    totals, weights = step * places[order], together[order]

    def excess(epsilon, delta):
        above = totals > epsilon
        return float(np.sum(-weights[above] * np.expm1(epsilon - totals[above]))) - delta

    return np.array([optimize.brentq(excess, 0.0, totals[-1], (delta,), 1e-9) for delta in deltas])


def _long_power(values, count):
    result = np.ones_like(values)
    while count:
        if count % 2:
            result = result * values
        values = values * values
        count //= 2
    return result
