"""The rooms of the project, and which may import which: the table below is the house's plan.

Each room may import what its line says, and itself. A line names rooms above it only, so there is no circle.
"""

import sys
from collections import Counter
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

from tests.places import DOCS, REPOSITORY
from tests.rooms import Tree, circles, graph_of, private_names_used, read_tree, room_of, without_detours
from tests.rooms_drawing import BOXES, HALF, arrows_of, drawing, floors_of

WORDS = ("spec.values", "spec.step", "spec.topics", "spec.metadata", "spec.mutation")
BROKER = ("spec.log", "spec.messages", "spec.broker.rules")

ROOMS: dict[str, tuple[str, ...]] = {
    # What Kafka's parties do: pure functions over values.
    "spec.values": (),
    "spec.step": ("spec.values",),
    "spec.topics": ("spec.values",),
    "spec.metadata": ("spec.values", "spec.topics"),
    "spec.mutation": (),
    "spec.claims": (),
    "spec.log": ("spec.values",),
    "spec.messages": (*WORDS, "spec.log"),
    "spec.broker.rules": (*WORDS, "spec.log", "spec.messages"),
    "spec.coordinator.rules": ("spec.values", "spec.topics"),
    "spec.transactions.rules": ("spec.values",),
    "spec.transactions": (
        *WORDS,
        "spec.log",
        "spec.messages",
        "spec.coordinator.rules",
        "spec.transactions.rules",
    ),
    "spec.broker": (*WORDS, *BROKER, "spec.transactions.rules", "spec.transactions"),
    "spec.controller.rules": (*WORDS, *BROKER),
    "spec.controller": (*WORDS, *BROKER, "spec.controller.rules"),
    "spec.controller.topics": (*WORDS, "spec.messages", "spec.controller.rules", "spec.controller"),
    "spec.assignors": ("spec.values",),
    "spec.coordinator": (*WORDS, "spec.messages", "spec.assignors", "spec.coordinator.rules"),
    "spec.consumer": (*WORDS, "spec.messages", "spec.assignors"),
    "spec.quorum.rules": (*WORDS, *BROKER),
    "spec.quorum": (*WORDS, *BROKER, "spec.quorum.rules"),
    "spec.zookeeper": (*WORDS, *BROKER, "spec.broker", "spec.controller.rules"),
    "spec.releases": (
        *WORDS,
        *BROKER,
        "spec.broker",
        "spec.controller.rules",
        "spec.controller",
        "spec.assignors",
        "spec.coordinator.rules",
        "spec.coordinator",
        "spec.transactions.rules",
        "spec.transactions",
        "spec.consumer",
        "spec.quorum.rules",
        "spec.quorum",
        "spec.zookeeper",
    ),
    "spec.published": (*WORDS, *BROKER, "spec.controller.rules", "spec.zookeeper"),
    "spec": ("spec.*",),
    # Engines explore any model; what is about Kafka comes after them.
    "model_check": (),
    "model_check.version": (),
    "model_check.extras": (),
    "model_check.search": (),
    "model_check.core": ("spec.values",),
    "model_check.traces": ("model_check.version", "model_check.core"),
    "model_check.engines.reference": ("model_check.core",),
    "model_check.engines.compiled": ("spec", "model_check", "model_check.version", "model_check.core", "model_check.traces"),
    "model_check.engines.simulation": (
        "model_check.search",
        "model_check.core",
        "model_check.engines.reference",
        "model_check.engines.compiled",
    ),
    "model_check.engines.spark": (
        "spec.values",
        "model_check.extras",
        "model_check.core",
        "model_check.traces",
        "model_check.engines.compiled",
        "model_check.engines.simulation",
    ),
    "model_check.engines": ("model_check.extras", "model_check.core", "model_check.engines.*"),
    "model_check.graphs": ("model_check.extras", "model_check.core", "model_check.traces", "model_check.engines.compiled"),
    "model_check.models": ("spec.*", "model_check.core", "model_check.traces"),
    # It runs in a browser, too: no engine but the oracle, nothing that is not Python's own.
    "model_check.explorer": (
        "spec.*",
        "model_check.version",
        "model_check.search",
        "model_check.core",
        "model_check.traces",
        "model_check.engines.reference",
        "model_check.models",
    ),
    "model_check.reports": (
        "spec.*",
        "model_check.version",
        "model_check.extras",
        "model_check.search",
        "model_check.core",
        "model_check.traces",
        "model_check.engines.*",
        "model_check.engines",
        "model_check.graphs",
        "model_check.models",
        "model_check.explorer",
    ),
    # A proof is about a model; nothing of the command line is in it.
    "proofs": (),
    "proofs.effort": (),
    "proofs.settings": ("proofs.effort",),
    "proofs.lint": (),
    "proofs.laws": ("spec.*",),
    "proofs.symbolic": ("spec.*", "model_check.core", "proofs.effort", "proofs.laws"),
    "proofs.induction": (
        "spec.*",
        "model_check.core",
        "model_check.models",
        "proofs.effort",
        "proofs.settings",
        "proofs.symbolic",
    ),
    "proofs.refutation": (
        "model_check.core",
        "model_check.traces",
        "model_check.engines",
        "model_check.models",
        "proofs.effort",
        "proofs.settings",
        "proofs.symbolic",
        "proofs.induction",
    ),
    "proofs.theorems": (
        "spec.*",
        "model_check.core",
        "model_check.models",
        "proofs.effort",
        "proofs.settings",
        "proofs.symbolic",
        "proofs.induction",
        "proofs.refutation",
    ),
    "proofs.commands": (
        "model_check.core",
        "model_check.traces",
        "model_check.engines",
        "proofs.*",
    ),
    # A broker takes nothing but the rules.
    "impl.wire": ("spec.*",),
    "impl.records": ("spec.*",),
    "impl.storage": ("spec.*", "impl.records"),
    "impl.coordinator": ("spec.*",),
    "impl.dump": ("impl.records", "impl.storage"),
    "impl.trace": ("spec.*",),
    "impl.config": (),
    "impl.metadata": ("spec.*", "impl.wire", "impl.records", "impl.storage"),
    "impl.broker": ("spec.*", "impl.wire", "impl.records", "impl.storage", "impl.config", "impl.metadata"),
    "impl.requests": (
        "spec.*",
        "impl.wire",
        "impl.records",
        "impl.coordinator",
        "impl.storage",
        "impl.config",
        "impl.metadata",
        "impl.broker",
    ),
    "impl.controller": (
        "spec.*",
        "impl.wire",
        "impl.records",
        "impl.storage",
        "impl.config",
        "impl.metadata",
        "impl.broker",
        "impl.requests",
    ),
    "impl.replica": ("spec.*", "impl.wire", "impl.records", "impl.storage", "impl.config", "impl.metadata", "impl.broker"),
    "impl.server": ("spec.*", "impl.*"),
    "impl": ("spec.*", "impl.*"),
    # Trials run the broker; it does not know them.
    "trials.history": (),
    "trials.fault_kind": (),
    "trials.simulated": ("spec.*", "impl.*", "model_check.search", "trials.fault_kind", "trials.history"),
    # A cluster is processes and what they answer: it knows neither the broker's code nor what else runs as a node.
    "trials.cluster": ("impl.wire",),
    # Faults are aimed by what the controller has written, and cut log files of who has lost power.
    "trials.faults": (
        "spec.*",
        "trials.fault_kind",
        "trials.cluster",
        "trials.history",
        "trials.simulated",
        "impl.broker",
        "impl.wire",
        "impl.records",
        "impl.storage",
        "impl.metadata",
    ),
    "trials": (),
    # Others are held against the models: it takes the wire format of `impl` besides.
    "conformance.kafka": ("impl.wire", "impl.records", "trials.cluster"),
    "conformance.world": (
        "spec.*",
        "spec",
        "model_check.*",
        "impl.wire",
        "impl.records",
        "impl.metadata",
        "conformance.kafka",
    ),
    "conformance.wire": (
        "spec.*",
        "spec",
        "model_check.version",
        "model_check.search",
        "model_check.core",
        "impl.wire",
        "impl.records",
    ),
    "conformance.targets": ("conformance.kafka", "conformance.wire"),
    # Level 1 draws its cases from the model and its mutants, and takes load, links and the judge of histories from `trials`.
    "conformance.cluster": (
        "spec.*",
        "model_check.*",
        "impl.wire",
        "trials.cluster",
        "trials.history",
        "trials.faults",
        "conformance.kafka",
        "conformance.wire",
    ),
    "conformance.mirror": ("spec.*", "spec", "model_check.*", "impl.wire", "impl.metadata", "conformance.kafka"),
    "conformance.quorum": ("spec.*", "model_check.*", "impl.wire", "conformance.kafka"),
    "conformance.transactions": (
        "spec.*",
        "model_check.*",
        "impl.wire",
        "impl.records",
        "trials.cluster",
        "trials.faults",
        "conformance.kafka",
    ),
    "conformance.story": (
        "spec.*",
        "model_check.*",
        "impl.wire",
        "impl.records",
        "impl.metadata",
        "impl.storage",
        "impl.broker",
        "impl.server",
        "trials.cluster",
        "trials.simulated",
        "trials.faults",
        "conformance.world",
    ),
    "conformance": (),
    # The command line puts everything together. Nothing stands on it.
    "kspec": (),
    "kspec.cli": (
        "spec.*",
        "model_check.*",
        "model_check",
        "proofs.*",
        "proofs",
        "impl.*",
        "impl",
        "trials.*",
        "conformance.*",
        "conformance",
    ),
}

TO_COME: set[str] = set()
"""Rooms that stand in the plan and not in the tree yet."""

FREE = ("tests", "benchmarks")
"""They may import everything, and nothing imports them."""

MOST_FILES = 13
"""Python files in a folder, beside `__init__.py`: about a dozen."""

MOST_LINES = 550
"""Lines of a module of the broker."""

pytestmark = pytest.mark.xdist_group("layers")  # one process reads all sources


@cache
def whole_tree() -> Tree:
    """All modules, read once; nobody changes the tree."""
    return read_tree(REPOSITORY)


def allowed(room: str) -> set[str]:
    """The rooms that a room may import: `spec.*` is every room in `spec`, above it in the table."""
    above = list(ROOMS)[: list(ROOMS).index(room)]
    found = {room}
    for entry in ROOMS[room]:
        found |= {one for one in above if one.startswith(entry[:-1])} if entry.endswith(".*") else {entry}
    return found


def forbidden_imports(tree: Tree) -> list[str]:
    """Imports against the table, or between modules that no line is about."""
    complaints = []
    for found in tree.inner_imports():
        if found.source.split(".")[0] in FREE:
            continue
        source, target = room_of(found.source, ROOMS), room_of(found.target, ROOMS)
        if source is None or target not in allowed(source):
            complaints.append(str(found))
    return complaints


def test_no_import_goes_against_the_table() -> None:
    assert forbidden_imports(whole_tree()) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("spec.broker.rules.made_up", "from kspec.spec.broker.partition import Partition"),
        ("spec.broker.made_up", "import spec.published.fetch"),
        ("spec.made_up", "from kspec.spec.values import Epoch"),
        ("model_check.engines.compiled.made_up", "def late():\n    from kspec.model_check.models import MODELS"),
        ("model_check.core.made_up", "if TYPE_CHECKING:\n    from kspec.model_check.traces import encode"),
        ("model_check.reports.made_up", "import proofs.laws"),
        ("proofs.theorems.made_up", "from kspec.cli.common import ALL_HOLD"),
        ("spec.made_up", "from tests import places"),
    ],
)
def test_a_made_up_import_against_the_table_is_found(module: str, source: str) -> None:
    tree = Tree(dict(whole_tree().files))
    tree.add(module, Path("made_up.py"), source)
    (complaint,) = forbidden_imports(tree)
    assert complaint.startswith(f"{module}:")


def test_every_module_has_a_line() -> None:
    assert [
        module for module in whole_tree().files if module.split(".")[0] not in FREE and room_of(module, ROOMS) is None
    ] == []


def test_the_table_names_what_there_is_and_no_room_below_itself() -> None:
    present = {room_of(module, ROOMS) for module in whole_tree().files}
    assert set(ROOMS) - present == TO_COME
    for number, (room, may) in enumerate(ROOMS.items()):
        above = list(ROOMS)[:number]
        assert {one for one in may if not one.endswith(".*")} <= set(above), room
    lower = {(room, other) for room in ROOMS for other in allowed(room)}
    assert circles(graph_of(lower)) == []


def test_the_drawing_shows_the_imports_as_they_are() -> None:
    """`python -m tests.rooms_drawing docs/rooms.svg` makes it."""
    assert (DOCS / "rooms.svg").read_text(encoding="utf-8") == drawing(whole_tree())


def test_every_room_is_drawn() -> None:
    rooms = [room for room in ROOMS if room.count(".") == 1]
    folders = {room for room in rooms if any(module.startswith(f"{room}.") for module in whole_tree().files)}
    assert folders - set(BOXES) == set()


def test_no_two_rooms_are_drawn_over_each_other() -> None:
    floors = floors_of(arrows_of(whole_tree()))
    for one, other in combinations(BOXES, 2):
        assert floors[one] != floors[other] or abs(BOXES[one].x - BOXES[other].x) > 2 * HALF, (one, other)


def test_every_arrow_is_drawn_or_follows_from_others() -> None:
    tree = Tree(dict.fromkeys(("spec.log.a", "spec.messages.b", "spec.broker.c"), Path("made_up.py")))
    tree.add("spec.messages.b", Path("b.py"), "import spec.log.a")
    assert arrows_of(tree) == without_detours(arrows_of(tree)) == {"spec.messages": {"spec.log"}}
    tree.add("spec.broker.c", Path("c.py"), "import spec.log.a, spec.messages.b")
    assert arrows_of(tree)["spec.broker"] == {"spec.log", "spec.messages"}
    assert without_detours(arrows_of(tree))["spec.broker"] == {"spec.messages"}
    assert floors_of(arrows_of(tree))["spec.broker"] == 2


def test_no_circle_of_files() -> None:
    assert circles(graph_of((found.source, found.target) for found in whole_tree().inner_imports())) == []


def test_a_made_up_circle_is_found() -> None:
    tree = Tree()
    tree.add("spec.a", Path("a.py"), "import spec.b")
    tree.add("spec.b", Path("b.py"), "def late():\n    from kspec.spec import c")
    tree.add("spec.c", Path("c.py"), "if TYPE_CHECKING:\n    from kspec.spec.a import A\nimport spec.d")
    tree.add("spec.d", Path("d.py"), "import os")
    pairs = [(found.source, found.target) for found in tree.inner_imports()]
    assert circles(graph_of(pairs)) == [["spec.a", "spec.b", "spec.c"]]


def test_spec_imports_the_standard_library_and_itself_only() -> None:
    others = {found.target.split(".")[0] for found in whole_tree().imports() if found.source.split(".")[0] == "spec"}
    assert others - {"spec"} <= set(sys.stdlib_module_names)


def test_no_folder_is_too_full() -> None:
    sizes = Counter(
        path.parent.relative_to(REPOSITORY) for path in whole_tree().files.values() if path.name != "__init__.py"
    )
    assert {str(folder): size for folder, size in sizes.items() if size > MOST_FILES} == {}


def test_no_module_of_the_broker_is_too_long() -> None:
    """A file that grows is cut by subject, as the shell was."""
    sizes = {
        str(path.relative_to(REPOSITORY)): len(path.read_text(encoding="utf-8").splitlines())
        for path in (REPOSITORY / "impl").rglob("*.py")
    }
    assert {name: size for name, size in sizes.items() if size > MOST_LINES} == {}


def test_no_private_name_is_used_by_another_module() -> None:
    assert list(private_names_used(whole_tree())) == []


def test_private_names_that_are_used_are_found() -> None:
    tree = Tree()
    tree.add("spec.base", Path("base.py"), "class Base:\n    def _own(self): pass\n    def __init__(self): self._size = 1")
    tree.add("spec.a", Path("a.py"), "from kspec.spec.base import _helper, Base")
    tree.add("spec.b", Path("b.py"), "from kspec.spec import base\nx = base._helper")
    tree.add("spec.c", Path("c.py"), "from kspec.spec.base import Base\nclass Mine(Base):\n    def _own(self): pass")
    tree.add(
        "spec.d", Path("d.py"), "from kspec.spec.base import Base\nclass Mine(Base):\n    def f(self): return self._size"
    )
    tree.add("spec.e", Path("e.py"), "from kspec.spec.base import Base\nclass Mine(Base):\n    def _other(self): pass")
    assert list(private_names_used(tree)) == [
        "spec.a:1 imports spec.base._helper",
        "spec.b:2 uses spec.base._helper",
        "spec.c:2 Mine shares _own with spec.base.Base",
        "spec.d:2 Mine shares _size with spec.base.Base",
    ]
