"""Appends of several requests to one partition, as one."""

from collections.abc import Callable
from itertools import chain

from kspec.impl.broker.calls import Store
from kspec.spec.broker.effects import BatchesAppended


def joined(stores: list[Store]) -> Store:
    """Appends to one partition, each of which begins where the one before ended, as one. If it fails, all have failed."""
    if len(stores) == 1:
        return stores[0]
    changes = [store.change for store in stores if isinstance(store.change, BatchesAppended)]
    assert len(changes) == len(stores), "a produce request does nothing to a log but append to it"
    batches = tuple(chain.from_iterable(change.batches for change in changes))
    payloads = tuple(chain.from_iterable(store.payloads for store in stores))
    change = BatchesAppended(changes[0].base_offset, batches)
    return Store(stores[0].replica, change, payloads, all_of([store.on_failure for store in stores]), separately=True)


def all_of(actions: list[Callable[[], None] | None]) -> Callable[[], None]:
    """One after the other."""

    def act() -> None:
        for action in actions:
            if action is not None:
                action()

    return act
