"""What the private nets share: parameters, price, and a training loop that is counted."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted, validate_data

from skdptune._validation import check_integer
from skdptune.accounting import PrivacyProfile
from skdptune.base import PUBLIC_SIZE
from skdptune.mechanisms import (
    NoisyGradientPlan,
    as_generator,
    fixed_batches,
    plan_noisy_gradient,
    poisson_batches,
)
from skdptune.neural_network._callbacks import check_callbacks
from skdptune.neural_network._components import NetComponents, no_training
from skdptune.neural_network._gradient_check import check_gradients
from skdptune.neural_network._inputs import as_array
from skdptune.neural_network._module_check import (
    check_losses,
    check_module,
    check_outer_products,
    has_outer_products,
)
from skdptune.neural_network._modules import MLP
from skdptune.neural_network._noise_source import noise_source
from skdptune.neural_network._noisy_steps import (
    NoisySteps,
    NotPrivateError,
    exact_arithmetic,
    quiet_hooks,
)
from skdptune.neural_network._parameters import NetParameters
from skdptune.neural_network._population import (
    BatchTrainable,
    Course,
    PopulationTrainer,
    steps_of_epochs,
)
from skdptune.neural_network._search_hooks import NetSearchHooks

_REFUSED_WEIGHTS = (
    "sample_weight is not supported: a weight multiplies a record's influence, and the guarantee "
    "bounds that influence at weight 1."
)


class PrivateNet(NetComponents, NetSearchHooks, NetParameters, BatchTrainable):
    """What DPNeuralNetClassifier and DPNeuralNetRegressor add to skorch's nets."""

    # There during `fit` alone: training outside of it would not be charged.
    _engine: NoisySteps | None = None

    def __init__(
        self,
        module: Any = MLP,
        *,
        criterion: Any,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        optimizer: Any = torch.optim.SGD,
        lr: float = 0.5,
        max_epochs: float = 10,
        batch_size: int | float = 256,
        max_grad_norm: float = 1.0,
        noise_multiplier: float | None = None,
        grad_sample_mode: str = "auto",
        poisson_sampling: bool = True,
        max_physical_batch_size: int | None = None,
        fix_module: bool = False,
        callbacks: Any = None,
        train_split: None = None,
        predict_nonlinearity: Any = "auto",
        device: str = "cpu",
        verbose: int = 0,
        random_state: Any = None,
        n_public: int | None = None,
        **components: Any,
    ) -> None:
        super().__init__(
            module,
            criterion=criterion,
            optimizer=optimizer,
            lr=lr,
            max_epochs=max_epochs,
            batch_size=batch_size,
            callbacks=callbacks,
            train_split=train_split,
            predict_nonlinearity=predict_nonlinearity,
            device=device,
            verbose=verbose,
            **components,
        )
        self.epsilon = epsilon
        self.delta = delta
        self.max_grad_norm = max_grad_norm
        self.noise_multiplier = noise_multiplier
        self.grad_sample_mode = grad_sample_mode
        self.poisson_sampling = poisson_sampling
        self.max_physical_batch_size = max_physical_batch_size
        self.fix_module = fix_module
        self.random_state = random_state
        self.n_public = n_public

    # The price, before data -------------------------------------------------------------------

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return what a fit costs, from the parameters and public sizes alone.

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

    def _plan_before_data(self, n_samples: int) -> NoisyGradientPlan:
        self._check_parameters()
        return self._plan(self._public_size(check_integer(n_samples, name="n_samples", lower=1)))

    def _plan(self, n_samples: int) -> NoisyGradientPlan:
        size = self.batch_size
        share = max(1, round(size * n_samples)) if isinstance(size, float) else size
        return plan_noisy_gradient(
            n_samples,
            epochs=self.max_epochs,
            batch_size=min(share, n_samples),
            epsilon=self.epsilon,
            delta=self.delta,
            noise_multiplier=self.noise_multiplier,
            sampling="poisson" if self.poisson_sampling else "fixed",
        )

    # Fitting ------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, **refused: Any) -> Any:
        """Train the module privately, from its start.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, ...)
            Records; they become 32-bit floating-point numbers.
        y : array-like or tensor of shape (n_samples,) or (n_samples, n_targets)
            Labels or targets.

        Returns
        -------
        self
        """
        self._check_parameters()
        if refused:
            told = f"fit must be given X and y alone; got {sorted(refused)} as well."
            raise TypeError(_REFUSED_WEIGHTS if "sample_weight" in refused else told)
        return self._fit_course(self._course(X, y))

    def _course(self, X: Any, y: Any) -> Course:
        """Return what a fit trains on, and how long; parameters must have been checked."""
        X, targets, n_outputs = self._validated(X, y)
        n_samples = self._public_size(len(X))
        self._warn_of_large_delta(n_samples)
        rng = as_generator(self.random_state) or np.random.default_rng()
        sizes = {"input_shape": X.shape[1:], "n_outputs": n_outputs}
        records, targets = torch.from_numpy(X), torch.from_numpy(targets)
        return Course(self._plan(n_samples), records, targets, rng, sizes)

    def _fit_course(self, course: Course) -> Any:
        with self._torch_seeded(course.rng), quiet_hooks(), exact_arithmetic():
            self._start(course)
            taken = self._train(course)
        return self._settle(course.plan, taken)

    def _start(self, course: Course) -> None:
        """Make module, criterion, optimizer and callbacks afresh, and check them."""
        # If this training fails, the report of an earlier one must not stand for its weights.
        for name in ("plan_", "privacy_"):
            vars(self).pop(name, None)
        self._sizes = course.sizes
        self.initialize()
        check_callbacks([callback for _, callback in self.callbacks_])
        shape = course.sizes["input_shape"]
        check_module(self.module_, shape, self.device)
        with self._trial_losses() as losses:
            check_losses(self.module_, losses, shape, course.targets, self.device)

    @contextmanager
    def _trial_losses(self) -> Iterator[Callable[..., torch.Tensor]]:
        """Give the losses, each time of a fresh copy of the criterion, which may keep count."""
        criterion = self.criterion_

        def losses(*arguments: Any) -> torch.Tensor:
            vars(self)["criterion_"] = copy.deepcopy(criterion)
            return self._losses(*arguments)

        try:
            yield losses
        finally:
            vars(self)["criterion_"] = criterion

    def _settle(self, plan: NoisyGradientPlan, taken: int) -> Any:
        """Check and describe the net that so many steps have made."""
        self._check_finite()
        self.plan_ = plan
        self.privacy_ = self._make_report(plan.profile, self._assumptions(plan, taken))
        return self

    @classmethod
    def fit_many(
        cls, estimators: Sequence[PrivateNet], X: Any, y: Any, *, return_exceptions: bool = False
    ) -> list[Any]:
        """Train many nets together, each on batches and with noise of its own.

        Parameters
        ----------
        estimators : sequence of private nets
            They may differ in all parameters.
        X, y
            As for `fit`.
        return_exceptions : bool, default=False
            Whether a net whose training fails stands in the result by its exception, in place of
            raising it.

        Returns
        -------
        list
            The nets, fitted in place.

        See Also
        --------
        PopulationTrainer : Does this, within a limit of memory.
        """
        return PopulationTrainer().fit(estimators, X, y, return_exceptions=return_exceptions)

    def _validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, int]:
        """Return records, targets as the criterion takes them, and the number of outputs."""
        raise NotImplementedError

    def _validated_pair(self, X: Any, y: Any, **settings: Any) -> tuple[np.ndarray, np.ndarray]:
        X, y = validate_data(
            self,
            as_array(X),
            as_array(y),
            dtype=np.float32,
            order="C",
            # A tensor over the caller's own memory must not be written to, nor be read-only.
            copy=True,
            allow_nd=True,
            # That a random part is empty must not be told by an error.
            ensure_min_samples=1 if self.n_public is None else 0,
            **settings,
        )
        return X, y

    @contextmanager
    def _torch_seeded(self, rng: np.random.Generator) -> Iterator[None]:
        """Seed what modules draw by themselves, as first weights, and put all back after."""
        devices = [torch.device(self.device)] if _is_cuda(self.device) else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(int(rng.integers(0, 2**63 - 1)))
            yield

    def _train(self, course: Course) -> int:
        """Take the planned steps, and return how many were taken."""
        self._engine = NoisySteps(
            self.module_,
            self.optimizer_,
            self._losses,
            noise_multiplier=course.plan.noise_multiplier,
            max_grad_norm=self.max_grad_norm,
            divisor=course.plan.batch_size,
            mode=self._mode(course),
            generator=noise_source(course.rng, self.device),
            largest_part=self.max_physical_batch_size,
        )
        try:
            self.module_.train()
            self._run(course)
            return self._engine.taken
        except NotPrivateError:
            self._wipe()
            raise
        finally:
            self._engine.detach()
            self.module_.eval()
            self._engine = None

    def _mode(self, course: Course) -> str:
        """Return how gradients are found, after a trial on made-up records."""
        shape, mode = course.sizes["input_shape"], self.grad_sample_mode
        if mode == "auto":
            mode = "ghost" if has_outer_products(self.module_, shape, self.device) else "hooks"
        elif mode == "ghost":
            check_outer_products(self.module_, shape, self.device)
        if mode != "ghost":
            with self._trial_losses() as losses:
                check_gradients(
                    self.module_.train(), losses, shape, course.targets, self.device, mode
                )
        return mode

    def _wipe(self) -> None:
        """Forget the weights: nothing that a step without noise made may stay."""
        for parameter in self.module_.parameters():
            parameter.data.zero_()
        self.optimizer_.state.clear()

    def _run(self, course: Course) -> None:
        # Callbacks are told when, but are given no data.
        self.notify("on_train_begin", X=None, y=None)
        try:
            for rows in self._batches(course):
                self.train_step((course.X[rows], course.targets[rows]))
        except KeyboardInterrupt:
            # As in skorch, what is trained so far is kept; the price does not become less.
            pass
        self.notify("on_train_end", X=None, y=None)

    def _batches(self, course: Course) -> Iterator[Any]:
        """Yield the rows of each step; callbacks are told before and after."""
        plan = course.plan
        draw = poisson_batches if plan.sampling == "poisson" else fixed_batches
        share = plan.rate if plan.sampling == "poisson" else plan.batch_size
        batches = draw(len(course.X), share, plan.steps, course.rng)
        for count in steps_of_epochs(plan.steps, self.max_epochs):
            self.notify("on_epoch_begin", dataset_train=None, dataset_valid=None)
            for _ in range(count):
                self.notify("on_batch_begin", batch=None, training=True)
                batch = next(batches)
                yield batch if isinstance(batch, slice) else torch.from_numpy(batch)
                self.notify("on_batch_end", batch=None, training=True)
            self.notify("on_epoch_end", dataset_train=None, dataset_valid=None)

    def train_step(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        """Take one step on clipped and noised gradients; only `fit` may ask for one."""
        if self._engine is None or fit_params:
            raise no_training("train_step")
        inputs, targets = batch
        self._engine.step(inputs.to(self.device), targets.to(self.device))
        # A loss is read from the data and not charged, so none is given out.
        return {}

    def _losses(self, outputs: Any, targets: torch.Tensor) -> torch.Tensor:
        """Return one loss for each record."""
        outputs = outputs[0] if isinstance(outputs, tuple) else outputs
        values = self.get_loss(outputs, targets, training=True)
        if values.ndim == 0 or len(values) != len(targets):
            raise ValueError(
                "criterion must give one loss per record with reduction='none'; got shape "
                f"{tuple(values.shape)}."
            )
        return values.reshape(len(values), -1).mean(dim=1)

    def _check_finite(self) -> None:
        weights = torch.cat([p.detach().reshape(-1) for p in self.module_.parameters()])
        if not bool(weights.isfinite().all()):
            # The weights are released, so this tells nothing more.
            raise FloatingPointError(
                "module must have finite weights after training; got others. The training "
                "diverged: lower lr, or have more privacy budget."
            )

    def _assumptions(self, plan: NoisyGradientPlan, taken: int) -> tuple[str, ...]:
        sentences = [PUBLIC_SIZE]
        if isinstance(self.module, torch.nn.Module) and any(
            True for _ in self.module.parameters()
        ):
            sentences.append("the weights that the module started with are public")
        if taken < plan.steps:
            sentences.append(
                f"training stopped after {taken} of {plan.steps} steps; the price is that of all"
            )
        return tuple(sentences)

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether `fit` has come to its end."""
        return hasattr(self, "privacy_")

    def _validated_inputs(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return validate_data(
            self, as_array(X), dtype=np.float32, order="C", copy=True, allow_nd=True, reset=False
        )

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what to expect of a noisy net."""
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.non_deterministic = self.random_state is None
        return tags


def _is_cuda(device: Any) -> bool:
    return torch.device(device).type == "cuda"
