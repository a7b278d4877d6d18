"""The log algebra: the few operations through which every rule touches a log.

A rule is written against `Log` and does not know its carrier, the type that implements it. `RecordLog`, a tuple of records,
is the carrier in models. `EpochLog`, an epoch history between two offsets, is the carrier in a broker, whose records lie in
files. `StoredLog` has both, for models of what a broker runs. The laws that every carrier obeys are listed in
`proofs/laws.py`.

Logs are written and read in batches (`spec.log.batch`). A batch says how many records it has, in which leader epoch they
were appended, and which producer sent them. No rule looks at their content. So a rule takes one step for each batch, however
many records the batch has. Three things follow:

- Only the number and the epoch of records count. A batch of five is the same to a log as five batches of one in its epoch.
  The boundary between two batches of one epoch is not part of a log. A carrier that keeps no payloads therefore reads a
  range of one epoch as one batch, however many were appended. Its answer says where the range lies, and the sender takes the
  bytes from the files.
- `read` gives exactly the records that were asked for, even if they begin or end inside a batch. Kafka reads whole batches,
  so a broker chooses offsets at which batches end. A follower asks only for such offsets, except at the start of a log that
  was deleted up to the inside of a batch (`spec.log.local_log.append_fetched`).
- `truncate_to` keeps the records before the offset, even if the offset lies inside a batch. Kafka's files lose that whole
  batch, and the log still ends at the offset. The protocol always chooses an offset between two batches: the end of an
  epoch, of a log, or of the batches that a follower has fetched.
"""

from typing import Protocol, Self, TypeVar

from kspec.spec.log.batch import Batches
from kspec.spec.values import Epoch, EpochEndOffset, Offset


class Log(Protocol):
    """The operations on a log that a rule may use. All values are immutable: a change returns a new log."""

    @property
    def start_offset(self) -> Offset:
        """Offset of the first record kept. **Kafka:** `UnifiedLog.logStartOffset`."""

    @property
    def end_offset(self) -> Offset:
        """Offset that the next record will get. **Kafka:** `UnifiedLog.logEndOffset`."""

    @property
    def latest_epoch(self) -> Epoch:
        """The latest epoch of the log's epoch history, `NO_EPOCH` if it has none. **Kafka:** `UnifiedLog.latestEpoch`."""

    def epoch_at(self, offset: Offset) -> Epoch:
        """Leader epoch of the record at `offset`, `NO_EPOCH` where the log holds none."""

    def end_offset_for_epoch(self, epoch: Epoch) -> EpochEndOffset:
        """The largest epoch up to `epoch` and its end. **Kafka:** `UnifiedLog.endOffsetForEpoch`."""

    def largest_epoch_up_to(self, epoch: Epoch) -> EpochEndOffset:
        """The largest epoch up to `epoch` and its end, as KIP-279 designed it: defined for every epoch."""

    def first_above(self, epoch: Epoch) -> Offset:
        """The offset of the first record of an epoch above `epoch`; the log's end if there is none. No broker asks."""

    def read(self, start: Offset, limit: int) -> Batches:
        """At most `limit` records from `start` on, in batches. **Kafka:** `UnifiedLog.read`."""

    def append(self, batches: Batches) -> Self:
        """The log with `batches` at its end. **Kafka:** `UnifiedLog.append`."""

    def append_at(self, base_offset: Offset, batches: Batches) -> Self:
        """The log with `batches` from `base_offset` on, not before its end. The gap in between holds no record.

        Such a gap is where compaction has removed records from the leader's log. **Kafka:** `UnifiedLog.appendAsFollower`.
        """

    def truncate_to(self, offset: Offset) -> Self:
        """The log without the records at or after `offset`, and without an opened epoch that has no record (KAFKA-10706).

        **Kafka:** `UnifiedLog.truncateTo`.
        """

    def start_at(self, offset: Offset) -> Self:
        """The log without the records before `offset`, which is within it. The epoch in force there stays known.

        **Kafka:** `UnifiedLog.updateLogStartOffset` with `LeaderEpochFileCache.truncateFromStart`.
        """

    def restart_at(self, offset: Offset) -> Self:
        """An empty log without any epoch, which starts and ends at `offset`.

        **Kafka:** `UnifiedLog.truncateFullyAndStartAt`.
        """

    def open_epoch(self, epoch: Epoch) -> Self:
        """The log with `epoch` starting at its end, even before any record; unchanged if that is its latest epoch.

        **Kafka:** `UnifiedLog.assignEpochStartOffset`.
        """

    def without_values(self) -> Self:
        """The log with `NO_VALUE` in every record, so that only its epochs remain."""

    def holds_as(self, other: Self, offset: Offset) -> bool:
        """Whether both logs hold a record at `offset`, and the same one."""

    def agrees_below(self, other: Self, end: Offset) -> bool:
        """Whether both logs hold the same records at all offsets from 0 up to `end`, which is exclusive."""

    def agreement_end(self, other: Self) -> Offset:
        """The offset after the last one at which both logs hold the same record; their lower start if there is none.

        No broker can compute this, because it compares the logs of two replicas. It abbreviates a whole sequence of requests
        and responses. Properties are stated with it.
        """


LogT = TypeVar("LogT", bound=Log)
