"""Every fit is recorded on workers of dask and of ray (Theorem H4)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import joblib
import pytest
from sklearn.model_selection import GridSearchCV

from skdptune.model_selection import DPGridSearchCV
from tests.base.counted import LABELS, ROWS, Counted, cloudpickle, count_of, sizes_of
from tests.clusters import of_ray

cloudpickle.register_pickle_by_value(sys.modules[__name__])
GRID = {"C": [0.1, 1.0]}
# Workers are started from an environment that may warn; nothing here is about warnings.
pytestmark = pytest.mark.filterwarnings("ignore")


@contextmanager
def of_dask() -> Iterator[None]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        yield


# Fits in other processes are recorded in test_hooks.py with every change.
@pytest.mark.slow
@pytest.mark.parametrize("cluster", [of_dask, of_ray], ids=["dask", "ray"])
def test_fits_on_a_cluster_are_recorded(cluster: Any, on_disk: Any, tmp_path: Any) -> None:
    # Theorem H4: every fit of a private estimator or search reserves its cost.
    counts = tmp_path / "counts"
    model = Counted(str(counts))
    with cluster(), on_disk:
        GridSearchCV(model, GRID, cv=2).fit(ROWS, LABELS)
        # Four fits of folds and one of the winner, each recorded where it is made.
        assert len(count_of(counts)) == 5
        assert sizes_of(on_disk) == count_of(counts)
        search = DPGridSearchCV(model, GRID, n_public=20, strategy="compose").fit(ROWS, LABELS)
    # Those of a search of ours are recorded together, beforehand.
    assert len(count_of(counts)) > 5
    record = on_disk.history()[-1]
    assert (len(on_disk.history()), record.name) == (6, "DPGridSearchCV")
    assert record.epsilon >= search.privacy_.profile.epsilon(on_disk.delta) * (1.0 - 1e-9)
    assert {record.status for record in on_disk.history()} == {"confirmed"}
