"""A model of a table from one word: its choice, its cost, its report, and searches over it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_classifier, is_regressor

from skdptune import DParetoSearchCV, DPGridSearchCV, DPRandomSearchCV, PrivacyLedger
from skdptune.base import NoProfileError, privacy_of, profile_of
from skdptune.model_selection import _table_model
from skdptune.model_selection._table_model import RULES, FamilyRule, families_for
from skdptune.preprocessing import Schema, make_private_pipeline
from skdptune.testing import check_private_estimator, replay_neighbours
from tests.base.nasty_records import CELLS, as_column
from tests.model_selection.ways import WAYS, searchers

N = 240
COLUMNS = {
    "age": {"range": (18, 80), "missing": True},
    "pay": {"range": (0, 1e6), "scale": "log"},
    "since": ("2000-01-01", "2030-01-01"),
    "sector": {"categories": ["farm", "office", "school"], "missing": True},
    "paid": "boolean",
    "name": "drop",
}
LABELS = Schema(COLUMNS, target=["no", "yes"])
NUMBERS = Schema(COLUMNS, target=(-50, 100))
BUDGET = {"epsilon": 2.0, "delta": 1e-5}


def people(n: int = N) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.choice([20.0, 45.0, 70.0, np.nan], n),
            "pay": rng.lognormal(8, 2, n),
            "since": pd.Timestamp("2001-02-03") + pd.to_timedelta(rng.integers(0, 9999, n), "D"),
            "sector": rng.choice(["farm", "office", "school", None], n),
            "paid": rng.random(n) < 0.5,
            "name": [f"person {i}" for i in range(n)],
        }
    )
    score = (table.age.fillna(45) - 45) + 20 * (table.sector == "farm")
    return table, np.where(score > 10, "yes", "no"), score.to_numpy(float)


X, LABEL, NUMBER = people()


def model(word: str = "classifier", **settings: Any) -> Any:
    schema = NUMBERS if word == "regressor" else LABELS
    return make_private_pipeline(word, schema, **{**BUDGET, **settings})


def expected_family(word: str) -> str:
    return "net" if word == "regressor" and _table_model._has_nets() else "linear"


@pytest.fixture
def compares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two quick families be compared at any size."""
    for task in RULES:
        monkeypatch.setitem(RULES, task, FamilyRule("linear", {"boosting": 0.0}, 0.0, 0, 0.0))


# The rule --------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", RULES)
@pytest.mark.parametrize("has_nets", [True, False])
def test_rule_compares_families_where_the_signal_is_strong(task, has_nets) -> None:
    rule, n = RULES[task], 4000
    least, most = min(rule.others.values()), max(rule.others.values())

    def families(strength: float, *sizes: int, n: int = n) -> tuple[tuple[str, ...], str]:
        return families_for(task, n, strength / n, *(sizes or (3,)), has_nets=has_nets)

    weak, why = families(0.9 * least)
    assert weak == (rule.first if has_nets else "linear",)
    assert why.startswith("Family: ")
    strong, why = families(most)
    assert set(strong) == {rule.first, *rule.others} - (set() if has_nets else {"net"})
    # The plan says what is missing.
    assert ("extra 'nn'" in why) is not has_nets
    # More classes or columns, or few records, need more.
    assert families(most, 3, 200)[0] == families(least, 3000)[0] == weak or task == "regressor"
    few, why = families(most, n=1 + rule.records // 2)
    assert (len(few) == 1) is ("cannot tell families apart" in why) is (rule.records > 0)


def test_ranges_are_cut_where_the_signal_bears_the_weights() -> None:
    """Knots give five weights to each number and class, so they need more records."""

    def n_features(labels: str, n: int) -> int:
        schema = Schema(NUMERIC, target=[*labels])
        made = make_private_pipeline("classifier", schema, **BUDGET, n_public=n, family="linear")
        return len(made.fit(ROWS[:0], []).model_[0].get_feature_names_out())

    for labels, enough in (("ab", 200), ("abcdefgh", 800)):
        found = [n_features(labels, n) for n in (enough // 4, enough, 4 * enough)]
        assert found == [3, 15, 15]


def test_no_private_number_decides() -> None:
    """The plan follows from the schema, the budget and the number of records (Theorem F12)."""
    plan = model("regressor").plan(N)
    other = people(2 * N)[0][N:]
    fitted = model("regressor").fit(other, NUMBER[::-1])
    assert fitted.privacy_.profile == plan.report.profile
    assert "other families need at least 50" in str(model("regressor", epsilon=0.1).plan(N))
    # A public constant takes the place of the number of records.
    hidden = model("regressor", n_public=N - 1)
    assert str(hidden.plan(10**6).report.profile) == str(hidden.plan(1).report.profile)


# The kind of model, and its cost ---------------------------------------------------------------


@pytest.mark.parametrize("word", ["classifier", "regressor", "auto"])
def test_one_word_gives_a_model_of_a_messy_table(word) -> None:
    made, target = model(word, random_state=0), NUMBER if word == "regressor" else LABEL
    assert (is_regressor if word == "regressor" else is_classifier)(made)
    fitted = made.fit(X, target)
    assert fitted.family_ == expected_family(word)
    assert fitted.score(X, target) > 0.6
    assert privacy_of(fitted).epsilon == 2.0
    assert fitted.privacy_.profile == profile_of(made, N)
    assert set(fitted.privacy_.parts[0].assumptions) <= {
        *made.privacy_assumptions(N),
        *(each for each in fitted.privacy_.parts[0].assumptions if "seed" in each),
    }
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.predict(X), fitted.predict(X))
    assert_array_equal(clone(made).fit(X, target).predict(X), fitted.predict(X))
    assert list(fitted.feature_names_in_) == list(COLUMNS)
    if word != "regressor":
        assert fitted.predict_proba(X).shape == (N, 2)
        assert fitted.classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize("word", ["classifier", "regressor"])
def test_comparison_is_paid_for_within_the_total(word, compares) -> None:
    """The cost is that of the search that compares families (Theorem T8)."""
    made, target = model(word, random_state=0), NUMBER if word == "regressor" else LABEL
    plan = made.plan(*X.shape)
    assert "a linear model, boosting are compared" in str(plan)
    assert 0.98 * 2.0 < plan.epsilon <= 2.0
    fitted = made.fit(X, target)
    assert fitted.family_ in ("linear", "boosting")
    assert fitted.privacy_.profile == plan.report.profile
    [part] = fitted.privacy_.parts
    assert [each.name.split(" (")[0] for each in part.parts] == ["selection", "final fit"]
    assert_array_equal(clone(made).fit(X, target).predict(X), fitted.predict(X))
    assert fitted.model_.random_state is None


def test_a_net_for_numbers_pays_for_the_scales_of_its_columns() -> None:
    """The scales and the net meet the budget together, on batches, too (Theorem R3)."""
    for name in ("torch", "skorch", "opacus"):
        pytest.importorskip(name)
    made = model("regressor", family="net", random_state=0)
    for size in (N, 100_000):
        assert 0.999 * 2.0 < made.plan(size).epsilon <= 2.0
    fitted = made.fit(X, NUMBER)
    assert fitted.privacy_.profile == made.plan(N).report.profile
    [pipeline] = fitted.privacy_.parts
    names = [part.name.partition(" (")[0] for part in pipeline.parts]
    assert names == ["DPStandardScaler", "DPNeuralNetRegressor"]
    encoder, scaler, _, net = fitted.model_
    # Only numbers are divided by their deviation.
    assert_array_equal(scaler.scale_ == 1.0, np.logical_not(encoder.is_number))
    # Weights decay with many columns for each record and unit of noise.
    decays = [made._unfitted(size)[-1].optimizer__weight_decay for size in (N, 20_000, 40_000)]
    assert decays[0] == 0.2 and decays[1] == pytest.approx(2.0 * decays[2])
    assert net.optimizer__weight_decay == 0.2


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-5), (2e-4, 1e-12), (np.inf, 1e-5)])
def test_a_net_for_numbers_meets_any_budget(epsilon, delta) -> None:
    """Scales are left out if their share is next to nothing, and cost nothing without noise."""
    for name in ("torch", "skorch", "opacus"):
        pytest.importorskip(name)
    made = model("regressor", family="net", random_state=0, epsilon=epsilon, delta=delta)
    assert profile_of(made, N).epsilon(delta) <= epsilon
    fitted = made.fit(X, NUMBER)
    assert fitted.privacy_.epsilon == epsilon
    assert fitted.privacy_.profile == made.plan(N).report.profile


def test_without_torch_a_regression_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_table_model, "_has_nets", lambda: False)
    made = model("regressor")
    assert "the extra 'nn' is not installed" in str(made.plan(1000))
    assert made.suggested_space(1000)["family"] == ["auto", "linear", "boosting"]


def test_ledger_records_the_total_once(compares) -> None:
    ledger = PrivacyLedger(":memory:", "people", epsilon=5.0, delta=1e-4)
    with ledger:
        fitted = model().fit(X, LABEL)
    assert len(ledger.history()) == 1
    assert ledger.spent(1e-5) == pytest.approx(fitted.privacy_.epsilon_spent, rel=1e-3)


# One record ------------------------------------------------------------------------------------


NUMERIC = {name: (-1, 1) for name in ("x0", "x1", "x2")}
ROWS = np.random.default_rng(0).uniform(-1, 1, size=(200, 3))


@pytest.mark.slow
@pytest.mark.parametrize("record", [[np.nan, np.inf, -1e300], [1.0, 1.0, -1.0]], ids=str)
def test_record_changes_no_more_than_it_pays_for(record, compares) -> None:
    """With the same noise, neighbours differ by their share, in the comparison, too."""
    labels = np.where(ROWS[:, 0] > 0, "yes", "no")
    made = make_private_pipeline("classifier", Schema(NUMERIC, target=["no", "yes"]), **BUDGET)
    replay_neighbours(made, ROWS, labels, (record, "no"), n_repeats=6).assert_passes()
    numbers = make_private_pipeline("regressor", Schema(NUMERIC, target=(-1, 1)), **BUDGET)
    replay_neighbours(numbers, ROWS, ROWS[:, 0], (record, 1e9), n_repeats=6).assert_passes()


@pytest.mark.slow
@pytest.mark.parametrize("word", ["classifier", "regressor"])
def test_record_changes_no_more_than_it_pays_for_in_a_net(word) -> None:
    """Encoder, scaler, clipping and net: the default of a regression (Theorem R3)."""
    for name in ("torch", "skorch", "opacus"):
        pytest.importorskip(name)
    targets = np.where(ROWS[:, 0] > 0, "yes", "no") if word == "classifier" else ROWS[:, 0]
    schema = Schema(NUMERIC, target=["no", "yes"] if word == "classifier" else (-1, 1))
    record = ([np.nan, np.inf, -1e300], "no" if word == "classifier" else 1e9)
    made = make_private_pipeline(word, schema, **BUDGET, family="net")
    replay_neighbours(made, ROWS, targets, record, n_repeats=6).assert_passes()


@pytest.mark.parametrize("word", ["classifier", pytest.param("regressor", marks=pytest.mark.slow)])
def test_any_cell_is_fitted(word, compares) -> None:
    """No record raises, whatever its cells hold (Theorem R7)."""
    rows = X[:60].astype(object)
    target = NUMBER[:60] if word == "regressor" else LABEL[:60]
    for cell in CELLS[:3]:
        more = pd.DataFrame(
            {name: as_column([*rows[name].tolist(), cell]) for name in rows}, dtype=object
        )
        fitted = model(word, random_state=0).fit(more, np.append(target, target[0]))
        assert len(fitted.predict(more)) == 61


@pytest.mark.parametrize("word", ["classifier", pytest.param("regressor", marks=pytest.mark.slow)])
def test_contract_of_private_estimators(word) -> None:
    is_classifier = word == "classifier"
    targets = np.where(ROWS[:, 0] > 0, "yes", "no") if is_classifier else ROWS[:, 0]
    schema = Schema(NUMERIC, target=["no", "yes"] if is_classifier else (-1, 1))
    check_private_estimator(make_private_pipeline(word, schema, **BUDGET), ROWS, targets)


# Searches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["regressor", pytest.param("classifier", marks=pytest.mark.slow)])
def test_searches_take_it(word) -> None:
    target = NUMBER if word == "regressor" else LABEL
    made = model(word)
    space = {"family": ["linear", "boosting"]}
    search = DPGridSearchCV(made, space, epsilon=8.0, delta=1e-5, random_state=0).fit(X, target)
    assert search.best_params_["family"] in (*space["family"], "auto")
    assert search.privacy_.epsilon_spent <= 8.0
    assert len(search.predict(X)) == N
    plain = DPRandomSearchCV(made, epsilon=2.0, delta=1e-5, random_state=0).fit(X, target)
    assert plain.best_params_ == {"family": "auto"}
    assert plain.best_estimator_.family_ == expected_family(word)


@pytest.mark.parametrize("way", ["adaptive", "doubling", "Pareto"])
def test_other_searches_take_it(way) -> None:
    """Each fit of a search is the model of a word, with its own share of the budget."""
    space = {"epsilon": [0.5, 1.0], "family": ["linear", "boosting"]}
    if way == "Pareto":
        pytest.importorskip("optuna")
        front = DParetoSearchCV(model(), space, delta=1e-5, n_iter=2, random_state=0)
        chosen = {one["family"] for one in front.fit(X, LABEL).evaluations_["params"]}
        assert chosen <= {"linear", "boosting"}
        return
    if way not in WAYS:
        pytest.skip("needs optuna")
    search = WAYS[way].make(
        model(epsilon=1.0), {"family": space["family"]}, epsilon=8.0, delta=1e-5
    )
    fitted = search.fit(X, LABEL)
    assert fitted.privacy_.epsilon_spent <= 8.0
    assert fitted.best_params_["family"] in space["family"]
    assert fitted.predict(X).shape == (N,)


@pytest.mark.parametrize("kind", sorted({*searchers(), DParetoSearchCV}, key=lambda k: k.__name__))
def test_a_word_in_place_of_an_estimator_says_what_to_write(kind) -> None:
    with pytest.raises(TypeError, match=r'got \'auto\'. A word .*make_private_pipeline\("auto"'):
        kind("auto", {"C": [1.0, 2.0]}).fit(X, LABEL)


# Refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["classifier", "regressor", "auto"])
def test_target_budget_and_family_are_asked_for(word) -> None:
    schema = NUMBERS if word == "regressor" else LABELS
    for given, more, message in (
        (COLUMNS, {"epsilon": 1.0}, r"the target of a \w+, such as target="),
        (schema, {}, r"epsilon must be given, such as epsilon=1\.0; got None"),
        (schema, {"epsilon": 1.0, "delta": 0.0}, "delta must be positive for a model that"),
        (schema, {"epsilon": 1.0, "family": "forest"}, "family must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            make_private_pipeline(word, given, **more)
    with pytest.raises(NoProfileError, match=f"got '{word}s': it has no fit. Use \"classifier\""):
        make_private_pipeline(f"{word}s", schema, epsilon=1.0)
    wrong = {
        "classifier": (NUMBERS, "must name labels for a"),
        "regressor": (LABELS, "got labels"),
    }
    for other, (given, message) in wrong.items():
        with pytest.raises(ValueError, match=message):
            make_private_pipeline(other, given, epsilon=1.0)


@pytest.mark.parametrize(
    ("word", "change"),
    [
        ("classifier", {"X": X.assign(more=1)}),
        ("classifier", {"X": X.drop(columns="age")}),
        ("classifier", {"X": X.assign(age=pd.Timedelta(1))}),
        ("classifier", {"y": np.c_[LABEL, LABEL]}),
        ("classifier", {"y": NUMBER}),
        ("regressor", {"y": np.c_[NUMBER, NUMBER]}),
        ("regressor", {"y": LABEL.astype(str)}),
    ],
)
def test_data_of_another_form_than_the_schema_cost_nothing(
    word: str, change: dict[str, Any]
) -> None:
    given = {"X": X, "y": LABEL if word == "classifier" else NUMBER} | change
    ledger = PrivacyLedger(":memory:", "a", epsilon=9.0, delta=1e-3)
    with pytest.raises((TypeError, ValueError)):
        model(word, ledger=ledger).fit(**given)
    assert ledger.history() == []


@pytest.mark.parametrize("word", ["classifier", "regressor"])
def test_a_table_without_records_is_refused_unless_their_number_is_secret(word) -> None:
    targets = LABEL if word == "classifier" else NUMBER
    with pytest.raises(ValueError, match="X must have records"):
        model(word).fit(X[:0], targets[:0])
    secret = model(word, n_public=N, family="linear").fit(X[:0], targets[:0])
    assert secret.predict(X).shape == (N,)
