"""The values of the model's slots."""

from enum import Enum
from typing import NamedTuple

from kspec.spec.log.producers import ProducerBatch, Producers, remember
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest
from kspec.spec.transactions.clients import ProducerNumbers
from kspec.spec.values import NO_PRODUCER_ID, Error, Offset


class SendingProducer(NamedTuple):
    """A producer: the next record of its source, and its numbers, if it is idempotent.

    It is done with the records before `following`: they are acknowledged, or it does not ask.
    """

    following: int = 0
    numbers: ProducerNumbers = ProducerNumbers(NO_PRODUCER_ID)


class SentRecord(NamedTuple):
    """A Produce request of one record. `until`: the leader has it, and answers when so much is committed."""

    record: int
    batch: ProducerBatch
    until: Offset | None = None
    answer: Error | None = None


class DeliveredLog(NamedTuple):
    """The log of the partition's leader: its batches of one record each, their records, and how many are committed."""

    batches: tuple[ProducerBatch, ...] = ()
    records: tuple[int, ...] = ()
    committed: int = 0

    @property
    def end(self) -> Offset:
        """The log end offset."""
        return Offset(len(self.records))

    def producers(self) -> Producers:
        """The producers that are known from the log."""
        known: Producers = ()
        for batch in self.batches:
            if batch.producer_id > NO_PRODUCER_ID:
                known = remember(known, batch)
        return known


class Stage(Enum):
    """The stage of a process in reading a record."""

    IDLE = "idle"
    TO_WORK = "at work on a record whose offset is committed"
    TO_COMMIT = "to commit the offset of a record that is processed"
    GONE = "ended"


class ReadingProcess(NamedTuple):
    """A process that reads: its generation in the group (0: in none), and the next offset, `None` until it has asked."""

    generation: int = 0
    position: int | None = None
    stage: Stage = Stage.IDLE


class LateCommit(NamedTuple):
    """A commit that is still under way on a connection which its process has given up."""

    request: OffsetCommitRequest
