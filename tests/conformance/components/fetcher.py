"""`fetcher`: a follower and a leader, joined by a thread that works step by step. Kafka: `AbstractFetcherThread`."""

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from typing import Any

from spec.broker.effects import FollowerRequest
from spec.broker.follower import (
    fetch_or_truncate,
    handle_fetch_response,
    handle_list_offsets_response,
    handle_offset_for_leader_epoch_response,
    next_request,
    on_no_answer,
    truncate_by,
)
from spec.broker.leader.fetch import read_partition
from spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from spec.broker.partition import Broker, BrokerSettings, Handled, Partition
from spec.broker.protocol import BrokerProtocol
from spec.broker.rules.fetcher import (
    NOT_FETCHING,
    Asked,
    FetchState,
    FetchStatus,
    Truncation,
    awake,
    is_fetching,
    needs_no_answer,
    started,
)
from spec.broker.rules.followers import Follower
from spec.broker.rules.truncation import truncation_step
from spec.log.algebra import Log, LogT
from spec.log.batch import Batch, Batches
from spec.log.local_log import LocalLog
from spec.log.record_log import EMPTY_LOG, RecordLog
from spec.messages.fetch import FetchRequest, FetchResponse
from spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse, Wanted
from spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from spec.releases.broker import BROKER_2_7, BROKER_3_9
from spec.step import Reply
from spec.values import NO_EPOCH, UNDEFINED_EPOCH_END, BrokerId, Epoch, EpochEndOffset, Error, Offset, PartitionId
from tests.conformance.components import Anything
from tests.conformance.outcomes import UnsupportedError

FOLLOWER, LEADER = BrokerId(0), BrokerId(1)
NOW = 1
ThreadStep = Callable[[], None]

TRUNCATING_FIRST = replace(
    BROKER_3_9,
    name="3.9 at an inter-broker protocol of 2.6",
    start_following=BROKER_2_7.start_following,
    names_epochs=BROKER_2_7.names_epochs,
    truncation=BROKER_2_7.truncation,
)


class OldFormatLog(RecordLog):
    """A log in a message format that has no epochs."""

    @property
    def latest_epoch(self) -> Epoch:
        return NO_EPOCH


def records_of(batches: list[list[int]]) -> RecordLog:
    """A log of batches; a record's value is the offset of its batch, so that batches can be told apart."""
    log = EMPTY_LOG.restart_at(Offset(batches[0][0])) if batches else EMPTY_LOG
    for base_offset, count, epoch in batches:
        log = log.append_at(Offset(base_offset), (Batch(count, Epoch(epoch), base_offset),))
    return log


def batches_of(log: RecordLog) -> list[list[int]]:
    return [[base, len(list(members)), epoch] for (base, epoch), members in groupby(log.records)]


class Fetcher:
    """`fetcher`: one partition in a fetcher thread, its leader at the other end, no time and no delay."""

    def __init__(self) -> None:
        self.protocol: BrokerProtocol = BROKER_3_9
        self.truncates_on_fetch = True
        self.partition: Partition[RecordLog] = Partition(PartitionId(0), LocalLog(EMPTY_LOG))
        self.leader_partition: Partition[RecordLog] | None = None
        self.asks_without_epoch = False
        self.asks_for_epochs = True
        self.corrupt_fetches = 0
        self.leader_errors: dict[str, list[Error]] = {}
        self.meanwhile: dict[str, list[ThreadStep]] = {}
        self.truncations: list[dict[str, Any]] = []
        self.process_count = 0

    # ---- surroundings

    def mode(self, truncate_on_fetch: bool) -> None:
        self.truncates_on_fetch = truncate_on_fetch
        self.protocol = BROKER_3_9 if truncate_on_fetch else TRUNCATING_FIRST

    @property
    def broker(self) -> Broker:
        """The follower's broker, whose rules are listened to."""
        truncate, truncation, takes_records = (
            self.protocol.truncate,
            self.protocol.truncation,
            self.protocol.takes_records,
        )

        def noted_truncate(local: LocalLog[LogT], offset: Offset) -> LocalLog[LogT]:
            completed = self.truncations.pop()["completed"] if self._open_truncation() else True
            self.truncations.append({"offset": offset, "completed": completed})
            return truncate(local, offset)

        def noted_truncation(fetcher: FetchState, log: Log, end: EpochEndOffset) -> Truncation:
            complete = truncation_step(log, fetcher.fetch_offset, end).complete
            self.truncations.append({"offset": None, "completed": complete})
            return truncation(fetcher, log, end)

        def noted_records(batches: Batches, leader_epoch: Epoch) -> Batches:
            self.process_count += 1
            return takes_records(batches, leader_epoch)

        protocol = replace(self.protocol, truncate=noted_truncate, truncation=noted_truncation, takes_records=noted_records)
        return Broker(FOLLOWER, protocol, settings=BrokerSettings(back_off=0))

    def _open_truncation(self) -> bool:
        return bool(self.truncations) and self.truncations[-1]["offset"] is None

    def follower(self, log: list[list[int]], leader_epoch: int, hw: int) -> None:
        local = LocalLog(records_of(log), Offset(hw))
        self.partition = self.partition._replace(local=local, leader_epoch=Epoch(leader_epoch))

    def leader(self, log: list[list[int]], leader_epoch: int, hw: int) -> None:
        epoch, records = Epoch(leader_epoch), records_of(log)
        opened = records.open_epoch(epoch) if epoch > records.latest_epoch else records
        self.leader_partition = Partition(
            PartitionId(0), LocalLog(opened, Offset(hw)), LEADER, epoch, followers=(Follower(FOLLOWER),)
        )

    def leader_epoch(self, epoch: int) -> None:
        if self.leader_partition is not None:
            self.leader_partition = self.leader_partition._replace(leader_epoch=Epoch(epoch))

    def leader_error(self, api: str, error: str, times: int = 10**6) -> None:
        apis = ("fetch", "offset_for_leader_epoch", "list_offsets_latest", "list_offsets_earliest")
        if api not in apis or error not in Error.__members__:
            raise UnsupportedError(f"error {error} of {api}")
        self.leader_errors[api] = [Error[error]] * min(times, 1000)

    def corrupt_next_fetch(self, times: int = 1) -> None:
        self.corrupt_fetches = times

    def capability(self, latest_epoch_available: bool = True, offset_for_leader_epoch_supported: bool = True) -> None:
        self.asks_for_epochs = offset_for_leader_epoch_supported
        if not latest_epoch_available:
            old = OldFormatLog(*self.partition.local.log)
            self.partition = self.partition._replace(local=self.partition.local._replace(log=old))

    def during_offset_for_leader_epoch(
        self, replace_follower: dict[str, Any] | None = None, re_add: dict[str, Any] | None = None
    ) -> None:
        def meanwhile() -> None:
            if replace_follower is not None:
                self.follower(**replace_follower)
            if re_add is not None:
                self.add_partition(**re_add)

        self.meanwhile.setdefault("offset_for_leader_epoch", []).append(meanwhile)

    def remove_partition_during(self, api: str = "fetch") -> None:
        self.meanwhile.setdefault(api, []).append(self.remove_partition)

    # ---- the partition in the fetcher

    def add_partition(self, init_offset: int, leader_epoch: int, force_truncation: bool = False) -> None:
        local = self.partition.local
        start = self.protocol.start_following(local.log, local.high_watermark)._replace(fetch_offset=Offset(init_offset))
        if force_truncation:
            self.asks_without_epoch = True
            start = start._replace(status=FetchStatus.TRUNCATING, last_fetched_epoch=NO_EPOCH)
        fetcher = started(self.partition.fetcher, LEADER, Epoch(leader_epoch), start)
        self.partition = self.partition._replace(fetcher=fetcher)

    def remove_partition(self) -> None:
        self.partition = self.partition._replace(fetcher=NOT_FETCHING)

    def truncate_on_fetch_response(self, epoch: int, end_offset: int) -> None:
        self._run(truncate_by(self.broker, self.partition, EpochEndOffset(Epoch(epoch), Offset(end_offset))))

    # ---- the thread

    def do_work(self, times: int = 1) -> None:
        for _ in range(times):
            if self.partition.fetcher.status == FetchStatus.TRUNCATING:
                self._truncate()
            self.partition = self.partition._replace(fetcher=awake(self.partition.fetcher, NOW))
            if self.partition.fetcher.status == FetchStatus.FETCHING:
                self._exchange()
            while self.partition.fetcher.status in (FetchStatus.FINDING_END, FetchStatus.FINDING_START):
                self._exchange()

    def do_work_by_mode(self, truncate_on_fetch: int, otherwise: int) -> None:
        self.do_work(truncate_on_fetch if self.truncates_on_fetch else otherwise)

    def do_work_until_logs_equal(self, max_iterations: int) -> None:
        leader = self.leader_partition
        for _ in range(max_iterations):
            self.do_work()
            if leader is not None and batches_of(self.partition.local.log) == batches_of(leader.local.log):
                return

    def _truncate(self) -> None:
        """Ask, or truncate without asking. Kafka's test can make a thread ask about an undefined epoch."""
        fetcher = self.partition.fetcher
        if not self.asks_for_epochs or (not self.asks_without_epoch and needs_no_answer(fetcher, self.partition.local.log)):
            old = OldFormatLog(*self.partition.local.log)
            local = self.partition.local._replace(log=old)
            self._run(fetch_or_truncate(self.broker, self.partition._replace(local=local), NOW))
        else:
            self._exchange()

    def _exchange(self) -> None:
        """One request and its answer, whatever happens to the partition in between."""
        asked_in, asked_at = self.partition.fetcher.leader_epoch, self.partition.fetcher.fetch_offset
        request = next_request(self.broker, self.partition)
        api = _api(request)
        answer = self._leaders_answer(request, api)
        for step in self.meanwhile.pop(api, []):
            step()
        broker, partition = self.broker, self.partition
        match answer:
            case FetchResponse() if self.corrupt_fetches > 0:
                self.corrupt_fetches -= 1
                self._run(on_no_answer(broker, partition, NOW))
            case FetchResponse():
                self._run(handle_fetch_response(broker, partition, Asked(asked_in, asked_at), answer, NOW))
            case OffsetForLeaderEpochResponse():
                self._run(handle_offset_for_leader_epoch_response(broker, partition, Asked(asked_in), answer, NOW))
            case ListOffsetsResponse():
                self._run(handle_list_offsets_response(broker, partition, Asked(asked_in), answer, NOW))

    def _leaders_answer(
        self, request: FollowerRequest, api: str
    ) -> FetchResponse | OffsetForLeaderEpochResponse | ListOffsetsResponse | None:
        leader, errors = self.leader_partition, self.leader_errors.get(api, [])
        error = errors.pop() if errors else None
        broker = Broker(LEADER, BROKER_3_9)
        match request:
            case OffsetForLeaderEpochRequest():
                if error is not None:
                    return OffsetForLeaderEpochResponse(error, UNDEFINED_EPOCH_END)
                return None if leader is None else _reply(handle_offset_for_leader_epoch(broker, leader, request, NOW))
            case ListOffsetsRequest():
                if error is not None:
                    return ListOffsetsResponse(error)
                return None if leader is None else _reply(handle_list_offsets(broker, leader, request, NOW))
            case FetchRequest():
                if error is not None:
                    return FetchResponse(error)
                if leader is None:
                    return None
                rest = _rest_of_batch(leader.local.log, request.fetch.fetch_offset)
                return read_partition(broker, leader, request._replace(max_records=rest))

    def _run(self, step: Handled[RecordLog]) -> None:
        self.partition = step.state

    # ---- what can be seen

    def final_state(self) -> dict[str, Any]:
        local, fetcher = self.partition.local, self.partition.fetcher
        there = is_fetching(fetcher)
        epoch = None if fetcher.last_fetched_epoch == NO_EPOCH else fetcher.last_fetched_epoch
        status = {FetchStatus.TRUNCATING: "Truncating", FetchStatus.FETCHING: "Fetching"}.get(fetcher.status)
        return {
            "leo": local.log.end_offset,
            "hw": local.high_watermark,
            "log_start": local.log.start_offset,
            "log": batches_of(local.log),
            "fetch_state": status if there else None,
            "failed": fetcher.status == FetchStatus.FAILED,
            "fetch_offset": fetcher.fetch_offset if there else None,
            "current_leader_epoch": fetcher.leader_epoch if there else None,
            "last_fetched_epoch": epoch if self.truncates_on_fetch else Anything(),
            "ready_for_fetch": fetcher.status == FetchStatus.FETCHING and awake(fetcher, NOW).delayed_until <= NOW,
            "delayed": fetcher.delayed_until > NOW,
            "truncations": self.truncations,
            "truncation_count": len(self.truncations),
            "process_count": self.process_count,
        }


def _reply(step: Handled[RecordLog]) -> Any:
    return next(effect.message for effect in step.effects if isinstance(effect, Reply))


def _api(request: FollowerRequest) -> str:
    match request:
        case FetchRequest():
            return "fetch"
        case OffsetForLeaderEpochRequest():
            return "offset_for_leader_epoch"
        case ListOffsetsRequest(wanted=Wanted.LATEST):
            return "list_offsets_latest"
    return "list_offsets_earliest"


def _rest_of_batch(log: RecordLog, offset: Offset) -> int:
    """Kafka's mock leader answers a fetch with one batch."""
    records = log.read(offset, log.end_offset)
    return len([record for record in records if record.value == records[0].value])
