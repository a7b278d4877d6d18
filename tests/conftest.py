"""Parts that all tests share: Hypothesis without a time limit, and one process for tests that share what is slow to make.

A busy machine is no reason to fail.
"""

import signal
from typing import Any

import pytest
from hypothesis import settings

from tests.limits.marks import NIGHTLY, RUN_NIGHTLY, is_night

settings.register_profile("no-deadline", settings.get_profile(settings.get_current_profile_name()), deadline=None)
settings.load_profile("no-deadline")

# A shell's background jobs ignore Ctrl-C, which some tests send.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

NOT_RUN = f"NIGHTLY: {RUN_NIGHTLY}=1 runs it"


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A name for bytes that are no plain text: that of the argument, which pytest numbers.

    Packed bytes may hold the time. Workers that collect a second apart would then disagree about the name of the test, and
    none would run.
    """
    if isinstance(val, bytes) and not (val.isascii() and val.decode("ascii").isprintable()):
        return argname
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker(NIGHTLY.name) and not is_night():
            item.add_marker(pytest.mark.skip(reason=NOT_RUN))
        group = None if item.get_closest_marker("xdist_group") else shared_by(item)
        if group:
            item.add_marker(pytest.mark.xdist_group(group))


def shared_by(item: pytest.Item) -> str | None:
    """The longest-lived fixture that a test shares with others, by name. With `--dist loadgroup`, tests that share one run
    in one process, so that it is made once; of one with parameters each is made by itself.
    """
    known: dict[str, Any] = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    shared = {name: found[-1] for name, found in known.items() if found[-1].func.__module__.startswith("tests.")}
    for scope in ("session", "module"):
        for name in sorted(one for one in shared if shared[one].scope == scope):
            home = "" if scope == "session" else f"{item.path.parent.name} {item.path.stem} "
            chosen = getattr(getattr(item, "callspec", None), "indices", {}).get(name, "")
            return f"{home}{name} {chosen}".strip()
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    left_out = sum(NOT_RUN in str(report.longrepr) for report in terminalreporter.stats.get("skipped", ()))
    if left_out:
        terminalreporter.write_line(f"NOT RUN: {left_out} nightly tests; {RUN_NIGHTLY}=1 runs them, too")
