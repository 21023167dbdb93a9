"""Search spaces: lists, ranges and distributions, mapped to the unit cube and to optuna."""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from skdptune._formatting import shown, shown_names
from skdptune.base._shared import is_same
from skdptune.model_selection._cost import is_finite

FloatArray = NDArray[np.float64]

# At a level of 0 or 1 the quantile of a normal distribution is infinite.
_EDGE = 1e-9
_PLAIN = (str, bool, int, float, type(None))


class Interval:
    """Numbers between two ends, on a linear or logarithmic scale."""

    def __init__(self, low: float, high: float, *, log: bool) -> None:
        self.low, self.high, self.log = low, high, log
        self.is_integer = all(isinstance(end, numbers.Integral) for end in (low, high))
        # Each integer covers half a unit on either side.
        half = 0.5 if self.is_integer else 0.0
        self._bottom, self._top = self._scale(low - half), self._scale(high + half)

    def _scale(self, value: float) -> float:
        return math.log(value) if self.log else float(value)

    def value(self, unit: float) -> float:
        """Return the value for a number in the unit interval."""
        if unit in (0.0, 1.0):
            # The exponential of a logarithm is rounded.
            return self.high if unit else self.low
        scaled = self._bottom + unit * (self._top - self._bottom)
        number = math.exp(scaled) if self.log else scaled
        number = round(number) if self.is_integer else number
        return min(max(number, self.low), self.high)

    def unit(self, value: float) -> float:
        """Return the number in the unit interval that is mapped to a value."""
        return (self._scale(value) - self._bottom) / (self._top - self._bottom)

    def features(self, units: FloatArray) -> FloatArray:
        """Return unit-interval numbers, rounded to those of integers for integer values."""
        if not self.is_integer:
            return units[:, np.newaxis]
        scaled = self._bottom + units * (self._top - self._bottom)
        whole = np.clip(np.rint(np.exp(scaled) if self.log else scaled), self.low, self.high)
        scaled = np.log(whole) if self.log else whole
        return ((scaled - self._bottom) / (self._top - self._bottom))[:, np.newaxis]

    def levels(self, number: int) -> list[Any]:
        """Return evenly spaced values from end to end."""
        ends = np.linspace(self.unit(self.low), self.unit(self.high), number)
        return list(dict.fromkeys(self.value(float(unit)) for unit in ends))

    def distribution(self) -> Any:
        """Return optuna's distribution for the same interval."""
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.is_integer:
            return IntDistribution(int(self.low), int(self.high), log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)

    def to_optuna(self, value: Any) -> Any:
        """Return the value as a plain number: storages accept only these."""
        return value.item() if isinstance(value, np.generic) else value

    def from_optuna(self, value: Any) -> Any:
        """Return the value."""
        return int(value) if self.is_integer else float(value)

    def holds(self, value: Any) -> bool:
        """Return whether a value is between the ends, and an integer if the ends are."""
        return self.low <= float(value) <= self.high and _are_close(self.from_optuna(value), value)

    def describe(self) -> str:
        """Return a description of the ends and the scale."""
        return f"({shown(self.low)}, {shown(self.high)}, {'log' if self.log else 'even'})"


class Quantiles:
    """Numbers with a scipy distribution; the unit interval holds quantile levels."""

    def __init__(self, frozen: Any) -> None:
        self.frozen = frozen
        self._is_discrete = hasattr(frozen, "pmf")

    def value(self, unit: float) -> Any:
        """Return the quantile at a level."""
        quantile = self.frozen.ppf(min(max(unit, _EDGE), 1.0 - _EDGE))
        return int(quantile) if self._is_discrete else float(quantile)

    def unit(self, value: Any) -> float:
        """Return the level of a value; for a discrete value the middle of its levels."""
        level = float(self.frozen.cdf(value))
        return (level + float(self.frozen.cdf(value - 1))) / 2 if self._is_discrete else level

    def features(self, units: FloatArray) -> FloatArray:
        """Return the levels; for discrete values rounded to the middle of each value's levels."""
        if self._is_discrete:
            values = self.frozen.ppf(np.clip(units, _EDGE, 1.0 - _EDGE))
            units = (self.frozen.cdf(values) + self.frozen.cdf(values - 1)) / 2
        return units[:, np.newaxis]

    def levels(self, number: int) -> list[Any]:
        """Return the quantiles at the middles of equal parts of the unit interval."""
        units = (np.arange(number) + 0.5) / number
        return list(dict.fromkeys(self.value(float(unit)) for unit in units))

    def distribution(self) -> Any:
        """Return optuna's unit interval, since optuna stores levels."""
        from optuna.distributions import FloatDistribution

        return FloatDistribution(0.0, 1.0)

    def to_optuna(self, value: Any) -> float:
        """Return the level of a value."""
        return min(max(self.unit(value), 0.0), 1.0)

    def from_optuna(self, value: float) -> Any:
        """Return the quantile at a level."""
        return self.value(value)

    def holds(self, value: Any) -> bool:
        """Return whether a value is a quantile."""
        return _are_close(self.value(self.to_optuna(value)), value)

    def describe(self) -> str:
        """Return the distribution's name and arguments."""
        arguments = [*map(repr, self.frozen.args), *map(str, self.frozen.kwds.items())]
        return f"{self.frozen.dist.name}({', '.join(arguments)})"


class Categories:
    """Unordered values, with equal parts of the unit interval.

    Optuna stores their indices, or with ``by_value`` the values if storages can distinguish them.
    """

    def __init__(self, values: Sequence[Any], *, by_value: bool = False) -> None:
        self.values = list(values)
        # Storages cannot hold objects, and do not distinguish True from 1.
        self._by_value = by_value and _are_distinct(self.values)

    def value(self, unit: float) -> Any:
        """Return the category whose part of the interval contains a number."""
        return self.values[min(max(int(unit * len(self.values)), 0), len(self.values) - 1)]

    def unit(self, value: Any) -> float:
        """Return the middle of a category's part."""
        return (self._index(value) + 0.5) / len(self.values)

    def _index(self, value: Any) -> int:
        identical = (index for index, known in enumerate(self.values) if known is value)
        equal = (index for index, known in enumerate(self.values) if is_same(known, value))
        return next(itertools.chain(identical, equal))

    def features(self, units: FloatArray) -> FloatArray:
        """Return one column per category, so that all are at the same distance."""
        number = len(self.values)
        indices = np.clip((units * number).astype(int), 0, number - 1)
        # Two categories have distance 1, like the two ends of an interval.
        hot: FloatArray = np.eye(number)[indices] / math.sqrt(2)
        return hot

    def levels(self, number: int) -> list[Any]:
        """Return all categories."""
        return list(self.values)

    def distribution(self) -> Any:
        """Return optuna's categories: the values, or their indices."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.values if self._by_value else range(len(self.values)))

    def to_optuna(self, value: Any) -> Any:
        """Return a category, or its index."""
        index = self._index(value)
        return self.values[index] if self._by_value else index

    def from_optuna(self, value: Any) -> Any:
        """Return the category that optuna holds."""
        return value if self._by_value else self.values[int(value)]

    def holds(self, value: Any) -> bool:
        """Return whether a value is one of the categories."""
        return any(is_same(known, value) for known in self.values)

    def describe(self) -> str:
        """Return the categories; objects by type, since their text may differ by process."""
        texts = [repr(v) if isinstance(v, _PLAIN) else type(v).__name__ for v in self.values]
        return f"[{', '.join(texts)}]"


Dimension: TypeAlias = Interval | Quantiles | Categories


def _are_close(known: float, value: Any) -> bool:
    return math.isclose(float(known), float(value), rel_tol=1e-6)


def _are_distinct(values: list[Any]) -> bool:
    """Return whether all values are plain and different."""
    if not all(type(value) in _PLAIN for value in values):
        return False
    return len(set(values)) == len(values) and not any(value != value for value in values)


@dataclass(frozen=True)
class Drawn:
    """Values of one parameter that are drawn at random."""

    dimension: Dimension

    def rvs(self, random_state: np.random.RandomState) -> Any:
        """Return one value."""
        return self.dimension.value(random_state.random_sample())


class SearchSpace:
    """The parameters that a search may choose, mapped to the unit cube.

    Parameters
    ----------
    param_space : mapping of str
        For each parameter a list or array (categories), a tuple ``(low, high)`` or
        ``(low, high, "log")`` (integers when both ends are), or a frozen scipy distribution.
    by_value : bool
        Whether optuna holds categories by value where possible.

    Examples
    --------
    >>> from skdptune.model_selection._space import SearchSpace
    >>> space = SearchSpace({"rate": (0.0, 4.0), "n": (1, 4), "kind": ["a", "b"]})
    >>> space.from_unit([0.5, 0.99, 0.1])
    {'rate': 2.0, 'n': 4, 'kind': 'a'}
    """

    def __init__(self, param_space: Mapping[str, Any], *, by_value: bool = False) -> None:
        if not isinstance(param_space, Mapping):
            kind = type(param_space).__name__
            raise TypeError(f"param_space must be a mapping from names to dimensions; got {kind}.")
        if not param_space:
            raise ValueError("param_space must hold at least one parameter; got none.")
        self.dimensions: dict[str, Dimension] = {}
        for name, given in param_space.items():
            if not isinstance(name, str):
                raise TypeError(f"param_space's names must be strings; got {shown(name)}.")
            self.dimensions[name] = _dimension(name, given, by_value)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names."""
        return tuple(self.dimensions)

    def sample(self, rng: np.random.Generator) -> dict[str, Any]:
        """Return parameters drawn independently from the given distributions."""
        return self.from_unit(rng.random(len(self.dimensions)))

    def from_unit(self, units: Sequence[float] | FloatArray) -> dict[str, Any]:
        """Return the parameters at a point of the cube."""
        pairs = zip(self.dimensions.items(), units, strict=True)
        return {name: dimension.value(float(unit)) for (name, dimension), unit in pairs}

    def to_unit(self, params: Mapping[str, Any]) -> FloatArray:
        """Return the point of the cube that is mapped to parameters."""
        point = [dimension.unit(params[name]) for name, dimension in self.dimensions.items()]
        units: FloatArray = np.clip(np.array(point, dtype=float), 0.0, 1.0)
        return units

    def features(self, units: FloatArray) -> FloatArray:
        """Return the input of surrogates: numbers rounded to values, categories one-hot."""
        columns = zip(self.dimensions.values(), units.T, strict=True)
        features: FloatArray = np.hstack([d.features(column) for d, column in columns])
        return features

    @property
    def groups(self) -> list[int]:
        """The index of the dimension that each column of features belongs to."""
        widths = [d.features(np.array([0.5])).shape[1] for d in self.dimensions.values()]
        return [index for index, width in enumerate(widths) for _ in range(width)]

    def grid(self, points_per_dimension: int) -> list[dict[str, Any]]:
        """Return the grid of all categories and some values of each other dimension."""
        levels = [d.levels(points_per_dimension) for d in self.dimensions.values()]
        return [dict(zip(self.names, point, strict=True)) for point in itertools.product(*levels)]

    def grid_size(self, points_per_dimension: int) -> int:
        """Return the number of points of such a grid."""
        return math.prod(len(d.levels(points_per_dimension)) for d in self.dimensions.values())

    def distributions(self) -> dict[str, Any]:
        """Return the optuna distributions of the parameters."""
        return {name: dimension.distribution() for name, dimension in self.dimensions.items()}

    def to_optuna(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return optuna's representation of the given parameters."""
        return {n: d.to_optuna(params[n]) for n, d in self.dimensions.items() if n in params}

    def from_optuna(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that optuna represents."""
        return {n: d.from_optuna(params[n]) for n, d in self.dimensions.items() if n in params}

    def check(self, params: Mapping[str, Any]) -> None:
        """Raise unless all given parameters have values in the space."""
        for name, value in params.items():
            if name not in self.dimensions:
                raise ValueError(
                    f"params must be of param_space, which has {sorted(self.names)}; got "
                    f"{shown(name)}."
                )
            try:
                is_inside = self.dimensions[name].holds(value)
            except (TypeError, ValueError):
                is_inside = False
            if not is_inside:
                raise ValueError(
                    f"params[{shown(name)}] must be in param_space[{shown(name)}]; got "
                    f"{shown(value)}."
                )

    def accepts(self, params: Mapping[str, Any]) -> bool:
        """Return whether all given parameters have values in the space."""
        try:
            self.check(params)
        except ValueError:
            return False
        return True

    def holds(self, params: Mapping[str, Any]) -> bool:
        """Return whether all parameters are given and have values in the space."""
        return self.accepts(params) and set(params) == set(self.names)

    def costed(self) -> dict[str, Any]:
        """Return lists, and objects that draw at random, for computing the costs of fits."""
        return {
            name: dimension.values if isinstance(dimension, Categories) else Drawn(dimension)
            for name, dimension in self.dimensions.items()
        }

    def describe(self) -> str:
        """Return a description that is the same in every process."""
        return "; ".join(f"{name}: {d.describe()}" for name, d in self.dimensions.items())


# Optuna's name of the choice among several dicts; no parameter has such a name.
_WHICH = "(dict)"


class AdaptiveSpace:
    """The parameters that an adaptive search may choose: those of a dict, or of one in a list.

    Optuna's own distributions are accepted as well, and values are passed to optuna in its own
    distributions if these exist. With several dicts, optuna chooses one of them, and then only
    its parameters.
    """

    def __init__(self, param_space: Any) -> None:
        listed = param_space if isinstance(param_space, list | tuple) else [param_space]
        for each in listed or [param_space]:
            if not isinstance(each, Mapping):
                raise TypeError(
                    "param_space must be a dict from parameter names to values, or a list of "
                    f"dicts; got {shown(param_space)}."
                )
            for name, given in each.items():
                if is_finite(given) and len(given) == 0:
                    raise ValueError(
                        f"param_space[{shown(name)}] must not be empty; got {shown(given)}."
                    )
        self.spaces = [
            SearchSpace({name: _translated(given) for name, given in each.items()}, by_value=True)
            for each in listed
        ]
        self.names = tuple(dict.fromkeys(name for space in self.spaces for name in space.names))

    @property
    def has_conditions(self) -> bool:
        """Whether there are several dicts."""
        return len(self.spaces) > 1

    def suggest(self, trial: Any) -> dict[str, Any]:
        """Let optuna choose for a trial; return the parameters."""
        distributions = self.distributions()
        if self.has_conditions:
            _suggested(trial, _WHICH, distributions[_WHICH])
        place = trial.params.get(_WHICH, 0)
        for name in self.spaces[place].names:
            stored = self._stored(place, name)
            _suggested(trial, stored, distributions[stored])
        return self.from_optuna(trial.params)

    def distributions(self) -> dict[str, Any]:
        """Return optuna's distributions of all dicts."""
        found = {
            self._stored(place, name): distribution
            for place, space in enumerate(self.spaces)
            for name, distribution in space.distributions().items()
        }
        which = Categories(range(len(self.spaces))).distribution()
        return {_WHICH: which, **found} if self.has_conditions else found

    def _stored(self, place: int, name: str) -> str:
        """Return optuna's name of a parameter: one for each of its dimensions."""
        found = [space.dimensions[name].describe() for space in self.spaces if name in space.names]
        return name if len(set(found)) == 1 else f"{name} ({place})"

    def to_optuna(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return optuna's values of the given parameters, of the first dict with all of them."""
        place = next(place for place, space in enumerate(self.spaces) if space.accepts(params))
        found = self.spaces[place].to_optuna(params)
        stored = {self._stored(place, name): value for name, value in found.items()}
        return {_WHICH: place, **stored} if self.has_conditions else stored

    def from_optuna(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that optuna represents."""
        place = params.get(_WHICH, 0)
        space = self.spaces[place]
        stored = {name: self._stored(place, name) for name in space.names}
        return space.from_optuna({n: params[key] for n, key in stored.items() if key in params})

    def check(self, params: Mapping[str, Any]) -> None:
        """Raise unless one of the dicts has the given parameters with these values."""
        if not any(space.accepts(params) for space in self.spaces):
            # The dict that was probably meant.
            max(self.spaces, key=lambda space: len({*space.names} & {*params})).check(params)

    def own(self, known: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the known values of the first dict that holds them; None if there is none."""
        for space in self.spaces:
            found = {name: known[name] for name in space.names if name in known}
            if space.holds(found):
                return found
        return None

    def holds(self, params: Mapping[str, Any]) -> bool:
        """Return whether one of the dicts has exactly these parameters with these values."""
        return any(space.holds(params) for space in self.spaces)

    def costed(self) -> list[dict[str, Any]]:
        """Return lists, and objects that draw at random, for computing the costs of fits."""
        return [space.costed() for space in self.spaces]

    def describe(self) -> str:
        """Return a description that is the same in every process."""
        return " or ".join(space.describe() for space in self.spaces)


def _suggested(trial: Any, name: str, distribution: Any) -> None:
    """Let optuna choose one parameter of a trial."""
    if hasattr(distribution, "choices"):
        trial.suggest_categorical(name, distribution.choices)
        return
    is_float = type(distribution).__name__ == "FloatDistribution"
    suggest = trial.suggest_float if is_float else trial.suggest_int
    suggest(name, distribution.low, distribution.high, log=distribution.log)


def _dimension(name: str, given: Any, by_value: bool) -> Dimension:
    """Return the dimension of a parameter, or raise."""
    if isinstance(given, tuple):
        return _interval(name, given)
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = given.tolist()
    if isinstance(given, list):
        if not given:
            raise ValueError(
                f"param_space[{shown(name)}] must hold at least one category; got []."
            )
        return Categories(given, by_value=by_value)
    if callable(getattr(given, "ppf", None)) and hasattr(given, "dist"):
        return Quantiles(_finite(name, given))
    raise TypeError(
        f"param_space[{shown(name)}] must be a list or array of categories, a tuple (low, high) "
        f"or (low, high, 'log'), or a frozen scipy distribution; got {shown(given)}."
    )


def _interval(name: str, given: tuple[Any, ...]) -> Interval:
    domain = f"param_space[{shown(name)}] must be (low, high) or (low, high, 'log')"
    is_log = given[2:] == ("log",)
    if len(given) != 2 and not is_log:
        raise ValueError(f"{domain}; got {shown(given)}. Categories go into a list.")
    ends = given[:2]
    for end in ends:
        if isinstance(end, bool | np.bool_) or not isinstance(end, numbers.Real):
            raise TypeError(f"{domain} of numbers; got {shown(given)}. Categories go into a list.")
    if not (all(map(math.isfinite, ends)) and ends[0] < ends[1]):
        raise ValueError(f"{domain} with finite low < high; got {shown(given)}.")
    if is_log and ends[0] <= 0:
        raise ValueError(f"{domain} with low above 0 on a logarithmic scale; got {shown(given)}.")
    whole = all(isinstance(end, numbers.Integral) for end in ends)
    low, high = (int(end) if whole else float(end) for end in ends)
    return Interval(low, high, log=is_log)


def _finite(name: str, frozen: Any) -> Any:
    """Return a distribution whose quantiles are numbers, or raise."""
    quantiles = np.asarray(frozen.ppf([_EDGE, 0.5, 1.0 - _EDGE]), dtype=float)
    if quantiles.shape != (3,) or not np.isfinite(quantiles).all():
        text = f"{getattr(frozen.dist, 'name', 'one')}({shown_names(frozen.args)})"
        raise ValueError(
            f"param_space[{shown(name)}] must be a distribution with valid arguments; got {text}."
        )
    return frozen


# scipy's names of distributions that optuna also has.
_INTERVALS = {"uniform": (), "loguniform": ("log",), "reciprocal": ("log",), "randint": ()}


def _translated(given: Any) -> Any:
    """Return a distribution as a tuple or a list if it is equivalent to one."""
    if type(given).__module__ == "optuna.distributions":
        return _of_optuna(given)
    name = getattr(getattr(given, "dist", None), "name", None)
    if name not in _INTERVALS or (_INTERVALS[name] and (len(given.args) != 2 or given.kwds)):
        return given
    low, high = (float(end) for end in given.support())
    if name == "randint":
        low, high = int(low), int(high)
    is_interval = np.isfinite([low, high]).all() and low < high
    return (low, high, *_INTERVALS[name]) if is_interval else given


def _of_optuna(given: Any) -> Any:
    if hasattr(given, "choices"):
        return list(given.choices)
    low, high, step = given.low, given.high, given.step
    if step not in (None, 1) or low == high:
        count = 1 if low == high else int(round((high - low) / step)) + 1
        return [low + place * step if place else low for place in range(count)]
    return (low, high, "log") if given.log else (low, high)
