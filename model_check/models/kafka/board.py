"""The slots of the model `kafka`, the views of them that its actions share, and the guards."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from kspec.model_check.core.model import PRODUCER, REFUSED, Effect, Local, Model, Slot, View, then, when
from kspec.model_check.models.carriers import empty_log
from kspec.model_check.models.kafka.kraft.reading import Reading, with_image
from kspec.model_check.models.kafka.kraft.state import controller_state
from kspec.model_check.models.kafka.party import PartyRules, PartyState, committed, leading, next_request, seen_by_fetchers
from kspec.model_check.models.kafka.reductions import OUT_OF_DATE, Reduction, image_for, unless_in_vain
from kspec.model_check.models.kafka.values import (
    FIRST_CONTROLLER,
    NO_EXCHANGE,
    NO_MEMORY,
    NO_ORDERS,
    NO_TOPIC,
    NOTHING_LATE,
    NOTHING_SEEN,
    AlterPartitionExchange,
    AnyCluster,
    Image,
    Inbox,
    MetadataChange,
    ModelController,
    Process,
    RequestState,
    ZkCluster,
)
from kspec.model_check.models.kafka.words import reading_in_words
from kspec.model_check.models.kafka.zookeeper.state import ZkDecision, live_now, outcome_of_proposal, with_mail
from kspec.model_check.models.parts import NO_ROLE, Role
from kspec.spec.broker.rules.fetcher import NOT_FETCHING
from kspec.spec.broker.rules.isr.proposal import nothing_pending
from kspec.spec.broker.rules.isr.request import IsrWriter
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from kspec.spec.controller.partitions import check_alter_partition_request
from kspec.spec.controller.protocol import Controller
from kspec.spec.log.local_log import LocalLog
from kspec.spec.metadata import BrokerRegistration
from kspec.spec.values import NO_EPOCH, BrokerEpoch, BrokerId, Epoch, Error, Incarnation, Offset
from kspec.spec.zookeeper.protocol import ZkController

Known = frozenset[BrokerRegistration]
NOBODY_KNOWN: Known = frozenset()

FIRST_INCARNATION = Incarnation(1)


class Slots(NamedTuple):
    """The slots of the state; each exists once for each broker, except `cluster`, the producer's slots and the budgets.

    `cluster`: the state of a KRaft controller, or of ZooKeeper and its controller. `reading`: the metadata that a broker
    reads (KRaft). `inbox`: the requests that it has still to handle, and `heard`: the latest controller epoch that it knows
    (ZooKeeper). `late`: a follower's late fetch, `copy`: the second copy of a leader's AlterPartition request; no slots
    where the bounds allow none.
    """

    cluster: Slot
    reading: dict[int, Slot]
    inbox: dict[int, Slot]
    heard: dict[int, Slot]
    log: dict[int, Slot]
    role: dict[int, Slot]
    memory: dict[int, Slot]
    fetcher: dict[int, Slot]
    process: dict[int, Slot]
    exchange: dict[int, Slot]
    produced: Slot
    clients: Slot
    late: dict[int, Slot]
    copy: dict[int, Slot]


class Views(NamedTuple):
    """The views of slots that several actions read."""

    current: View
    known: dict[int, View]
    leads_in: dict[int, View]
    seen_by_fetchers: dict[int, View]
    committed: dict[int, View]
    request: dict[int, View]


AnyDecision: TypeAlias = ModelController | ZkDecision
"""A decision of the controller."""


class ControllerDecision(NamedTuple):
    """A decision of the controller as part of an action."""

    guard: Local
    effects: list[Effect]


class Board:
    """A model under construction, with a controller of either kind."""

    def __init__(
        self, name: str, rules: dict[int, PartyRules], control: Controller | ZkController, parameters: dict[str, Any]
    ) -> None:
        self.model = Model(name, parameters)
        self.rules = rules
        self.control = control
        self.parameters = parameters
        self.brokers = [BrokerId(broker) for broker in range(1, parameters["brokers"] + 1)]
        if len({rules[broker].protocol.name for broker in self.brokers}) == 1:
            self.model.interchangeable = tuple(broker for broker in self.brokers if broker != parameters["only_stops"])
        self._changes: dict[tuple[BrokerId, int], View] = {}
        self.slots = self._slots()
        for broker, process in self.slots.process.items():
            self.model.silent[broker] = when(lambda process: not process.up, process)
        self.budgets: dict[str, Slot] = {}
        self.views = self._views()

    @property
    def reductions(self) -> frozenset[Reduction]:
        """The reductions that are on: the same for all brokers."""
        return self.rules[self.brokers[0]].reductions

    def reduces(self, reduction: Reduction) -> bool:
        """Whether a reduction is on."""
        return reduction in self.reductions

    @property
    def has_zookeeper(self) -> bool:
        """Whether the controller works on ZooKeeper, and sends requests to brokers."""
        return isinstance(self.control, ZkController)

    @property
    def stops_uncleanly(self) -> bool:
        """Whether brokers may stop without warning."""
        return any(self.parameters[kind] for kind in ("unclean_shutdowns", "epoch_file_losses"))

    @property
    def kraft(self) -> Controller:
        """The KRaft controller's rules and settings."""
        assert isinstance(self.control, Controller)
        return self.control

    @property
    def zookeeper(self) -> ZkController:
        """The rules and settings of the controller that works on ZooKeeper."""
        assert isinstance(self.control, ZkController)
        return self.control

    def _slots(self) -> Slots:
        model, brokers = self.model, self.brokers
        registrations = frozenset(
            BrokerRegistration(broker, BrokerEpoch(1), FIRST_INCARNATION, fenced=False, registered_at=Offset(0))
            for broker in brokers
        )
        lives = {
            broker: BrokerLifecycle(broker, FIRST_INCARNATION, BrokerState.RUNNING, BrokerEpoch(1), ready_to_unfence=True)
            for broker in brokers
        }
        reading: dict[int, Slot] = {}
        inbox: dict[int, Slot] = {}
        heard: dict[int, Slot] = {}
        if isinstance(self.control, ZkController):
            live = live_now(self.control.protocol, registrations)
            cluster = model.slot("zookeeper", ZkCluster(NO_TOPIC, registrations, live=live))
            inbox = model.broker_slots("requests", brokers, NO_ORDERS)
            heard = model.broker_slots("controllerEpoch", brokers, FIRST_CONTROLLER)
        else:
            empty = ModelController(NO_TOPIC, registrations)
            cluster = model.slot("controller", empty)
            reading = {broker: self._reading_slot(broker, empty) for broker in brokers}
        return Slots(
            cluster=cluster,
            reading=reading,
            inbox=inbox,
            heard=heard,
            log=model.broker_slots("log", brokers, LocalLog(empty_log(self.parameters))),
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
            late=model.broker_slots("lateFetch", brokers, NOTHING_LATE) if self.parameters["late_fetches"] else {},
            copy=model.broker_slots("copyOfAlterPartition", brokers, NO_EXCHANGE)
            if self.parameters["late_proposals"]
            else {},
        )

    def _reading_slot(self, broker: BrokerId, empty: ModelController) -> Slot:
        first = (self.image_for(broker, empty),)
        return self.model.slot("metadata", first, broker, broker, holds=Reading, words=reading_in_words)

    def _known(self, broker: BrokerId) -> View:
        """A leader's view of all brokers; up to 2.8 no rule reads it."""
        role = self.slots.role[broker]
        if self.has_zookeeper:
            return self.model.view("known brokers", lambda role: NOBODY_KNOWN, role, key=broker)
        return self.model.view("known brokers", partial(_known, broker), self.slots.reading[broker], role, key=broker)

    def _views(self) -> Views:
        view, slots = self.model.view, self.slots
        return Views(
            current=view("current partition", lambda cluster: cluster.topic, slots.cluster),
            known={broker: self._known(broker) for broker in self.brokers},
            leads_in={
                broker: view("leads in", partial(_leads_in, broker), slots.role[broker], slots.process[broker], key=broker)
                for broker in self.brokers
            },
            seen_by_fetchers={
                broker: view(
                    "what fetchers see",
                    leading if self.rules[broker].protocol.answers_after_fetch else seen_by_fetchers,
                    slots.log[broker],
                    slots.role[broker],
                    slots.memory[broker],
                    key=broker,
                )
                for broker in self.brokers
            },
            committed={broker: view("committed", committed, slots.log[broker], key=broker) for broker in self.brokers},
            request={
                broker: view(
                    "next request",
                    partial(next_request, self.rules[broker], broker),
                    slots.log[broker],
                    slots.fetcher[broker],
                    slots.process[broker],
                    key=broker,
                )
                for broker in self.brokers
            },
        )

    # ---- what several actions share

    def budget(self, parameter: str) -> Slot | None:
        """The budget of a disturbance; `None` if the bounds allow none."""
        most = self.parameters[parameter]
        if not most:
            return None
        if parameter not in self.budgets:
            self.budgets[parameter] = self.model.slot(f"{parameter}_left", most, bookkeeping=True)
        return self.budgets[parameter]

    def spend(self, parameter: str) -> Effect:
        """The effect of a disturbance on its budget; it is disabled when the budget is used up."""
        left = self.budget(parameter)
        assert left is not None
        return then(left, lambda number: number - 1 if number else REFUSED, left)

    def decision(self, name: str, function: Callable[..., AnyDecision | None], *reads: Slot) -> View:
        """The controller's decision, `None` if there is none; for `decided`."""
        return self.model.view(name, function, *reads)

    def decided(self, decision: View, *, leaves: BrokerId | None = None, writes: Sequence[Slot] = ()) -> ControllerDecision:
        """The guard of a decision, and its effects on the controller, on the brokers' unread metadata, and on requests.

        A broker that `leaves`, or that begins to read with this decision, has its own effects on its metadata. The action
        itself changes requests in the slots that it `writes`. Requests in other slots may be obsolete after the decision.
        """
        slots = self.slots
        effects = [then(slots.cluster, _cluster_after, decision)]
        for broker in self.brokers:
            if self.has_zookeeper:
                inbox = slots.inbox[broker]
                effects.append(then(inbox, partial(self._is_told, broker), inbox, decision))
            elif broker != leaves:
                reading = slots.reading[broker]
                effects.append(then(reading, partial(self._has_to_read, broker), reading, decision))
            if self._proposals_may_be_in_vain(broker) and slots.exchange[broker] not in writes:
                exchange = slots.exchange[broker]
                effects.append(then(exchange, partial(self._unless_in_vain, broker), exchange, decision))
            copy = slots.copy.get(broker)
            if copy is not None and copy not in writes and self.reduces(Reduction.VAIN_PROPOSALS):
                effects.append(then(copy, self._unless_out_of_date, copy, decision))
        return ControllerDecision(when(lambda after: after is not None, decision), effects)

    def image_for(self, broker: BrokerId, cluster: ModelController) -> Image:
        """The parts of the metadata that a broker uses."""
        if self.reduces(Reduction.UNREAD_FIELDS):
            return image_for(broker, cluster, self.reads_its_registration(broker))
        return Image(cluster.topic, cluster.brokers)

    def _is_told(self, broker: BrokerId, inbox: Inbox, decision: ZkDecision | None) -> Inbox:
        return inbox if decision is None else with_mail(broker, inbox, decision, self.reductions)

    def _has_to_read(self, broker: BrokerId, reading: Reading, after: ModelController | None) -> Reading:
        return reading if after is None else with_image(broker, reading, self.image_for(broker, after), self.reductions)

    def _proposals_may_be_in_vain(self, leader: BrokerId) -> bool:
        return self.reduces(Reduction.VAIN_PROPOSALS) and not self.writes_isr(leader)

    def _unless_in_vain(
        self, leader: BrokerId, exchange: AlterPartitionExchange, decision: AnyDecision | None
    ) -> AlterPartitionExchange:
        if decision is None or exchange.state != RequestState.SENT:
            return exchange
        return unless_in_vain(exchange, self._error_after(decision, exchange), self.rules[leader].protocol)

    def _unless_out_of_date(self, copy: AlterPartitionExchange, decision: AnyDecision | None) -> AlterPartitionExchange:
        if decision is None or copy == NO_EXCHANGE:
            return copy
        return NO_EXCHANGE if self._error_after(decision, copy) in OUT_OF_DATE else copy

    def _error_after(self, decision: AnyDecision, exchange: AlterPartitionExchange) -> Error:
        """The controller's error for a request after a decision."""
        after = cluster_after(decision)
        if isinstance(after, ZkCluster):
            return outcome_of_proposal(self.zookeeper, after, exchange.request).response.error
        return check_alter_partition_request(self.kraft, controller_state(after).image, exchange.request)

    def writes_isr(self, broker: BrokerId) -> bool:
        """Whether a broker writes an ISR to ZooKeeper itself, rather than ask the controller."""
        return self.rules[broker].protocol.isr_writer == IsrWriter.LEADER

    def not_writing(self, leader: BrokerId) -> list[Local]:
        """The guard of all actions of a leader: it holds the partition's lock while it writes an ISR to ZooKeeper.

        Kafka: `Partition.leaderIsrUpdateLock`.
        """
        if not self.writes_isr(leader):
            return []
        return [when(lambda role: nothing_pending(role.isr), self.slots.role[leader])]

    def may_stop(self, broker: BrokerId) -> bool:
        """Whether the bounds let a broker stop."""
        return self.parameters["only_stops"] in (0, broker)

    def may_lead_first(self, broker: BrokerId) -> bool:
        """Whether the bounds let a broker lead first: with `--only-stops` another one does."""
        return broker != BrokerId(self.parameters["only_stops"])

    def answers(self, broker: BrokerId, process: Process) -> bool:
        """Whether a broker is up and answers other brokers and clients."""
        return process.up and self.rules[broker].protocol.opens_ports(process.life)

    def answering(self, broker: BrokerId) -> Local:
        """The guard of every request to a broker: it is up and answers."""
        return when(partial(self.answers, broker), self.slots.process[broker])

    def held(self, broker: BrokerId) -> tuple[Slot, ...]:
        """The slots of a broker's partition, in the order of `party.Held`."""
        slots = self.slots
        named = {
            "log": slots.log[broker],
            "role": slots.role[broker],
            "memory": slots.memory[broker],
            "exchange": slots.exchange[broker],
            "clients": slots.clients,
            "fetcher": slots.fetcher[broker],
        }
        return tuple(named[field] for field in PartyState._fields)

    def pairs(self) -> list[tuple[BrokerId, BrokerId]]:
        """Every broker with every other one."""
        return [(one, other) for one in self.brokers for other in self.brokers if one != other]

    def change_after(self, broker: BrokerId, steps: int) -> View:
        """The difference of a broker's image and the image `steps` decisions later; `None` if there are fewer."""
        if (broker, steps) not in self._changes:
            view = self.model.view(f"{steps} decisions", partial(read_change, steps), self.slots.reading[broker], key=broker)
            self._changes[broker, steps] = view
        return self._changes[broker, steps]

    @property
    def asks_who_has_read(self) -> bool:
        """Whether the controller unfences only brokers that have read all metadata."""
        return self.kraft.protocol.awaits_all_metadata

    def keeps_its_past(self, broker: BrokerId) -> bool:
        """Whether a starting broker may act on metadata that are already out of date."""
        return self.rules[broker].protocol.acts_on_old_metadata

    def reads_its_registration(self, broker: BrokerId) -> bool:
        """Whether a starting broker may act on metadata that do not show its registration yet."""
        return self.keeps_its_past(broker) or self.parameters["slow_registrations"] > 0


def cluster_after(decision: AnyDecision) -> AnyCluster:
    """The controller's state after a decision."""
    return decision.after if isinstance(decision, ZkDecision) else decision


def _cluster_after(decision: AnyDecision | None) -> object:
    return REFUSED if decision is None else cluster_after(decision)


def _known(broker: BrokerId, reading: Reading, role: Role) -> Known:
    """All brokers in the last image that a broker has taken; only leaders read it."""
    return reading[0].brokers if reading and role.leader == broker else frozenset()


def _leads_in(broker: BrokerId, role: Role, process: Process) -> Epoch:
    """The epoch in which a broker believes it leads; `NO_EPOCH` if it does not."""
    return role.leader_epoch if role.leader == broker and process.up else NO_EPOCH


def read_change(steps: int, reading: Reading) -> MetadataChange | None:
    """See `Board.change_after`."""
    return MetadataChange(reading[0], reading[steps]) if len(reading) > steps else None
