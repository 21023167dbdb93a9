"""The function pareto_search: the paper's examples, workers, crashes, and oracles that fail."""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import sys
import time
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import FitFailedWarning

from tests.forked import Forked
from tests.model_selection import pareto_examples as examples

optuna = pytest.importorskip("optuna")
pytest.importorskip("moocore")

from skdptune import pareto_search  # noqa: E402

# Another package may be named tests where workers look for it.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SPACE = {"noise": (0.1, 10.0, "log"), "kind": ["a", "b"]}
EIGHT = {"n_initial": 4, "n_iter": 4}
SEED = {"random_state": 0}
EXAMPLE = (examples.vector_privacy, examples.vector_utility, examples.VECTOR_SPACE)


def privacy(params: dict[str, Any]) -> float:
    return 3.0 / params["noise"]


def utility(params: dict[str, Any], seed: np.random.SeedSequence) -> float:
    best = 1.0 / (1.0 + params["noise"]) * (1.0 if params["kind"] == "a" else 0.8)
    return float(best * np.random.default_rng(seed).uniform(0.9, 1.0))


def search(**given: Any) -> Any:
    chosen = {"n_initial": 6, "n_iter": 12, "random_state": 0, **given}
    return pareto_search(privacy, utility, SPACE, **chosen)


def hypervolume(points: np.ndarray, reference: tuple[float, float]) -> float:
    """Return the area below the reference, strip by strip from left to right."""
    inside = points[(points < np.asarray(reference)).all(axis=1)]
    inside = inside[np.argsort(inside[:, 0])]
    widths = np.diff(np.append(inside[:, 0], reference[0]))
    heights = reference[1] - np.minimum.accumulate(inside[:, 1])
    return float((widths * heights).sum())


def exact_hypervolume(points_per_dimension: int) -> float:
    cost_of, gain, space = EXAMPLE
    axes = []
    for low, high, *log in space.values():
        axis = (np.geomspace if log else np.linspace)(low, high, points_per_dimension)
        is_whole = isinstance(low, int) and isinstance(high, int)
        axes.append(np.unique(np.rint(axis).astype(int)) if is_whole else axis)
    grid = [dict(zip(space, point, strict=True)) for point in itertools.product(*axes)]
    points = [(cost_of(params), 1.0 - gain(params)) for params in grid]
    return hypervolume(np.array(points), examples.REFERENCE)


def test_vector_example_is_what_its_algorithm_does() -> None:
    rng = np.random.default_rng(0)
    for params in ({"b": 1.0, "C": 10}, {"b": 0.3, "C": 30}):
        runs = [examples.simulated_vector_utility(params, rng) for _ in range(400)]
        expected = examples.vector_utility(params)
        assert np.mean(runs) == pytest.approx(expected, abs=4 * np.std(runs) / 400**0.5 + 1e-3)


@pytest.mark.parametrize("sampler", ["auto", "hvpoi"])
def test_papers_example_comes_near_its_exact_front_at_once(sampler: str) -> None:
    """Random sampling is still 3 % below after 272 evaluations."""
    found = pareto_search(*EXAMPLE, n_iter=44, sampler=sampler, random_state=0)
    exact = exact_hypervolume(30)
    assert 0.985 * exact < found.hypervolume_ < 1.01 * exact


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_papers_example_reaches_its_exact_front(seed: int) -> None:
    found = pareto_search(*EXAMPLE, random_state=seed)
    exact = exact_hypervolume(240)
    assert found.hypervolume_ > 0.99 * exact
    points = found.evaluations_[["epsilon", "error"]].to_numpy()
    assert found.hypervolume_ == pytest.approx(hypervolume(points, examples.REFERENCE))


def outcomes(result: Any) -> list[tuple[Any, ...]]:
    table = result.evaluations_.sort_values("number")
    columns = ("number", "param_noise", "param_kind", "epsilon", "error")
    return list(zip(*(table[column] for column in columns), strict=True))


@pytest.mark.skipif(os.name != "posix", reason="kills a process by a signal")
def test_search_that_was_killed_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    storage, calls = tmp_path / "study.db", []

    def killing(params: dict[str, Any], seed: np.random.SeedSequence) -> float:
        calls.append(params)
        if len(calls) == 9:
            os.kill(os.getpid(), signal.SIGKILL)
        return utility(params, seed)

    def search_until_killed() -> None:
        pareto_search(privacy, killing, SPACE, n_initial=6, n_iter=12, storage=storage, **SEED)

    assert Forked(search_until_killed).exit() == -signal.SIGKILL
    resumed = search(storage=storage)
    assert len(resumed.evaluations_) == 18
    assert outcomes(resumed) == outcomes(search())


@pytest.mark.slow
def test_several_processes_work_on_one_study(tmp_path: Path) -> None:
    storage, log = tmp_path / "study.db", tmp_path / "log"

    def slow(params: dict[str, Any], seed: np.random.SeedSequence) -> float:
        time.sleep(0.1)
        with log.open("a") as file:
            file.write("evaluated\n")
        return utility(params, seed)

    def search_slowly() -> None:
        pareto_search(privacy, slow, SPACE, n_initial=6, n_iter=24, storage=storage, **SEED)

    other = Forked(search_slowly)
    while not log.exists():
        time.sleep(0.05)
    found = search(n_iter=24, storage=storage)
    assert other.exit() == 0
    assert len(log.read_text().splitlines()) < 30
    assert sorted(found.evaluations_["number"]) == list(range(30))


BAD = {"nan": float("nan"), "negative": -1.0, "word": "1", "raise": None, "inf": float("inf")}
WORDS = {"nan": "got nan", "negative": "got -1.0", "word": "got str", "raise": "by nought"}


@pytest.mark.parametrize(
    ("which", "kind"),
    [(which, kind) for which in ("privacy", "utility") for kind in BAD if kind != "inf"]
    + [("utility", "inf")],
)
def test_oracle_that_fails_is_named_and_does_not_stop_the_search(which: str, kind: str) -> None:
    def failing(params: dict[str, Any]) -> Any:
        if params["kind"] == "b" and kind == "raise":
            raise ZeroDivisionError("by nought")
        return BAD[kind] if params["kind"] == "b" else 0.05 / params["noise"]

    def constant(params: dict[str, Any]) -> float:
        return 0.5

    oracles = (failing, constant) if which == "privacy" else (constant, failing)
    words = WORDS.get(kind, "got inf")
    with pytest.warns(FitFailedWarning, match=f"of 8 evaluations failed.*{words}"):
        found = pareto_search(*oracles, SPACE, sampler="random", random_state=0, **EIGHT)
    table = found.evaluations_
    named = [isinstance(text, str) and words in text for text in table["failure"]]
    assert named == list(table["param_kind"] == "b")
    assert set(found.pareto_front_["param_kind"]) == {"a"}


def test_repeats_have_seeds_of_their_own_and_their_mean_counts() -> None:
    seeds = []

    def noting(params: dict[str, Any], seed: np.random.SeedSequence) -> float:
        seeds.append(tuple(seed.generate_state(4)))
        return utility(params, seed)

    found = pareto_search(privacy, noting, SPACE, n_initial=4, n_iter=2, n_repeats=3)
    assert len(set(seeds)) == 18
    table = found.evaluations_
    assert [len(utilities) for utilities in table["utilities"]] == [3] * 6
    assert table["error"][0] == pytest.approx(1.0 - np.mean(table["utilities"][0]))
    assert (table["spread"] > 0).all()
    best, worst = found.fronts_["best"], found.fronts_["worst"]
    reference = (10.0, 1.0)
    assert hypervolume(best, reference) > found.hypervolume_ > hypervolume(worst, reference)


def test_same_seed_same_result_whatever_runs_the_first_points() -> None:
    alone, again = search(), search()
    assert outcomes(alone) == outcomes(again)
    with joblib.parallel_config(backend="threading"):
        batch = search(batch_size=3, n_jobs=2)
    assert outcomes(batch)[:4] == outcomes(alone)[:4]


def test_third_objective_is_minimised_too() -> None:
    def cost(params: dict[str, Any], seed: Any) -> float:
        return 5.0 - params["noise"]

    reference = (10.0, 1.0, 10.0)
    found = search(third_objective=("cost", cost), reference_point=reference, n_iter=4)
    assert list(found.evaluations_["cost"]) == pytest.approx(
        list(5.0 - found.evaluations_["param_noise"])
    )
    timed = search(third_objective="time", reference_point=reference, n_iter=2)
    assert (timed.evaluations_["time"] > 0).all()
    assert timed.study_.directions == [optuna.study.StudyDirection.MINIMIZE] * 3


def test_bad_argument_is_named() -> None:
    for given, words in (
        ({"utility_oracle": 3}, "utility_oracle must be callable; got int"),
        ({"n_initial": 0}, "n_initial must be an integer of at least 1; got 0"),
        ({"n_iter": 2.5}, "n_iter must be"),
        ({"epsilon_scale": "logit"}, "epsilon_scale must be one of 'linear', 'log'"),
        ({"reference_point": (0.0, 1.0)}, "epsilon above 0"),
        ({"reference_point": (np.inf, 1.0)}, "finite"),
        ({"reference_point": (10.0, 2.0)}, r"an error in \(0, 1\]"),
        ({"third_objective": "time"}, "reference_point must be 3 numbers"),
        ({"third_objective": ("size",)}, "third_objective must be None, 'time' or a"),
        ({"third_objective": ("epsilon", len)}, "must have a name that no other"),
    ):
        oracles = {"privacy_oracle": privacy, "utility_oracle": utility}
        with pytest.raises((TypeError, ValueError), match=words):
            pareto_search(**{**oracles, **given}, param_space=SPACE)


def test_results_without_a_seed_hold_none() -> None:
    # Theorem F10: records and seeds in files.
    seeds: list[np.random.SeedSequence] = []

    def utility(params: dict[str, float], seed: np.random.SeedSequence) -> float:
        seeds.append(seed)
        return 1.0 / (1.0 + params["noise"])

    found = pareto_search(
        lambda params: 1.0 / params["noise"],
        utility,
        {"noise": (0.1, 10.0)},
        n_initial=3,
        n_iter=0,
    )
    entropy = str(seeds[0].entropy)
    assert {str(seed.entropy) for seed in seeds} == {entropy}
    assert entropy not in str(found.study_.user_attrs)
    found.best_params_for(epsilon=5.0, verify=True)
    assert str(seeds[-1].entropy) != entropy


# Fronts, against brute force ---------------------------------------------------------------------


def listed(points: list[Any], **more: Any) -> Any:
    """Return the result of a search that evaluates each of a list of points once."""
    return pareto_search(
        lambda params: points[params["place"]][0],
        lambda params: 1.0 - points[params["place"]][1],
        {"place": list(range(len(points)))},
        sampler="grid",
        random_state=0,
        **{"n_initial": 1, "n_iter": len(points) - 1, **more},
    )


def non_dominated(points: np.ndarray) -> list[tuple[float, ...]]:
    """Return the points that no other is as good as, by rising first coordinate."""
    unique = sorted({tuple(point) for point in points.tolist()})
    return [
        point
        for point in unique
        if not any(other != point and np.all(np.less_equal(other, point)) for other in unique)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_front_and_hypervolume_are_those_of_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Small integers: many ties.
    points = np.column_stack([rng.integers(1, 9, 12), rng.integers(0, 7, 12) / 6.0])
    points[rng.integers(12), 0] = np.inf
    scale, axis = ("linear", np.copy) if seed % 2 else ("log", np.log)
    found = listed(points.tolist(), reference_point=(6.0, 0.9), epsilon_scale=scale)
    seen = found.evaluations_[["epsilon", "error"]].to_numpy()
    assert sorted(map(tuple, seen.round(9))) == sorted(map(tuple, points.round(9)))
    expected = [point for point in non_dominated(seen) if np.isfinite(point[0])]
    np.testing.assert_array_equal(found.pareto_front_[["epsilon", "error"]], expected)
    corner = (float(axis(6.0)), 0.9)
    on_axis = np.column_stack([axis(seen[:, 0]), seen[:, 1]])
    areas = [hypervolume(on_axis[: n + 1], corner) for n in range(12)]
    assert found.hypervolume_history_ == pytest.approx(areas)
    assert found.hypervolume_ == pytest.approx(areas[-1])


def test_hypervolume_of_three_objectives_is_a_count_of_cells() -> None:
    points = np.random.default_rng(0).integers(0, 6, (10, 3)) + [1, 0, 0]
    found = listed(
        [(float(epsilon), error / 6.0) for epsilon, error, _ in points],
        third_objective=("cost", lambda params, seed: float(points[params["place"], 2])),
        reference_point=(6.0, 1.0, 6.0),
    )
    corners = np.array(list(itertools.product(range(6), repeat=3)))
    cells = (points[:, None] <= corners).all(axis=2).any(axis=0).sum()
    assert found.hypervolume_ == pytest.approx(cells / 6.0)
    table = found.pareto_front_[["epsilon", "error", "cost"]].to_numpy()
    wanted = non_dominated(points * np.array([1.0, 1 / 6, 1.0]))
    np.testing.assert_allclose(sorted(table.tolist()), wanted)


def test_repeats_have_fronts_of_their_own() -> None:
    found = search(sampler="random", n_repeats=3)
    table = found.evaluations_
    utilities = np.array(table["utilities"].tolist())
    for name, statistic in (("best", np.max), ("mean", np.mean), ("worst", np.min)):
        points = np.column_stack([table["epsilon"], 1.0 - statistic(utilities, axis=1)])
        np.testing.assert_allclose(found.fronts_[name], non_dominated(points), atol=1e-12)
    names = ["number", "epsilon", "error", "param_noise", "param_kind", "params"]
    assert list(table) == [*names, "spread", "utilities", "seconds", "failure"]


def test_arrays_where_pandas_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = search(sampler="random").pareto_front_
    monkeypatch.setitem(sys.modules, "pandas", None)
    found = search(sampler="random").pareto_front_
    assert isinstance(found, dict)
    assert found["epsilon"].tolist() == frame["epsilon"].tolist()


def test_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "moocore", None)
    with pytest.raises(ModuleNotFoundError, match=r"moocore.*pip install 'skdptune\[pareto\]'"):
        search(sampler="random")


# Parameters for a wanted point -------------------------------------------------------------------

PLANE = {"noise": (0.1, 10.0, "log"), "rate": (0.0, 1.0)}


def smooth(params: dict[str, Any]) -> float:
    return float(np.exp(-params["noise"] / 4 - 4 * (params["rate"] - 0.3) ** 2))


def planar(cost_of: Any = None, gain: Any = None, number: int = 60) -> Any:
    oracles = cost_of or (lambda params: 2.0 / params["noise"]), gain or smooth
    return pareto_search(*oracles, PLANE, sampler="random", n_iter=number - 16, random_state=0)


@pytest.fixture(scope="module")
def plane() -> Any:
    return planar()


@pytest.mark.parametrize("epsilon", [0.3, 5.0])
def test_best_params_for_an_epsilon_are_near_the_best(plane: Any, epsilon: float) -> None:
    params = plane.best_params_for(epsilon=epsilon)
    assert 0.95 * epsilon <= 2.0 / params["noise"] <= epsilon
    assert smooth(params) > np.exp(-2.0 / epsilon / 4) - 0.02
    table = plane.evaluations_
    assert smooth(params) >= 1.0 - table["error"][table["epsilon"] <= epsilon].min()


def test_best_params_for_an_error_have_the_least_epsilon(plane: Any) -> None:
    params = plane.best_params_for(error=0.3, verify=True)
    assert 1.0 - smooth(params) <= 0.3
    least = 2.0 / (-4 * np.log(0.7))
    assert least <= 2.0 / params["noise"] < 1.1 * least
    both = plane.best_params_for(epsilon=2.0, error=0.5, verify=True)
    assert 2.0 / both["noise"] <= 2.0 and 1.0 - smooth(both) <= 0.5


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "epsilon or error must be given"),
        ({"epsilon": -1.0}, "epsilon must be a number"),
        ({"error": 1.5}, "error must be a number"),
        ({"epsilon": np.nan}, "epsilon must be"),
        ({"epsilon": 0.5, "error": 0.2}, "can meet; got epsilon <= 0.5 and error <= 0.2"),
    ],
)
def test_bad_point_is_named(plane: Any, given: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plane.best_params_for(**given)


def test_epsilon_is_obeyed_however_the_surrogates_err() -> None:
    """After the search the oracle is ten times what it was, and fails in places."""
    asked: list[Any] = []

    def jagged(params: dict[str, Any]) -> float:
        asked.append(params)
        exact = 2.0 / params["noise"]
        if len(asked) <= 60:
            return exact
        if len(asked) % 3 == 0:
            raise RuntimeError("no")
        return np.nan if len(asked) % 3 == 1 else 10.0 * exact

    found = planar(jagged)
    params = found.best_params_for(epsilon=1.0)
    assert len(asked) > 60
    table = found.evaluations_
    assert params in table["params"][table["epsilon"] <= 1.0].tolist()


def test_measured_candidates_that_fail_are_passed_over() -> None:
    calls: list[Any] = []

    def gain(params: dict[str, Any]) -> float:
        calls.append(params)
        if len(calls) == 61:
            raise RuntimeError("no")
        return smooth(params)

    params = planar(gain=gain).best_params_for(error=0.5, verify=True)
    assert len(calls) > 61 and params != calls[60]


# Workers, crashes and resumed studies ------------------------------------------------------------


def stored(storage: Any, gain: Any = utility, **more: Any) -> Any:
    settings = {"n_initial": 5, "n_iter": 4, "random_state": 0, **more}
    return pareto_search(privacy, gain, SPACE, storage=storage, **settings)


@pytest.mark.parametrize("moment", ["proposed", "evaluated", "failed", "half proposed", "twice"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_what_a_crash_cut_off_is_repeated(moment: str) -> None:
    """A process that died with the seventh evaluation in hand, as the storage would show it."""
    storage = optuna.storages.InMemoryStorage()
    study = stored(storage, n_iter=1).study_
    known = study.trials[0]
    lost = study.ask(known.distributions if moment != "half proposed" else {})
    lost.set_user_attr("process", "elsewhere:1:gone")
    if moment in ("evaluated", "failed"):
        failure = "ValueError: bad" if moment == "failed" else None
        found = {**known.user_attrs["evaluation"], "utilities": (0.25,), "failure": failure}
        lost.set_user_attr("evaluation", found)
    if moment == "twice":
        # Another process that repaired it has died as well.
        study.enqueue_trial(lost.params, user_attrs={"number": 6, "proposal": 6})
    again = stored(storage)
    table = again.evaluations_.sort_values("number").reset_index()
    assert list(table["number"]) == list(range(9))
    if moment in ("evaluated", "failed"):
        assert table["utilities"][6] in ((0.25,), [0.25])
        assert isinstance(table["failure"][6], str) == (moment == "failed")
    else:
        assert outcomes(again) == outcomes(stored(None))


def test_interrupted_search_leaves_its_work_to_the_next() -> None:
    storage, calls = optuna.storages.InMemoryStorage(), []

    def interrupted(params: dict[str, Any], seed: Any) -> float:
        calls.append(params)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return utility(params, seed)

    with pytest.raises(KeyboardInterrupt):
        stored(storage, interrupted)
    assert outcomes(stored(storage)) == outcomes(stored(None))


def test_result_of_a_process_that_was_taken_for_dead_is_not_written_twice() -> None:
    storage, calls = optuna.storages.InMemoryStorage(), []

    def outrun(params: dict[str, Any], seed: Any) -> float:
        calls.append(params)
        if len(calls) == 7:
            study = optuna.load_study(study_name="pareto_search", storage=storage)
            study.tell(study.trials[-1].number, state=optuna.trial.TrialState.FAIL)
        return utility(params, seed)

    table = stored(storage, outrun).evaluations_
    assert len(table) == 9 and calls[6] not in list(table["params"])


def test_a_study_without_a_seed_is_resumed_with_fresh_ones(tmp_path: Path) -> None:
    # Theorem F10: records and seeds in files.
    given: list[str] = []

    def noting(params: dict[str, Any], seed: np.random.SeedSequence) -> float:
        given.append(str(seed.entropy))
        return utility(params, seed)

    for n_iter in (0, 4):
        found = stored(tmp_path / "study.db", noting, n_iter=n_iter, random_state=None)
    assert len(given) == 9
    assert len(set(given[:5])) == len(set(given[5:])) == 1 and given[0] != given[5]
    content = (tmp_path / "study.db").read_bytes()
    assert not any(entropy.encode() in content for entropy in given)
    # Proposals go on where they were.
    assert len({str(params) for params in found.evaluations_["params"]}) == 9


def test_search_of_failures_alone_ends_with_the_first_of_them() -> None:
    calls = []

    def broken(params: dict[str, Any]) -> float:
        calls.append(params)
        raise RuntimeError("no data")

    with pytest.raises(ValueError, match=r"All 5 evaluations failed.*Error: no data"):
        stored(None, broken)
    assert len(calls) == 5


def test_evaluations_are_counted_and_workers_without_a_batch_are_named(
    capfd: pytest.CaptureFixture[str],
) -> None:
    stored(None, n_iter=0, verbose=1)
    assert "5 of 5 evaluations" in capfd.readouterr().err
    with pytest.warns(UserWarning, match="batch_size must be above 1 .* n_jobs=2"):
        stored(None, n_initial=1, n_iter=0, n_jobs=2)
    with joblib.parallel_config(n_jobs=2):
        stored(None, n_initial=1, n_iter=0)


# What is proposed --------------------------------------------------------------------------------


def proposals(space: Any, gain: Any = lambda params: 0.5, **more: Any) -> list[dict[str, Any]]:
    found = pareto_search(lambda params: 1.0, gain, space, random_state=0, **more)
    return list(found.evaluations_.sort_values("number")["params"])


def test_first_points_are_even() -> None:
    space = {"noise": stats.expon(0.1, 2.0), "rate": (0.0, 1.0)}
    points = proposals(space, n_initial=32, n_iter=0)
    levels = stats.expon(0.1, 2.0).cdf([point["noise"] for point in points])
    # Of 32 points of a Sobol sequence, each 32nd part of the line has one.
    assert sorted((levels * 32).astype(int)) == list(range(32))


def test_grid_is_the_finest_that_fits_and_is_visited_once_before_it_repeats() -> None:
    space = {"rate": (0.0, 1.0), "depth": (1, 3), "kind": ["a", "b"]}
    points = [
        tuple(each.values()) for each in proposals(space, sampler="grid", n_initial=40, n_iter=0)
    ]
    # Six rates, three depths and two kinds are 36; seven rates would be 42.
    assert len(set(points[:36])) == 36
    assert points[36:] == points[:4]
    rates = sorted({rate for rate, _, _ in points})
    assert rates == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])


@pytest.mark.parametrize("sampler", ["auto", "hvpoi"])
def test_known_values_are_not_proposed_again_until_all_are(sampler: str) -> None:
    space = {"depth": (1, 3), "kind": ["a", "b"]}
    gain = lambda params: 0.2 * params["depth"]  # noqa: E731
    points = [
        tuple(each.values())
        for each in proposals(space, gain, sampler=sampler, n_initial=2, n_iter=6)
    ]
    assert len(set(points[:6])) == 6
    assert len(points) == 8


def test_failed_regions_are_avoided_and_extreme_values_survived() -> None:
    def picky(params: dict[str, Any]) -> float:
        if params["kind"] is None:
            raise ValueError("no")
        return float(params["depth"] > 4)

    space = {"noise": stats.expon(0.1, 2.0), "depth": (1, 8), "kind": ["a", None]}
    with pytest.warns(FitFailedWarning, match="failed"):
        points = proposals(space, picky, n_initial=8, n_iter=24)
    assert [point["kind"] for point in points[16:]].count("a") > 12
    infinite = pareto_search(
        lambda params: np.inf if params["depth"] % 2 else 0.0, lambda params: 1.0, space, **EIGHT
    )
    assert len(infinite.evaluations_) == 8


@pytest.mark.parametrize("sampler", ["auto", "grid"])
def test_study_is_pickled_with_its_sampler(sampler: str) -> None:
    study = search(sampler=sampler, n_iter=4).study_
    again, space = pickle.loads(pickle.dumps(study)), study.trials[0].distributions
    assert again.ask(space).params == study.ask(space).params
