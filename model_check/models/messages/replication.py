"""The steps of brokers: replay decisions, append, fetch, answer fetches, take answers, and change the ISR."""

from typing import Any

from kspec.model_check.core.model import CONTROLLER, PRODUCER, REFUSED, Arrow, Local, Note, Slot, then, when
from kspec.model_check.models.carriers import ModelLog
from kspec.model_check.models.messages.board import Board
from kspec.model_check.models.messages.values import (
    NO_FETCH_ID,
    NO_PROPOSAL_ID,
    NOT_DECIDED,
    Fetch,
    FetchAnswer,
    FetchId,
    FurthestCommit,
    IsrAnswer,
    IsrProposal,
    LastFetch,
    Leadership,
    PartitionState,
    ProposalId,
)
from kspec.model_check.models.parts import PARTITION, Values, by_slot, role_of
from kspec.spec.broker.follower import fetch_or_truncate, handle_fetch_response
from kspec.spec.broker.leader.fetch import handle_fetch
from kspec.spec.broker.leader.isr import consider_shrinking, handle_alter_partition_response
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.partition import Handled, Partition
from kspec.spec.broker.recovery import CheckpointedOffsets, after_kill, after_power_loss, opened, recover
from kspec.spec.broker.roles import apply_change
from kspec.spec.broker.rules.fetcher import PendingFetch
from kspec.spec.broker.rules.isr.announcement import is_later_leader_epoch
from kspec.spec.log.batch import records_of
from kspec.spec.log.local_log import LocalLog
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse, IsrMember
from kspec.spec.messages.fetch import FetchPosition, FetchRequest, FetchResponse
from kspec.spec.messages.produce import ACKS_LEADER, ProduceRequest
from kspec.spec.metadata import LocalChange, local_change
from kspec.spec.step import Reply, Send, SendToController
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    BrokerEpoch,
    BrokerId,
    Epoch,
    MonotonicMs,
    Offset,
    PartitionEpoch,
    Record,
)


def add_replication(board: Board) -> None:
    """Add the steps of brokers."""
    numbers = board.numbers
    for broker in board.brokers:
        for partition_epoch in numbers.partition_epochs:
            for epoch in numbers.epochs:
                _add_replay_as_follower(board, broker, partition_epoch, epoch)
                _add_replay_as_leader(board, broker, partition_epoch, epoch)
        for epoch in numbers.epochs:
            _add_write(board, broker, epoch)
        for proposal in numbers.proposals:
            _add_shrink(board, broker, proposal)
            for epoch in numbers.epochs:
                _add_isr_answer(board, broker, proposal, epoch)
    for follower, leader in board.pairs():
        _add_lost_connection(board, follower, leader)
        for fetch in numbers.fetches:
            for epoch in numbers.epochs:
                _add_fetch(board, follower, leader, fetch, epoch)
                for proposal in numbers.proposals:
                    for caught_up in numbers.last_caught_up:
                        _add_handling(board, follower, leader, fetch, epoch, proposal, caught_up)
            _add_fetch_answer(board, follower, leader, fetch)
    if board.unclean_shutdowns:
        add_unclean_shutdowns(board)


def _leadership_slots(board: Board, epoch: Epoch) -> tuple[Slot, Slot]:
    """The history variables of commits: for `_committed`."""
    return board.slots.leadership[epoch], board.slots.furthest_commit


def _committed(
    board: Board, epoch: Epoch, at: Values, before: Partition[ModelLog], after: Partition[ModelLog]
) -> dict[Slot, Any]:
    """The commit of an epoch's leader in it, and the furthest commit, after a step of the leader."""
    leadership, furthest = _leadership_slots(board, epoch)
    so_far: Leadership = at[leadership]
    most: FurthestCommit = at[furthest]
    high_watermark = after.local.high_watermark
    if high_watermark <= before.local.high_watermark:
        return {leadership: so_far, furthest: most}
    most = FurthestCommit(epoch, high_watermark) if high_watermark > most.end else most
    return {leadership: so_far._replace(committed=high_watermark), furthest: most}


# ---- metadata


def _change(board: Board, broker: BrokerId, known: PartitionState, after: PartitionState) -> LocalChange:
    """The change for a broker that has replayed `known`, and now replays `after`, with all decisions in between merged."""
    before = board.announced(known) if known.partition_epoch >= 0 else None
    return local_change(before, board.announced(after), broker)


def _replays(board: Board, broker: BrokerId, partition_epoch: PartitionEpoch, epoch: Epoch) -> list[Local]:
    slots = board.slots
    decision = slots.decision[partition_epoch]
    return [
        when(lambda after: after.partition_epoch == partition_epoch and after.leader_epoch == epoch, decision),
        when(lambda known: known.partition_epoch < partition_epoch, slots.applied[broker]),
        *_is_up(board, broker),
        when(lambda registered_at: registered_at.partition_epoch <= partition_epoch, slots.registered_at[broker]),
    ]


def _is_up(board: Board, broker: BrokerId) -> list[Local]:
    return [when(lambda broker_epoch: broker_epoch != NO_BROKER_EPOCH, board.slots.broker_epoch[broker])]


def _add_replay_as_follower(board: Board, broker: BrokerId, partition_epoch: PartitionEpoch, epoch: Epoch) -> None:
    """A broker replays decisions up to one with another leader."""
    slots = board.slots
    led, highest_epoch = board.led_slots(broker), slots.highest_epoch[broker]
    applied, fetcher, decision = slots.applied[broker], slots.fetcher[broker], slots.decision[partition_epoch]

    def follow(at: Values) -> object:
        own, before = board.leading(broker, at)
        after: PartitionState = at[decision]
        change = _change(board, broker, at[applied], after)
        state = apply_change(own, before._replace(fetcher=at[fetcher]), change, MonotonicMs(board.numbers.now)).state
        followed = board.followed(broker, state)
        return {applied: after, highest_epoch: after.leader_epoch, **board.led(broker, state), **followed}

    board.model.action(
        "ReplayMetadataAsFollower",
        {"broker": broker, "partition_epoch": partition_epoch, "epoch": epoch},
        events=[Note(broker, "replays metadata: another broker leads")],
        guards=[*_replays(board, broker, partition_epoch, epoch), when(lambda after: after.leader != broker, decision)],
        effects=[
            by_slot((applied, highest_epoch, fetcher, *led), follow, (applied, fetcher, decision, *board.as_leader(broker)))
        ],
    )


def _add_replay_as_leader(board: Board, broker: BrokerId, partition_epoch: PartitionEpoch, epoch: Epoch) -> None:
    """A broker replays decisions up to one with itself as leader: in a new epoch, or in the same with another ISR."""
    slots = board.slots
    led, reads = board.led_slots(broker), board.as_leader(broker)
    applied, fetcher, decision = slots.applied[broker], slots.fetcher[broker], slots.decision[partition_epoch]
    highest_epoch, role, leader_log = slots.highest_epoch[broker], slots.role[broker], slots.leader_log[epoch]
    leadership, furthest_commit = _leadership_slots(board, epoch)
    guards = [*_replays(board, broker, partition_epoch, epoch), when(lambda after: after.leader == broker, decision)]

    def replay(at: Values) -> tuple[Partition[ModelLog], Partition[ModelLog]]:
        own, before = board.leading(broker, at)
        change = _change(board, broker, at[applied], at[decision])
        return before, apply_change(own, before, change, MonotonicMs(board.numbers.now)).state

    def lead(at: Values) -> object:
        before, state = replay(at)
        so_far: Leadership = at[leadership]
        begun = {**at, leadership: Leadership(True, state.epoch_start, so_far.committed)}
        return {
            applied: at[decision],
            highest_epoch: epoch,
            fetcher: state.fetcher,
            leader_log: state.local.log,
            **_committed(board, epoch, begun, before, state),
            **board.led(broker, state),
        }

    def learn(at: Values) -> object:
        before, state = replay(at)
        return {
            applied: at[decision],
            **_committed(board, epoch, at, before, state),
            **board.led(broker, state),
        }

    board.model.action(
        "ReplayMetadataAsNewLeader",
        {"broker": broker, "partition_epoch": partition_epoch, "epoch": epoch},
        events=[Note(broker, "replays metadata: it leads in a new epoch")],
        guards=[*guards, when(lambda own: is_later_leader_epoch(own.leader_epoch, epoch), role)],
        effects=[
            by_slot(
                (applied, highest_epoch, fetcher, leadership, furthest_commit, leader_log, *led),
                lead,
                (applied, decision, leadership, furthest_commit, *reads),
            )
        ],
    )
    board.model.action(
        "ReplayMetadataAsLeader",
        {"broker": broker, "partition_epoch": partition_epoch, "epoch": epoch},
        events=[Note(broker, "replays metadata: it leads with another ISR")],
        guards=[*guards, when(lambda own: own.leader_epoch == epoch, role)],
        effects=[
            by_slot(
                (applied, leadership, furthest_commit, *led),
                learn,
                (applied, decision, leadership, furthest_commit, *reads),
            )
        ],
    )


# ---- producing


def _add_write(board: Board, leader: BrokerId, epoch: Epoch) -> None:
    slots = board.slots
    led, leader_log, value = board.led_slots(leader), slots.leader_log[epoch], slots.next_value
    leadership, furthest_commit = _leadership_slots(board, epoch)

    def write(at: Values) -> object:
        own, before = board.leading(leader, at)
        number: int = at[value]
        request = ProduceRequest(0, ACKS_LEADER, Record(number, NO_EPOCH))
        after = handle_produce(own, before, request, MonotonicMs(board.numbers.now)).state
        return {
            value: number + 1,
            leader_log: after.local.log,
            **_committed(board, epoch, at, before, after),
            **board.led(leader, after),
        }

    board.model.action(
        "Produce",
        {"leader": leader, "epoch": epoch},
        events=[Arrow(PRODUCER, leader, "Produce")],
        guards=[
            when(lambda role: role.leader == leader and role.leader_epoch == epoch, slots.role[leader]),
            when(lambda number: number < board.parameters["values"], value),
        ],
        effects=[
            by_slot(
                (value, leadership, furthest_commit, leader_log, *led),
                write,
                (value, leadership, furthest_commit, *board.as_leader(leader)),
            )
        ],
    )


# ---- fetching


def _add_fetch(board: Board, follower: BrokerId, leader: BrokerId, fetch: FetchId, epoch: Epoch) -> None:
    slots, own = board.slots, board.fetching_slots(follower)
    awaited, fetched = slots.awaited[leader][follower], slots.fetched[follower][epoch]
    broker_epoch = slots.broker_epoch[follower]

    def send(at: Values) -> object:
        last: LastFetch = at[fetched]
        step = fetch_or_truncate(
            board.broker(follower, at[broker_epoch]), board.following(follower, at), MonotonicMs(board.numbers.now)
        )
        asked = next((effect.message for effect in step.effects if isinstance(effect, Send)), None)
        if not isinstance(asked, FetchRequest):
            return REFUSED
        position = asked.fetch
        return {
            slots.fetch[fetch]: Fetch(
                follower=follower,
                leader=leader,
                epoch=position.current_leader_epoch,
                offset=position.fetch_offset,
                last_epoch=position.last_fetched_epoch,
                broker_epoch=asked.broker_epoch,
            ),
            awaited: fetch,
            slots.next_fetch: fetch + 1,
            fetched: LastFetch(position.fetch_offset, position.last_fetched_epoch, asked.broker_epoch, last.anew),
        }

    board.model.action(
        "SendFetch",
        {"follower": follower, "leader": leader, "fetch": fetch, "epoch": epoch},
        events=[Note(follower, f"sends a fetch to {leader}")],
        guards=[
            when(lambda number: number == fetch, slots.next_fetch),
            when(lambda fetcher: fetcher.leader == leader and fetcher.leader_epoch == epoch, slots.fetcher[follower]),
            when(lambda message: message == NO_FETCH_ID, awaited),
        ],
        effects=[by_slot((slots.fetch[fetch], awaited, slots.next_fetch, fetched), send, (fetched, broker_epoch, *own))],
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


def _fetch_answer(step: Handled[ModelLog]) -> FetchAnswer:
    answer = next(effect.message for effect in step.effects if isinstance(effect, Reply))
    assert isinstance(answer, FetchResponse)
    records = records_of(answer.records)
    return FetchAnswer(
        given=True,
        error=answer.error,
        record=records[0] if records else None,
        high_watermark=answer.high_watermark,
        diverging=answer.diverging,
    )


def _proposal(board: Board, proposal: ProposalId, step: Handled[ModelLog]) -> dict[Slot, Any] | None:
    """A leader's proposal, with the broker epochs of the members; `None` if there is none."""
    request = next((effect.message for effect in step.effects if isinstance(effect, SendToController)), None)
    if request is None:
        return None
    broker_epochs = {member.broker: member.broker_epoch for member in request.isr}
    epochs = request.leader_epoch, request.partition_epoch
    proposed = IsrProposal(request.broker, *epochs, frozenset(broker_epochs), request.broker_epoch)
    named = {slot: broker_epochs.get(broker, NO_BROKER_EPOCH) for broker, slot in board.named(proposal).items()}
    return {board.slots.proposed[proposal]: proposed, **named}


def _add_handling(
    board: Board,
    follower: BrokerId,
    leader: BrokerId,
    fetch: FetchId,
    epoch: Epoch,
    proposal: ProposalId,
    caught_up: int,
) -> None:
    """A leader handles a fetch, at any time, and may propose to admit the follower."""
    slots = board.slots
    led, reads = board.led_slots(leader), board.as_leader(leader)
    sent, fetch_answer = slots.fetch[fetch], slots.fetch_answer[fetch]
    leadership, furthest_commit = _leadership_slots(board, epoch)
    empty, next_proposal, latest = board.asked(proposal), slots.next_proposal, slots.latest[leader]

    def handle(at: Values) -> object:
        own, before = board.leading(leader, at, caught_up={follower: caught_up})
        asked: Fetch = at[sent]
        request = FetchPosition(asked.epoch, asked.offset, asked.last_epoch)
        message = FetchRequest(follower, request, asked.broker_epoch, max_records=1)
        step = handle_fetch(own, before, message, MonotonicMs(board.numbers.now))
        new = _proposal(board, proposal, step)
        return {
            fetch_answer: _fetch_answer(step),
            **({slot: at[slot] for slot in empty} if new is None else new),
            next_proposal: proposal if new is None else proposal + 1,
            latest: at[latest] if new is None else proposal,
            **_committed(board, epoch, at, before, step.state),
            **board.led(leader, step.state),
        }

    args = {"follower": follower, "leader": leader, "fetch": fetch, "epoch": epoch, "proposal": proposal}
    board.model.action(
        "HandleFetch",
        args | ({"caught_up": caught_up} if board.asks_for_lag else {}),
        events=[Arrow(follower, leader, "Fetch")],
        guards=[
            when(lambda asked: asked.leader == leader and asked.follower == follower and asked.epoch == epoch, sent),
            when(lambda answer: not answer.given, fetch_answer),
            when(lambda number: number == proposal, next_proposal),
            *_is_up(board, leader),
        ],
        effects=[
            by_slot(
                (fetch_answer, leadership, furthest_commit, *empty, next_proposal, latest, *led),
                handle,
                (sent, leadership, furthest_commit, latest, *empty, *reads),
            )
        ],
    )


def _add_fetch_answer(board: Board, follower: BrokerId, leader: BrokerId, fetch: FetchId) -> None:
    slots, own = board.slots, board.fetching_slots(follower)
    awaited, sent, fetch_answer = slots.awaited[leader][follower], slots.fetch[fetch], slots.fetch_answer[fetch]

    def take(at: Values) -> object:
        asked: Fetch = at[sent]
        answer: FetchAnswer = at[fetch_answer]
        before = board.following(follower, at)
        records = () if answer.record is None else (answer.record,)
        given = FetchResponse(
            answer.error, asked.offset, records, answer.high_watermark, Offset(0), answer.high_watermark, answer.diverging
        )
        itself = board.broker(follower, asked.broker_epoch)
        step = handle_fetch_response(
            itself, before, PendingFetch(asked.epoch, asked.offset), given, MonotonicMs(board.numbers.now)
        )
        return {awaited: NO_FETCH_ID, **board.followed(follower, step.state)}

    board.model.action(
        "TakeFetchAnswer",
        {"follower": follower, "leader": leader, "fetch": fetch},
        events=[Arrow(leader, follower, "the answer to a fetch")],
        guards=[
            when(lambda message: message == fetch, awaited),
            when(lambda answer: answer.given, fetch_answer),
        ],
        effects=[by_slot((awaited, *own), take, (sent, fetch_answer, *own))],
    )


# ---- the ISR


def _add_shrink(board: Board, leader: BrokerId, proposal: ProposalId) -> None:
    slots = board.slots
    role, next_proposal, latest = slots.role[leader], slots.next_proposal, slots.latest[leader]

    def shrink(at: Values) -> object:
        own, before = board.leading(leader, at)
        step = consider_shrinking(own, before, MonotonicMs(board.numbers.now))
        new = _proposal(board, proposal, step)
        if new is None:
            return REFUSED
        return {role: role_of(step.state, leader), **new, next_proposal: proposal + 1, latest: proposal}

    board.model.action(
        "ProposeShrink",
        {"leader": leader, "proposal": proposal},
        events=[Arrow(leader, CONTROLLER, "AlterPartition: a smaller ISR")],
        guards=[
            when(lambda role: role.leader == leader, role),
            when(lambda number: number == proposal, next_proposal),
        ],
        effects=[by_slot((role, *board.asked(proposal), next_proposal, latest), shrink, board.as_leader(leader))],
    )


def _add_isr_answer(board: Board, leader: BrokerId, proposal: ProposalId, epoch: Epoch) -> None:
    slots = board.slots
    led = board.led_slots(leader)
    proposed, isr_answer = slots.proposed[proposal], slots.isr_answer[proposal]
    leadership, furthest_commit = _leadership_slots(board, epoch)

    def take(at: Values) -> object:
        own, before = board.leading(leader, at)
        asked: IsrProposal = at[proposed]
        answer: IsrAnswer = at[isr_answer]
        isr = frozenset(IsrMember(member) for member in board.those_in(asked.isr))
        epochs = asked.leader_epoch, asked.partition_epoch
        request = AlterPartitionRequest(leader, asked.broker_epoch, PARTITION, *epochs, isr)
        response = AlterPartitionResponse(
            answer.error, PARTITION, leader, answer.leader_epoch, answer.isr, answer.partition_epoch
        )
        step = handle_alter_partition_response(own, before, request, response, MonotonicMs(board.numbers.now))
        return {
            isr_answer: answer._replace(given=False),
            **_committed(board, epoch, at, before, step.state),
            **board.led(leader, step.state),
        }

    board.model.action(
        "TakeIsrAnswer",
        {"leader": leader, "proposal": proposal, "epoch": epoch},
        events=[Arrow(CONTROLLER, leader, "the answer to AlterPartition")],
        guards=[
            when(lambda asked: asked.leader == leader, proposed),
            when(lambda answer: answer.given, isr_answer),
            when(lambda role: role.leader == leader and role.leader_epoch == epoch, slots.role[leader]),
        ],
        effects=[
            by_slot(
                (isr_answer, leadership, furthest_commit, *led),
                take,
                (proposed, isr_answer, leadership, furthest_commit, *board.as_leader(leader)),
            )
        ],
    )


# ---- stopping


def add_unclean_shutdowns(board: Board) -> None:
    """Brokers stop without warning, and later replay one another's registrations. `control` has how they register."""
    for broker in board.brokers:
        for checkpointed in board.numbers.checkpointed:
            if not board.loses:
                _add_unclean_shutdown(board, broker, checkpointed, None)
            for survives in board.numbers.survives if board.loses else ():
                _add_unclean_shutdown(board, broker, checkpointed, survives)
    for broker, other in board.pairs():
        for broker_epoch in board.numbers.broker_epochs:
            _add_replay_of_registration(board, broker, other, broker_epoch)


def _add_unclean_shutdown(board: Board, broker: BrokerId, checkpointed: Offset, survives: Offset | None) -> None:
    """A broker is killed, and keeps its log; or, where `survives` is given, it loses power, and its log ends there.

    It loses its memory and waits for no answer; its messages stay in flight. It keeps the broker epochs of other brokers,
    because its next incarnation replays at least as much of the metadata.
    """
    slots = board.slots
    led, awaited = board.led_slots(broker), [slots.awaited[leader][broker] for leader in board.others(broker)]
    log, high_watermark, stops = slots.log[broker], slots.high_watermark[broker], slots.unclean_shutdowns
    memory = (slots.broker_epoch[broker], slots.applied[broker], slots.fetcher[broker], slots.latest[broker], stops)
    lost = {} if survives is None else {"survives": survives}

    def stop(at: Values) -> object:
        before, files = LocalLog(at[log], at[high_watermark]), CheckpointedOffsets(high_watermark=checkpointed)
        survived = after_kill(before, files) if survives is None else after_power_loss(before, files, survives)
        after = opened(PARTITION, recover(survived))
        return {
            slots.broker_epoch[broker]: NO_BROKER_EPOCH,
            slots.applied[broker]: NOT_DECIDED,
            slots.fetcher[broker]: after.fetcher,
            slots.latest[broker]: NO_PROPOSAL_ID,
            stops: at[stops] + 1,
            **dict.fromkeys(awaited, NO_FETCH_ID),
            **board.led(broker, after),
        }

    board.model.action(
        "UncleanShutdown",
        {"broker": broker, "checkpointed": checkpointed, **lost},
        events=[Note(broker, "stops without warning" + ("" if survives is None else ", and loses what was not flushed"))],
        guards=[
            when(lambda before: before.partition_epoch >= 0, slots.partition),
            when(lambda number: number < board.parameters["unclean_shutdowns"], stops),
            *_is_up(board, broker),
            when(lambda reached: checkpointed <= reached, high_watermark),
            *([] if survives is None else [when(lambda held: survives <= held.end_offset, log)]),
        ],
        effects=[by_slot((*memory, *awaited, *led), stop, (stops, log, high_watermark))],
    )


def _add_replay_of_registration(board: Board, broker: BrokerId, other: BrokerId, broker_epoch: BrokerEpoch) -> None:
    """A broker replays a registration of another broker: the present or an earlier one."""
    heard = board.slots.heard[other][broker]
    board.model.action(
        "ReplayRegistration",
        {"broker": broker, "other": other, "broker_epoch": broker_epoch},
        events=[Note(broker, f"replays metadata: {other} has registered")],
        guards=[
            when(lambda known: known < broker_epoch, heard),
            when(lambda known: broker_epoch <= known.broker_epoch, board.slots.registered[other]),
        ],
        effects=[then(heard, lambda: broker_epoch)],
    )
