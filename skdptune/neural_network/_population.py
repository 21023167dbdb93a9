"""Training of all candidates of a search together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import torch

from skdptune.accounting._checks import check_integer, check_kind
from skdptune.neural_network._course import Course
from skdptune.neural_network._crew import Crew, Member
from skdptune.neural_network._likeness import likeness
from skdptune.neural_network._noisy_steps import NotPrivateError, quiet_hooks
from skdptune.neural_network._private_net import PrivateNet
from skdptune.neural_network._stacked_gradients import stacked_gradients

_DEFAULT_MEMORY = 1 << 30
# Weights, their sums, noise and gradients, and what optimizers keep of each.
_COPIES_OF_WEIGHTS = 7
# Copies of what a pass makes: values, slopes and scaled slopes.
_COPIES_OF_VALUES = 2
# Batches may be filled up to no more than this many times their length.
_FILLING = 2.0


class PopulationTrainer:
    """Trains many private nets at once: stacked weights, and batches and noise of each its own.

    Parameters
    ----------
    max_memory : int, optional
        Bytes of memory, on the device of the nets, for all that training adds to the data
        themselves. By default 2^30 on a CPU, and half of what is free on a GPU. A net that needs
        more by itself is trained alone, record by record.

    Notes
    -----
    Every net comes out with the law that `fit` gives it by itself, and with a seed with the same
    weights but for rounding: its batches are drawn by its own coins, its gradients clipped to
    its own norm, and its noise comes from its own generator. Given the data the nets are
    independent, as theorems on private selection need runs to be.

    Gradients are found in closed form for sequences of linear layers, convolutions and known
    layers without parameters (as in `MLP`, `SmallCNN`, `LogisticHead`), and by torch.func for
    other modules; ``grad_sample_mode`` is not looked at. Nets of different shapes, and batches of
    very different sizes, are trained in turn; so is each net that torch.func cannot follow.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skdptune.neural_network import DPNeuralNetClassifier, PopulationTrainer
    >>> X, y = load_digits(return_X_y=True)
    >>> nets = [
    ...     DPNeuralNetClassifier(epsilon=4.0, classes=range(10), lr=rate, random_state=0)
    ...     for rate in (0.1, 0.5, 2.0)
    ... ]
    >>> nets = PopulationTrainer().fit(nets, X / 16.0, y)
    >>> nets[2].score(X / 16.0, y) > nets[0].score(X / 16.0, y)
    True
    """

    def __init__(self, *, max_memory: int | None = None) -> None:
        self.max_memory = max_memory

    def fit(
        self, nets: Sequence[PrivateNet], X: Any, y: Any, *, return_exceptions: bool = False
    ) -> list[Any]:
        """Fit nets in place, each as its own `fit` would.

        What all nets cost together is the composition of what each costs, unless a selection
        among them is all that is shown.

        Parameters
        ----------
        nets : sequence of private nets
            They may differ in all parameters; one may not be given twice.
        X, y
            As for `fit` of each.
        return_exceptions : bool, default=False
            Whether a net whose training fails (as by weights that are not finite) stands in the
            result by its exception, in place of raising it. Bad parameters are raised always.

        Returns
        -------
        list
            The nets, in their order.
        """
        nets = list(nets)
        self._check(nets)
        outcomes: list[Any] = [None] * len(nets)
        with ExitStack() as stack:
            stack.enter_context(quiet_hooks())
            started = self._start(nets, X, y, outcomes, stack)
            for numbers in _crews(nets, started, self.max_memory):
                trained = _outcome(self._train, nets, numbers, started, outcomes)
                if trained is not True:
                    # What fails one must not fail the others: each by itself, from its start.
                    for number in numbers:
                        outcomes[number] = _outcome(nets[number].fit, X, y)
        if not return_exceptions:
            for outcome in outcomes:
                if isinstance(outcome, Exception):
                    raise outcome
        return outcomes

    def _check(self, nets: list[Any]) -> None:
        if self.max_memory is not None:
            check_integer(self.max_memory, name="max_memory", lower=1)
        for net in nets:
            check_kind(net, name="each of nets", kind=PrivateNet, domain="a private net")
            net._check_parameters()
        if len({id(net) for net in nets}) < len(nets):
            raise ValueError("nets must be different objects; got one twice. Use clone.")

    def _start(
        self, nets: list[Any], X: Any, y: Any, outcomes: list[Any], stack: ExitStack
    ) -> dict[int, Course]:
        """Return the courses of the nets that could be started."""
        started: dict[int, Course] = {}
        first: Course | None = None
        for number, net in enumerate(nets):
            try:
                course = net._course(X, y)
                # One copy of what is the same for all is enough.
                first = first or course
                started[number] = course = replace(
                    course,
                    X=_shared(first.X, course.X),
                    targets=_shared(first.targets, course.targets),
                )
                seeded = net._torch_seeded(course.rng)
                if len(started) == 1:
                    # For what modules draw in training, such as dropout.
                    stack.enter_context(seeded)
                    net._start(course)
                else:
                    with seeded:
                        net._start(course)
            except Exception as problem:
                outcomes[number] = problem
                started.pop(number, None)
        return started

    def _train(
        self,
        nets: list[Any],
        numbers: list[int],
        started: dict[int, Course],
        outcomes: list[Any],
    ) -> bool:
        """Train nets of one shape together, and note what became of each; say if they could be."""
        modules = [nets[number].module_.train() for number in numbers]
        first = nets[numbers[0]]
        device = torch.device(first.device)
        X, targets = (getattr(started[numbers[0]], name) for name in ("X", "targets"))
        gradients = stacked_gradients(
            modules,
            first._losses,
            torch.rand(X.shape[1:], device=device),
            torch.zeros(targets.shape[1:], dtype=targets.dtype, device=device),
        )
        if gradients is None:
            return False
        members = [Member(nets[number], started[number]) for number in numbers]
        memory = _memory(self.max_memory, device)
        if device.type != "cpu" and X.nbytes <= memory // 2:
            memory -= X.nbytes
            X = X.to(device)
        room = _Room(memory, members, gradients.numbers_per_record)
        Crew(members, X, gradients, room.records_at_once).run()
        for number, member in zip(numbers, members, strict=True):
            outcomes[number] = _outcome(member.net._settle, member.course.plan, member.taken)
        return True


def _shared(first: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return first if first.dtype == values.dtype and torch.equal(first, values) else values


class _Room:
    """How many records of each net there is memory for."""

    def __init__(self, memory: int, members: list[Member], numbers_per_record: int) -> None:
        self._memory = memory
        self._member = bytes_of_weights(members[0].net)
        self._record = 4 * _COPIES_OF_VALUES * max(numbers_per_record, 1)
        largest = [member.net.max_physical_batch_size for member in members]
        self._largest = min((size for size in largest if size is not None), default=None)

    def records_at_once(self, members: int) -> int:
        left = self._memory - members * self._member
        size = max(1, left // (members * self._record))
        return size if self._largest is None else min(size, self._largest)


def bytes_of_weights(net: PrivateNet) -> int:
    """Return the memory for a net's weights, and all that training keeps of their size."""
    return _COPIES_OF_WEIGHTS * sum(p.nbytes for p in net.module_.parameters())


def _memory(limit: int | None, device: torch.device) -> int:
    if limit is not None:
        return limit
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] // 2
    return _DEFAULT_MEMORY


def _crews(nets: list[Any], started: dict[int, Course], limit: int | None) -> Iterator[list[int]]:
    """Yield the numbers of nets that can be trained together, within filling and memory."""
    alike: dict[Any, list[int]] = {}
    holders = Counter(
        id(callback) for number in started for _, callback in nets[number].callbacks_
    )
    for number in started:
        # A callback keeps what it learns of one training, and must not be told of two at once.
        shares = any(holders[id(callback)] > 1 for _, callback in nets[number].callbacks_)
        key = likeness(nets[number]), id(started[number].X), number if shares else None
        alike.setdefault(key, []).append(number)
    for numbers in alike.values():
        numbers.sort(key=lambda number: started[number].plan.batch_size)
        half = _memory(limit, torch.device(nets[numbers[0]].device)) // 2
        most = max(1, half // bytes_of_weights(nets[numbers[0]]))
        crew: list[int] = []
        for number in numbers:
            size = started[number].plan.batch_size
            if crew and (len(crew) == most or size > _FILLING * started[crew[0]].plan.batch_size):
                yield crew
                crew = []
            crew.append(number)
        yield crew


def _outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns, or the exception that it raises."""
    try:
        return function(*arguments)
    except NotPrivateError:
        raise
    except Exception as problem:
        return problem
