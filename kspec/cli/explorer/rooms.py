"""The rooms that the explorer runs on, as one file for a browser: found by their imports, so nothing else is in it."""

import ast
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

from kspec.model_check import explorer

START = explorer.__name__
"""The module whose imports are followed."""

PACKAGE, FOLDER = START.split(".")[0], Path(explorer.__file__).parents[2]
"""The package, and its folder."""

BEGINNING_OF_TIME = (1980, 1, 1, 0, 0, 0)
"""The date of each file: the same sources make the same archive."""


def modules_behind(start: str = START) -> dict[str, Path]:
    """A module and all of this package's that it imports, directly or not, at once or when a function is called."""
    found: dict[str, Path] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        path = file_of(name)
        if name in found or path is None:
            continue
        found[name] = path
        waiting += [name.rpartition(".")[0], *imported_by(path, name)]
    return dict(sorted(found.items()))


def file_of(module: str) -> Path | None:
    """The file of a module of this package, if there is one of this name."""
    package, *rest = module.split(".")
    if package != PACKAGE:
        return None
    base = FOLDER.joinpath(*rest)
    return next((path for path in (base / "__init__.py", base.with_suffix(".py")) if path.is_file()), None)


def imported_by(path: Path, module: str) -> Iterator[str]:
    """The names that a file imports, as modules: of `from a import b` both `a` and `a.b`, which may be one."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def rooms_zip() -> bytes:
    """The archive that the web worker unpacks."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for module, path in modules_behind().items():
            name = module.replace(".", "/") + ("/__init__.py" if path.name == "__init__.py" else ".py")
            archive.writestr(zipfile.ZipInfo(name, BEGINNING_OF_TIME), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return written.getvalue()
