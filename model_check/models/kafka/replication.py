"""What brokers do among themselves: produce, fetch, and ask where an epoch or a log ends.

A request and its handling are one step, and so is the answer, or it is lost. That covers a request that arrives late, as
long as its sender has not changed meanwhile: the step is then taken when it arrives. What a sender leaves behind when it
changes is in `model_check.models.kafka.late`.
"""

from collections.abc import Callable
from functools import partial

from model_check.model import REFUSED, Message, View, then, when
from model_check.models.kafka.board import Board
from model_check.models.kafka.party import (
    LATE,
    Log,
    Rules,
    broker,
    exchange_after,
    followed,
    following,
    leading,
    memory_of,
    reply,
    role_of,
    seen,
    sent,
)
from model_check.models.kafka.values import Clients, Exchange, Memory, Process, Role
from spec.fetcher import FetchState
from spec.follower import (
    fetch_or_truncate,
    handle_epoch_end_response,
    handle_fetch_answer,
    handle_listed_offset,
)
from spec.leader import ProduceRequest, handle_epoch_end, handle_fetch, handle_list_offsets, handle_produce
from spec.leader_fetch import FetchAnswer, PartitionFetch
from spec.list_offsets import ListedOffset
from spec.log import RecordLog
from spec.metadata import BrokerRegistration
from spec.partition import EpochEndRequest, FollowerRequest, Handled, Partition
from spec.produce import ACKS_ALL, ACKS_LEADER
from spec.step import Send
from spec.values import BrokerId, EpochEndOffsetResponse

Known = frozenset[BrokerRegistration]
NOBODY_KNOWN: Known = frozenset()

Led = tuple[Log, Role, Memory, Exchange, Clients]


def add_replication(board: Board) -> None:
    """Add producing, fetching and truncating."""
    requests = {follower: _request_view(board, follower) for follower in board.brokers}
    for leader in board.brokers:
        _add_produce(board, leader)
    for follower, leader in board.pairs():
        _add_fetch(board, follower, leader, requests[follower])
        _add_question(board, follower, leader, requests[follower])


# ---- producing


def _add_produce(board: Board, leader: BrokerId) -> None:
    slots, most = board.slots, board.parameters["values"]
    acks = ACKS_LEADER if board.parameters["acks"] == "1" else ACKS_ALL
    led = (slots.log[leader], slots.role[leader], slots.memory[leader])
    written = (*led, slots.exchange[leader], slots.clients, slots.produced)

    def produce(
        log: Log,
        role: Role,
        memory: Memory,
        exchange: Exchange,
        known: Clients,
        process: Process,
        produced: int,
    ) -> object:
        request = ProduceRequest(produced + 1, acks, (produced + 1,))
        own = broker(board.rules[leader], leader, process, NOBODY_KNOWN)
        before = leading(log, role, memory)
        step = handle_produce(own, before, request, LATE)
        if step.state.local.log == log.log:
            return REFUSED
        return (*led_after(board.rules[leader], leader, step, exchange, known), produced + 1)

    board.model.action(
        "Produce",
        {"leader": leader},
        events=[Message("producer", leader, "Produce")],
        guards=[
            when(lambda produced: produced < most, slots.produced),
            when(lambda role: role.leader == leader, slots.role[leader]),
            when(lambda process: process.up, slots.process[leader]),
        ],
        effects=[then(written, produce, *led, slots.exchange[leader], slots.clients, slots.process[leader], slots.produced)],
    )


def led_after(
    rules: Rules,
    replica: BrokerId,
    step: Handled[RecordLog],
    exchange: Exchange,
    known: Clients,
) -> Led:
    """A leader's slots, what it has asked of the controller, and what producers know, after a step."""
    after = step.state
    return (
        after.local,
        role_of(after, replica),
        memory_of(rules, after),
        exchange_after(exchange, after, step.effects),
        seen(after, after.leader == replica, step.effects, known),
    )


# ---- fetching


def next_request(
    rules: Rules, follower: BrokerId, log: Log, fetcher: FetchState, process: Process
) -> Send[FollowerRequest] | None:
    """What a follower asks next, and whom; `None` if nobody."""
    if not process.up:
        return None
    return sent(fetch_or_truncate(broker(rules, follower, process, NOBODY_KNOWN), following(log, fetcher), LATE))


def _request_view(board: Board, follower: BrokerId) -> View:
    slots = board.slots
    return board.model.view(
        "next request",
        partial(next_request, board.rules[follower], follower),
        slots.log[follower],
        slots.fetcher[follower],
        slots.process[follower],
        key=follower,
    )


def _fetches_from(leader: BrokerId) -> Callable[[Send[FollowerRequest] | None], bool]:
    return lambda request: request is not None and request.to == leader and isinstance(request.message, PartitionFetch)


def _asks(leader: BrokerId) -> Callable[[Send[FollowerRequest] | None], bool]:
    return lambda request: request is not None and request.to == leader and not isinstance(request.message, PartitionFetch)


def _add_fetch(board: Board, follower: BrokerId, leader: BrokerId, request: View) -> None:
    slots, views = board.slots, board.views
    led = (slots.log[leader], slots.role[leader], slots.memory[leader])
    written = (*led, slots.exchange[leader], slots.clients)
    fetching = (slots.log[follower], slots.fetcher[follower])
    guards = [
        when(_fetches_from(leader), request),
        when(lambda process: process.up, slots.process[leader]),
    ]

    def serve(
        log: Log,
        role: Role,
        memory: Memory,
        exchange: Exchange,
        known: Clients,
        process: Process,
        brokers: Known,
        asked: Send[PartitionFetch] | None,
    ) -> object:
        if asked is None or not isinstance(asked.message, PartitionFetch):
            return REFUSED
        before = leading(log, role, memory)
        step = handle_fetch(broker(board.rules[leader], leader, process, brokers), before, asked.message, LATE)
        return led_after(board.rules[leader], leader, step, exchange, known)

    def take(
        log: Log,
        fetcher: FetchState,
        process: Process,
        asked: Send[PartitionFetch] | None,
        seen: Partition[RecordLog],
        leader_process: Process,
        brokers: Known,
    ) -> object:
        if asked is None or not isinstance(asked.message, PartitionFetch):
            return REFUSED
        answer = reply(handle_fetch(broker(board.rules[leader], leader, leader_process, brokers), seen, asked.message, LATE))
        assert isinstance(answer, FetchAnswer)
        own = broker(board.rules[follower], follower, process, NOBODY_KNOWN)
        before = following(log, fetcher)
        step = handle_fetch_answer(own, before, fetcher.leader_epoch, fetcher.fetch_offset, answer, LATE)
        return followed(board.rules[follower], own, step.state)

    served = then(
        written,
        serve,
        *led,
        slots.exchange[leader],
        slots.clients,
        slots.process[leader],
        views.known[leader],
        request,
    )
    taken = then(
        fetching,
        take,
        *fetching,
        slots.process[follower],
        request,
        views.face[leader],
        slots.process[leader],
        views.known[leader],
    )
    fetched = [Message(follower, leader, "Fetch"), Message(leader, follower, "records, and the high watermark")]
    board.model.action(
        "Fetch", {"follower": follower, "leader": leader}, events=fetched, guards=guards, effects=[served, taken]
    )
    board.model.action(
        "FetchUnanswered",
        {"follower": follower, "leader": leader},
        events=[fetched[0], Message(leader, follower, "(the answer is lost)")],
        guards=guards,
        effects=[served],
    )


# ---- asking where logs part


def _add_question(board: Board, follower: BrokerId, leader: BrokerId, request: View) -> None:
    """OffsetForLeaderEpoch, and ListOffsets. Leaders only read; a lost answer changes nothing, so none is lost here."""
    slots, views = board.slots, board.views
    fetching = (slots.log[follower], slots.fetcher[follower])

    def ask(
        log: Log,
        fetcher: FetchState,
        process: Process,
        asked: Send[FollowerRequest] | None,
        seen: Partition[RecordLog],
        leader_process: Process,
    ) -> object:
        if asked is None or isinstance(asked.message, PartitionFetch):
            return REFUSED
        leader_itself = broker(board.rules[leader], leader, leader_process, NOBODY_KNOWN)
        own, before = broker(board.rules[follower], follower, process, NOBODY_KNOWN), following(log, fetcher)
        epoch = fetcher.leader_epoch
        if isinstance(asked.message, EpochEndRequest):
            end = reply(handle_epoch_end(leader_itself, seen, asked.message))
            assert isinstance(end, EpochEndOffsetResponse)
            step = handle_epoch_end_response(own, before, epoch, end, LATE)
        else:
            listed = reply(handle_list_offsets(leader_itself, seen, asked.message))
            assert isinstance(listed, ListedOffset)
            step = handle_listed_offset(own, before, epoch, listed, LATE)
        return followed(board.rules[follower], own, step.state)

    board.model.action(
        "AskLeader",
        {"follower": follower, "leader": leader},
        events=[Message(follower, leader, "where does it end?"), Message(leader, follower, "an epoch and an offset")],
        guards=[when(_asks(leader), request), when(lambda process: process.up, slots.process[leader])],
        effects=[
            then(fetching, ask, *fetching, slots.process[follower], request, views.face[leader], slots.process[leader])
        ],
    )
