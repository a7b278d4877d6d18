"""Something that a shell command has done by this process: how a runner restarts a broker of a test."""

import shlex
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.limits.turns import Turns


class CommandedAction:
    """`command` ends when the action was taken, in a thread of its own. Used as a `with` block."""

    def __init__(self, folder: Path, action: Callable[[], object]) -> None:
        self._file = folder / "wanted"
        self._action = action
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.taken = 0
        name = shlex.quote(str(self._file))
        self.command = f"touch {name}; while [ -e {name} ]; do sleep 0.05; done"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join(60)

    def _work(self) -> None:
        turns = Turns()
        while not self._over.is_set():
            turns.go()
            if self._file.exists():
                self._action()
                self.taken += 1
                self._file.unlink()
            time.sleep(0.05)
