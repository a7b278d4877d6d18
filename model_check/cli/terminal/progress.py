"""Progress on standard error while an exploration runs."""

import time
from typing import TextIO

from rich.console import Console

from model_check.core.exploration import Progress

SECONDS_BETWEEN_LINES = 10.0


class ProgressLine:
    """One line that is rewritten on a terminal; a new line every ten seconds elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self.console = Console(file=stream)
        self.status = self.console.status("starting") if self.console.is_terminal else None
        self.last_line = time.monotonic()
        if self.status:
            self.status.start()

    def report(self, progress: Progress) -> None:
        """Show how far an exploration has come."""
        rate = progress.distinct_states / max(progress.seconds, 1e-3)
        text = (
            f"level {progress.level}: {progress.distinct_states:,} distinct states, {progress.transitions:,} transitions,"
            f" {progress.queue:,} to expand in this level, {rate:,.0f} states/s"
        )
        self.show(text)

    def show(self, text: str) -> None:
        """Show a line, if it is time for one."""
        if self.status:
            self.status.update(text)
        elif time.monotonic() - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            self.console.print(text, soft_wrap=True, highlight=False)

    def close(self) -> None:
        if self.status:
            self.status.stop()
