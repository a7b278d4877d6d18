"""The releases of Kafka that tests run against, where their jars are at hand."""

import os
import subprocess
from pathlib import Path

import pytest

from kspec.conformance.kafka.jars import POM, TOOLS, Jars, KafkaMissingError, fetch_command, find_jars, java

NEWEST, OLD = "4.4.0", "3.9.2"

WITH_TOOLS = "4.3.1"
"""The newest release whose command-line tools are on Maven Central."""


def jars_or_skip(release: str, pom: Path = POM) -> Jars:
    """The jars of a release; where they are missing, or Java is, the test is skipped and says so."""
    try:
        java()
        return find_jars(release, fetch=False, pom=pom)
    except KafkaMissingError as error:
        command = " ".join(fetch_command(release, pom))
        pytest.skip(f"NOT RUN against Apache Kafka {release}: {error}; {command} fetches them")


def kafkas_dump(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run `kafka-dump-log`; without it the test is skipped."""
    path = os.pathsep.join(map(str, jars_or_skip(WITH_TOOLS, TOOLS).class_path))
    command = [java(), "-cp", path, "org.apache.kafka.tools.DumpLogSegments", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
