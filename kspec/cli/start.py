"""Start of the command `kspec`. Ctrl-C ends it in one line, also while Python still loads what it needs."""

import _thread
import os
import signal
import sys
import time
from types import FrameType
from typing import NoReturn

INTERRUPTED = 3
"""Exit status: stopped early."""

AGAIN_AFTER_S = 0.01
"""Seconds after which a lost Ctrl-C is raised again: Python must be out of the callback by then."""


def main() -> NoReturn:
    """Load the command line and run it."""
    open_closed_streams()
    keep_interrupts()
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    if not ignored:
        signal.signal(signal.SIGINT, _end)
    from kspec.cli.main import main as run  # takes a tenth of a second

    if not ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def open_closed_streams() -> None:
    """Put something in the place of standard streams that are closed, or the next file opened would be one of them.

    What is written to standard output then fails, so that nobody takes lost output for an empty one. What is told on
    standard error goes nowhere.
    """
    for number, name, flags, mode in (
        (0, "stdin", os.O_RDONLY, "r"),
        (1, "stdout", os.O_RDONLY, "w"),
        (2, "stderr", os.O_WRONLY, "w"),
    ):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, flags)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 (for as long as the process lives)


def keep_interrupts() -> None:
    """Raise a Ctrl-C again if Python has lost it.

    An exception in a callback of a weak reference goes nowhere: Python complains about it, and goes on. Imports have such
    callbacks.
    """
    complain, thread = sys.unraisablehook, _thread.get_ident()

    def raise_later() -> None:
        time.sleep(AGAIN_AFTER_S)
        signal.pthread_kill(thread, signal.SIGINT)

    def keep(lost: "sys.UnraisableHookArgs") -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            _thread.start_new_thread(raise_later, ())
        else:
            complain(lost)

    sys.unraisablehook = keep


def _end(signum: int, frame: FrameType | None) -> NoReturn:
    """End at once: an exception in the middle of an import may be taken for another one, or be lost."""
    os.write(2, b"kspec: interrupted\n")
    os._exit(INTERRUPTED)
