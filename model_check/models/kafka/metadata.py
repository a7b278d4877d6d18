"""Brokers take what has arrived of the metadata: any number of decisions at once, as one difference of two images."""

from collections.abc import Callable
from functools import partial

from model_check.model import Note, then, when
from model_check.models.kafka.board import Board, trimmed
from model_check.models.kafka.cluster import registration
from model_check.models.kafka.party import (
    LATE,
    Log,
    broker,
    fetcher_of,
    leading,
)
from model_check.models.kafka.replication import led_after
from model_check.models.kafka.values import NO_TOPIC, Acknowledged, Change, Exchange, Memory, Process, Role, Topic
from spec.fetcher import FetchState
from spec.metadata import LocalChange, PartitionRegistration, local_change
from spec.roles import apply_change
from spec.values import BrokerId


def add_metadata(board: Board, most: int) -> None:
    """Add the replay of metadata, up to `most` decisions at once."""
    for replica in board.brokers:
        for steps in range(1, most + 1):
            _add_replay(board, replica, steps)


def _registration(topic: Topic) -> PartitionRegistration | None:
    return None if topic == NO_TOPIC else registration(topic)


def _asked(change: Change, replica: BrokerId, published: bool) -> LocalChange:
    before = _registration(change.before.topic) if published else None
    return local_change(before, _registration(change.after.topic), replica)


def _add_replay(board: Board, replica: BrokerId, steps: int) -> None:
    slots, rules = board.slots, board.rules[replica]
    change = board.replayed(replica, steps)
    party = (slots.log[replica], slots.role[replica], slots.memory[replica], slots.exchange[replica], slots.acknowledged)

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
        own = broker(rules, replica, process, change.after.brokers)
        before = leading(log, role, memory)._replace(fetcher=fetcher)
        step = apply_change(own, before, _asked(change, replica, published=True), LATE)
        return (*led_after(before, step, exchange, known), fetcher_of(rules, step.state))

    board.model.action(
        "ReplayMetadata",
        {"broker": replica, "decisions": steps},
        events=[Note(replica, "replays metadata")],
        guards=[
            when(lambda change: change is not None, change),
            when(lambda process: process.published, slots.process[replica]),
        ],
        effects=[
            then((*party, slots.fetcher[replica]), replay, *party, slots.fetcher[replica], slots.process[replica], change),
            *read_effects(board, replica, steps),
        ],
    )


def read_effects(board: Board, replica: BrokerId, steps: int) -> list:  # type: ignore[type-arg]
    """The effects on who has read what."""
    slots = board.slots
    others = [slots.lag[other] for other in board.brokers if other != replica]

    def needed(older: tuple[object, ...], lag: int, *lags: int) -> object:
        return trimmed(older, lag - steps, *lags)  # type: ignore[arg-type]

    return [
        then(slots.lag[replica], lambda lag: lag - steps, slots.lag[replica]),
        then(slots.older, needed, slots.older, slots.lag[replica], *others),
    ]


__all__ = ["add_metadata", "read_effects", "partial", "Callable"]
