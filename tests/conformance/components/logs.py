"""`log`, `replica_state`, `producer_state` and `checkpoint_file`: the parts that a partition is made of."""

import json
from typing import Any

from spec.broker.rules.fencing import check_replica_epoch
from spec.broker.rules.followers import (
    NEVER_FETCHED,
    UNKNOWN_FOLLOWER,
    FollowerState,
    after_fetch,
    is_caught_up,
    reset_follower,
)
from spec.broker.rules.high_watermark import leader_high_watermark
from spec.log.batch import Batch, count_records
from spec.log.checkpoint_files import (
    OffsetEntry,
    Offsets,
    epochs_from_text,
    epochs_to_text,
    offsets_from_text,
    offsets_to_text,
)
from spec.log.epoch_history import EpochEntry, EpochHistory
from spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from spec.log.local_log import (
    LocalLog,
    append_in_order,
    move_start,
    raise_high_watermark,
    read,
    restart,
    set_high_watermark,
    truncate,
)
from spec.log.producers import ProducerBatch, Producers, check_batch, duplicate_of, entry_of, remember
from spec.messages.fetch import NO_LIMIT
from spec.metadata import BrokerRegistration
from spec.values import (
    NO_PRODUCER_EPOCH,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    Incarnation,
    Offset,
    ProducerEpoch,
    ProducerId,
)
from tests.conformance.components import Answer, refused
from tests.conformance.outcomes import UnsupportedError


def entries_of(history: EpochHistory) -> dict[str, Any]:
    entries = [list(pair) for pair in history.pairs]
    return {
        "epoch_entries": entries,
        "epoch_entry_count": len(entries),
        "latest_epoch_entry": entries[-1] if entries else None,
        "latest_epoch": entries[-1][0] if entries else None,
    }


class Log:
    """`log`: Kafka's `UnifiedLog` is `LocalLog`, here over an epoch history."""

    def __init__(self) -> None:
        self.local: LocalLog[EpochLog] = LocalLog(EMPTY_EPOCH_LOG)

    def final_state(self) -> dict[str, Any]:
        log = self.local.log
        offsets = {"leo": log.end_offset, "hw": self.local.high_watermark, "log_start": log.start_offset}
        return offsets | entries_of(log.epoch_history)

    def append_leader(self, count: int, leader_epoch: int, times: int = 1) -> None:
        for _ in range(times):
            self.local = self.local._replace(log=self.local.log.append((Batch(count, Epoch(leader_epoch)),)))

    def append_follower(self, base_offset: int, count: int, leader_epoch: int) -> Answer:
        appended = append_in_order(self.local, Offset(base_offset), (Batch(count, Epoch(leader_epoch)),))
        self.local = appended.local
        return refused(appended.error)

    def update_hw(self, offset: int) -> int:
        self.local = set_high_watermark(self.local, Offset(offset))
        return self.local.high_watermark

    def maybe_update_hw(self, offset: int) -> int | None:
        before = self.local.high_watermark
        return after if (after := self.update_hw(offset)) != before else None

    def maybe_increment_hw(self, offset: int) -> Answer:
        """The high watermark before, null if it stays. Kafka refuses one beyond the end with an exception."""
        before = self.local
        if offset > before.log.end_offset:
            return Answer("ILLEGAL_ARGUMENT")
        risen = leader_high_watermark(before.high_watermark, before.log.end_offset, (Offset(offset),), may_advance=True)
        self.local = raise_high_watermark(before, risen)
        return Answer(value=before.high_watermark if self.local != before else None)

    def increment_log_start(self, offset: int) -> Answer:
        moved = move_start(self.local, Offset(offset))
        changed, self.local = moved.local != self.local, moved.local
        return Answer(moved.error.name, changed)

    def truncate_to(self, offset: int) -> None:
        self.local = truncate(self.local, Offset(offset))

    def truncate_fully(self, offset: int, log_start: int | None = None) -> None:
        start = offset if log_start is None else log_start
        restarted = restart(self.local, Offset(start))
        self.local = restarted._replace(log=restarted.log.append_at(Offset(offset), ()))

    def assign_epoch(self, epoch: int) -> None:
        self.local = self.local._replace(log=self.local.log.open_epoch(Epoch(epoch)))

    def read(self, offset: int, isolation: str = "log_end") -> Answer:
        ends = {"log_end": self.local.log.end_offset, "high_watermark": self.local.high_watermark}
        ends["txn_committed"] = self.local.high_watermark
        if isolation not in ends:
            raise UnsupportedError(f"isolation {isolation}")
        found = read(self.local.log, Offset(offset), ends[isolation], NO_LIMIT)
        count = {"records": count_records(found.records), "count": count_records(found.records)}
        return Answer(found.error.name, "nonempty" if found.records else "empty", count)


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
    ) -> Answer:
        brokers = (BrokerRegistration(self.SELF, self.broker_epoch, Incarnation(0), fenced=False),)
        error = check_replica_epoch(brokers, self.SELF, BrokerEpoch(broker_epoch))
        if error == Error.NONE:
            ends = Offset(fetch_offset), Offset(follower_log_start), Offset(leader_end_offset)
            self.follower = after_fetch(self.follower, time, *ends, BrokerEpoch(broker_epoch))
        return refused(error)

    def reset(self, time: int, leader_end_offset: int, is_new_leader: bool, in_isr: bool) -> None:
        self.follower = reset_follower(self.follower, time, in_isr, Offset(leader_end_offset), not is_new_leader)

    def is_caught_up(self, time: int, leader_end_offset: int, max_lag_ms: int) -> bool:
        return is_caught_up(self.follower, Offset(leader_end_offset), time, max_lag_ms)


def follower_json(follower: FollowerState) -> dict[str, Any]:
    return {
        "leo": follower.end_offset,
        "log_start": follower.start_offset,
        "last_fetch_leader_leo": follower.leader_end_offset,
        "last_fetch_time": follower.fetch_time,
        "last_caught_up": follower.caught_up_time,
        "broker_epoch": None if follower.broker_epoch == NEVER_FETCHED else follower.broker_epoch,
    }


class ProducerState:
    """`producer_state`: Kafka's `ProducerStateManager` with the duplicate check of `UnifiedLog` before it."""

    def __init__(self) -> None:
        self.producers: Producers = ()
        self.end_offset = Offset(0)
        self.last_producer = ProducerId(0)

    def final_state(self) -> dict[str, Any]:
        entry = entry_of(self.producers, self.last_producer)
        unknown = entry.producer_epoch == NO_PRODUCER_EPOCH
        return {
            "leo": self.end_offset,
            "last_seq": entry.last_sequence,
            "first_seq": entry.batches[0].first_sequence if entry.batches else -1,
            "producer_epoch": None if unknown else entry.producer_epoch,
            "batch_count": len(entry.batches),
        }

    def append(
        self,
        producer_id: int,
        producer_epoch: int,
        first_seq: int,
        count: int,
        origin: str = "client",
        skip_duplicate_check: bool = False,
    ) -> Answer:
        if origin not in ("client", "replication"):
            raise UnsupportedError(f"origin {origin}")
        self.last_producer = ProducerId(producer_id)
        wanted = ProducerBatch(self.last_producer, ProducerEpoch(producer_epoch), first_seq, count, self.end_offset)
        entry = entry_of(self.producers, wanted.producer_id)
        known = duplicate_of(entry, wanted) if origin == "client" and not skip_duplicate_check else None
        if known is not None:
            return Answer(named={"base_offset": known.base_offset, "last_offset": known.last_offset, "duplicate": True})
        error = check_batch(entry, wanted) if origin == "client" else Error.NONE
        if error == Error.NONE:
            self.producers = remember(self.producers, wanted)
            self.end_offset = Offset(self.end_offset + count)
        ends = {"base_offset": wanted.base_offset, "last_offset": wanted.last_offset, "duplicate": False}
        return Answer(error.name, named=ends)


class CheckpointFile:
    """`checkpoint_file`: the text of the files, and what is read from it."""

    STORAGE_ERROR = "STORAGE_ERROR"

    def __init__(self) -> None:
        self.text = ""

    def final_state(self) -> dict[str, Any]:
        return {"text": self.text}

    def write_epochs(self, entries: list[list[int]]) -> Answer:
        history = EpochHistory(tuple(EpochEntry(Epoch(epoch), Offset(start)) for epoch, start in entries))
        return self._written(epochs_to_text(history))

    def read_epochs(self) -> Answer:
        return self.parse_epochs(self.text)

    def parse_epochs(self, text: str) -> Answer:
        found = epochs_from_text(text)
        return self._found(found.error, [list(pair) for pair in found.history.pairs])

    def write_offsets(self, entries: list[list[Any]]) -> Answer:
        found = tuple(OffsetEntry(topic, partition, Offset(offset)) for topic, partition, offset in entries)
        return self._written(offsets_to_text(found))

    def read_offsets(self) -> Answer:
        return self.parse_offsets(self.text)

    def parse_offsets(self, text: str) -> Answer:
        found: Offsets = offsets_from_text(text)
        return self._found(found.error, [list(entry) for entry in found.entries])

    def parse_clean_shutdown(self, text: str) -> Answer:
        """JSON is read by a library; what else is in there does not matter."""
        try:
            fields = json.loads(text)
        except json.JSONDecodeError:
            return Answer(self.STORAGE_ERROR)
        known = isinstance(fields, dict) and fields.get("version") == 0
        return Answer(value=fields.get("brokerEpoch")) if known else Answer(self.STORAGE_ERROR)

    def _written(self, text: str) -> Answer:
        self.text = text
        return Answer(named={"text": text})

    def _found(self, error: Error, entries: list[list[Any]]) -> Answer:
        return Answer(value=entries) if error == Error.NONE else Answer(self.STORAGE_ERROR)
