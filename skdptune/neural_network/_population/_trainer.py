"""Training of all candidates of a search together."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from skdptune._validation import check_integer, check_kind
from skdptune.neural_network._noisy_steps import NotPrivateError, exact_arithmetic, quiet_hooks
from skdptune.neural_network._population._grouping import is_common, likeness, settings_of
from skdptune.neural_network._population._net_batch import Crew, Member
from skdptune.neural_network._population._stacked_gradients import stacked_gradients
from skdptune.neural_network._population._training_run import BatchTrainable, Course

_DEFAULT_MEMORY = 1 << 30
# Those that are sure to treat records one by one.
_KNOWN_CRITERIA = (
    nn.BCEWithLogitsLoss,
    nn.CrossEntropyLoss,
    nn.HuberLoss,
    nn.L1Loss,
    nn.MSELoss,
    nn.SmoothL1Loss,
)
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
    very different sizes, are trained in turn. Trained by itself, as by `fit`, is what cannot be
    followed or may not be shared: random outputs (dropout), layers that share parameters, hooks,
    callbacks other than schedules of the learning rate, subclasses of the nets. One that fails
    sends those beside it back to their starts, with the same coins.

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
        self, nets: Sequence[BatchTrainable], X: Any, y: Any, *, return_exceptions: bool = False
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
        courses = _courses(nets, X, y, outcomes)
        with quiet_hooks(), exact_arithmetic():
            for numbers in self._crews(nets, courses, outcomes):
                self._train(nets, numbers, courses, outcomes)
        for number, course in courses.items():
            if outcomes[number] is None:
                outcomes[number] = _outcome(nets[number]._fit_course, _fresh(course))
        if not return_exceptions:
            for outcome in outcomes:
                if isinstance(outcome, BaseException):
                    raise outcome
        return outcomes

    def _check(self, nets: list[Any]) -> None:
        if self.max_memory is not None:
            check_integer(self.max_memory, name="max_memory", lower=1)
        for net in nets:
            check_kind(net, name="each of nets", kind=BatchTrainable, domain="a private net")
            net._check_parameters()
        if len({id(net) for net in nets}) < len(nets):
            raise ValueError("nets must be different objects; got one twice. Use clone.")

    def _crews(
        self, nets: list[Any], courses: dict[int, Course], outcomes: list[Any]
    ) -> list[list[int]]:
        """Return the numbers of nets that can be trained together."""
        alike: dict[Any, list[int]] = {}
        for number, course in courses.items():
            if not is_common(nets[number]):
                continue
            # Grouping looks at a first start; training begins from the same coins once more.
            started = _outcome(_started, nets[number], course)
            if isinstance(started, BaseException):
                outcomes[number] = started
                continue
            key = likeness(nets[number])
            if key is not None:
                alike.setdefault((key, id(course.X)), []).append(number)
        shared = _holders_of_callbacks(nets, alike)
        groups = [[number for number in group if number not in shared] for group in alike.values()]
        return [crew for group in groups for crew in self._fitting(nets, courses, group)]

    def _fitting(
        self, nets: list[Any], courses: dict[int, Course], numbers: list[int]
    ) -> Iterator[list[int]]:
        """Yield parts of a group that are within filling and memory."""
        crew: list[int] = []
        for number in sorted(numbers, key=lambda number: courses[number].plan.batch_size):
            half = _memory(self.max_memory, torch.device(nets[number].device)) // 2
            most = max(1, half // bytes_of_weights(nets[number]))
            longest = _FILLING * courses[crew[0]].plan.batch_size if crew else math.inf
            if len(crew) >= most or courses[number].plan.batch_size > longest:
                yield crew
                crew = []
            crew.append(number)
        if crew:
            yield crew

    def _train(
        self,
        nets: list[Any],
        numbers: list[int],
        courses: dict[int, Course],
        outcomes: list[Any],
    ) -> None:
        """Train nets of one shape together; if one fails, in halves, and at last alone.

        Every try is made with the same coins, so that what becomes of a net is a function of its
        own, whatever happens to the others.
        """
        found = _outcome(self._trained, [nets[n] for n in numbers], [courses[n] for n in numbers])
        if isinstance(found, BaseException) and len(numbers) > 1:
            middle = len(numbers) // 2
            self._train(nets, numbers[:middle], courses, outcomes)
            self._train(nets, numbers[middle:], courses, outcomes)
        elif isinstance(found, list):
            for number, outcome in zip(numbers, found, strict=True):
                outcomes[number] = outcome

    def _trained(self, nets: list[Any], courses: list[Course]) -> list[Any] | None:
        """Return what became of nets of one shape; None if they cannot be trained together."""
        courses = [_started(net, course) for net, course in zip(nets, courses, strict=True)]
        first, device = nets[0], torch.device(nets[0].device)
        X, targets = courses[0].X, courses[0].targets
        modules = [net.module_.train() for net in nets]
        before = [settings_of(part) for part in (*modules, first.criterion_)]
        with first._torch_seeded(np.random.default_rng(0)):
            gradients = stacked_gradients(
                modules,
                first._losses,
                torch.randn(X.shape[1:], device=device),
                torch.zeros(targets.shape[1:], dtype=targets.dtype, device=device),
                is_known=type(first.criterion_) in _KNOWN_CRITERIA,
            )
        if gradients is None or before != [settings_of(p) for p in (*modules, first.criterion_)]:
            return None
        members = [Member(net, course) for net, course in zip(nets, courses, strict=True)]
        memory = _memory(self.max_memory, device)
        if device.type != "cpu" and X.nbytes <= memory // 2:
            memory -= X.nbytes
            X = X.to(device)
        room = _Room(memory, members, gradients.numbers_per_record)
        Crew(members, X, gradients, room.records_at_once).run()
        return [_outcome(m.net._settle, m.course.plan, m.taken) for m in members]


def _courses(nets: list[Any], X: Any, y: Any, outcomes: list[Any]) -> dict[int, Course]:
    """Return what each net is to train on, with coins of its own that can be tossed again."""
    courses: dict[int, Course] = {}
    first: Course | None = None
    for number, net in enumerate(nets):
        course = _outcome(net._course, X, y)
        if isinstance(course, BaseException):
            outcomes[number] = course
            continue
        rng = course.rng
        if isinstance(net.random_state, np.random.Generator):
            # One that several nets may have been given.
            rng = np.random.default_rng(rng.integers(0, 2**63, size=4).tolist())
        # One copy of what is the same for all is enough.
        first = first or course
        records, targets = _shared(first.X, course.X), _shared(first.targets, course.targets)
        courses[number] = replace(course, rng=rng, X=records, targets=targets)
    return courses


def _fresh(course: Course) -> Course:
    """Return a course from its beginning, with the coins that belong to it."""
    return replace(course, rng=copy.deepcopy(course.rng))


def _started(net: BatchTrainable, course: Course) -> Course:
    course = _fresh(course)
    with net._torch_seeded(course.rng):
        net._start(course)
    return course


def _holders_of_callbacks(nets: list[Any], alike: dict[Any, list[int]]) -> set[int]:
    """Return the nets that hold a callback that another net holds, too.

    It keeps what it learns of one training, and must not be told of two at once.
    """
    numbers = [number for group in alike.values() for number in group]
    held = {
        number: [id(callback) for _, callback in nets[number].callbacks_] for number in numbers
    }
    counts = Counter(one for ids in held.values() for one in ids)
    return {number for number, ids in held.items() if any(counts[one] > 1 for one in ids)}


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


def bytes_of_weights(net: BatchTrainable) -> int:
    """Return the memory for a net's weights, and all that training keeps of their size."""
    return _COPIES_OF_WEIGHTS * sum(p.nbytes for p in net.module_.parameters())


def _memory(limit: int | None, device: torch.device) -> int:
    if limit is not None:
        return limit
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] // 2
    return _DEFAULT_MEMORY


def _outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns, or the exception that it raises."""
    try:
        return function(*arguments)
    except (NotPrivateError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as problem:
        # A module that leaves by way of SystemExit must not take a record's text with it.
        return problem
