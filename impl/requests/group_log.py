"""The partitions of `__consumer_offsets` that this broker leads: the groups in them, and the records that keep them."""

from collections.abc import Callable

from impl.broker.calls import Effect, Then
from impl.broker.core import Core
from impl.broker.replica import Place, Replica
from impl.coordinator.records import decode, encode
from impl.records.batch import header_at, headers
from impl.records.record import new_batch, records_of
from impl.wire.values import Message
from spec.broker.partition import leads
from spec.coordinator.group import Group, absent, exists
from spec.coordinator.loading import load
from spec.coordinator.records import GroupRecord
from spec.coordinator.rules.hashing import partition_for
from spec.values import Epoch, Error, GroupId

TOPIC = "__consumer_offsets"
READ_BYTES = 8 << 20


class PendingAppend:
    """Records of a group on their way into the log. It is answered like one partition of a produce request."""

    def __init__(self, then: Callable[[Error], list[Effect]]) -> None:
        self._then = then
        self._error = Error.NONE

    def take(self, place: int, answer: Message) -> list[Effect]:
        """The records are committed, or refused."""
        self._error = Error(answer.error_code)
        return [Then(lambda: self._then(self._error))]

    def fail(self, place: int, answer: Message) -> None:
        """They were taken, and could not be stored."""
        self._error = Error(answer.error_code)


class GroupLog:
    """The groups of this broker, by the partition of `__consumer_offsets` that keeps them."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._loaded: dict[int, dict[GroupId, Group]] = {}
        self._epochs: dict[int, Epoch] = {}
        """The leader epoch in which each partition was read."""

    @property
    def partitions(self) -> int:
        """How many partitions the topic has; none before it is created."""
        topic = self._core.cluster.image.topics.get(TOPIC)
        return len(topic.partitions) if topic is not None else 0

    def partition_of(self, group_id: GroupId) -> int:
        """The partition that keeps a group."""
        return partition_for(group_id, self.partitions)

    def replica_of(self, group_id: GroupId) -> Replica | None:
        """The partition that keeps a group, if this broker leads it."""
        if not self.partitions:
            return None
        return self._led(self.partition_of(group_id))

    def _led(self, index: int) -> Replica | None:
        replica = self._core.replicas.get(Place(TOPIC, index))
        if replica is None or replica.offline or not leads(self._core.broker(replica), replica.partition):
            return None
        return replica

    def group(self, group_id: GroupId) -> Group:
        """A group of a partition that this broker leads, as it is now."""
        return self._of(self.partition_of(group_id)).get(group_id, absent(group_id))

    def keep(self, group: Group) -> None:
        """A group as it is from now on."""
        groups = self._of(self.partition_of(group.group_id))
        if exists(group) or group.offsets:
            groups[group.group_id] = group
        else:
            groups.pop(group.group_id, None)

    def all_groups(self) -> list[Group]:
        """Every group of this broker."""
        led = [index for index in range(self.partitions) if self._led(index) is not None]
        return [group for index in led for group in list(self._of(index).values())]

    def forget(self) -> list[Group]:
        """The topic is deleted, and its groups with it: those that had been read."""
        found = [group for groups in self._loaded.values() for group in groups.values()]
        self._loaded.clear()
        return found

    def resign(self, replica: Replica) -> list[Group]:
        """The groups of a partition that this broker led, if it does not lead it any more, or leads it in another epoch."""
        index, epoch = replica.place.partition, replica.partition.leader_epoch
        if self._led(index) is not None and self._epochs.get(index) == epoch:
            return []
        self._epochs.pop(index, None)
        return list(self._loaded.pop(index, {}).values())

    def elected(self, replica: Replica) -> list[Group]:
        """The groups of a partition that this broker leads since now."""
        index = replica.place.partition
        if self._led(index) is None or index in self._epochs:
            return []
        self._epochs[index] = replica.partition.leader_epoch
        return list(self._of(index).values())

    def _of(self, index: int) -> dict[GroupId, Group]:
        """The groups of a partition; they are read from its log when somebody asks for the first time."""
        found = self._loaded.get(index)
        if found is None:
            replica = self._led(index)
            records = [] if replica is None else self._records(replica)
            found = self._loaded[index] = {group.group_id: group for group in load(records)}
        return found

    def _records(self, replica: Replica) -> list[GroupRecord]:
        found = []
        log = replica.partition.local.log
        offset = log.start_offset
        while offset < log.end_offset:
            piece = replica.files.read(offset, log.end_offset, READ_BYTES, at_least_one=True)
            content = memoryview(piece.bytes())
            for header in headers(content):
                batch = content[header.position : header.position + header.size]
                for record in records_of(batch):
                    read = decode(record.key or b"", record.value)
                    found += [read] if read is not None else []
            offset = piece.next_offset
        return found

    def append(
        self, replica: Replica, records: tuple[GroupRecord, ...], now: int, then: Callable[[Error], list[Effect]]
    ) -> list[Effect]:
        """Append records of a group, and go on when they are committed or refused."""
        batch = memoryview(new_batch([(now, *encode(record)) for record in records]))
        return self._core.append_own(replica, PendingAppend(then), header_at(batch), batch, now)
