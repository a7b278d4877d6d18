"""Progress on standard error: of an exploration, and of what comes before it."""

import time
from typing import TextIO

from rich.console import Console

from kspec.model_check.core.exploration import Progress
from kspec.model_check.core.preparation import COMPILING

SECONDS_BETWEEN_LINES = 10.0

SECONDS_UNTIL_TOLD = 0.3
"""Work that takes less than this needs no progress."""


class ProgressLine:
    """One line that is rewritten on a terminal; a new line every ten seconds elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self.console = Console(file=stream)
        self.status = self.console.status("starting") if self.console.is_terminal else None
        self.last_line = self._since = self._told = time.monotonic()
        self._doing = ""
        self._before: Progress | None = None

    def report(self, progress: Progress) -> None:
        """Show how far an exploration has come, and how fast it was since the last time."""
        text = (
            f"level {progress.level}: {progress.distinct_states:,} distinct states, {progress.transitions:,} transitions,"
            f" {progress.queue:,} to expand in this level"
        )
        before, self._before = self._before, progress
        if before is not None and progress.seconds > before.seconds and progress.distinct_states >= before.distinct_states:
            rate = (progress.distinct_states - before.distinct_states) / (progress.seconds - before.seconds)
            text += f", {rate:,.0f} states/s"
        self.show(text)

    def prepare(self, doing: str) -> None:
        """Show what is done before anything can be explored. It may be called often."""
        now = time.monotonic()
        if doing != self._doing:
            self._doing, self._since = doing, now
        if doing == COMPILING:
            self.show(doing)
        elif now - max(self._told, self._since) >= SECONDS_UNTIL_TOLD:
            self._told = now
            self.show(f"{doing} ({now - self._since:.0f} s)")

    def show(self, text: str) -> None:
        """Show a line, if it is time for one."""
        if self.status:
            self.status.start()
            self.status.update(text)
        elif time.monotonic() - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            self.console.print(text, soft_wrap=True, highlight=False)

    def close(self) -> None:
        """Take the line away."""
        if self.status:
            self.status.stop()
