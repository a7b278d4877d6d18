"""One wheel for all tests that install one."""

from pathlib import Path

import pytest

from tests.package.wheels import built_wheel


@pytest.fixture(scope="session")
def made_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path | str:
    """The wheel, or why none can be built here."""
    return built_wheel(tmp_path_factory.mktemp("wheel"))
