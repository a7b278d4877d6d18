"""A cluster in the foreground, until a signal; it leaves no process behind."""

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, ParamSpec, TypeVar

from kspec.trials.cluster.folder import ClusterFolder
from kspec.trials.cluster.plan import ClusterError, UsageError
from kspec.trials.cluster.supervisor import START_S, ClusterSupervisor

SIGNALS = (signal.SIGTERM, signal.SIGINT)

P = ParamSpec("P")
R = TypeVar("R")

Work = Callable[[], Coroutine[Any, Any, None]]


async def run_in_foreground(cluster: ClusterSupervisor, serving: Callable[[], None], beside: Work | None = None) -> bool:
    """Start a cluster, print that it serves, and supervise it until SIGTERM or Ctrl-C; then shut it down.

    `beside` runs as long as the cluster. A second signal kills all nodes. False, if a node had to be killed.
    Raises: `UsageError`, `ClusterError`.
    """
    stop = asyncio.Event()

    def stopped() -> None:
        if stop.is_set():
            cluster.kill()
        stop.set()

    with handled(stopped):
        if not await unless(stop, cluster.start()):
            return True
        serving()
        try:
            await unless(stop, *(one() for one in (cluster.watch, beside) if one is not None))
        finally:
            in_order = await cluster.stop()
        return in_order


@contextlib.contextmanager
def handled(stopped: Callable[[], None]) -> Any:
    """A context in which SIGTERM and SIGINT call this function, in the event loop."""
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stopped)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


async def unless(stop: asyncio.Event, *work: Awaitable[Any]) -> bool:
    """Run several tasks until one of them is done; false, if the stop came first. The others are cancelled."""
    tasks = [asyncio.ensure_future(one) for one in work]
    waiting = asyncio.create_task(stop.wait())
    try:
        done, _ = await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        return waiting not in done
    finally:
        for task in (waiting, *tasks):
            task.cancel()
        await asyncio.gather(waiting, *tasks, return_exceptions=True)


async def in_thread(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The result of a call in a thread of its own.

    Unlike with `asyncio.to_thread`, the loop and the program end without waiting for an abandoned call.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[R] = loop.create_future()

    def told(note: Callable[[Any], None], what: Any) -> None:
        if not outcome.done():
            note(what)

    def run() -> None:
        try:
            done = partial(told, outcome.set_result, work(*args, **kwargs))
        except BaseException as error:  # it is raised where it is awaited
            done = partial(told, outcome.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop is over
            loop.call_soon_threadsafe(done)

    threading.Thread(target=run, daemon=True).start()
    return await outcome


def start_by_hand(folder: ClusterFolder, node: str) -> str:
    """Ask the command that runs the cluster to start a node, and wait until it serves; the node's address.

    Raises: `UsageError`, if no cluster runs or the node cannot be started now; `ClusterError`, if it does not start.
    """
    if not folder.is_taken():
        raise UsageError(f"no cluster runs in {folder.path}")
    folder.ask_to_start(node)
    end = time.monotonic() + START_S
    while (answer := folder.answer_to(node)) is None:
        if time.monotonic() > end or not folder.is_taken():
            raise ClusterError(f"the command that runs the cluster in {folder.path} does not answer")
        time.sleep(0.05)
    if not answer.startswith("ready "):
        raise (ClusterError if "ended" in answer else UsageError)(answer)
    return answer
