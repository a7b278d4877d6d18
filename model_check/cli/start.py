"""Where the command `kspec` starts. Ctrl-C ends it in one line, also while Python still loads what it needs."""

import os
import signal
from types import FrameType
from typing import NoReturn

INTERRUPTED = 3
"""Exit status: stopped early."""


def main() -> NoReturn:
    """Load the command line and run it."""
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    if not ignored:
        signal.signal(signal.SIGINT, _end)
    from model_check.cli.main import main as run  # takes a tenth of a second

    if not ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _end(signum: int, frame: FrameType | None) -> NoReturn:
    """End at once: an exception in the middle of an import may be taken for another one, or be lost."""
    os.write(2, b"kspec: interrupted\n")
    os._exit(INTERRUPTED)
