"""No test of a broker may hang: here a process, a socket or a client of others is waited for, and each test has a limit."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
LIMIT_S = 900
"""An emergency stop, far away: the test fails then, and says where it was."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMIT_S))
