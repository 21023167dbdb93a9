"""The axis of epsilons."""

from __future__ import annotations

import pytest

from skdptune.inspection._plotting import dress_epsilons
from tests.inspection.pictures import drawing

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("matplotlib.pyplot")


@pytest.mark.parametrize(
    ("ends", "labels"), [((0.15, 1.35), {"0.2", "0.5"}), ((0.1, 100.0), set())]
)
def test_short_axes_have_labels_between_powers_of_ten(
    ends: tuple[float, float], labels: set[str]
) -> None:
    with drawing():
        _, ax = matplotlib.pyplot.subplots()
        dress_epsilons(ax, ends)
        ticks = ax.get_xticklabels(minor=True)
        low, high = ax.get_xlim()
        shown = {tick.get_text() for tick in ticks if low <= tick.get_position()[0] <= high}
    assert shown - {""} == labels
    assert (low, high) == ends and ax.get_xscale() == "log"


def test_the_delta_is_named() -> None:
    with drawing():
        _, ax = matplotlib.pyplot.subplots()
        dress_epsilons(ax, (0.1, 1.0), 1e-6)
        assert ax.get_xlabel() == "ε at δ = 1e-06"
        dress_epsilons(ax, (0.1, 1.0))
        assert ax.get_xlabel() == "ε"
