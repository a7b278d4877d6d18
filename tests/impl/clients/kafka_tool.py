"""A command-line tool of Apache Kafka, to be compared with ours."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kspec.conformance.kafka.jars import TOOLS, java
from tests.conformance.kafka.releases import WITH_TOOLS, jars_or_skip

LIMIT_S = 120
"""The longest time for Kafka's tool: an emergency stop."""

HERE = Path(__file__).parent


def printed_by_kafka(tool: str, address: str, runs: Sequence[Sequence[str]]) -> list[str]:
    """The output of a tool, by the name of its class, for each of some lists of arguments."""
    path = os.pathsep.join(map(str, jars_or_skip(WITH_TOOLS, TOOLS).class_path))
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", path, str(HERE / "KafkaTool.java"), tool]
    lines = "".join("\t".join(("--bootstrap-server", address, *arguments)) + "\n" for arguments in runs)
    ended = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert ended.returncode == 0, ended.stderr
    printed = ended.stdout.split("\1")[:-1]
    assert len(printed) == len(runs), ended.stderr
    return printed
