"""Search for the Pareto front of privacy and utility of a mechanism given by two functions."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from skdptune._progress import Progress
from skdptune._validation import check_n_jobs
from skdptune.model_selection._dpareto_search import ParetoFront
from skdptune.model_selection._pareto import (
    Evaluation,
    ParetoOptimizer,
    ParetoResult,
    ThirdObjective,
    check_settings,
    check_third_objective,
    warn_of_failures,
)
from skdptune.model_selection._running import child_stream
from skdptune.model_selection._space import SearchSpace

Oracle = Callable[..., Any]


def pareto_search(
    privacy_oracle: Callable[[dict[str, Any]], float],
    utility_oracle: Oracle,
    param_space: Mapping[str, Any],
    *,
    n_initial: int = 16,
    n_iter: int = 256,
    batch_size: int = 1,
    sampler: Any = "auto",
    reference_point: tuple[float, ...] = (10.0, 1.0),
    epsilon_scale: str = "linear",
    n_repeats: int = 1,
    third_objective: Any = None,
    storage: Any = None,
    study_name: str | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int | None = None,
) -> ParetoResult:
    """Find the Pareto front of privacy and utility of any mechanism by Bayesian optimisation.

    Use it for mechanisms that are not estimators; for estimators use `DParetoSearchCV`. The front
    is **not private**: the front and everything else in the result depend on the data that the
    utility function sees, and no privacy cost is charged for them.

    Parameters
    ----------
    privacy_oracle : callable ``(params) -> epsilon``
        The epsilon of a dict of parameters; ``inf`` means no privacy.
    utility_oracle : callable ``(params, seed) -> utility`` or ``(params) -> utility``
        One repeat of the utility of parameters, in [0, 1]. ``seed`` is a
        :class:`numpy.random.SeedSequence`, a different one in each repeat. If a function raises or
        returns NaN, the search continues: see ``failure`` in the result's ``evaluations_``.
    param_space : mapping of str
        For each parameter a list (categories), a tuple ``(low, high)`` or
        ``(low, high, "log")`` (integers when both ends are), or a frozen scipy distribution.
    n_initial : int, default=16
        Number of first evaluations, which cover the space evenly with regard to the given
        distributions.
    n_iter : int, default=256
        Number of evaluations after the first ones.
    batch_size : int, default=1
        Number of evaluations that run at the same time. Each proposal takes the running
        evaluations into account, and a new one is made as soon as an evaluation ends.
    sampler : {"auto", "hvpoi", "random", "grid"} or optuna sampler, default="auto"
        How parameters are proposed.

        - ``"auto"``: the largest expected improvement of the hypervolume. Use it: it found the
          best fronts in our benchmarks. With three objectives it is ``"hvpoi"``.
        - ``"hvpoi"``: the improvement at the surrogates' means times the probability of one. Use
          it to reproduce the paper.
        - ``"random"``: independent draws from the space. Use it as a baseline.
        - ``"grid"``: the finest grid of at most ``n_initial + n_iter`` points, repeated if it
          has fewer. Use it to cover one or two parameters evenly.
        - An optuna sampler proposes all points, including the first ones. Use it to compare.
    reference_point : tuple of float, default=(10.0, 1.0)
        The largest epsilon, error (1 - utility) and third objective that count for the
        hypervolume.
    epsilon_scale : {"linear", "log"}, default="linear"
        The scale of epsilon in the hypervolume, which "auto" and "hvpoi" maximise. "linear" is the
        paper's: every unit of epsilon counts the same. With "log" every factor counts the same:
        use it if small epsilons matter as much as large ones. On the log scale, epsilons below a
        millionth of the reference point's count as that millionth.
    n_repeats : int, default=1
        Calls of the utility function per evaluation; their mean is the utility.
    third_objective : None, "time", or tuple ``(name, function)``, default=None
        A further objective to minimise: the seconds that the utility function takes per
        evaluation, or ``function(params, seed)``, called once per evaluation.
    storage : None, path, URL or optuna storage, default=None
        Where the study is kept: in memory, in an SQLite file, or in a database. A stored study is
        resumed until it has ``n_initial + n_iter`` evaluations; evaluations that a crash
        interrupted are repeated. Several processes, and with a URL several machines, can work on
        one study. Only its owner may read the file, which holds a seed only if you give one. A
        password in a URL is never shown.
    study_name : str or None, default=None
        The study's name in its storage; None is ``"pareto_search"``.
    n_jobs : int or None, default=None
        Workers for the evaluations of a batch, at most ``batch_size`` of them: processes, or
        threads where joblib's backend is threading or a function cannot be pickled.
    random_state : int, Generator, RandomState or None, default=None
        Seeds proposals and repeats. A resumed study keeps its seed. Without a seed, later
        evaluations use new seeds, which are not stored.
    verbose : int or None, default=None
        None shows the current phase and the elapsed time, once a call has taken a second, on a
        terminal or in a notebook. 0 shows nothing. A value above 0 shows them at once and leaves
        them on the screen.

    Returns
    -------
    result : ParetoResult
        ``pareto_front_``, ``evaluations_``, ``hypervolume_``, ``hypervolume_history_``,
        ``fronts_``, ``study_`` and ``best_params_for(...)``.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or all of the first evaluations failed.

    Notes
    -----
    The method is that of Avent, Gonzalez, Diethe, Paleyes and Balle, "Automatic Discovery of
    Privacy-Utility Pareto Fronts" (PoPETs 2020): independent Gaussian processes of Matern 5/2
    covariance on the logarithm of epsilon and the logit of the utility. Here the first points are
    a Sobol sequence, running evaluations are represented by their predicted values, and regions in
    which evaluations fail are avoided.

    The same ``random_state`` gives the same result, also after a crash, if evaluations are made
    one after another and the sampler is not an optuna sampler.

    Examples
    --------
    >>> from skdptune.model_selection import pareto_search
    >>> def privacy(params):
    ...     return params["clip"] / params["noise"]
    >>> def utility(params):
    ...     return 1 / (1 + params["noise"] ** 2 + (params["clip"] - 1) ** 2)
    >>> space = {"noise": (0.1, 10.0, "log"), "clip": (0.1, 10.0, "log")}
    >>> result = pareto_search(privacy, utility, space, n_iter=16, random_state=0)
    >>> len(result.hypervolume_history_)
    32
    >>> params = result.best_params_for(epsilon=1.0)
    >>> privacy(params) <= 1.0 and utility(params) > 0.55
    True
    """
    space = SearchSpace(param_space)
    strategy = ParetoFront(
        n_initial=n_initial,
        batch_size=batch_size,
        sampler=sampler,
        reference_point=reference_point,
        epsilon_scale=epsilon_scale,
        n_repeats=n_repeats,
        storage=storage,
        study_name=study_name,
    )
    third = check_third_objective(third_objective, "(params, seed)")
    third_name = None if third is None else third.name
    check_settings(strategy, n_iter, third_name)
    check_n_jobs(n_jobs)
    oracles = Oracles(privacy_oracle, utility_oracle, n_repeats, third)
    optimizer = ParetoOptimizer(oracles, space, strategy, n_iter, third_name, n_jobs, random_state)
    with Progress("pareto_search", verbose):
        study = optimizer.run()
    records = optimizer.records()
    warn_of_failures(records, stacklevel=3)
    seed = None
    # Theorem F10: without a given seed, the result does not hold one either.
    if optimizer.seeds.is_seeded:
        seed = np.random.SeedSequence(optimizer.seeds.evaluations, spawn_key=(3,))
    return ParetoResult(
        records,
        space,
        reference_point=reference_point,
        epsilon_scale=epsilon_scale,
        third=third_name,
        study=study,
        privacy=privacy_oracle,
        utility=functools.partial(oracles.utilities, seed=seed),
    )


class Oracles:
    """Evaluate parameters with the user's functions.

    Parameters
    ----------
    privacy, utility : callable
        As in :func:`pareto_search`.
    n_repeats : int
        Calls of the utility per evaluation.
    third : ThirdObjective or None
    """

    def __init__(
        self, privacy: Oracle, utility: Oracle, n_repeats: int, third: ThirdObjective | None
    ) -> None:
        for name, oracle in (("privacy_oracle", privacy), ("utility_oracle", utility)):
            if not callable(oracle):
                raise TypeError(f"{name} must be callable; got {type(oracle).__name__}.")
        self.privacy, self.utility = privacy, utility
        self.n_repeats, self.third = n_repeats, third
        self.takes_seed = takes_seed(utility)

    def __call__(
        self, params: dict[str, Any], number: int, seed: np.random.SeedSequence
    ) -> Evaluation:
        """Return an evaluation; compute the privacy first, since it is fast and may fail."""
        epsilon = self.privacy(dict(params))
        start = time.perf_counter()
        utilities = self.utilities(params, seed)
        third = None
        if self.third is not None:
            third = time.perf_counter() - start
            if self.third.function is not None:
                stream = child_stream(seed, self.n_repeats)
                third = float(self.third.function(dict(params), stream))
        return Evaluation(epsilon, utilities, third)

    def utilities(
        self, params: dict[str, Any], seed: np.random.SeedSequence | None
    ) -> tuple[float, ...]:
        """Return one utility per repeat."""
        seed = np.random.SeedSequence() if seed is None else seed
        seeds = [child_stream(seed, place) for place in range(self.n_repeats)]
        if self.takes_seed:
            return tuple(self.utility(dict(params), each) for each in seeds)
        return tuple(self.utility(dict(params)) for _ in seeds)


def takes_seed(function: Oracle) -> bool:
    """Return whether a function can be called with parameters and a seed."""
    try:
        inspect.signature(function).bind({}, None)
    except TypeError:
        return False
    # Some functions written in C have no signature; they are called without a seed.
    except ValueError:
        return False
    return True
