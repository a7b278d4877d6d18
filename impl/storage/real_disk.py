"""The operating system's disk."""

import errno
import fcntl
import os
import resource
import stat
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock as ThreadLock

from kspec.impl.records.batch import Buffer
from kspec.impl.storage.disk import File, Lock, StorageError

MOST_BUFFERS = 512
"""For one `writev`: systems allow 1024."""

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
"""The things that may lie in the place of a file."""


def check_file(path: str) -> None:
    """Whether what lies at a path can be opened as a file: a pipe would keep us waiting, and a device may never end.

    Raises: `StorageError`, if it is something else; `FileNotFoundError`.
    """
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except OSError as error:
        if os.path.islink(path):
            raise StorageError(
                f"{path} is a link to {os.readlink(path)}, which cannot be followed, and should be a file"
            ) from error
        raise
    if kind != stat.S_IFREG:
        raise StorageError(f"{path} is {KINDS.get(kind, 'no file')}, and should be a file")


@contextmanager
def named(path: str) -> Iterator[None]:
    """Errors of a call that takes no path name the file: `write` and `fsync` do not know it."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or path
        raise


class RealHandle:
    """A file descriptor that is closed when nobody holds it any more."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: str, flags: int) -> None:
        self.path = path
        self._descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)

    def fileno(self) -> int:
        """The descriptor, for `sendfile`."""
        return self._descriptor

    def read(self, position: int, length: int) -> bytes:
        """The bytes from a position on."""
        data = os.pread(self._descriptor, length, position)
        while 0 < len(data) < length:
            more = os.pread(self._descriptor, length - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def truncate(self, size: int) -> None:
        """Cut the file."""
        with named(self.path):
            os.ftruncate(self._descriptor, size)

    def sync(self) -> None:
        """Return when the content is on the disk."""
        with named(self.path):
            os.fsync(self._descriptor)

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)


class RealFile:
    """Implements `File`."""

    __slots__ = ("_disk", "path", "size")

    def __init__(self, disk: "RealDisk", path: str, size: int) -> None:
        self._disk = disk
        self.path = path
        self.size = size

    def handle(self) -> RealHandle:
        """The open file."""
        return self._disk.handle_of(self)

    def read(self, position: int, length: int) -> bytes:
        """The bytes from a position on."""
        return self._disk.handle_of(self).read(position, length)

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write all buffers at the end, or none."""
        handle = self._disk.handle_of(self)  # held, or another thread's file may take its place and close it
        descriptor = handle.fileno()
        before, wanted = self.size, 0
        try:
            for first in range(0, len(buffers), MOST_BUFFERS):
                part = buffers[first : first + MOST_BUFFERS]
                length = sum(map(len, part))
                wanted += length
                written = os.pwritev(descriptor, part, self.size)
                self.size += written
                if written < length:
                    self._write_rest(descriptor, b"".join(part)[written:])
        except OSError as error:
            os.ftruncate(descriptor, before)
            self.size = before
            raise StorageError(f"cannot write {wanted} bytes to {self.path}: {error.strerror}") from error

    def _write_rest(self, descriptor: int, rest: bytes) -> None:
        while rest:
            written = os.pwrite(descriptor, rest, self.size)
            self.size += written
            rest = rest[written:]

    def truncate(self, size: int) -> None:
        """Cut the file."""
        self._disk.handle_of(self).truncate(size)
        self.size = size

    def close(self) -> None:
        """Forget the open file."""
        self._disk.forget(self)


class RealLock:
    """Implements `Lock`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Give it back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class RealDisk:
    """Implements `Disk`. It keeps at most `max_open` files open, and opens others again when they are needed.

    By default these are half of the files that the process may open; the rest is for connections.
    """

    def __init__(self, max_open: int = 0) -> None:
        self._max_open = max_open or max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2, 16)
        self._handles: OrderedDict[RealFile, RealHandle] = OrderedDict()
        self._lock = ThreadLock()
        """Partitions are opened and created by several threads at once, each its own."""

    def handle_of(self, file: RealFile) -> RealHandle:
        """The open handle of a file; the one used longest ago is dropped if there are too many."""
        with self._lock:
            handle = self._handles.get(file)
            if handle is not None:
                self._handles.move_to_end(file)
                return handle
            while len(self._handles) >= self._max_open:
                self._handles.popitem(last=False)
            handle = self._handles[file] = RealHandle(file.path, os.O_RDWR)
            return handle

    def forget(self, file: RealFile) -> None:
        """Drop the handle of a file."""
        with self._lock:
            self._handles.pop(file, None)

    def open(self, path: str, create: bool = False) -> File:
        """A file that exists, or that is created empty."""
        if not create or os.path.lexists(path):
            check_file(path)
            return RealFile(self, path, os.stat(path).st_size)
        handle = RealHandle(path, os.O_RDWR | os.O_CREAT)
        return RealFile(self, path, os.fstat(handle.fileno()).st_size)

    def read_file(self, path: str) -> bytes:
        """The whole content of a small file."""
        check_file(path)
        with open(path, "rb") as file:
            return file.read()

    def write_file(self, path: str, content: bytes, sync: bool = True) -> None:
        """Create or overwrite a small file, and sync its content. What is neither a file nor a folder is replaced."""
        if os.path.lexists(path):
            kind = stat.S_IFMT(os.lstat(path).st_mode)
            if kind == stat.S_IFDIR:
                check_file(path)
            if kind != stat.S_IFREG:
                os.unlink(path)
        with named(path), open(path, "wb") as file:
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())

    def rename(self, old: str, new: str) -> None:
        """Give a file or folder another name."""
        if os.path.isdir(new) and not os.path.islink(new) and not os.path.isdir(old):
            check_file(new)
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        """Delete a file."""
        if os.path.isdir(path) and not os.path.islink(path):
            check_file(path)
        os.unlink(path)

    def listdir(self, path: str) -> list[str]:
        """The names in a folder, sorted."""
        return sorted(os.listdir(path))

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder, or anything else of this name: a link to nothing, too."""
        return os.path.lexists(path)

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder."""
        return os.path.isdir(path)

    def is_link(self, path: str) -> bool:
        """Whether there is a link."""
        return os.path.islink(path)

    def size(self, path: str) -> int:
        """The length of a file in bytes."""
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        """The time at which a file was last written, in ms."""
        return os.stat(path).st_mtime_ns // 1_000_000

    def make_folder(self, path: str) -> None:
        """Create a folder, and those above it."""
        os.makedirs(path, exist_ok=True)

    def remove_folder(self, path: str) -> None:
        """Delete an empty folder."""
        os.rmdir(path)

    def sync_folder(self, path: str) -> None:
        """Return when the names in a folder are on the disk."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, path: str) -> Lock | None:
        """Lock a file for this process, and create it; none if another holds the lock."""
        if os.path.lexists(path):
            check_file(path)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return None
            raise StorageError(f"{path} cannot be locked: {error.strerror}") from error
        return RealLock(descriptor)
