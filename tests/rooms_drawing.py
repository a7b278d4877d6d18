"""The drawing of the rooms, made from the imports: `python -m tests.rooms_drawing FILE.svg`.

A room stands above all rooms that it imports from; an arrow leads to each of them that no longer way leads to.
"""

import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.places import REPOSITORY
from tests.rooms import Graph, Tree, graph_of, read_tree, room_of, without_detours


class Box(NamedTuple):
    """A room as it is drawn: its middle, from the left, in pixels, and what it is called."""

    x: int
    title: str


VALUES = "spec.values"
BOXES = {
    VALUES: Box(250, "values, step, metadata, mutation"),
    "spec.log": Box(250, "log"),
    "spec.messages": Box(250, "messages"),
    "spec.broker.rules": Box(110, "broker/rules"),
    "spec.broker": Box(110, "broker"),
    "spec.controller.rules": Box(290, "controller/rules"),
    "spec.controller": Box(290, "controller"),
    "spec.coordinator": Box(440, "coordinator"),
    "spec.zookeeper": Box(150, "zookeeper"),
    "spec.releases": Box(300, "releases"),
    "spec.published": Box(440, "published"),
    "model_check.core": Box(650, "core"),
    "model_check.traces": Box(650, "traces"),
    "model_check.engines": Box(570, "engines"),
    "model_check.graphs": Box(570, "graphs"),
    "model_check.models": Box(730, "models"),
    "model_check.reports": Box(650, "reports"),
    "model_check.cli": Box(730, "cli"),
    "proofs.laws": Box(1000, "laws"),
    "proofs.symbolic": Box(930, "symbolic"),
    "proofs.induction": Box(870, "induction"),
    "proofs.refutation": Box(800, "refutation"),
    "proofs.theorems": Box(910, "theorems"),
    "proofs.commands": Box(910, "commands"),
}
PARTS_OF_VALUES = ("spec.step", "spec.metadata", "spec.mutation")
COLOURS = {"spec": ("#e8f1fa", "#2b6cb0"), "model_check": ("#eaf6ec", "#2f855a"), "proofs": ("#fbf0e4", "#b7791f")}
TITLES = {"spec": 250, "model_check": 650, "proofs": 910}
WIDTH, FLOOR, TOP, HALF, HEIGHT = 1070, 60, 56, 62, 32
WIDE_HALF = 118


def box_of(module: str) -> str | None:
    """The box in which a module is drawn."""
    room = room_of(module, (*BOXES, *PARTS_OF_VALUES))
    return VALUES if room in PARTS_OF_VALUES else room


def arrows_of(tree: Tree) -> Graph:
    """Which room imports from which."""
    pairs = ((box_of(found.source), box_of(found.target)) for found in tree.inner_imports())
    return graph_of((source, target) for source, target in pairs if source and target)


def floors_of(arrows: Graph) -> dict[str, int]:
    """How far above the ground each room stands."""

    @cache
    def floor(room: str) -> int:
        return max((floor(other) + 1 for other in arrows.get(room, ())), default=0)

    return {room: floor(room) for room in BOXES}


def drawing(tree: Tree) -> str:
    """The rooms and arrows of a tree as SVG."""
    arrows = arrows_of(tree)
    floors = floors_of(arrows)
    top = max(floors.values())
    height = TOP + FLOOR * (top + 1)
    middle = {room: (box.x, TOP + FLOOR * (top - floors[room]) + HEIGHT // 2) for room, box in BOXES.items()}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for package, x in TITLES.items():
        colour = COLOURS[package][1]
        lines.append(f'<text x="{x}" y="30" text-anchor="middle" font-size="18" fill="{colour}">{package}/</text>')
    for source, targets in sorted(without_detours(arrows).items()):
        for target in sorted(targets):
            lines += _arrow(middle[source], middle[target], COLOURS[source.split(".")[0]][1])
    for room, box in BOXES.items():
        (x, y), (fill, stroke) = middle[room], COLOURS[room.split(".")[0]]
        half = WIDE_HALF if room == VALUES else HALF
        lines.append(
            f'<rect x="{x - half}" y="{y - HEIGHT // 2}" width="{2 * half}" height="{HEIGHT}" rx="6" fill="{fill}"'
            f' stroke="{stroke}"/>'
        )
        lines.append(f'<text x="{x}" y="{y + 5}" text-anchor="middle">{box.title}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def _arrow(source: tuple[int, int], target: tuple[int, int], colour: str) -> list[str]:
    """From the lower edge of a room to the upper edge of another."""
    (x, y), (to_x, to_y) = (source[0], source[1] + HEIGHT // 2), (target[0], target[1] - HEIGHT // 2)
    bend = min(60, (to_y - y) // 2)
    return [
        f'<path d="M {x} {y} C {x} {y + bend} {to_x} {to_y - bend} {to_x} {to_y - 6}" fill="none" stroke="{colour}"/>',
        f'<polygon points="{to_x},{to_y} {to_x - 4},{to_y - 8} {to_x + 4},{to_y - 8}" fill="{colour}"/>',
    ]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(drawing(read_tree(REPOSITORY)), encoding="utf-8")
