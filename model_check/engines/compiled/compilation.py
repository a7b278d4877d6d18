"""How the compiled loops are compiled, kept on disk, and loaded again in little time."""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

from model_check.core.preparation import at_work

Function = TypeVar("Function", bound=Callable[..., Any])


class _LoadedAlone(FunctionCache):
    """Numba's cache on disk, without what only a compilation needs.

    Before it loads machine code, Numba's own cache imports the implementations of everything that a kernel might call,
    including SciPy's: 0.2 s of every start. Compiled code needs only Numba's run-time system.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled code of one signature, or None if it is not on disk."""
        rtsys.initialize(target_context)
        load: Any = self._load_overload
        loaded = None  # and so after a file system error: the function is compiled again
        with self._guard_against_spurious_io_errors():
            loaded = load(sig, target_context)
        if loaded is None:
            at_work("compiling the engine's loops, which is kept for the next time")
        return loaded


def kernel(function: Function) -> Function:
    """A function compiled for each kind of arguments, kept on disk, that runs without Python's global lock."""
    dispatcher: Any = njit(nogil=True)(function)
    cache: Any = _LoadedAlone
    dispatcher._cache = cache(function)
    compiled: Function = dispatcher
    return compiled
