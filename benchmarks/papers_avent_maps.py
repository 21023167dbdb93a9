"""Figures 1 to 4 of Avent et al. (2020), maps of two oracles and fronts, for `papers_avent.py`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from papers_avent_examples import Example, front_of, predicted, proposals, volume
from papers_avent_searches import AXES
from papers_plots import BLACK, FOLDER, ORANGE, VERMILION, panels, save


def draw_map(axes: Any, example: Example, values: np.ndarray, title: str, log: bool) -> None:
    """Draw a map over both parameters."""
    first, second = ([p[name] for p in example.grid()[0]] for name in example.names)
    x, y = np.unique(first), np.unique(second)
    table = np.asarray(values).reshape(len(x), len(y)).T
    table = np.log10(np.maximum(table, 1e-4)) if log else table
    drawn = axes.contourf(x, y, table, levels=10, cmap="cividis")
    bar = axes.figure.colorbar(drawn, ax=axes)
    bar.ax.tick_params(labelsize=7)
    axes.set_xscale("log")
    if example.space[example.names[1]][-1] == "log":
        axes.set_yscale("log")
    axes.set_title(title, fontsize=9)
    axes.grid(False)


def name_axes(grid: list[Any], example: Example) -> None:
    """Name the axes of two maps and a front."""
    for axes in grid[:2]:
        axes.set_xlabel(example.names[0], fontsize=9)
        axes.set_ylabel(example.names[1], fontsize=9)
    grid[2].set_xlabel("ε", fontsize=9)
    grid[2].set_ylabel("error", fontsize=9)
    grid[2].set_xscale("log")
    grid[2].set_xlim(*example.shown)


def draw_front(axes: Any, points: np.ndarray, label: str, looks: dict[str, Any]) -> None:
    """Draw a front as steps."""
    found = front_of(points)
    axes.step(found[:, 0], found[:, 1], where="post", label=label, **looks)


def oracles(options: argparse.Namespace, make: Callable[[bool], Example], number: int) -> None:
    """Print the front of a dense grid, and draw it with both oracles."""
    example = make(options.quick)
    params, points = example.grid()
    print(f"{example.title}: a grid of {len(params):,} points")
    print(f"  hypervolume {volume(points):.3f} over ε, {volume(points, 'log'):.3f} over log ε")
    print("      ε at most   least error   " + "   ".join(example.names))
    kept = []
    for epsilon in (0.01, 0.1, 1.0, 10.0):
        allowed = np.flatnonzero(points[:, 0] <= epsilon)
        if len(allowed):
            best = allowed[np.argmin(points[allowed, 1])]
            values = "   ".join(f"{params[best][name]:.3g}" for name in example.names)
            print(f"      {epsilon:9g}   {points[best, 1]:11.3f}   {values}")
            kept.append(params[best])
    figure, grid = panels(3, "", "", width=3.0)
    draw_map(grid[0], example, points[:, 0], "log₁₀ ε", log=True)
    draw_map(grid[1], example, points[:, 1], "error", log=False)
    name_axes(grid, example)
    draw_front(grid[2], points, "true front", {"color": BLACK})
    on_front = [
        p for p, v in zip(params, points, strict=True) if (v == front_of(points)).all(1).any()
    ]
    for axes in grid[:2]:
        axes.plot(
            *([p[name] for p in on_front] for name in example.names), linestyle="", marker=".",
            color=VERMILION, markersize=4, label="its parameters",
        )  # fmt: skip
    save(figure, grid, options.output or FOLDER / f"avent-figure-{number}.png")


def surrogates(options: argparse.Namespace, make: Callable[[bool], Example], number: int) -> None:
    """Print how near surrogates of random points are, and draw them with the next evaluation."""
    example = make(options.quick)
    grid_params, truth = example.grid()
    params, points = example.sampled(20 if options.quick else 250)
    means, _, scales = predicted(example, params, points, grid_params)
    guessed, exact = scales.backward(means), scales.forward(truth)
    further = proposals(example, params, points, 2 if options.quick else 16)
    added = np.array([(example.privacy(p), 1.0 - example.utility(p)) for p in further])
    print(f"{example.title}: surrogates of {len(params)} random points")
    print(f"  root mean square error of log ε: {rms(means[:, 0] - exact[:, 0]):.3f}")
    print(f"  root mean square error of the error: {rms(guessed[:, 1] - truth[:, 1]):.4f}")
    print("  share of the grid's hypervolume, %       over ε   over log ε")
    counts = (0, 1, len(further))
    for count in counts:
        every = np.vstack([points, added[:count]])
        shares = [100 * volume(every, axis) / volume(truth, axis) for axis in AXES]
        print(
            f"    random points and {count:2d} by HVPoI        {shares[0]:7.2f} {shares[1]:10.2f}"
        )
    figure, grid = panels(3, "", "", width=3.0)
    draw_map(grid[0], example, guessed[:, 0], "log₁₀ ε, predicted", log=True)
    draw_map(grid[1], example, guessed[:, 1], "error, predicted", log=False)
    name_axes(grid, example)
    first, second = example.names
    for axes in grid[:2]:
        axes.plot(
            [p[first] for p in params], [p[second] for p in params], ".", color="w", markersize=2.5
        )
        axes.plot(
            further[0][first], further[0][second], "*", color=VERMILION, markersize=12,
            markeredgecolor="w", linestyle="", label="next by HVPoI",
        )  # fmt: skip
    grid[2].plot(*points.T, ".", color="0.6", markersize=3, label="random points")
    draw_front(grid[2], truth, "true front", {"color": BLACK})
    dashes = {"color": ORANGE, "linestyle": (0, (5, 1.5))}
    draw_front(grid[2], points, "front of the random points", dashes)
    grid[2].plot(*added[0], "*", color=VERMILION, markersize=12, linestyle="")
    grid[2].set_ylim(0.0, 1.0)
    save(figure, grid, options.output or FOLDER / f"avent-figure-{number}.png", columns=4)


def rms(values: np.ndarray) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(values**2)))
