"""Made-up data follow from the form of a table alone (Theorem R6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import DPGridSearchCV
from skdptune.model_selection._running._made_up import made_up_like
from skdptune.model_selection._running._record_by_record import check_steps
from skdptune.preprocessing import make_private_pipeline

FRAME = pd.DataFrame(
    {
        "number": [1.5, 2.5],
        "count": [1, 2],
        "gap": pd.array([1, None], dtype="Int64"),
        "flag": [True, False],
        "word": pd.Series(["secret", "x"], dtype=object),
        "kind": pd.Categorical(["b", "a"], categories=["a", "b", "c"]),
        "when": pd.to_datetime(["2020", "2021"]),
        "span": pd.to_timedelta([1, 2], unit="s"),
        "text": pd.array(["secret", "y"], dtype="string"),
    }
)


def test_frames_keep_names_and_types() -> None:
    made = made_up_like(FRAME, 5)
    assert list(made.columns) == list(FRAME.columns)
    assert made.dtypes.equals(FRAME.dtypes)
    assert len(made) == 5
    assert set(made["word"]) == {"made up"}
    numbers = made_up_like(FRAME, 5, with_words=False)
    assert numbers["word"].isin([0, 1]).all()
    assert numbers["text"].isin(["0", "1"]).all()
    assert numbers.dtypes.equals(FRAME.dtypes)


def test_what_records_hold_changes_nothing() -> None:
    other = FRAME.iloc[::-1].reset_index(drop=True)
    pd.testing.assert_frame_equal(made_up_like(FRAME, 4), made_up_like(other, 4))
    X = np.arange(6.0).reshape(3, 2)
    assert np.array_equal(made_up_like(X, 4), made_up_like(-X, 4))


@pytest.mark.parametrize(
    "X",
    [
        np.eye(3),
        np.eye(3, dtype=np.float32),
        np.eye(3, dtype=int),
        np.eye(3, dtype=bool),
        np.eye(3, dtype=object),
        np.array([["a", "b", "c"]]),
        np.zeros((2, 3, 4)),
        np.zeros((2, 3), dtype="datetime64[s]"),
        pd.Series(["a", "b"], name="text"),
        np.array(["a", "b"]),
    ],
    ids=lambda X: f"{X.dtype}-{X.ndim}",
)
def test_arrays(X: Any) -> None:
    made = made_up_like(X, 4)
    assert made.shape == (4, *X.shape[1:])
    assert made.dtype == X.dtype


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.coo_matrix, sparse.csc_array])
def test_sparse_tables(make: Any) -> None:
    made = made_up_like(make(np.eye(5, dtype=np.float32)), 4)
    assert made.shape == (4, 5)
    assert made.dtype == np.float32
    assert sparse.issparse(made)


def test_lists() -> None:
    assert made_up_like(["a", "b"], 2) == ["made up", "made up"]
    assert made_up_like([{"a": 1}], 2) == [{}, {}]
    assert np.shape(made_up_like([[1, 2, 3]], 2)) == (2, 3)
    # What most records are decides, never the first one.
    assert made_up_like([None, "a", "b"], 2) == ["made up", "made up"]
    assert np.shape(made_up_like([[1], "word", [1, 2, 3], (4, 5, 6)], 2)) == (2, 3)


@pytest.mark.parametrize("X", [[], [object()], np.ones(3)])
def test_forms_that_are_not_known(X: Any) -> None:
    assert made_up_like(X, 2) is None


class Frame:
    """A table of another library than pandas: columns by names, rows by slices and places."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._columns = {name: np.asarray(values) for name, values in columns.items()}
        self.columns = list(columns)
        self.shape = (len(self), len(columns))

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self._columns[key]
        return Frame({name: values[key] for name, values in self._columns.items()})


def test_frames_of_other_libraries_keep_names_and_types() -> None:
    words = np.array(["secret", None], dtype=object)
    frame = Frame({"x": [0.5, 1.5], "n": [1, 2], "w": words, "t": [True, False]})
    made = made_up_like(frame, 5)
    assert made.columns == ["x", "n", "w", "t"]
    assert [made[name].dtype.kind for name in made.columns] == ["f", "i", "U", "b"]
    assert set(made["w"]) == {"made up"}
    assert made_up_like(frame, 5, with_words=False)["w"].dtype.kind == "i"


def test_frames_of_other_libraries_are_searched() -> None:
    rng = np.random.default_rng(0)
    words = rng.choice(np.array(["a", "b", None], dtype=object), 300)
    frame = Frame({"x": rng.normal(size=300), "w": words})
    schema = {"x": (-3, 3), "w": {"categories": ["a", "b", "c"], "missing": True}}
    model = DPLogisticRegression(solver="sgd", epochs=1, classes=[0, 1], random_state=0)
    pipeline = make_private_pipeline(model, schema)
    check_steps(pipeline, frame)
    search = DPGridSearchCV(
        pipeline, {"dplogisticregression__C": [0.1, 1.0]}, epsilon=5.0, random_state=0
    )
    search.fit(frame, (frame["x"] > 0).astype(int))
    assert set(search.predict(frame)) <= {0, 1}


def test_types_of_polars_are_kept() -> None:
    """Theorem R6: what a step refuses by a type, it refuses before records are read."""
    polars = pytest.importorskip("polars")
    types = [polars.Enum(["a"]), polars.Datetime("ns"), polars.Datetime("us", "UTC")]
    types += [polars.Duration("ns"), polars.Null, polars.Float32, polars.String, polars.Decimal]
    X = polars.DataFrame({f"x{at}": polars.Series([], dtype=t) for at, t in enumerate(types)})
    made = made_up_like(X, 3)
    assert made.schema == X.schema
    assert len(made) == 3
