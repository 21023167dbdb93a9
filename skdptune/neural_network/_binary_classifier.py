"""Private classification of two kinds by a neural network with one output."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.utils.metaestimators import available_if

from skdptune._validation import check_real
from skdptune.neural_network._classifier import DPNeuralNetClassifier
from skdptune.neural_network._modules import MLP

_MORE = "Only binary classification is supported: use DPNeuralNetClassifier."


def _gives_logits(net: DPNeuralNetBinaryClassifier) -> bool:
    criterion = net.criterion
    kind = criterion if isinstance(criterion, type) else type(criterion)
    if issubclass(kind, torch.nn.BCEWithLogitsLoss):
        return True
    raise AttributeError(
        f"decision_function is offered with the criterion BCEWithLogitsLoss alone; got "
        f"{kind.__name__}. Use predict_proba."
    )


class DPNeuralNetBinaryClassifier(DPNeuralNetClassifier):
    """A skorch classifier for two classes that is trained by private gradient descent (Opacus).

    Parameters, attributes and guarantee are those of `DPNeuralNetClassifier`, but for these.

    Parameters
    ----------
    module : torch.nn.Module or its class, default=MLP
        The network, which returns one output (logit) per record: in favour of the second class,
        where positive.
    criterion : class of torch.nn loss, default=BCEWithLogitsLoss
        With ``reduction="none"`` it must give one loss per record, for targets 0 and 1.
    threshold : float, default=0.5
        Probability of the second class above which it is predicted. Not a part of the training.
    **parameters
        As for `DPNeuralNetClassifier`; `classes` are two labels.

    See Also
    --------
    DPNeuralNetClassifier : For any number of classes, with an output for each.

    Notes
    -----
    The second class is the larger of the two labels, as everywhere in scikit-learn. A softmax
    over two outputs can say no more, and has gradients longer by a root of 2 to clip and a second
    row of weights to put noise on.

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

    _trains_with_others = True

    def __init__(
        self,
        module: Any = MLP,
        *,
        criterion: Any = torch.nn.BCEWithLogitsLoss,
        threshold: float = 0.5,
        **parameters: Any,
    ) -> None:
        super().__init__(module, criterion=criterion, **parameters)
        self.threshold = threshold

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real(self.threshold, name="threshold", lower=0.0, upper=1.0)
        if self.classes is not None and len(self.classes) != 2:
            raise ValueError(f"classes must be two labels; got {len(self.classes)}. {_MORE}")

    def _validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, int]:
        X, codes, n_classes = super()._validated(X, y)
        if n_classes != 2:
            raise ValueError(f"y must have two classes; got more. {_MORE}")
        return X, codes.astype(np.float32), 1

    def _losses(self, outputs: Any, targets: torch.Tensor) -> torch.Tensor:
        return super()._losses(_flat(outputs), targets)

    def infer(self, x: Any, **fit_params: Any) -> torch.Tensor:
        """Return the module's output for each record of a batch, as skorch asks for it.

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
        """Return the second label where its probability is above the threshold, else the first.

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
        """Tell scikit-learn that there are two classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _flat(outputs: Any) -> torch.Tensor:
    """Return the first of a module's outputs without an axis for its one column."""
    first = outputs[0] if isinstance(outputs, tuple) else outputs
    if first.ndim != 1 and tuple(first.shape[1:]) != (1,):
        raise ValueError(
            f"module must return one output per record; got shape {tuple(first.shape[1:])}."
        )
    return first.reshape(-1)
