"""The slots of the model `kafka`, the views of them that its actions share, and the guards."""

from functools import partial
from typing import Any, NamedTuple

from model_check.model import REFUSED, Effect, Model, Slot, View, then
from model_check.models.kafka.cluster import Control, image_of
from model_check.models.kafka.party import Log, Rules, committed, face
from model_check.models.kafka.values import (
    NO_EXCHANGE,
    NO_MEMORY,
    NO_ROLE,
    NO_TOPIC,
    Acknowledged,
    Change,
    Cluster,
    Image,
    Process,
    Role,
)
from spec.broker_lifecycle import BrokerLifecycle, BrokerState
from spec.fetcher import NOT_FETCHING
from spec.local_log import LocalLog
from spec.log import EMPTY_LOG
from spec.metadata import BrokerRegistration
from spec.values import NO_EPOCH, BrokerEpoch, BrokerId, Incarnation, Offset

NOT_REPLAYING = -1
"""The lag of a broker that reads no metadata."""

FIRST_RUN = Incarnation(1)


class Slots(NamedTuple):
    """What the state consists of; each but `cluster`, `older`, the producer's and the budgets once for each broker."""

    cluster: Slot
    older: Slot
    lag: dict[int, Slot]
    log: dict[int, Slot]
    role: dict[int, Slot]
    memory: dict[int, Slot]
    fetcher: dict[int, Slot]
    process: dict[int, Slot]
    exchange: dict[int, Slot]
    produced: Slot
    acknowledged: Slot


class Views(NamedTuple):
    """What several actions derive from slots."""

    current: View
    behind: View
    known: dict[int, View]
    face: dict[int, View]
    committed: dict[int, View]


class Board:
    """A model that is being built."""

    def __init__(self, name: str, rules: dict[int, Rules], control: Control, parameters: dict[str, Any]) -> None:
        self.model = Model(name, parameters)
        self.rules = rules
        self.control = control
        self.parameters = parameters
        self.brokers = [BrokerId(broker) for broker in range(1, parameters["brokers"] + 1)]
        if len({rules[broker].protocol.name for broker in self.brokers}) == 1:
            self.model.interchangeable = tuple(self.brokers)
        self.slots = self._slots()
        self.budgets: dict[str, Slot] = {}
        self.views = self._views()

    def _slots(self) -> Slots:
        model, brokers = self.model, self.brokers
        registrations = frozenset(
            BrokerRegistration(broker, BrokerEpoch(1), FIRST_RUN, fenced=False, registered_at=Offset(0))
            for broker in brokers
        )
        lives = {
            broker: BrokerLifecycle(broker, FIRST_RUN, BrokerState.RUNNING, BrokerEpoch(1), ready_to_unfence=True)
            for broker in brokers
        }
        return Slots(
            cluster=model.slot("controller", Cluster(NO_TOPIC, registrations)),
            older=model.slot("olderMetadata", (), bookkeeping=True, holds=tuple[Image, ...]),
            lag=model.broker_slots("metadataLag", brokers, 0),
            log=model.broker_slots("log", brokers, LocalLog(EMPTY_LOG)),
            role=model.broker_slots("role", brokers, NO_ROLE),
            memory=model.broker_slots("memory", brokers, NO_MEMORY),
            fetcher=model.broker_slots("fetcher", brokers, NOT_FETCHING),
            process={
                broker: model.slot("process", Process(True, lives[broker], published=True), broker, broker)
                for broker in brokers
            },
            exchange=model.broker_slots("alterPartition", brokers, NO_EXCHANGE),
            produced=model.slot("produced", 0, bookkeeping=True),
            acknowledged=model.slot("acknowledged", frozenset[Acknowledged](), holds=frozenset[Acknowledged]),
        )

    def _views(self) -> Views:
        view, slots = self.model.view, self.slots
        return Views(
            current=view("current partition", lambda cluster: cluster.topic, slots.cluster),
            behind=view("furthest behind", lambda *lags: max(lags), *slots.lag.values()),
            known={
                broker: view(
                    "known brokers", _known, slots.cluster, slots.older, slots.lag[broker], slots.role[broker], key=broker
                )
                for broker in self.brokers
            },
            face={
                broker: view(
                    "what fetchers see", face, slots.log[broker], slots.role[broker], slots.memory[broker], key=broker
                )
                for broker in self.brokers
            },
            committed={
                broker: view("committed", committed, slots.log[broker], key=broker) for broker in self.brokers
            },
        )

    # ---- what several actions share

    def budget(self, parameter: str) -> Slot | None:
        """How many disturbances of a kind are left; `None` where there are none at all."""
        most = self.parameters[parameter]
        if not most:
            return None
        if parameter not in self.budgets:
            self.budgets[parameter] = self.model.slot(f"{parameter}_left", most, bookkeeping=True)
        return self.budgets[parameter]

    def spend(self, parameter: str) -> Effect:
        """The effect of a disturbance on its budget; none is left, no disturbance."""
        left = self.budget(parameter)
        assert left is not None
        return then(left, lambda number: number - 1 if number else REFUSED, left)

    def published(self) -> list[Effect]:
        """The effects of a decision on who has read the metadata: everybody is one image further behind."""
        slots, behind = self.slots, self.views.behind
        return [
            then(slots.older, _with_image, slots.older, slots.cluster, behind),
            *(then(slots.lag[broker], _one_further, slots.lag[broker]) for broker in self.brokers),
        ]

    def pairs(self) -> list[tuple[BrokerId, BrokerId]]:
        """Every broker with every other one."""
        return [(one, other) for one in self.brokers for other in self.brokers if one != other]

    def replayed(self, broker: BrokerId, steps: int) -> View:
        """What a broker finds when it takes the next `steps` images at once; `None` if there are not so many."""
        slots = self.slots
        return self.model.view(
            f"{steps} decisions", partial(_replay, steps), slots.cluster, slots.older, slots.lag[broker], key=broker
        )


def _known(
    cluster: Cluster, older: tuple[Image, ...], lag: int, role: Role
) -> frozenset[BrokerRegistration]:
    """What the last image that a broker has taken says of all brokers; asked of leaders only."""
    if lag == NOT_REPLAYING or role.leader_epoch == NO_EPOCH:
        return frozenset()
    return older[-lag].brokers if lag else cluster.brokers


def _with_image(older: tuple[Image, ...], cluster: Cluster, behind: int) -> tuple[Image, ...]:
    return _needed((*older, image_of(cluster)), behind + 1)


def _needed(older: tuple[Image, ...], count: int) -> tuple[Image, ...]:
    """The images that somebody has still to take, or has taken last."""
    return older[len(older) - count :] if count > 0 else ()


def _one_further(lag: int) -> int:
    return lag if lag == NOT_REPLAYING else lag + 1


def _replay(steps: int, cluster: Cluster, older: tuple[Image, ...], lag: int) -> Change | None:
    if lag < steps:
        return None
    images = (*older, image_of(cluster))
    return Change(images[-1 - lag], images[-1 - lag + steps])


def trimmed(older: tuple[Image, ...], *lags: int) -> tuple[Image, ...]:
    """The older images that brokers with these lags have need of."""
    return _needed(older, max(lags))


__all__ = ["Board", "Log", "NOT_REPLAYING", "FIRST_RUN", "Slots", "Views", "trimmed"]
