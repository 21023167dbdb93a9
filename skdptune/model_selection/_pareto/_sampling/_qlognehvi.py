"""BoTorch's noisy expected hypervolume improvement, on the surrogates' scales."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdptune.model_selection._pareto._sampling._proposals import Score
from skdptune.model_selection._pareto._sampling._surrogates import Scales

FloatArray = NDArray[np.float64]

_N_DRAWS = 64
_CHUNK = 256


def fitted_models(features: FloatArray, targets: Sequence[FloatArray]) -> Any:
    """Return BoTorch's Gaussian processes, one per objective, fitted."""
    torch = _torch()
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Standardize
    from gpytorch.mlls import SumMarginalLogLikelihood

    points = torch.as_tensor(features, dtype=torch.float64)
    models = [
        SingleTaskGP(
            points,
            torch.as_tensor(target, dtype=torch.float64).unsqueeze(-1),
            outcome_transform=Standardize(m=1),
        )
        for target in targets
    ]
    model = ModelListGP(*models)
    fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
    return model


def noisy_improvement(
    features: FloatArray, pending: FloatArray, values: FloatArray, scales: Scales, seed: int
) -> Score:
    """Return the acquisition as a function of features (Daulton et al., 2021; Ament et al., 2023).

    Parameters
    ----------
    features, pending : arrays of shape (n, columns)
        The evaluations that succeeded, and those under way.
    values : array of shape (n, objectives)
        What the first found.
    scales : Scales
    seed : int
        Of the draws from the posterior.
    """
    torch = _torch()
    from botorch.acquisition.multi_objective.logei import (
        qLogNoisyExpectedHypervolumeImprovement as Acquisition,
    )
    from botorch.acquisition.multi_objective.objective import GenericMCMultiOutputObjective
    from botorch.sampling import SobolQMCNormalSampler

    def objectives(samples: Any, X: Any = None) -> Any:  # noqa: N803
        """Return what is maximised: minus the objectives themselves."""
        error = torch.sigmoid(samples[..., 1:2])
        third = samples[..., 2:].exp() if scales.extra_is_positive else samples[..., 2:]
        return -torch.cat([samples[..., :1].exp(), error, third], dim=-1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        acquisition = Acquisition(
            model=fitted_models(features, list(scales.forward(values).T)),
            ref_point=[-float(value) for value in scales.reference],
            X_baseline=torch.as_tensor(features, dtype=torch.float64),
            X_pending=torch.as_tensor(pending, dtype=torch.float64) if len(pending) else None,
            sampler=SobolQMCNormalSampler(torch.Size([_N_DRAWS]), seed=seed),
            objective=GenericMCMultiOutputObjective(objectives),
            prune_baseline=True,
        )

    def score(candidates: FloatArray) -> FloatArray:
        points = torch.as_tensor(candidates, dtype=torch.float64).unsqueeze(1)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            logs = torch.cat([acquisition(some) for some in points.split(_CHUNK)])
        found: FloatArray = np.exp(logs.numpy())
        return found

    return score


def _torch() -> Any:
    try:
        import botorch  # noqa: F401
        import torch
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError(
            "sampler='qlognehvi' needs botorch, which is not installed. The extra 'botorch' "
            "brings it: pip install 'skdptune[botorch]'. sampler='auto' needs no more than "
            "'pareto'.",
            name="botorch",
        ) from problem
    return torch
