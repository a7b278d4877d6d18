"""The run of a plan on processes, under the load of real clients."""

import asyncio
import contextlib
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from kspec.impl.metadata.image import ClusterImage
from kspec.impl.records.batch import headers
from kspec.impl.records.record import new_batch, records_of
from kspec.impl.wire.values import Message
from kspec.trials.cluster.asking import NOT_REACHED, ask_once
from kspec.trials.cluster.plan import CONTROLLER, HOST
from kspec.trials.cluster.supervisor import ClusterSupervisor
from kspec.trials.cluster.view import ClusterProbe
from kspec.trials.cluster.waiting import within
from kspec.trials.faults.controllers.written import WrittenMetadata
from kspec.trials.faults.damage import OF_PARTITION, FileKind, damage_folder
from kspec.trials.faults.damage import DamageKind as Damage
from kspec.trials.faults.links import Hold, Link, Links
from kspec.trials.faults.load import Recorder
from kspec.trials.faults.plans.plan_run import PATIENCE_S, PlanError, PlanRun
from kspec.trials.faults.power import erase_records, lose_tail
from kspec.trials.history.events import ACKNOWLEDGED, UNKNOWN, ConsumerAssignment, Poll, SendOutcome, SendStart

BATCH, READ_BYTES = 20, 1 << 20
"""Records in a batch that a plan itself sends, and bytes of a fetch response that it reads."""

LOOK_S = 0.1
"""Pause between two looks at a broker's report (s)."""

DAMAGED = (*OF_PARTITION, FileKind.HIGH_WATERMARKS, FileKind.RECOVERY_POINTS, FileKind.LOG_STARTS, FileKind.CLEAN_STOP)
DAMAGES = tuple(kind for kind in Damage if kind not in (Damage.SWAP, Damage.STALE))
"""The files of a broker that are damaged, and the kinds of damage: all but another replica's content and an older one."""


def more_sent(recorder: Recorder, more: int) -> Callable[[], bool]:
    """A condition: so many records are sent from now on."""
    begin = len(recorder.events)
    return lambda: sum(isinstance(event, SendStart) for event in recorder.events[begin:]) >= more


class ProcessPlanRun(PlanRun):
    """A run of a plan on processes."""

    def __init__(
        self,
        cluster: ClusterSupervisor,
        links: Links,
        recorder: Recorder,
        written: WrittenMetadata | None,
        begin_producer: Callable[[], None],
        topic: str,
        seed: int,
        patience_s: float = PATIENCE_S,
    ) -> None:
        super().__init__(topic, seed, patience_s)
        self.cluster = cluster
        self._links = links
        self._recorder = recorder
        self._written = written
        self._begin_producer = begin_producer
        self._began = time.monotonic()

    # ---- time

    def elapsed_s(self) -> float:
        """The time since the beginning."""
        return time.monotonic() - self._began

    async def within(self, seconds: float, holds: Callable[[], bool]) -> bool:
        """Whether a condition holds within so many seconds."""
        return await within(seconds, holds)

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    # ---- observations

    def image(self) -> ClusterImage:
        """The cluster image in the controller's metadata log."""
        assert self._written is not None, "a plan needs a controller in a process of its own"
        return self._written.image()

    async def learns_leader(self, broker: str, seconds: float) -> bool:
        """Whether a broker reports the present leader epoch within so many seconds."""
        node = self.cluster.processes[broker].node
        view, end = ClusterProbe({node.node_id: (HOST, node.port)}), self.elapsed_s() + seconds
        try:
            while self.elapsed_s() < end:
                told, partition = await view.told_by(node.node_id, self.topic), self.partition()
                if told is not None and told.leader_epoch == partition.leader_epoch and told.leader > 0:
                    return True
                await self.pause(LOOK_S)
        finally:
            view.close()
        return False

    def sending(self, more: int) -> Callable[[], bool]:
        """A condition: producers have given so many records more to their clients."""
        return more_sent(self._recorder, more)

    def polled(self) -> int:
        """The number of records polled so far."""
        return sum(len(event.records) for event in self._recorder.events if isinstance(event, Poll))

    def acknowledged(self) -> int:
        """The number of records acknowledged so far."""
        return sum(isinstance(event, SendOutcome) and event.kind == ACKNOWLEDGED for event in self._recorder.events)

    def acknowledged_from_now(self) -> Callable[[], Sequence[str]]:
        """A function that gives the producers of acknowledged records that are sent from now on, one for each record."""
        begin = len(self._recorder.events)

        def found() -> list[str]:
            events = self._recorder.events[begin:]
            sent = {event.value for event in events if isinstance(event, SendStart)}
            outcomes = (event for event in events if isinstance(event, SendOutcome) and event.kind == ACKNOWLEDGED)
            return [outcome.value.partition(":")[0] for outcome in outcomes if outcome.value in sent]

        return found

    def producers(self) -> set[str]:
        """The producers that have sent records so far."""
        return {event.producer for event in self._recorder.events if isinstance(event, SendStart)}

    def polled_from_now(self, values: Iterable[str]) -> Callable[[], bool]:
        """A function that says whether a consumer has polled one of these values from now on."""
        begin, sent = len(self._recorder.events), set(values)

        def polled() -> bool:
            polls = (event for event in self._recorder.events[begin:] if isinstance(event, Poll))
            return any(value in sent for poll in polls for _, value in poll.records)

        return polled

    # ---- requests and responses in flight

    def hold_messages(self, source: str, target: str, api: str, *, answers: bool, most: int | None) -> Hold:
        """Hold the requests of one node to another, or the responses to them."""
        return self._links.hold(source, target, api, answers=answers, most=most)

    def cut(self, links: frozenset[Link]) -> None:
        """Cut exactly these links."""
        self._links.cut_only(links)

    # ---- nodes

    def is_running(self, node: str) -> bool:
        """Whether a node runs."""
        return self.cluster.processes[node].running

    def serves(self, node: str) -> bool:
        """Whether a node serves."""
        return self.cluster.processes[node].serves

    def kill(self, *nodes: str) -> None:
        """Kill nodes, which stay down until they are started."""
        for node in nodes:
            self.cluster.held.add(node)
            self.cluster.processes[node].kill()
        self.tell(f"{', '.join(nodes)} killed")

    def terminate(self, node: str) -> None:
        """Request a controlled shutdown of a node; it stays down until it is started."""
        self.cluster.held.add(node)
        self.cluster.processes[node].terminate()
        self.tell(f"{node} is asked to stop")

    def suspend(self, broker: str) -> None:
        """Pause a broker (SIGSTOP), until it is resumed."""
        self.cluster.processes[broker].pause()
        self.tell(f"{broker} is paused")

    def resume(self, broker: str) -> None:
        """Resume a paused broker (SIGCONT)."""
        self.cluster.processes[broker].resume()
        self.tell(f"{broker} is resumed")

    def let_start(self, node: str) -> None:
        """Let the supervisor start a node."""
        self.cluster.held.discard(node)

    def lose_power(self, broker: str) -> None:
        """Kill a broker, and cut off the part of its log that was not synced, or the second half of that part."""
        self.kill(broker)
        kept = self.random.choice((0.0, 0.5))
        lost = lose_tail(self.cluster.processes[broker].node.data, self.topic, 0, kept)
        self.tell(f"{broker} has lost {lost} bytes of its log")

    def erase(self, broker: str) -> None:
        """Delete all files of a broker's log directory but the one with its identity."""
        erase_records(self.cluster.processes[broker].node.data)
        self.tell(f"{broker} has lost all its records")

    def damage(self, broker: str, most: int = 3) -> None:
        """Damage some files of a broker that is down: those of the partition's folder, and the directory's checkpoints."""
        data, folder = self.cluster.processes[broker].node.data, f"{self.topic}-0"
        for _ in range(self.random.randint(1, most)):
            file, kind = self.random.choice(DAMAGED), self.random.choice(DAMAGES)
            done = damage_folder(data, folder, file, kind, self.random)
            self.tell(f"of broker {broker}, {done}" if done else f"broker {broker} has no {file.value}")

    def forget_partition(self, broker: str) -> None:
        """Delete the partition's folder on a broker that is down, as an operator does with files beyond repair."""
        shutil.rmtree(self.cluster.processes[broker].node.data / f"{self.topic}-0", ignore_errors=True)
        self.tell(f"the partition's files are deleted on {broker}")

    # ---- administrators and clients

    async def assign(self, replicas: Sequence[str]) -> None:
        """Request other replicas, or the same in another order, and wait for the response. Raises: `PlanError`."""
        topic = Message(name=self.topic, partitions=[Message(partition_index=0, replicas=[*map(int, replicas)])])
        await self._ask_controller("AlterPartitionReassignments", 0, timeout_ms=10_000, topics=[topic])

    async def elect_preferred(self) -> None:
        """Request the election of the preferred leader, and wait for the response. Raises: `PlanError`."""
        topics = [Message(topic=self.topic, partitions=[0])]
        await self._ask_controller("ElectLeaders", 1, election_type=0, topic_partitions=topics, timeout_ms=10_000)

    async def _ask_controller(self, api: str, version: int, **fields: Any) -> None:
        place = HOST, self.cluster.processes[CONTROLLER].node.port
        try:
            await ask_once(place, api, version, **fields)
        except NOT_REACHED as error:
            raise PlanError(f"the controller does not answer {api}: {error!r}") from error

    def add_producer(self) -> None:
        """Let another producer begin."""
        self._begin_producer()

    async def send_to(self, broker: str, records: int) -> list[str]:
        """Send records to one broker, which appends them if it believes to be the leader (acks=1); their values."""
        place, producer = (HOST, self.cluster.processes[broker].node.port), f"plan-{next(self.numbers)}"
        values = [f"{producer}:{number}" for number in range(records)]
        key = f"{self.topic}-0"
        for value in values:
            self._recorder.note(partial(SendStart, producer, key, value))
        for first in range(0, records, BATCH):
            batch = [(int(time.time() * 1000), None, value.encode()) for value in values[first : first + BATCH]]
            part = Message(index=0, records=new_batch(batch))
            topics = [Message(name=self.topic, partition_data=[part])]
            with contextlib.suppress(*NOT_REACHED):
                await ask_once(place, "Produce", 8, transactional_id=None, acks=1, timeout_ms=5000, topic_data=topics)
        for value in values:
            self._recorder.note(partial(SendOutcome, key, value, UNKNOWN, None, "acks=1"))
        self.tell(f"{records} records are sent to {broker} alone")
        return values

    async def read_from(self, broker: str) -> None:
        """Read all records that one broker serves, as a consumer with stale metadata does."""
        place, consumer = (HOST, self.cluster.processes[broker].node.port), f"plan-{next(self.numbers)}"
        key, position = f"{self.topic}-0", 0
        self._recorder.note(partial(ConsumerAssignment, consumer, key, position))
        while True:
            part = Message(partition=0, fetch_offset=position, partition_max_bytes=READ_BYTES)
            wanted = [Message(topic=self.topic, partitions=[part])]
            try:
                answer = await ask_once(
                    place, "Fetch", 12, replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=READ_BYTES, topics=wanted
                )
            except NOT_REACHED:
                break
            content = answer.responses[0].partitions[0].records or b""
            batches = (content[one.position : one.position + one.size] for one in headers(content))
            found = [(int(one.offset), (one.value or b"").decode()) for batch in batches for one in records_of(batch)]
            found = [one for one in found if one[0] >= position]
            if not found:
                break
            self._recorder.note(partial(Poll, consumer, key, tuple(found)))
            position = found[-1][0] + 1
        self.tell(f"{position} records are read from {broker}")
