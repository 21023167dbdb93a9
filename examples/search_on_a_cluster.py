"""A search on dask and on ray
==============================

One search four times: in this process, on two processes of this machine, and on the workers of a
dask and of a ray cluster. Results and costs are the same each time.

Needs the extra ``dask``. Ray is used if it is installed.
"""

# %%
# The search
# ----------
# The cost is planned before any record is read, and does not depend on where candidates are
# fitted: each fit draws its own noise.

import importlib
import logging
import os
from contextlib import contextmanager
from importlib.util import find_spec

import joblib
import numpy as np
from sklearn.datasets import make_classification

from skdptune import DPGridSearchCV
from skdptune.linear_model import DPLogisticRegression
from skdptune.model_selection import FullTable

X, y = make_classification(4_000, 10, n_informative=5, class_sep=1.5, random_state=0)


def search():
    """Return the search; the seed is only for this comparison, omit it for real noise."""
    return DPGridSearchCV(
        DPLogisticRegression(classes=[0, 1]),
        {"C": np.geomspace(1e-3, 10.0, 8).tolist()},
        epsilon=1.0,
        delta=1e-6,
        random_state=0,
        strategy=FullTable(try_own_values=False),
    )


# %%
# Four backends
# -------------
# A search runs on joblib's backend, so only ``joblib.parallel_config`` changes. Both clusters here
# are small ones on this machine, and are closed afterwards; ``Client`` and ``ray.init`` take the
# address of a real one. The records are sent to the workers: their machines and the connection
# must be as safe as the place where the records are stored.


@contextmanager
def alone():
    """Run in this process."""
    yield


@contextmanager
def processes():
    """Run on two processes of this machine, joblib's own."""
    with joblib.parallel_config(backend="loky", n_jobs=2):
        yield


@contextmanager
def on_dask():
    """Run on a dask cluster."""
    from distributed import Client, LocalCluster

    with (
        # Its workers are threads. A cluster of separate processes belongs under
        # `if __name__ == "__main__"`, since they read the script as well.
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        yield


@contextmanager
def on_ray():
    """Run on a ray cluster."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # or it would report its use over the network
    ray = importlib.import_module("ray")
    ray.init(
        num_cpus=2,
        object_store_memory=100_000_000,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    try:
        importlib.import_module("ray.util.joblib").register_ray()
        with joblib.parallel_config(backend="ray", n_jobs=2):
            yield
    finally:
        ray.shutdown()


backends = {"alone": alone, "loky": processes, "dask": on_dask, "ray": on_ray}
if find_spec("ray") is None:
    print("Ray is skipped, since it is not installed: pip install 'skdptune[ray]'")
    del backends["ray"]

# %%
# The same everywhere
# -------------------

print("backend   best C   score   ε   noisy scores of all candidates")
for name, backend in backends.items():
    with backend():
        done = search().fit(X, y)
    scores = " ".join(f"{score:.2f}" for score in done.cv_results_["mean_test_score"])
    best, score = done.best_params_["C"], done.best_score_
    print(f"{name:7}   {best:6.3f}   {score:.3f}   {done.privacy_.epsilon:g}   {scores}")
