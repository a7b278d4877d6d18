"""The slots of the model `kafka`, the views of them that its actions share, and the guards."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from model_check.model import PRODUCER, REFUSED, Effect, Local, Model, Slot, View, then, when
from model_check.models.kafka.cluster import Control, controller_state, image_of
from model_check.models.kafka.party import Rules, committed, face
from model_check.models.kafka.values import (
    NO_EXCHANGE,
    NO_MEMORY,
    NO_ROLE,
    NO_TOPIC,
    NOTHING_SEEN,
    Change,
    Cluster,
    Exchange,
    Image,
    Process,
    Role,
    Topic,
    Under,
)
from spec.alter_partition import AfterError
from spec.broker_lifecycle import BrokerLifecycle, BrokerState
from spec.controller import check_alter_partition_request
from spec.fetcher import NOT_FETCHING
from spec.local_log import LocalLog
from spec.log import EMPTY_LOG
from spec.metadata import NOBODY, BrokerRegistration
from spec.values import NO_EPOCH, BrokerEpoch, BrokerId, Epoch, Error, Incarnation, Offset

Known = frozenset[BrokerRegistration]

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
    clients: Slot


class Reading(NamedTuple):
    """Who reads metadata: how far the furthest is behind, and who is not behind at all."""

    furthest: int
    up_to_date: frozenset[BrokerId]


class Views(NamedTuple):
    """What several actions derive from slots."""

    current: View
    reading: View
    known: dict[int, View]
    office: dict[int, View]
    face: dict[int, View]
    committed: dict[int, View]


class Decided(NamedTuple):
    """A decision of the controller as part of an action."""

    guard: Local
    effects: list[Effect]


_FINAL = (Error.FENCED_LEADER_EPOCH, Error.INVALID_UPDATE_VERSION)
"""What the controller says of a proposal that is out of date, and will say of it for ever."""


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
        self._others_reading: dict[BrokerId, View] = {}
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
            clients=model.slot("clients", NOTHING_SEEN, party=PRODUCER),
        )

    def _views(self) -> Views:
        view, slots = self.model.view, self.slots
        return Views(
            current=view("current partition", lambda cluster: cluster.topic, slots.cluster),
            reading=self._reading(None),
            known={
                broker: view(
                    "known brokers",
                    partial(_known, broker),
                    slots.cluster,
                    slots.older,
                    slots.lag[broker],
                    slots.role[broker],
                    key=broker,
                )
                for broker in self.brokers
            },
            office={
                broker: view("leads in", partial(_leads_in, broker), slots.role[broker], slots.process[broker], key=broker)
                for broker in self.brokers
            },
            face={
                broker: view(
                    "what fetchers see", face, slots.log[broker], slots.role[broker], slots.memory[broker], key=broker
                )
                for broker in self.brokers
            },
            committed={broker: view("committed", committed, slots.log[broker], key=broker) for broker in self.brokers},
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

    def _reading(self, without: BrokerId | None) -> View:
        """Who reads metadata, apart from one broker."""
        others = [broker for broker in self.brokers if broker != without]
        lags = [self.slots.lag[broker] for broker in others]

        def look(*behind: int) -> Reading:
            up_to_date = (broker for broker, lag in zip(others, behind, strict=True) if lag == 0)
            return Reading(max((0, *behind)), frozenset(up_to_date))

        return self.model.view("who reads metadata", look, *lags, key=without)

    def decision(self, name: str, function: Callable[..., Cluster | None], *reads: Slot) -> View:
        """What the controller decides on something, `None` if it decides nothing; for `decided`."""
        return self.model.view(name, function, *reads)

    def decided(self, decision: View, *, leaves: BrokerId | None = None, writes: Sequence[Slot] = ()) -> Decided:
        """The guard of a decision, and its effects: on the controller, on what brokers have still to read, on requests.

        A broker that `leaves`, or that begins to read with this very decision, has effects of its own on what it reads.
        Requests in the slots that the action `writes` itself are left alone. A request that the controller is bound to
        refuse from now on, to no effect on its sender, is forgotten right away.
        """
        slots = self.slots
        reading = self.views.reading if leaves is None else self._reading_without(leaves)
        effects = [
            then(slots.cluster, lambda after: after, decision),
            then(slots.older, _older_after, slots.older, slots.cluster, decision, reading),
        ]
        for broker in self.brokers:
            if broker != leaves:
                lag = slots.lag[broker]
                effects.append(then(lag, partial(_lag_after, broker), lag, slots.cluster, decision))
            if slots.exchange[broker] not in writes:
                exchange = slots.exchange[broker]
                effects.append(then(exchange, partial(self._unless_in_vain, broker), exchange, decision))
        return Decided(when(lambda after: after is not None, decision), effects)

    def _reading_without(self, broker: BrokerId) -> View:
        if broker not in self._others_reading:
            self._others_reading[broker] = self._reading(broker)
        return self._others_reading[broker]

    def _unless_in_vain(self, leader: BrokerId, exchange: Exchange, after: Cluster | None) -> Exchange:
        if after is None or exchange.state != Under.SENT:
            return exchange
        error = check_alter_partition_request(self.control.protocol, controller_state(after).image, exchange.request)
        if error in _FINAL and self.rules[leader].protocol.on_isr_error(error) == AfterError.AWAIT_METADATA:
            return NO_EXCHANGE
        return exchange

    def pairs(self) -> list[tuple[BrokerId, BrokerId]]:
        """Every broker with every other one."""
        return [(one, other) for one in self.brokers for other in self.brokers if one != other]

    def replayed(self, broker: BrokerId, steps: int) -> View:
        """What a broker finds when it takes the next `steps` images at once; `None` if it need not be looked at.

        That is so if there are not so many, or if the one after that would be the same to this broker.
        """
        slots = self.slots
        return self.model.view(
            f"{steps} decisions",
            partial(replayed_change, broker, steps),
            slots.cluster,
            slots.older,
            slots.lag[broker],
            key=broker,
        )

    @property
    def asks_who_has_read(self) -> bool:
        """Whether the controller unfences only brokers that have read all metadata."""
        cluster: Cluster = self.model.initial[self.slots.cluster.position]
        image = controller_state(cluster).image
        return not self.control.protocol.caught_up(image, image.brokers[0], Offset(image.end_offset - 2))

    def keeps_its_past(self, broker: BrokerId) -> bool:
        """Whether a broker that starts may act on metadata that were old by then."""
        return self.rules[broker].protocol.acts_on_metadata(Offset(0), Offset(1))


def is_same_to(broker: BrokerId, image: Image | Cluster, following: Image | Cluster) -> bool:
    """Whether a broker that has taken an image does nothing about the following one.

    A broker that does not lead only looks at who leads since when, and at whether it has a replica. So in the model it takes
    the following image at once: nobody could tell, and to be behind in reading does nothing but prevent.
    """
    one, other = image.topic, following.topic
    if one.leader == broker:
        return _public(one) == _public(other) and _only_unfenced(image.brokers, following.brokers)
    as_before = one.leader == other.leader and one.leader_epoch == other.leader_epoch
    return as_before and (broker in one.replicas) == (broker in other.replicas)


def _public(topic: Topic) -> Topic:
    return topic._replace(recovery=NO_TOPIC.recovery, elr=NOBODY, last_known_elr=NOBODY)


def _only_unfenced(brokers: Known, following: Known) -> bool:
    """Whether nothing has happened but that brokers take part again.

    A leader learns that at once: the controller's decision could as well have been made when the leader learns of it.
    """
    changed = following - brokers
    return {entry._replace(fenced=True) for entry in changed} == brokers - following


def _known(broker: BrokerId, cluster: Cluster, older: tuple[Image, ...], lag: int, role: Role) -> Known:
    """What the last image that a broker has taken says of all brokers; asked of leaders only."""
    if lag == NOT_REPLAYING or role.leader != broker:
        return frozenset()
    return older[-lag].brokers if lag else cluster.brokers


def _leads_in(broker: BrokerId, role: Role, process: Process) -> Epoch:
    """The epoch in which a broker leads, as far as it knows; `NO_EPOCH` if it does not."""
    return role.leader_epoch if role.leader == broker and process.up else NO_EPOCH


def _older_after(older: tuple[Image, ...], cluster: Cluster, after: Cluster | None, reading: Reading) -> tuple[Image, ...]:
    if after is None:
        return older
    behind = any(not is_same_to(broker, cluster, after) for broker in reading.up_to_date)
    return _needed((*older, image_of(cluster)), reading.furthest + 1 if reading.furthest else int(behind))


def _lag_after(broker: BrokerId, lag: int, cluster: Cluster, after: Cluster | None) -> int:
    if lag == NOT_REPLAYING or after is None:
        return lag
    return 0 if lag == 0 and is_same_to(broker, cluster, after) else lag + 1


def _needed(older: tuple[Image, ...], count: int) -> tuple[Image, ...]:
    """The images that somebody has still to take, or has taken last."""
    return older[len(older) - count :] if count > 0 else ()


def replayed_change(broker: BrokerId, steps: int, cluster: Cluster, older: tuple[Image, ...], lag: int) -> Change | None:
    """See `Board.replayed`."""
    if lag < steps:
        return None
    images = (*older, image_of(cluster))
    taken = len(images) - 1 - lag + steps
    if taken + 1 < len(images) and is_same_to(broker, images[taken], images[taken + 1]):
        return None
    return Change(images[-1 - lag], images[taken])


def trimmed(older: tuple[Image, ...], *lags: int) -> tuple[Image, ...]:
    """The older images that brokers with these lags have need of."""
    return _needed(older, max(lags))
