"""The operations that storage needs of a disk. `RealDisk` is the operating system's; `SimulatedDisk` loses what was not
synced.
"""

from collections.abc import Sequence
from typing import Protocol

from kspec.impl.records.batch import Buffer


class StorageError(Exception):
    """A file or folder that cannot be used: one line that names it, says what is wrong, and what would be right."""


class Handle(Protocol):
    """An open file that stays readable for as long as somebody holds this value, even if the file is renamed or deleted."""

    def fileno(self) -> int:
        """The file descriptor, for `sendfile`. A simulated file has none, and raises `OSError`."""

    def read(self, position: int, length: int) -> bytes:
        """The bytes from a position on, fewer at the end of the file."""

    def sync(self) -> None:
        """Return when the content is on the disk. Another thread may call it."""


class File(Protocol):
    """A file that is appended to. Its path stays; its handle may be closed in between, when too many files are open."""

    @property
    def path(self) -> str:
        """The file's path."""

    @property
    def size(self) -> int:
        """Its length in bytes."""

    def handle(self) -> Handle:
        """The open file, to be read from later."""

    def read(self, position: int, length: int) -> bytes:
        """The bytes from a position on, fewer at the end of the file."""

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write all of them at the end with one call; if the disk takes only a part, that part is removed again."""

    def truncate(self, size: int) -> None:
        """Cut the file."""

    def close(self) -> None:
        """Forget the open file. It may be used again."""


class Disk(Protocol):
    """Files and folders. Errors of the operating system come as `OSError`, a file that is none as `StorageError`."""

    def open(self, path: str, create: bool = False) -> File:
        """A file that exists, or that is created empty."""

    def read_file(self, path: str) -> bytes:
        """The whole content of a small file."""

    def write_file(self, path: str, content: bytes, sync: bool = True) -> None:
        """Create or overwrite a small file, and sync its content. Its name is safe only after `sync_folder`."""

    def rename(self, old: str, new: str) -> None:
        """Give a file or folder another name at once; a file of that name is replaced."""

    def unlink(self, path: str) -> None:
        """Delete a file."""

    def listdir(self, path: str) -> list[str]:
        """The names in a folder, sorted."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder."""

    def is_link(self, path: str) -> bool:
        """Whether there is a link: who deletes does not follow it."""

    def size(self, path: str) -> int:
        """The length of a file in bytes."""

    def modified_ms(self, path: str) -> int:
        """The time at which a file was last written, in ms."""

    def make_folder(self, path: str) -> None:
        """Create a folder, and those above it; none of them needs to be new."""

    def remove_folder(self, path: str) -> None:
        """Delete an empty folder."""

    def sync_folder(self, path: str) -> None:
        """Return when the names in a folder are on the disk. **Kafka:** `Utils.flushDir`."""

    def lock(self, path: str) -> "Lock | None":
        """Lock a file for this process, and create it; none if another holds the lock."""


class Lock(Protocol):
    """A lock that is held."""

    def release(self) -> None:
        """Give it back."""
