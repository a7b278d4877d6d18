"""One site for all tests that look at one: building it takes half a minute."""

import os
import shutil
from pathlib import Path

import pytest

from kspec.cli.site.build import build

PREFIX = "some/where"
"""The folder of the site below what is served, so that an absolute address in it would lead nowhere."""


@pytest.fixture(scope="session")
def served_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a site below a prefix."""
    folder = tmp_path_factory.mktemp("served")
    built = os.environ.get("KSPEC_SITE")  # of this tree, by whoever runs the tests
    if built:
        shutil.copytree(built, folder / PREFIX)
    else:
        build(folder / PREFIX)
    return folder


@pytest.fixture(scope="session")
def site(served_folder: Path) -> Path:
    """The site itself."""
    return served_folder / PREFIX
