"""The folder of a cluster: a lock of the command that runs it, process ids, and requests to start a node, as files."""

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kspec.trials.cluster.plan import UsageError

PIDS, NODES = "pids.json", "nodes.json"


class ClusterFolder:
    """A folder with one for each node. Only one command runs the cluster in it at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock: int | None = None

    def take(self) -> None:
        """Take the lock of the command that runs the cluster. Raises: `UsageError`."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise UsageError(f"cannot use {self.path}: {error.strerror or error}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise UsageError(f"a cluster runs already in {self.path}") from None
        self._lock = lock
        for file in (self.path / PIDS, *self.path.glob("start*-*")):
            file.unlink(missing_ok=True)

    def is_taken(self) -> bool:
        """Whether a command runs the cluster."""
        try:
            lock = os.open(self.path, os.O_RDONLY)
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(lock)
        return False

    def leave(self) -> None:
        """Release the lock, and remove the process ids."""
        (self.path / PIDS).unlink(missing_ok=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def write_pids(self, pids: Mapping[str, int]) -> None:
        """Write the process ids of the nodes that run, whole or not at all."""
        self._write(PIDS, json.dumps(pids) + "\n")

    def pids(self) -> dict[str, int]:
        """The process ids of the nodes that run."""
        try:
            found: dict[str, int] = json.loads((self.path / PIDS).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found

    def _write(self, name: str, text: str) -> None:
        new = self.path / f".{name}.{os.getpid()}"
        new.write_text(text, encoding="utf-8")
        new.replace(self.path / name)

    # ---- who has been a node

    def nodes(self) -> set[str]:
        """The nodes whose log directories were formatted, and are not formatted again."""
        try:
            found: list[str] = json.loads((self.path / NODES).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {file.parent.name for file in self.path.glob("*/output-*.txt")}
        return {str(name) for name in found} if isinstance(found, list) else set()

    def write_nodes(self, names: Iterable[str]) -> None:
        """Note the nodes whose log directories are formatted."""
        self._write(NODES, json.dumps(sorted(names)) + "\n")

    # ---- a node is started by hand

    def ask_to_start(self, node: str) -> None:
        """Leave a request to start a node."""
        (self.path / f"started-{node}").unlink(missing_ok=True)
        self._write(f"start-{node}", "")

    def requests(self) -> Iterator[str]:
        """The nodes with a request to be started."""
        for file in sorted(self.path.glob("start-*")):
            yield file.name.removeprefix("start-")

    def answer(self, node: str, text: str) -> None:
        """Answer a request: `ready HOST:PORT`, or the reason of the failure."""
        self._write(f"started-{node}", text)
        (self.path / f"start-{node}").unlink(missing_ok=True)

    def answer_to(self, node: str) -> str | None:
        """The answer to a request, once; `None` while there is none."""
        file = self.path / f"started-{node}"
        try:
            text = file.read_text(encoding="utf-8")
        except OSError:
            return None
        file.unlink(missing_ok=True)
        return text
