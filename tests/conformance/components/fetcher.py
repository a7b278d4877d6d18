"""`fetcher`: a follower and a leader, joined by a thread that works step by step. Kafka: `AbstractFetcherThread`."""

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from typing import Any

from kspec.spec.broker.effects import FollowerRequest
from kspec.spec.broker.follower import (
    fetch_or_truncate,
    handle_fetch_response,
    handle_list_offsets_response,
    handle_offset_for_leader_epoch_response,
    next_request,
    on_no_answer,
    truncate_by,
)
from kspec.spec.broker.leader.fetch import read_partition
from kspec.spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from kspec.spec.broker.partition import Broker, BrokerSettings, Handled, Partition
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.fetcher import (
    NOT_FETCHING,
    FetchState,
    FetchStatus,
    PendingFetch,
    Truncation,
    awake,
    is_fetching,
    started,
)
from kspec.spec.broker.rules.followers import Follower
from kspec.spec.broker.rules.truncation import truncation_step
from kspec.spec.log.algebra import Log, LogT
from kspec.spec.log.batch import Batches
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.messages.fetch import FetchRequest, FetchResponse
from kspec.spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse, OffsetSpec
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kspec.spec.releases.broker import BROKER_2_7, BROKER_3_9
from kspec.spec.step import Reply
from kspec.spec.values import (
    NO_EPOCH,
    UNDEFINED_EPOCH_END,
    BrokerId,
    Epoch,
    EpochEndOffset,
    Error,
    MonotonicMs,
    Offset,
    PartitionId,
)
from tests.conformance.components import Anything
from tests.conformance.components.batches import LIMIT, at_most, batch_of, batches_of
from tests.conformance.outcomes import UnsupportedError
from tests.conformance.vocabulary import bind, error_name, in_snake_case
from tests.limits.turns import Turns

FOLLOWER, LEADER = BrokerId(0), BrokerId(1)
NOW = MonotonicMs(1)
ThreadStep = Callable[[], None]

APIS = ("fetch", "offset_for_leader_epoch", "list_offsets_latest", "list_offsets_earliest")
STEPS = {
    "any": (),
    "fetch": ("fetch_records", "process_fetch_request"),
    "offset_for_leader_epoch": (
        "offsets_for_leader_epoch",
        "fetch_epoch_end_offsets",
        "truncate_to_epoch_end_offsets",
        "fetch_epochs",
        "fetch_epochs_from_leader",
        "epoch_request",
    ),
    "list_offsets_latest": ("fetch_latest_offset", "latest"),
    "list_offsets_earliest": ("fetch_earliest_offset", "earliest"),
    "truncate_to_high_watermark": ("truncate_to_hw", "truncation_to_high_watermark", "hw_truncation", "truncate"),
}
"""The steps of the thread during which something else may happen, and other names of them."""

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


def records_of(batches: Any, log_start: int | None = None) -> RecordLog:
    """A log of batches; a record's value is the offset of its batch, so that batches can be told apart."""
    placed = batches_of(batches, log_start or 0) if batches else []
    start = placed[0][0] if placed and log_start is None else log_start
    log = EMPTY_LOG.restart_at(Offset(start or 0))
    for base_offset, count, epoch in placed:
        gap = at_most(LIMIT, base_offset - log.end_offset)
        batch = batch_of(count, epoch)._replace(payload=base_offset)
        log = log.append_at(Offset(log.end_offset + gap), (batch,))
    return log


def batches_in(log: RecordLog) -> list[list[int]]:
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

    def follower(self, leader_epoch: int = 0, log: Any = None, hw: int = 0, log_start: int | None = None) -> None:
        local = LocalLog(records_of(log, log_start), Offset(hw))
        self.partition = self.partition._replace(local=local, leader_epoch=Epoch(leader_epoch))

    def leader(self, leader_epoch: int = 0, log: Any = None, hw: int = 0, log_start: int | None = None) -> None:
        epoch, records = Epoch(leader_epoch), records_of(log, log_start)
        opened = records.open_epoch(epoch) if epoch > records.latest_epoch else records
        self.leader_partition = Partition(
            PartitionId(0), LocalLog(opened, Offset(hw)), LEADER, epoch, followers=(Follower(FOLLOWER),)
        )

    def leader_epoch(self, epoch: int) -> None:
        if self.leader_partition is not None:
            self.leader_partition = self.leader_partition._replace(leader_epoch=Epoch(epoch))

    def leader_error(self, api: str, error: int | str, times: int = 10**6) -> None:
        name = error_name(error)
        if self._step_of(api) not in APIS or name not in Error.__members__:
            raise UnsupportedError(f"error {error} of {api}")
        self.leader_errors[self._step_of(api)] = [Error[name]] * min(times, 1000)

    def corrupt_next_fetch(self, times: int = 1) -> None:
        self.corrupt_fetches = times

    def capability(
        self,
        latest_epoch_available: bool = True,
        offset_for_leader_epoch_supported: bool = True,
        truncate_on_fetch: bool = True,
    ) -> None:
        """Switch off the same as Kafka's test.

        A follower that cannot ask about epochs is too old to truncate by a fetch's answer.
        """
        self.asks_for_epochs = offset_for_leader_epoch_supported
        if not (offset_for_leader_epoch_supported and truncate_on_fetch):
            self.mode(truncate_on_fetch=False)
        if not latest_epoch_available:
            old = OldFormatLog(*self.partition.local.log)
            self.partition = self.partition._replace(local=self.partition.local._replace(log=old))

    def during_offset_for_leader_epoch(
        self,
        replace_follower: dict[str, Any] | None = None,
        re_add: dict[str, Any] | None = None,
        remove_partition: bool = False,
    ) -> None:
        """Set the event before the answer about an epoch arrives. Such a thread asks even if its log has no epoch."""

        def meanwhile() -> None:
            if remove_partition:
                self.remove_partition()
            if replace_follower is not None:
                self.follower(**bind(self.follower, replace_follower))
            if re_add is not None:
                self.add_partition(**bind(self.add_partition, re_add))

        self.asks_without_epoch = True
        self.meanwhile.setdefault("offset_for_leader_epoch", []).append(meanwhile)

    def remove_partition_during(self, api: str = "any", replace_follower: dict[str, Any] | None = None) -> None:
        """The partition is removed before the answer to a request arrives, or just before a truncation without one."""

        def meanwhile() -> None:
            self.remove_partition()
            if replace_follower is not None:
                self.follower(**bind(self.follower, replace_follower))

        step = self._step_of(api)
        self.asks_without_epoch |= step == "offset_for_leader_epoch"
        self.meanwhile.setdefault(step, []).append(meanwhile)

    def remove_partition_during_truncate_to_high_watermark(self) -> None:
        self.remove_partition_during("truncate_to_high_watermark")

    def remove_partition_during_offset_for_leader_epoch(self, replace_follower: dict[str, Any] | None = None) -> None:
        self.remove_partition_during("offset_for_leader_epoch", replace_follower)

    def _step_of(self, name: str) -> str:
        """The name here of a step of the thread; a request's or a method's name of Kafka is known as well."""
        plain = in_snake_case(name)
        for step, names in STEPS.items():
            if plain == step or plain in names:
                return step
        raise UnsupportedError(f"step {name}")

    def _passes(self, *steps: str) -> None:
        """Let the event that is set for one of these steps of the thread happen, once."""
        for step in (*steps, "any"):
            for happens in self.meanwhile.pop(step, []):
                happens()

    # ---- the partition in the fetcher

    def add_partition(self, init_offset: int = 0, leader_epoch: int = 0, force_truncation: bool = False) -> None:
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
        for _ in range(at_most(LIMIT, times)):
            if self.partition.fetcher.status == FetchStatus.TRUNCATING:
                self._truncate()
            self.partition = self.partition._replace(fetcher=awake(self.partition.fetcher, NOW))
            if self.partition.fetcher.status == FetchStatus.FETCHING:
                self._exchange()
            turns = Turns()
            while self.partition.fetcher.status in (FetchStatus.FINDING_END, FetchStatus.FINDING_START):
                turns.go()
                self._exchange()

    def do_work_by_mode(self, truncate_on_fetch: int, otherwise: int) -> None:
        self.do_work(truncate_on_fetch if self.truncates_on_fetch else otherwise)

    def do_work_until_logs_equal(self, max_iterations: int = 20) -> None:
        leader = self.leader_partition
        for _ in range(at_most(LIMIT, max_iterations)):
            self.do_work()
            if leader is not None and batches_in(self.partition.local.log) == batches_in(leader.local.log):
                return

    def _truncate(self) -> None:
        """Ask, or truncate without asking. Kafka's test can make a thread ask about an undefined epoch."""
        fetcher = self.partition.fetcher
        if not self.asks_for_epochs or (
            not self.asks_without_epoch and self.protocol.needs_no_answer(fetcher, self.partition.local.log)
        ):
            self._passes("truncate_to_high_watermark")
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
        self._passes(api, *(("offset_for_leader_epoch",) if _names_an_epoch(request) else ()))
        broker, partition = self.broker, self.partition
        match answer:
            case FetchResponse() if self.corrupt_fetches > 0:
                self.corrupt_fetches -= 1
                self._run(on_no_answer(broker, partition, NOW))
            case FetchResponse():
                self._run(handle_fetch_response(broker, partition, PendingFetch(asked_in, asked_at), answer, NOW))
            case OffsetForLeaderEpochResponse():
                self._run(handle_offset_for_leader_epoch_response(broker, partition, PendingFetch(asked_in), answer, NOW))
            case ListOffsetsResponse():
                self._run(handle_list_offsets_response(broker, partition, PendingFetch(asked_in), answer, NOW))

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
            "log": batches_in(local.log),
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
        case ListOffsetsRequest(wanted=OffsetSpec.LATEST):
            return "list_offsets_latest"
    return "list_offsets_earliest"


def _names_an_epoch(request: FollowerRequest) -> bool:
    """A fetch with the epoch of the follower's last record: Kafka's mock leader then looks up where that ends."""
    return isinstance(request, FetchRequest) and request.fetch.last_fetched_epoch != NO_EPOCH


def _rest_of_batch(log: RecordLog, offset: Offset) -> int:
    """Kafka's mock leader answers a fetch with one batch."""
    records = log.read(offset, log.end_offset)
    return len([record for record in records if record.value == records[0].value])
