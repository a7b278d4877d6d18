"""Rounds: load, faults, healing, a last reading, and a verdict by the history of what the clients saw.

The faults of a round are random, or those of a plan; its seed decides.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from impl.cluster.foreground import in_thread
from impl.cluster.plan import CONTROLLER, HOST, ClusterError
from impl.cluster.supervisor import Cluster
from impl.cluster.view import ClusterView
from impl.faults.faulty import Faulty
from impl.faults.links import Links
from impl.faults.load import FLUSH_S, Load, LoadSettings, Reader, Recorder, create_topic, delete_topic
from impl.faults.plans.catalogue import LEAST_BROKERS, RANDOM, drawn, in_turn
from impl.faults.plans.plan import Plan
from impl.faults.play import PlanError, Play
from impl.faults.schedule import Fault, schedule
from impl.history.anomalies import Anomaly, anomalies_in, count_by_name, may_be_without_waiting
from impl.history.events import ACKNOWLEDGED, UNKNOWN, Event, Outcome, Polled, Sent, write_history
from impl.metadata.files import ImageReader

PARTITIONS, COPIES = 4, 3
HEALED_S, SHORT_FLUSH_S = 90.0, 1.0
"""An emergency stop: when a cluster that does not become whole again is given up. That is a verdict, and the last one.
And how long producers wait for their last records then, or when a signal ends the round."""


class RoundSettings(NamedTuple):
    """How many rounds, with which load and faults; round K has the seed plus K-1.

    `plans`: those that seeds have in turn; if there are none, a seed has any plan, or random faults.
    """

    rounds: int
    seed: int
    seconds: float
    kinds: tuple[str, ...]
    load: LoadSettings
    plans: tuple[str, ...] = ()


class Verdict(NamedTuple):
    """What came of a round.

    - `allowed`: anomalies within the contract of acks=1;
    - `plan`: its name; `missed`: why it could not be carried out to its end, if so;
    - `stuck`: why the cluster was not whole again after the faults, if so. There is no last reading then;
    - `steps`: what was done, in words.
    """

    seed: int
    counts: dict[str, int]
    faults: tuple[Fault, ...]
    anomalies: tuple[Anomaly, ...]
    allowed: tuple[Anomaly, ...]
    plan: str = RANDOM
    missed: str = ""
    stuck: str = ""
    steps: tuple[str, ...] = ()

    @property
    def is_bad(self) -> bool:
        """Whether something is lost that must not be, or the cluster does not come back."""
        return bool(self.anomalies or self.stuck)

    def __str__(self) -> str:
        kinds = Counter(fault.kind for fault in self.faults)
        told = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        faults = ", ".join(f"{name} {count}" for name, count in sorted(kinds.items())) or "no faults"
        if self.plan != RANDOM:
            faults = f"plan {self.plan}" + (f", not to its end: {self.missed}" if self.missed else "")
        found = "nothing lost"
        if self.allowed:
            found = f"lost as acks=1 may: {_named(self.allowed)}"
        if self.anomalies:
            found = f"ANOMALIES: {_named(self.anomalies)}"
        if self.stuck:
            found = f"{found}; NEVER WHOLE: {self.stuck}" if self.anomalies else f"NEVER WHOLE: {self.stuck}"
        return f"seed {self.seed}: {found}; {told}; {faults}"


def _named(anomalies: Sequence[Anomaly]) -> str:
    return ", ".join(f"{name} {count}" for name, count in count_by_name(anomalies).items())


class Rounds:
    """Rounds of faults on a cluster that runs. `say` takes each verdict."""

    def __init__(self, cluster: Cluster, links: Links, settings: RoundSettings, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._links = links
        self._faulty = Faulty(cluster, links)
        self._settings = settings
        self._say = say
        controller = cluster.processes.get(CONTROLLER)
        self._written = None if controller is None else ImageReader(controller.node.data)
        self.verdicts: list[Verdict] = []

    async def run(self) -> None:
        """Run all rounds, up to one after which the cluster does not come back. Raises: `ClusterError`."""
        for seed in range(self._settings.seed, self._settings.seed + self._settings.rounds):
            verdict = await self._round(seed)
            self.verdicts.append(verdict)
            self._say(str(verdict))
            if verdict.stuck:  # nor would it stop in order
                for name, process in self._cluster.processes.items():
                    self._cluster.held.add(name)
                    process.kill()
                return

    def _plan_of(self, seed: int) -> Plan | None:
        if len(self._cluster.brokers) < LEAST_BROKERS:
            return None
        return in_turn(seed, self._settings.plans) if self._settings.plans else drawn(seed)

    async def _round(self, seed: int) -> Verdict:
        servers, topic = self._cluster.addresses, f"round-{seed}-{int(time.time())}"
        brokers = [process.node.name for process in self._cluster.brokers]
        plan = self._plan_of(seed)
        partitions = PARTITIONS if plan is None else 1
        topic_settings = {} if plan is None else plan.settings
        await in_thread(create_topic, servers, topic, partitions, min(COPIES, len(brokers)), topic_settings)
        await self._until_whole(topic, partitions)
        recorder = Recorder()
        load = Load(servers, topic, partitions, self._settings.load, recorder)
        play = Play(self._cluster, self._links, recorder, self._written, topic, seed)
        faults: list[Fault] = []
        missed = stuck = ""
        flush_s: float = SHORT_FLUSH_S
        load.start()
        try:
            if plan is None:
                faults = schedule(seed, list(self._cluster.processes), brokers, self._settings.seconds, self._settings.kinds)
                await asyncio.gather(self._faulty.carry_out(faults), asyncio.sleep(self._settings.seconds))
            else:
                missed = await self._carried_out(plan, play)
            try:
                await self._cluster.until_all_serve()
                await self._until_whole(topic, partitions)
                flush_s = FLUSH_S
            except ClusterError as error:
                stuck = str(error)
        finally:
            await in_thread(load.stop, flush_s)
        if not stuck:
            try:
                await in_thread(_last_reading, servers, topic, partitions, recorder)
            except ClusterError as error:
                stuck = str(error)
        for line in load.gave_up:
            self._cluster.say(f"a producer gave up: {line}")
        name = RANDOM if plan is None else plan.name
        steps = play.steps if plan is not None else [str(fault) for fault in faults]
        verdict = self._judged(seed, faults, recorder.events, read=not stuck)
        verdict = verdict._replace(plan=name, missed=missed, stuck=stuck, steps=tuple(steps))
        self._keep(verdict, recorder.events)
        if not verdict.is_bad:  # else every step of the controller would be written with all topics so far
            await in_thread(delete_topic, servers, topic)
        return verdict

    async def _carried_out(self, plan: Plan, play: Play) -> str:
        """Carry out a plan, and undo what it did; why it was not carried out to its end, if so."""
        try:
            await play.begin()
            await plan.play(play)
        except PlanError as error:
            play.tell(f"given up: {error}")
            return str(error)
        finally:
            self._faulty.heal()
        return ""

    async def _until_whole(self, topic: str, partitions: int) -> None:
        """Wait until each partition has a leader, all replicas are in sync, and nobody is fenced. Raises: `ClusterError`."""
        view = ClusterView({process.node.node_id: (HOST, process.node.port) for process in self._cluster.brokers})
        end = time.monotonic() + HEALED_S
        try:
            while True:
                found = await view.partitions(topic)
                in_sync = all(one.leader >= 0 and set(one.isr) == set(one.replicas) for one in found)
                if len(found) == partitions and in_sync and not self._fenced():
                    return
                if time.monotonic() > end:
                    told = [f"{one.topic}-{one.partition} leader {one.leader} ISR {list(one.isr)}" for one in found]
                    told += [f"broker {broker} is fenced" for broker in self._fenced()]
                    raise ClusterError(f"not whole again after {HEALED_S:g} s: {', '.join(told) or 'no broker answers'}")
                await asyncio.sleep(0.2)
        finally:
            view.close()

    def _fenced(self) -> list[str]:
        """The brokers that the controller has fenced, by what it has written; none, if it is no process of its own."""
        known = self._written.image().spec.brokers if self._written is not None else ()
        return [str(one.broker) for one in known if one.fenced]

    def _judged(self, seed: int, faults: Sequence[Fault], events: Sequence[Event], *, read: bool) -> Verdict:
        """The verdict by what clients saw. `read`: whether all was read once more; if not, a record may be unseen."""
        found = [one for one in anomalies_in(events) if read or one.name != "unseen"]
        waits = self._settings.load.acks == "all"
        allowed = tuple(one for one in found if not waits and may_be_without_waiting(one))
        return Verdict(seed, _counts(events), tuple(faults), tuple(one for one in found if one not in allowed), allowed)

    def _keep(self, verdict: Verdict, events: Sequence[Event]) -> None:
        folder: Path = self._cluster.folder.path / "rounds" / f"seed-{verdict.seed}"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "history.jsonl").open("w", encoding="utf-8") as stream:
            write_history(events, stream)
        (folder / "faults.txt").write_text("".join(f"{step}\n" for step in verdict.steps), encoding="utf-8")
        told = {
            "seed": verdict.seed,
            "plan": verdict.plan,
            "missed": verdict.missed,
            "stuck": verdict.stuck,
            "counts": verdict.counts,
            "anomalies": [one.as_json() for one in verdict.anomalies],
            "allowed": [one.as_json() for one in verdict.allowed],
        }
        (folder / "verdict.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _last_reading(servers: str, topic: str, partitions: int, recorder: Recorder) -> None:
    reader = Reader(servers, topic, range(partitions), "last-reading", recorder)
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
