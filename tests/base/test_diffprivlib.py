"""The cost of diffprivlib's models, the epsilon that they are given."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdptune.accounting import PrivacyProfile
from skdptune.base import NoProfileError, privacy_of, profile_of
from skdptune.ledger import LedgerError, PrivacyLedger, config_context

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    # With an unknown version of scikit-learn, one of its own modules raises ImportError.
    models = pytest.importorskip("diffprivlib.models", exc_type=ImportError)

ROOT = Path(__file__).resolve().parents[2]
REPLACE = "replace one of a public number of records"
ROWS = np.random.default_rng(0).normal(size=(60, 3))
LABELS = (ROWS[:, 0] > 0).astype(int)


def logistic(epsilon=2.0):
    return models.LogisticRegression(
        epsilon=epsilon, data_norm=1.0, fit_intercept=False, n_jobs=1, random_state=0
    )


@pytest.fixture
def trusting(monkeypatch):
    """Take all models at their word, as if nothing were known against any."""
    monkeypatch.setattr("skdptune.base._refusals._BY_CLASS", {})


# It passes an option to SciPy that is on its way out.
@pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")
def test_report_states_epsilon_and_on_whose_word() -> None:
    # Assumption R4: the stated cost of estimators of other libraries.
    report = privacy_of(logistic().fit(Normalizer().transform(ROWS), LABELS))
    assert (report.epsilon, report.delta, report.name) == (2.0, 0.0, "LogisticRegression")
    assert any("diffprivlib" in words for words in report.assumptions)


@pytest.mark.parametrize(
    "model",
    [
        models.LogisticRegression(),
        models.GaussianNB(),
        models.StandardScaler(),
        models.PCA(),
        models.LinearRegression(),
        models.KMeans(),
        models.RandomForestClassifier(bounds=(-3, 3)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_model_that_reads_its_bounds_off_the_data_is_refused(model) -> None:
    with pytest.raises((NoProfileError, ValueError), match="bounds|data_norm|classes"):
        profile_of(model, 60)


def test_assumptions_in_a_pipeline_do_not_depend_on_what_was_loaded_before() -> None:
    code = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "import numpy as np\n"
        "from diffprivlib.models import StandardScaler\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from skdptune.base import privacy_of\n"
        "X = np.eye(4)\n"
        "fitted = make_pipeline(StandardScaler(bounds=(0, 1))).fit(X, [0, 1, 0, 1])\n"
        "print(len(privacy_of(fitted).parts[0].assumptions))"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "1"


MODELS = {
    "LogisticRegression": (logistic(0.75), True),
    "GaussianNB": (models.GaussianNB(epsilon=0.75, bounds=(-3, 3)), True),
    "StandardScaler": (models.StandardScaler(epsilon=0.75, bounds=(-3, 3)), False),
    "PCA": (models.PCA(epsilon=0.75, data_norm=1.0, centered=True), False),
    "KMeans": (models.KMeans(epsilon=0.75, bounds=(-3, 3), n_clusters=2), False),
    "LinearRegression": (
        models.LinearRegression(epsilon=0.75, bounds_X=(-3, 3), bounds_y=(0, 1)),
        True,
    ),
    "RandomForestClassifier": (
        models.RandomForestClassifier(
            n_estimators=3, epsilon=0.75, bounds=(-3, 3), classes=[0, 1], n_jobs=2
        ),
        True,
    ),
    "DecisionTreeClassifier": (
        models.DecisionTreeClassifier(epsilon=0.75, bounds=(-3, 3), classes=[0, 1]),
        True,
    ),
}
_FIRST = ("GaussianNB", "partial_fit")
LATE = """
import sys
import numpy as np
from skdptune.ledger import PrivacyLedger
ledger = PrivacyLedger(":memory:", "patients", epsilon=9.0, delta=0.0)
assert "diffprivlib" not in sys.modules
with ledger:
    from diffprivlib.models import StandardScaler
    StandardScaler(epsilon=0.5, bounds=(-3, 3)).fit(np.zeros((9, 2)))
print(len(ledger.history()))
"""


@pytest.fixture
def ledger():
    return PrivacyLedger(":memory:", "patients", epsilon=60.0, delta=0.0)


@pytest.mark.usefixtures("trusting")
@pytest.mark.filterwarnings("ignore")
class TestRecording:
    """Theorem H4."""

    @pytest.mark.parametrize("name", MODELS)
    def test_every_fit_is_recorded_once(self, ledger, name):
        model, takes_targets = MODELS[name]
        assert profile_of(model, 60) == PrivacyProfile.pure(0.75)
        assert profile_of(make_pipeline(Normalizer(), model), 60, 3) == PrivacyProfile.pure(0.75)
        arguments = (ROWS, LABELS) if takes_targets else (ROWS,)
        methods = [one for one in ("fit", "partial_fit", "fit_transform") if hasattr(model, one)]
        with ledger:
            for method in methods:
                more = {"classes": [0, 1]} if (name, method) == _FIRST else {}
                getattr(clone(model), method)(*arguments, **more)
        found = ledger.history()
        assert [record.name for record in found] == [name] * len(methods)
        assert all(record.epsilon == pytest.approx(0.75) for record in found)
        assert {record.neighbouring for record in found} == {REPLACE}
        assert {record.status for record in found} == {"confirmed"}

    def test_every_model_of_the_library_is_recorded(self):
        public = {name for name, kind in vars(models).items() if hasattr(kind, "fit")}
        assert public == set(MODELS)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_searches_of_scikit_learn_record_every_fit(self, tmp_path, n_jobs):
        path = str(tmp_path / "budget.ledger")
        on_disk = PrivacyLedger.create(path, "patients", epsilon=60.0, delta=0.0)
        with on_disk:
            grid = {"logisticregression__C": [0.1, 1.0]}
            pipeline = make_pipeline(Normalizer(), logistic(0.75))
            GridSearchCV(pipeline, grid, cv=2, n_jobs=n_jobs).fit(ROWS, LABELS)
        assert sorted(record.details["n_samples"] for record in on_disk.history()) == [
            *[30] * 4,
            60,
        ]

    def test_without_a_ledger_nothing_changes(self, ledger):
        with ledger:
            pass
        model = logistic().fit(ROWS, LABELS).fit(ROWS, LABELS)
        assert model.coef_.shape == (1, 3) and ledger.history() == []

    def test_subclasses_that_are_made_later_are_recorded(self, ledger):
        class Own(models.GaussianNB):
            def fit(self, X, y, sample_weight=None):
                return super().fit(X, y)

        with ledger:
            Own(epsilon=0.5, bounds=(-3, 3)).fit(ROWS, LABELS)
        assert [record.name for record in ledger.history()] == ["Own"]

    def test_what_they_would_learn_for_nothing_is_refused(self, ledger):
        with ledger, pytest.raises(NoProfileError, match="bounds"):
            models.GaussianNB(epsilon=0.5).fit(ROWS, LABELS)
        with config_context(require_ledger=True), pytest.raises(LedgerError):
            cross_val_score(logistic(), ROWS, LABELS, cv=2, error_score="raise")
        assert ledger.history() == []

    def test_import_after_the_context_was_entered(self):
        done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True)
        assert done.stdout.strip() == "1", done.stderr
