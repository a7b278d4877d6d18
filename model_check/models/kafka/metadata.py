"""Brokers take what has arrived of the metadata: any number of decisions at once, as one difference of two images."""

from model_check.model import Effect, Note, View, then, when
from model_check.models.kafka.board import Board, trimmed
from model_check.models.kafka.cluster import registration
from model_check.models.kafka.party import LATE, Log, broker, followed, leading
from model_check.models.kafka.replication import Led, led_after
from model_check.models.kafka.values import NO_TOPIC, Acknowledged, Change, Exchange, Image, Memory, Process, Role, Topic
from spec.fetcher import FetchState
from spec.metadata import PartitionRegistration, local_change
from spec.roles import apply_change
from spec.values import BrokerId


def add_metadata(board: Board, most: int) -> None:
    """Add the replay of metadata, up to `most` decisions at once."""
    for replica in board.brokers:
        for steps in range(1, most + 1):
            _add_replay(board, replica, steps, board.replayed(replica, steps))


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
    known: frozenset[Acknowledged],
    fetcher: FetchState,
    process: Process,
) -> tuple[*Led, FetchState]:
    """What becomes of a broker's slots when it has applied one image, and now applies another."""
    rules = board.rules[replica]
    own = broker(rules, replica, process, after.brokers)
    partition = leading(log, role, memory)._replace(fetcher=fetcher)
    change = local_change(whole(before.topic) if before else None, whole(after.topic), replica)
    step = apply_change(own, partition, change, LATE)
    _, role, memory, exchange, known = led_after(replica, partition, step, exchange, known)
    log, fetcher = followed(rules, own, step.state)
    return log, role, memory, exchange, known, fetcher


def _add_replay(board: Board, replica: BrokerId, steps: int, change: View) -> None:
    slots = board.slots
    party = (
        slots.log[replica],
        slots.role[replica],
        slots.memory[replica],
        slots.exchange[replica],
        slots.acknowledged,
        slots.fetcher[replica],
    )

    def replay(
        log: Log,
        role: Role,
        memory: Memory,
        exchange: Exchange,
        known: frozenset[Acknowledged],
        fetcher: FetchState,
        process: Process,
        change: Change,
    ) -> object:
        return apply_image(
            board, replica, change.before, change.after, log, role, memory, exchange, known, fetcher, process
        )

    board.model.action(
        "ReplayMetadata",
        {"broker": replica, "decisions": steps},
        events=[Note(replica, "replays metadata")],
        guards=[
            when(lambda change: change is not None, change),
            when(lambda process: process.published, slots.process[replica]),
        ],
        effects=[
            then(party, replay, *party, slots.process[replica], change),
            *read_effects(board, replica, steps),
        ],
    )


def read_effects(board: Board, replica: BrokerId, steps: int) -> list[Effect]:
    """The effects on who has read what."""
    slots = board.slots
    others = [slots.lag[other] for other in board.brokers if other != replica]
    return [
        then(slots.lag[replica], lambda lag: lag - steps, slots.lag[replica]),
        then(
            slots.older,
            lambda older, lag, *lags: trimmed(older, lag - steps, *lags),
            slots.older,
            slots.lag[replica],
            *others,
        ),
    ]
