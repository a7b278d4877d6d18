"""Runs on one broker, one after the other, and reports of them."""

import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from kspec.conformance.kafka.codec import Codec
from kspec.conformance.kafka.jars import Jars
from kspec.conformance.kafka.network import NodeConnection
from kspec.conformance.kafka.reports import RunReport
from kspec.conformance.kafka.single import SingleKafka
from kspec.conformance.transactions.replay import TransactionReplay, TransactionResult, set_level
from kspec.conformance.transactions.runs import FoundRun

FIRST_WITH_VERSIONS = (4, 0)
"""The first release whose clusters have a version of transactions; before, it is 0."""

SETTINGS = {
    "transaction.state.log.num.partitions": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
}


def has_versions(kafka: str) -> bool:
    """Whether the clusters of a release have a version of transactions."""
    return tuple(int(part) for part in kafka.split("."))[:2] >= FIRST_WITH_VERSIONS


async def replay_all(jars: Jars, runs: Iterable[tuple[int, FoundRun]], told: Callable[[RunReport], None]) -> list[RunReport]:
    """Replay runs, each in a version of transactions, on one process. Raises: `KafkaMissingError`, `ConnectionError`."""
    reports: list[RunReport] = []
    codec, now = Codec(jars), None
    with (
        tempfile.TemporaryDirectory(prefix="kspec-transactions-") as folder,
        SingleKafka(jars, Path(folder) / "broker", SETTINGS) as node,
    ):
        for number, (level, found) in enumerate(runs):
            began = time.monotonic()
            if has_versions(jars.release) and level != now:
                connection = await NodeConnection.open(codec, node.port)
                await set_level(connection, level)
                await connection.close()
                now = level
            result = await TransactionReplay(node, codec, found, level, f"run-{number}").replay()
            reports.append(report_of(result, jars.release, level, time.monotonic() - began))
            told(reports[-1])
    return reports


def report_of(result: TransactionResult, kafka: str, level: int, seconds: float) -> RunReport:
    """The report of a run."""
    run, departure = result.found.run, result.departure
    ending = f"transaction.version {level}, follows {len(result.told)} steps" if departure is None else departure.words
    about = (run.name, run.words, run.claim, kafka, result.told)
    return RunReport(*about, departure is None, departure is None and result.found.is_shown, ending, 1, seconds)
