"""Replication between brokers: produce, fetch, and ask where an epoch or a log ends.

A request, its handling and its answer are one step, or the answer is lost. This covers a late request if its sender has not
changed in between: the step is then taken when the request arrives. Fetches that take longer than that are in
`model_check.models.kafka.late`.
"""

from collections.abc import Callable

from kspec.model_check.core.model import REFUSED, Arrow, Local, Note, View, then, when
from kspec.model_check.models.carriers import ModelLog
from kspec.model_check.models.kafka.board import NOBODY_KNOWN, Board, Known
from kspec.model_check.models.kafka.party import (
    Log,
    PartyRules,
    PartyState,
    batch_of,
    broker,
    exchange_after,
    followed,
    is_asking,
    leading,
    memory_of,
    producers_of,
    reply,
    role_of,
    seen,
)
from kspec.model_check.models.kafka.reductions import Reduction
from kspec.model_check.models.kafka.values import AlterPartitionExchange, ClientKnowledge, Memory, Process
from kspec.model_check.models.parts import LATE, Role, following
from kspec.spec.broker.effects import FollowerRequest
from kspec.spec.broker.follower import (
    fetch_or_truncate,
    handle_fetch_response,
    handle_list_offsets_response,
    handle_offset_for_leader_epoch_response,
)
from kspec.spec.broker.leader.fetch import handle_fetch
from kspec.spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.partition import Broker, Handled, Partition, with_producers
from kspec.spec.broker.rules.fetcher import FetchState, PendingFetch
from kspec.spec.log.batch import Batch
from kspec.spec.messages.fetch import FetchRequest, FetchResponse
from kspec.spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kspec.spec.messages.produce import ACKS_ALL, ACKS_LEADER, ProduceRequest
from kspec.spec.step import Send
from kspec.spec.values import NO_EPOCH, BrokerId, Epoch, Offset

Led = tuple[Log, Role, Memory, AlterPartitionExchange, ClientKnowledge]


def add_replication(board: Board) -> None:
    """Add producing, fetching and truncating."""
    for leader in board.brokers:
        _add_produce(board, leader)
    for follower in () if board.reduces(Reduction.LONE_TRUNCATION) else board.brokers:
        _add_lone_truncation(board, follower)
    for follower, leader in board.pairs():
        request = board.views.request[follower]
        _add_fetch(board, follower, leader, request)
        _add_question(board, follower, leader, request)


# ---- producing


def _add_produce(board: Board, leader: BrokerId) -> None:
    slots, most = board.slots, board.parameters["values"]
    led = (slots.log[leader], slots.role[leader], slots.memory[leader])
    written = (*led, slots.exchange[leader], slots.clients)
    reads = (*written, slots.process[leader])
    leads = [
        when(lambda role: role.leader == leader, slots.role[leader]),
        board.answering(leader),
        *board.not_writing(leader),
    ]

    def produce(
        log: Log,
        role: Role,
        memory: Memory,
        exchange: AlterPartitionExchange,
        known: ClientKnowledge,
        process: Process,
        produced: int,
    ) -> object:
        step = _produced(board, leader, leading(log, role, memory), process, produced + 1)
        if step.state.local.log == log.log:
            return REFUSED
        return (*led_after(board.rules[leader], leader, step, exchange, known), produced + 1)

    board.model.action(
        "Produce",
        {"leader": leader},
        events=[Arrow("producer", leader, "Produce")],
        guards=[when(lambda produced: produced < most, slots.produced), *leads],
        effects=[then((*written, slots.produced), produce, *reads, slots.produced)],
    )
    if not board.parameters["retries"]:
        return

    def again(value: int) -> Callable[[Log, Role, Memory, AlterPartitionExchange, ClientKnowledge, Process], object]:
        def retry(
            log: Log, role: Role, memory: Memory, exchange: AlterPartitionExchange, known: ClientKnowledge, process: Process
        ) -> object:
            step = _produced(board, leader, leading(log, role, memory), process, value)
            after = led_after(board.rules[leader], leader, step, exchange, known)
            return REFUSED if after == (log, role, memory, exchange, known) else after

        return retry

    for value in range(1, most + 1):
        board.model.action(
            "ProduceAgain",
            {"leader": leader, "value": value},
            events=[Arrow("producer", leader, "Produce, as sent before")],
            guards=[when(lambda produced, value=value: value <= produced, slots.produced), *leads],
            effects=[then(written, again(value), *reads), board.spend("retries")],
        )


def _produced(
    board: Board, leader: BrokerId, before: Partition[ModelLog], process: Process, value: int
) -> Handled[ModelLog]:
    """A leader's handling of the producer's request for this value; the producer is idempotent if it may retry."""
    acks = ACKS_LEADER if board.parameters["acks"] == "1" else ACKS_ALL
    batch = Batch(1, payload=value)
    if board.parameters["retries"]:
        sent = batch_of(value, before.local.log.end_offset)
        producer = (sent.producer_id, sent.producer_epoch, sent.first_sequence)
        batch = Batch(1, NO_EPOCH, value, *producer)
        before = with_producers(before, producers_of(before.local))
    request = ProduceRequest(value, acks, batch)
    return handle_produce(broker(board.rules[leader], leader, process, NOBODY_KNOWN), before, request, LATE)


def led_after(
    rules: PartyRules,
    replica: BrokerId,
    step: Handled[ModelLog],
    exchange: AlterPartitionExchange,
    known: ClientKnowledge,
) -> Led:
    """A leader's slots, its request to the controller, and the knowledge of producers, after a step."""
    after = step.state
    return (
        after.local,
        role_of(rules, after, replica),
        memory_of(rules, after),
        exchange_after(rules, exchange, after, step.effects),
        seen(after, after.leader == replica, step.effects, known),
    )


def held_after(rules: PartyRules, own: Broker, step: Handled[ModelLog], before: PartyState) -> PartyState:
    """A broker's whole state of the partition, after a step in which its role may have changed."""
    _, role, memory, exchange, clients = led_after(rules, own.self_id, step, before.exchange, before.clients)
    log, fetcher = followed(rules, own, step.state)
    return PartyState(log, role, memory, exchange, clients, fetcher)


# ---- fetching


def fetches_from(leader: BrokerId) -> Callable[[Send[FollowerRequest] | None], bool]:
    """The guard that a follower's next request is a fetch from this leader."""
    return lambda request: request is not None and request.to == leader and isinstance(request.message, FetchRequest)


def _asks(leader: BrokerId) -> Callable[[Send[FollowerRequest] | None], bool]:
    return lambda request: request is not None and request.to == leader and not isinstance(request.message, FetchRequest)


def serve_fetch(
    board: Board,
    leader: BrokerId,
    before: Partition[ModelLog],
    process: Process,
    brokers: Known,
    request: FetchRequest,
) -> Handled[ModelLog]:
    """A leader's handling of a fetch."""
    return handle_fetch(broker(board.rules[leader], leader, process, brokers), before, request, LATE)


def fetch_answer(
    board: Board, leader: BrokerId, seen: Partition[ModelLog], process: Process, brokers: Known, request: FetchRequest
) -> FetchResponse:
    """A leader's answer to a fetch, from the part of its state that fetchers see."""
    answer = reply(serve_fetch(board, leader, seen, process, brokers, request))
    assert isinstance(answer, FetchResponse)
    return answer


def take_fetch_answer(
    board: Board,
    follower: BrokerId,
    log: Log,
    fetcher: FetchState,
    process: Process,
    asked_in: Epoch,
    asked_at: Offset,
    answer: FetchResponse,
) -> tuple[Log, FetchState]:
    """A follower's handling of the answer to a fetch."""
    own = broker(board.rules[follower], follower, process, NOBODY_KNOWN)
    step = handle_fetch_response(own, following(log, fetcher), PendingFetch(asked_in, asked_at), answer, LATE)
    return followed(board.rules[follower], own, step.state)


def free_to_ask(board: Board, follower: BrokerId, leader: BrokerId) -> list[Local]:
    """The guard of every request of a follower: its thread for this leader does not wait for an answer already."""
    if not board.slots.late:
        return []
    return [when(lambda late: not (late.awaited and late.leader == leader), board.slots.late[follower])]


def _add_fetch(board: Board, follower: BrokerId, leader: BrokerId, request: View) -> None:
    slots, views = board.slots, board.views
    led = (slots.log[leader], slots.role[leader], slots.memory[leader])
    written = (*led, slots.exchange[leader], slots.clients)
    fetching = (slots.log[follower], slots.fetcher[follower])
    guards = [
        when(fetches_from(leader), request),
        board.answering(leader),
        *board.not_writing(leader),
        *free_to_ask(board, follower, leader),
    ]

    def serve(
        log: Log,
        role: Role,
        memory: Memory,
        exchange: AlterPartitionExchange,
        known: ClientKnowledge,
        process: Process,
        brokers: Known,
        asked: Send[FetchRequest] | None,
    ) -> object:
        if asked is None or not isinstance(asked.message, FetchRequest):
            return REFUSED
        before = leading(log, role, memory, asking=is_asking(exchange, process))
        step = serve_fetch(board, leader, before, process, brokers, asked.message)
        return led_after(board.rules[leader], leader, step, exchange, known)

    def answer_to(
        asked: Send[FetchRequest], seen: Partition[ModelLog], leader_process: Process, brokers: Known
    ) -> FetchResponse:
        return fetch_answer(board, leader, seen, leader_process, brokers, asked.message)

    def take(
        log: Log,
        fetcher: FetchState,
        process: Process,
        asked: Send[FetchRequest] | None,
        seen: Partition[ModelLog],
        leader_process: Process,
        brokers: Known,
    ) -> object:
        if asked is None or not isinstance(asked.message, FetchRequest):
            return REFUSED
        answer = answer_to(asked, seen, leader_process, brokers)
        epoch, offset = fetcher.leader_epoch, fetcher.fetch_offset
        return take_fetch_answer(board, follower, log, fetcher, process, epoch, offset, answer)

    served = then(written, serve, *written, slots.process[leader], views.known[leader], request)
    answer_reads = (request, views.seen_by_fetchers[leader], slots.process[leader], views.known[leader])
    taken = then(fetching, take, *fetching, slots.process[follower], *answer_reads)
    answered = Local(lambda *asked: answer_to(*asked).error, answer_reads)
    fetched = [Arrow(follower, leader, "Fetch"), Arrow(leader, follower, "records, and the high watermark")]
    board.model.action(
        "Fetch",
        {"follower": follower, "leader": leader},
        events=fetched,
        guards=guards,
        effects=[served, taken],
        answer=answered,
    )
    board.model.action(
        "FetchUnanswered",
        {"follower": follower, "leader": leader},
        events=[fetched[0], Arrow(leader, follower, "(the answer is lost)")],
        guards=guards,
        effects=[served],
        answer=answered,
    )


# ---- truncating, and asking where logs diverge


def _add_lone_truncation(board: Board, follower: BrokerId) -> None:
    """A log without any epoch is truncated without asking: a step of its own only where the reduction is off."""
    fetching = (board.slots.log[follower], board.slots.fetcher[follower])

    def truncate(log: Log, fetcher: FetchState, process: Process) -> object:
        own = broker(board.rules[follower], follower, process, NOBODY_KNOWN)
        if not process.up or not own.protocol.needs_no_answer(fetcher, log.log):
            return REFUSED
        step = fetch_or_truncate(own, following(log, fetcher), LATE)
        return followed(board.rules[follower], own, step.state)

    board.model.action(
        "TruncateWithoutAsking",
        {"follower": follower},
        events=[Note(follower, "truncates its log, which has no epoch to ask about")],
        guards=[],
        effects=[then(fetching, truncate, *fetching, board.slots.process[follower])],
    )


def _add_question(board: Board, follower: BrokerId, leader: BrokerId, request: View) -> None:
    """OffsetForLeaderEpoch, and ListOffsets. A leader only reads its state. A lost answer would change nothing, so none is
    lost here.
    """
    slots, views = board.slots, board.views
    fetching = (slots.log[follower], slots.fetcher[follower])

    def answer_to(
        asked: Send[FollowerRequest], seen: Partition[ModelLog], leader_process: Process
    ) -> OffsetForLeaderEpochResponse | ListOffsetsResponse:
        leader_itself = broker(board.rules[leader], leader, leader_process, NOBODY_KNOWN)
        if isinstance(asked.message, OffsetForLeaderEpochRequest):
            answer = reply(handle_offset_for_leader_epoch(leader_itself, seen, asked.message, LATE))
        else:
            assert isinstance(asked.message, ListOffsetsRequest)
            answer = reply(handle_list_offsets(leader_itself, seen, asked.message, LATE))
        assert isinstance(answer, OffsetForLeaderEpochResponse | ListOffsetsResponse)
        return answer

    def ask(
        log: Log,
        fetcher: FetchState,
        process: Process,
        asked: Send[FollowerRequest] | None,
        seen: Partition[ModelLog],
        leader_process: Process,
    ) -> object:
        if asked is None or isinstance(asked.message, FetchRequest):
            return REFUSED
        own, before = broker(board.rules[follower], follower, process, NOBODY_KNOWN), following(log, fetcher)
        epoch, answer = fetcher.leader_epoch, answer_to(asked, seen, leader_process)
        if isinstance(answer, OffsetForLeaderEpochResponse):
            step = handle_offset_for_leader_epoch_response(own, before, PendingFetch(epoch), answer, LATE)
        else:
            step = handle_list_offsets_response(own, before, PendingFetch(epoch), answer, LATE)
        return followed(board.rules[follower], own, step.state)

    answer_reads = (request, views.seen_by_fetchers[leader], slots.process[leader])
    board.model.action(
        "AskLeader",
        {"follower": follower, "leader": leader},
        events=[Arrow(follower, leader, "where does it end?"), Arrow(leader, follower, "an epoch and an offset")],
        guards=[
            when(_asks(leader), request),
            board.answering(leader),
            *board.not_writing(leader),
            *free_to_ask(board, follower, leader),
        ],
        effects=[then(fetching, ask, *fetching, slots.process[follower], *answer_reads)],
        answer=Local(lambda *asked: answer_to(*asked).error, answer_reads),
    )
