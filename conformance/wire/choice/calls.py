"""The functions that a piece of work calls, so that a rule is weakened only where it is asked."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any


@contextmanager
def called_functions() -> Iterator[set[CodeType]]:
    """The code of each function that is called within the block. A profiler that ran before runs again afterwards."""
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, value: Any) -> None:
        if event == "call":
            called.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(before)
