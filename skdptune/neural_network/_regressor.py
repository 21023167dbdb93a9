"""Private regression by a neural network."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from skorch import NeuralNetRegressor

from skdptune.neural_network._inputs import as_array, as_columns
from skdptune.neural_network._modules import MLP
from skdptune.neural_network._private_net import PrivateNet


class DPNeuralNetRegressor(PrivateNet, NeuralNetRegressor):
    """A skorch regressor that is trained by differentially private gradient descent (Opacus).

    Parameters, attributes and guarantee are those of `DPNeuralNetClassifier`, but for these.

    Parameters
    ----------
    module : torch.nn.Module or its class, default=MLP
        The network, which returns one output per target.
    criterion : class of torch.nn loss, default=MSELoss
        With ``reduction="none"`` it must give losses of the targets' shape; a record's loss is the
        mean over its targets.
    **parameters
        As for `DPNeuralNetClassifier`, without `classes`.

    Notes
    -----
    The gradient of a squared error grows with the error, and is then clipped. Targets of a
    size about 1 train best: scale them by public constants.

    Examples
    --------
    >>> import numpy as np
    >>> from skdptune.neural_network import DPNeuralNetRegressor, LogisticHead
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(2000, 2))
    >>> net = DPNeuralNetRegressor(LogisticHead, epsilon=2.0, lr=0.2, random_state=0)
    >>> net.fit(X, X @ [1.0, -0.5]).score(X, X @ [1.0, -0.5]) > 0.8
    True
    """

    _trains_with_others = True

    def __init__(
        self, module: Any = MLP, *, criterion: Any = torch.nn.MSELoss, **parameters: Any
    ) -> None:
        super().__init__(module, criterion=criterion, **parameters)

    def _validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, int]:
        # scikit-learn checks several targets by a rule that no empty part passes.
        is_empty = self.n_public is not None and np.size(as_array(y)) == 0
        X, y = self._validated_pair(X, y, multi_output=not is_empty, y_numeric=True)
        columns = as_columns(y)
        self._is_flat = y.ndim == 1
        return X, columns, columns.shape[1]

    def _losses(self, outputs: Any, targets: torch.Tensor) -> torch.Tensor:
        outputs = outputs[0] if isinstance(outputs, tuple) else outputs
        if outputs.ndim == 1:
            outputs = outputs[:, None]
        if outputs.shape != targets.shape:
            # Otherwise torch would broadcast one record's target to others.
            raise ValueError(
                f"module must return {targets.shape[1]} outputs per record; got shape "
                f"{tuple(outputs.shape[1:])}."
            )
        return super()._losses(outputs, targets)

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted targets.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, ...)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        found = NeuralNetRegressor.predict_proba(self, self._validated_inputs(X)).astype(
            np.float64
        )
        return found.ravel() if self._is_flat else found

    @property
    def predict_proba(self) -> Any:
        """Not offered: a regression has no probabilities."""
        raise AttributeError("predict_proba is not offered by a regression. Use predict.")

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what to expect of a noisy regressor."""
        tags = super().__sklearn_tags__()
        # Noise: with a few dozen records of a test a private model has nothing to say.
        tags.regressor_tags.poor_score = True
        tags.target_tags.multi_output = True
        return tags
