"""What brokers do: replay decisions, append, fetch, answer fetches, take answers, and change the ISR."""

from typing import Any

from model_check.core.model import CONTROLLER, PRODUCER, REFUSED, Local, Message, Note, then, when
from model_check.models.messages.board import Board, Log
from model_check.models.messages.values import (
    NO_FETCH_ID,
    NO_PROPOSAL_ID,
    NOT_DECIDED,
    PARTITION,
    Decision,
    Fetch,
    FetchId,
    FetchReply,
    LastFetch,
    ProposalId,
    Proposed,
    Settled,
    Term,
    Verdict,
)
from spec.broker.follower import fetch_or_truncate, handle_fetch_response
from spec.broker.leader.fetch import handle_fetch
from spec.broker.leader.isr import consider_shrinking, handle_alter_partition_response
from spec.broker.leader.produce import handle_produce
from spec.broker.partition import Handled, Partition
from spec.broker.recovery import Checkpoints, after_kill, after_power_loss, opened, recover
from spec.broker.roles import apply_change
from spec.broker.rules.fetcher import FetchState
from spec.log.local_log import LocalLog
from spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse, IsrMember
from spec.messages.fetch import FetchPosition, FetchRequest, FetchResponse
from spec.messages.produce import ACKS_LEADER, ProduceRequest
from spec.metadata import LocalChange, local_change
from spec.step import Reply, Send, SendToController
from spec.values import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, Epoch, Offset, PartitionEpoch


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
                    for caught_up in numbers.last_caught_up:
                        _add_handling(board, follower, leader, fetch, epoch, proposal, caught_up)
            _add_answer(board, follower, leader, fetch)
    if board.stops:
        add_stops(board)


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
        *_is_up(board, broker),
        when(lambda since: since.partition_epoch <= version, slots.since[broker]),
    ]


def _is_up(board: Board, broker: BrokerId) -> list[Local]:
    return [when(lambda run: run != NO_BROKER_EPOCH, board.slots.run[broker])]


def _add_following(board: Board, broker: BrokerId, version: PartitionEpoch, epoch: Epoch) -> None:
    """A broker replays decisions up to one by which another leads."""
    slots = board.slots
    led, entered = board.led_slots(broker), slots.entered[broker]
    applied, fetcher, decision = slots.applied[broker], slots.fetcher[broker], slots.decision[version]

    def follow(known: Decision, fetching: FetchState, after: Decision, *led: Any) -> object:
        own, before = board.leading(broker, *led)
        change = _change(board, broker, known, after)
        step = apply_change(own, before._replace(fetcher=fetching), change, board.numbers.now)
        log, high_watermark, fetching = board.followed(broker, step.state)
        local = step.state.local._replace(log=log, high_watermark=high_watermark)
        return (after, after.leader_epoch, fetching, *board.led(broker, step.state._replace(local=local)))

    board.model.action(
        "Follow",
        {"broker": broker, "version": version, "epoch": epoch},
        events=[Note(broker, "replays metadata: another broker leads")],
        guards=[*_replays(board, broker, version, epoch), when(lambda after: after.leader != broker, decision)],
        effects=[then((applied, entered, fetcher, *led), follow, applied, fetcher, decision, *board.as_leader(broker))],
    )


def _add_leading(board: Board, broker: BrokerId, version: PartitionEpoch, epoch: Epoch) -> None:
    """A broker replays decisions up to one by which it leads: in a new epoch, or on with another ISR."""
    slots = board.slots
    led, reads = board.led_slots(broker), board.as_leader(broker)
    applied, fetcher, decision = slots.applied[broker], slots.fetcher[broker], slots.decision[version]
    entered = slots.entered[broker]
    role, term, ledger, settled = slots.role[broker], slots.term[epoch], slots.ledger[epoch], slots.settled
    guards = [*_replays(board, broker, version, epoch), when(lambda after: after.leader == broker, decision)]

    def replay(known: Decision, after: Decision, *led: Any) -> tuple[Partition[Log], Partition[Log]]:
        own, before = board.leading(broker, *led)
        change = _change(board, broker, known, after)
        return before, apply_change(own, before, change, board.numbers.now).state

    def lead(known: Decision, after: Decision, lived: Term, settled: Settled, *led: Any) -> object:
        before, state = replay(known, after, *led)
        begun = Term(True, state.epoch_start, lived.committed)
        begun, settled = _committed(epoch, begun, settled, before, state)
        return (after, epoch, state.fetcher, begun, settled, state.local.log, *board.led(broker, state))

    def learn(known: Decision, after: Decision, lived: Term, settled: Settled, *led: Any) -> object:
        before, state = replay(known, after, *led)
        return (after, *_committed(epoch, lived, settled, before, state), *board.led(broker, state))

    board.model.action(
        "Lead",
        {"broker": broker, "version": version, "epoch": epoch},
        events=[Note(broker, "replays metadata: it leads in a new epoch")],
        guards=[*guards, when(lambda own: own.leader_epoch < epoch, role)],
        effects=[
            then(
                (applied, entered, fetcher, term, settled, ledger, *led),
                lead,
                *(applied, decision, term, settled, *reads),
            )
        ],
    )
    board.model.action(
        "LearnIsr",
        {"broker": broker, "version": version, "epoch": epoch},
        events=[Note(broker, "replays metadata: it leads with another ISR")],
        guards=[*guards, when(lambda own: own.leader_epoch == epoch, role)],
        effects=[then((applied, term, settled, *led), learn, applied, decision, term, settled, *reads)],
    )


# ---- producing


def _add_write(board: Board, leader: BrokerId, epoch: Epoch) -> None:
    slots = board.slots
    led = board.led_slots(leader)
    term, ledger, settled, value = slots.term[epoch], slots.ledger[epoch], slots.settled, slots.next_value

    def write(number: int, lived: Term, settled: Settled, *led: Any) -> object:
        own, before = board.leading(leader, *led)
        request = ProduceRequest(0, ACKS_LEADER, (number,))
        after = handle_produce(own, before, request, board.numbers.now).state
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
        effects=[then((value, term, settled, ledger, *led), write, value, term, settled, *board.as_leader(leader))],
    )


# ---- fetching


def _add_fetch(board: Board, follower: BrokerId, leader: BrokerId, fetch: FetchId, epoch: Epoch) -> None:
    slots = board.slots
    own = (slots.log[follower], slots.high_watermark[follower], slots.fetcher[follower])
    awaited, fetched = slots.awaited[leader][follower], slots.fetched[follower][epoch]

    def send(last: LastFetch, run: BrokerEpoch, log: Log, high_watermark: Offset, fetcher: FetchState) -> object:
        before = board.following(log, high_watermark, fetcher)
        step = fetch_or_truncate(board.broker(follower, run), before, board.numbers.now)
        asked = next((effect.message for effect in step.effects if isinstance(effect, Send)), None)
        if not isinstance(asked, FetchRequest):
            return REFUSED
        offset, last_epoch = asked.fetch.fetch_offset, asked.fetch.last_fetched_epoch
        sent = Fetch(follower, leader, asked.fetch.current_leader_epoch, offset, last_epoch, asked.broker_epoch)
        return sent, fetch, fetch + 1, LastFetch(offset, last_epoch, asked.broker_epoch, last.anew)

    board.model.action(
        "SendFetch",
        {"follower": follower, "leader": leader, "fetch": fetch, "epoch": epoch},
        events=[Note(follower, f"sends a fetch to {leader}")],
        guards=[
            when(lambda number: number == fetch, slots.next_fetch),
            when(lambda fetcher: fetcher.leader == leader and fetcher.leader_epoch == epoch, slots.fetcher[follower]),
            when(lambda message: message == NO_FETCH_ID, awaited),
        ],
        effects=[then((slots.fetch[fetch], awaited, slots.next_fetch, fetched), send, fetched, slots.run[follower], *own)],
    )


def _add_lost_connection(board: Board, follower: BrokerId, leader: BrokerId) -> None:
    awaited = board.slots.awaited[leader][follower]
    board.model.action(
        "LoseConnection",
        {"follower": follower, "leader": leader},
        events=[Note(follower, f"loses its connection to {leader}")],
        guards=[when(lambda message: message != NO_FETCH_ID, awaited)],
        effects=[then(awaited, lambda: NO_FETCH_ID)],
    )


def _reply(step: Handled[Log]) -> FetchReply:
    answer = next(effect.message for effect in step.effects if isinstance(effect, Reply))
    assert isinstance(answer, FetchResponse)
    record = answer.records[0] if answer.records else None
    return FetchReply(True, answer.error, record, answer.high_watermark, answer.diverging)


def _proposal(board: Board, step: Handled[Log]) -> tuple[Any, ...] | None:
    """What a leader proposes, with the runs of the members that it names; `None` if nothing."""
    request = next((effect.message for effect in step.effects if isinstance(effect, SendToController)), None)
    if request is None:
        return None
    runs = {member.broker: member.broker_epoch for member in request.isr}
    epochs = request.leader_epoch, request.partition_epoch
    proposed = Proposed(request.broker, *epochs, frozenset(runs), request.broker_epoch)
    return (proposed, *(runs.get(broker, NO_BROKER_EPOCH) for broker in board.brokers))


def _add_handling(
    board: Board,
    follower: BrokerId,
    leader: BrokerId,
    fetch: FetchId,
    epoch: Epoch,
    proposal: ProposalId,
    caught_up: int,
) -> None:
    """A leader handles a fetch, whenever it comes, and may propose to admit the follower."""
    slots = board.slots
    led, reads = board.led_slots(leader), board.as_leader(leader)
    sent, reply, term = slots.fetch[fetch], slots.reply[fetch], slots.term[epoch]
    empty, next_proposal, settled = board.asked(proposal), slots.next_proposal, slots.settled
    latest, count = slots.latest[leader], len(empty)

    def handle(asked: Fetch, lived: Term, settled: Settled, last: ProposalId, *known: Any) -> object:
        own, before = board.leading(leader, *known[count:], caught_up={follower: caught_up})
        request = FetchPosition(asked.epoch, asked.offset, asked.last_epoch)
        message = FetchRequest(follower, request, asked.run, max_records=1)
        step = handle_fetch(own, before, message, board.numbers.now)
        new = _proposal(board, step)
        following, last = (proposal, last) if new is None else (proposal + 1, proposal)
        lived, settled = _committed(epoch, lived, settled, before, step.state)
        proposed = known[:count] if new is None else new
        return (_reply(step), lived, settled, *proposed, following, last, *board.led(leader, step.state))

    args = {"follower": follower, "leader": leader, "fetch": fetch, "epoch": epoch, "proposal": proposal}
    board.model.action(
        "HandleFetch",
        args | ({"caught_up": caught_up} if board.asks_for_lag else {}),
        events=[Message(follower, leader, "Fetch")],
        guards=[
            when(lambda asked: asked.leader == leader and asked.follower == follower and asked.epoch == epoch, sent),
            when(lambda answer: not answer.given, reply),
            when(lambda number: number == proposal, next_proposal),
            *_is_up(board, leader),
        ],
        effects=[
            then(
                (reply, term, settled, *empty, next_proposal, latest, *led),
                handle,
                *(sent, term, settled, latest, *empty, *reads),
            )
        ],
    )


def _add_answer(board: Board, follower: BrokerId, leader: BrokerId, fetch: FetchId) -> None:
    slots = board.slots
    own = (slots.log[follower], slots.high_watermark[follower], slots.fetcher[follower])
    awaited, sent, reply = slots.awaited[leader][follower], slots.fetch[fetch], slots.reply[fetch]

    def take(asked: Fetch, answer: FetchReply, log: Log, high_watermark: Offset, fetcher: FetchState) -> object:
        before = board.following(log, high_watermark, fetcher)
        records = () if answer.record is None else (answer.record,)
        given = FetchResponse(
            answer.error, asked.offset, records, answer.high_watermark, Offset(0), answer.high_watermark, answer.diverging
        )
        own = board.broker(follower, asked.run)
        step = handle_fetch_response(own, before, asked.epoch, asked.offset, given, board.numbers.now)
        return (NO_FETCH_ID, *board.followed(follower, step.state))

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


def _add_shrink(board: Board, leader: BrokerId, proposal: ProposalId) -> None:
    slots = board.slots
    role, next_proposal = slots.role[leader], slots.next_proposal

    def shrink(*led: Any) -> object:
        own, before = board.leading(leader, *led)
        step = consider_shrinking(own, before, board.numbers.now)
        new = _proposal(board, step)
        return REFUSED if new is None else (board.led(leader, step.state)[2], *new, proposal + 1, proposal)

    board.model.action(
        "ProposeShrink",
        {"leader": leader, "proposal": proposal},
        events=[Message(leader, CONTROLLER, "AlterPartition: a smaller ISR")],
        guards=[
            when(lambda role: role.leader == leader, role),
            when(lambda number: number == proposal, next_proposal),
        ],
        effects=[
            then((role, *board.asked(proposal), next_proposal, slots.latest[leader]), shrink, *board.as_leader(leader))
        ],
    )


def _add_verdict(board: Board, leader: BrokerId, proposal: ProposalId, epoch: Epoch) -> None:
    slots = board.slots
    led = board.led_slots(leader)
    proposed, verdict = slots.proposed[proposal], slots.verdict[proposal]
    term, settled = slots.term[epoch], slots.settled

    def take(asked: Proposed, answer: Verdict, lived: Term, settled: Settled, *led: Any) -> object:
        own, before = board.leading(leader, *led)
        isr = frozenset(IsrMember(member) for member in board.those_in(asked.isr))
        request = AlterPartitionRequest(leader, asked.run, PARTITION, asked.leader_epoch, asked.partition_epoch, isr)
        response = AlterPartitionResponse(
            answer.error, PARTITION, leader, answer.leader_epoch, answer.isr, answer.partition_epoch
        )
        step = handle_alter_partition_response(own, before, request, response, board.numbers.now)
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
        effects=[then((verdict, term, settled, *led), take, proposed, verdict, term, settled, *board.as_leader(leader))],
    )


# ---- stopping


def add_stops(board: Board) -> None:
    """Brokers stop without warning, and later hear of one another's new runs. How they register is the controller's side."""
    for broker in board.brokers:
        for checkpointed in board.numbers.checkpointed:
            if not board.loses:
                _add_stop(board, broker, checkpointed, None)
            for survives in board.numbers.survives if board.loses else ():
                _add_stop(board, broker, checkpointed, survives)
    for broker, other in board.pairs():
        for run in board.numbers.runs:
            _add_news_of_run(board, broker, other, run)


def _add_stop(board: Board, broker: BrokerId, checkpointed: Offset, survives: Offset | None) -> None:
    """A broker is killed, its log being as it was; or, where `survives` is given, loses power, its log ending there.

    It knows nothing any more, and waits for nothing; what it has sent stays on its way. Which runs of others it has heard of
    is kept, for its next run replays no less of the metadata.
    """
    slots = board.slots
    led, awaited = board.led_slots(broker), [slots.awaited[leader][broker] for leader in board.others(broker)]
    memory = (slots.run[broker], slots.applied[broker], slots.fetcher[broker], slots.latest[broker], slots.stops)
    lost = {} if survives is None else {"survives": survives}

    def stop(stops: int, log: Log, high_watermark: Offset) -> object:
        before, files = LocalLog(log, high_watermark), Checkpoints(high_watermark=checkpointed)
        survived = after_kill(before, files) if survives is None else after_power_loss(before, files, survives)
        after = opened(PARTITION, recover(survived))
        waits = (NO_FETCH_ID for _ in awaited)
        return (NO_BROKER_EPOCH, NOT_DECIDED, after.fetcher, NO_PROPOSAL_ID, stops + 1, *waits, *board.led(broker, after))

    board.model.action(
        "Stop",
        {"broker": broker, "checkpointed": checkpointed, **lost},
        events=[Note(broker, "stops without warning" + ("" if survives is None else ", and loses what was not flushed"))],
        guards=[
            when(lambda before: before.partition_epoch >= 0, slots.partition),
            when(lambda stops: stops < board.parameters["stops"], slots.stops),
            *_is_up(board, broker),
            when(lambda high_watermark: checkpointed <= high_watermark, slots.high_watermark[broker]),
            *([] if survives is None else [when(lambda log: survives <= log.end_offset, slots.log[broker])]),
        ],
        effects=[then((*memory, *awaited, *led), stop, slots.stops, slots.log[broker], slots.high_watermark[broker])],
    )


def _add_news_of_run(board: Board, broker: BrokerId, other: BrokerId, run: BrokerEpoch) -> None:
    """A broker replays the registration of another's run: the present one, or one before."""
    heard = board.slots.heard[other][broker]
    board.model.action(
        "HearOfRun",
        {"broker": broker, "other": other, "run": run},
        events=[Note(broker, f"replays metadata: a new run of {other}")],
        guards=[
            when(lambda known: known < run, heard),
            when(lambda known: run <= known.run, board.slots.registered[other]),
        ],
        effects=[then(heard, lambda: run)],
    )
