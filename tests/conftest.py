"""What all tests share: Hypothesis without a time limit, and one process for tests that share what is slow to make.

A busy machine is no reason to fail.
"""

import os
import signal

import pytest
from hypothesis import settings

from tests.places import NIGHTLY, nightly_tests

settings.register_profile("no-deadline", settings.get_profile(settings.get_current_profile_name()), deadline=None)
settings.load_profile("no-deadline")

# A shell's background jobs ignore Ctrl-C, which some tests send.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

OF_SESSION, OF_MODULE = ("spark",), ("replay", "unweakened", "explored", "answered", "kept", "induction", "workshop")
"""Fixtures that take long to make. With `--dist loadgroup`, tests that ask for the same one run in one process."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    nightly = set() if os.environ.get(NIGHTLY) else set(nightly_tests())
    for item in items:
        if item.nodeid in nightly:
            item.add_marker(pytest.mark.skip(reason=f"NIGHTLY: {NIGHTLY}=1 runs it; tests/nightly.txt lists such tests"))
        asked = getattr(item, "fixturenames", ())
        groups = [name for name in OF_SESSION if name in asked]
        groups += [f"{item.path.stem} {name}" for name in OF_MODULE if name in asked]
        if groups:
            item.add_marker(pytest.mark.xdist_group(groups[0]))
