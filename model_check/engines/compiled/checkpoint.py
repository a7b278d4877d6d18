"""Checkpoints of a search: the files always describe one consistent moment between two blocks.

A folder holds the packed states, the values that slots have taken, and a manifest. States and values are only ever
appended. The manifest says how many bytes of them are valid, with their digests, and is replaced in one step. So
whenever the process dies, the folder holds the last completed checkpoint. Hash tables and learned rules are not kept
because they follow from the rest. `docs/formats.md` describes the files.
"""

import fcntl
import hashlib
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from kspec import model_check, spec
from kspec.model_check.core.exploration import CheckpointError, CheckpointPlan, Exploration
from kspec.model_check.engines.compiled.interning import Domain, distinct
from kspec.model_check.engines.compiled.kernels import SHARDS
from kspec.model_check.engines.compiled.layout import fields_at
from kspec.model_check.engines.compiled.store import INDEX_PLACES_PER_STATE, StateStore, available_memory
from kspec.model_check.engines.compiled.written_values import UnknownValueError, value_as_text, value_from_text
from kspec.model_check.traces.encode import as_json
from kspec.model_check.version import VERSION

FORMAT = 1
MANIFEST = "manifest.json"
VALUES = "values.kspec"
STATES = "states-{}.kspec"

SLICE = 8 << 20
"""Bytes that are digested and written at a time, so that they are still in the processor's cache."""

Where = tuple[int, tuple[int, int]]
"""A state by its level, its shard and its number in the shard."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The state of a search between two blocks, besides its states and their values.

    `levels` are the counts of states per shard where each level begins, and where the level being expanded ends;
    `position` is the first state of that level that is not expanded yet. `found` are the states that decided a property, by
    the property's number.
    """

    levels: list[list[int]]
    position: int
    fired: list[int]
    deadlocks: int
    first_deadlock: Where | None
    found: dict[int, Where]
    seconds: float


def identity(exploration: Exploration) -> dict[str, Any]:
    """The facts that must be the same for a checkpoint to be resumed."""
    return {
        "model": exploration.model.name,
        "parameters": as_json(exploration.model.parameters),
        "properties": [verdict.prop.name for verdict in exploration.verdicts],
        "symmetry": exploration.symmetry,
        "version": VERSION,
        "sources": sources_digest(exploration.model.files),
        "byte order": sys.byteorder,
    }


def sources_digest(files: Sequence[str] = ()) -> str:
    """A fingerprint of everything that decides what is explored: the rules, the models, these files, and the engine."""
    digest = hashlib.sha256()
    for package in (spec, model_check):
        root = Path(package.__path__[0])
        for file in sorted(root.rglob("*.py")):
            digest.update(f"{root.name}/{file.relative_to(root).as_posix()}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    for own in files:
        digest.update(hashlib.sha256(Path(own).read_bytes()).digest())
    return digest.hexdigest()


class _CoveredFiles(NamedTuple):
    """The part of the files that the manifest covers, and the running digests of that part."""

    generation: int
    layout: tuple[tuple[int, ...], tuple[int, ...]]
    states_size: int
    states_digest: Any
    states: tuple[int, ...]
    values_size: int
    values_digest: Any
    values: tuple[int, ...]


_NOTHING = _CoveredFiles(0, ((), ()), 0, hashlib.sha256(), (0,) * SHARDS, 0, hashlib.sha256(), ())


class Checkpoint:
    """The checkpoints of one exploration in its folder, which no other process can use at the same time."""

    def __init__(self, asked: CheckpointPlan, ours: dict[str, Any]) -> None:
        self.folder = asked.folder
        self.resumes = asked.resume
        self._every, self._tell = asked.every, asked.tell
        self._ours: dict[str, Any] = json.loads(json.dumps(ours))
        self._written = _NOTHING
        self._next = 0.0
        if asked.resume and not (self.folder / MANIFEST).is_file():
            raise CheckpointError(f"there is no checkpoint in {self.folder} to resume")
        self._handle = self._lock()
        try:
            if not asked.resume:
                self._clear()
        except BaseException:
            self.close()
            raise

    @property
    def due(self) -> bool:
        """Whether it is time for the next one."""
        return time.monotonic() >= self._next

    def close(self) -> None:
        """Let other processes use the folder."""
        os.close(self._handle)

    def _lock(self) -> int:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise CheckpointError(f"{self.folder} cannot hold checkpoints: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            raise CheckpointError(f"another exploration is writing its checkpoints to {self.folder}") from error
        except OSError:
            pass  # a file system without locks
        return handle

    def _clear(self) -> None:
        """Make sure that a new exploration may use the folder."""
        names = {file.name for file in self.folder.iterdir()}
        if MANIFEST in names:
            raise CheckpointError(
                f"{self.folder} holds a checkpoint already: go on from it with --resume {self.folder}, or remove it"
            )
        foreign = sorted(name for name in names if not _is_ours(name))
        if foreign:
            raise CheckpointError(f"{self.folder} holds other files ({foreign[0]}); checkpoints need a folder of their own")
        self._remove_all_but(set())

    # ---- writing

    def begin(self, moment: Moment, store: StateStore, domains: Sequence[Domain]) -> None:
        """Write the first checkpoint. This makes sure that writing works before hours go into the search."""
        try:
            self._save(moment, store, domains)
        except (OSError, UnknownValueError) as error:
            self._give_room_back()
            raise CheckpointError(self._failure(error)) from error
        self._next = time.monotonic() + self._every

    def save(self, moment: Moment, store: StateStore, domains: Sequence[Domain], last: bool = False) -> None:
        """Write a checkpoint. If that fails, the previous one stays valid, and the search need not stop."""
        try:
            self._save(moment, store, domains)
        except (OSError, UnknownValueError) as error:
            self._give_room_back()
            self._tell(f"{self._failure(error)}; the one before is still there")
        else:
            if last:
                self.tell_where()
        self._next = time.monotonic() + self._every

    def tell_where(self) -> None:
        """Say where the last checkpoint is, if there is one: a search may be stopped before its first."""
        if (self.folder / MANIFEST).is_file():
            states = self._manifest()["states"]["count"]
            self._tell(f"a checkpoint of {states:,} states is in {self.folder}; --resume {self.folder} goes on")

    def _give_room_back(self) -> None:
        """Remove what a failed checkpoint has written so far: the disk may be full."""
        written = self._written
        with suppress(OSError):
            self._remove_all_but({MANIFEST, VALUES, STATES.format(written.generation)})
            for name, size in ((VALUES, written.values_size), (STATES.format(written.generation), written.states_size)):
                if (self.folder / name).exists():
                    os.truncate(self.folder / name, size)

    def _failure(self, error: Exception) -> str:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        return f"no checkpoint could be written to {self.folder}: {reason}"

    def _save(self, moment: Moment, store: StateStore, domains: Sequence[Domain]) -> None:
        written = self._append_values(self._append_states(self._written, store), distinct(domains))
        manifest = {
            "format": FORMAT,
            "identity": self._ours,
            "states": {
                "file": STATES.format(written.generation),
                "bytes": written.states_size,
                "sha256": written.states_digest.hexdigest(),
                "count": sum(written.states),
                "widths": written.layout[0],
                "words": written.layout[1],
            },
            "values": {
                "bytes": written.values_size,
                "sha256": written.values_digest.hexdigest(),
                "counts": written.values,
            },
            "moment": {field.name: getattr(moment, field.name) for field in fields(moment)},
        }
        text = json.dumps(manifest)
        unfinished = self.folder / f"{MANIFEST}.unfinished"
        with unfinished.open("w", encoding="utf-8") as file:
            file.write(f'{{"sha256": "{_digest_of(text)}", "checkpoint": {text}}}\n')
            _flush(file)
        os.fsync(self._handle)
        unfinished.replace(self.folder / MANIFEST)
        self._written = written
        os.fsync(self._handle)
        self._remove_all_but({MANIFEST, VALUES, STATES.format(written.generation)})

    def _append_states(self, written: _CoveredFiles, store: StateStore) -> _CoveredFiles:
        """Append the new states; if their layout has changed, write all states to a new file."""
        layout = (store.fields.widths, tuple(store.fields.arrays.word.tolist()))
        after = tuple(store.count.tolist())
        if layout != written.layout:
            written = written._replace(
                generation=written.generation + 1,
                layout=layout,
                states_size=0,
                states_digest=hashlib.sha256(),
                states=(0,) * SHARDS,
            )
        elif after == written.states:
            return written
        with _open_at(self.folder / STATES.format(written.generation), written.states_size) as file:
            out = _DigestingWriter(file, written.states_digest)
            out.write(np.array(after, np.int64).view(np.uint8).data)
            for shard, (first, last) in enumerate(zip(written.states, after, strict=True)):
                out.write(store.bytes_at(shard, first, last).data)
            _flush(file)
        return written._replace(states=after, states_size=written.states_size + out.size, states_digest=out.digest)

    def _append_values(self, written: _CoveredFiles, domains: Sequence[Domain]) -> _CoveredFiles:
        before, after = written.values or (0,) * len(domains), tuple(map(len, domains))
        if after == before:
            return written
        with _open_at(self.folder / VALUES, written.values_size) as file:
            out = _DigestingWriter(file, written.values_digest)
            for number, (domain, first) in enumerate(zip(domains, before, strict=True)):
                for value in domain.values[first:]:
                    out.write(f"{number} {value_as_text(value)}\n".encode())
            _flush(file)
        return written._replace(values=after, values_size=written.values_size + out.size, values_digest=out.digest)

    def _remove_all_but(self, kept: set[str]) -> None:
        for file in self.folder.iterdir():
            if _is_ours(file.name) and file.name not in kept:
                file.unlink()

    # ---- reading

    def load(self, store: StateStore, domains: Sequence[Domain]) -> Moment:
        """Fill the store and the domains with what the checkpoint holds; `CheckpointError` if it cannot be resumed."""
        manifest = self._manifest()
        self._compare(manifest["identity"])
        states, values, moment = manifest["states"], manifest["values"], manifest["moment"]
        self._written = _CoveredFiles(
            int(states["file"].split("-")[1].split(".")[0]),
            (tuple(states["widths"]), tuple(states["words"])),
            states["bytes"],
            hashlib.sha256(),
            (0,) * SHARDS,
            values["bytes"],
            hashlib.sha256(),
            tuple(values["counts"]),
        )
        try:
            self._read_values(values, distinct(domains))
            self._read_states(states, store)
        except OSError as error:
            raise CheckpointError(f"the checkpoint in {self.folder} cannot be read: {error}") from error
        self._next = time.monotonic() + self._every
        found = {int(number): _where(where) for number, where in moment["found"].items()}
        first_deadlock = moment["first_deadlock"] and _where(moment["first_deadlock"])
        return Moment(**(moment | {"found": found, "first_deadlock": first_deadlock}))

    def _manifest(self) -> dict[str, Any]:
        path = self.folder / MANIFEST
        try:
            described = json.loads(path.read_bytes())
            digest, manifest = described["sha256"], described["checkpoint"]
            found = manifest["format"]
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, TypeError, LookupError) as error:
            raise CheckpointError(f"{path} is damaged, or no checkpoint's") from error
        if digest != _digest_of(json.dumps(manifest)):
            raise CheckpointError(f"{path} is damaged: its digest is not that of its content")
        if found != FORMAT:
            raise CheckpointError(f"the checkpoint in {self.folder} has format {found}; this version reads format {FORMAT}")
        return dict(manifest)

    def _compare(self, theirs: dict[str, Any]) -> None:
        """Refuse the checkpoint of any other exploration."""
        for part, value in self._ours.items():
            if theirs.get(part) != value:
                raise CheckpointError(f"the checkpoint in {self.folder} is of {difference(part, theirs.get(part), value)}")

    def _read_values(self, described: dict[str, Any], domains: Sequence[Domain]) -> None:
        path = self.folder / VALUES
        with path.open("rb") as file:
            content = file.read(described["bytes"])
        self._written.values_digest.update(content)
        if self._written.values_digest.hexdigest() != described["sha256"]:
            raise CheckpointError(_damaged(path))
        values: list[list[Any]] = [[] for _ in domains]
        try:
            for line in content.splitlines():
                number, _, text = line.partition(b" ")
                values[int(number)].append(value_from_text(text))
        except UnknownValueError as error:
            raise CheckpointError(f"{path} cannot be resumed: {error}") from error
        for domain, known in zip(domains, values, strict=True):
            if domain.number_all(known) != list(range(len(known))):
                raise CheckpointError(f"{path} numbers values otherwise than this exploration")

    def _read_states(self, described: dict[str, Any], store: StateStore) -> None:
        path = self.folder / described["file"]
        layout = fields_at(described["widths"], described["words"])
        self._make_sure_of_memory(described["count"], layout.size)
        store.count[:] = 0
        store.change_layout(layout)
        counts, left = [0] * SHARDS, described["bytes"]
        with path.open("rb") as file:
            source = _DigestingReader(file, self._written.states_digest)
            while left > 0:
                header = np.zeros(SHARDS, np.int64)
                source.read_into(header.view(np.uint8).data)
                after = header.tolist()
                sizes = [layout.size * (last - first) for first, last in zip(counts, after, strict=True)]
                left -= header.nbytes + sum(sizes)
                if min(sizes) < 0 or max(after) > store.capacity or left < 0:
                    raise CheckpointError(_damaged(path))
                for shard, (first, last) in enumerate(zip(counts, after, strict=True)):
                    source.read_into(store.bytes_at(shard, first, last).data)
                counts = after
        if self._written.states_digest.hexdigest() != described["sha256"] or sum(counts) != described["count"]:
            raise CheckpointError(_damaged(path))
        self._written = self._written._replace(states=tuple(counts))
        store.count[:] = counts
        store.fill_index()

    def _make_sure_of_memory(self, states: int, size: int) -> None:
        needed, free = int(states * (size + 4 * INDEX_PLACES_PER_STATE)), available_memory()
        if needed > free:
            raise CheckpointError(
                f"the checkpoint in {self.folder} takes {needed / 1e6:,.0f} MB of memory, and {free / 1e6:,.0f} MB are free"
            )


class _DigestingWriter:
    """Writes to a file and digests what it writes, without a copy. The initial digest is not changed."""

    def __init__(self, file: IO[bytes], digest: Any) -> None:
        self.file = file
        self.digest = digest.copy()
        self.size = 0

    def write(self, content: bytes | memoryview) -> None:
        for begin in range(0, len(content), SLICE):
            part = content[begin : begin + SLICE]
            self.digest.update(part)
            self.file.write(part)
        self.size += len(content)


class _DigestingReader:
    """Reads from a file and digests what it reads; a file that ends too early gives another digest."""

    def __init__(self, file: IO[bytes], digest: Any) -> None:
        self.file = file
        self.digest = digest

    def read_into(self, target: memoryview) -> None:
        for begin in range(0, len(target), SLICE):
            part = target[begin : begin + SLICE]
            size = self.file.readinto(part)  # type: ignore[attr-defined]
            self.digest.update(part[:size])


def _open_at(path: Path, size: int) -> IO[bytes]:
    """A file open for writing after its first `size` bytes; the rest is cut off."""
    if size == 0:
        return path.open("wb")
    file = path.open("r+b")
    file.truncate(size)
    file.seek(size)
    return file


def _flush(file: IO[Any]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _is_ours(name: str) -> bool:
    return name in (MANIFEST, f"{MANIFEST}.unfinished", VALUES) or (name.startswith("states-") and name.endswith(".kspec"))


def _digest_of(manifest: str) -> str:
    return hashlib.sha256(manifest.encode()).hexdigest()


def _where(described: Any) -> Where:
    level, (shard, number) = described
    return level, (shard, number)


def _damaged(path: Path) -> str:
    return f"{path} is damaged: its content is not what was written; start anew in another folder"


def difference(part: str, theirs: Any, ours: Any) -> str:
    """The first part of a checkpoint's identity that differs from this exploration's."""
    if part == "sources":
        return "other source code of the rules, the models or the engine; start anew in another folder"
    if part == "parameters":
        theirs = theirs or {}
        changed = [name for name in ours if theirs.get(name) != ours[name]]
        return f"other parameters: {', '.join(f'{_option(name)} {theirs.get(name)}, not {ours[name]}' for name in changed)}"
    if part == "symmetry":
        return f"an exploration {'with' if theirs else 'without'} --symmetry"
    if part == "properties":
        return f"other properties: {', '.join(theirs or ()) or 'none'}, not {', '.join(ours) or 'none'}"
    return f"another {part}: {theirs}, not {ours}"


def _option(parameter: str) -> str:
    return parameter.replace("_", "-")
