"""Uncharged values are not shown: losing candidates leave marks everywhere, and none is found."""

from __future__ import annotations

import io
import pickle
import re
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sklearn
from packaging.version import Version

from skdptune.accounting import Geometric
from tests.flat import changed
from tests.model_selection.learners import Loud, Told, table
from tests.model_selection.ways import USUAL, WAYS, Way

DELTA = 1e-5
X, Y = table(600)
# So many that nothing else in a search is that number.
# What they show of a failure is the level of a walk, or nothing.
TELLING_NO_SCORE = ("grid", "doubling", "doubling-per-round")
SECRET_COUNT = 37
SECRET_TIME = 98765.25
RANDOM = [name for name in WAYS if "n_iter" in WAYS[name].settings]


class Marks:
    """A distribution whose class notes all draws; each draw has its own mark."""

    drawn: list[str] = []

    def rvs(self, random_state: Any) -> str:
        Marks.drawn.append(f"mark{random_state.randint(10**12):012d}")
        return Marks.drawn[-1]


@pytest.fixture
def many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every random search make the secret number of runs, in the secret time."""
    Marks.drawn.clear()
    monkeypatch.setattr(Geometric, "sample", lambda distribution, rng: SECRET_COUNT)
    clock = iter(range(10**9))
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock) * SECRET_TIME)


def things(root: Any) -> Iterator[Any]:
    """Iterate over everything that can be reached from an object."""
    seen: dict[int, Any] = {}
    waiting = [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type) or callable(getattr(thing, "mro", None)):
            continue
        seen[id(thing)] = thing
        yield thing
        if isinstance(thing, dict):
            waiting += [*thing.keys(), *thing.values()]
        elif isinstance(thing, list | tuple | set | frozenset):
            waiting += list(thing)
        elif isinstance(thing, np.ndarray):
            # Numbers in arrays are read by `numbers`, all at once.
            waiting += thing.ravel().tolist() if thing.dtype == object else []
        waiting += list(getattr(thing, "__dict__", {}).values())
        waiting += [getattr(thing, slot, None) for slot in getattr(thing, "__slots__", ())]


def visible(search: Any) -> str:
    """Return all text that a search shows, or that a pickle of it holds."""
    texts = [
        repr(search),
        str(search),
        search._repr_html_(),
        str(search.privacy_),
        search.privacy_._repr_html_(),
        repr(search.privacy_.to_dict()),
        pickle.dumps(search).decode("latin-1"),
    ]
    return "\n".join(texts + [str(thing) for thing in things(search) if isinstance(thing, str)])


def numbers(search: Any) -> set[float]:
    """Return all numbers in a search, the lengths of its lists among them."""
    found = set()
    for thing in things({name: value for name, value in vars(search).items() if name[-1] == "_"}):
        if isinstance(thing, int | float | np.number) and not isinstance(thing, bool):
            found.add(float(thing))
        elif isinstance(thing, list | tuple | dict | set):
            found.add(float(len(thing)))
        elif isinstance(thing, np.ndarray):
            found |= {float(size) for size in thing.shape}
            found |= set(thing.ravel().tolist()) if thing.dtype.kind in "fiu" else set()
    return found


def marked(name: str, **more: Any) -> Any:
    values = {"quality": [0.1, 0.3, 0.6], "mark": Marks()}
    return WAYS[name].make(Loud(epsilon=3.0, delta=DELTA), values, **more)


@pytest.mark.parametrize("name", RANDOM)
def test_nothing_of_the_losers_is_found(
    name: str,
    many_runs: None,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Theorem F4, Assumption S0.
    search = marked(name, verbose=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, Y)
    drawn = set(Marks.drawn)
    assert len(drawn) >= SECRET_COUNT
    # Of the draws; the unchanged estimator has a separate row, which is paid for.
    rows = search.cv_results_["params"]
    winner = rows[-1]["mark"]
    assert winner in drawn
    captured = capfd.readouterr()
    log = "".join(record.getMessage() for record in caplog.records)
    warned = "".join(str(warning.message) for warning in caught)
    everything = "\n".join([visible(search), captured.out, captured.err, log, warned])
    assert [mark for mark in drawn - {winner} if mark in everything] == []
    for word in ("warning of", "record of", "print of", "exception of"):
        assert word not in everything
    assert winner in visible(search)
    assert not {SECRET_COUNT, SECRET_TIME} & numbers(search)
    assert len(rows) == (2 if name == "random-own" else 1)


@pytest.mark.parametrize("name", RANDOM)
def test_the_guard_finds_what_diagnostics_keep(name: str, many_runs: None) -> None:
    # Assumption F6: timing, seeds, diagnostics, floating point.
    search = marked(name, diagnostics=True).fit(X, Y)
    assert {SECRET_COUNT, SECRET_TIME} <= numbers(search)
    kept = search.diagnostics_
    assert kept["n_runs"] == len(kept["params"]) == len(kept["scores"]) == SECRET_COUNT
    assert {params["mark"] for params in kept["params"]} <= set(Marks.drawn)
    assert any(error and "exception of" in error for error in kept["errors"])
    assert search.privacy_.assumptions[0].startswith("NOT PRIVATE")
    assert "NOT PRIVATE" in str(search.privacy_)
    assert "NOT PRIVATE" in search._repr_html_()
    # The winner is the same as without, where no loser's score is kept.
    plain = marked(name).fit(X, Y)
    shown, other = (one.cv_results_["mean_test_score"] for one in (plain, search))
    assert shown[-1] == other[-1] == kept["scores"].max()
    assert plain.best_score_ in shown
    assert not {float(score) for score in kept["scores"]} & numbers(plain) - set(shown)


def test_pick_shows_neither_utilities_nor_losers(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    # Theorem D4: what a doubling threshold search shows.
    values = {"quality": [0.1, 0.3, 0.6], "mark": ["one", "two"]}

    def search(**more: Any) -> Any:
        return (
            WAYS["grid"]
            .make(Loud(epsilon=3.0, delta=DELTA), values, selection_epsilon=10.0, **more)
            .fit(X, Y)
        )

    kept = search(diagnostics=True).diagnostics_["utilities"]
    assert len(kept) == 6
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = search(verbose=1)
    captured = capfd.readouterr()
    assert [one for one in caught if "is fitted again" not in str(one.message)] == []
    assert caplog.records == []
    assert " of " not in captured.out + captured.err.replace("stopped of", "")
    assert not {float(value) for value in kept} - {0.0, 1.0} & numbers(fitted)
    assert np.isnan(fitted.best_score_)
    assert fitted.cv_results_["params"] == [fitted.best_params_]


@pytest.mark.parametrize("name", WAYS)
def test_failing_looks_like_scoring_the_worst(name: str) -> None:
    """The noisy score of a failure has the law of any other: it is noised around the worst."""
    # Theorem F4: a run that fails is a run that scores the worst.
    found: list[float] = []
    # What is shown of a failure does not depend on some layouts.
    is_plain = WAYS[name].settings.get("tuning_fraction") == 0.2 or name in TELLING_NO_SCORE
    for seed in range(1 if is_plain else 6):
        search = WAYS[name].make(Loud(epsilon=3.0, delta=DELTA), {"quality": [0.1]})
        search.set_params(random_state=seed).fit(X, Y)
        found.append(search.best_score_)
        assert search.privacy_.epsilon > 2.0
        # A candidate that always fails has no model, and requesting one does not crash.
        assert search.cv_results_["params"][-1] == {"quality": 0.1}
        assert name == "random-own" or search.best_params_ == {"quality": 0.1}
        assert not hasattr(search, "diagnostics_")
    if is_plain:
        return
    # What noise takes below the worst is shown as the worst.
    above = [score for score in found if score > 0.0]
    assert len(set(above)) == len(above) > 0
    assert np.all((np.array(found) >= 0.0) & (np.array(found) < 0.2))


@pytest.mark.parametrize("name", USUAL)
def test_errors_are_raised_only_for_diagnostics(name: str) -> None:
    search = WAYS[name].make(Loud(epsilon=3.0, delta=DELTA), {"quality": [0.1]})
    with pytest.raises(ValueError, match="error_score must be 'worst' unless diagnostics=True"):
        changed(search, error_score="raise").fit(X, Y)
    with pytest.raises(ValueError, match="exception of None"):
        changed(search, diagnostics=True).fit(X, Y)


@pytest.mark.parametrize("name", WAYS)
def test_sizes_of_random_parts_are_passed_to_nothing(name: str) -> None:
    # Theorem F3: sizes of random parts are never used.
    Told.heard.clear()
    search = WAYS[name].make(Told(epsilon=3.0, delta=DELTA), {"quality": [0.3, 0.6]})
    search.fit(X, Y)
    public, _ = zip(*Told.heard, strict=True)
    plan = search._make_plan(*X.shape)
    layout = plan.layout
    allowed = {layout.n_train, layout.n_final}
    if name in TELLING_NO_SCORE:
        # One public number for all disjoint parts.
        allowed.add(round(layout.n_samples * layout.train_share / plan.model.solved.count))
    parts = {None} if layout.train_share == 1.0 or layout.final_share == 1.0 else set()
    if WAYS[name].kind.__name__ == "DPGridSearchCV":
        # On the disjoint parts, nothing is charged to the estimator, which gets the total.
        parts = {None}
    assert set(public) <= allowed | parts
    # Told its number of records, a second search of other coins hears the same numbers.
    heard = set(public)
    Told.heard.clear()
    search.set_params(random_state=9).fit(X, Y)
    assert {size for size, _ in Told.heard} == heard


@pytest.mark.parametrize("name", USUAL)
def test_progress_tells_no_count(
    name: str, many_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    WAYS[name].make(Loud(epsilon=3.0, delta=DELTA), {"quality": [0.3, 0.6]}, verbose=5).fit(X, Y)
    lines = shown.getvalue().replace("\r", "\n").split("\n")
    title = WAYS[name].kind.__name__
    # Where every candidate is paid for, their number is public.
    total = WAYS[name].settings.get("n_trials", 2)
    counts = {f"{title}: {done} of {total} candidates" for done in range(total + 1)}
    counts = counts if WAYS[name].shows_all else set()
    assert f"{title}: done" in shown.getvalue()
    for line in lines:
        if WAYS[name].shows_all and "; score=" in line:
            continue
        phase, _, clock = line.replace("\x1b[A", "").partition("[")
        assert re.sub(r", about \d+ (s|min) left$", "", phase.strip()) in {
            f"{title}: starting",
            f"{title}: planning, before any data are read",
            f"{title}: trying the estimator on made-up data",
            f"{title}: trying candidates",
            f"{title}: fitting the winner",
            f"{title}: done",
            title,
            "",
            *counts,
        }
        assert not clock or clock.strip("] ").replace(":", "").isdigit()


class Counting:
    """A callback that notes every task."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def setup(self, estimator: Any, context: Any) -> None:
        self.told.append(f"setup {type(estimator).__name__}")

    def teardown(self, estimator: Any, context: Any) -> None:
        self.told.append(f"teardown {type(estimator).__name__}")

    def on_fit_task_begin(self, estimator: Any, context: Any, **data: Any) -> None:
        self.told.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator: Any, context: Any, **data: Any) -> None:
        self.told.append(f"end {context.task_name}")


@pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.9"), reason="callbacks came with scikit-learn 1.9"
)
@pytest.mark.parametrize("name", [*USUAL, "random-folds", "grid-table-folds"])
def test_callbacks_hear_a_fixed_number_of_tasks(name: str, many_runs: None) -> None:
    from sklearn.callback import CallbackSupportMixin

    class Calling(CallbackSupportMixin, Told):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            for callback in getattr(self, "_skl_callbacks", []):
                callback.told.append("fit of a candidate")
            return super().fit(X, y)

    of_search, of_estimator = Counting(), Counting()
    way: Way = WAYS[name]
    search = way.make(
        Calling(delta=DELTA).set_callbacks(of_estimator),
        {"quality": [0.3]},
        epsilon=3.0,
        delta=DELTA,
    )
    search.set_callbacks(of_search).fit(X, Y)
    title = way.kind.__name__
    fits = way.settings.get("n_trials") or int(max(way.settings.get("cv", 0.2), 1))
    assert of_search.told == [
        f"setup {title}",
        "begin fit",
        "begin search",
        # Where every candidate is paid for, their number is public.
        *(["begin candidate", "end candidate"] * fits * way.shows_all),
        "end search",
        "begin final fit",
        "end final fit",
        "end fit",
        f"teardown {title}",
    ]
    assert of_estimator.told == []
