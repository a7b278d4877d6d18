"""What each process that serves needs: its limits, event loop, garbage, signals, and the line that says it is ready."""

import asyncio
import gc
import logging
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from impl.config.broker import is_loopback
from impl.trace.steps import TraceWriter

MOST_FILES = 100_000

COLLECTED_AFTER = (20_000, 20, 50)
"""How many values are made between two looks for circles of garbage. A request makes many values, and hardly a circle."""

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
        loop.close()
        if trace is not None:
            trace.close()


def begin(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    """All is loaded, and will stay in memory. SIGTERM and SIGINT stop the process from now on."""
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)


def say_ready(address: str) -> None:
    """Tell who has started this process that it serves."""
    sys.stdout.write(f"ready {address}\n")
    sys.stdout.flush()


def warn_if_open(log: logging.Logger, listening: socket.socket) -> None:
    """Warn if others than this machine reach a listener."""
    host = listening.getsockname()[0]
    if not is_loopback(host):
        log.warning("listening on %s: nobody is authenticated, and everybody who reaches it may do everything", host)
