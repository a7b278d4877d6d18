"""This broker reads the metadata log from the active controller, and acts on what is committed: on all of it at once.

Kafka: `KafkaRaftClient` as an observer, `MetadataLoader`. What a broker does about the difference of two images is
`spec.metadata.local_change`; when it may act at all is `acts_on_metadata` of its release.
"""

from collections import deque
from collections.abc import Callable

from kspec.impl.broker.calls import CONTROLLER, Ask, ChannelKey, CopyMetadata, CopySnapshot, CutMetadata, Effect, Then
from kspec.impl.broker.core import BrokerCore
from kspec.impl.config.voters import Place
from kspec.impl.metadata.files import MetadataBatch, replay_into
from kspec.impl.replica.controllers import KnownControllers
from kspec.impl.replica.metadata_copy import MetadataCopy
from kspec.impl.storage import StorageError
from kspec.impl.wire.values import Message
from kspec.spec.messages.quorum.fetch import SnapshotId
from kspec.spec.quorum.rules.replication import may_truncate, truncation_offset
from kspec.spec.values import (
    NO_DIRECTORY,
    NO_LEADER,
    UNKNOWN_OFFSET,
    DirectoryId,
    Epoch,
    EpochEndOffset,
    Error,
    Instant,
    Offset,
)

CHANNEL = ChannelKey(CONTROLLER, "metadata")
TOPIC_ID = bytes(15) + b"\1"
"""Kafka: `Uuid.METADATA_TOPIC_ID`."""

TOPIC = "__cluster_metadata"
WAIT_MS, MOST_BYTES, RETRY_MS = 500, 8 << 20, 50
SNAPSHOT_BYTES = 8 << 20

ALONE_MS = 30_000
"""The longest wait for the only controller: nobody else could be asked."""


def _place_of(answer: Message, part: Message) -> Place | None:
    """The address of the leader that an answer names."""
    leader = NO_LEADER if part.current_leader is None else part.current_leader.leader_id
    return next((Place(one.host, one.port) for one in answer.node_endpoints or () if one.node_id == leader), None)


class MetadataFollower:
    """This broker's copy of the metadata log."""

    def __init__(
        self, core: BrokerCore, copy: MetadataCopy, controllers: KnownControllers, directory: DirectoryId = NO_DIRECTORY
    ) -> None:
        self._core = core
        self._copy = copy
        self._controllers = controllers
        self._directory = directory
        self._timeout_ms: int = (
            core.config.number("controller.quorum.request.timeout.ms") if controllers.are_several else ALONE_MS
        )
        self.acted: Callable[[Instant], list[Effect]] = lambda now: []
        self._epoch = 0
        self._pending: deque[MetadataBatch] = deque()
        self._snapshot = b""
        self._committed = UNKNOWN_OFFSET
        """The high watermark that was told last: a controller that knows a later one tells it at once (KIP-1166)."""
        self.end_at_start: Offset | None = None
        """The end of the committed log at this process's first fetch."""
        self._load()

    def _load(self) -> None:
        """Begin with the copy on disk: its snapshot was committed; its batches wait until the controller says so."""
        image = self._copy.restored(self._core.cluster.image)
        self._pending = deque(self._copy.batches())
        self._core.cluster.use_image(image)

    @property
    def end_offset(self) -> Offset:
        """The end of what has been read and is committed."""
        return self._core.cluster.image.spec.end_offset

    # ---- fetching

    def fetch(self, now: Instant) -> list[Effect]:
        """Ask for what follows. **Kafka:** `KafkaRaftClient.buildFetchRequest`."""
        core, copy = self._core, self._copy
        partition = Message(
            partition=0,
            current_leader_epoch=self._epoch,
            fetch_offset=copy.end_offset,
            last_fetched_epoch=max(copy.last_epoch, 0),
            log_start_offset=-1,
            partition_max_bytes=MOST_BYTES,
            high_watermark=self._committed,
            replica_directory_id=self._directory,
        )
        message = Message(
            cluster_id=core.cluster_id,
            replica_id=core.cluster.self_id,
            replica_state=Message(replica_id=core.cluster.self_id, replica_epoch=-1),
            max_wait_ms=WAIT_MS,
            max_bytes=MOST_BYTES,
            session_id=0,
            session_epoch=-1,
            topics=[Message(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])],
        )
        return [Ask(CHANNEL, "Fetch", message, self._take, self._timeout_ms)]

    def _later(self, now: Instant) -> list[Effect]:
        self._core.timers.at(now.after(RETRY_MS), self.fetch)
        return []

    def _take(self, answer: Message | None, now: Instant) -> list[Effect]:
        if answer is None or answer.error_code or not answer.responses:
            self._controllers.lose()
            return self._later(now)
        (part,) = answer.responses[0].partitions
        if part.error_code:
            return self._look_for_leader(part, _place_of(answer, part), now)
        if part.current_leader is not None and part.current_leader.leader_id >= 0:
            self._controllers.hear(part.current_leader.leader_id, _place_of(answer, part))
        if part.snapshot_id is not None and part.snapshot_id.end_offset >= 0:
            self._snapshot = b""
            return self._ask_for_snapshot(SnapshotId(Offset(part.snapshot_id.end_offset), Epoch(part.snapshot_id.epoch)))
        diverging = part.diverging_epoch
        if diverging is not None and diverging.end_offset >= 0:
            return self._cut(EpochEndOffset(Epoch(diverging.epoch), Offset(diverging.end_offset)), now)
        return self._take_batches(part, now)

    def _look_for_leader(self, part: Message, place: Place | None, now: Instant) -> list[Effect]:
        """Ask the leader that an error names, or the next controller after a while."""
        leader = part.current_leader
        if leader is None or leader.leader_epoch < self._epoch:  # he who answers is behind
            self._controllers.lose()
            return self._later(now)
        is_news = leader.leader_epoch > self._epoch
        self._epoch = leader.leader_epoch
        before = self._controllers.asked
        self._controllers.hear(leader.leader_id, place)
        is_elsewhere = leader.leader_id >= 0 and self._controllers.asked != before
        return self.fetch(now) if is_news or is_elsewhere else self._later(now)

    def _take_batches(self, part: Message, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        if part.records is not None and len(part.records):
            self._pending.extend(self._copy.batches_in(memoryview(part.records)))
            effects.append(CopyMetadata(bytes(part.records)))
        self._committed = committed = Offset(part.high_watermark)
        if self.end_at_start is None and committed >= 0:
            self.end_at_start = committed
        if self._replay(committed):
            effects.append(Then(lambda: self.acted(now)))
        return [*effects, Then(lambda: self.fetch(now))]

    def _replay(self, committed: Offset) -> bool:
        """Take the batches that are committed; whether there were any, or the start has been caught up with."""
        image, taken = self._core.cluster.image, []
        while self._pending and self._pending[0].next_offset <= committed:
            taken.append(self._pending.popleft())
        replay_into(image, taken)
        return bool(taken) or self.end_at_start == image.spec.end_offset

    def _cut(self, end: EpochEndOffset, now: Instant) -> list[Effect]:
        """The controller does not have the end of the copy, which was never committed."""
        end_offset = truncation_offset(self._copy.log, self._copy.snapshot, end)
        if not may_truncate(end_offset, self.end_offset):
            raise StorageError(f"the metadata log should be cut at {end_offset}, and {self.end_offset} is committed")
        while self._pending and self._pending[-1].next_offset > end_offset:
            self._pending.pop()
        return [CutMetadata(end_offset), Then(lambda: self.fetch(now))]

    # ---- snapshots

    def _ask_for_snapshot(self, snapshot: SnapshotId) -> list[Effect]:
        """Ask for the next piece. **Kafka:** `KafkaRaftClient.buildFetchSnapshotRequest`."""
        core = self._core
        partition = Message(
            partition=0,
            current_leader_epoch=self._epoch,
            snapshot_id=Message(**snapshot._asdict()),
            position=len(self._snapshot),
        )
        message = Message(
            cluster_id=core.cluster_id,
            replica_id=core.cluster.self_id,
            max_bytes=SNAPSHOT_BYTES,
            topics=[Message(name=TOPIC, partitions=[partition])],
        )

        def take(answer: Message | None, now: Instant) -> list[Effect]:
            return self._take_piece(snapshot, answer, now)

        return [Ask(CHANNEL, "FetchSnapshot", message, take, self._timeout_ms)]

    def _take_piece(self, snapshot: SnapshotId, answer: Message | None, now: Instant) -> list[Effect]:
        if answer is None or answer.error_code or not answer.topics:
            self._controllers.lose()
            return self._later(now)
        (part,) = answer.topics[0].partitions
        if part.error_code != Error.NONE.value:
            return self._later(now)
        self._snapshot += bytes(part.unaligned_records)
        if len(self._snapshot) < part.size:
            return self._ask_for_snapshot(snapshot)
        content, self._snapshot = self._snapshot, b""

        def go_on() -> list[Effect]:
            self._load()
            return [*self.acted(now), *self.fetch(now)]

        return [CopySnapshot(snapshot, content), Then(go_on)]
