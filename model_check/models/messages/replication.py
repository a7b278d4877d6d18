"""What brokers do: replay decisions, append, fetch, answer fetches, take answers, and change the ISR."""

from typing import Any

from model_check.model import CONTROLLER, PRODUCER, REFUSED, Local, Message, Note, then, when
from model_check.models.messages.board import RUN, Board, Log
from model_check.models.messages.values import (
    NO_MESSAGE,
    NOT_PROPOSED,
    PARTITION,
    Decision,
    Fetch,
    FetchReply,
    LastFetch,
    MessageId,
    Proposed,
    Settled,
    Term,
    Verdict,
)
from spec.controller_messages import AlterPartitionRequest, AlterPartitionResponse, IsrMember
from spec.fetcher import FetchState
from spec.follower import fetch_or_truncate, handle_fetch_answer
from spec.leader import ProduceRequest, consider_shrinking, handle_alter_partition_response, handle_fetch, handle_produce
from spec.leader_fetch import FetchAnswer, PartitionFetch
from spec.metadata import LocalChange, local_change
from spec.partition import Handled, Partition
from spec.produce import ACKS_LEADER
from spec.roles import apply_change
from spec.step import Reply, Send, SendToController
from spec.values import BrokerId, Epoch, FetchRequest, Offset, PartitionEpoch


def add_replication(board: Board) -> None:
    """Add all that brokers do."""
    numbers = board.numbers
    for broker in board.brokers:
        for version in numbers.versions:
            for epoch in numbers.epochs:
                _add_following(board, broker, version, epoch)
                _add_leading(board, broker, version, epoch)
        for epoch in numbers.epochs:
            _add_write(board, broker, epoch)
        for proposal in numbers.proposals:
            _add_shrink(board, broker, proposal)
            for epoch in numbers.epochs:
                _add_verdict(board, broker, proposal, epoch)
    for follower, leader in board.pairs():
        _add_lost_connection(board, follower, leader)
        for fetch in numbers.fetches:
            for epoch in numbers.epochs:
                _add_fetch(board, follower, leader, fetch, epoch)
                for proposal in numbers.proposals:
                    _add_handling(board, follower, leader, fetch, epoch, proposal)
            _add_answer(board, follower, leader, fetch)


def _committed(
    epoch: Epoch, term: Term, settled: Settled, before: Partition[Log], after: Partition[Log]
) -> tuple[Term, Settled]:
    """What the leader of an epoch has committed in it, and who has committed furthest, after a step of its."""
    high_watermark = after.local.high_watermark
    if high_watermark <= before.local.high_watermark:
        return term, settled
    settled = Settled(epoch, high_watermark) if high_watermark > settled.end else settled
    return term._replace(committed=high_watermark), settled


# ---- metadata


def _change(board: Board, broker: BrokerId, known: Decision, after: Decision) -> LocalChange:
    """What a broker has to do that has replayed `known`, and now `after`, with all decisions in between merged."""
    before = board.announced(known) if known.partition_epoch >= 0 else None
    return local_change(before, board.announced(after), broker)


def _replays(board: Board, broker: BrokerId, version: PartitionEpoch, epoch: Epoch) -> list[Local]:
    slots = board.slots
    decision = slots.decision[version]
    return [
        when(lambda after: after.partition_epoch == version and after.leader_epoch == epoch, decision),
        when(lambda known: known.partition_epoch < version, slots.applied[broker]),
    ]


def _add_following(board: Board, broker: BrokerId, version: PartitionEpoch, epoch: Epoch) -> None:
    """A broker replays decisions up to one by which another leads."""
    slots = board.slots
    led = board.led_slots(broker)
    applied, fetcher, decision = slots.applied[broker], slots.fetcher[broker], slots.decision[version]

    def follow(known: Decision, fetching: FetchState, after: Decision, *led: Any) -> object:
        before = board.leading(broker, *led)._replace(fetcher=fetching)
        step = apply_change(board.broker(broker), before, _change(board, broker, known, after), board.numbers.now)
        log, high_watermark, fetching = board.followed(broker, step.state)
        local = step.state.local._replace(log=log, high_watermark=high_watermark)
        return (after, fetching, *board.led(broker, step.state._replace(local=local)))

    board.model.action(
        "Follow",
        {"broker": broker, "version": version, "epoch": epoch},
        events=[Note(broker, "replays metadata: another broker leads")],
        guards=[*_replays(board, broker, version, epoch), when(lambda after: after.leader != broker, decision)],
        effects=[then((applied, fetcher, *led), follow, applied, fetcher, decision, *led)],
    )


def _add_leading(board: Board, broker: BrokerId, version: PartitionEpoch, epoch: Epoch) -> None:
    """A broker replays decisions up to one by which it leads: in a new epoch, or on with another ISR."""
    slots = board.slots
    led = board.led_slots(broker)
    applied, fetcher, decision = slots.applied[broker], slots.fetcher[broker], slots.decision[version]
    role, term, ledger, settled = slots.role[broker], slots.term[epoch], slots.ledger[epoch], slots.settled
    guards = [*_replays(board, broker, version, epoch), when(lambda after: after.leader == broker, decision)]

    def replay(known: Decision, after: Decision, *led: Any) -> tuple[Partition[Log], Partition[Log]]:
        before = board.leading(broker, *led)
        change = _change(board, broker, known, after)
        return before, apply_change(board.broker(broker), before, change, board.numbers.now).state

    def lead(known: Decision, after: Decision, lived: Term, settled: Settled, *led: Any) -> object:
        before, state = replay(known, after, *led)
        begun = Term(True, state.epoch_start, lived.committed)
        begun, settled = _committed(epoch, begun, settled, before, state)
        return (after, state.fetcher, begun, settled, state.local.log, *board.led(broker, state))

    def learn(known: Decision, after: Decision, lived: Term, settled: Settled, *led: Any) -> object:
        before, state = replay(known, after, *led)
        return (after, *_committed(epoch, lived, settled, before, state), *board.led(broker, state))

    board.model.action(
        "Lead",
        {"broker": broker, "version": version, "epoch": epoch},
        events=[Note(broker, "replays metadata: it leads in a new epoch")],
        guards=[*guards, when(lambda own: own.leader_epoch < epoch, role)],
        effects=[then((applied, fetcher, term, settled, ledger, *led), lead, applied, decision, term, settled, *led)],
    )
    board.model.action(
        "LearnIsr",
        {"broker": broker, "version": version, "epoch": epoch},
        events=[Note(broker, "replays metadata: it leads with another ISR")],
        guards=[*guards, when(lambda own: own.leader_epoch == epoch, role)],
        effects=[then((applied, term, settled, *led), learn, applied, decision, term, settled, *led)],
    )


# ---- producing


def _add_write(board: Board, leader: BrokerId, epoch: Epoch) -> None:
    slots = board.slots
    led = board.led_slots(leader)
    term, ledger, settled, value = slots.term[epoch], slots.ledger[epoch], slots.settled, slots.next_value

    def write(number: int, lived: Term, settled: Settled, *led: Any) -> object:
        before = board.leading(leader, *led)
        request = ProduceRequest(0, ACKS_LEADER, (number,))
        after = handle_produce(board.broker(leader), before, request, board.numbers.now).state
        return (
            number + 1,
            *_committed(epoch, lived, settled, before, after),
            after.local.log,
            *board.led(leader, after),
        )

    board.model.action(
        "Produce",
        {"leader": leader, "epoch": epoch},
        events=[Message(PRODUCER, leader, "Produce")],
        guards=[
            when(lambda role: role.leader == leader and role.leader_epoch == epoch, slots.role[leader]),
            when(lambda number: number < board.parameters["values"], value),
        ],
        effects=[then((value, term, settled, ledger, *led), write, value, term, settled, *led)],
    )


# ---- fetching


def _add_fetch(board: Board, follower: BrokerId, leader: BrokerId, fetch: MessageId, epoch: Epoch) -> None:
    slots = board.slots
    own = (slots.log[follower], slots.high_watermark[follower], slots.fetcher[follower])
    awaited, fetched = slots.awaited[leader][follower], slots.fetched[follower][epoch]

    def send(log: Log, high_watermark: Offset, fetcher: FetchState) -> object:
        before = board.following(log, high_watermark, fetcher)
        step = fetch_or_truncate(board.broker(follower), before, board.numbers.now)
        asked = next((effect.message for effect in step.effects if isinstance(effect, Send)), None)
        if not isinstance(asked, PartitionFetch):
            return REFUSED
        offset, last_epoch = asked.fetch.fetch_offset, asked.fetch.last_fetched_epoch
        sent = Fetch(follower, leader, asked.fetch.current_leader_epoch, offset, last_epoch)
        return sent, fetch, fetch + 1, LastFetch(offset, last_epoch)

    board.model.action(
        "SendFetch",
        {"follower": follower, "leader": leader, "fetch": fetch, "epoch": epoch},
        events=[Note(follower, f"sends a fetch to {leader}")],
        guards=[
            when(lambda number: number == fetch, slots.next_fetch),
            when(lambda fetcher: fetcher.leader == leader and fetcher.leader_epoch == epoch, slots.fetcher[follower]),
            when(lambda message: message == NO_MESSAGE, awaited),
        ],
        effects=[then((slots.fetch[fetch], awaited, slots.next_fetch, fetched), send, *own)],
    )


def _add_lost_connection(board: Board, follower: BrokerId, leader: BrokerId) -> None:
    awaited = board.slots.awaited[leader][follower]
    board.model.action(
        "LoseConnection",
        {"follower": follower, "leader": leader},
        events=[Note(follower, f"loses its connection to {leader}")],
        guards=[when(lambda message: message != NO_MESSAGE, awaited)],
        effects=[then(awaited, lambda: NO_MESSAGE)],
    )


def _reply(step: Handled[Log]) -> FetchReply:
    answer = next(effect.message for effect in step.effects if isinstance(effect, Reply))
    assert isinstance(answer, FetchAnswer)
    record = answer.records[0] if answer.records else None
    return FetchReply(True, answer.error, record, answer.high_watermark, answer.diverging)


def _proposal(step: Handled[Log], otherwise: Proposed) -> Proposed:
    request = next((effect.message for effect in step.effects if isinstance(effect, SendToController)), None)
    if request is None:
        return otherwise
    isr = frozenset(member.broker for member in request.isr)
    return Proposed(request.broker, request.leader_epoch, request.partition_epoch, isr)


def _add_handling(
    board: Board, follower: BrokerId, leader: BrokerId, fetch: MessageId, epoch: Epoch, proposal: MessageId
) -> None:
    """A leader handles a fetch, whenever it comes, and may propose to admit the follower."""
    slots = board.slots
    led = board.led_slots(leader)
    sent, reply, term = slots.fetch[fetch], slots.reply[fetch], slots.term[epoch]
    proposed, next_proposal, settled = slots.proposed[proposal], slots.next_proposal, slots.settled
    latest = slots.latest[leader]

    def handle(asked: Fetch, lived: Term, settled: Settled, empty: Proposed, last: MessageId, *led: Any) -> object:
        before = board.leading(leader, *led)
        request = FetchRequest(asked.epoch, asked.offset, asked.last_epoch)
        message = PartitionFetch(follower, request, RUN, max_records=1)
        step = handle_fetch(board.broker(leader), before, message, board.numbers.now)
        new = _proposal(step, empty)
        following, last = (proposal, last) if new is empty else (proposal + 1, proposal)
        lived, settled = _committed(epoch, lived, settled, before, step.state)
        return (_reply(step), lived, settled, new, following, last, *board.led(leader, step.state))

    board.model.action(
        "HandleFetch",
        {"follower": follower, "leader": leader, "fetch": fetch, "epoch": epoch, "proposal": proposal},
        events=[Message(follower, leader, "Fetch")],
        guards=[
            when(lambda asked: asked.leader == leader and asked.follower == follower and asked.epoch == epoch, sent),
            when(lambda answer: not answer.given, reply),
            when(lambda number: number == proposal, next_proposal),
        ],
        effects=[
            then(
                (reply, term, settled, proposed, next_proposal, latest, *led),
                handle,
                *(sent, term, settled, proposed, latest, *led),
            )
        ],
    )


def _add_answer(board: Board, follower: BrokerId, leader: BrokerId, fetch: MessageId) -> None:
    slots = board.slots
    own = (slots.log[follower], slots.high_watermark[follower], slots.fetcher[follower])
    awaited, sent, reply = slots.awaited[leader][follower], slots.fetch[fetch], slots.reply[fetch]

    def take(asked: Fetch, answer: FetchReply, log: Log, high_watermark: Offset, fetcher: FetchState) -> object:
        before = board.following(log, high_watermark, fetcher)
        records = () if answer.record is None else (answer.record,)
        given = FetchAnswer(
            answer.error, asked.offset, records, answer.high_watermark, Offset(0), answer.high_watermark, answer.diverging
        )
        own = board.broker(follower)
        step = handle_fetch_answer(own, before, asked.epoch, asked.offset, given, board.numbers.now)
        return (NO_MESSAGE, *board.followed(follower, step.state))

    board.model.action(
        "TakeAnswer",
        {"follower": follower, "leader": leader, "fetch": fetch},
        events=[Message(leader, follower, "the answer to a fetch")],
        guards=[
            when(lambda message: message == fetch, awaited),
            when(lambda answer: answer.given, reply),
        ],
        effects=[then((awaited, *own), take, sent, reply, *own)],
    )


# ---- the ISR


def _add_shrink(board: Board, leader: BrokerId, proposal: MessageId) -> None:
    slots = board.slots
    led = board.led_slots(leader)
    role, next_proposal = slots.role[leader], slots.next_proposal

    def shrink(*led: Any) -> object:
        before = board.leading(leader, *led)
        step = consider_shrinking(board.broker(leader), before, board.numbers.now)
        new = _proposal(step, NOT_PROPOSED)
        if new is NOT_PROPOSED:
            return REFUSED
        return board.led(leader, step.state)[2], new, proposal + 1, proposal

    board.model.action(
        "ProposeShrink",
        {"leader": leader, "proposal": proposal},
        events=[Message(leader, CONTROLLER, "AlterPartition: a smaller ISR")],
        guards=[
            when(lambda role: role.leader == leader, role),
            when(lambda number: number == proposal, next_proposal),
        ],
        effects=[then((role, slots.proposed[proposal], next_proposal, slots.latest[leader]), shrink, *led)],
    )


def _add_verdict(board: Board, leader: BrokerId, proposal: MessageId, epoch: Epoch) -> None:
    slots = board.slots
    led = board.led_slots(leader)
    proposed, verdict = slots.proposed[proposal], slots.verdict[proposal]
    term, settled = slots.term[epoch], slots.settled

    def take(asked: Proposed, answer: Verdict, lived: Term, settled: Settled, *led: Any) -> object:
        before = board.leading(leader, *led)
        isr = frozenset(IsrMember(member, RUN) for member in board.those_in(asked.isr))
        request = AlterPartitionRequest(leader, RUN, PARTITION, asked.leader_epoch, asked.partition_epoch, isr)
        response = AlterPartitionResponse(
            answer.error, PARTITION, leader, answer.leader_epoch, answer.isr, answer.partition_epoch
        )
        step = handle_alter_partition_response(board.broker(leader), before, request, response, board.numbers.now)
        taken = answer._replace(given=False)
        return (taken, *_committed(epoch, lived, settled, before, step.state), *board.led(leader, step.state))

    board.model.action(
        "TakeVerdict",
        {"leader": leader, "proposal": proposal, "epoch": epoch},
        events=[Message(CONTROLLER, leader, "the answer to AlterPartition")],
        guards=[
            when(lambda asked: asked.leader == leader, proposed),
            when(lambda answer: answer.given, verdict),
            when(lambda role: role.leader == leader and role.leader_epoch == epoch, slots.role[leader]),
        ],
        effects=[then((verdict, term, settled, *led), take, proposed, verdict, term, settled, *led)],
    )
