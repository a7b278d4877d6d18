"""Model `transactions` as one real broker carries it out.

The broker does some things by itself and at once: its log commits the coordinator's record, a leader that has heard from
the coordinator appends, and takes the markers. So in a run nothing else happens before these are done. What needs another
broker is left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from kspec.model_check.core.model import Action, Local, Model, Slot, State, when
from kspec.model_check.models import MODELS
from kspec.model_check.models.transactions.producers import is_with_leader
from kspec.model_check.models.transactions.values import TransactionalProducer, TransactionExchange
from kspec.spec.releases.transactions.history import TRANSACTION_RELEASES
from kspec.spec.values import Error

MODEL = "transactions"
BY_ITSELF = ("CommitRecord", "Append", "AppendLate", "WriteMarker")
"""The actions that a broker takes by itself."""

DELAY_MARKER = "DelayMarker"
"""The connection to a leader breaks while a marker is under way: that is before the marker is written again."""

LEFT_OUT = {
    "RefuseRecord": "a log that refuses a record needs a replica that is missing",
    "CommitLate": "a record that is committed late needs a replica that is slow",
    "LoadUncommitted": "another broker has a record that not all in sync have",
    "CommitLoaded": "it is committed after another broker has loaded it",
    "ChangeLeader": "a partition that gets another leader needs another broker",
    "Rebalance": "the members of a group are not played",
}
"""Actions that are not replayed, each with the reason."""

FIRST_WITH_VERSIONS = (4, 0)
"""The first release whose clusters have a version of transactions; before, it is 0."""


class NoTransactionsRunError(ValueError):
    """There is no such run, or none that can be replayed: one line says why."""


def release_of(kafka: str) -> str:
    """The rules of a version of Kafka: those of the latest release, up to it, that has changed them."""
    known = [one.name for one in TRANSACTION_RELEASES if one.name[0].isdigit()]
    return [name for name in known if _numbers(name) <= _numbers(kafka)][-1]


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def has_versions(kafka: str) -> bool:
    """Whether the clusters of a release have a version of transactions."""
    return _numbers(kafka)[:2] >= FIRST_WITH_VERSIONS


def prompt_model(parameters: Mapping[str, Any]) -> Model:
    """The model without what one broker cannot show: nothing happens before the broker has done what it does by itself."""
    model = MODELS[MODEL].build(parameters)
    waits = tuple(_at_rest(model))
    model.actions = [
        action if action.name in (*BY_ITSELF, DELAY_MARKER) else replace(action, guards=(*action.guards, *waits))
        for action in model.actions
        if why_not(action) is None
    ]
    _add_fences(model)
    return model


FENCED_BY_NOBODY, FENCED_BY_ITSELF = "FencedByNobody", "FencedByItself"
"""Properties of one producer that is alone: of it, whose late request has not arrived yet; and of one whose has."""


def _add_fences(model: Model) -> None:
    """No producer is told that it is fenced; in most models another one, or time, may have done that."""
    producers = slots_of(model, "producer")
    late = slots_of(model, "late")

    def by_nobody(state: TransactionalProducer, *requests: TransactionExchange | None) -> bool:
        return state.failed != Error.PRODUCER_FENCED or any(one is None for one in requests)

    def by_itself(state: TransactionalProducer) -> bool:
        return state.failed != Error.PRODUCER_FENCED

    model.always(FENCED_BY_NOBODY, [when(by_nobody, producers[0], *late)], "nobody fences a producer that is alone")
    model.always(FENCED_BY_ITSELF, [when(by_itself, producers[0])], "no producer that is alone is fenced")


def why_not(action: Action) -> str | None:
    """The reason why an action is not replayed, `None` if it is."""
    if action.name == "MoveCoordinator" and action.args["kept"]:
        return "the record that is under way is committed before anything else happens"
    return LEFT_OUT.get(action.name)


def _at_rest(model: Model) -> Iterator[Local]:
    """The broker has nothing to do by itself."""
    for slot in model.slots:
        if slot.name == "append" or slot.name.startswith("marker "):
            yield when(lambda value: value is None, slot)
        elif slot.name in ("exchange", "late"):
            yield when(lambda found: found is None or not is_with_leader(found), slot)


class BrokerStep(NamedTuple):
    """A step of a run, and the states before and after it."""

    action: Action
    before: State
    after: State


def settled(model: Model, state: State, but: frozenset[int] = frozenset()) -> State:
    """The state when the broker has done what it does by itself; markers for some partitions stay under way."""
    fire = [action for action in model.actions if action.name in BY_ITSELF and _partition(action) not in but]
    while True:
        after = next((found for action in fire if (found := action.bind()(state)) is not None), None)
        if after is None:
            return state
        state = after


def _partition(action: Action) -> int:
    return int(action.args["partition"]) if action.name == "WriteMarker" else -1  # type: ignore[arg-type]


def slots_of(model: Model, name: str) -> list[Slot]:
    """All slots of a name."""
    return [slot for slot in model.slots if slot.name == name]
