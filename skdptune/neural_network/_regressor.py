"""Private regression by a neural network."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import torch
from skorch import NeuralNetRegressor

from skdptune._docstrings import with_shared_text
from skdptune.base._shared import arguments_of, check_ranges, middle_and_half, target_ranges
from skdptune.ledger import PrivacyLedger
from skdptune.neural_network._module_check import CriterionError
from skdptune.neural_network._parameters import (
    EPOCHS_FOR_TARGETS,
    Callbacks,
    GradSampleMode,
    ModuleLike,
    OptimizerFactory,
    PredictNonlinearity,
)
from skdptune.neural_network._private_net import SHARED_TEXT, PrivateNet
from skdptune.neural_network._recipe import RULE_FOR_TARGETS

# Half of the target range in units of the net: steps suit targets of about this size.
_HALF_RANGE = 2.5


@with_shared_text(SHARED_TEXT)
class DPNeuralNetRegressor(PrivateNet, NeuralNetRegressor):
    """Neural network regressor, trained with differential privacy (noisy, clipped gradients).

    A skorch net. Use it for one or more numeric targets that are not linear in the columns, and
    give it the public range of the targets. It needs no other settings.

    Parameters
    ----------
    module : torch.nn.Module, its class, or "auto", default="auto"
        The network, with one output per target. "auto" is an `MLP` with 32 hidden units. The
        modules of this package get their sizes from the net, as does any class with arguments
        `input_shape` and `n_outputs`. An instance is copied before it is trained.
    criterion : class of torch.nn loss, default=MSELoss
        With ``reduction="none"`` it must return losses of the targets' shape; a record's loss is
        the mean over its targets.
    {shared_parameters}
    target_bound : float, tuple (lower, upper) or sequence of these, optional
        Bound on the absolute value of a target, or its public range; values beyond it are clipped.
        The net is trained on targets relative to the middle of the range, in units in which half
        of the range is 2.5. A schema passes the range on. None trains on the unchanged targets,
        whose middle should be about 0 and whose size about 1.
    {components}

    Attributes
    ----------
    {shared_attributes}

    See Also
    --------
    DPNeuralNetClassifier : For classes.
    PopulationTrainer : Fits many nets at once.

    Notes
    -----
    Theorem U4, Theorem U6.

    The privacy guarantee is that of `DPNeuralNetClassifier`: neighbours differ by one record,
    added or removed.

    *Defaults.* Each of 300 steps is taken on all records (on batches, if there are more than
    10,000). Their noise is therefore that of one Gaussian release, and any number of steps has the
    same cost. Columns should have a size of about 1, as those of `TableEncoder` have.

    *Targets.* The gradient of a squared error grows
    with the error, and is then clipped. Large targets are therefore learned slowly, and so is a
    constant far from 0. With `target_bound` the net need not learn either.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.neural_network import DPNeuralNetRegressor
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(2000, 2))
    >>> y = 1000.0 + 100.0 * np.sin(3.0 * X[:, 0]) * X[:, 1]
    >>> net = DPNeuralNetRegressor(epsilon=2.0, target_bound=(850, 1150), random_state=0)
    >>> net.fit(X, y).score(X, y) > 0.7
    True
    >>> net.plan_.steps, net.plan_.rate
    (300, 1.0)
    """

    _can_train_together = True
    # For pipelines: a schema need not state the range.
    _has_optional_bound = True
    _epochs_by_size = EPOCHS_FOR_TARGETS
    _rule = RULE_FOR_TARGETS
    target_bound: Any

    def __init__(
        self,
        module: ModuleLike | Literal["auto"] = "auto",
        *,
        criterion: ModuleLike = torch.nn.MSELoss,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        optimizer: OptimizerFactory = "auto",
        lr: float | Literal["auto"] = "auto",
        max_epochs: float | Literal["auto", "max"] = "auto",
        batch_size: int | float | Literal["auto"] = "auto",
        max_grad_norm: float | Literal["auto"] = "auto",
        noise_multiplier: float | None = None,
        grad_sample_mode: GradSampleMode = "auto",
        sampling: str = "poisson",
        max_physical_batch_size: int | None = None,
        fix_module: bool = False,
        callbacks: Callbacks = None,
        train_split: None = None,
        predict_nonlinearity: PredictNonlinearity = "auto",
        device: str | torch.device = "cpu",
        verbose: int = 0,
        random_state: int | None = None,
        n_public: int | None = None,
        ledger: PrivacyLedger | None = None,
        target_bound: Any = None,
        **components: Any,
    ) -> None:
        super().__init__(**arguments_of(locals()))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.target_bound is not None:
            target_ranges(self.target_bound)

    def privacy_assumptions(
        self, n_samples: int, n_features: int | None = None
    ) -> tuple[str, ...]:
        """Return the assumptions that a fit's report will state, from parameters and public sizes.

        Parameters
        ----------
        n_samples : int
            Number of records.
        n_features : int, optional
            Ignored.

        Returns
        -------
        tuple of str
        """
        found = super().privacy_assumptions(n_samples, n_features)
        if self.target_bound is None:
            return found
        ranges = np.reshape(target_ranges(self.target_bound), (-1, 2))
        shown = ", ".join(f"[{low:.4g}, {high:.4g}]" for low, high in ranges)
        return (*found, f"targets are clipped to {shown}")

    def _validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, int]:
        self._middle, self._unit = 0.0, 1.0
        self._limits = -math.inf, math.inf
        dtype: type = np.float32
        if self.target_bound is not None:
            low, high = np.transpose(target_ranges(self.target_bound))
            self._limits = low, high
            self._middle, half = middle_and_half(low, high)
            # In double precision, since a range may be short and far from 0.
            self._unit, dtype = half / _HALF_RANGE, np.float64
        X, y = self._validated_pair(X, y, n_outputs=None, target_dtype=dtype)
        if self.target_bound is not None:
            check_ranges(np.transpose((low, high)), y.shape)
            # Theorem U4: each target separately, to a public range and by public constants.
            y = (np.clip(y, *self._limits) - self._middle) / self._unit
        columns = np.array(y[:, None] if y.ndim == 1 else y, dtype=np.float32, order="C")
        self._is_flat = y.ndim == 1
        return X, columns, columns.shape[1]

    def _losses(self, outputs: Any, targets: torch.Tensor) -> torch.Tensor:
        outputs = outputs[0] if isinstance(outputs, tuple) else outputs
        if outputs.ndim == 1:
            outputs = outputs[:, None]
        if outputs.shape != targets.shape:
            # Otherwise torch would broadcast one record's target to others.
            raise CriterionError(
                f"module must return {targets.shape[1]} outputs per record; got shape "
                f"{tuple(outputs.shape[1:])}."
            )
        return super()._losses(outputs, targets)

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted targets, within `target_bound` if that is given.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, ...)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        outputs = NeuralNetRegressor.predict_proba(self, self._validated_inputs(X))
        targets = self._middle + outputs.astype(np.float64) * self._unit
        # With few records, a net may predict far beyond the range of the targets.
        targets = np.clip(targets, *self._limits)
        return targets.ravel() if self._is_flat else targets

    @property
    def predict_proba(self) -> Any:
        """Not offered: a regressor has no probabilities."""
        raise AttributeError("predict_proba is not offered by a regressor. Use predict.")

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a noisy regressor."""
        tags = super().__sklearn_tags__()
        # In the tests' few dozen records, noise dominates any private model.
        tags.regressor_tags.poor_score = True
        tags.target_tags.multi_output = True
        return tags
