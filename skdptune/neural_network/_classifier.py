"""Private classification by a neural network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.utils.multiclass import check_classification_targets
from skorch import NeuralNetClassifier

from skdptune.base import PUBLIC_LABELS
from skdptune.neural_network._inputs import codes_of
from skdptune.neural_network._modules import MLP
from skdptune.neural_network._private_net import PrivateNet


class DPNeuralNetClassifier(PrivateNet, NeuralNetClassifier):
    r"""A skorch classifier that is trained by differentially private gradient descent (Opacus).

    Parameters
    ----------
    module : torch.nn.Module or its class, default=MLP
        The network, which returns one output (logit) per class. A ready one of this package is
        told its sizes; so is any class with arguments `input_shape` and `n_outputs`. An instance
        is copied before it is trained.
    criterion : class of torch.nn loss, default=CrossEntropyLoss
        With ``reduction="none"`` it must give one loss per record.
    epsilon : float or None, default=1.0
        The budget: the noise is the least that keeps within it. Infinite for no noise.
    delta : float, default=1e-5
        The other half of the budget.
    optimizer : class of torch.optim.Optimizer, default=SGD
        What makes steps of noisy gradients.
    lr : float, default=0.5
        Learning rate.
    max_epochs : float, default=10
        Expected number of times that a record is looked at.
    batch_size : int or float, default=256
        Expected number of records of a batch, or a share of the records; at most all of them.
    max_grad_norm : float, default=1.0
        Norm to which the gradient of each record is shortened.
    noise_multiplier : float, optional
        The noise, in units of `max_grad_norm`, in place of `epsilon`.
    grad_sample_mode : {"auto", "hooks", "functorch", "ghost"}, default="auto"
        How Opacus finds gradients: layer by layer, by torch.func, or their norms only, which is
        faster and takes less memory, and is offered for networks of linear layers on vectors.
        "auto" is "ghost" for those, and "hooks" for others.
    poisson_sampling : bool, default=True
        Whether each record enters each batch by its own coin. Otherwise batches are uniform
        sets of fixed size, which takes about twice the noise.
    max_physical_batch_size : int, optional
        Largest number of records looked at together; larger batches are made of several parts.
    fix_module : bool, default=False
        Whether Opacus may replace layers that mix records, such as BatchNorm by GroupNorm.
    callbacks : list, optional
        skorch callbacks that read no data: schedules of the learning rate, and those with a class
        attribute ``data_independent = True``, whose author vouches for it.
    train_split : None
        Validation data that are split off would be read without being charged.
    predict_nonlinearity : callable or "auto", default="auto"
        What makes probabilities of outputs; softmax for the default criterion.
    device : str, default="cpu"
        Where to train.
    verbose : int, default=0
        As in skorch.
    random_state : int, Generator, RandomState or None, default=None
        None draws first weights, batches and noise from the operating system's entropy.
    n_public : int, optional
        A constant in place of the number of records, where that is secret.
    classes : sequence, optional
        The labels. Those found in `y` by default, which takes the label set to be public.
    **components
        Arguments of components, as in ``module__hidden`` and ``optimizer__momentum``.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    module_ : torch.nn.Module
        The trained network, free of Opacus.
    plan_ : NoisyGradientPlan
        Sampling rate, number of steps and noise.
    privacy_ : PrivacyReport
        What the fit cost.
    n_features_in_ : int
        Length of the second axis of the records.

    Notes
    -----
    Neighbours differ by adding or removing one record. A step draws a batch, shortens the gradient
    of each of its records to norm `max_grad_norm`, adds normal noise to the sum and divides by a
    constant. Sampling rate, number of steps and divisor follow from `n_public`, or else from the
    number of records. All steps together cost what the Poisson-subsampled Gaussian mechanism
    does, composed (Abadi et al. 2016; profile by privacy loss distributions). Losses, scores
    and batch sizes are not recorded, since they are not charged.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skdptune.neural_network import MLP, DPNeuralNetClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> net = DPNeuralNetClassifier(
    ...     MLP(hidden=(32,)), epsilon=4.0, classes=range(10), lr=2.0, random_state=0
    ... )
    >>> net = net.fit(X / 16.0, y)
    >>> net.privacy_.profile.epsilon(1e-5) <= 4.0
    True
    >>> net.score(X / 16.0, y) > 0.6
    True
    """

    _trains_with_others = True

    def __init__(
        self,
        module: Any = MLP,
        *,
        criterion: Any = torch.nn.CrossEntropyLoss,
        classes: Sequence[Any] | None = None,
        **parameters: Any,
    ) -> None:
        super().__init__(module, criterion=criterion, classes=classes, **parameters)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.classes is not None and len(set(self.classes)) < max(len(self.classes), 2):
            raise ValueError(
                f"classes must be at least two different labels; got {list(self.classes)!r}."
            )

    def _validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, int]:
        X, y = self._validated_pair(X, y)
        if self.classes is not None:
            labels = np.unique(np.asarray(self.classes))
        else:
            check_classification_targets(y)
            labels = np.unique(y)
            if labels.size < 2:
                raise ValueError(
                    "y must have at least two classes, or classes= must name them; got one class."
                )
        codes = codes_of(y, labels)
        self.classes_inferred_ = labels
        return X, codes, labels.size

    @property
    def classes_(self) -> np.ndarray:
        """The labels, in increasing order."""
        try:
            return self.classes_inferred_
        except AttributeError:
            raise AttributeError(
                f"{type(self).__name__} has no attribute 'classes_' before it is fitted."
            ) from None

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the labels.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, ...)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return super().predict_proba(self._validated_inputs(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable labels.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, ...)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def _assumptions(self, *arguments: Any) -> tuple[str, ...]:
        public = () if self.classes is not None else (PUBLIC_LABELS,)
        return (*super()._assumptions(*arguments), *public)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what to expect of a noisy classifier."""
        tags = super().__sklearn_tags__()
        # Noise: with a few dozen records of a test a private model has nothing to say.
        tags.classifier_tags.poor_score = True
        return tags
