"""Brokers take new metadata: any number of decisions at once, as one difference of two images."""

from typing import Any

from kspec.model_check.core.model import REFUSED, Effect, Local, Note, View, then, when
from kspec.model_check.models.kafka.board import Board, read_change
from kspec.model_check.models.kafka.kraft.reading import Reading
from kspec.model_check.models.kafka.kraft.state import registration
from kspec.model_check.models.kafka.party import PartyState, broker, partition_of
from kspec.model_check.models.kafka.reductions import (
    LeaderToFollow,
    Reduction,
    followed_in,
    is_time_to_follow,
    may_wait_to_follow,
)
from kspec.model_check.models.kafka.replication import held_after
from kspec.model_check.models.kafka.values import (
    NO_TOPIC,
    Image,
    MetadataChange,
    Process,
    TopicRegistration,
)
from kspec.model_check.models.parts import LATE
from kspec.spec.broker.roles import apply_change
from kspec.spec.metadata import PartitionRegistration, local_change
from kspec.spec.values import NO_EPOCH, BrokerId, Epoch


def add_metadata(board: Board, most: int) -> None:
    """Add the replay of metadata, up to `most` decisions at once."""
    for replica in board.brokers:
        for steps in range(1, most + 1):
            _add_replay(board, replica, steps, board.change_after(replica, steps), _time_to_follow(board, replica, steps))


def whole(topic: TopicRegistration) -> PartitionRegistration | None:
    """The partition as a value of `spec`, if it exists."""
    return None if topic == NO_TOPIC else registration(topic)


def apply_image(
    board: Board, replica: BrokerId, before: Image | None, after: Image, held: PartyState, process: Process
) -> PartyState:
    """A broker's state when it has applied one image, and now applies another."""
    rules = board.rules[replica]
    own = broker(rules, replica, process, after.brokers)
    change = local_change(whole(before.topic) if before else None, whole(after.topic), replica)
    return held_after(rules, own, apply_change(own, partition_of(held), change, LATE), held)


def _time_to_follow(board: Board, replica: BrokerId, steps: int) -> list[Local]:
    """The guard of taking these decisions: to follow a leader a replica may wait, see `Reduction.EARLY_FOLLOWING`."""
    slots, protocol = board.slots, board.rules[replica].protocol
    if not board.reduces(Reduction.EARLY_FOLLOWING) or not may_wait_to_follow(protocol, board.asks_who_has_read):
        return []

    def follow(reading: Reading) -> LeaderToFollow | None:
        change = read_change(steps, reading)
        return None if change is None else followed_in(change.after.topic, replica)

    others = [other for other in board.brokers if other != replica]

    def ready(following: LeaderToFollow | None, own: Epoch, *epochs: Epoch) -> bool:
        if following is None:
            return False
        leads_in = dict(zip(others, epochs, strict=True)).get(following.leader, NO_EPOCH)
        return is_time_to_follow(protocol, following, leads_in, own)

    view = board.model.view(f"follow after {steps}", follow, slots.reading[replica], key=replica)
    return [when(ready, view, *[board.views.leads_in[other] for other in [replica, *others]])]


def _add_replay(board: Board, replica: BrokerId, steps: int, change: View, time_to_follow: list[Local]) -> None:
    slots, held = board.slots, board.held(replica)

    def replay(change: MetadataChange | None, process: Process, *before: Any) -> object:
        if change is None:
            return REFUSED
        return apply_image(board, replica, change.before, change.after, PartyState(*before), process)

    board.model.action(
        "ReplayMetadata",
        {"broker": replica, "decisions": steps},
        events=[Note(replica, "replays metadata")],
        guards=[
            when(lambda change: change is not None, change),
            when(lambda process: process.published, slots.process[replica]),
            *time_to_follow,
        ],
        effects=[
            then(held, replay, change, slots.process[replica], *held),
            has_read(board, replica, steps),
        ],
    )


def has_read(board: Board, replica: BrokerId, steps: int) -> Effect:
    """The effect on a broker's unread metadata."""
    reading = board.slots.reading[replica]
    return then(reading, lambda images: images[steps:], reading)
