"""The folder in which compiled loops are kept, and the outcome where they cannot be kept."""

import errno
import tempfile
from pathlib import Path
from typing import Any

import pytest
from numba.core import caching, config

from kspec.model_check.core.preparation import COMPILING, watched
from kspec.model_check.engines.compiled.compilation import kernel


def double(number: int) -> int:
    return 2 * number


@pytest.fixture
def no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Neither the package folder nor the home folder can be written to; returns the folder for temporary files."""
    chosen = [locator for locator in caching.CacheImpl._locator_classes if "UserProvided" in locator.__name__]
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", chosen)
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_without_a_folder_of_its_own_compiled_code_is_kept_in_a_temporary_one(no_folder: Path) -> None:
    doing: list[str] = []
    with watched(doing.append):
        assert kernel(double)(21) == 42
    (folder,) = no_folder.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.rglob("*.nbc"))
    assert doing == [COMPILING]
    with watched(doing.append):
        assert kernel(double)(21) == 42
    assert len(doing) == 1, "what was compiled is loaded"


def test_a_folder_of_somebody_else_is_not_trusted(no_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel(double)
    (folder,) = no_folder.iterdir()
    folder.chmod(0o777)
    monkeypatch.setattr(config, "CACHE_DIR", "")
    assert kernel(double)(21) == 42
    assert not list(folder.rglob("*.nbc"))
    assert len(list(no_folder.iterdir())) == 2


def test_a_full_disk_costs_no_more_than_time(no_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "save", full)
    assert kernel(double)(21) == 42
