"""Files that appear complete, or not at all."""

import os
import shutil
import stat
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file beside its place, and put it there when it is complete. A device or a pipe is written to directly.

    The `OSError` of a failure names the file; a file that was there before is then as it was.
    """
    try:
        _write(path.resolve(), text)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _write(path: Path, text: str) -> None:
    there = path.exists()
    if (there and not stat.S_ISREG(path.stat().st_mode)) or not os.access(path.parent, os.W_OK):
        path.write_text(text, encoding="utf-8")
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        if there:
            shutil.copymode(path, unfinished)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
