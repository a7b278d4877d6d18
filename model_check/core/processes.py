"""Processes that work on independent tasks, and end when the one that waits for them does."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice
from multiprocessing import active_children, get_context
from types import FrameType
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

SECONDS_TO_END = 1.0
"""Seconds that a process may take to end once it is told to."""


@contextmanager
def worked_apart(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    workers: int,
    start: Callable[..., None] | None = None,
    arguments: tuple[Any, ...] = (),
) -> Iterator[list[Future[Result]]]:
    """The results of a function for these tasks, in order, as they come from processes of this machine.

    Each process calls `start` with `arguments` first. If the block ends with an error, as with Ctrl-C, the processes end at
    once, whatever they are doing. They do not see a Ctrl-C themselves: each would complain about it.
    """
    executor = ProcessPoolExecutor(workers, get_context("spawn"), start, arguments)
    waiting = iter(tasks)
    try:
        with without_interrupts():  # a process inherits this
            futures = [executor.submit(function, task) for task in islice(waiting, workers)]
        futures += [executor.submit(function, task) for task in waiting]
        yield futures
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        _end(active_children())
        raise
    executor.shutdown()


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait until the block ends.

    Blocking the signal in this thread is not enough: the system gives it to another thread that does not block it, and
    Python raises KeyboardInterrupt here all the same, between the start of a process and what it is told.
    """
    came: list[tuple[int, FrameType | None]] = []
    handled = threading.current_thread() is threading.main_thread()
    if handled:
        handler = signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if handled:
            signal.signal(signal.SIGINT, handler)
        if came and callable(handler):
            handler(*came[-1])


def _end(processes: list[Any]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(SECONDS_TO_END)
        if process.is_alive():
            process.kill()
