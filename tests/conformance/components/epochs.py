"""`epoch_cache` and `offset_for_leader_epoch_api`: epoch histories, and the API that asks about them."""

from typing import Any

from kspec.spec.broker.rules.epoch_lookup import (
    answer_offset_for_leader_epoch,
    look_up_as_released,
    offset_for_leader_epoch_without_log,
)
from kspec.spec.broker.rules.fencing import check_serves
from kspec.spec.log.batch import Batch
from kspec.spec.log.epoch_history import NO_ENTRY, EpochEntry, EpochHistory
from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from kspec.spec.values import NO_EPOCH, BrokerId, Epoch, LeaderAndIsr, Offset
from tests.conformance.components import VectorAnswer
from tests.conformance.outcomes import UnsupportedError


class EpochCache:
    """`epoch_cache`: Kafka's `LeaderEpochFileCache` is `EpochHistory`."""

    def __init__(self) -> None:
        self.history = EpochHistory()

    def final_state(self) -> dict[str, Any]:
        entries = [list(pair) for pair in self.history.pairs]
        return {
            "entries": entries,
            "epoch_entry_count": len(entries),
            "latest_epoch": _epoch_or_null(self.history.latest_epoch),
            "previous_epoch": _epoch_or_null(self.history.previous_epoch),
            "earliest_entry": entries[0] if entries else None,
            "latest_epoch_entry": entries[-1] if entries else None,
        }

    def assign(
        self, epoch: int | None = None, start_offset: int | None = None, entries: list[list[int]] | None = None
    ) -> None:
        """One epoch with its start offset, or a list of them."""
        given = entries if entries is not None else [[epoch, start_offset]]
        for leader_epoch, start in given:
            if leader_epoch is None or start is None:
                raise UnsupportedError("an epoch without its start offset")
            self.history = self.history.assign(Epoch(leader_epoch), Offset(start))

    def truncate_from_end(self, offset: int) -> None:
        self.history = self.history.truncate_from_end(Offset(offset))

    def truncate_from_start(self, offset: int) -> None:
        self.history = self.history.truncate_from_start(Offset(offset))

    def clear(self) -> None:
        self.history = EpochHistory()

    def reload_from_checkpoint(self) -> None:
        """The history is what the checkpoint holds; Kafka reads it by assigning entry after entry."""
        entries, self.history = self.history.entries, EpochHistory()
        for entry in entries:
            self.history = self.history.assign(entry.leader_epoch, entry.start_offset)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> list[int]:
        return list(self.history.end_offset_for(Epoch(epoch), Offset(log_end_offset)))

    def latest_epoch(self) -> int | None:
        return _epoch_or_null(self.history.latest_epoch)

    def previous_epoch(self, epoch: int | str | None = None) -> int | None:
        """The epoch before this one, or before the latest."""
        if epoch is None:
            return _epoch_or_null(self.history.previous_epoch)
        return _epoch_or_null(self.history.entry_before(self._epoch(epoch)).leader_epoch)

    def next_epoch(self, epoch: int | str) -> int | None:
        return _epoch_or_null(self.history.epoch_after(self._epoch(epoch)))

    def epoch_for_offset(self, offset: int) -> int | None:
        return _epoch_or_null(self.history.epoch_at(Offset(offset)))

    def epoch_entry(self, epoch: int | str) -> list[int] | None:
        return _entry_or_null(self.history.entry_of(self._epoch(epoch)))

    def previous_entry(self, epoch: int | str) -> list[int] | None:
        return _entry_or_null(self.history.entry_before(self._epoch(epoch)))

    def earliest_entry(self) -> list[int] | None:
        return _entry_or_null(next(iter(self.history.entries), NO_ENTRY))

    def latest_entry(self) -> list[int] | None:
        return _entry_or_null(next(reversed(self.history.entries), NO_ENTRY))

    def _epoch(self, epoch: int | str) -> Epoch:
        if isinstance(epoch, int):
            return Epoch(epoch)
        if epoch == "latest":
            return self.history.latest_epoch
        raise UnsupportedError(f"epoch {epoch}")


def _epoch_or_null(epoch: Epoch) -> int | None:
    return None if epoch == NO_EPOCH else epoch


def _entry_or_null(entry: EpochEntry) -> list[int] | None:
    return None if entry == NO_ENTRY else [entry.leader_epoch, entry.start_offset]


def epoch_end_of(response: OffsetForLeaderEpochResponse) -> VectorAnswer:
    """The answer about the end of an epoch, as a pair and by name."""
    epoch, end_offset = response.end
    return VectorAnswer(response.error.name, [epoch, end_offset], {"epoch": epoch, "end_offset": end_offset})


class OffsetForLeaderEpochApi:
    """`offset_for_leader_epoch_api`: one broker, asked about one partition."""

    SELF, OTHER = BrokerId(0), BrokerId(1)
    WITH_LOG = ("leader", "follower")
    NOT_IN_METADATA = ("not_in_metadata", "unknown_topic", "unknown_partition", "no_such_topic")
    WITHOUT_LOG = (
        "in_metadata_without_log",
        "online_partition_without_log",
        "offline_partition",
        "non_replica",
        "not_replica",
        "not_a_replica",
        "no_replica",
    )

    def __init__(self) -> None:
        self.host_role = "not_in_metadata"
        self.leader_epoch = Epoch(7)
        self.log = EMPTY_EPOCH_LOG

    def final_state(self) -> dict[str, Any]:
        return {}

    def host(self, role: str, log_end_offset_for: Any = None, leader_epoch: int | None = None) -> None:
        """The broker's role; of a leader or follower: its leader epoch, and where the epochs of its log end.

        A leader whose epoch is given has opened that epoch at the end of its log.
        """
        if role not in (*self.WITH_LOG, *self.WITHOUT_LOG, *self.NOT_IN_METADATA):
            raise UnsupportedError(f"role {role}")
        self.host_role, self.log = role, _log_with_epoch_ends(log_end_offset_for or {})
        if leader_epoch is not None:
            self.leader_epoch = Epoch(leader_epoch)
            self.log = self.log.open_epoch(self.leader_epoch) if role == "leader" else self.log

    def offset_for_leader_epoch(self, leader_epoch: int, current_leader_epoch: int | None = None) -> VectorAnswer:
        claimed = NO_EPOCH if current_leader_epoch is None else Epoch(current_leader_epoch)
        return epoch_end_of(self._response(claimed, Epoch(leader_epoch)))

    def _response(self, claimed: Epoch, asked: Epoch) -> OffsetForLeaderEpochResponse:
        if self.host_role not in self.WITH_LOG:
            return offset_for_leader_epoch_without_log(self.host_role not in self.NOT_IN_METADATA)
        leader = self.SELF if self.host_role == "leader" else self.OTHER
        role = LeaderAndIsr(leader, self.leader_epoch, frozenset({self.SELF, self.OTHER}))
        verdict = check_serves(self.SELF, role, claimed, leader_only=True)
        return answer_offset_for_leader_epoch(verdict, look_up_as_released(self.log, asked))


def _log_with_epoch_ends(given: Any) -> EpochLog:
    """A log from where its epochs end: a list of [epoch, end offset], or an object by epoch with such a pair or the end."""
    ends = [_epoch_end(epoch, end) for epoch, end in given.items()] if isinstance(given, dict) else given
    log = EMPTY_EPOCH_LOG
    for epoch, end in sorted(ends):
        log = log.append((Batch(end - log.end_offset, Epoch(epoch)),))
    return log


def _epoch_end(epoch: str, end: Any) -> tuple[int, int]:
    if isinstance(end, int):
        return int(epoch), end
    leader_epoch, end_offset = end.values() if isinstance(end, dict) else end
    return leader_epoch, end_offset
