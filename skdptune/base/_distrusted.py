"""Models of other libraries whose stated guarantee fails, or lacks a proof.

Their own word is not taken (Assumption R4). A fault counts for every release but those that come
after the one that mends it, so that a new release is distrusted until somebody has looked at it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from skdptune.base._refusals import DISTRUSTED_DEMAND, Refusal

_ISSUES = "https://github.com/IBM/differential-privacy-library/issues/"
_READ = "its source, and tests/base/test_distrusted.py"
_MOVED = (
    "a record that changes its {0} changes two, of which each has the whole epsilon; and it "
    "changes a sum by its whole value, where the noise is that of the bounds' width, which can be "
    "less if 0 is outside them"
)
_REPLACED = "one that is replaced changes two leaves, or two counts of one, and costs 2 epsilon"


@dataclass(frozen=True)
class DistrustedModel:
    """A model whose stated epsilon is refuted for replacing a record, or not proven for it.

    Attributes
    ----------
    library, name : str
        Package and class.
    fault : str
        What is wrong, in the words of a sentence without its full stop.
    source : str
        Who says so: an address, or where it is shown.
    seen_in : str
        Release in which the fault was found.
    mended_in : str or None
        First release without it; None while there is none.
    settings : tuple of (str, str)
        Parameters with which the guarantee holds, as the user would write them.
    holds : callable or None
        Whether it holds with some parameters; None if it holds with none.
    instead : str
        What to use, in a sentence.
    """

    library: str
    name: str
    fault: str
    source: str
    seen_in: str
    mended_in: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    holds: Callable[[Mapping[str, Any]], bool] | None = None
    instead: str = ""

    @property
    def concerns_installed(self) -> bool:
        """Whether the installed release has the fault."""
        if self.mended_in is None:
            return True
        try:
            installed = version(self.library)
        except PackageNotFoundError:
            # Its class is there, whatever release it is of.
            return True
        return _numbers(installed) < _numbers(self.mended_in)

    @property
    def reason(self) -> str:
        """Why it is not taken at its word."""
        return (
            f"the epsilon of {self.library} {self.seen_in} is too small for replacing a record, "
            f"or not proven for it: {self.fault} ({self.source})"
        )

    @property
    def assumption(self) -> str:
        """What a report says of a model that is used nonetheless."""
        return (
            f"the registered cost of {self.library}'s {self.name} covers its known fault: "
            f"{self.fault} ({self.source})"
        )


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", release)[:3])


def _charges_enough(parameters: Mapping[str, Any]) -> bool:
    # Assumption R4. Per record the loss has gradients of at most r = data_norm and curvature of at
    # most c r^2 with c = 1/4; a is the whole penalty, and noise of scale 2 r / e has a loss of e
    # when a record is replaced. Given a curvature of at least a in all directions, which an
    # intercept does not have, the determinant changes by a factor of at most 1 + c r^2 / a. What
    # is charged is epsilon - e = 2 log(1 + c r / a), enough for all a if r is at most 2.
    # Workers would copy the generator, so that fits and classes share their noise. None is not 1:
    # it follows joblib's context. The proof is about minimisers, so none may be coarser than
    # those of the defaults.
    names = ("fit_intercept", "data_norm", "n_jobs", "tol", "max_iter")
    has_intercept, norm, n_jobs, tol, most = (parameters.get(name) for name in names)
    return (
        has_intercept is False
        and n_jobs == 1
        and isinstance(norm, int | float)
        and 0.0 < norm <= 2.0
        and isinstance(tol, int | float)
        and tol <= 1e-4
        and isinstance(most, int)
        and most >= 100
    )


def _of_diffprivlib(name: str, fault: str, source: str = _READ, **more: Any) -> DistrustedModel:
    return DistrustedModel("diffprivlib", name, fault, source, "0.6.6", **more)


_TREES = "Use skdptune.ensemble.DPExplainableBoostingClassifier(bounds=...)."
DISTRUSTED: tuple[DistrustedModel, ...] = (
    _of_diffprivlib(
        "LinearRegression",
        "the noise on a column's sum of squares follows from its lower bound and not from its "
        "upper one; the means that an intercept needs spend epsilon / (n_features + 1) more than "
        "epsilon; and rows are not clipped without an intercept",
        f"{_ISSUES}105",
        instead="Use skdptune.linear_model.NoisyStatisticsRidge(target_bound=...).",
    ),
    _of_diffprivlib(
        "LogisticRegression",
        "the change of curvature is charged in proportion to data_norm and not to its square; an "
        "intercept has no penalty, on which the proof rests; and worker processes draw the same "
        "noise for all classes, and for fits one after another",
        settings=(
            ("fit_intercept", "False"),
            ("data_norm", "2.0 or less"),
            ("n_jobs", "1"),
            ("tol", "1e-4 or less"),
            ("max_iter", "100 or more"),
        ),
        holds=_charges_enough,
        instead="Use skdptune.linear_model.DPLogisticRegression.",
    ),
    _of_diffprivlib("GaussianNB", _MOVED.format("class")),
    _of_diffprivlib(
        "KMeans",
        "labels_ and inertia_ are computed without noise, and an empty cluster is left as it was, "
        f"which shows that it is empty; {_MOVED.format('cluster')}; and from 5 columns on the "
        "shares of all steps add up to more than epsilon",
    ),
    _of_diffprivlib(
        "DecisionTreeClassifier",
        f"its epsilon is right for adding or removing a record, but {_REPLACED}",
        instead=_TREES,
    ),
    _of_diffprivlib(
        "RandomForestClassifier",
        "a record that is added or removed moves others from tree to tree, and " + _REPLACED,
        instead=_TREES,
    ),
    _of_diffprivlib(
        "PCA",
        "eigenvectors are drawn from a narrower distribution than the one that the proof is "
        "about; the loss of the first one can exceed its share of epsilon from 10 columns on, and "
        "is 2.5 times that share with 100",
    ),
)
_BY_CLASS = {(one.library, one.name): one for one in DISTRUSTED}


def distrusted_class(kind: type) -> DistrustedModel | None:
    """Return the entry of the list that a class is, or descends from; None if there is none."""
    for each in kind.__mro__:
        found = _BY_CLASS.get((each.__module__.partition(".")[0], each.__name__))
        if found is not None and found.concerns_installed:
            return found
    return None


def distrusted(estimator: Any) -> DistrustedModel | None:
    """Return the entry of the list that an estimator with its parameters is about, if any.

    Notes
    -----
    Assumption R4.
    """
    found = distrusted_class(type(estimator))
    if found is None or found.holds is None:
        return found
    return None if found.holds(estimator.get_params(deep=False)) else found


def refusal_of(found: DistrustedModel) -> Refusal:
    """Return why such a model is refused, and what to do instead."""
    insist = "If you know what it costs nonetheless, pass that to register_profile(insist=True)."
    return Refusal(
        found.name,
        found.reason,
        " ".join(filter(None, (found.instead, insist))),
        found.settings,
        demand=DISTRUSTED_DEMAND,
    )
