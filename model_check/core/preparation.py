"""Work before anything is explored: building a model, the tables of an engine, compiling loops. It may take long as well.

Whoever waits for it says what is to happen meanwhile, `watched`. Whoever does it calls `at_work` again and again.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Watch = Callable[[str], None]
"""Called with what is being done. It may raise an exception to end the work."""

COMPILING = "compiling the engine's loops, once for all"
"""The one kind of work that takes long without being called again."""

_watch: ContextVar[Watch | None] = ContextVar("_watch", default=None)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Let `watch` be called while the block prepares something."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def at_work(doing: str) -> None:
    """Tell who watches that preparation goes on; `doing` says with what."""
    watch = _watch.get()
    if watch is not None:
        watch(doing)
