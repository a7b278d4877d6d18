"""Packages of npm's registry, each pinned to its content, fetched by npm and kept in the cache."""

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import NamedTuple


def cache_folder() -> Path:
    """The folder of what has been fetched: `kspec/npm` in `$XDG_CACHE_HOME`, by default in `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kspec" / "npm"


FETCHING_S = 300
"""Seconds that npm may take."""


class PackageError(RuntimeError):
    """A package that cannot be had. The message is one line."""


class Package(NamedTuple):
    """A package by name and version; `integrity` is the SHA-512 of its archive, as npm writes it."""

    name: str
    version: str
    integrity: str

    def folder(self) -> Path:
        """The folder with the package's files. It is fetched if it is not in the cache yet."""
        cache = cache_folder()
        kept = cache / f"{self.name.replace('/', '-')}-{self.version}"
        if not kept.is_dir():
            cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=cache) as unfinished:
                self._unpack(self._fetched(Path(unfinished)), Path(unfinished) / "files")
                try:
                    (Path(unfinished) / "files" / "package").rename(kept)
                except OSError:  # another process was quicker
                    if not kept.is_dir():
                        raise
        return kept

    def _fetched(self, folder: Path) -> Path:
        """The archive, as npm fetches it."""
        named = f"{self.name}@{self.version}"
        npm = shutil.which("npm")
        if npm is None:
            raise PackageError(f"{named} is fetched by npm, which is not installed")
        try:
            done = subprocess.run(
                [npm, "pack", named, "--silent"],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=FETCHING_S,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise PackageError(f"npm has not fetched {named} within {FETCHING_S} s") from late
        archives = list(folder.glob("*.tgz"))
        if done.returncode or not archives:
            said = [line for line in done.stderr.splitlines() if line.strip()] or ["it says nothing"]
            raise PackageError(f"npm cannot fetch {named}: {said[0]}")
        return archives[0]

    def _unpack(self, archive: Path, folder: Path) -> None:
        found = "sha512-" + b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if found != self.integrity:
            raise PackageError(f"{self.name}@{self.version} is not what it was: {found}, and not {self.integrity}")
        with tarfile.open(archive) as opened:
            opened.extractall(folder, [member for member in opened.getmembers() if member.isfile()])


PYODIDE = Package(
    "pyodide",
    "314.0.7",
    "sha512-0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A==",
)
"""Python for browsers; its licence is the MPL 2.0."""

PYODIDE_PROGRAM = "pyodide.asm.wasm"
"""Python itself, which the page has packed by gzip."""

PYODIDE_FILES = ("README.md", "pyodide.mjs", "pyodide.asm.mjs", PYODIDE_PROGRAM, "pyodide-lock.json", "python_stdlib.zip")
"""The files of it that a worker loads, and what it says of itself."""
