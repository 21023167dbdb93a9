"""Training of many nets at once: grouping, memory, and the handling of failures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from skorch.callbacks import LRScheduler
from torch import nn

from skdptune._progress import Progress
from skdptune._validation import check_integer, check_kind
from skdptune.base._shared import recorded_together
from skdptune.neural_network._noisy_steps import (
    NotPrivateError,
    TrainingRun,
    exact_arithmetic,
    quiet_hooks,
)
from skdptune.neural_network._parameters import NetParameters
from skdptune.neural_network._population._net_batch import NetBatch, Replica
from skdptune.neural_network._stacked_gradients import (
    is_simple,
    layers_of,
    may_have_layers,
    stacked_gradients,
)

if TYPE_CHECKING:
    from skdptune.neural_network._private_net import PrivateNet

_DEFAULT_MEMORY = 1 << 30
# On a CPU, passes that need more memory are slower, unless they are over few records.
_CACHED_MEMORY, _FEW_RECORDS = 1 << 23, 256
# Criteria that certainly treat records independently.
_SEPARABLE_CRITERIA = (
    nn.BCEWithLogitsLoss,
    nn.CrossEntropyLoss,
    nn.HuberLoss,
    nn.L1Loss,
    nn.MSELoss,
    nn.SmoothL1Loss,
)
# Copies of the weights: weights, sums, noise, gradients, and the state of optimizers.
_COPIES_OF_WEIGHTS = 7
# Copies of the values of a pass: values, slopes and scaled slopes.
_COPIES_OF_VALUES = 2
# Batches of records may be padded to at most this multiple of their length.
_LARGEST_PADDING = 2.0


class PopulationTrainer:
    """Fit many private neural nets at once, each as its own `fit` would.

    Use it to train many settings on the same data in a fraction of the time of successive fits.
    The searches of this package use it automatically.

    Parameters
    ----------
    max_memory : int, optional
        Bytes of memory, on the device of the nets, for all that training adds to the data. By
        default 2^30 on a CPU, and half of the free memory on a GPU. A net that needs more on its
        own is trained separately, record by record.

    Notes
    -----
    Theorem U2.

    Every net has the distribution that a separate `fit` gives it, and with a seed the same weights
    up to rounding. Its batches come from its own random draws, its gradients are clipped to its
    own norm, and its noise comes from its own generator. Given the data the nets are independent,
    as theorems on private selection require.

    Nets can be trained together if their modules are sequences of linear layers, convolutions and
    known layers without parameters (as in `MLP`, `SmallCNN`, `LogisticHead`). Weights of nets with
    the same structure are stacked, and gradients are computed in closed form; ``grad_sample_mode``
    is not used. Nets of different structures, and batches of very different sizes, are trained in
    turn. Any other net is trained separately, as by `fit`: one with another module, with layers
    that share parameters, hooks, callbacks other than schedules of the learning rate, or of a
    subclass. If one net fails, those trained with it start again, from the same random draws.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skdptune.neural_network import DPNeuralNetClassifier, PopulationTrainer
    >>> X, y = load_digits(return_X_y=True)
    >>> nets = [
    ...     DPNeuralNetClassifier(epsilon=4.0, classes=range(10), lr=rate, random_state=0)
    ...     for rate in (0.001, 0.01, 0.05)
    ... ]
    >>> nets = PopulationTrainer().fit(nets, X / 16.0, y)
    >>> nets[2].score(X / 16.0, y) > nets[0].score(X / 16.0, y)
    True
    """

    def __init__(self, *, max_memory: int | None = None) -> None:
        self.max_memory = max_memory

    @recorded_together
    def fit(
        self,
        nets: Sequence[PrivateNet],
        X: Any,
        y: Any = None,
        *,
        groups: Any = None,
        return_exceptions: bool = False,
    ) -> list[Any]:
        """Fit nets in place.

        The cost of publishing all nets is the composition of their costs.

        Parameters
        ----------
        nets : sequence of private nets
            They may differ in all parameters; no net may be given twice.
        X, y, groups
            As for `fit` of each.
        return_exceptions : bool, default=False
            Whether to return the exception of a net whose training fails (for example because
            weights are not finite) in its place, instead of raising it. Bad parameters are always
            raised.

        Returns
        -------
        list
            The nets, in their order.
        """
        nets = list(nets)
        self._check(nets)
        jobs = _jobs(nets, X, y, groups)
        ready = [job for job in jobs if isinstance(job, _Job)]
        try:
            self._train_all(ready)
        finally:
            for job in ready:
                job.net._publish()
        outcomes = [job.outcome if isinstance(job, _Job) else job for job in jobs]
        if not return_exceptions:
            for outcome in outcomes:
                if isinstance(outcome, BaseException):
                    raise outcome
        return outcomes

    def train(self, net: PrivateNet, run: TrainingRun) -> Any:
        """Train a single net on its own run, in closed form if its module has one.

        Parameters
        ----------
        net : PrivateNet
        run : TrainingRun

        Returns
        -------
        PrivateNet
            The net, fitted in place.
        """
        job = _Job(net, run)
        try:
            self._train_all([job], type(net).__name__)
        finally:
            net._publish()
        if isinstance(job.outcome, BaseException):
            raise job.outcome
        return job.outcome

    def _train_all(self, jobs: list[_Job], name: str = "PopulationTrainer") -> None:
        with Progress(name):
            with quiet_hooks(), exact_arithmetic():
                for batch in self._batches_of_nets(jobs):
                    self._train(batch)
            for job in jobs:
                if job.outcome is None:
                    job.outcome = _outcome(job.net._train_alone, job.run.restarted())

    def _check(self, nets: list[PrivateNet]) -> None:
        if self.max_memory is not None:
            check_integer(self.max_memory, name="max_memory", lower=1)
        for net in nets:
            check_kind(net, name="each of nets", kind=NetParameters, domain="a private net")
            net._check_parameters()
        if len({id(net) for net in nets}) < len(nets):
            raise ValueError("nets must be different objects; got one twice. Use clone.")

    def _batches_of_nets(self, jobs: list[_Job]) -> list[list[_Job]]:
        """Return lists of started jobs whose nets can be trained together.

        Jobs in no list are not started.
        """
        groups: dict[Any, list[_Job]] = {}
        for job in jobs:
            if not can_train_together(job.net):
                continue
            started = _outcome(job.start)
            if isinstance(started, BaseException):
                job.outcome = started
                continue
            key = grouping_key(job.net)
            if key is not None:
                job.started = started
                groups.setdefault((key, id(job.run.X)), []).append(job)
        ready = [job for group in groups.values() for job in group]
        counts = Counter(id(one) for job in ready for _, one in job.net.callbacks_)
        shared = {number for number, count in counts.items() if count > 1}
        unshared = [[job for job in group if not job.holds(shared)] for group in groups.values()]
        return [batch for group in unshared for batch in self._split(group)]

    def _split(self, jobs: list[_Job]) -> Iterator[list[_Job]]:
        """Yield lists of jobs of one structure that respect the limits of padding and memory."""
        batch: list[_Job] = []
        for job in sorted(jobs, key=lambda job: job.run.plan.batch_size):
            half = _memory(self.max_memory, torch.device(job.net.device)) // 2
            most = max(1, half // bytes_of_weights(job.net))
            longest = _LARGEST_PADDING * batch[0].run.plan.batch_size if batch else math.inf
            if len(batch) >= most or job.run.plan.batch_size > longest:
                yield batch
                batch = []
            batch.append(job)
        if batch:
            yield batch

    def _train(self, jobs: list[_Job]) -> None:
        """Train nets of one structure together; after a failure in halves, then one by one.

        Every attempt uses the same random draws, so that the result of a net is a function of its
        own draws, whatever happens to the others.
        """
        outcomes = _outcome(self._train_together, jobs)
        if isinstance(outcomes, BaseException) and len(jobs) > 1:
            middle = len(jobs) // 2
            self._train(jobs[:middle])
            self._train(jobs[middle:])
        elif isinstance(outcomes, list):
            for job, outcome in zip(jobs, outcomes, strict=True):
                job.outcome = outcome

    def _train_together(self, jobs: list[_Job]) -> list[Any] | None:
        """Return the results for nets of one structure; None without a closed form."""
        runs = [job.take_start() for job in jobs]
        first, device = jobs[0].net, torch.device(jobs[0].net.device)
        X, targets = runs[0].X, runs[0].targets
        modules = [job.net.module_.train() for job in jobs]
        with first._seeded_torch(np.random.default_rng(0)):
            gradients = stacked_gradients(
                modules,
                first._losses,
                torch.randn(X.shape[1:], device=device),
                torch.zeros(targets.shape[1:], dtype=targets.dtype, device=device),
                is_separable=type(first.criterion_) in _SEPARABLE_CRITERIA,
            )
        if gradients is None:
            return None
        replicas = [Replica(job.net, run) for job, run in zip(jobs, runs, strict=True)]
        memory = _memory(self.max_memory, device)
        if device.type != "cpu" and X.nbytes <= memory // 2:
            memory -= X.nbytes
            X = X.to(device)
            for run in runs:
                run.X = X
        limit = _record_limit(memory, replicas, gradients.numbers_per_record)
        NetBatch(replicas, gradients, limit).train()
        return [_outcome(r.net._finish, r.run, r.steps_taken) for r in replicas]


@dataclass(eq=False)
class _Job:
    """One net to be fitted.

    Attributes
    ----------
    net : PrivateNet
    run : TrainingRun
        The training run; it is never advanced, since every attempt works on a restarted copy.
    started : TrainingRun or None
        A started run that no training has used yet.
    outcome : object
        The fitted net, or the exception of its fit; None before the fit.
    """

    net: PrivateNet
    run: TrainingRun
    started: TrainingRun | None = None
    outcome: Any = None

    def start(self) -> TrainingRun:
        """Restart the net, always with the same random draws, and return the rest of them."""
        run = self.run.restarted()
        with self.net._seeded_torch(run.rng):
            self.net._start(run)
        return run

    def take_start(self) -> TrainingRun:
        """Return a started run; the one from the grouping is used by the first training."""
        started, self.started = self.started, None
        return self.start() if started is None else started

    def holds(self, callbacks: set[int]) -> bool:
        """Return whether one of the callbacks, given by their ids, belongs to the net."""
        return not callbacks.isdisjoint(id(one) for _, one in self.net.callbacks_)


def _jobs(nets: list[PrivateNet], X: Any, y: Any, groups: Any) -> list[_Job | BaseException]:
    """Return each net with its training run, or the exception by which it refuses the data."""
    jobs: list[_Job | BaseException] = []
    first: TrainingRun | None = None
    for net in nets:
        run = _outcome(net._training_run, X, y, groups)
        if isinstance(run, BaseException):
            jobs.append(run)
            continue
        # One copy of equal tensors is enough for all nets.
        first = first or run
        records, targets = _shared(first.X, run.X), _shared(first.targets, run.targets)
        jobs.append(_Job(net, replace(run, X=records, targets=targets)))
    return jobs


def _shared(first: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    # Without records, rows lie in parts, and each net will hold those of its own batches.
    is_same = len(first) > 0 and first.dtype == values.dtype and torch.equal(first, values)
    return first if is_same else values


def _record_limit(
    memory: int, replicas: list[Replica], numbers_per_record: int
) -> Callable[[int], int]:
    """Return how many records of each net fit into memory, as a function of the number of nets."""
    bytes_per_net = bytes_of_weights(replicas[0].net)
    bytes_per_record = 4 * _COPIES_OF_VALUES * max(numbers_per_record, 1)
    sizes = [replica.net.max_physical_batch_size for replica in replicas]
    largest = min((size for size in sizes if size is not None), default=None)
    is_on_cpu = torch.device(replicas[0].net.device).type == "cpu"

    def records_at_once(n_nets: int) -> int:
        left = memory - n_nets * bytes_per_net
        size = max(1, left // (n_nets * bytes_per_record))
        if is_on_cpu:
            size = min(size, max(_FEW_RECORDS, _CACHED_MEMORY // (n_nets * bytes_per_record)))
        return size if largest is None else min(size, largest)

    return records_at_once


def bytes_of_weights(net: PrivateNet) -> int:
    """Return the memory for a net's weights, and all that training keeps of their size."""
    return _COPIES_OF_WEIGHTS * sum(p.nbytes for p in net.module_.parameters())


def _memory(limit: int | None, device: torch.device) -> int:
    if limit is not None:
        return limit
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] // 2
    return _DEFAULT_MEMORY


def _outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function, or the exception that it raises."""
    try:
        return function(*arguments)
    except (NotPrivateError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as problem:
        # A module that ends by SystemExit must not publish a record's text with it.
        return problem


_COMPARED_BY_VALUE = (bool, int, float, str, bytes, type(None), type, torch.dtype, torch.device)
# Attributes that torch itself keeps in a module.
_TORCH_ATTRIBUTES = frozenset(vars(nn.Module()))


def can_train_together(net: PrivateNet) -> bool:
    """Return whether a net may be trained with others, judged before it is started.

    A subclass may change any step. A user's own callback may keep information from one training,
    so it must not be notified of two at once.
    """
    if not vars(type(net)).get("_can_train_together", False) or not may_have_layers(net.module):
        return False
    callbacks = net.callbacks if isinstance(net.callbacks, list | tuple) else []
    unnamed = [entry[1] if isinstance(entry, tuple) else entry for entry in callbacks]
    return all(LRScheduler in (type(one), one) or one is None for one in unnamed)


def grouping_key(net: PrivateNet) -> Hashable | None:
    """Return a key that is equal for nets of the same structure: modules, criteria and losses.

    None for a net that must be trained separately: its module is not a plain sequence of known
    layers, or has hooks, or its optimizer holds other parameters than its module.

    Parameters
    ----------
    net : PrivateNet
        A started net.

    Notes
    -----
    Theorem U2.

    Settings of layers are compared by value if they are plain, else by identity. In doubt two nets
    are not trained together, which only costs time.
    """
    if layers_of(net.module_) is None or not is_simple(net.criterion_):
        return None
    held = {id(p) for group in net.optimizer_.param_groups for p in group["params"]}
    trained = {id(p) for p in net.module_.parameters()}
    if held != trained or any(True for _ in net.criterion_.parameters()):
        return None
    parts = _structure_of(net.module_), _structure_of(net.criterion_)
    return type(net), str(net.device), *parts


def _settings(part: nn.Module) -> Iterator[tuple[str, Hashable]]:
    for key in sorted(set(vars(part)) - _TORCH_ATTRIBUTES):
        yield key, _key_of(vars(part)[key])


def _structure_of(module: nn.Module) -> Hashable:
    entries: list[Hashable] = [
        (name, type(part), tuple(_settings(part))) for name, part in module.named_modules()
    ]
    # One part in several places is a different structure from several equal parts.
    places: dict[int, int] = {}
    for name, part in module.named_modules(remove_duplicate=False):
        entries.append((name, places.setdefault(id(part), len(places))))
    for name, parameter in module.named_parameters():
        entries.append((name, tuple(parameter.shape), parameter.dtype, parameter.requires_grad))
    for name, buffer in module.named_buffers():
        entries.append((name, tuple(buffer.shape), buffer.dtype, *buffer.flatten().tolist()))
    return tuple(entries)


def _key_of(value: Any) -> Hashable:
    if isinstance(value, float):
        # By its digits: 0.0 differs from -0.0, and NaN is equal to itself.
        return float, value.hex()
    if isinstance(value, _COMPARED_BY_VALUE):
        return type(value), value
    if isinstance(value, list | tuple):
        return type(value), tuple(_key_of(each) for each in value)
    if type(value) is dict:
        return dict, tuple((_key_of(key), _key_of(each)) for key, each in value.items())
    return id(value)
