"""Rounds: load, faults, healing, a last reading, and a verdict by the history of what the clients saw.

The faults of a round are random, or those of a plan; its seed decides.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kspec.trials.cluster.foreground import in_thread
from kspec.trials.cluster.plan import HOST, ClusterError
from kspec.trials.cluster.supervisor import ClusterSupervisor
from kspec.trials.cluster.view import ClusterProbe
from kspec.trials.faults.controllers.changes import CHANGES, MetadataChanges
from kspec.trials.faults.controllers.written import WrittenMetadata
from kspec.trials.faults.group_load import GroupLoad, GroupSettings
from kspec.trials.faults.injector import FaultInjector
from kspec.trials.faults.kinds import ProcessFault
from kspec.trials.faults.links import Links
from kspec.trials.faults.load import FLUSH_S, Load, LoadConsumer, LoadSettings, Recorder, create_topic, delete_topic
from kspec.trials.faults.plans.catalogue import LEAST_BROKERS, RANDOM, drawn, in_turn
from kspec.trials.faults.plans.plan import Plan
from kspec.trials.faults.plans.plan_run import PATIENCE_S, SHORT_PATIENCE_S, PlanError, PlanRun
from kspec.trials.faults.plans.steps import ALL
from kspec.trials.faults.process_run import ProcessPlanRun
from kspec.trials.faults.schedule import schedule
from kspec.trials.faults.transactors.families import ClientFamily
from kspec.trials.faults.transactors.load import (
    PLAIN,
    TRANSFORM,
    TransactionLoad,
    TransactionTopics,
    counts_of_transactions,
)
from kspec.trials.history.anomalies import Anomaly, anomalies_in, count_by_name, may_be_without_waiting
from kspec.trials.history.events import (
    ACKNOWLEDGED,
    UNKNOWN,
    CommitOutcome,
    Event,
    Poll,
    SendOutcome,
    SendStart,
    write_history,
)

PARTITIONS, COPIES = 4, 3
HEALED_S, SHORT_HEALED_S, SHORT_FLUSH_S = 90.0, 60.0, 1.0
"""The longest time in which a cluster must become healthy again; else the round's verdict says so, and rounds end.
The same with weakened rules, and the time that producers then have for their last records (also at a signal)."""


class RoundSettings(NamedTuple):
    """The number of rounds, with their load and faults; round K has the seed plus K-1.

    `plans`: the plans that seeds have in turn; if there are none, a seed has any plan, or random faults.
    `patience_s`, `healed_s`: the longest waits, of a plan for a condition and of a round for a healthy cluster.
    """

    rounds: int
    seed: int
    seconds: float
    kinds: tuple[str, ...]
    load: LoadSettings
    plans: tuple[str, ...] = ()
    groups: GroupSettings = GroupSettings()
    patience_s: float = PATIENCE_S
    healed_s: float = HEALED_S
    families: tuple[ClientFamily, ...] = ()
    """The families of transactional clients, each with one that writes and one that transforms."""

    def impatient(self) -> "RoundSettings":
        """The settings for rules that are weakened: a replica may never come to be in sync."""
        return self._replace(patience_s=SHORT_PATIENCE_S, healed_s=SHORT_HEALED_S)


class RoundVerdict(NamedTuple):
    """The verdict on a round.

    - `allowed`: anomalies within the contract of acks=1;
    - `plan`: its name; `missed`: the condition at which it was given up, if any;
    - `stuck`: the reason why the cluster was not healthy again after the faults, if so. There is no last reading then;
    - `steps`: the steps taken, in words.
    """

    seed: int
    counts: dict[str, int]
    faults: tuple[ProcessFault, ...]
    anomalies: tuple[Anomaly, ...]
    allowed: tuple[Anomaly, ...]
    plan: str = RANDOM
    missed: str = ""
    stuck: str = ""
    steps: tuple[str, ...] = ()

    @property
    def is_bad(self) -> bool:
        """Whether a promise is broken, or the cluster does not recover."""
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

    def __init__(
        self, cluster: ClusterSupervisor, links: Links, settings: RoundSettings, say: Callable[[str], None]
    ) -> None:
        self._cluster = cluster
        self._links = links
        self._injector = FaultInjector(cluster, links)
        self._settings = settings
        self._say = say
        self._controllers = [process.node for process in cluster.processes.values() if not process.node.is_broker]
        self._written = WrittenMetadata(self._controllers) if self._controllers else None
        self.verdicts: list[RoundVerdict] = []

    async def run(self) -> None:
        """Run all rounds, up to one after which the cluster does not recover. Raises: `ClusterError`."""
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
        if len(self._cluster.brokers) < LEAST_BROKERS or len(self._controllers) > 1:
            return None
        return in_turn(seed, self._settings.plans) if self._settings.plans else drawn(seed)

    async def _round(self, seed: int) -> RoundVerdict:
        servers, topic = self._cluster.addresses, f"round-{seed}-{int(time.time())}"
        brokers = [process.node.name for process in self._cluster.brokers]
        plan = self._plan_of(seed)
        partitions = PARTITIONS if plan is None else 1
        topic_settings = {} if plan is None else plan.settings
        await in_thread(create_topic, servers, topic, partitions, min(COPIES, len(brokers)), topic_settings)
        await self._until_whole(topic, partitions)
        recorder = Recorder()
        load = _RoundLoad(servers, topic, partitions, _load_of(self._settings.load, plan), recorder)
        groups = GroupLoad(servers, topic, partitions, self._settings.groups, recorder, seed)
        plan_run = ProcessPlanRun(
            self._cluster, self._links, recorder, self._written, load.add_producer, topic, seed, self._settings.patience_s
        )
        transactions = await self._transactions(servers, topic, recorder, seed)
        places = [(HOST, process.node.told) for process in self._cluster.brokers]
        changes = MetadataChanges(places, topic, recorder, seed)
        faults: list[ProcessFault] = []
        missed = stuck = ""
        flush_s: float = SHORT_FLUSH_S
        load.start()
        groups.start()
        transactions.read()
        for family in self._settings.families:
            transactions.start(family, {f"{family.name}-{mode}": mode for mode in (PLAIN, TRANSFORM)})
        try:
            if plan is None:
                faults = schedule(seed, list(self._cluster.processes), brokers, self._settings.seconds, self._settings.kinds)
                await self._under_faults(faults, changes)
            else:
                missed = await self._carried_out(plan, plan_run)
            try:
                await self._cluster.until_all_serve()
                await self._until_whole(topic, partitions)
                for one in transactions.all_topics:
                    await self._until_whole(one, PARTITIONS)
                flush_s = FLUSH_S
            except ClusterError as error:
                stuck = str(error)
        finally:
            await in_thread(load.stop, flush_s)
            await in_thread(groups.stop, flush_s)
            await in_thread(transactions.stop if not stuck else transactions.kill)
        if not stuck:
            await changes.read_at_the_end()
            stuck = "; ".join(transactions.failed) or await _read_at_the_end(
                partial(_last_reading, servers, topic, partitions, recorder),
                transactions.read_at_the_end,
                partial(_last_reading_of_groups, groups),
            )
        for line, times in Counter([*load.gave_up, *transactions.gave_up]).items():
            self._cluster.say(f"a producer gave up: {line}{f' ({times} times)' if times > 1 else ''}")
        name = RANDOM if plan is None else plan.name
        steps = plan_run.steps if plan is not None else [str(fault) for fault in faults]
        verdict = self._judged(seed, faults, recorder.events, load.settings.acks, read=not stuck)
        verdict = verdict._replace(plan=name, missed=missed, stuck=stuck, steps=tuple(steps))
        self._keep(verdict, recorder.events)
        if not verdict.is_bad:  # else every step of the controller would be written with all topics so far
            for one in (topic, *transactions.all_topics, *changes.topics):
                await in_thread(delete_topic, servers, one)
        return verdict

    async def _under_faults(self, faults: Sequence[ProcessFault], changes: MetadataChanges) -> None:
        """Let random faults happen, while a client changes the metadata."""
        changing = asyncio.create_task(changes.run())
        try:
            await asyncio.gather(self._injector.carry_out(faults), asyncio.sleep(self._settings.seconds))
        finally:
            changing.cancel()
            await asyncio.wait([changing])

    async def _transactions(self, servers: str, topic: str, recorder: Recorder, seed: int) -> TransactionLoad:
        """The transactional clients of a round, and their topics; none, if there are no families."""
        topics = TransactionTopics(f"{topic}-in", f"{topic}-out", PARTITIONS if self._settings.families else 0)
        load = TransactionLoad(servers, topics, recorder, seed=seed)
        for one in load.all_topics:
            await in_thread(create_topic, servers, one, PARTITIONS, min(COPIES, len(self._cluster.brokers)))
            await self._until_whole(one, PARTITIONS)
        return load

    async def _carried_out(self, plan: Plan, run: PlanRun) -> str:
        """Carry out a plan, and undo its faults; the reason why it was given up, if it was."""
        try:
            await run.begin()
            await plan.carry_out(run)
        except PlanError as error:
            run.tell(f"given up: {error}")
            return str(error)
        finally:
            self._injector.heal()
        return ""

    async def _until_whole(self, topic: str, partitions: int) -> None:
        """Wait until all partitions have leaders, all replicas are in sync, no broker is fenced. Raises: `ClusterError`."""
        view = ClusterProbe({process.node.node_id: (HOST, process.node.port) for process in self._cluster.brokers})
        end = time.monotonic() + self._settings.healed_s
        try:
            while True:
                found = await view.partitions(topic)
                in_sync = all(one.leader >= 0 and set(one.isr) == set(one.replicas) for one in found)
                if len(found) == partitions and in_sync and not self._fenced():
                    return
                if time.monotonic() > end:
                    told = [f"{one.topic}-{one.partition} leader {one.leader} ISR {list(one.isr)}" for one in found]
                    told += [f"broker {broker} is fenced" for broker in self._fenced()]
                    raise ClusterError(
                        f"not whole again after {self._settings.healed_s:g} s: {', '.join(told) or 'no broker answers'}"
                    )
                await asyncio.sleep(0.2)
        finally:
            view.close()

    def _fenced(self) -> list[str]:
        """The brokers that are fenced according to the controller's log; none, if it is no process of its own."""
        brokers = self._written.image().spec.brokers if self._written is not None else ()
        return [str(known.broker) for known in brokers if known.fenced]

    def _judged(
        self, seed: int, faults: Sequence[ProcessFault], events: Sequence[Event], acks: str, *, read: bool
    ) -> RoundVerdict:
        """The verdict by the history. `read`: whether there was a last reading; if not, a record may be unseen."""
        found = [one for one in anomalies_in(events) if read or one.name != "unseen"]
        waits = acks == ALL
        allowed = tuple(one for one in found if not waits and may_be_without_waiting(one))
        return RoundVerdict(seed, _counts(events), tuple(faults), tuple(one for one in found if one not in allowed), allowed)

    def _keep(self, verdict: RoundVerdict, events: Sequence[Event]) -> None:
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


class _RoundLoad:
    """The load of a round, and the producers that its plan adds."""

    def __init__(self, servers: str, topic: str, partitions: int, settings: LoadSettings, recorder: Recorder) -> None:
        self.settings = settings
        self._new = partial(Load, servers, topic, partitions, recorder=recorder)
        self._loads = [self._new(settings=settings)]

    def start(self) -> None:
        """Start the clients."""
        self._loads[0].start()

    def add_producer(self) -> None:
        """Start another producer."""
        more = self.settings._replace(producers=1, consumers=0)
        self._loads.append(self._new(settings=more, group=f"{len(self._loads) + 1}"))
        self._loads[-1].start()

    def stop(self, flush_s: float) -> None:
        """Stop all clients."""
        for load in self._loads:
            load.stop(flush_s)

    @property
    def gave_up(self) -> list[str]:
        """The producers that gave up."""
        return [line for load in self._loads for line in load.gave_up]


def _load_of(settings: LoadSettings, plan: Plan | None) -> LoadSettings:
    """The load of a round, with the acks and batches of its plan."""
    if plan is None:
        return settings
    return settings._replace(acks=settings.acks if plan.acks == ALL else plan.acks, one_by_one=plan.one_by_one)


async def _read_at_the_end(*readings: Callable[[], None]) -> str:
    """Read all once more; the reason why that was not possible, if so."""
    try:
        for reading in readings:
            await in_thread(reading)
    except ClusterError as error:
        return str(error)
    return ""


def _last_reading(servers: str, topic: str, partitions: int, recorder: Recorder) -> None:
    reader = LoadConsumer(servers, topic, range(partitions), "last-reading", recorder)
    try:
        reader.read_to_the_end()
    finally:
        reader.close()


def _last_reading_of_groups(groups: GroupLoad) -> None:
    """Read the committed offsets of the groups. Raises: `ClusterError`, if no coordinator responds."""
    end = time.monotonic() + HEALED_S
    while not groups.read_at_the_end():
        if time.monotonic() > end:
            raise ClusterError(f"no coordinator responds with the offsets of {' and '.join(groups.groups)}")


def _counts(events: Sequence[Event]) -> dict[str, int]:
    outcomes = Counter(event.kind for event in events if isinstance(event, SendOutcome))
    committed = [event for event in events if isinstance(event, CommitOutcome) and event.kind == ACKNOWLEDGED]
    changed = [event for event in committed if event.partition.startswith(CHANGES)]
    return {
        "sent": sum(isinstance(event, SendStart) for event in events),
        "acknowledged": outcomes[ACKNOWLEDGED],
        "unknown": outcomes[UNKNOWN],
        "commits": len(committed) - len(changed),
        "metadata changes": len(changed),
        "polled": sum(len(event.records) for event in events if isinstance(event, Poll)),
        **counts_of_transactions(events),
    }
