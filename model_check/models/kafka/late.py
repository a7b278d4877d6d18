"""Late fetches: their sender or their leader changes while the request or the answer is under way.

A follower has one thread for each leader, which waits for the answer to its last request. It goes on waiting while its
broker follows another leader, because the thread also fetches other partitions. So an answer may come when the broker
follows the same leader again, in another epoch. If the connection is lost or the sender's process ends, no thread waits, but
the leader still handles a request that it has received, even after requests of the next connection. A received request is
lost when the receiver's process ends; a sent answer is not.
"""

from kspec.model_check.core.model import REFUSED, Arrow, Effect, Local, Note, View, then, when
from kspec.model_check.models.carriers import ModelLog
from kspec.model_check.models.kafka.board import Board, Known
from kspec.model_check.models.kafka.party import Log, is_asking, leading
from kspec.model_check.models.kafka.replication import (
    Led,
    fetch_answer,
    fetches_from,
    led_after,
    serve_fetch,
    take_fetch_answer,
)
from kspec.model_check.models.kafka.values import (
    NOTHING_LATE,
    AlterPartitionExchange,
    ClientKnowledge,
    LateFetch,
    Memory,
    Process,
    RequestState,
)
from kspec.model_check.models.parts import Role
from kspec.spec.broker.effects import FollowerRequest
from kspec.spec.broker.partition import Partition
from kspec.spec.broker.rules.fetcher import FetchState
from kspec.spec.broker.rules.reading import leaving_now
from kspec.spec.messages.fetch import FetchRequest, FetchResponse
from kspec.spec.step import Send
from kspec.spec.values import BrokerId


def add_late_fetches(board: Board) -> None:
    """Add late fetches, as many as the bounds allow; at most one of each follower at a time."""
    if not board.slots.late:
        return
    for follower in board.brokers:
        _add_lost_connection(board, follower)
    for follower, leader in board.pairs():
        _add_request(board, follower, leader, board.views.request[follower])
        _add_handling(board, follower, leader)
        _add_answer(board, follower, leader)
        _add_answer_read_late(board, follower, leader)


def gone_with(board: Board, replica: BrokerId) -> list[Effect]:
    """The effects of the end of a process on fetches under way: on its own, and on those that it has received."""
    effects = []
    for follower, late in board.slots.late.items():
        end = _sender_gone if follower == replica else lambda fetch: _receiver_gone(fetch, replica)
        effects.append(then(late, end, late))
    return effects


def _sender_gone(fetch: LateFetch) -> LateFetch:
    return fetch._replace(awaited=False) if fetch.state == RequestState.SENT else NOTHING_LATE


def _receiver_gone(fetch: LateFetch, receiver: BrokerId) -> LateFetch:
    return NOTHING_LATE if fetch.state == RequestState.SENT and fetch.leader == receiver else fetch


def _add_request(board: Board, follower: BrokerId, leader: BrokerId, request: View) -> None:
    slots = board.slots
    late = slots.late[follower]

    def send(fetch: LateFetch, fetcher: FetchState, asked: Send[FollowerRequest] | None) -> object:
        if fetch.state != RequestState.NOTHING or asked is None or not isinstance(asked.message, FetchRequest):
            return REFUSED
        return LateFetch(RequestState.SENT, leader, fetcher.leader_epoch, asked.message, awaited=True)

    board.model.action(
        "SendFetch",
        {"follower": follower, "leader": leader},
        events=[Note(follower, f"sends a fetch to {leader} that takes long")],
        guards=[
            when(fetches_from(leader), request),
            board.answering(leader),
        ],
        effects=[then(late, send, late, slots.fetcher[follower], request), board.spend("late_fetches")],
    )


def _add_lost_connection(board: Board, follower: BrokerId) -> None:
    late = board.slots.late[follower]
    board.model.action(
        "LoseConnection",
        {"follower": follower},
        events=[Note(follower, "loses the connection on which it has sent a fetch")],
        guards=[when(lambda fetch: fetch.state == RequestState.SENT and fetch.awaited, late)],
        effects=[then(late, lambda fetch: fetch._replace(awaited=False), late)],
    )


def _add_handling(board: Board, follower: BrokerId, leader: BrokerId) -> None:
    slots, views = board.slots, board.views
    late = slots.late[follower]
    led = (slots.log[leader], slots.role[leader], slots.memory[leader], slots.exchange[leader], slots.clients)

    def serve(
        log: Log,
        role: Role,
        memory: Memory,
        exchange: AlterPartitionExchange,
        known: ClientKnowledge,
        process: Process,
        brokers: Known,
        fetch: LateFetch,
    ) -> Led:
        before = leading(log, role, memory, asking=is_asking(exchange, process))
        step = serve_fetch(board, leader, before, process, brokers, fetch.request)
        return led_after(board.rules[leader], leader, step, exchange, known)

    def answer_to(fetch: LateFetch, seen: Partition[ModelLog], process: Process, brokers: Known) -> FetchResponse:
        return fetch_answer(board, leader, seen, process, brokers, fetch.request)

    def answer(fetch: LateFetch, seen: Partition[ModelLog], process: Process, brokers: Known) -> LateFetch:
        if not fetch.awaited:
            return NOTHING_LATE
        return fetch._replace(state=RequestState.ANSWERED, answer=answer_to(fetch, seen, process, brokers))

    serving = (slots.process[leader], views.known[leader])
    answer_reads = (late, views.seen_by_fetchers[leader], *serving)
    board.model.action(
        "HandleLateFetch",
        {"follower": follower, "leader": leader},
        events=[Arrow(follower, leader, "Fetch, sent long ago")],
        guards=[
            when(lambda fetch: fetch.state == RequestState.SENT and fetch.leader == leader, late),
            board.answering(leader),
            *board.not_writing(leader),
        ],
        effects=[then(led, serve, *led, *serving, late), then(late, answer, *answer_reads)],
        answer=Local(lambda *asked: answer_to(*asked).error, answer_reads),
    )


def _add_answer(board: Board, follower: BrokerId, leader: BrokerId) -> None:
    """The answer arrives unchanged."""
    slots = board.slots
    late = slots.late[follower]
    fetching = (slots.log[follower], slots.fetcher[follower])

    def take(log: Log, fetcher: FetchState, process: Process, fetch: LateFetch) -> object:
        offset = fetch.request.fetch.fetch_offset
        return take_fetch_answer(board, follower, log, fetcher, process, fetch.asked_in, offset, fetch.answer)

    board.model.action(
        "TakeLateAnswer",
        {"follower": follower, "leader": leader},
        events=[Arrow(leader, follower, "the answer to a fetch, given long ago")],
        guards=[
            when(lambda fetch: fetch.state == RequestState.ANSWERED and fetch.leader == leader, late),
            when(lambda fetcher: fetcher.leader == leader, slots.fetcher[follower]),
        ],
        effects=[
            then(fetching, take, *fetching, slots.process[follower], late),
            then(late, lambda: NOTHING_LATE),
        ],
    )


def _add_answer_read_late(board: Board, follower: BrokerId, leader: BrokerId) -> None:
    """The answer arrives with the records of the leader's log when it is sent; only if the log has changed since."""
    slots = board.slots
    late = slots.late[follower]
    fetching = (slots.log[follower], slots.fetcher[follower])

    def take(log: Log, fetcher: FetchState, process: Process, fetch: LateFetch, source: Log) -> object:
        answer = leaving_now(fetch.answer, source.log)
        if answer is None or answer == fetch.answer:
            return REFUSED
        offset = fetch.request.fetch.fetch_offset
        return take_fetch_answer(board, follower, log, fetcher, process, fetch.asked_in, offset, answer)

    board.model.action(
        "TakeAnswerReadLate",
        {"follower": follower, "leader": leader},
        events=[
            Note(leader, "its log has changed since it has answered a fetch"),
            Arrow(leader, follower, "the answer, with what the log now holds there"),
        ],
        guards=[
            when(lambda fetch: fetch.state == RequestState.ANSWERED and fetch.leader == leader, late),
            when(lambda fetcher: fetcher.leader == leader, slots.fetcher[follower]),
            when(lambda process: process.up, slots.process[leader]),
        ],
        effects=[
            then(fetching, take, *fetching, slots.process[follower], late, slots.log[leader]),
            then(late, lambda: NOTHING_LATE),
        ],
    )
