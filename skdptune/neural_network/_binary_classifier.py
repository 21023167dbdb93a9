"""Private classification into two classes by a neural network with one output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from sklearn.utils.metaestimators import available_if

from skdptune._docstrings import with_shared_text
from skdptune._validation import check_real
from skdptune.base._shared import arguments_of
from skdptune.ledger import PrivacyLedger
from skdptune.neural_network._classifier import DPNeuralNetClassifier
from skdptune.neural_network._module_check import CriterionError
from skdptune.neural_network._parameters import (
    EPOCHS_FOR_TWO_CLASSES,
    Callbacks,
    GradSampleMode,
    ModuleLike,
    OptimizerFactory,
    PredictNonlinearity,
)
from skdptune.neural_network._private_net import SHARED_TEXT

_TWO_CLASSES = "Only binary classification is supported: use DPNeuralNetClassifier."


def _gives_logits(net: DPNeuralNetBinaryClassifier) -> bool:
    criterion = net.criterion
    kind: type = criterion if isinstance(criterion, type) else type(criterion)
    if issubclass(kind, torch.nn.BCEWithLogitsLoss):
        return True
    raise AttributeError(
        f"criterion must be BCEWithLogitsLoss for decision_function; got {kind.__name__}. Use "
        "predict_proba."
    )


@with_shared_text(SHARED_TEXT)
class DPNeuralNetBinaryClassifier(DPNeuralNetClassifier):
    """Neural network classifier for two classes, trained with differential privacy (DP-SGD).

    A skorch net whose gradients are clipped, and get noise. Use it rather than
    `DPNeuralNetClassifier` for two classes: with a single output, noise is added to fewer weights.

    Parameters
    ----------
    module : torch.nn.Module, its class or "auto", default="auto"
        The network, with one output (logit) per record: positive in favour of the second class.
        "auto" is an `MLP` with 120 hidden units, or with 32 if the signal (see `lr`) is 1,000 or
        more; 120 with an optimizer of your own. The modules of this package get their sizes from
        the net, as does any class with arguments `input_shape` and `n_outputs`. An instance is
        copied before it is trained.
    criterion : class of torch.nn loss, default=BCEWithLogitsLoss
        With ``reduction="none"`` it must return one loss per record, for targets 0 and 1.
    {shared_parameters}
    classes : sequence, optional
        The two labels. By default those found in `y`, which assumes that the label set is public.
    {class_weight}
    threshold : float, default=0.5
        Probability of the second class above which it is predicted. Not used in training.
    {components}

    Attributes
    ----------
    classes_ : ndarray
        The labels, in increasing order.
    {shared_attributes}

    See Also
    --------
    DPNeuralNetClassifier : For any number of classes, with an output for each.

    Notes
    -----
    The privacy guarantee is that of `DPNeuralNetClassifier`. The second class is the larger of the
    two labels, as everywhere in scikit-learn. A softmax over two outputs cannot express more. Its
    gradients are longer by a factor of the root of 2, and it has a second row of weights that gets
    noise.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skdptune.neural_network import DPNeuralNetBinaryClassifier, LogisticHead
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)  # by means of the data, for brevity: not a private step
    >>> net = DPNeuralNetBinaryClassifier(LogisticHead, epsilon=2.0, random_state=0)
    >>> net = net.fit(X, y)
    >>> net.privacy_.profile.epsilon(1e-5) <= 2.0
    True
    >>> net.score(X, y) > 0.9
    True
    >>> net.predict_proba(X[:3]).shape, net.decision_function(X[:3]).shape
    ((3, 2), (3,))
    """

    _can_train_together = True
    _epochs_by_size = EPOCHS_FOR_TWO_CLASSES
    threshold: float

    def __init__(
        self,
        module: ModuleLike | Literal["auto"] = "auto",
        *,
        criterion: ModuleLike = torch.nn.BCEWithLogitsLoss,
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
        classes: Sequence[Any] | None = None,
        class_weight: Mapping[Any, float] | None = None,
        threshold: float = 0.5,
        **components: Any,
    ) -> None:
        super().__init__(**arguments_of(locals()))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real(self.threshold, name="threshold", lower=0.0, upper=1.0)
        if self.predict_nonlinearity is None:
            raise ValueError(
                "predict_nonlinearity must be 'auto' or a callable that returns two columns; got "
                "None."
            )
        if self.classes is not None and len(self.classes) != 2:
            count = len(self.classes)
            raise ValueError(f"classes must be two labels; got {count}. {_TWO_CLASSES}")

    def _validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, int]:
        X, codes, n_classes = super()._validated(X, y)
        if n_classes != 2:
            raise ValueError(f"y must have two classes; got more. {_TWO_CLASSES}")
        return X, codes.astype(np.float32), 1

    def _losses(self, outputs: Any, targets: torch.Tensor) -> torch.Tensor:
        return super()._losses(_flat(outputs), targets)

    def infer(self, x: Any, **fit_params: Any) -> torch.Tensor:
        """Return the module's output for each record of a batch; called by skorch.

        Parameters
        ----------
        x : tensor of shape (n_samples, ...)
        **fit_params
            As in skorch.

        Returns
        -------
        tensor of shape (n_samples,)
        """
        return _flat(super().infer(x, **fit_params))

    @available_if(_gives_logits)
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the logits of the second class.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, ...)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.forward(self._validated_inputs(X)).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Return the second label if its probability is above the threshold, else the first.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, ...)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        is_second = self.predict_proba(X)[:, 1] > self.threshold
        return self.classes_[is_second.astype(np.intp)]

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a noisy classifier for two classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _flat(outputs: Any) -> torch.Tensor:
    """Return the first of a module's outputs without the axis of its single column."""
    first = outputs[0] if isinstance(outputs, tuple) else outputs
    if first.ndim != 1 and tuple(first.shape[1:]) != (1,):
        raise CriterionError(
            f"module must return one output per record; got shape {tuple(first.shape[1:])}."
        )
    return first.reshape(-1)
