"""Which unit test notices a planted bug: the tests are collected once, and each bug gets a process of its own."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.places import REPOSITORY
from tests.planted_bugs.planting import PlantedBug, planted

TESTS = (
    "tests/spec/broker",
    "tests/spec/controller",
    "tests/spec/coordinator",
    "tests/spec/zookeeper",
    "tests/spec/log",
    "tests/spec/test_metadata.py",
)
"""The tests of the rules: of a bug in a room, those of the room. Hypothesis gives each a few examples, always the same."""

PLACES = {
    "broker": ("broker",),
    "controller": ("controller",),
    "coordinator": ("coordinator",),
    "zookeeper": ("zookeeper",),
    "log": ("log", "broker"),
}
EVERYWHERE = ("broker", "controller", "log/test_local_log.py", "log/test_epoch_history.py", "test_metadata.py")
"""The tests for a bug that is in none of these rooms."""

EXAMPLES = 10


class _OneByOne:
    """Run the collected tests once for each bug, until the first of them fails."""

    def __init__(self, bugs: tuple[PlantedBug, ...]) -> None:
        self.bugs, self.found = bugs, []  # type: tuple[PlantedBug, ...], list[tuple[PlantedBug, str | None]]
        self.failed: str | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        settings.register_profile(
            "few", settings.get_profile("no-deadline"), max_examples=EXAMPLES, derandomize=True, database=None
        )
        settings.load_profile("few")
        for bug in self.bugs:
            failed = self._in_a_process(bug, session)
            self.found.append((bug, failed))
            print(bug.name, failed or "no unit test", flush=True)
        return True

    def _in_a_process(self, bug: PlantedBug, session: pytest.Session) -> str | None:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            os.write(writer, (self._first_failure(bug, session) or "").encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as told:
            failed = told.read().decode()
        os.waitpid(child, 0)
        return failed or None

    def _first_failure(self, bug: PlantedBug, session: pytest.Session) -> str | None:
        room = bug.function.partition(".")[0]
        places = PLACES.get(room.partition(":")[0], EVERYWHERE)
        found = (item for item in session.items if any(f"tests/spec/{place}" in item.nodeid for place in places))
        items = sorted(found, key=lambda item: _is_far_from(bug, item.nodeid))
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        with planted(bug):
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failed:
                    return self.failed
        return None


def _is_far_from(bug: PlantedBug, nodeid: str) -> bool:
    """Whether a test is in another file than that of the bug's module: these come last."""
    return bug.function.partition(":")[0].rpartition(".")[2] not in nodeid.partition("::")[0]


def noticed(bugs: tuple[PlantedBug, ...]) -> Iterator[tuple[PlantedBug, str | None]]:
    """Each bug with the first unit test that fails, `None` if none does."""
    plugin: Any = _OneByOne(bugs)
    names = [str(REPOSITORY / name) for name in TESTS]
    pytest.main(["-q", "-m", "not slow", "-p", "no:cacheprovider", "-n", "0", *names], plugins=[plugin])
    yield from plugin.found
