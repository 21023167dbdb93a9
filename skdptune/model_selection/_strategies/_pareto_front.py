"""How a Pareto search proposes and evaluates parameters."""

from __future__ import annotations

from typing import Any

from skdptune.model_selection._pareto import Families, check_pareto_parameters
from skdptune.model_selection._strategies._strategy import BaseStrategy
from skdptune.model_selection._study import StorageParameter


class ParetoFront(BaseStrategy):
    """Propose parameters by Bayesian optimisation of the front of epsilon and error.

    The strategy of `DParetoSearchCV`, for those who turn what most users leave.

    Parameters
    ----------
    n_initial : int, default=16
        Evaluations that cover the space evenly, before surrogates are used.
    batch_size : int, default=1
        Evaluations that run at the same time. Each is proposed with regard to those that run.
    sampler : {"auto", "hvpoi", "random", "grid"} or optuna sampler, default="auto"
        How parameters are proposed.

        - "auto": the largest expected improvement of the hypervolume. Use it: it found the best
          fronts in our benchmarks. With three objectives it is "hvpoi".
        - "hvpoi": the improvement at the surrogates' means times the probability of one. Use it to
          reproduce the paper.
        - "random": independent draws from the space. Use it as a baseline, and where a release
          should pay for more evaluations, since proposals do not depend on scores.
        - "grid": the finest grid of at most ``n_initial + n_iter`` points. Use it for one or two
          parameters that are to be covered evenly; proposals do not depend on scores either.
        - An optuna sampler proposes all points, the first ones too. Use it to compare.
    reference_point : tuple of float, default=(10.0, 1.0)
        The largest epsilon, error and third objective that count for the hypervolume.
    epsilon_scale : {"linear", "log"}, default="linear"
        The scale of epsilon in the hypervolume, and so what "auto" and "hvpoi" aim at. "linear"
        is the paper's and counts every unit of epsilon alike; "log" counts every factor alike:
        use it where small epsilons matter as much as large ones. On it, epsilons below a millionth
        of the reference point's count as that.
    n_repeats : int, default=1
        Fits per evaluation (and fold). Their mean score is the utility.
    privacy : {"profile", "moments"}, default="profile"
        The bound that gives the epsilon of parameters: the estimator's tight profile, or, for
        comparison, the moments accountant. A release is always charged by profiles.
    third_objective : None, "time" or tuple of (str, callable), default=None
        A further objective to be minimised: the seconds of a repeat, or a name and a
        function ``metric(model, X, y)`` of the fitted model and validation records. Not with a
        release.
    storage : None, str or optuna storage, default=None
        A path (SQLite file), a URL or an optuna storage keeps the study, which can then be resumed
        after a crash and shared by several processes; give them the same `random_state`, so that
        they split the records alike: without one, each process, and each that resumes the study,
        splits them anew. Its user alone may read the file. It holds a seed only if you give one,
        and of the data a salted hash. A password in a URL stays in this process. None keeps the
        study in memory. Not with a release.
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
        """Refuse bad values of parameters, and of the search's beside them."""
        check_pareto_parameters(search, self, families)
