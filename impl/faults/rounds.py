"""Rounds: load, faults, healing, a last reading, and a verdict by the history of what the clients saw."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from impl.cluster.plan import HOST, ClusterError
from impl.cluster.supervisor import Cluster
from impl.cluster.view import ClusterView
from impl.faults.faulty import Faulty
from impl.faults.links import Links
from impl.faults.load import Load, LoadSettings, Reader, Recorder, create_topic
from impl.faults.schedule import Fault, schedule
from impl.history.anomalies import Anomaly, anomalies_in, count_by_name, may_be_without_waiting
from impl.history.events import ACKNOWLEDGED, UNKNOWN, Event, Outcome, Polled, Sent, write_history

PARTITIONS, COPIES = 4, 3
HEALED_S = 180.0
"""An emergency stop: when a cluster that does not become whole again is given up."""


class RoundSettings(NamedTuple):
    """How many rounds, with which load and faults; round K has the seed plus K-1."""

    rounds: int
    seed: int
    seconds: float
    kinds: tuple[str, ...]
    load: LoadSettings


class Verdict(NamedTuple):
    """What came of a round. `allowed`: anomalies within the contract of acks=1."""

    seed: int
    counts: dict[str, int]
    faults: tuple[Fault, ...]
    anomalies: tuple[Anomaly, ...]
    allowed: tuple[Anomaly, ...]

    def __str__(self) -> str:
        kinds = Counter(fault.kind for fault in self.faults)
        told = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        faults = ", ".join(f"{name} {count}" for name, count in sorted(kinds.items())) or "no faults"
        found = "nothing lost"
        if self.allowed:
            found = f"lost as acks=1 may: {_named(self.allowed)}"
        if self.anomalies:
            found = f"ANOMALIES: {_named(self.anomalies)}"
        return f"seed {self.seed}: {found}; {told}; {faults}"


def _named(anomalies: Sequence[Anomaly]) -> str:
    return ", ".join(f"{name} {count}" for name, count in count_by_name(anomalies).items())


class Rounds:
    """Rounds of faults on a cluster that runs. `say` takes each verdict."""

    def __init__(self, cluster: Cluster, links: Links, settings: RoundSettings, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._faulty = Faulty(cluster, links)
        self._settings = settings
        self._say = say
        self.verdicts: list[Verdict] = []

    async def run(self) -> None:
        """Run all rounds. Raises: `ClusterError`."""
        for seed in range(self._settings.seed, self._settings.seed + self._settings.rounds):
            verdict = await self._round(seed)
            self.verdicts.append(verdict)
            self._say(str(verdict))

    async def _round(self, seed: int) -> Verdict:
        servers, topic = self._cluster.addresses, f"round-{seed}-{int(time.time())}"
        brokers = [process.node.name for process in self._cluster.brokers]
        copies = min(COPIES, len(brokers))
        await asyncio.to_thread(create_topic, servers, topic, PARTITIONS, copies)
        await self._until_whole(topic)
        faults = schedule(seed, list(self._cluster.processes), brokers, self._settings.seconds, self._settings.kinds)
        recorder = Recorder()
        load = Load(servers, topic, PARTITIONS, self._settings.load, recorder)
        load.start()
        try:
            await asyncio.gather(self._faulty.carry_out(faults), asyncio.sleep(self._settings.seconds))
            await self._cluster.until_all_serve()
            await self._until_whole(topic)
        finally:
            await asyncio.to_thread(load.stop)
        await asyncio.to_thread(_last_reading, servers, topic, recorder)
        for line in load.gave_up:
            self._cluster.say(f"a producer gave up: {line}")
        return self._judged(seed, faults, recorder.events)

    async def _until_whole(self, topic: str) -> None:
        """Wait until each partition has a leader and all its replicas in sync. Raises: `ClusterError`."""
        view = ClusterView({process.node.node_id: (HOST, process.node.port) for process in self._cluster.brokers})
        end = time.monotonic() + HEALED_S
        try:
            while True:
                found = await view.partitions(topic)
                if len(found) == PARTITIONS and all(one.leader >= 0 and set(one.isr) == set(one.replicas) for one in found):
                    return
                if time.monotonic() > end:
                    told = [f"{one.topic}-{one.partition} leader {one.leader} ISR {list(one.isr)}" for one in found]
                    raise ClusterError(f"not whole again after {HEALED_S:g} s: {', '.join(told) or 'no broker answers'}")
                await asyncio.sleep(0.2)
        finally:
            view.close()

    def _judged(self, seed: int, faults: Sequence[Fault], events: Sequence[Event]) -> Verdict:
        found = anomalies_in(events)
        waits = self._settings.load.acks == "all"
        allowed = tuple(one for one in found if not waits and may_be_without_waiting(one))
        verdict = Verdict(seed, _counts(events), tuple(faults), tuple(one for one in found if one not in allowed), allowed)
        self._keep(verdict, events)
        return verdict

    def _keep(self, verdict: Verdict, events: Sequence[Event]) -> None:
        folder: Path = self._cluster.folder.path / "rounds" / f"seed-{verdict.seed}"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "history.jsonl").open("w", encoding="utf-8") as stream:
            write_history(events, stream)
        (folder / "faults.txt").write_text("".join(f"{fault}\n" for fault in verdict.faults), encoding="utf-8")
        told = {
            "seed": verdict.seed,
            "counts": verdict.counts,
            "anomalies": [one.as_json() for one in verdict.anomalies],
            "allowed": [one.as_json() for one in verdict.allowed],
        }
        (folder / "verdict.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _last_reading(servers: str, topic: str, recorder: Recorder) -> None:
    reader = Reader(servers, topic, range(PARTITIONS), "last-reading", recorder)
    try:
        reader.read_to_the_end()
    finally:
        reader.close()


def _counts(events: Sequence[Event]) -> dict[str, int]:
    outcomes = Counter(event.kind for event in events if isinstance(event, Outcome))
    return {
        "sent": sum(isinstance(event, Sent) for event in events),
        "acknowledged": outcomes[ACKNOWLEDGED],
        "unknown": outcomes[UNKNOWN],
        "polled": sum(len(event.records) for event in events if isinstance(event, Polled)),
    }
