"""Models of other libraries whose stated guarantee is not trusted, and the evidence."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdptune import DPGridSearchCV
from skdptune.base import NoProfileError, profile_of, register_profile
from tests import auditing

ROOT = Path(__file__).resolve().parents[2]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    # With an unknown version of scikit-learn, one of its own modules raises ImportError.
    models = pytest.importorskip("diffprivlib.models", exc_type=ImportError)

SETTINGS: dict[str, dict[str, Any]] = {
    "LinearRegression": {"bounds_X": (0, 1), "bounds_y": (0, 1)},
    "LogisticRegression": {"data_norm": 1.0},
    "GaussianNB": {"bounds": (0, 1)},
    "KMeans": {"bounds": (0, 1), "n_clusters": 2},
    "DecisionTreeClassifier": {"bounds": (0, 1), "classes": [0, 1]},
    "RandomForestClassifier": {"bounds": (0, 1), "classes": [0, 1]},
    "PCA": {"data_norm": 1.0, "centered": True},
}


# What a refusal says, in part.
FAULTS = {
    "LinearRegression": "spend epsilon / (n_features + 1) in addition to epsilon",
    "LogisticRegression": "in proportion to data_norm instead of its square",
    "GaussianNB": "changes a sum by its whole value",
    "KMeans": "labels_ and inertia_ are computed without noise",
    "DecisionTreeClassifier": "its epsilon is right for adding or removing a record, but",
    "RandomForestClassifier": "moves other records from tree to tree",
    "PCA": "eigenvectors are drawn from a narrower distribution",
}


def made(name: str, **more: Any) -> Any:
    return getattr(models, name)(**{**SETTINGS[name], **more})


def least_epsilon(one: np.ndarray, other: np.ndarray) -> float:
    """Return a lower bound on epsilon, at 99 % confidence, from the frequency of an event."""
    return auditing.least_epsilon((one.sum(), other.sum()), (one.size, other.size), 0.0, 0.01)


def share(event: Callable[[Any], bool], name: str, data: Any, n: int, **more: Any) -> np.ndarray:
    fits = (made(name, random_state=seed, **more).fit(*data) for seed in range(n))
    return np.array([event(fit) for fit in fits])


def largest_loss(n_columns: int) -> float:
    """Return the exact loss of diffprivlib's first eigenvector at a share of 1, at its worst."""
    turns = np.linspace(0.0, np.pi, 4001)
    directions = np.column_stack([np.cos(turns), np.sin(turns)])
    losses = []
    for rows in np.arange(1, 40) * n_columns / 10:
        along = np.array([[rows + 0.5, 0.5], [0.5, 0.5]])
        values = np.concatenate([np.linalg.eigvalsh(along), np.zeros(n_columns - 2)])
        gaps = (values.max() - values) / 4
        b = brentq(lambda b, gaps=gaps: (1 / (b + 2 * gaps)).sum() - 1, 1.0, n_columns)
        # The density that is due is exp(-size), by a proposal of (1 + 2 size / b)^(-n / 2).
        sizes = [
            (values.max() - np.einsum("ij,jk,ik->i", directions, one, directions)) / 4
            for one in (along, along * [[1, -1], [-1, 1]])
        ]
        drawn = [size + n_columns * np.log1p(2 * size / b) for size in sizes]
        losses.append((drawn[1] - drawn[0]).max())
    return max(losses)


def spending(monkeypatch: pytest.MonkeyPatch, module: Any, *names: str) -> list[float]:
    """Return a list that grows by the epsilon of each mechanism that a module makes."""
    spent: list[float] = []

    def watch(kind: Any) -> Any:
        class Watched(kind):
            def __init__(self, **given: Any) -> None:
                spent.append(given["epsilon"])
                super().__init__(**given)

        return Watched

    for name in names:
        monkeypatch.setattr(module, name, watch(getattr(module, name)))
    return spent


# The list ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
def test_model_is_refused_with_its_fault(name: str) -> None:
    # Assumption R4: the stated cost of estimators of other libraries.
    for estimator in (made(name), make_pipeline(Normalizer(), made(name))):
        with pytest.raises(NoProfileError, match="too small for replacing a record") as raised:
            profile_of(estimator, 100, 3)
        assert FAULTS[name] in str(raised.value)
    with pytest.raises(ValueError, match="unless insist=True"):
        register_profile(getattr(models, name))


def test_search_refuses_before_it_reads_the_data() -> None:
    model = made("GaussianNB")
    with pytest.raises(NoProfileError, match="changes a sum by its whole value"):
        DPGridSearchCV(model, {"var_smoothing": [1e-9, 1e-6]}, epsilon=1.0).fit(
            np.full((200, 2), np.nan), np.arange(200) % 2
        )


@pytest.mark.parametrize(
    "wrong",
    [
        {"data_norm": 2.1},
        {"data_norm": None},
        {"fit_intercept": True},
        {"n_jobs": None},
        {"n_jobs": 2},
        {"tol": 1e-3},
        {"max_iter": 99},
    ],
    ids=str,
)
def test_settings_with_which_the_guarantee_holds_are_taken(wrong: dict[str, Any]) -> None:
    # Assumption R4: the stated cost of estimators of other libraries.
    sound = made("LogisticRegression", fit_intercept=False, data_norm=2.0, epsilon=0.5, n_jobs=1)
    assert profile_of(sound, 100).epsilon(0.0) == 0.5
    with pytest.raises(NoProfileError, match="fit_intercept=False and data_norm=2.0 or less and"):
        profile_of(clone(sound).set_params(**wrong), 100)
    assert profile_of(models.StandardScaler(bounds=(0, 1)), 100).epsilon(0.0) == 1.0


def test_subclass_has_the_fault() -> None:
    class Own(models.PCA):
        pass

    with pytest.raises(NoProfileError, match="too small for replacing a record"):
        profile_of(Own(**SETTINGS["PCA"]), 100, 3)


INSISTS = """
import warnings; warnings.simplefilter("ignore")
import numpy as np
from diffprivlib.models import GaussianNB
from skdptune import check
from skdptune.accounting import PrivacyProfile
from skdptune.base import privacy_of, profile_of, register_profile

@register_profile(GaussianNB, insist=True)
def doubled(model, n_samples, n_features):
    return PrivacyProfile.pure(2 * model.epsilon)

model = GaussianNB(epsilon=0.5, bounds=(0, 1))
assert profile_of(model, 9).epsilon(0.0) == 1.0
report = privacy_of(model.fit(np.eye(4), [0, 1, 0, 1]))
assert (report.epsilon, report.neighbouring) == (1.0, "replace one of a public number of records")
assert check(model).codes == ("SKP012", "SKP017", "SKP020")
print(*report.assumptions)
"""


def test_insisting_is_written_into_the_report() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INSISTS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "the registered cost of diffprivlib's GaussianNB covers its known fault" in (
        done.stdout
    ), done.stderr


def logistic_losses(norm: float, C: float, epsilon: float, coef: Any, intercept: bool) -> Any:
    """Return the exact losses of diffprivlib's logistic regression at coefficients, one column.

    The density of coefficients w is that of the noise -(sum of gradients) - a w times the
    determinant of the curvature. Neighbours differ in one record, in addition to a few common
    ones.
    """
    radius, C = (np.hypot(norm, 1.0) if intercept else norm), float(C)
    noise, penalty = epsilon - 2 * np.log1p(0.25 * radius * C), np.array([1 / C])
    if noise <= 0:
        noise, penalty = epsilon / 2, np.array([0.25 * radius / np.expm1(epsilon / 4)])
    elif intercept:
        penalty = np.array([1 / C, 0.0])
    assert len(penalty) == coef.shape[1]
    found = []
    for others in ([[0.0, 0], [0.0, 1]] * 2, [[norm, 0], [-norm, 1]], [[norm, 0]] * 3):
        densities = []
        for record in product(np.linspace(-norm, norm, 9), (0, 1)):
            rows = np.array([*others, record])
            X = np.column_stack([rows[:, 0], np.ones(len(rows))])[:, : coef.shape[1]]
            chances = expit(coef @ X.T)
            drawn = (chances - rows[:, 1]) @ X + penalty * coef
            curves = np.einsum("mi,ij,ik->mjk", chances * (1 - chances), X, X) + np.diag(penalty)
            sizes = np.linalg.norm(drawn, axis=1) * noise / (2 * radius)
            densities.append(np.linalg.slogdet(curves)[1] - sizes)
        found.append(np.ptp(densities, axis=0).max())
    return max(found)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("norm", [0.1, 1.0, 2.0])
def test_logistic_regression_that_is_taken_keeps_its_epsilon(norm, C, epsilon):
    # Assumption R4: the stated cost of estimators of other libraries.
    coef = np.concatenate([size * np.linspace(-1, 1, 401) / norm for size in (1, 30, 1000)])
    assert logistic_losses(norm, C, epsilon, coef[:, None], False) <= epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("n", [2, 3, 50])
def test_scaler_that_is_taken_keeps_its_epsilon(n, epsilon):
    # Assumption R4. A replaced record changes a variance by what is charged; the noise is enough.
    from diffprivlib.mechanisms import LaplaceBoundedDomain

    most = (n - 1) / n**2
    others = np.random.default_rng(0).integers(0, 2, size=(500, n - 1)).astype(float)
    others[0] = 0.0
    both = [np.column_stack([others, np.full(500, x)]).var(axis=1) for x in (0.0, 1.0)]
    assert np.abs(both[0] - both[1]).max() == pytest.approx(most)
    mechanism = LaplaceBoundedDomain(epsilon=epsilon, sensitivity=most, lower=0.0, upper=0.25)
    scale = most / mechanism.effective_epsilon()
    values = np.linspace(0.0, 0.25, 401)
    shares = 1 - (np.exp(-values / scale) + np.exp((values - 0.25) / scale)) / 2
    gaps = np.abs(values[:, None] - values)
    losses = gaps / scale + np.log(shares / shares[:, None])
    assert losses[gaps <= most * (1 + 1e-9)].max() <= epsilon * (1 + 1e-9)


# What shows each fault -----------------------------------------------------------------------


# These tests are about one version of diffprivlib, which is pinned. Its consequences are tested
# above.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
class TestEvidence:
    """On data that differ in one record, at epsilon = 1 where no other is given."""

    def test_sum_of_squares_has_no_noise(self):
        X = np.linspace(0.0, 1.0, 20)[:, None]
        fits = [
            made("LinearRegression", fit_intercept=False, random_state=seed).fit(X, X[:, 0])
            for seed in (0, 1)
        ]
        exact = float((X**2).sum())
        assert [float(fit._obj_coefs[2][0, 0]) for fit in fits] == pytest.approx([exact, exact])

    @pytest.mark.parametrize("n_features", [1, 3])
    def test_means_of_a_regression_spend_their_share_twice(self, monkeypatch, n_features):
        from diffprivlib.models import linear_regression
        from diffprivlib.tools import utils

        spent = spending(monkeypatch, linear_regression, "Laplace", "LaplaceFolded")
        means = spending(monkeypatch, utils, "LaplaceTruncated")
        X = np.full((20, n_features), 0.5)
        made("LinearRegression", random_state=0).fit(X, X[:, 0])
        assert sum(spent) + sum(means) == pytest.approx(1 + 1 / (n_features + 1))

    def test_large_norms_and_intercepts_have_larger_losses(self):
        coef = np.linspace(-1, 1, 4001)[:, None]
        assert logistic_losses(10.0, 1.0, 1.0, coef, False) > 1.2
        assert logistic_losses(5.0, 1.0, 0.1, coef, False) > 0.12
        assert logistic_losses(1e4, 1.0, 1.0, coef / 1e3, False) > 7.8
        assert logistic_losses(1.0, 1.0, 1.0, np.array([[-10.0, 10.0]]), True) > 6.9

    def test_workers_draw_the_same_noise(self):
        X, y = np.zeros((30, 1)), np.arange(30) % 3
        fits = [
            made("LogisticRegression", fit_intercept=False, n_jobs=2).fit(X, y) for _ in range(2)
        ]
        # Without a signal a coefficient is the noise itself.
        assert len(np.unique([fit.coef_ for fit in fits])) == 1
        alone = made("LogisticRegression", fit_intercept=False, n_jobs=1).fit(X, y)
        assert len(np.unique(alone.coef_)) == 3

    def test_curvature_is_undercharged(self):
        n, norm = 400, 1e4
        X, y = np.zeros((20, 1)), np.arange(20) % 2
        other = X.copy()
        other[0] = norm
        more = {"data_norm": norm, "fit_intercept": False, "max_iter": 1000}

        def is_near(fit):
            return abs(fit.coef_[0, 0]) < 5e-4

        with_it = share(is_near, "LogisticRegression", (other, y), n, **more)
        without = share(is_near, "LogisticRegression", (X, y), n, **more)
        assert least_epsilon(with_it, without) > 1.5

    def test_sums_of_classes_change_by_whole_values(self):
        # A record that changes its class takes 1000.5 from one sum, and the noise is about 1.
        n, X, y = 800, np.full((20, 1), 1000.5), np.arange(20) % 2
        other = y.copy()
        other[0] = 1

        def is_likely(fit):
            return fit.class_count_[0] == 10 and 1000 < fit.theta_[0, 0] < 1001

        more = {"bounds": (1000, 1001), "epsilon": 3.0}
        without = share(is_likely, "GaussianNB", (X, other), n, **more)
        assert least_epsilon(share(is_likely, "GaussianNB", (X, y), n, **more), without) > 3.3

    def test_each_class_has_the_whole_epsilon(self, monkeypatch):
        from diffprivlib.models import naive_bayes

        names = ("GeometricTruncated", "LaplaceTruncated", "LaplaceBoundedDomain")
        spent = spending(monkeypatch, naive_bayes, *names)
        made("GaussianNB", random_state=0).fit(np.array([[0.0], [1.0]] * 10), [0, 1] * 10)
        # One mechanism counts both classes; each class has two more, for its sum and its squares.
        assert spent == pytest.approx([1 / 3] * 5)

    def test_clusters_of_many_columns_spend_more_than_epsilon(self, monkeypatch):
        from diffprivlib.models import k_means

        spent = spending(monkeypatch, k_means, "LaplaceBoundedDomain", "GeometricFolded")
        X = np.random.default_rng(0).uniform(size=(500, 10))
        made("KMeans", n_clusters=1, random_state=0).fit(X)
        assert sum(spent) == pytest.approx(1.21, abs=0.01)

    def test_clusters_show_records(self):
        X = np.random.default_rng(0).uniform(size=(200, 1))
        fit = made("KMeans", random_state=0).fit(X)
        distances = (X - fit.cluster_centers_[:, 0]) ** 2
        assert np.array_equal(fit.labels_, distances.argmin(axis=1))
        assert fit.inertia_ == pytest.approx(distances.min(axis=1).sum())

    @pytest.mark.parametrize("name", ["DecisionTreeClassifier", "RandomForestClassifier"])
    def test_replaced_records_count_twice(self, name):
        n, X = 400, np.full((2, 1), 0.5)
        more = {"max_depth": 1, **({"n_estimators": 1} if "Forest" in name else {})}

        def is_second(fit):
            return fit.predict([[0.5]])[0] == 1

        balanced = share(is_second, name, (X, [0, 1]), n, **more)
        alike = share(is_second, name, (X, [0, 0]), n, **more)
        assert least_epsilon(balanced, alike) > 1.2

    def test_eigenvectors_are_of_another_distribution(self):
        from diffprivlib.mechanisms import Bingham

        drawn = np.array(
            [
                Bingham(epsilon=1.0, random_state=s).randomise(np.diag([8.0, 0.0]))
                for s in range(999)
            ]
        )
        angles = np.linspace(0, np.pi, 10_001)
        density = np.exp(2 * np.cos(angles) ** 2)
        is_far = np.abs(np.sin(angles)) > np.sqrt(0.5)
        due = density[is_far].sum() / density.sum()
        assert due == pytest.approx(0.22, abs=0.01)
        far = (np.abs(drawn[:, 1]) > np.sqrt(0.5)).mean()
        assert far < due / 3
        # It is the distribution whose losses are computed below: a factor is divided by twice.
        b = brentq(lambda b: 1 / b + 1 / (b + 4) - 1, 1, 2)
        density *= (1 + 4 * np.sin(angles) ** 2 / b) ** -2
        assert far == pytest.approx(density[is_far].sum() / density.sum(), abs=0.025)

    def test_eigenvectors_of_many_columns_have_larger_losses(self):
        """Two rows that mirror each other leave all eigenvalues and normalizers as they are."""
        assert [largest_loss(n) for n in (9, 10, 100)] == pytest.approx(
            [0.98, 1.01, 2.56], abs=0.01
        )
