"""`log`, `replica_state`, `producer_state` and `checkpoint_file`: the parts that a partition is made of."""

import json
from typing import Any

from kspec.spec.broker.rules.fencing import check_replica_epoch
from kspec.spec.broker.rules.followers import (
    NEVER_FETCHED,
    UNKNOWN_FOLLOWER,
    FollowerFetch,
    FollowerState,
    after_fetch,
    is_caught_up,
    reset_follower,
)
from kspec.spec.broker.rules.high_watermark import leader_high_watermark
from kspec.spec.broker.rules.reading import visible_end
from kspec.spec.log.batch import Batches, count_records
from kspec.spec.log.checkpoint_files import (
    OffsetEntry,
    Offsets,
    epochs_from_text,
    epochs_to_text,
    offsets_from_text,
    offsets_to_text,
)
from kspec.spec.log.epoch_history import EpochEntry, EpochHistory
from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from kspec.spec.log.local_log import (
    LocalLog,
    append_in_order,
    move_start,
    raise_high_watermark,
    read,
    restart,
    retention_offset,
    set_high_watermark,
    truncate,
)
from kspec.spec.log.producers import (
    LAST_SEQUENCE,
    ProducerBatch,
    Producers,
    append_unchecked,
    check_batch,
    check_producer_epoch,
    duplicate_of,
    entry_of,
    remember,
)
from kspec.spec.messages.fetch import NO_LIMIT, Isolation
from kspec.spec.metadata import BrokerRegistration
from kspec.spec.values import (
    NO_PRODUCER_EPOCH,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    Incarnation,
    MonotonicMs,
    Offset,
    ProducerEpoch,
    ProducerId,
)
from tests.conformance.components import ById, FoundPair, Records, VectorAnswer, refused
from tests.conformance.components.batches import LIMIT, at_most, batch_of
from tests.conformance.outcomes import UnsupportedError


def entries_of(history: EpochHistory) -> dict[str, Any]:
    entries = [list(pair) for pair in history.pairs]
    return {
        "epoch_entries": entries,
        "epoch_entry_count": len(entries),
        "earliest_epoch_entry": entries[0] if entries else None,
        "latest_epoch_entry": entries[-1] if entries else None,
        "latest_epoch": entries[-1][0] if entries else None,
    }


def appended_at(base_offset: Offset, count: int, error: Error = Error.NONE) -> VectorAnswer:
    named = {"base_offset": base_offset, "last_offset": base_offset + count - 1}
    return VectorAnswer(error.name, [base_offset, base_offset + count - 1], named)


def read_from(offset: int, records: Batches) -> dict[str, Any]:
    """Values that a vector may ask of a read, by name."""
    count = count_records(records)
    epochs = [batch.leader_epoch for batch in records]
    return {
        "records": Records(count),
        "count": Records(count),
        "base_offset": offset if count else None,
        "last_offset": offset + count - 1 if count else None,
        "epochs": epochs,
        "epoch": epochs[0] if len(epochs) == 1 else None,
    }


OTHER_ISOLATIONS = {
    "read_uncommitted": Isolation.HIGH_WATERMARK,
    "txn_committed": Isolation.COMMITTED_TRANSACTIONS,
    "read_committed": Isolation.COMMITTED_TRANSACTIONS,
}


class LogOfVectors:
    """`log`: Kafka's `UnifiedLog` is `LocalLog`, here over an epoch history."""

    def __init__(self) -> None:
        self.local: LocalLog[EpochLog] = LocalLog(EMPTY_EPOCH_LOG)

    def final_state(self) -> dict[str, Any]:
        log = self.local.log
        hw = self.local.high_watermark
        return {"leo": log.end_offset, "hw": hw, "lso": hw, "log_start": log.start_offset} | entries_of(log.epoch_history)

    def append_leader(self, count: int = 1, leader_epoch: int = 0, times: int = 1) -> VectorAnswer:
        base_offset = self.local.log.end_offset
        for _ in range(at_most(LIMIT, times)):
            self.local = self.local._replace(log=self.local.log.append((batch_of(count, leader_epoch),)))
        return appended_at(base_offset, count * times)

    def append_follower(self, base_offset: int | None = None, count: int = 1, leader_epoch: int = 0) -> VectorAnswer:
        """Append at an offset, or at the end; in Kafka's test a batch of no epoch has epoch 0."""
        base = self.local.log.end_offset if base_offset is None else Offset(base_offset)
        appended = append_in_order(self.local, base, (batch_of(count, leader_epoch),))
        self.local = appended.local
        return appended_at(base, count, appended.error)

    def update_hw(self, offset: int) -> int:
        self.local = set_high_watermark(self.local, Offset(offset))
        return self.local.high_watermark

    def maybe_update_hw(self, offset: int) -> int | None:
        before = self.local.high_watermark
        return after if (after := self.update_hw(offset)) != before else None

    def maybe_increment_hw(self, offset: int) -> VectorAnswer:
        """The high watermark before, null if it stays. Kafka refuses one beyond the end with an exception."""
        before = self.local
        if offset > before.log.end_offset:
            return VectorAnswer("ILLEGAL_ARGUMENT")
        risen = leader_high_watermark(before.high_watermark, before.log.end_offset, (Offset(offset),), may_advance=True)
        self.local = raise_high_watermark(before, risen)
        return VectorAnswer(value=before.high_watermark if self.local != before else None)

    def increment_log_start(self, offset: int) -> VectorAnswer:
        moved = move_start(self.local, Offset(offset))
        changed, self.local = moved.local != self.local, moved.local
        return VectorAnswer(moved.error.name, changed)

    def truncate_to(self, offset: int) -> None:
        self.local = truncate(self.local, Offset(offset))

    def truncate_fully(self, offset: int, log_start: int | None = None) -> None:
        start = offset if log_start is None else log_start
        restarted = restart(self.local, Offset(start))
        self.local = restarted._replace(log=restarted.log.append_at(Offset(offset), ()))

    def assign_epoch(self, epoch: int, start_offset: int | None = None) -> None:
        """Open an epoch at the log's end, or anywhere: tests write to the cache of a log as well."""
        start = self.local.log.end_offset if start_offset is None else Offset(start_offset)
        log = self.local.log._replace(epoch_history=self.local.log.epoch_history.assign(Epoch(epoch), start))
        self.local = self.local._replace(log=log)

    def delete_old_segments(self, offset: int) -> None:
        """Delete what lies before an offset, as far as it is committed."""
        self.local = move_start(self.local, retention_offset(self.local, Offset(offset))).local

    def read(self, offset: int, isolation: str | None = "log_end", count: int = NO_LIMIT) -> VectorAnswer:
        name = isolation.lower() if isolation is not None else "log_end"
        isolations = {known.name.lower(): known for known in Isolation} | OTHER_ISOLATIONS
        if name not in isolations:
            raise UnsupportedError(f"isolation {isolation}")
        log, high_watermark = self.local
        end = visible_end(isolations[name], log.end_offset, high_watermark, high_watermark)
        found = read(log, Offset(offset), end, count)
        return VectorAnswer(found.error.name, "nonempty" if found.records else "empty", read_from(offset, found.records))

    def end_offset_for(self, epoch: int) -> list[int]:
        return list(self.local.log.end_offset_for_epoch(Epoch(epoch)))


class ReplicaState:
    """`replica_state`: Kafka's `Replica` is `FollowerState`; the metadata knows one broker, itself."""

    SELF = BrokerId(1)

    def __init__(self) -> None:
        self.follower = UNKNOWN_FOLLOWER
        self.broker_epoch = BrokerEpoch(-1)

    def final_state(self) -> dict[str, Any]:
        return follower_json(self.follower)

    def cached_broker_epoch(self, epoch: int) -> None:
        self.broker_epoch = BrokerEpoch(epoch)

    def update_fetch_state(
        self, time: int, fetch_offset: int, follower_log_start: int, leader_end_offset: int, broker_epoch: int = -1
    ) -> VectorAnswer:
        brokers = (BrokerRegistration(self.SELF, self.broker_epoch, Incarnation(0), fenced=False),)
        error = check_replica_epoch(brokers, self.SELF, BrokerEpoch(broker_epoch))
        if error == Error.NONE:
            ends = Offset(fetch_offset), Offset(follower_log_start), Offset(leader_end_offset)
            self.follower = after_fetch(self.follower, FollowerFetch(MonotonicMs(time), *ends, BrokerEpoch(broker_epoch)))
        return refused(error)

    def reset(self, time: int, leader_end_offset: int, is_new_leader: bool, in_isr: bool) -> None:
        self.follower = reset_follower(
            self.follower, MonotonicMs(time), in_isr, Offset(leader_end_offset), not is_new_leader
        )

    def is_caught_up(self, time: int, leader_end_offset: int, max_lag_ms: int = 30_000) -> bool:
        return is_caught_up(self.follower, Offset(leader_end_offset), MonotonicMs(time), max_lag_ms)


def follower_json(follower: FollowerState) -> dict[str, Any]:
    return {
        "leo": follower.end_offset,
        "log_start": follower.start_offset,
        "last_fetch_leader_leo": follower.leader_end_offset,
        "last_fetch_time": follower.fetch_time,
        "last_caught_up": follower.caught_up_time,
        "broker_epoch": None if follower.broker_epoch == NEVER_FETCHED else follower.broker_epoch,
    }


ORIGINS = ("client", "replication", "coordinator", "raft_leader")


class ProducerStateOfVectors:
    """`producer_state`: Kafka's `ProducerStateManager` with the duplicate check of `UnifiedLog` before it."""

    def __init__(self) -> None:
        self.producers: Producers = ()
        self.end_offset = Offset(0)
        self.last_producer = ProducerId(0)

    def final_state(self) -> dict[str, Any]:
        """The state of each producer, and that of the last one that appended."""
        by_id = ById({str(entry.producer_id): self._entry(entry.producer_id) for entry in self.producers})
        return {"leo": self.end_offset, "producers": by_id} | self._entry(self.last_producer)

    def _entry(self, producer_id: ProducerId) -> dict[str, Any]:
        entry = entry_of(self.producers, producer_id)
        unknown = entry.producer_epoch == NO_PRODUCER_EPOCH
        return {
            "last_seq": entry.last_sequence,
            "first_seq": entry.batches[0].first_sequence if entry.batches else -1,
            "producer_epoch": None if unknown else entry.producer_epoch,
            "batch_count": len(entry.batches),
            "last_offset": entry.batches[-1].last_offset if entry.batches else -1,
        }

    def append(
        self,
        producer_id: int,
        producer_epoch: int = 0,
        first_seq: int = 0,
        count: int = 1,
        origin: str = "client",
        skip_duplicate_check: bool = False,
        base_offset: int | None = None,
        last_seq: int | None = None,
        times: int = 1,
    ) -> VectorAnswer:
        """Append a batch, or several in a row; only a client's is compared with earlier ones."""
        answer, first = VectorAnswer(), first_seq
        size = batch_of(count if last_seq is None else (last_seq - first_seq) % (LAST_SEQUENCE + 1) + 1, 0).record_count
        for _ in range(at_most(LIMIT, times)):
            batch = ProducerBatch(ProducerId(producer_id), ProducerEpoch(producer_epoch), first, size)
            end = self.end_offset if base_offset is None else Offset(base_offset)
            answer = self._append(batch._replace(base_offset=end), origin.lower(), skip_duplicate_check)
            first += size
        return answer

    def _append(self, wanted: ProducerBatch, origin: str, skip_duplicate_check: bool) -> VectorAnswer:
        if origin not in ORIGINS:
            raise UnsupportedError(f"origin {origin}")
        self.last_producer = wanted.producer_id
        entry = entry_of(self.producers, wanted.producer_id)
        known = duplicate_of(entry, wanted) if origin == "client" and not skip_duplicate_check else None
        if known is not None:
            return _append_info(known, Error.NONE, duplicate=True)
        check = {"client": check_batch, "replication": append_unchecked}.get(origin, check_producer_epoch)
        error = check(entry, wanted)
        if error == Error.NONE:
            self.producers = remember(self.producers, wanted)
            self.end_offset = Offset(wanted.last_offset + 1)
        return _append_info(wanted, error, duplicate=False)


def _append_info(batch: ProducerBatch, error: Error, duplicate: bool) -> VectorAnswer:
    ends = [batch.base_offset, batch.last_offset]
    first = FoundPair(ends if duplicate else [])
    named = {"base_offset": ends[0], "last_offset": ends[1], "offsets": ends, "duplicate": first, "duplicate_of": first}
    return VectorAnswer(error.name, ends, named | {"appended": not duplicate and error == Error.NONE})


class CheckpointFile:
    """`checkpoint_file`: the text of the files, and what is read from it."""

    def __init__(self) -> None:
        self.text = ""

    def final_state(self) -> dict[str, Any]:
        return {"text": self.text}

    def write_epochs(self, entries: list[list[int]]) -> VectorAnswer:
        history = EpochHistory(tuple(EpochEntry(Epoch(epoch), Offset(start)) for epoch, start in entries))
        return self._written(epochs_to_text(history))

    def read_epochs(self) -> VectorAnswer:
        return self.parse_epochs(self.text)

    def parse_epochs(self, text: str) -> VectorAnswer:
        found = epochs_from_text(text)
        return self._found(found.error, [list(pair) for pair in found.history.pairs])

    def write_offsets(self, entries: list[list[Any]]) -> VectorAnswer:
        found = tuple(OffsetEntry(topic, partition, Offset(offset)) for topic, partition, offset in entries)
        return self._written(offsets_to_text(found))

    def read_offsets(self) -> VectorAnswer:
        return self.parse_offsets(self.text)

    def parse_offsets(self, text: str) -> VectorAnswer:
        found: Offsets = offsets_from_text(text)
        return self._found(found.error, [list(entry) for entry in found.entries])

    def parse_clean_shutdown(self, text: str) -> VectorAnswer:
        """JSON is read by a library; what else is in there does not matter."""
        try:
            fields = json.loads(text)
        except json.JSONDecodeError:
            return VectorAnswer(Error.KAFKA_STORAGE_ERROR.name)
        known = isinstance(fields, dict) and fields.get("version") == 0
        return VectorAnswer(value=fields.get("brokerEpoch")) if known else VectorAnswer(Error.KAFKA_STORAGE_ERROR.name)

    def _written(self, text: str) -> VectorAnswer:
        self.text = text
        return VectorAnswer(named={"text": text})

    def _found(self, error: Error, entries: list[list[Any]]) -> VectorAnswer:
        return VectorAnswer(value=entries) if error == Error.NONE else VectorAnswer(Error.KAFKA_STORAGE_ERROR.name)
