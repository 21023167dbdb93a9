"""Base class of all private nets: privacy cost, validation of data, and the report of a fit.

[shared_parameters]
epsilon : float or None, default=1.0
    Privacy budget of a fit, with the least noise that meets it. Infinite for no noise.
delta : float, default=1e-5
    The delta of the budget; far below one over the number of records.
optimizer : class of torch.optim.Optimizer or "auto", default="auto"
    Makes the steps along the noisy gradients. "auto" is Adam; for classifiers with a `module` of
    your own it is ``torch.optim.SGD``. The learning rate of this Adam falls linearly to 0, unless
    `callbacks` are given. The rate of the first layer, if it is linear, is ``sqrt(12 / (inputs +
    1))`` times that of the others. All parameters but the output's bias decay, as by
    ``torch.optim.AdamW``, by ``optimizer__weight_decay``. Its default is 0 for regressors. For
    classifiers it is the smaller of 0.1 times the shift of the Gaussian release that all steps are
    together, and 10 times the number of inputs over the records times the shift.
lr : float or "auto", default="auto"
    Learning rate of the optimizer: rates of Adam are much smaller than those of SGD. "auto" is a
    rule from public numbers. With Adam by "auto" it is ``0.05 * min(1, sqrt(signal / 1000)) *
    sqrt(300 / steps)``. The signal is the number of records times the shift of the Gaussian
    release that all steps are together; for classifiers it is divided by half the number of
    classes, and the factor of the square root of the signal is at least 0.5. With another
    optimizer "auto" is 0.5 for regressors. For classifiers it is then the rate at which noise
    moves each weight by 0.18 in standard deviation, between 0.5 and 2.
max_epochs : float, "auto" or "max", default="auto"
    Expected number of times that each record is used. "auto" follows from the public number of
    records. With Adam and batches by "auto", it gives 300 steps. Otherwise it is 10 for
    `DPNeuralNetClassifier`; 20 for `DPNeuralNetBinaryClassifier`, and 30 from 4,000 on; 10 for
    `DPNeuralNetRegressor`, and 20 from 16,000 on. "max" takes all steps of noise
    `noise_multiplier` that `epsilon` and `delta` pay for.
batch_size : int, float or "auto", default="auto"
    Expected number of records in a batch, or their share of all records; at most all of them.
    With Adam by "auto", "auto" is all records up to 10,000. Of larger tables it is 10,000 for
    classifiers; for regressors it is a tenth of the records, but at least 10,000 and at most
    30,000. With another optimizer it is 256.
max_grad_norm : float or "auto", default="auto"
    Norm to which the gradient of each record is clipped. "auto" is 1 for regressors. For
    classifiers it is the signal over 2,500, between 3 and 10. With another optimizer than Adam by
    "auto" it is 1.
noise_multiplier : float, optional
    Standard deviation of the noise in units of `max_grad_norm`. If given, it replaces `epsilon`;
    with "max" epochs both are needed.
grad_sample_mode : {"auto", "hooks", "functorch", "ghost"}, default="auto"
    How gradients of records are computed: layer by layer or by torch.func, both by Opacus, or
    their norms only.
    "ghost" takes less memory than "hooks", and is offered for networks of linear layers on
    vectors. "auto" is the closed form of `PopulationTrainer` for the modules that have one, which
    is faster, and "hooks" for others.
sampling : {"poisson", "fixed", "allocation"}, default="poisson"
    "poisson" draws each record for each batch independently. "fixed" draws batches of fixed size,
    which needs about twice the noise. "allocation" puts each record into one batch of an epoch, at
    random: use it to have every record once in an epoch, with slightly less noise.
max_physical_batch_size : int, optional
    Largest number of records in memory together; larger batches are processed in pieces.
fix_module : bool, default=False
    Whether Opacus may replace layers that mix records, such as BatchNorm by GroupNorm.
callbacks : list, optional
    skorch callbacks that do not read data: schedules of the learning rate, and callbacks with a
    class attribute ``data_independent = True``, for which their author is responsible.
train_split : None
    Must be None: scores of held-out validation data would not be paid for.
predict_nonlinearity : callable, "auto" or None, default="auto"
    Applied to outputs for predictions, as in skorch.
device : str or torch.device, default="cpu"
    Device to train on.
verbose : int, default=0
    Verbosity of skorch.
random_state : int or None, default=None
    None draws initial weights, batches and noise from the operating system's entropy; a seed gives
    reproducible research runs. Fits with the same seed, such as clones on two folds, share their
    noise.
n_public : int, optional
    Public constant in place of the number of records, if that number is secret.
{ledger}

[class_weight]
class_weight : mapping of class to float, optional
    Weights of classes, by which the clipped gradients of their records are multiplied; classes
    that are not named have weight 1. They must be public numbers, not counted in the data. They
    are divided by the largest weight, so that no record's influence grows and the cost stays the
    same. For a rare class use `PrivateThreshold` instead.

[components]
**components
    Arguments of components, as in ``module__hidden`` and ``optimizer__momentum``.

[shared_attributes]
module_ : torch.nn.Module
    The trained network.
lr_ : float
    The learning rate that was used, also if `lr` is "auto"; of the first step, if it falls.
max_grad_norm_ : float
    The clipping norm that was used, also if `max_grad_norm` is "auto".
max_epochs_ : float
    The number of epochs that was used, also if `max_epochs` is "auto" or "max".
plan_ : NoisyGradientPlan
    Sampling rate, number of steps and noise.
privacy_ : PrivacyReport
    Privacy cost of the fit.
n_features_in_ : int
    Length of the second axis of the records.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import check_is_fitted
from skorch import NeuralNet

from skdptune._compat import validated_rows
from skdptune._validation import check_integer, unexpected_argument
from skdptune.accounting import PrivacyProfile
from skdptune.base._shared import (
    DECLARE_LABELS,
    PARTS,
    PUBLIC_SIZE,
    Persons,
    PrivateRows,
    labels_of_chunk,
    persons_of,
    refuse_arguments,
    validate_records,
)
from skdptune.mechanisms._shared import NoisyGradientPlan, repeatable_generator
from skdptune.neural_network._noisy_steps import TrainingRun, quiet_hooks
from skdptune.neural_network._parameters import named_parameters
from skdptune.neural_network._population import PopulationTrainer
from skdptune.neural_network._recipe import Settings
from skdptune.neural_network._training_loop import TrainingLoop

SHARED_TEXT = __doc__


_COST_PARAMETERS = frozenset(
    {
        *("batch_size", "delta", "epsilon", "max_epochs", "n_public", "noise_multiplier"),
        "sampling",
    }
)


# Values to search in addition to the current one, as multiples of it.
_SUGGESTED = (1.0 / 3.0, 3.0)
_TAKEN = "X, y and groups"
# Parameters by which records are read.
_READ_BY = ("classes", "class_weight", "target_bound")
# Times the rule's rate of Adam; from five times on, log losses were above the base rate's.
_TOO_LARGE = 10.0


class PrivateNet(TrainingLoop):
    """The private part of all nets, in addition to skorch's."""

    # Rows in parts are read for the batches of many steps.
    _reads_again = True

    # Public classes define the defaults, and list skorch's parameters.
    def __init__(self, **given: Any) -> None:
        theirs = {name for name, _ in named_parameters(NeuralNet.__init__)}
        own = {*self._own_names()} - theirs
        for name in given.keys() - own - theirs:
            if "__" not in name:
                raise unexpected_argument(type(self), name, self._own_names())
        super().__init__(**{name: given[name] for name in given if name not in own})
        for name in own & given.keys():
            setattr(self, name, given[name])

    def privacy_profile(self, n_samples: int, n_features: int | None = None) -> PrivacyProfile:
        """Return the privacy cost of a fit, from the parameters and public sizes only.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it if it is given.
        n_features : int, optional
            Not used.

        Returns
        -------
        PrivacyProfile
        """
        return self._settings_before_data(n_samples).plan.profile

    @property
    def noise_parameter(self) -> str | None:
        """Name of the parameter that sets the noise of a fit and changes nothing else, or None.

        If it is given in place of `epsilon`, the same noise gives the same fit. With "max" epochs
        it sets the number of steps instead.
        """
        return None if self._takes_most_steps() else "noise_multiplier"

    @property
    def cost_parameters(self) -> frozenset[str]:
        """Names of the parameters on which `privacy_profile` depends."""
        # With "auto", the optimizer decides on the size and the number of batches.
        return _COST_PARAMETERS | ({"optimizer"} if self._has("batch_size") else set())

    def noise_level(self, n_samples: int, n_features: int | None = None) -> float:
        """Return the noise of a fit, in units of the clipping norm.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it if it is given.
        n_features : int, optional
            Not used.

        Returns
        -------
        float
            The noise multiplier.
        """
        return float(self._settings_before_data(n_samples).plan.noise_multiplier)

    def fixed_epochs(self, n_samples: int, n_features: int | None = None) -> dict[str, float]:
        """Return the number of epochs for "auto" or "max", under the name of the parameter.

        Together with the same ``noise_multiplier`` it gives the same fit, whatever ``epsilon`` is.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it if it is given.
        n_features : int, optional
            Not used.

        Returns
        -------
        dict
            Empty if the number of epochs is given.
        """
        if not isinstance(self.max_epochs, str):
            return {}
        return {"max_epochs": self._settings_before_data(n_samples).epochs}

    def tuning_parameters(self, n_tune: int, n_final: int) -> dict[str, Any]:
        """Return the parameters with which a fit on fewer records resembles the final fit.

        Parameters
        ----------
        n_tune : int
            Number of records, or its public expectation, that the search fits on.
        n_final : int
            Number of records, or its public expectation, of the final fit of this net.

        Returns
        -------
        dict
            To be set by ``set_params`` on a copy that is fitted on `n_tune` records.

        Notes
        -----
        *batch_size* becomes the share of the records that it has for `n_final`. That keeps the
        sampling rate, the number of steps, the noise multiplier and the privacy cost.

        *batch_size* and *max_epochs* of "auto" become their values for `n_final`, for the same
        reason.

        *lr* of plain SGD is multiplied by ``n_tune / n_final`` (Koskela and Kulkarni 2023,
        arXiv:2301.11989, section 3.2), which keeps the size of the noise that a step adds to the
        weights. Other optimizers keep their learning rate: Adam divides each step by its size.
        """
        self._check_parameters()
        n_tune = check_integer(n_tune, name="n_tune", lower=1)
        n_final = check_integer(n_final, name="n_final", lower=1)
        share, size = self.batch_size, self._public_size(n_final)
        count, epochs = self._batches_for(size)
        if isinstance(share, str):
            share = count / size
        values: dict[str, Any] = {
            "batch_size": share if isinstance(share, float) else min(share / n_final, 1.0)
        }
        if self._has("max_epochs"):
            values["max_epochs"] = epochs
        if self._optimizer is torch.optim.SGD:
            values[self._rate_name] = self._present_rate(n_final) * (n_tune / n_final)
        return values

    def suggested_space(
        self, n_samples: int, n_features: int | None = None
    ) -> dict[str, list[float]]:
        """Return values of the learning rate and the clipping norm that are worth searching.

        Parameters
        ----------
        n_samples : int
            Number of records; public. ``n_public`` replaces it if it is given.
        n_features : int, optional
            Not used.

        Returns
        -------
        dict of lists
            The current value of each, a third and three times of it. A search varies one parameter
            at a time.
        """
        norm = self._settings_before_data(n_samples).max_grad_norm
        present = {self._rate_name: self._present_rate(n_samples), "max_grad_norm": norm}
        return {
            name: [getattr(self, name), *(value * factor for factor in _SUGGESTED)]
            for name, value in present.items()
            if value > 0.0
        }

    def _present_rate(self, n_samples: int) -> float:
        """Return the learning rate of a fit to a number of records, also if it is "auto"."""
        if self._rate_name == "lr":
            return self._settings_before_data(n_samples).lr
        return float(getattr(self, self._rate_name))

    @property
    def _rate_name(self) -> str:
        # skorch prefers the parameter with the prefix.
        return "optimizer__lr" if hasattr(self, "optimizer__lr") else "lr"

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, **refused: Any) -> Self:
        """Train the module privately, from new initial weights.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, ...), or PrivateRows
            Records, converted to 32-bit floating-point numbers. A record with entries that are
            then not finite, or without a proper label or target, counts as a record of zeros with
            the first label, or the target 0: it cannot make the fit fail.
        y : array-like or tensor of shape (n_samples,) or (n_samples, n_targets), optional
            Labels or targets; None with `PrivateRows`, which bring them.
        groups : array-like of shape (n_samples,), optional
            The id of the person of each row: text or whole numbers. The guarantee is then about
            adding or removing one person with all of their rows (Theorem P14), and all numbers of
            records are numbers of persons. Batches draw persons. Each clipped gradient of a row
            counts by one over the number of its person's rows. A row without a proper id is left
            out.

        Returns
        -------
        self
        """
        self._check_parameters()
        refuse_arguments(refused, _TAKEN)
        run = self._training_run(X, y, groups)
        if self.grad_sample_mode == "auto":
            return PopulationTrainer().train(self, run)
        return self._train_alone(run)

    def _check_fit(self, given: Mapping[str, Any]) -> None:
        """Check arguments, and module and criterion on made-up records, before a ledger pays."""
        refuse_arguments(given.get("refused", ()), _TAKEN)
        X, y = given["X"], given.get("y", ())
        shape = X.shape[1:] if hasattr(X, "shape") else None
        if isinstance(X, PrivateRows):
            # Theorem R10: batches are drawn by the numbers of rows.
            X.check_order("X must be a table in memory for a net", "PrivateRows")
            shape = None if X.n_features is None else (X.n_features,)
            y = X.made_up_target
        if shape is None:
            return
        net = clone(self)
        columns = y.shape[1:] if hasattr(y, "shape") else ()
        records, targets, n_outputs = net._validated_form(shape, columns)
        run = TrainingRun(
            net._settings_before_data(2),
            torch.from_numpy(records),
            torch.from_numpy(targets),
            repeatable_generator(0),
            {"input_shape": records.shape[1:], "n_outputs": n_outputs},
        )
        with net._seeded_torch(run.rng), quiet_hooks():
            net._start(run)
            net._gradient_mode(run)

    def _validated_form(
        self, shape: tuple[int, ...], columns: tuple[int, ...]
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Return what `_validated` returns for two made-up records."""
        labels = [0.0, 0.0]
        if is_classifier(self):
            classes = getattr(self, "classes", None)
            labels, columns = [0, 1] if classes is None else classes, ()
        made_up = np.resize(np.unique(np.asarray(labels)), (2, *columns))
        return self._validated(np.zeros((2, *shape)), made_up)

    def _input_refusal(self, form: str) -> str | None:
        has_no_labels = is_classifier(self) and getattr(self, "classes", None) is None
        return DECLARE_LABELS if form == PARTS and has_no_labels else None

    def _training_run(self, X: Any, y: Any, groups: Any = None) -> TrainingRun:
        persons = persons_of(groups, X, may_be_empty=self.n_public is not None)
        in_parts: dict[str, Any] = {}
        if isinstance(X, PrivateRows):
            size = X.size_of_fit(self.n_public)
            records, targets, n_outputs, in_parts = self._validated_in_parts(X)
        else:
            records, targets, n_outputs = self._validated(X, y)
            if persons is not None:
                records, targets = persons.select(records), persons.select(targets)
            size = len(records) if persons is None else persons.size
        n_samples = self._public_size(size)
        self._warn_of_large_delta(n_samples)
        # Theorem U2. A run that starts again must draw the same numbers.
        new_generator = repeatable_generator(self.random_state)
        sizes = {"input_shape": records.shape[1:], "n_outputs": n_outputs}
        tensors = torch.from_numpy(records), torch.from_numpy(targets)
        weights = self._weights_of_classes(targets)
        if persons is not None:
            shares = shares_of(persons)
            weights = shares if weights is None else weights * shares
        tensor = None if weights is None else torch.from_numpy(weights)
        n_classes = max(n_outputs, 2) if is_classifier(self) else 2
        n_inputs = math.prod(records.shape[1:])
        settings = self._settings_for(n_samples, n_classes, n_inputs)
        self._warn_of_large_rate(settings, n_classes)
        return TrainingRun(settings, *tensors, new_generator, sizes, tensor, persons, **in_parts)

    def _validated_in_parts(
        self, rows: PrivateRows
    ) -> tuple[np.ndarray, np.ndarray, int, dict[str, Any]]:
        """Return what `_validated` returns for the rows of a table, and how to read more of them.

        Few rows are read at once, and of many none.

        Notes
        -----
        Theorem R10.
        """
        form = rows.form[1]
        columns = () if form is None else form.shape[1:]
        made_up, targets, n_outputs = self._validated_form((rows.width,), columns)
        rows.check_columns(self)
        # Neither seeds nor ledgers go to the workers.
        public = {name: vars(self)[name] for name in _READ_BY if name in vars(self)}
        of_batches = partial(rows.of_batches, read=partial(_of_chunk, type(self), public))
        n_rows = rows.counted()
        if not rows.is_small:
            in_parts = {"of_batches": of_batches, "n_rows": n_rows}
            return made_up[:0], targets[:0], n_outputs, in_parts
        (records, targets, _), _ = of_batches([slice(None)])
        return records, targets, n_outputs, {}

    def _warn_of_large_rate(self, settings: Settings, n_classes: int) -> None:
        """Warn if a rate was given that suits SGD, while Adam trains the module of the rule."""
        if not (settings.is_default and self._has("module")):
            return
        rate = self._rule.values(settings.plan, True, n_classes, 1)[0]
        if settings.lr >= _TOO_LARGE * rate:
            warnings.warn(
                f"lr={settings.lr:g} is a rate of Adam here, for which the rule has {rate:.2g}. "
                "With much larger rates, probabilities are wrong. Use lr='auto', or "
                "optimizer=torch.optim.SGD for rates of SGD.",
                stacklevel=4,
            )

    def _weights_of_classes(self, targets: np.ndarray) -> NDArray[Any] | None:
        """Return the factor in [0, 1] of each row by its class; None without class weights."""
        return None

    def _finish(self, run: TrainingRun, steps_taken: int) -> Self:
        plan = run.plan
        self._check_finite()
        self.max_epochs_, self.plan_ = run.settings.epochs, plan
        assumptions = self._assumptions(plan, steps_taken)
        self.privacy_ = self._make_report(plan.profile, assumptions, run.persons)
        return self

    @classmethod
    def fit_many(
        cls,
        estimators: Sequence[PrivateNet],
        X: Any,
        y: Any = None,
        *,
        groups: Any = None,
        return_exceptions: bool = False,
    ) -> list[Any]:
        """Train many nets together, each with its own batches and noise.

        Parameters
        ----------
        estimators : sequence of private nets
            They may differ in all parameters.
        X, y, groups
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
        PopulationTrainer : The same, with a memory limit.
        """
        return PopulationTrainer().fit(
            estimators, X, y, groups=groups, return_exceptions=return_exceptions
        )

    def _validated(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, int]:
        """Return records, targets in the form for the criterion, and the number of outputs."""
        raise NotImplementedError

    def _validated_pair(self, X: Any, y: Any, **settings: Any) -> tuple[np.ndarray, np.ndarray]:
        # Theorem R5: an improper record becomes a constant row, and no other row changes.
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
        # Tensors share this memory, so it must be neither the caller's nor read-only.
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
        # Theorem F11: the report carries the assumptions of its parts.
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


def _of_chunk(kind: type[PrivateNet], public: Mapping[str, Any], X: Any, y: Any) -> Any:
    """Return the records of a chunk, targets and weights, as a net of a kind reads a table."""
    # A net for each chunk, since reading stores sizes and workers have threads.
    net = object.__new__(kind)
    net.__dict__.update(public, n_public=1, random_state=None)
    # Theorem R5: no record decides the type in which others are read.
    labels = public.get("classes")
    records, targets, _ = net._validated(X, y if labels is None else labels_of_chunk(y, labels))
    return records, targets, net._weights_of_classes(targets)


def as_array(values: Any) -> Any:
    """Return torch tensors as NumPy arrays, and other objects unchanged."""
    if isinstance(values, torch.Tensor):
        return values.detach().cpu().numpy()
    return values


def shares_of(persons: Persons) -> NDArray[np.float64]:
    """Return the weight of each row; those of a person sum to at most 1.

    Notes
    -----
    Theorem P14. The weights are rounded towards 0 to 32-bit numbers, but stored with 64 bits.
    Sums then have 64 bits, since the rounding errors of a person's many rows could add up.
    """
    shares = persons.shares
    rounded = shares.astype(np.float32)
    lower = np.where(rounded > shares, np.nextafter(rounded, np.float32(0.0)), rounded)
    return lower.astype(np.float64)


def own_array(rows: np.ndarray, given: Any) -> np.ndarray:
    """Return rows in new memory, in C order."""
    is_own = rows.flags.c_contiguous and rows.flags.writeable
    if is_own and isinstance(given, np.ndarray) and not np.may_share_memory(rows, given):
        return rows
    return np.array(rows, order="C")
