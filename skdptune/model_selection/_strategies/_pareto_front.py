"""The strategy of a Pareto search: how parameters are proposed and evaluated."""

from __future__ import annotations

from typing import Any

from skdptune.model_selection._pareto import Families, check_pareto_parameters
from skdptune.model_selection._strategies._strategy import BaseStrategy
from skdptune.model_selection._study import StorageParameter


class ParetoFront(BaseStrategy):
    """Propose parameters by Bayesian optimisation of the front of epsilon and error.

    The strategy of `DParetoSearchCV`, with the options that most users do not need.

    Parameters
    ----------
    n_initial : int, default=16
        Number of first evaluations, which cover the space evenly, before surrogates are used.
    batch_size : int, default=1
        Number of evaluations that run at the same time. Each proposal takes the running
        evaluations into account.
    sampler : {"auto", "hvpoi", "random", "grid"} or optuna sampler, default="auto"
        How parameters are proposed.

        - "auto": the largest expected improvement of the hypervolume. Use it: it found the best
          fronts in our benchmarks. With three objectives it is "hvpoi".
        - "hvpoi": the improvement at the surrogates' means times the probability of one. Use it to
          reproduce the paper.
        - "random": independent draws from the space. Use it as a baseline. Use it also if a
          release should pay for more evaluations, since proposals do not depend on scores.
        - "grid": the finest grid of at most ``n_initial + n_iter`` points. Use it to cover one or
          two parameters evenly; proposals do not depend on scores either.
        - An optuna sampler proposes all points, including the first ones. Use it to compare.
    reference_point : tuple of float, default=(10.0, 1.0)
        The largest epsilon, error and third objective that count for the hypervolume.
    epsilon_scale : {"linear", "log"}, default="linear"
        The scale of epsilon in the hypervolume, which "auto" and "hvpoi" maximise. "linear" is the
        paper's: every unit of epsilon counts the same. With "log" every factor counts the same:
        use it if small epsilons matter as much as large ones. On the log scale, epsilons below a
        millionth of the reference point's count as that millionth.
    n_repeats : int, default=1
        Number of fits per evaluation (and fold). Their mean score is the utility.
    privacy : {"profile", "moments"}, default="profile"
        The bound that gives the epsilon of parameters: the estimator's tight profile, or, for
        comparison, the moments accountant. A release is always charged by profiles.
    third_objective : None, "time" or tuple of (str, callable), default=None
        A further objective to minimise: the seconds of a repeat, or a name and a function
        ``metric(model, X, y)`` of the fitted model and validation records. Not allowed with a
        release.
    storage : None, str or optuna storage, default=None
        A path (SQLite file), a URL or an optuna storage in which the study is stored. It can then
        be resumed after a crash and shared by several processes. Give all of them the same
        `random_state`, so that they split the records alike. Without one, each process, also one
        that resumes the study, splits them differently. Only its owner may read the file. It holds
        a seed only if you give one, and a salted hash of the data. A password in a URL stays in
        this process. None keeps the study in memory. Not allowed with a release.
    study_name : str, optional
        Name in the storage. A study of this name is resumed if its data, estimators and space are
        the same.

    See Also
    --------
    DParetoSearchCV : The search.

    Notes
    -----
    Avent, González, Diethe, Paleyes and Balle (2020), Automatic Discovery of Privacy-Utility
    Pareto Fronts.

    Examples
    --------
    >>> from skdptune.linear_model import DPLogisticRegression
    >>> from skdptune.model_selection import DParetoSearchCV, ParetoFront
    >>> search = DParetoSearchCV(
    ...     DPLogisticRegression(solver="output"), {"epsilon": (0.05, 5.0, "log")}, n_iter=20,
    ...     release=8.0, strategy=ParetoFront(n_initial=4, sampler="random"),
    ... )
    >>> round(search.plan(20_000, 5).epsilon, 2) <= 8.0
    True
    """

    storage = StorageParameter()
    objects = ("sampler", "third_objective", "storage")

    def __init__(
        self,
        *,
        n_initial: int = 16,
        batch_size: int = 1,
        sampler: Any = "auto",
        reference_point: tuple[float, ...] = (10.0, 1.0),
        epsilon_scale: str = "linear",
        n_repeats: int = 1,
        privacy: str = "profile",
        third_objective: Any = None,
        storage: Any = None,
        study_name: str | None = None,
    ) -> None:
        self.n_initial = n_initial
        self.batch_size = batch_size
        self.sampler = sampler
        self.reference_point = reference_point
        self.epsilon_scale = epsilon_scale
        self.n_repeats = n_repeats
        self.privacy = privacy
        self.third_objective = third_objective
        self.storage = storage
        self.study_name = study_name

    def check(self, search: Any, families: Families) -> None:
        """Validate the parameters, also in combination with those of the search."""
        check_pareto_parameters(search, self, families)
