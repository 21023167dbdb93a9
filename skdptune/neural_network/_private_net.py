"""What all private nets share: privacy cost, validation of data, and the report of a fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import check_is_fitted

from skdptune._compat import validated_rows
from skdptune.accounting import PrivacyProfile
from skdptune.base import PUBLIC_SIZE, validate_records
from skdptune.ledger import PrivacyLedger
from skdptune.mechanisms import NoisyGradientPlan, repeatable_generator
from skdptune.neural_network._inputs import as_array, own_array
from skdptune.neural_network._noisy_steps import quiet_hooks
from skdptune.neural_network._optional_protocol import OptionalProtocolMixin
from skdptune.neural_network._parameters import ModuleLike
from skdptune.neural_network._population import PopulationTrainer, TrainableNet
from skdptune.neural_network._training_loop import TrainingLoop
from skdptune.neural_network._training_run import TrainingRun

_REFUSED_WEIGHTS = (
    "sample_weight is not supported: a weight multiplies a record's influence, and the guarantee "
    "bounds that influence at weight 1. Use class_weight of a classifier for public weights."
)


class PrivateNet(OptionalProtocolMixin, TrainingLoop):
    """What DPNeuralNetClassifier and DPNeuralNetRegressor add to skorch's nets."""

    # Public classes give the defaults, and spell out skorch's parameters.
    def __init__(
        self,
        module: ModuleLike,
        *,
        epsilon: float | None,
        delta: float,
        max_grad_norm: float,
        noise_multiplier: float | None,
        grad_sample_mode: str,
        sampling: str,
        max_physical_batch_size: int | None,
        fix_module: bool,
        random_state: int | None,
        n_public: int | None,
        ledger: PrivacyLedger | None,
        **skorch_parameters: Any,
    ) -> None:
        super().__init__(module, **skorch_parameters)
        self.epsilon = epsilon
        self.delta = delta
        self.max_grad_norm = max_grad_norm
        self.noise_multiplier = noise_multiplier
        self.grad_sample_mode = grad_sample_mode
        self.sampling = sampling
        self.max_physical_batch_size = max_physical_batch_size
        self.fix_module = fix_module
        self.random_state = random_state
        self.n_public = n_public
        self.ledger = ledger

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return the privacy cost of a fit, from the parameters and public sizes alone.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it where it is given.
        n_features : int, optional
            Not used.

        Returns
        -------
        PrivacyProfile
        """
        return self._plan_before_data(n_samples).profile

    def fit(self, X: Any, y: Any, **refused: Any) -> Self:
        """Train the module privately, from fresh weights.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, ...)
            Records, converted to 32-bit floating-point numbers. One that then holds anything but
            finite numbers, or has no proper label or target, counts as a record of zeros with the
            first label, or the target 0: it cannot make the fit fail.
        y : array-like or tensor of shape (n_samples,) or (n_samples, n_targets)
            Labels or targets.

        Returns
        -------
        self
        """
        self._check_parameters()
        if "sample_weight" in refused:
            raise TypeError(_REFUSED_WEIGHTS)
        if refused:
            raise TypeError(f"arguments of fit must be X and y; got {sorted(refused)} as well.")
        return self._train_alone(self._training_run(X, y))

    def _try_on_made_up(self, X: Any, y: Any) -> None:
        """Refuse a module or a criterion by a trial on made-up records, before a ledger pays."""
        if not hasattr(X, "shape"):
            return
        net = clone(self)
        labels, columns = [0.0, 0.0], np.shape(y)[1:] if hasattr(y, "shape") else ()
        if is_classifier(self):
            classes = getattr(self, "classes", None)
            labels, columns = [0, 1] if classes is None else classes, ()
        made_up = np.resize(np.unique(np.asarray(labels)), (2, *columns))
        records, targets, n_outputs = net._validated(np.zeros((2, *X.shape[1:])), made_up)
        run = TrainingRun(
            net._plan_before_data(2),
            torch.from_numpy(records),
            torch.from_numpy(targets),
            repeatable_generator(0),
            {"input_shape": records.shape[1:], "n_outputs": n_outputs},
        )
        with net._seeded_torch(run.rng), quiet_hooks():
            net._start(run)
            net._gradient_mode(run)

    def _training_run(self, X: Any, y: Any) -> TrainingRun:
        records, targets, n_outputs = self._validated(X, y)
        n_samples = self._public_size(len(records))
        self._warn_of_large_delta(n_samples)
        # Theorem U2. A run that starts again must draw the same numbers.
        new_generator = repeatable_generator(self.random_state)
        sizes = {"input_shape": records.shape[1:], "n_outputs": n_outputs}
        tensors = torch.from_numpy(records), torch.from_numpy(targets)
        return TrainingRun(
            self._plan(n_samples), *tensors, new_generator, sizes, self._weights_of_codes()
        )

    def _weights_of_codes(self) -> torch.Tensor | None:
        """Return the factor in [0, 1] of the records of each class; None where there are none."""
        return None

    def _finish(self, plan: NoisyGradientPlan, steps_taken: int) -> Self:
        self._check_finite()
        self.max_epochs_ = self._epochs_of(plan)
        self.plan_ = plan
        self.privacy_ = self._make_report(plan.profile, self._assumptions(plan, steps_taken))
        return self

    @classmethod
    def fit_many(
        cls, estimators: Sequence[TrainableNet], X: Any, y: Any, *, return_exceptions: bool = False
    ) -> list[Any]:
        """Train many nets together, each on batches and with noise of its own.

        Parameters
        ----------
        estimators : sequence of private nets
            They may differ in all parameters.
        X, y
            As for `fit`.
        return_exceptions : bool, default=False
            Whether to return the exception of a net whose training fails in its place, instead of
            raising it.

        Returns
        -------
        list
            The nets, fitted in place.

        See Also
        --------
        PopulationTrainer : The same, with a limit of memory.
        """
        return PopulationTrainer().fit(estimators, X, y, return_exceptions=return_exceptions)

    @abstractmethod
    def _validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, int]:
        """Return records, targets as the criterion takes them, and the number of outputs."""

    def _validated_pair(self, X: Any, y: Any, **settings: Any) -> tuple[np.ndarray, np.ndarray]:
        # Theorem R5.
        rows, targets = validate_records(
            self,
            as_array(X),
            as_array(y),
            dtype=np.float32,
            allow_nd=True,
            # An error must not show that a random sample of the records is empty.
            min_samples=1 if self.n_public is None else 0,
            **settings,
        )
        # Tensors share this memory, which must not be the caller's, nor read-only.
        return own_array(rows, X), targets

    def _check_finite(self) -> None:
        weights = torch.cat([p.detach().reshape(-1) for p in self.module_.parameters()])
        if not bool(weights.isfinite().all()):
            # The weights are released, so this shows nothing more.
            raise FloatingPointError(
                "module must have finite weights after training; got others. The training "
                "diverged: lower lr, or raise epsilon."
            )

    def privacy_assumptions(
        self, n_samples: int, n_features: int | None = None
    ) -> tuple[str, ...]:
        """Return what a fit's report will assume, from parameters and public sizes alone.

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
        # Theorem F11.
        module = self.module
        if isinstance(module, torch.nn.Module) and any(True for _ in module.parameters()):
            return PUBLIC_SIZE, "the weights that the module started with are public"
        return (PUBLIC_SIZE,)

    def _assumptions(self, plan: NoisyGradientPlan, steps_taken: int) -> tuple[str, ...]:
        sentences = [*self.privacy_assumptions(plan.steps)]
        if steps_taken < plan.steps:
            sentences.append(
                f"training stopped after {steps_taken} of {plan.steps} steps; the cost is that of "
                "all planned steps"
            )
        return tuple(sentences)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` has ended without an error."""
        return hasattr(self, "privacy_")

    def _validated_inputs(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return validated_rows(
            self, as_array(X), dtype=np.float32, order="C", copy=True, allow_nd=True, reset=False
        )

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a noisy net."""
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.non_deterministic = self.random_state is None
        return tags
