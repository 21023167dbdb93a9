"""A random or a grid search with a storage continues after it was killed (Theorem F13)."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import textwrap
import time
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skdptune import DPGridSearchCV, DPLogisticRegression, DPRandomSearchCV
from skdptune.accounting import Logarithmic, PrivacyProfile
from skdptune.base import PrivacyWarning
from skdptune.model_selection import Composition, FullTable, RandomRuns
from tests.model_selection.learners import Stopped

POSIX = pytest.mark.skipif(os.name != "posix", reason="file modes and signals of POSIX")
SPACE = {"C": [1e-3, 1e-2, 0.1, 1.0, 10.0]}


X = np.random.default_rng(0).normal(size=(600, 3))
y = X[:, 0] + 0.3 * X[:, 1] > 0
RECORDS = set(X[:, 0].tolist())


class Interrupted(DPLogisticRegression):
    """Keeps the records of its fits, and is stopped at one of them."""

    fits: ClassVar[list] = []
    stops_at = 0
    then = None

    def fit(self, X, y, **params):
        # Fits of made-up records are none of a search's own.
        if X[0, 0] in RECORDS:
            self.fits.append(X.copy())
            if self.then is not None:
                self.then()
            if len(self.fits) == self.stops_at:
                raise Stopped
        return super().fit(X, y, **params)


@pytest.fixture(autouse=True)
def no_stop():
    Interrupted.fits.clear()
    Interrupted.stops_at, Interrupted.then = 0, None


@pytest.fixture(scope="module")
def data():
    return X, y


def random_search(storage, random_state=3, try_own_values=True, **changes):
    settings = {"epsilon": 3.0, "delta": 1e-5, "n_iter": 6, "random_state": random_state}
    strategy = RandomRuns(
        n_iter_distribution="poisson", try_own_values=try_own_values, storage=storage
    )
    return DPRandomSearchCV(Interrupted(), SPACE, strategy=strategy, **settings | changes)


def grid_search(storage, random_state=3, strategy=FullTable, **changes):
    settings = {"epsilon": 3.0, "delta": 1e-5, "random_state": random_state}
    strategy = strategy(storage=storage)
    return DPGridSearchCV(Interrupted(), SPACE, strategy=strategy, **settings | changes)


def composed_search(storage, random_state=3, **changes):
    return grid_search(storage, random_state, Composition, **changes)


SEARCHES = {
    "random": random_search,
    "random that fits the winner again": lambda *given: random_search(*given, refit=True),
    "random with folds": lambda *given: random_search(*given, cv=3, refit=True),
    "table": grid_search,
    "table with folds": lambda *given: grid_search(*given, cv=3),
    "all models": composed_search,
}


def stopped(search, X, y, at):
    """Return the records of the fits that a search had begun when it was stopped."""
    Interrupted.fits.clear()
    Interrupted.stops_at = at
    with pytest.raises(Stopped):
        search.fit(X, y)
    Interrupted.stops_at = 0
    return list(Interrupted.fits)


def fits_of(search, X, y):
    Interrupted.fits.clear()
    search.fit(X, y)
    return list(Interrupted.fits)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in ("random", "all models") else ())
        for name in SEARCHES
    ],
)
def test_a_seeded_search_ends_as_if_nothing_had_stopped_it(name, data, tmp_path):
    # Theorem F13: a random or grid search that was killed resumes, at no cost.
    make = SEARCHES[name]
    whole = make(None)
    total = len(fits_of(whole, *data))
    for at in sorted({2, total}):
        path = tmp_path / f"at {at}"
        stopped(make(path), *data, at)
        again = make(path)
        left = len(fits_of(again, *data))
        # Of a candidate with folds all fits are made again where one was lost.
        assert total - at < left <= total - at + (3 if "folds" in name else 1)
        assert again.best_score_ == whole.best_score_
        assert again.best_params_ == whole.best_params_
        assert_array_equal(again.best_estimator_.coef_, whole.best_estimator_.coef_)
        assert again.privacy_.epsilon == whole.privacy_.epsilon


def test_a_storage_costs_nothing(tmp_path):
    for make in SEARCHES.values():
        with_one = make(tmp_path / "runs").privacy_profile(600, 3)
        assert with_one.epsilon(1e-5) == make(None).privacy_profile(600, 3).epsilon(1e-5)
    assert not list(tmp_path.iterdir())


class TestWithoutASeed:
    """Noise is fresh in each process; what a file has is not drawn again (Theorem F13)."""

    def test_scores_that_are_kept_are_those_of_the_table(self, data, tmp_path, capsys):
        stopped(grid_search(tmp_path / "runs", None, verbose=2), *data, 4)
        before = re.findall(r"score=([\d.]+)", capsys.readouterr().err)
        search = grid_search(tmp_path / "runs", None, verbose=2).fit(*data)
        after = re.findall(r"score=([\d.]+)", capsys.readouterr().err)
        assert len(before) == 3 and len(after) == 6 and after[:3] == before
        table = search.cv_results_["mean_test_score"]
        assert [f"{score:.3f}" for score in table] == after
        other = grid_search(None, None).fit(*data).cv_results_["mean_test_score"]
        # Independent noise, except for values that are clipped to 1.
        assert not np.isin(table[table < 1.0], other).any()

    def test_the_records_of_fits_are_the_same(self, data, tmp_path):
        before = stopped(grid_search(tmp_path / "runs", None), *data, 3)
        after = fits_of(grid_search(tmp_path / "runs", None), *data)
        assert len(after) == 5
        for rows in after[:-1]:
            assert_array_equal(rows, before[0])

    def test_the_number_of_runs_is_that_of_one_search(self, data, tmp_path):
        # Poisson of mean 3, whenever searches are stopped.
        counts = []
        for place in range(25):
            # The run of the estimator's own values would be one more.
            search = random_search(
                tmp_path / str(place), None, try_own_values=False, n_iter=3, refit=True
            )
            Interrupted.fits.clear()
            Interrupted.stops_at = 2
            lost = 0
            try:
                search.fit(*data)
            except Stopped:
                lost, Interrupted.stops_at = 1, 0
                search.fit(*data)
            counts.append(len(Interrupted.fits) - lost - 1)
        assert abs(np.mean(counts) - 3.0) < 4.0 * np.sqrt(3.0 / 25)


class TestTheFile:
    """It is as secret as the data (Theorem F13)."""

    @POSIX
    def test_its_user_alone_may_read_it(self, data, tmp_path):
        path = tmp_path / "runs"
        path.touch(mode=0o644)
        with pytest.warns(PrivacyWarning, match="others can neither read"):
            stopped(random_search(path), *data, 2)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [each.name for each in tmp_path.iterdir()] == ["runs"]

    def test_its_size_shows_no_number_of_runs(self, data, tmp_path):
        sizes = set()
        for at in (2, 3, 4):
            path = tmp_path / str(at)
            stopped(random_search(path), *data, at)
            sizes.add(path.stat().st_size)
        assert len(sizes) == 1

    def test_at_the_end_nothing_is_left_in_it(self, data, tmp_path):
        path = tmp_path / "runs"
        search = random_search(path, None).fit(*data)
        text = path.read_text()
        assert "entropy" not in text and "runs" not in text.replace("skdptune runs", "")
        with pytest.raises(ValueError, match="whose search has ended"):
            clone(search).fit(*data)

    def test_a_search_that_has_ended_costs_a_ledger_nothing(self, data, tmp_path):
        from skdptune import PrivacyLedger

        path = tmp_path / "runs"
        random_search(path).fit(*data)
        ledger = PrivacyLedger.create(tmp_path / "ledger", "people", epsilon=10.0, delta=1e-4)
        with ledger, pytest.raises(ValueError, match="whose search has ended"):
            random_search(path).fit(*data)
        assert not ledger.history()

    def test_another_search_and_other_data_are_refused(self, data, tmp_path):
        path = tmp_path / "runs"
        X, y = data
        stopped(random_search(path), X, y, 3)
        for changes in ({"n_iter": 7}, {"epsilon": 2.0}, {"cv": 0.3}, {"random_state": 4}):
            with pytest.raises(ValueError, match="belongs to another"):
                random_search(path, **changes).fit(X, y)
        other = X.copy()
        other[5, 1] += 1.0
        for rows, labels in ((other, y), (X, ~y)):
            with pytest.raises(ValueError, match="belongs to another"):
                random_search(path).fit(rows, labels)
        # What is parallel, or says more, is the same search.
        random_search(path, n_jobs=2, verbose=1).fit(X, y)

    @pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"{}", b"[1]", b"\x80\x04"])
    def test_files_of_something_else_stay_as_they_are(self, content, data, tmp_path):
        path = tmp_path / "table.csv"
        path.write_bytes(content)
        mode = path.stat().st_mode
        with pytest.raises(ValueError, match="has other content"):
            random_search(path).fit(*data)
        assert path.read_bytes() == content and path.stat().st_mode == mode

    @POSIX
    def test_what_others_could_write_is_not_read(self, data, tmp_path):
        path = tmp_path / "runs"
        stopped(random_search(path), *data, 3)
        path.chmod(0o666)
        with pytest.raises(ValueError, match="others cannot write"):
            random_search(path).fit(*data)

    @POSIX
    def test_what_a_killed_process_was_writing_is_gone_in_the_end(self, data, tmp_path):
        path = tmp_path / "runs"
        stopped(random_search(path), *data, 3)
        (tmp_path / ".runs.new").write_text("half a file")
        random_search(path).fit(*data)
        assert [each.name for each in tmp_path.iterdir()] == ["runs"]

    @pytest.mark.parametrize("storage", [3, b"runs", "sqlite:///runs.db"])
    def test_what_is_no_path_is_refused(self, storage, data):
        for make in (random_search, grid_search):
            with pytest.raises((TypeError, ValueError), match="storage must be"):
                make(storage).fit(*data)

    @POSIX
    def test_one_process_at_a_time_uses_it(self, data, tmp_path):
        path = tmp_path / "runs"

        problems = []

        def again(model):
            Interrupted.then = None
            with pytest.raises(RuntimeError, match="one process at a time") as problem:
                random_search(path).fit(*data)
            problems.append(problem)

        Interrupted.then = again
        stopped(random_search(path), *data, 2)
        assert problems
        random_search(path).fit(*data)


KILLED = """
    import os, sys, time
    import numpy as np
    from skdptune import DPGridSearchCV, DPLogisticRegression, DPRandomSearchCV
    from skdptune.model_selection import FullTable, RandomRuns

    log = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    class Slow(DPLogisticRegression):
        def fit(self, X, y, **params):
            if X[0, 0] in records:
                os.write(log, b"begun\\n")
                time.sleep(0.1)
            return super().fit(X, y, **params)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    records = set(X[:, 0].tolist())
    y = X[:, 0] > 0
    kind, storage = sys.argv[1], sys.argv[3] or None
    arguments = {"epsilon": 3.0, "delta": 1e-4, "random_state": 1}
    if kind == "random":
        strategy = RandomRuns(n_iter_distribution="poisson", storage=storage)
        search = DPRandomSearchCV(
            Slow(), {"C": [0.1, 1.0]}, n_iter=12, strategy=strategy, **arguments
        )
    else:
        strategy = FullTable(storage=storage)
        search = DPGridSearchCV(
            Slow(), {"C": list(np.logspace(-3, 1, 12))}, strategy=strategy, **arguments
        )
    search.fit(X, y)
    print(float(search.best_score_).hex(), search.best_estimator_.coef_.tobytes().hex())
"""


@POSIX
@pytest.mark.parametrize("kind", ["random", pytest.param("table", marks=pytest.mark.slow)])
def test_killed_at_any_time_it_goes_on_to_the_same_result(kind, tmp_path):
    # Theorem F13: a random or grid search that was killed resumes, at no cost.
    script = tmp_path / "search.py"
    script.write_text(textwrap.dedent(KILLED))

    def started(log, storage):
        command = [sys.executable, os.fspath(script), kind, os.fspath(log), os.fspath(storage)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    whole = started(tmp_path / "whole", "").communicate()[0]
    n_whole = (tmp_path / "whole").read_text().count("begun")
    # Each process takes seconds to start.
    n_kills = 1 if kind == "random" else 2
    log, n_killed = tmp_path / "log", 0
    rng = np.random.default_rng(0)
    while True:
        process = started(log, tmp_path / "runs")
        seen = log.read_text().count("begun") if log.exists() else 0
        while process.poll() is None:
            now = log.read_text().count("begun") if log.exists() else 0
            # A few fits are made each time.
            if n_killed < n_kills and now >= seen + 3:
                time.sleep(rng.uniform(0.0, 0.1))
                process.send_signal(signal.SIGKILL)
                n_killed += 1
                break
        output = process.communicate()[0]
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
    assert whole and output == whole
    assert log.read_text().count("begun") <= n_whole + n_killed


def test_runs_that_are_lost_and_not_made_again_would_cost_more():
    """Why they are made again (Theorem F13).

    A result that is better than a share F of all others is the best of K runs with a density of
    E[K F^(K-1)] times its own. Without the first run this is E[(K-1) F^(K-2); K > 1]. On a
    neighbour F may be as large as min(e^eps F, 1 - e^-eps (1 - F)), where runs are pure.
    """
    epsilon, distribution = 1.0, Logarithmic.from_mean(10.0)
    counts = np.arange(1, 1500)
    chances = np.diff([distribution.probability_at_most(count) for count in range(1500)])
    share = np.concatenate([np.geomspace(1e-9, 0.1, 1000), np.linspace(0.1, 1.0, 5000)])
    other = np.minimum(np.exp(epsilon) * share, 1.0 - np.exp(-epsilon) * (1.0 - share))

    def loss(weights):
        densities = [np.polynomial.polynomial.polyval(F, weights) for F in (share, other)]
        return epsilon + np.log(np.max(densities[1] / densities[0]))

    bound = PrivacyProfile.pure(epsilon).selected(distribution).epsilon(0.0)
    assert bound * 0.999 < loss(counts * chances) <= bound
    assert loss((counts[1:] - 1) * chances[1:]) > 1.1 * bound
