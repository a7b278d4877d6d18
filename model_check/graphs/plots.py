"""Plots of a state graph: how it grows, which actions make it, how its states are connected."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, MaxNLocator

from kspec.model_check.graphs.stats import GraphStats

BLUE, ORANGE, GRAY = "#2a6f97", "#d9782d", "#9aa0a6"
STYLE: dict[Any, Any] = {
    "figure.dpi": 110,
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 13,
    "axes.titlepad": 12,
    "axes.grid": True,
    "grid.color": "#e3e5e8",
    "axes.axisbelow": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "kspec",
}
LOG_FROM = 50
"""If the largest number is at least this many times the smallest, the axis is logarithmic."""

FEW = 12
"""Up to this many points are labelled."""


def write_plots(stats: GraphStats, folder: Path, suffix: str) -> list[Path]:
    """Draw each plot into a file of this suffix (`png`, `svg`); return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with mpl.rc_context(STYLE):
        for name, draw, height in _plots(stats):
            figure, axes = pyplot.subplots(figsize=(9, height), layout="constrained")
            draw(axes, stats)
            path = folder / f"{name}.{suffix}"
            figure.savefig(path, metadata={"Date": None} if suffix == "svg" else None)
            pyplot.close(figure)
            written.append(path)
    return written


def _plots(stats: GraphStats) -> list[tuple[str, Callable[[Axes, GraphStats], None], float]]:
    plots: list[tuple[str, Callable[[Axes, GraphStats], None], float]] = [
        ("levels", _levels, 4.6),
        ("actions", _actions, 1.6 + 0.38 * len(stats.actions)),
        ("degrees", _degrees, 4.6),
    ]
    if stats.states_in_cycles:
        plots.append(("components", _components, 4.6))
    return plots


def _title(axes: Axes, stats: GraphStats, subject: str) -> None:
    axes.set_title(f"{stats.graph.model.name}: {subject}")


def _levels(axes: Axes, stats: GraphStats) -> None:
    levels = stats.graph.levels
    axes.bar(range(len(levels)), levels, width=0.85, color=BLUE)
    _title(axes, stats, f"{stats.graph.states:,} states by their distance from the initial state")
    axes.set_xlabel("distance from the initial state (steps)")
    axes.set_ylabel("states")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(visible=False, axis="x")
    widest = max(range(len(levels)), key=levels.__getitem__)
    axes.margins(y=0.14)
    axes.annotate(
        f"{levels[widest]:,} states, {widest} steps away",
        (widest, levels[widest]),
        xytext=(0, 5),
        textcoords="offset points",
        ha="center",
    )


def _actions(axes: Axes, stats: GraphStats) -> None:
    ranked = sorted(stats.actions.items(), key=lambda entry: entry[1])
    names, times = [name for name, _ in ranked], [count for _, count in ranked]
    bars = axes.barh(names, times, color=[BLUE if count else GRAY for count in times], height=0.7)
    axes.bar_label(bars, [f"{count:,}" if count else "never taken" for count in times], padding=4, fontsize=10)
    taken = [count for count in times if count]
    if taken and max(taken) / min(taken) >= LOG_FROM:
        axes.set_xscale("log")
        axes.set_xlim(left=0.8 * min(taken) if min(taken) > 1 else 0.5)
        axes.set_xlabel("times taken, over all states (logarithmic)")
    else:
        axes.set_xlabel("times taken, over all states")
    axes.margins(x=0.14)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    _title(axes, stats, f"{sum(times):,} transitions by action")


def _degrees(axes: Axes, stats: GraphStats) -> None:
    for degrees, color, marker, label in (
        (stats.out_degrees, BLUE, "o", "transitions out of a state"),
        (stats.in_degrees, ORANGE, "s", "transitions into a state"),
    ):
        met = [(degree, number) for degree, number in enumerate(degrees) if number]
        mean = sum(degree * number for degree, number in met) / max(1, sum(number for _, number in met))
        axes.plot(*zip(*met, strict=True), color=color, marker=marker, markersize=5, label=f"{label} (mean {mean:.2f})")
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlabel("transitions")
    axes.set_ylabel("states (logarithmic)")
    axes.legend(frameon=False)
    _title(axes, stats, "in how many ways a state is left and entered")


def _components(axes: Axes, stats: GraphStats) -> None:
    cycles = {size: number for size, number in stats.components.items() if size > 1}
    axes.scatter(list(cycles), list(cycles.values()), color=BLUE, s=42, zorder=3)
    axes.vlines(list(cycles), 0.7, list(cycles.values()), color=BLUE, alpha=0.5, linewidth=2)
    for size, number in list(cycles.items()) if len(cycles) <= FEW else []:
        axes.annotate(f"{number:,}", (size, number), xytext=(8, 0), textcoords="offset points", va="center")
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.7, top=3 * max(cycles.values()))
    if max(cycles) / min(cycles) >= LOG_FROM:
        axes.set_xscale("log")
        axes.set_xlabel("states in the component (logarithmic)")
    else:
        axes.set_xlim(left=0, right=max(cycles) + 1)
        axes.set_xlabel("states in the component")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_ylabel("components (logarithmic)")
    _title(axes, stats, f"{stats.states_in_cycles:,} states lie on cycles: the components they form")
