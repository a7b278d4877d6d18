"""Brokers take what has arrived of the metadata: any number of decisions at once, as one difference of two images."""

from typing import NamedTuple

from model_check.core.model import REFUSED, Effect, Local, Note, View, then, when
from model_check.models.kafka.board import Board, read_change
from model_check.models.kafka.kraft.reading import Reading
from model_check.models.kafka.kraft.state import registration
from model_check.models.kafka.party import LATE, Log, broker, followed, leading
from model_check.models.kafka.replication import Led, led_after
from model_check.models.kafka.values import (
    NO_TOPIC,
    Change,
    Clients,
    Exchange,
    Image,
    Memory,
    Process,
    Role,
    Topic,
)
from spec.broker.roles import apply_change
from spec.broker.rules.fetcher import FetchState
from spec.log.record_log import EMPTY_LOG
from spec.metadata import PartitionRegistration, local_change
from spec.values import NO_EPOCH, NO_LEADER, BrokerId, Epoch, Offset, Record

TWO_RECORDS = EMPTY_LOG.append((Record(1, Epoch(0)), Record(2, Epoch(0))))


def add_metadata(board: Board, most: int) -> None:
    """Add the replay of metadata, up to `most` decisions at once."""
    for replica in board.brokers:
        for steps in range(1, most + 1):
            _add_replay(board, replica, steps, board.change_after(replica, steps), _worth_while(board, replica, steps))


def whole(topic: Topic) -> PartitionRegistration | None:
    """The partition as the rules have it, if it exists."""
    return None if topic == NO_TOPIC else registration(topic)


def apply_image(
    board: Board,
    replica: BrokerId,
    before: Image | None,
    after: Image,
    log: Log,
    role: Role,
    memory: Memory,
    exchange: Exchange,
    known: Clients,
    fetcher: FetchState,
    process: Process,
) -> tuple[*Led, FetchState]:
    """What becomes of a broker's slots when it has applied one image, and now applies another."""
    rules = board.rules[replica]
    own = broker(rules, replica, process, after.brokers)
    partition = leading(log, role, memory)._replace(fetcher=fetcher)
    change = local_change(whole(before.topic) if before else None, whole(after.topic), replica)
    step = apply_change(own, partition, change, LATE)
    _, role, memory, exchange, known = led_after(rules, replica, step, exchange, known)
    log, fetcher = followed(rules, own, step.state)
    return log, role, memory, exchange, known, fetcher


class Following(NamedTuple):
    """Whom an image makes a broker follow, since which epoch, or that it makes it do something else."""

    leader: BrokerId
    leader_epoch: Epoch
    otherwise: bool = False


def _worth_while(board: Board, replica: BrokerId, steps: int) -> list[Local]:
    """Whether the replica takes these decisions now: to follow a leader, only once that leader leads in the epoch.

    To follow it before comes to nothing, for it would not serve. So a replica that waits is as good as one that has not
    read yet, and may do what that one may. This is not so where a replica that begins to follow cuts its log right away, or
    where one that leads again would rely on what it knew of its followers had it not followed in between.
    """
    slots, protocol = board.slots, board.rules[replica].protocol
    if protocol.start_following(TWO_RECORDS, Offset(0)).kept_end < TWO_RECORDS.end_offset or board.asks_who_has_read:
        return []

    def follow(reading: Reading) -> Following | None:
        change = read_change(steps, reading)
        if change is None:
            return None
        topic = change.after.topic
        if topic.leader == replica or replica not in topic.replicas:
            return Following(NO_LEADER, NO_EPOCH, otherwise=True)
        return Following(topic.leader, topic.leader_epoch)

    others = [other for other in board.brokers if other != replica]
    relies = protocol.knows_followers(True, Epoch(0), Epoch(2))

    def ready(following: Following | None, *epochs: Epoch) -> bool:
        if following is None:
            return False
        leads_in = dict(zip(others, epochs, strict=False)).get(following.leader, NO_EPOCH)
        own = epochs[-1]
        return following.otherwise or following.leader_epoch == leads_in or (relies and own != NO_EPOCH)

    view = board.model.view(f"follow after {steps}", follow, slots.reading[replica], key=replica)
    return [when(ready, view, *[board.views.office[other] for other in [*others, replica]])]


def _add_replay(board: Board, replica: BrokerId, steps: int, change: View, worth_while: list[Local]) -> None:
    slots = board.slots
    party = (
        slots.log[replica],
        slots.role[replica],
        slots.memory[replica],
        slots.exchange[replica],
        slots.clients,
        slots.fetcher[replica],
    )

    def replay(
        log: Log,
        role: Role,
        memory: Memory,
        exchange: Exchange,
        known: Clients,
        fetcher: FetchState,
        process: Process,
        change: Change | None,
    ) -> object:
        if change is None:
            return REFUSED
        return apply_image(board, replica, change.before, change.after, log, role, memory, exchange, known, fetcher, process)

    board.model.action(
        "ReplayMetadata",
        {"broker": replica, "decisions": steps},
        events=[Note(replica, "replays metadata")],
        guards=[
            when(lambda change: change is not None, change),
            when(lambda process: process.published, slots.process[replica]),
            *worth_while,
        ],
        effects=[
            then(party, replay, *party, slots.process[replica], change),
            has_read(board, replica, steps),
        ],
    )


def has_read(board: Board, replica: BrokerId, steps: int) -> Effect:
    """The effect on what a broker has still to read."""
    reading = board.slots.reading[replica]
    return then(reading, lambda images: images[steps:], reading)
