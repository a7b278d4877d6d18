from collections.abc import Iterator
from typing import Any

import pytest

from tests.model_check.commands import Command


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One session of Spark for all tests that need one: to start Java and its Python workers takes seconds."""
    from kspec.model_check.engines.spark.session import SparkSettings, spark_context  # noqa: PLC0415 (an extra)

    conf = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    with spark_context(SparkSettings("local[2]", conf=conf)) as context:
        yield context
