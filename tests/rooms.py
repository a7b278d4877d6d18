"""Imports between modules, read from the sources; the rooms that modules lie in, and the arrows between them.

An import counts wherever it stands: at the top, inside a function, for type checkers only.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.limits.turns import Turns

PACKAGES = ("spec", "model_check", "proofs", "impl", "trials", "conformance", "kspec", "tests", "benchmarks")

LINKED = ("spec", "model_check", "proofs", "impl", "trials", "conformance")
"""Folders that are imported as `kspec.FOLDER`. Modules are called here as their files are."""

READ = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.Attribute)
"""The nodes of a source that are read."""

Graph = Mapping[str, Iterable[str]]


@dataclass(frozen=True)
class Import:
    """`source` imports `name` from the module `target`, or the module itself (`name` is empty), at this line."""

    source: str
    target: str
    name: str
    line: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line} imports {self.name or 'it'} from {self.target}"


@dataclass
class Tree:
    """The modules of some packages: where their files are, what they say."""

    files: dict[str, Path] = field(default_factory=dict)
    nodes: dict[str, list[ast.AST]] = field(default_factory=dict)

    def add(self, module: str, path: Path, source: str) -> None:
        """Add a module."""
        self.files[module] = path
        self.nodes[module] = [node for node in ast.walk(ast.parse(source)) if isinstance(node, READ)]

    def imports(self) -> Iterator[Import]:
        """Every import of every module, also of modules that are not in the tree."""
        for module, nodes in self.nodes.items():
            yield from self._imports_of(module, nodes)

    def _imports_of(self, module: str, nodes: Iterable[ast.AST]) -> Iterator[Import]:
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from (Import(module, file_name(alias.name), "", node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module}:{node.lineno}: a relative import"
                for alias in node.names:
                    inside = file_name(f"{node.module}.{alias.name}")
                    if inside in self.files:
                        yield Import(module, inside, "", node.lineno)
                    else:
                        yield Import(module, file_name(node.module or ""), alias.name, node.lineno)

    def inner_imports(self) -> Iterator[Import]:
        """Imports of one module of the tree by another."""
        return (found for found in self.imports() if found.target in self.files and found.target != found.source)


def file_name(module: str) -> str:
    """The name of a module by its file: without the package's own name before a folder that is linked into it."""
    inside = module.removeprefix("kspec.")
    return inside if inside.split(".", maxsplit=1)[0] in LINKED else module


def read_tree(repository: Path, packages: Iterable[str] = PACKAGES) -> Tree:
    """The modules of these packages."""
    tree = Tree()
    for name, path in files_of(repository, packages).items():
        tree.add(name, path, path.read_text(encoding="utf-8"))
    return tree


def files_of(repository: Path, packages: Iterable[str] = PACKAGES) -> dict[str, Path]:
    """The files of these packages, by the names of their modules."""
    found = {}
    for package in packages:
        for path in sorted((repository / package).rglob("*.py")):
            parts = path.relative_to(repository).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room_of(module: str, rooms: Iterable[str]) -> str | None:
    """The room that a module lies in: the longest of these names that its name begins with.

    A package without a dot is no room but its `__init__.py`: what lies in it directly must be a room by its own name.
    """
    inside = (room for room in rooms if module == room or ("." in room and module.startswith(f"{room}.")))
    return max(inside, key=len, default=None)


def graph_of(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """The names that each name points to, itself left out."""
    graph: dict[str, set[str]] = defaultdict(set)
    for source, target in pairs:
        if source != target:
            graph[source].add(target)
    return dict(graph)


def circles(graph: Graph) -> list[list[str]]:
    """The sets of names that can be reached from each other, each in order."""
    reached = {name: _reachable(graph, name) for name in graph}
    found = {frozenset(other for other in reached[name] if name in reached.get(other, ())) for name in graph}
    return sorted(sorted(circle) for circle in found if circle)


def _reachable(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    turns = Turns()
    while waiting:
        turns.go()
        for following in graph.get(waiting.pop(), ()):
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return seen


def without_detours(graph: Graph) -> dict[str, set[str]]:
    """The arrows of a graph without circles that say something new: none leads where a longer way leads, too."""
    return {
        source: {
            target
            for target in targets
            if not any(target in _reachable(graph, other) for other in targets if other != target)
        }
        for source, targets in graph.items()
    }


# ---- private names


def private(name: str) -> bool:
    """Whether a name is private: `_name`, but not `__name__`."""
    return name.startswith("_") and not name.endswith("__")


def private_names_used(tree: Tree) -> Iterator[str]:
    """Uses of another module's private names: imported, as an attribute of a module, or inherited."""
    classes = {(module, node.name): node for module, nodes in tree.nodes.items() for node in _classes(nodes)}
    for module, nodes in tree.nodes.items():
        imported = {}
        for node in nodes:
            if isinstance(node, ast.ImportFrom | ast.Import):
                for alias in node.names:
                    full = file_name(alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}")
                    imported[alias.asname or alias.name] = full
                    last = full.rpartition(".")[2]
                    if isinstance(node, ast.ImportFrom) and full.split(".")[0] in PACKAGES and private(last):
                        yield f"{module}:{node.lineno} imports {full}"
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and private(node.attr):
                owner = imported.get(node.value.id)
                if owner in tree.files and module.split(".")[0] != "tests":  # which may put something in its place
                    yield f"{module}:{node.lineno} uses {owner}.{node.attr}"
        for node in _classes(nodes):
            for base in (imported.get(base.id, "") for base in node.bases if isinstance(base, ast.Name)):
                home, _, name = base.rpartition(".")
                if (home, name) in classes:
                    for shared in sorted(_own_private_names(node) & _own_private_names(classes[home, name])):
                        yield f"{module}:{node.lineno} {node.name} shares {shared} with {base}"


def _classes(nodes: Iterable[ast.AST]) -> Iterator[ast.ClassDef]:
    return (node for node in nodes if isinstance(node, ast.ClassDef))


def _own_private_names(node: ast.ClassDef) -> set[str]:
    """Private methods and attributes that a class defines or uses of itself."""
    names = {one.name for one in ast.walk(node) if isinstance(one, ast.FunctionDef)}
    names |= {
        one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "self"
    }
    return {name for name in names if private(name)}
