"""The processes of a story: a controller and brokers behind gates, and what the director does to them."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.story.gates import Gates, until
from conformance.story.seen import Acknowledged, Replica, Seen, partition_in, replica_in, value_of
from conformance.story.words import StoryError
from impl.cluster.asking import ask_once
from impl.cluster.folder import ClusterFolder
from impl.cluster.plan import CONTROLLER, HOST, Program, nodes_of, ports_behind
from impl.cluster.process import NodeProcess
from impl.cluster.supervisor import Cluster
from impl.faults.parcels import Parcel
from impl.metadata.files import image_in
from impl.metadata.image import ClusterImage
from impl.records.record import new_batch
from impl.wire.apis import CONTROLLER_APIS
from impl.wire.frames import framed, read_header
from impl.wire.reading import read_message
from impl.wire.requests import read_response, sent
from impl.wire.values import Message
from impl.wire.writing import joined
from spec.values import NO_EPOCH, NO_LEADER

TOPIC = "story"
ASKED_OF_LEADERS = ("Fetch", "ListOffsets", "OffsetForLeaderEpoch")
ASKED_OF_CONTROLLER = ("BrokerHeartbeat", "AlterPartition")
APIS = {sent(api).key: api for api in (*ASKED_OF_LEADERS, *ASKED_OF_CONTROLLER)}
EVERYTHING = 1 << 60

SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "broker.heartbeat.interval.ms": "100",
    "replica.fetch.backoff.ms": "20",
    "replica.fetch.min.bytes": "0",
    "replica.high.watermark.checkpoint.interval.ms": "20",
}
"""What makes processes quick to show what they do."""


class Stage:
    """The processes, and the gates between them. All that a gate holds waits for the director.

    `caps`: up to which offset of the metadata log each broker is told that it is committed. `silenced`: brokers whose
    heartbeats do not arrive. `unheard`: a follower and a leader whose answers are lost. `heard`: how far each broker has
    read, by its heartbeats. `lag_s`: after which a follower is too slow, if that ever happens. `answers`: how many answers
    there have been to what a follower has asked a leader. `answered_at`: when the last of them was on its way (s).
    """

    def __init__(
        self, folder: Path, port: int, brokers: int, program: Program, settings: Mapping[str, str], lag_s: float | None
    ) -> None:
        nodes = nodes_of(folder, brokers, ports_behind(port, brokers), {**SETTINGS, **settings})
        self._cluster = Cluster(ClusterFolder(folder), nodes, program, lambda line: None, restarts=False)
        self.brokers = range(1, brokers + 1)
        self.lag_s = lag_s
        self.topic = TOPIC
        self.caps = dict.fromkeys(self.brokers, EVERYTHING)
        self.silenced: set[int] = set()
        self.unheard: set[tuple[int, int]] = set()
        self.answers: Counter[tuple[int, int]] = Counter()
        self.answered_at: dict[tuple[int, int], float] = {}
        self.heard = dict.fromkeys(self.brokers, -1)
        self.open = True
        ports = {node.name: (node.told, node.port) for node in nodes}
        self.gates = Gates(ports, self._pids, self._passes)
        self._producers: dict[int, asyncio.Task[None]] = {}
        self.acknowledged: set[Acknowledged] = set()

    # ---- start and end

    async def start(self) -> None:
        """Start all processes; from then on the gates hold what replicas ask.

        Raises: `UsageError`, `ClusterError`, `StoryError`.
        """
        await self.gates.open()
        await self._cluster.start()
        await until(self._is_quiet, "all brokers take part, and have read the metadata log")

    def _is_quiet(self) -> bool:
        image = self._image()
        unfenced = [one for one in image.spec.brokers if not one.fenced]
        read = all(offset == image.spec.end_offset - 1 for offset in self.heard.values())
        return len(unfenced) == len(self.brokers) and read

    def begin(self) -> None:
        """From now on nothing about the partition goes anywhere by itself."""
        end = self.metadata_end()
        self.open = False
        self.caps = dict.fromkeys(self.brokers, end)

    def let_go(self) -> None:
        """From now on everything arrives."""
        self.open = True
        self.caps = dict.fromkeys(self.brokers, EVERYTHING)
        self.silenced.clear()
        self.gates.look_again()

    async def end(self) -> None:
        """End all processes, whatever they are at."""
        for task in self._producers.values():
            task.cancel()
        await asyncio.gather(*self._producers.values(), return_exceptions=True)
        self._cluster.kill()
        await self.gates.close()

    def process(self, broker: int) -> NodeProcess:
        """The process of a broker."""
        return self._cluster.processes[str(broker)]

    def _pids(self) -> dict[str, int]:
        return {name: one.pid for name, one in self._cluster.processes.items() if one.running and one.pid is not None}

    # ---- what the gates let through

    def _passes(self, parcel: Parcel) -> bool:
        """Whether a parcel arrives by itself: all but what the director decides about."""
        api = APIS.get(parcel.key)
        if api is None or not parcel.source.isdigit():
            return True
        broker = int(parcel.source)
        if parcel.target != CONTROLLER:
            if parcel.is_answer:
                self.answers[broker, int(parcel.target)] += 1
                self.answered_at[broker, int(parcel.target)] = time.monotonic()
            if parcel.is_answer and (broker, int(parcel.target)) in self.unheard:
                parcel.lose()
                return False
            return self.open or parcel.is_answer or api not in ASKED_OF_LEADERS
        if api == "Fetch" and parcel.is_answer:
            self._cap(parcel, self.caps[broker])
        if api == "BrokerHeartbeat" and not parcel.is_answer:
            return self._heartbeat(broker, parcel)
        return self.open or api != "AlterPartition"

    def asks(self, follower: int, leader: int | None = None) -> Callable[[Parcel], bool]:
        """Whether a parcel is what a follower asks a leader, or any other broker."""
        targets = {str(one) for one in self.brokers} if leader is None else {str(leader)}

        def matches(parcel: Parcel) -> bool:
            return parcel.source == str(follower) and parcel.target in targets and not parcel.is_answer

        return matches

    @staticmethod
    def _cap(parcel: Parcel, cap: int) -> None:
        """The controller's answer as it would have been earlier: what lies behind the cap is not committed yet."""
        answer = read_response("Fetch", parcel.version, memoryview(parcel.frame))[1]
        for topic in answer.responses:
            for part in topic.partitions:
                part.__dict__["high_watermark"] = min(part.high_watermark, cap)
        correlation = int.from_bytes(parcel.frame[:4], "big")
        parcel.frame = joined(framed(CONTROLLER_APIS[parcel.key], parcel.version, correlation, answer))[4:]

    def _heartbeat(self, broker: int, parcel: Parcel) -> bool:
        request = self.request_of(parcel)
        self.heard[broker] = request.current_metadata_offset
        if broker in self.silenced:
            parcel.lose()
            return False
        return True

    @staticmethod
    def request_of(parcel: Parcel) -> Message:
        """A request that is held, decoded."""
        frame = memoryview(parcel.frame)
        api = APIS[parcel.key]
        header = read_header(frame, CONTROLLER_APIS)
        return read_message(f"{api}Request", parcel.version, frame, header.body)[0]

    # ---- what the director looks at

    def is_fenced(self, broker: int) -> bool:
        """Whether the controller has fenced a broker."""
        return any(one.broker == broker and one.fenced for one in self._image().spec.brokers)

    def _image(self) -> ClusterImage:
        return image_in(self._cluster.processes[CONTROLLER].node.data)

    def metadata_end(self) -> int:
        """The end of the metadata log."""
        return int(self._image().spec.end_offset)

    async def read_up_to(self, broker: int, cap: int) -> None:
        """Let a broker know that the metadata log is committed up to here, and wait until it has read that.

        What it has asked leaders before is lost: it asks again, as it is now.
        """
        self.gates.lose(self.asks(broker))
        self.caps[broker] = cap
        await until(lambda: self.heard[broker] >= cap - 1, f"broker {broker} reads the metadata log up to {cap}")
        self.gates.lose(self.asks(broker))

    def seen(self) -> Seen:
        """The cluster as it is now."""
        known = partition_in(self._image(), TOPIC)
        replicas = {broker: self.replica(broker) for broker in self.brokers}
        acknowledged = frozenset(self.acknowledged)
        if known is None:
            return Seen(NO_LEADER, NO_EPOCH, frozenset(), replicas, acknowledged)
        return Seen(known.leader, known.leader_epoch, frozenset(known.isr), replicas, acknowledged, frozenset(known.elr))

    def replica(self, broker: int) -> Replica:
        """A broker's replica, in its files."""
        return replica_in(self.process(broker).node.data, TOPIC)

    # ---- what clients do

    async def create_topic(self, replicas: Sequence[int], settings: Mapping[str, str]) -> None:
        """Create the partition with its replicas in this order of preference."""
        assignment = Message(partition_index=0, broker_ids=list(replicas))
        configs = [Message(name=name, value=value) for name, value in settings.items()]
        topic = Message(name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=[assignment], configs=configs)
        answer = await self._ask_controller("CreateTopics", 5, topics=[topic], timeout_ms=10_000, validate_only=False)
        _must_be_well("CreateTopics", answer.topics[0].error_code)

    async def prefer(self, first: int) -> None:
        """Make a replica the preferred one: the same replicas, in another order."""
        known = partition_in(self._image(), TOPIC)
        assert known is not None, "the partition has been created"
        order = [first, *(one for one in known.replicas if one != first)]
        if list(known.replicas) == order:
            return
        topic = Message(name=TOPIC, partitions=[Message(partition_index=0, replicas=order)])
        answer = await self._ask_controller("AlterPartitionReassignments", 0, timeout_ms=10_000, topics=[topic])
        _must_be_well("AlterPartitionReassignments", answer.responses[0].partitions[0].error_code)

    async def elect_preferred(self) -> None:
        """Elect the preferred replica."""
        topics = [Message(topic=TOPIC, partitions=[0])]
        answer = await self._ask_controller("ElectLeaders", 1, election_type=0, topic_partitions=topics, timeout_ms=10_000)
        _must_be_well("ElectLeaders", answer.replica_election_results[0].partition_result[0].error_code)

    async def _ask_controller(self, api: str, version: int, **fields: Any) -> Message:
        return await ask_once((HOST, self._cluster.processes[CONTROLLER].node.port), api, version, **fields)

    def produce(self, leader: int, number: int, acks: int) -> None:
        """A producer sends a record, and waits for its acknowledgement for as long as it takes."""
        self._producers[number] = asyncio.ensure_future(self._produce(leader, number, acks))

    async def _produce(self, leader: int, number: int, acks: int) -> None:
        part = Message(index=0, records=new_batch([(0, None, value_of(number))]))
        topics = [Message(name=TOPIC, partition_data=[part])]
        fields = {"transactional_id": None, "acks": acks, "timeout_ms": 600_000, "topic_data": topics}
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            answer = await ask_once((HOST, self.process(leader).node.port), "Produce", 8, 600.0, **fields)
            told = answer.responses[0].partition_responses[0]
            if told.error_code == 0:
                self.acknowledged.add(Acknowledged(int(told.base_offset), number))


def _must_be_well(api: str, error: int) -> None:
    if error:
        raise StoryError(f"{api} is refused with error {error}")
