"""A disk in memory that loses what was not synced.

Names are kept as a file system with a journal keeps them: creations, renames and deletions reach the disk in their order,
and `sync_folder` waits for all up to the last one in that folder. Syncing a file does not save its name. The content of a
file reaches the disk by `sync`, or by itself, in part or as zeros, at any time.
"""

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kspec.impl.records.batch import Buffer
from kspec.impl.storage.disk import File, Handle, Lock


class PowerLossError(Exception):
    """The power is gone: the step at which the disk was told to stop."""


class Survives(Enum):
    """The rest of a change that was not synced."""

    NOTHING = "nothing"
    ALL = "all"
    HALF = "the first half"
    ZEROS = "its length, with zeros in place of the data"


def common_length(one: Buffer, other: Buffer) -> int:
    """The number of equal bytes at the beginning."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


@dataclass(eq=False, slots=True)
class Content:
    """A file's bytes now, and those that are on the disk for certain."""

    now: bytearray = field(default_factory=bytearray)
    synced: bytes = b""

    def left(self, survives: Survives) -> bytes:
        """The bytes after a loss of power."""
        if survives in (Survives.NOTHING, Survives.ALL) or self.now == self.synced:
            return self.synced if survives == Survives.NOTHING else bytes(self.now)
        common = len(self.synced)
        if not self.now.startswith(self.synced):
            common = common_length(self.now, self.synced)
        match survives:
            case Survives.HALF:
                return bytes(self.now[: common + (len(self.now) - common) // 2])
            case _:
                return bytes(self.now[:common]) + bytes(len(self.now) - common)


@dataclass(eq=False, slots=True)
class Condition:
    """The state of the machine's disk, whatever process uses it."""

    full: bool = False
    """Whether nothing can be written any more."""
    sync_ms: int = 0
    """The duration of a sync (ms)."""
    spent_ms: int = 0
    """The duration of syncs that no process has waited for yet (ms)."""

    def synced(self) -> None:
        """A sync takes its time."""
        self.spent_ms += self.sync_ms

    def check_space(self) -> None:
        """Raises: `OSError`, if the disk is full."""
        if self.full:
            raise OSError(errno.ENOSPC, "no space left on the simulated disk")


class NameChange(NamedTuple):
    """A change of names, all of it or none. `folders`: where."""

    folders: frozenset[str]
    gone: tuple[str, ...] = ()
    files: tuple[tuple[str, Content], ...] = ()
    """New files, with their content."""
    made: str | None = None
    """A new folder."""


@dataclass(slots=True)
class Names:
    """The names on a disk: files with their content, and folders, each with the names in it."""

    files: dict[str, Content] = field(default_factory=dict)
    folders: dict[str, set[str]] = field(default_factory=lambda: {"": set()})

    def copy(self) -> "Names":
        """The same names."""
        return Names(self.files.copy(), {path: inside.copy() for path, inside in self.folders.items()})

    def take(self, change: NameChange) -> None:
        """Change them."""
        for path in change.gone:
            folder, _, name = path.rpartition("/")
            if path in self.folders:
                del self.folders[path]
            else:
                del self.files[path]
            self.folders[folder].remove(name)
        if change.made is not None:
            folder, _, name = change.made.rpartition("/")
            self.folders[change.made] = set()
            self.folders[folder].add(name)
        for path, content in change.files:
            folder, _, name = path.rpartition("/")
            self.files[path] = content
            self.folders[folder].add(name)


def _folders_of(*paths: str) -> frozenset[str]:
    """The folders of files."""
    return frozenset([path.rpartition("/")[0] for path in paths])


class SimulatedHandle:
    """Implements `Handle`."""

    def __init__(self, disk: "SimulatedDisk", content: Content) -> None:
        self._disk = disk
        self._content = content

    def fileno(self) -> int:
        """There is none."""
        raise OSError("a simulated file has no descriptor")

    def read(self, position: int, length: int) -> bytes:
        """The bytes from a position on."""
        return bytes(memoryview(self._content.now)[position : position + length])

    def sync(self) -> None:
        """The content is on the disk from now on."""
        self._disk.step()
        self._disk.condition.synced()
        self._content.synced = bytes(self._content.now)


class SimulatedFile:
    """Implements `File`."""

    def __init__(self, disk: "SimulatedDisk", path: str, content: Content) -> None:
        self.path = path
        self._disk = disk
        self._content = content

    @property
    def size(self) -> int:
        """Its length."""
        return len(self._content.now)

    def handle(self) -> Handle:
        """The open file."""
        return SimulatedHandle(self._disk, self._content)

    def read(self, position: int, length: int) -> bytes:
        """The bytes from a position on."""
        return bytes(memoryview(self._content.now)[position : position + length])

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write at the end. The power may be lost within the write, or the space be used up."""
        data = b"".join(buffers)
        if self._disk.condition.full:
            self._content.now.extend(data[: len(data) // 2])
        self._disk.condition.check_space()
        self._disk.step(lambda: self._content.now.extend(data[: len(data) // 2]))
        self._content.now.extend(data)

    def truncate(self, size: int) -> None:
        """Cut the file."""
        self._disk.step()
        del self._content.now[size:]

    def close(self) -> None:
        """Nothing is held."""


class SimulatedLock:
    """Implements `Lock`."""

    def __init__(self, locked: set[str], path: str) -> None:
        self._locked = locked
        self._path = path

    def release(self) -> None:
        """Give it back."""
        self._locked.discard(self._path)


class SimulatedDisk:
    """Implements `Disk`. `steps` counts what changes the disk; at step `stop_at` the power is lost instead."""

    def __init__(
        self, names: Names | None = None, now_ms: Callable[[], int] = lambda: 0, condition: Condition | None = None
    ) -> None:
        self.condition = condition or Condition()
        self.steps = 0
        self.stop_at = -1
        self._saved = names or Names()
        self._names = self._saved.copy()
        self._files, self._folders = self._names.files, self._names.folders
        self._journal: list[NameChange] = []
        self._locked: set[str] = set()
        self._now_ms = now_ms
        self._modified: dict[str, int] = {}

    def step(self, before: Callable[[], None] | None = None) -> None:
        """Count a step, or lose the power: then with a part of the change done, if `before` does it."""
        if self.steps == self.stop_at:
            if before is not None:
                before()
            raise PowerLossError(f"at step {self.steps}")
        self.steps += 1

    def after_power_loss(self, survives: Survives, names_kept: int | None = None) -> "SimulatedDisk":
        """The disk as it is when the power is back.

        `names_kept`: how many of the changes of names that were not synced have reached it, at most all of them; without it
        none, or all if the content survives.
        """
        if names_kept is None:
            names_kept = 0 if survives == Survives.NOTHING else len(self._journal)
        found = self._saved.copy()
        for change in self._journal[:names_kept]:
            found.take(change)
        left = {path: content.left(survives) for path, content in found.files.items()}
        found.files = {path: Content(bytearray(data), data) for path, data in left.items()}
        return SimulatedDisk(found, self._now_ms, self.condition)

    # ---- somebody changes what is on it while nobody runs

    def paths_of(self, name: str) -> list[str]:
        """The files of this name, in all folders."""
        return sorted(path for path in self._files if path.rpartition("/")[2] == name)

    def put(self, path: str, content: bytes) -> None:
        """A file has another content, which is on the disk for certain."""
        self._files[path].now[:] = content
        self._files[path].synced = content

    @property
    def unsynced_names(self) -> int:
        """The number of changes of names that have not been synced."""
        return len(self._journal)

    def _change(self, change: NameChange) -> None:
        """Change names."""
        self._names.take(change)
        self._journal.append(change)

    # ---- files

    def open(self, path: str, create: bool = False) -> File:
        """A file that exists, or that is created empty."""
        if path not in self._files:
            if not create:
                raise FileNotFoundError(path)
            self._create(path)
        return SimulatedFile(self, path, self._files[path])

    def _create(self, path: str) -> None:
        if path.rpartition("/")[0] not in self._folders:
            raise FileNotFoundError(path)
        self.condition.check_space()
        self.step()
        self._change(NameChange(_folders_of(path), files=((path, Content()),)))

    def read_file(self, path: str) -> bytes:
        """The whole content."""
        return bytes(self._files[path].now)

    def write_file(self, path: str, content: bytes, sync: bool = True) -> None:
        """Create or overwrite a small file."""
        if path not in self._files:
            self._create(path)
        file = self._files[path]
        if content:
            self.condition.check_space()
        self.step(file.now.clear)
        file.now[:] = content
        self._modified[path] = self._now_ms()
        if sync:
            self.step()
            self.condition.synced()
            file.synced = content

    def rename(self, old: str, new: str) -> None:
        """Give a file, or a folder with files alone, another name."""
        self.step()
        folders = _folders_of(old, new)
        if old in self._files:
            self._change(NameChange(folders, (old,), ((new, self._files[old]),)))
        elif old in self._folders:
            inside = sorted(self._folders[old])
            moved = tuple((f"{new}/{name}", self._files[f"{old}/{name}"]) for name in inside)
            self._change(NameChange(folders, (*(f"{old}/{name}" for name in inside), old), moved, new))
        else:
            raise FileNotFoundError(old)

    def unlink(self, path: str) -> None:
        """Delete a file."""
        self.step()
        if path not in self._files:
            raise FileNotFoundError(path)
        self._change(NameChange(_folders_of(path), (path,)))

    # ---- folders

    def listdir(self, path: str) -> list[str]:
        """The names in a folder, sorted."""
        if path not in self._folders:
            raise FileNotFoundError(path)
        return sorted(self._folders[path])

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        return path in self._files or path in self._folders

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder."""
        return path in self._folders

    def is_link(self, path: str) -> bool:
        """There are no links."""
        return False

    def size(self, path: str) -> int:
        """The length of a file."""
        return len(self._files[path].now)

    def modified_ms(self, path: str) -> int:
        """The time at which a file was last written."""
        return self._modified.get(path, 0)

    def make_folder(self, path: str) -> None:
        """Create a folder, and those above it."""
        if path in self._folders:
            return
        above = path.rpartition("/")[0]
        if above:
            self.make_folder(above)
        self.step()
        self._change(NameChange(_folders_of(path), made=path))

    def remove_folder(self, path: str) -> None:
        """Delete an empty folder."""
        assert not self.listdir(path), f"{path} is not empty"
        self.step()
        self._change(NameChange(_folders_of(path), (path,)))

    def sync_folder(self, path: str) -> None:
        """The names in a folder are on the disk from now on, and all changes before them."""
        self.step()
        self.condition.synced()
        last = max((number for number, change in enumerate(self._journal) if path in change.folders), default=-1)
        for change in self._journal[: last + 1]:
            self._saved.take(change)
        del self._journal[: last + 1]

    def lock(self, path: str) -> Lock | None:
        """Lock a file; none if it is locked already."""
        if path in self._locked:
            return None
        if path not in self._files:
            self._create(path)
        self._locked.add(path)
        return SimulatedLock(self._locked, path)
