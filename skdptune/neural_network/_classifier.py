"""Private classification by a neural network with one output per class."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from skorch import NeuralNetClassifier
from torch import nn

from skdptune._docstrings import with_shared_text
from skdptune.base._shared import (
    PUBLIC_LABELS,
    PUBLIC_WEIGHTS,
    arguments_of,
    check_class_weight,
    check_classes,
    label_set,
    weights_of_classes,
)
from skdptune.ledger import PrivacyLedger
from skdptune.neural_network._modules import SizedModule
from skdptune.neural_network._parameters import (
    EPOCHS_FOR_CLASSES,
    Callbacks,
    GradSampleMode,
    ModuleLike,
    OptimizerFactory,
    PredictNonlinearity,
)
from skdptune.neural_network._private_net import SHARED_TEXT, PrivateNet

# Criteria of logits, and made-up records that show the size of gradients. Their squared norm is
# about an eighth of their width, like that of encoded tables and of images between 0 and 1.
_OF_LOGITS = (nn.BCEWithLogitsLoss, nn.CrossEntropyLoss)
_N_MADE_UP, _LARGEST_ENTRY = 32, 0.6


@with_shared_text(SHARED_TEXT)
class DPNeuralNetClassifier(PrivateNet, NeuralNetClassifier):
    """Neural network classifier, trained with differential privacy (DP-SGD).

    A skorch net whose gradients are clipped, and get noise. Use it for two or more classes if a
    linear model is too simple; the searches of `skdptune.model_selection` tune its parameters.

    Parameters
    ----------
    module : torch.nn.Module, its class or "auto", default="auto"
        The network, with one output (logit) per class. "auto" is an `MLP` with 120 hidden units,
        or with 32 if the signal (see `lr`) is 1,000 or more; 120 with an optimizer of your own.
        The modules of this package get their sizes from the net, as does any class with arguments
        `input_shape` and `n_outputs`. An instance is copied before it is trained.
    criterion : class of torch.nn loss, default=CrossEntropyLoss
        With ``reduction="none"`` it must return one loss per record.
    {shared_parameters}
    classes : sequence, optional
        The labels. By default those found in `y`, which assumes that the label set is public.
    {class_weight}
    {components}

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    {shared_attributes}

    See Also
    --------
    DPNeuralNetBinaryClassifier : For two classes, with a single output.
    PopulationTrainer : Fits many nets at once.

    Notes
    -----
    Neighbours differ by adding or removing one record. A step draws a batch, clips the gradient of
    each of its records to norm `max_grad_norm`, adds Gaussian noise to the sum and divides by a
    constant. Sampling rate, number of steps and divisor follow from `n_public`, or else from the
    number of records. All steps together cost as much as the composition of Poisson-subsampled
    Gaussian mechanisms (Abadi et al. 2016; computed from privacy loss distributions). Losses,
    scores and batch sizes are not recorded, since they are not charged.

    Theorem U6. Each of the 300 steps of the default is taken on all records, or on batches of
    10,000. Their noise is that of about one Gaussian release, and any number of steps has the same
    cost. Columns should have a size of about 1, as those of `TableEncoder` have. A module that you
    give, such as `SmallCNN` for images, is trained by SGD on batches of 256, since steps on all
    images take long.

    Theorem U5. A clipped gradient keeps its length while the residual shrinks, so logits grow
    beyond what the labels justify. After training the last layer is multiplied by the cube root of
    `max_grad_norm` over the usual gradient of a difference of logits, if that is below 1. This
    calibrates probabilities, costs nothing and changes no decision. It is done for modules of this
    package and for ``torch.nn.Sequential`` that end in a linear layer.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skdptune.neural_network import DPNeuralNetClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> net = DPNeuralNetClassifier(epsilon=4.0, classes=range(10), random_state=0)
    >>> net = net.fit(X / 16.0, y)
    >>> net.privacy_.profile.epsilon(1e-5) <= 4.0
    True
    >>> net.score(X / 16.0, y) > 0.9
    True
    """

    _can_train_together = True
    _epochs_by_size = EPOCHS_FOR_CLASSES
    classes: Sequence[Any] | None
    class_weight: Mapping[Any, float] | None

    def __init__(
        self,
        module: ModuleLike | Literal["auto"] = "auto",
        *,
        criterion: ModuleLike = torch.nn.CrossEntropyLoss,
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
        **components: Any,
    ) -> None:
        super().__init__(**arguments_of(locals()))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_classes(self.classes)
        check_class_weight(self.class_weight, self.classes)

    def _validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, int]:
        X, y = self._validated_pair(X, y, labels=self.classes, is_classifier=True)
        labels = label_set(y, self.classes)
        codes = codes_of(y, labels)
        self.classes_inferred_ = labels
        return X, codes, labels.size

    def _weights_of_classes(self, targets: np.ndarray) -> NDArray[Any] | None:
        weights = weights_of_classes(self.class_weight, self.classes_)
        return None if weights is None else weights.astype(np.float32)[targets.astype(np.intp)]

    def _publish(self) -> None:
        is_first = self._unused is not None
        super()._publish()
        # A failed fit has no report, and may have no module.
        if not is_first or not hasattr(self, "privacy_") or self.predict_nonlinearity is None:
            return
        layer = last_layer(self.module_)
        if layer is None or not isinstance(self.criterion_, _OF_LOGITS):
            return
        factor = logit_factor(self.module_, self._sizes["input_shape"], self.max_grad_norm_)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.mul_(factor)

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
        codes = self.predict_proba(X).argmax(axis=1)
        return self.classes_[codes]

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
        weights = () if self.class_weight is None else (PUBLIC_WEIGHTS,)
        return (*super().privacy_assumptions(n_samples, n_features), *weights)

    def _assumptions(self, *arguments: Any) -> tuple[str, ...]:
        public = () if self.classes is not None else (PUBLIC_LABELS,)
        return (*super()._assumptions(*arguments), *public)

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a noisy classifier."""
        tags = super().__sklearn_tags__()
        # In the tests' few dozen records, noise dominates any private model.
        tags.classifier_tags.poor_score = True
        return tags


def last_layer(module: nn.Module) -> nn.Linear | None:
    """Return the linear layer that computes all outputs of a module, if it is known."""
    layers = module.layers if isinstance(module, SizedModule) else module
    last = layers[-1] if isinstance(layers, nn.Sequential) and len(layers) else None
    if not isinstance(last, nn.Linear):
        return None
    uses = sum(one is last.weight for _, one in module.named_parameters(remove_duplicate=False))
    return last if uses == 1 else None


@torch.enable_grad()
def logit_factor(module: nn.Module, input_shape: tuple[int, ...], max_grad_norm: float) -> float:
    """Return the factor for the logits of a trained module, from it and public numbers only.

    Notes
    -----
    Theorem U5.
    """
    # A copy, since a module may store its arguments.
    module, made_up = copy.deepcopy(module).cpu(), np.random.default_rng(0)
    trained = [one for one in module.parameters() if one.requires_grad]
    records = _LARGEST_ENTRY * made_up.uniform(-1.0, 1.0, size=(_N_MADE_UP, *input_shape))
    squares = 0.0
    for outputs in module(torch.tensor(records, dtype=torch.float32)).reshape(_N_MADE_UP, -1):
        first, second = made_up.permutation(max(len(outputs), 2))[:2]
        margin = outputs[first] - outputs[second] if len(outputs) > 1 else outputs[0]
        gradients = torch.autograd.grad(margin, trained, retain_graph=True, allow_unused=True)
        squares += sum(float(one.double().square().sum()) for one in gradients if one is not None)
    length = math.sqrt(squares / _N_MADE_UP)
    if not 0.0 < length < math.inf:
        return 1.0
    return float(min(1.0, max_grad_norm / length) ** (1.0 / 3.0))


def codes_of(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return labels, which are among `classes`, as numbers 0, 1, ...: their positions there."""
    if labels.size == 0:
        return np.zeros(0, dtype=np.int64)
    return np.searchsorted(classes, labels).astype(np.int64)
