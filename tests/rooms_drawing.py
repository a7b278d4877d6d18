"""The drawing of the rooms, made from the imports: `python -m tests.rooms_drawing FILE.svg`.

A room stands above all rooms that it imports from; an arrow leads to each of them that no longer way leads to.
"""

import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.places import REPOSITORY
from tests.rooms import Graph, Tree, graph_of, read_tree, room_of, without_detours


class RoomBox(NamedTuple):
    """A room as it is drawn: its middle, from the left, in pixels, and what it is called."""

    x: int
    title: str


VALUES = "spec.values"
BOXES = {
    VALUES: RoomBox(810, "values, step, metadata, mutation, claims"),
    "spec.log": RoomBox(810, "log"),
    "spec.messages": RoomBox(810, "messages"),
    "spec.broker.rules": RoomBox(670, "broker/rules"),
    "spec.broker": RoomBox(640, "broker"),
    "spec.controller.rules": RoomBox(850, "controller/rules"),
    "spec.controller": RoomBox(890, "controller"),
    "spec.assignors": RoomBox(950, "assignors"),
    "spec.coordinator": RoomBox(1000, "coordinator"),
    "spec.transactions": RoomBox(1015, "transactions"),
    "spec.consumer": RoomBox(545, "consumer"),
    "spec.quorum": RoomBox(765, "quorum"),
    "spec.zookeeper": RoomBox(710, "zookeeper"),
    "spec.releases": RoomBox(860, "releases"),
    "spec.published": RoomBox(1000, "published"),
    "model_check.search": RoomBox(1290, "search"),
    "model_check.core": RoomBox(1210, "core"),
    "model_check.traces": RoomBox(1210, "traces"),
    "model_check.engines": RoomBox(1130, "engines"),
    "model_check.graphs": RoomBox(1141, "graphs"),
    "model_check.models": RoomBox(1290, "models"),
    "model_check.reports": RoomBox(1210, "reports"),
    "model_check.explorer": RoomBox(1350, "explorer"),
    "kspec.cli": RoomBox(850, "cli"),
    "proofs.laws": RoomBox(1560, "laws"),
    "proofs.symbolic": RoomBox(1490, "symbolic"),
    "proofs.induction": RoomBox(1430, "induction"),
    "proofs.refutation": RoomBox(1360, "refutation"),
    "proofs.theorems": RoomBox(1470, "theorems"),
    "proofs.commands": RoomBox(1470, "commands"),
    "impl.wire": RoomBox(310, "wire"),
    "impl.config": RoomBox(460, "config"),
    "impl.records": RoomBox(310, "records"),
    "impl.coordinator": RoomBox(460, "coordinator"),
    "impl.storage": RoomBox(310, "storage"),
    "impl.trace": RoomBox(560, "trace"),
    "impl.metadata": RoomBox(313, "metadata"),
    "impl.dump": RoomBox(460, "dump"),
    "impl.broker": RoomBox(441, "broker"),
    "impl.requests": RoomBox(441, "requests"),
    "impl.controller": RoomBox(500, "controller"),
    "impl.replica": RoomBox(316, "replica"),
    "impl.server": RoomBox(460, "server"),
    "trials.simulated": RoomBox(460, "simulated"),
    "trials.cluster": RoomBox(180, "cluster"),
    "trials.history": RoomBox(600, "history"),
    "trials.faults": RoomBox(316, "faults"),
    "conformance.kafka": RoomBox(110, "kafka"),
    "conformance.mirror": RoomBox(66, "mirror"),
    "conformance.world": RoomBox(66, "world"),
    "conformance.quorum": RoomBox(63, "quorum"),
    "conformance.transactions": RoomBox(590, "transactions"),
    "conformance.story": RoomBox(66, "story"),
    "conformance.wire": RoomBox(110, "wire"),
    "conformance.targets": RoomBox(188, "targets"),
    "conformance.cluster": RoomBox(191, "cluster"),
}
PARTS_OF_VALUES = ("spec.step", "spec.metadata", "spec.mutation", "spec.claims")
COLOURS = {
    "spec": ("#e8f1fa", "#2b6cb0"),
    "model_check": ("#eaf6ec", "#2f855a"),
    "proofs": ("#fbf0e4", "#b7791f"),
    "impl": ("#f3edfa", "#6b46c1"),
    "trials": ("#e6f6f6", "#0e7490"),
    "conformance": ("#fdeeee", "#c53030"),
    "kspec": ("#f0f1f3", "#4a5568"),
}
TITLES = {"conformance": 110, "trials": 255, "impl": 440, "spec": 810, "kspec": 940, "model_check": 1210, "proofs": 1470}
WIDTH, FLOOR, TOP, HALF, HEIGHT = 1630, 60, 56, 62, 32
WIDE_HALF = 118


def box_of(module: str) -> str | None:
    """The box in which a module is drawn."""
    room = room_of(module, (*BOXES, *PARTS_OF_VALUES))
    return VALUES if room in PARTS_OF_VALUES else room


def arrows_of(tree: Tree) -> Graph:
    """Imports between rooms."""
    pairs = ((box_of(found.source), box_of(found.target)) for found in tree.inner_imports())
    return graph_of((source, target) for source, target in pairs if source and target)


def floors_of(arrows: Graph) -> dict[str, int]:
    """The height of each room above the ground."""

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
