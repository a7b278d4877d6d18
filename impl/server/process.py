"""The common parts of each process that serves: its limits, event loop, garbage, signals, and the line that says it is
ready.
"""

import asyncio
import gc
import logging
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias

from kspec.impl.config.listeners import is_loopback
from kspec.impl.trace.steps import TraceWriter

MOST_FILES = 100_000

COLLECTED_AFTER = (20_000, 20, 50)
"""Thresholds of the garbage collector: a request allocates many values, and hardly a reference cycle."""

SignalHandler: TypeAlias = signal.Handlers | Callable[[int, FrameType | None], object]

STOPPED_BY: dict[signal.Signals, SignalHandler] = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
"""The signals that stop a process in order, and what they do before and after."""

NewLoop: TypeAlias = Callable[[], asyncio.AbstractEventLoop]


def raise_file_limit() -> None:
    """Open as many files as the system allows this process: each partition has some, and each connection one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextmanager
def event_loop(new_loop: NewLoop, trace: TraceWriter | None) -> Iterator[asyncio.AbstractEventLoop]:
    """The loop of a process that serves; at the end it is closed, and so is the trace."""
    raise_file_limit()
    loop = new_loop()
    try:
        yield loop
    finally:
        for number, handler in STOPPED_BY.items():
            signal.signal(number, handler)
        loop.close()
        if trace is not None:
            trace.close()


def keep_loaded() -> None:
    """All that is loaded will stay in memory: the garbage collector does not look at it again and again."""
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)


def begin(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    """SIGTERM and SIGINT stop the process from now on.

    Not by `loop.add_signal_handler`: that of uvloop loses a signal that comes before the loop runs.
    """
    keep_loaded()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stop)

    for number in STOPPED_BY:
        signal.signal(number, on_signal)


def say_ready(address: str) -> None:
    """Tell who has started this process that it serves."""
    sys.stdout.write(f"ready {address}\n")
    sys.stdout.flush()


def warn_if_open(log: logging.Logger, listening: socket.socket) -> None:
    """Warn if others than this machine reach a listener."""
    host = listening.getsockname()[0]
    if not is_loopback(host):
        log.warning("listening on %s: nobody is authenticated, and everybody who reaches it may do everything", host)


def warn_about(log: logging.Logger, lines: Iterable[str]) -> None:
    """Say which settings have no effect."""
    for line in lines:
        log.warning("%s", line)
