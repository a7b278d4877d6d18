"""Runs on one broker, one after the other, and reports of them."""

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self, TypeAlias

from kspec.conformance.kafka.codec import Codec
from kspec.conformance.kafka.jars import Jars
from kspec.conformance.kafka.network import NodeConnection
from kspec.conformance.kafka.process import HOST, free_port
from kspec.conformance.kafka.reports import RunReport
from kspec.conformance.kafka.single import SingleKafka
from kspec.conformance.transactions.clusters import CLUSTER_OBSERVATIONS, ClusterObservation, observe_cluster
from kspec.conformance.transactions.observations import OBSERVATIONS, ObservedBroker, TransactionObservation
from kspec.conformance.transactions.prompt import has_versions
from kspec.conformance.transactions.replay import TransactionReplay, TransactionResult, set_level
from kspec.conformance.transactions.runs import FoundRun

SETTINGS = {
    "transaction.state.log.num.partitions": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
}


TransactionsRun: TypeAlias = FoundRun | TransactionObservation | ClusterObservation
"""A run of the model, or an observation of one broker or of a cluster."""


OBSERVED: Mapping[str, TransactionObservation | ClusterObservation] = {
    one.name: one for one in (*OBSERVATIONS, *CLUSTER_OBSERVATIONS)
}
"""All observations."""


class TransactionSession:
    """One broker, on which runs are replayed one after the other. `is_held`: Java listens for a debugger."""

    def __init__(self, jars: Jars, folder: Path, is_held: bool) -> None:
        self._codec = Codec(jars)
        self._release = jars.release
        self._node = SingleKafka(jars, folder, SETTINGS)
        self._debugger_port = free_port() if is_held else 0
        self._level: int | None = None
        self._count = 0
        if is_held:
            listens = f"transport=dt_socket,server=y,suspend=n,address={HOST}:{self._debugger_port}"
            self._node.process.flags = (f"-agentlib:jdwp={listens}",)

    def __enter__(self) -> Self:
        self._node.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._node.__exit__(*raised)

    async def replay(self, level: int, found: FoundRun | TransactionObservation) -> RunReport:
        """Replay a run in a version of transactions. Raises: `KafkaMissingError`, `ConnectionError`, `TimeoutError`."""
        began = time.monotonic()
        await self._set_level(level)
        self._count += 1
        name = f"run-{self._count}"
        if isinstance(found, FoundRun):
            result = await TransactionReplay(self._node, self._codec, found, level, name).replay()
            return report_of(result, self._release, level, time.monotonic() - began)
        broker = ObservedBroker(self._node, self._codec, level, name)
        broker.debugger_port = self._debugger_port
        try:
            await broker.begin()
            is_true = await found.observe(broker)
        finally:
            await broker.close()
        about = (found.name, found.words, found.claim, self._release, tuple(broker.lines))
        ending = f"transaction.version {level}, {len(broker.lines)} observations"
        return RunReport(*about, True, is_true, ending, 1, time.monotonic() - began)

    async def _set_level(self, level: int) -> None:
        if has_versions(self._release) and level != self._level:
            connection = await NodeConnection.open(self._codec, self._node.port)
            await set_level(connection, level)
            await connection.close()
            self._level = level


async def replay_all(
    jars: Jars, runs: Iterable[tuple[int, TransactionsRun]], told: Callable[[RunReport], None]
) -> list[RunReport]:
    """Replay runs, each in a version of transactions: those of one broker first, then each of a cluster on one of its own.

    Raises: `KafkaMissingError`, `ClusterError`, `ConnectionError`, `TimeoutError`.
    """
    reports: list[RunReport] = []
    chosen = list(runs)
    alone = [(level, run) for level, run in chosen if not isinstance(run, ClusterObservation)]
    if alone:
        is_held = any(isinstance(run, TransactionObservation) and run.is_held for _, run in alone)
        with (
            tempfile.TemporaryDirectory(prefix="kspec-transactions-") as folder,
            TransactionSession(jars, Path(folder) / "broker", is_held) as session,
        ):
            for level, one in alone:
                reports.append(await session.replay(level, one))
                told(reports[-1])
    for level, run in chosen:
        if isinstance(run, ClusterObservation):
            reports.append(await observe_cluster(jars, level, run))
            told(reports[-1])
    return reports


def report_of(result: TransactionResult, kafka: str, level: int, seconds: float) -> RunReport:
    """The report of a run."""
    run, departure = result.found.run, result.departure
    ending = f"transaction.version {level}, follows {len(result.told)} steps" if departure is None else departure.words
    about = (run.name, run.words, run.claim, kafka, result.told)
    return RunReport(*about, departure is None, departure is None and result.found.is_shown, ending, 1, seconds)
