"""Compilation of the compiled loops, kept on disk, and loaded again in little time."""

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from numba import config, njit
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

from kspec.model_check.core.preparation import COMPILING, at_work

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
            at_work(COMPILING)
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled code, unless the disk is full: it is compiled again then."""
        save: Any = super().save_overload
        with suppress(OSError):
            save(sig, data)


def _cache_of(function: Callable[..., Any]) -> Any:
    """The folder of compiled code: beside the code, in the home folder, or in a temporary folder.

    The last is for containers, which often have a read-only package folder and no home.
    """
    cache: Any = _LoadedAlone
    try:
        return cache(function)
    except RuntimeError:  # Numba has found no folder
        setattr(config, "CACHE_DIR", str(_temporary_folder()))  # noqa: B010 (the module makes its names itself)
        return cache(function)


def _temporary_folder() -> Path:
    """A folder that only this user can have written to: what lies in it is executed."""
    folder = Path(tempfile.gettempdir()) / f"kspec-compiled-{os.getuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
            return folder
    own = Path(tempfile.mkdtemp(prefix="kspec-compiled-"))
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own


def kernel(function: Function) -> Function:
    """A function compiled for each kind of arguments, kept on disk, that runs without Python's global lock."""
    dispatcher: Any = njit(nogil=True)(function)
    dispatcher._cache = _cache_of(function)
    compiled: Function = dispatcher
    return compiled
