"""Progress on standard error while an exploration runs."""

import time
from typing import TextIO

from model_check.exploration import Progress

SECONDS_BETWEEN_LINES = 10.0


class ProgressLine:
    """One line that is rewritten on a terminal; elsewhere a line every ten seconds."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.terminal = stream.isatty()
        self.last_line = time.monotonic()
        self.written = False

    def report(self, progress: Progress) -> None:
        now = time.monotonic()
        if not self.terminal and now - self.last_line < SECONDS_BETWEEN_LINES:
            return
        self.last_line = now
        rate = progress.distinct_states / max(progress.seconds, 1e-3)
        text = (
            f"level {progress.level}: {progress.distinct_states:,} distinct states, {progress.transitions:,} transitions,"
            f" {progress.queue:,} to expand in this level, {rate:,.0f} states/s"
        )
        if self.terminal:
            self.stream.write(f"\r\x1b[K{text}")
            self.written = True
        else:
            self.stream.write(text + "\n")
        self.stream.flush()

    def close(self) -> None:
        if self.written:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
