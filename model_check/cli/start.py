"""Where the command `kspec` starts. Ctrl-C ends it in one line, also while Python still loads what it needs."""

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
"""How long after a Ctrl-C that was lost it is raised again: Python must be out of the callback by then."""


def main() -> NoReturn:
    """Load the command line and run it."""
    keep_interrupts()
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    if not ignored:
        signal.signal(signal.SIGINT, _end)
    from model_check.cli.main import main as run  # takes a tenth of a second

    if not ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


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
