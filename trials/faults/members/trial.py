"""Members of several families in groups of both protocols, while coordinators are killed and brokers are restarted in turn.

All the time a reader reads the committed offsets. In the end nobody leaves any more, and the groups must come to rest: the
coordinator says so, and each partition has one owner.
"""

import asyncio
import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Sequence
from itertools import count, cycle
from typing import NamedTuple

from kspec.trials.cluster.asking import NOT_REACHED, ask_once
from kspec.trials.cluster.cpu import CpuMeter
from kspec.trials.cluster.foreground import in_thread
from kspec.trials.cluster.plan import HOST, ClusterError
from kspec.trials.cluster.supervisor import ClusterSupervisor
from kspec.trials.cluster.view import ClusterProbe
from kspec.trials.faults.load import CLIENT, create_topic, library
from kspec.trials.faults.members.families import BOTH, CONSUMER, MemberFamily
from kspec.trials.faults.members.load import MemberLoad, TimedEvents, now_ms
from kspec.trials.history.anomalies import Anomaly, anomalies_in, count_by_name
from kspec.trials.history.events import Event, OffsetFetchOutcome, OffsetFetchStart, write_history
from kspec.trials.history.ownership import SharedTime, owners_at_the_end, shared_times

TOPIC = "members"
READ_EVERY_S, LOOK_EVERY_S, ANSWER_S = 0.5, 0.2, 10.0
LEAVES_EVERY_S, WHOLE_S, REST_S = 10.0, 90.0, 180.0
ASK_S = 5.0
STABLE = "Stable"


class MembersSettings(NamedTuple):
    """The time (s), the families, the members of each group, and how often a coordinator is killed, and for how long (s).

    `allowed_s`: how long two members may hold a partition, as they know it. A member that has lost its session may not have
    heard of it while it waits for the answer to a heartbeat. Of each
    group a member leaves every ten seconds or so. `pause_ms`: between its commits.
    """

    seconds: float
    families: tuple[MemberFamily, ...]
    members: int = 50
    partitions: int = 60
    kill_every_s: float = 20.0
    away_s: float = 3.0
    pause_ms: int = 500
    allowed_s: float = 20.0

    @property
    def stays_s(self) -> float:
        """The shortest time until a member leaves (s)."""
        return LEAVES_EVERY_S * self.members / 2


class Rebalances:
    """The rebalances of a group, as its coordinator tells of its state."""

    def __init__(self) -> None:
        self.took: list[float] = []
        """The length of each (s)."""
        self.state = ""
        self._began: float | None = None

    def note(self, state: str) -> None:
        """Note what the coordinator says. An empty or dead group is in no rebalance."""
        now = time.monotonic()
        if state in (STABLE, "Empty", "Dead") and self._began is not None:
            self.took.append(now - self._began)
            self._began = None
        elif state not in (STABLE, "Empty", "Dead") and self._began is None:
            self._began = now
        self.state = state


class MembersVerdict(NamedTuple):
    """The verdict on a trial, and its figures. `rebalances`: the length of each (s), by protocol."""

    settings: MembersSettings
    anomalies: tuple[Anomaly, ...]
    shared: tuple[SharedTime, ...]
    stuck: str
    committed: dict[str, int]
    errors: Counter[str]
    gave_up: int
    rebalances: dict[str, list[float]]
    kills: int
    restarts: int
    readings: int
    took_s: float
    cpu_s: float

    @property
    def longest_shared_s(self) -> float:
        """The longest time for which two members have held a partition (s)."""
        return max((one.took for one in self.shared), default=0) / 1000

    @property
    def is_bad(self) -> bool:
        """Whether a commit is lost, two members have shared a partition for too long, or a group did not come to rest."""
        return bool(self.anomalies or self.stuck) or self.longest_shared_s > self.settings.allowed_s

    def as_json(self) -> dict[str, object]:
        """The verdict in JSON."""
        committed = sum(self.committed.values())
        return {
            "families": {family.name: list(family.protocols) for family in self.settings.families},
            "members": self.settings.members,
            "partitions": self.settings.partitions,
            "seconds": round(self.took_s, 1),
            "cpu_seconds": round(self.cpu_s, 1),
            "committed": self.committed,
            "commit_errors": dict(self.errors.most_common()),
            "clients_anew": self.gave_up,
            "readings": self.readings,
            "per_second": round(committed / self.took_s, 1),
            "per_cpu_second": round(committed / max(self.cpu_s, 0.01), 1),
            "rebalances": {
                protocol: {"count": len(took), "longest_s": round(max(took, default=0), 1)}
                for protocol, took in self.rebalances.items()
            },
            "kills": self.kills,
            "restarts": self.restarts,
            "shared": len(self.shared),
            "longest_shared_s": round(self.longest_shared_s, 2),
            "longest_shared": [one._asdict() for one in sorted(self.shared, key=lambda one: -one.took)[:5]],
            "allowed_s": self.settings.allowed_s,
            "stuck": self.stuck,
            "anomalies": [one.as_json() for one in self.anomalies],
        }

    def __str__(self) -> str:
        figures = self.as_json()
        found = "each acknowledged commit was there"
        if self.anomalies:
            told = ", ".join(f"{name} {times}" for name, times in count_by_name(self.anomalies).items())
            found = f"ANOMALIES: {told}"
        if self.longest_shared_s > self.settings.allowed_s:
            found = f"TWO OWNERS FOR {self.longest_shared_s:.1f} s: {found}"
        if self.stuck:
            found = f"NOT TO REST: {self.stuck}; {found}"
        families = ", ".join(f"{one.name} ({' and '.join(one.protocols)})" for one in self.settings.families)
        rebalances = "; ".join(
            f"{protocol}: {len(took)} rebalances, the longest {max(took, default=0):.1f} s"
            for protocol, took in self.rebalances.items()
        )
        committed = ", ".join(f"{times:,} by {name}" for name, times in self.committed.items())
        return (
            f"members: {found}\n"
            f"{self.settings.members} members in each group: {families}\n"
            f"{committed}; {self.errors.total():,} commits of unknown end; {self.readings:,} readings\n"
            f"{figures['per_second']} commits per second, {figures['per_cpu_second']} per CPU-second of the nodes\n"
            f"{rebalances}\n"
            f"two owners at once, as the members know it: {len(self.shared)} times, at most {self.longest_shared_s:.2f} s\n"
            f"{self.kills} kills of a coordinator, {self.restarts} restarts in turn"
        )


class MembersTrial:
    """Groups on a cluster that runs."""

    def __init__(self, cluster: ClusterSupervisor, settings: MembersSettings) -> None:
        self._cluster, self._settings = cluster, settings
        self._events = TimedEvents()
        self._view = ClusterProbe({one.node.node_id: (HOST, one.node.port) for one in cluster.brokers})
        self._ended = threading.Event()
        self._kills = self._restarts = self._readings = 0
        self._members = self._share()
        protocols = {protocol for one in self._members.values() for protocol in one.values()}
        self._groups = {protocol: Rebalances() for protocol in BOTH if protocol in protocols}

    def _share(self) -> dict[MemberFamily, dict[str, str]]:
        """The members of each family, with their protocols: a group has members of all families that have its protocol."""
        members: dict[MemberFamily, dict[str, str]] = {family: {} for family in self._settings.families}
        for protocol in BOTH:
            able = [family for family in self._settings.families if protocol in family.protocols]
            for number, family in zip(range(self._settings.members), cycle(able), strict=False):
                members[family][f"{family.name}-{protocol}-{number}"] = protocol
        return members

    async def run(self) -> MembersVerdict:
        """Let members join, kill and restart brokers, wait until all is at rest, and judge. Raises: `ClusterError`."""
        settings, servers = self._settings, self._cluster.addresses
        await in_thread(create_topic, servers, TOPIC, settings.partitions, len(self._cluster.brokers))
        await self._until_whole()
        load = MemberLoad(
            servers, TOPIC, settings.partitions, self._events, pause_ms=settings.pause_ms, stays_s=settings.stays_s
        )
        reading = asyncio.create_task(in_thread(self._keep_reading, servers))
        looking = asyncio.create_task(self._keep_looking())
        meter = CpuMeter(self._cluster)
        measuring = asyncio.create_task(meter.run())
        stuck, began = "", time.monotonic()
        try:
            for family, members in self._members.items():
                load.start(family, members)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(settings.seconds):
                    await self._keep_faulting()
            took_s, cpu_s = time.monotonic() - began, meter.seconds
            self._cluster.held.clear()
            try:
                await self._cluster.until_all_serve()
                await self._until_whole()
                load.keep()
                await self._until_at_rest(load)
            except ClusterError as error:
                stuck = str(error)
            shared_until = self._events.since_began(now_ms())
            await in_thread(load.stop if not stuck else load.kill)
        except BaseException:
            load.kill()
            raise
        finally:
            self._ended.set()
            measuring.cancel()
            looking.cancel()
            self._view.close()
            await reading
        if not stuck and not await in_thread(self._read_at_the_end, servers):
            stuck = "the committed offsets cannot be read in the end"
        return self._judged("; ".join([*filter(None, [stuck]), *load.failed]), load, took_s, cpu_s, shared_until)

    def _judged(self, stuck: str, load: MemberLoad, took_s: float, cpu_s: float, shared_until: int) -> MembersVerdict:
        events = self._events.in_order
        before = [event for event in events if event.ms <= shared_until]
        committed: Counter[str] = Counter()
        for name, times in load.acknowledged.items():
            committed[next(one.name for one, members in self._members.items() if name in members)] += times
        verdict = MembersVerdict(
            self._settings,
            tuple(anomalies_in(events)),
            tuple(shared_times(before, shared_until)),
            stuck,
            dict(committed),
            load.errors,
            load.gave_up.total(),
            {protocol: group.took for protocol, group in self._groups.items()},
            self._kills,
            self._restarts,
            self._readings,
            took_s,
            cpu_s,
        )
        self._keep(verdict, events)
        return verdict

    def _keep(self, verdict: MembersVerdict, events: Sequence[Event]) -> None:
        folder = self._cluster.folder.path / "members"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "history.jsonl").open("w", encoding="utf-8") as stream:
            write_history(events, stream)
        (folder / "verdict.json").write_text(json.dumps(verdict.as_json(), indent=1) + "\n", encoding="utf-8")

    # ---- committed offsets

    def _keep_reading(self, servers: str) -> None:
        """Read the committed offsets of both groups, in turn, until all is over."""
        names = count()
        while not self._ended.wait(READ_EVERY_S):
            for protocol in self._groups:
                self._readings += self._read(servers, protocol, f"reader-{next(names)}")

    def _read(self, servers: str, protocol: str, name: str) -> bool:
        """Read all committed offsets of a group; whether the answer had all."""
        kafka, group = library(), f"{TOPIC}-{protocol}"
        client = kafka.Consumer({**CLIENT, "bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False})
        keys = {number: f"{group}/{TOPIC}-{number}" for number in range(self._settings.partitions)}
        try:
            for key in keys.values():
                self._events.note(OffsetFetchStart(name, key, self._events.since_began(now_ms())))
            found = client.committed([kafka.TopicPartition(TOPIC, number) for number in keys], timeout=ANSWER_S)
        except kafka.KafkaException:
            return False
        finally:
            client.close()
        for one in found:
            if one.error is None:
                offset = one.offset if one.offset >= 0 else -1
                ended = self._events.since_began(now_ms()) + 1
                self._events.note(OffsetFetchOutcome(name, keys[one.partition], offset, ended))
        return all(one.error is None for one in found)

    def _read_at_the_end(self, servers: str) -> bool:
        """Read all once more; whether that was possible."""
        end = time.monotonic() + WHOLE_S
        for protocol in self._groups:
            for number in count():
                if self._read(servers, protocol, f"last-reading-{number}"):
                    break
                if time.monotonic() > end:
                    return False
        return True

    # ---- groups

    async def _keep_looking(self) -> None:
        """Ask the coordinators for the states of the groups, for ever."""
        while True:
            for protocol, group in self._groups.items():
                state = await self._state(protocol)
                if state:
                    group.note(state)
            await asyncio.sleep(LOOK_EVERY_S)

    async def _state(self, protocol: str) -> str:
        """The state of a group, as its coordinator says; nothing, if nobody does."""
        node, group = await self._coordinator(protocol), f"{TOPIC}-{protocol}"
        port = next((one.node.port for one in self._cluster.brokers if one.node.name == node), None)
        if port is None:
            return ""
        with contextlib.suppress(*NOT_REACHED):
            if protocol == CONSUMER:
                answer = await ask_once((HOST, port), "ConsumerGroupDescribe", 0, ASK_S, group_ids=[group])
            else:
                answer = await ask_once((HOST, port), "DescribeGroups", 4, ASK_S, groups=[group])
            if not answer.groups[0].error_code:
                return str(answer.groups[0].group_state)
        return ""

    async def _coordinator(self, protocol: str) -> str:
        """The node that coordinates a group; nothing, if nobody tells."""
        for process in self._cluster.brokers:
            with contextlib.suppress(*NOT_REACHED):
                wanted = {"key_type": 0, "coordinator_keys": [f"{TOPIC}-{protocol}"]}
                answer = await ask_once((HOST, process.node.port), "FindCoordinator", 4, ASK_S, **wanted)
                if answer.coordinators[0].node_id >= 0:
                    return str(answer.coordinators[0].node_id)
        return ""

    async def _until_at_rest(self, load: MemberLoad) -> None:
        """Wait until both groups are stable, and each partition has one owner. Raises: `ClusterError`."""
        end = time.monotonic() + REST_S
        while True:
            if load.ended:
                raise ClusterError(f"the members of {', '.join(load.ended)} have ended")
            owners = owners_at_the_end(self._events.in_order)
            wanted = [
                f"{TOPIC}-{protocol}/{TOPIC}-{number}"
                for protocol in self._groups
                for number in range(self._settings.partitions)
            ]
            odd = [key for key in wanted if len(owners.get(key, ())) != 1]
            states = {protocol: group.state for protocol, group in self._groups.items()}
            if not odd and set(states.values()) == {STABLE}:
                return
            if time.monotonic() > end:
                told = f"{odd[0]} has owners {sorted(owners.get(odd[0], ()))}" if odd else "all partitions have one owner"
                raise ClusterError(f"not at rest after {REST_S:g} s: {states}, {told}; {len(odd)} such")
            await asyncio.sleep(LOOK_EVERY_S)

    # ---- faults

    async def _keep_faulting(self) -> None:
        """Kill the coordinator of one group, then of the other, and so on; at half time restart all brokers in turn."""
        half = time.monotonic() + self._settings.seconds / 2
        rolled = False
        for protocol in cycle(self._groups):
            if not rolled and time.monotonic() + self._settings.kill_every_s > half:
                rolled = True
                await asyncio.sleep(max(half - time.monotonic(), 0))
                await self._restart_in_turn()
            await asyncio.sleep(self._settings.kill_every_s)
            await self._kill_coordinator(protocol)

    async def _restart_in_turn(self) -> None:
        for process in self._cluster.brokers:
            await self._cluster.restart(process.node.name)
            self._restarts += 1
            await self._until_whole()

    async def _kill_coordinator(self, protocol: str) -> None:
        node = await self._coordinator(protocol)
        if node not in self._cluster.processes:
            return
        self._kills += 1
        self._cluster.held.add(node)
        self._cluster.processes[node].kill()
        await asyncio.sleep(self._settings.away_s)
        self._cluster.held.discard(node)
        await self._cluster.until_all_serve()
        await self._until_whole()

    async def _until_whole(self) -> None:
        """Wait until all replicas of the topic are in sync. Raises: `ClusterError`."""
        end = time.monotonic() + WHOLE_S
        while True:
            found = await self._view.partitions(TOPIC)
            in_sync = all(one.leader >= 0 and set(one.isr) == set(one.replicas) for one in found)
            if len(found) == self._settings.partitions and in_sync:
                return
            if time.monotonic() > end:
                raise ClusterError(f"not all replicas are in sync again after {WHOLE_S:g} s")
            await asyncio.sleep(0.2)
