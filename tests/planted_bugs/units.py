"""Unit tests that notice a planted bug: the tests are collected once, and each bug gets a process of its own."""

import os
from collections.abc import Iterator, Sequence
from signal import SIGALRM, alarm, signal
from typing import Any

import pytest
from hypothesis import settings

from tests.places import REPOSITORY
from tests.planted_bugs.planting import PlantedBug, planted
from tests.planted_bugs.processes import in_a_process

RULES = "tests/spec"
PLACES = {
    "assignors": ("assignors", "consumer", "coordinator"),
    "broker": ("broker", "releases", "published"),
    "consumer": ("consumer",),
    "controller": ("controller", "releases"),
    "coordinator": ("coordinator",),
    "log": ("log", "broker", "releases", "published"),
    "published": ("published",),
    "zookeeper": ("zookeeper", "releases"),
}
"""Of a room below `spec`, the tests that look for its bugs, below `tests/spec`."""

EVERYWHERE = (
    "broker",
    "controller",
    "coordinator",
    "log/test_local_log.py",
    "log/test_epoch_history.py",
    "test_metadata.py",
)
"""The tests for a bug that is in none of these rooms."""

EXAMPLES = 10
"""The number of examples that Hypothesis gives each test, always the same."""

TEST_LIMIT_S, LIMIT_S = 20, 300
"""The longest time of one test, and of all tests of one bug; a bug by which a test does not end is noticed, too."""


def places_of(bug: PlantedBug) -> tuple[str, ...]:
    """The tests that look for a bug."""
    return PLACES.get(bug.function.partition(":")[0].partition(".")[0], EVERYWHERE)


class _OneByOne:
    """Run the collected tests once for each bug, until the first of them fails."""

    def __init__(self, bugs: Sequence[PlantedBug]) -> None:
        self.bugs, self.found = bugs, []  # type: Sequence[PlantedBug], list[tuple[PlantedBug, str]]
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        settings.register_profile(
            "few", settings.get_profile("no-deadline"), max_examples=EXAMPLES, derandomize=True, database=None
        )
        settings.load_profile("few")
        for bug in self.bugs:
            failed = in_a_process(lambda bug=bug: self._first_failure(bug, session), LIMIT_S)  # type: ignore[misc]
            self.found.append((bug, failed))
            print(bug, failed or "no unit test", sep="\n    ", flush=True)
        return True

    def _first_failure(self, bug: PlantedBug, session: pytest.Session) -> str:
        wanted = tuple(f"{RULES}/{place}" for place in places_of(bug))
        items = [item for item in session.items if item.nodeid.startswith(wanted)]
        items.sort(key=lambda item: _is_far_from(bug, item.nodeid))
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        signal(SIGALRM, _give_up)
        with planted(bug):
            for item, following in zip(items, [*items[1:], None], strict=True):
                alarm(TEST_LIMIT_S)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failed:
                    return self.failed
        return ""


def _give_up(*_: object) -> None:
    raise TimeoutError(f"{TEST_LIMIT_S} s are over")


def _is_far_from(bug: PlantedBug, nodeid: str) -> bool:
    """Whether a test is in another file than that of the bug's module: these come last."""
    return bug.function.partition(":")[0].rpartition(".")[2] not in nodeid.partition("::")[0]


def noticed(bugs: Sequence[PlantedBug]) -> Iterator[tuple[PlantedBug, str]]:
    """Each bug with the first unit test that fails, or nothing."""
    plugin: Any = _OneByOne(bugs)
    names = sorted({str(REPOSITORY / RULES / place) for bug in bugs for place in places_of(bug)})
    outcome = pytest.main(["-q", "-m", "not slow", "-p", "no:cacheprovider", "-n", "0", *names], plugins=[plugin])
    assert outcome in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), outcome
    yield from plugin.found
