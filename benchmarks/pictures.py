"""Draw tables of docs/benchmarks.md, so that each picture shows the numbers of its table.

    python benchmarks/pictures.py                  all pictures, into docs/images/benchmarks
    python benchmarks/pictures.py searches nets    some of them

Each picture's description contains its numbers, which a test compares with the page. The picture
of the front page also has a version for dark pages.
"""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
FOLDER = ROOT / "docs" / "images" / "benchmarks"
OURS, OTHERS = "#0072B2", "#BBBBBB"
DARK_TOO = ("headline",)
# Colours of a picture on a dark page, and the share of white that lines then get.
_ON_DARK = dict.fromkeys(
    ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#CED6DD"
)
_WHITE = 0.35
# Characters in a line of the name of a bar.
_BAR_NAME = 24
# Okabe and Ito's colours; markers and dashes differ as well, for prints in grey.
LOOKS: list[tuple[str, str, Any]] = [
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", (0, (6, 2))),
    ("#009E73", "^", (0, (2, 1.5))),
    ("#CC79A7", "D", (0, (6, 2, 1.5, 2))),
    ("#E69F00", "v", (0, (1, 1))),
    ("#7F7F7F", "X", (0, (4, 1, 1, 1, 1, 1))),
]
EPSILONS = [0.5, 1.0, 2.0, 4.0]
Rows = list[list[str]]
HVPOI = "hvpoi (the paper's)"


def table_of(heading: str, first_cell: str) -> Rows:
    """Return the table of a section whose header begins with a cell, the header first.

    Empty first cells take the value above them; bold and code marks are dropped.
    """
    section = re.split(rf"(?m)^#+ {re.escape(heading)}$", PAGE.read_text("utf-8"))[1]
    section = re.split(r"(?m)^#+ ", section)[0]
    lines = section.splitlines()
    place = next(
        n for n, line in enumerate(lines) if line.startswith(f"| {first_cell}".rstrip() + " |")
    )
    rows: Rows = []
    for line in lines[place:]:
        if not line.startswith("|"):
            break
        cells = [re.sub(r"[*`]", "", cell).strip() for cell in line.strip("|").split("|")]
        if set("".join(cells)) <= set("-: "):
            continue
        if not cells[0] and rows:
            cells[0] = rows[-1][0]
        rows.append(cells)
    return rows


def number(cell: str) -> float:
    """Return the first number of a cell."""
    found = re.search(r"[−-]?\d[\d,]*\.?\d*|[−-]?\.\d+", cell)
    if found is None:
        raise ValueError(f"no number in {cell!r}")
    return float(found[0].replace("−", "-").replace(",", ""))


def numbers_in(cell: str) -> list[float]:
    """Return the numbers of a cell before its standard error."""
    return [float(found) for found in re.findall(r"\d+\.\d+", cell.partition("±")[0])]


@dataclass(frozen=True)
class Bars:
    """Horizontal bars; those whose label begins with a word of `ours` stand out."""

    title: str
    label: str
    values: dict[str, float]
    ours: tuple[str, ...] = ()
    is_log: bool = False

    def draw(self, plt: Any) -> Any:
        """Return the figure; its text is legible on a telephone."""
        labels = [textwrap.fill(name, _BAR_NAME) for name in self.values][::-1]
        lines = sum(label.count("\n") + 1 for label in labels)
        figure, ax = plt.subplots(
            figsize=(5.6, 0.9 + 0.16 * (lines + len(labels))), layout="constrained"
        )
        names, values = list(self.values)[::-1], list(self.values.values())[::-1]
        colours = [OURS if name.startswith(self.ours) else OTHERS for name in names]
        if not self.ours:
            colours = [OTHERS] * len(names)
        ax.barh(range(len(names)), values, color=colours, height=0.65)
        ax.set_yticks(range(len(names)), labels)
        for place, value in enumerate(values):
            ax.text(value, place, f" {value:,g}", va="center", fontsize="small")
        if self.is_log:
            ax.set_xscale("log")
            ax.set_xlim(min(values) / 2.0, 2.5 * max(values))
        else:
            ax.set_xlim(0.0, 1.2 * max(values))
        ax.set_xlabel(self.label)
        _finish(ax, self.title)
        return figure


@dataclass(frozen=True)
class Lines:
    """Lines over numbers, as epsilon."""

    title: str
    xlabel: str
    ylabel: str
    x: list[float]
    values: dict[str, list[float]]
    is_log: bool = True

    def draw(self, plt: Any) -> Any:
        """Return the figure; its text is legible on a telephone."""
        figure, ax = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
        is_dark = plt.rcParams["text.color"] == _ON_DARK["text.color"]
        for (name, values), (colour, marker, dashes) in zip(
            self.values.items(), LOOKS, strict=False
        ):
            shade = _lighter(colour) if is_dark else colour
            ax.plot(self.x, values, color=shade, marker=marker, ls=dashes, label=name)
        if self.is_log:
            ax.set_xscale("log")
        ax.set_xticks(self.x, [f"{value:g}" for value in self.x])
        ax.minorticks_off()
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel)
        figure.legend(frameon=False, fontsize="medium", loc="outside lower left", ncols=2)
        _finish(ax, self.title)
        return figure


def _lighter(colour: str) -> str:
    """Return a colour mixed with white, for dark pages."""
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(part + _WHITE * (255 - part)):02X}" for part in parts)


def _finish(ax: Any, title: str) -> None:
    ax.figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)


# What is drawn ------------------------------------------------------------------------------


def headline() -> Lines:
    """Accuracy on a9a: the user's default, no tuning, naive tuning, diffprivlib, no privacy."""
    header, *rows = table_of("Utility: defaults, searches and peers", "data")
    (row,) = (row for row in rows if row[0] == "a9a")
    ways = {
        "tuned by skdptune": "search",
        "untuned": "default",
        "diffprivlib, best of 8": "diffprivlib",
        "no privacy": "no privacy",
    }
    found = {way: numbers_in(row[header.index(name)]) for way, name in ways.items()}
    found["no privacy"] *= len(EPSILONS)
    (naive,) = (
        row
        for row in table_of("Searches", "Adult (a9a)")
        if row[0].startswith("naive composition")
    )
    found["naive tuning, 20 fits"] = [number(cell) for cell in naive[1:]]
    return Lines("Adult (a9a), 32,561 records", "ε in all", "test accuracy (%)", EPSILONS, found)


def searches() -> Bars:
    """Noise of the final fit of a search of 20 candidates."""
    rows = table_of("Searches", "way")
    place = rows[0].index("1")
    found = {
        row[0].split(" (")[0].replace(", all records", ""): number(row[place])
        for row in rows[1:]
        if row[1] in ("20", "any") and "noise_limit" not in row[0]
    }
    return Bars(
        "What tuning over 20 candidates costs, ε = 1",
        "noise of the final fit, relative to one untuned fit",
        dict(sorted(found.items(), key=lambda pair: pair[1])),
        ("full table", "DPRandomSearchCV", "noisy maximum", "envelope"),
    )


def digits() -> Lines:
    """Accuracy of searches on digits."""
    rows = table_of("Searches", "digits (1,347 rows)")
    shown = {
        'ours (n_iter_distribution="auto")': "DPRandomSearchCV",
        "untuned (the library's defaults)": "untuned",
        "Koskela-Kulkarni 1 (variant 1, their bound and rule)": "Koskela and Kulkarni",
        "Papernot-Steinke (on all data)": "Papernot and Steinke",
        "naive composition (a grid of 20, all released)": "naive composition",
        "non-private tuning (the ceiling: 20 candidates, 3 folds, not charged)": "not charged",
    }
    by_name = {row[0]: [number(cell) for cell in row[1:]] for row in rows[1:]}
    return Lines(
        "DP-SGD tuned over 20 candidates, digits",
        "ε in all",
        "test accuracy (%)",
        [0.5, 1.0, 2.0, 4.0],
        {label: by_name[name] for name, label in shown.items()},
    )


def steps() -> Bars:
    """Time of a step of DP-SGD."""
    rows = table_of("Linear models: speed", "ours")
    peers = {
        f"Opacus, {name}": number(cell.split("(")[1])
        for name, cell in zip(("hooks", "ghost"), rows[0][2:], strict=True)
    }
    ours = {f"skdptune, {row[0]}": number(row[1]) for row in rows[1:]}
    return Bars(
        "A step of linear DP-SGD on 256 of 123 columns, one thread",
        "µs (logarithmic)",
        ours | peers,
        ("skdptune",),
        is_log=True,
    )


def regressions() -> Lines:
    """Errors of linear regressions on elevators."""
    rows = [row for row in table_of("Linear regressions", "data (no privacy)") if row[0]]
    chosen = [row for row in rows if row[0].startswith("elevators")]
    epsilons = [number(cell.replace("ε = ", "")) for cell in rows[0][2:]]
    values: dict[str, list[float]] = {}
    for row in chosen:
        names = re.split(r" / ", row[1])
        for place, name in enumerate(names):
            values[name] = [number(re.split(r" / ", cell)[place]) for cell in row[2:]]
    shown = {
        "noisy sums, default": "DPRidge",
        "AdaSSP": "AdaSSP",
        "PTR, alpha 2.5 (untuned)": "PTR, one sample",
        "OPS-balanced": "OPS-balanced",
        "output perturbation": "output perturbation",
    }
    return Lines(
        "Linear regression, elevators (.221 without privacy)",
        "ε",
        "squared error / variance",
        epsilons,
        {label: values[name] for name, label in shown.items()},
    )


def boosting() -> Lines:
    """Accuracy of both explainable boosting machines on Adult."""
    header, *rows = table_of("Explainable boosting machines", "")
    return Lines(
        "Explainable boosting, Adult from its raw columns, untuned",
        "ε",
        "test accuracy",
        [number(cell.replace("ε = ", "")) for cell in header[1:]],
        {row[0]: [number(cell) for cell in row[1:]] for row in rows},
    )


def choices() -> Bars:
    """Regret of ways to choose among 100 candidates."""
    rows = table_of("Doubling threshold search", "utilities")
    row = next(row for row in rows if row[0] == "uniform" and row[1:3] == ["100", "1"])
    found = dict(zip(rows[0][3:], map(number, row[3:]), strict=True))
    return Bars(
        "Choosing one of 100 candidates, ε = 1, uniform utilities",
        "mean regret",
        dict(sorted(found.items(), key=lambda pair: pair[1])),
        ("permute", "noisy max"),
    )


def nets() -> Bars:
    """Time to train 32 nets."""
    rows = table_of("Many candidates at once", "data")
    found, data = {}, ""
    for row in rows[1:]:
        data = f"{row[0].rsplit(', ', 1)[0]}, {row[1]} a batch" if row[1] else data
        found[f"{row[2].split(' (')[0]}: {data}"] = number(row[3])
    return Bars(
        "Training 32 nets of 120 hidden units, one thread",
        "seconds (logarithmic)",
        found,
        ("ours",),
        is_log=True,
    )


def pareto() -> Lines:
    """Hypervolume of a Pareto search over its evaluations."""
    rows = table_of("Private training on Adult", "problem")
    chosen = [row for row in rows[1:] if row[0] == "LogReg + SGD"]
    chosen.sort(key=lambda row: ("auto", "random").index(row[1]) if row[1] != HVPOI else 2)
    return Lines(
        "Pareto fronts of logistic regression on Adult",
        "evaluations",
        "hypervolume",
        [number(cell) for cell in rows[0][2:7]],
        {row[1]: [number(cell) for cell in row[2:7]] for row in chosen},
    )


PICTURES: dict[str, Callable[[], Bars | Lines]] = {
    "headline": headline,
    "searches": searches,
    "digits": digits,
    "steps": steps,
    "regressions": regressions,
    "boosting": boosting,
    "choices": choices,
    "nets": nets,
    "pareto": pareto,
}


def numbers_of(picture: Bars | Lines) -> str:
    """Return what a picture draws, as text."""
    return json.dumps(vars(picture), ensure_ascii=True)


def main() -> None:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pictures", nargs="*", metavar="picture", help=", ".join(PICTURES))
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.pictures or PICTURES:
        picture = PICTURES[name]()
        looks = {f"{name}.png": {}} | ({f"{name}-dark.png": _ON_DARK} if name in DARK_TOO else {})
        for file_name, colours in looks.items():
            file = options.folder / file_name
            with plt.rc_context(colours):
                picture.draw(plt).savefig(
                    file,
                    dpi=140,
                    transparent=bool(colours),
                    metadata={"Description": numbers_of(picture)},
                )
            plt.close("all")
            print(file, file.stat().st_size)


if __name__ == "__main__":
    main()
