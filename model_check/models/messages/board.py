"""The slots of the model, and how a broker's and the controller's state is put together from them."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from model_check.model import Model, Slot
from model_check.models.messages.values import (
    NO_FETCH,
    NO_MESSAGE,
    NO_REIGN,
    NO_REPLY,
    NO_ROLE,
    NO_TERM,
    NO_VERDICT,
    NOT_DECIDED,
    NOT_PROPOSED,
    NOT_SENT,
    NOTHING_SETTLED,
    PARTITION,
    Decision,
    MessageId,
    Role,
)
from spec.broker_control import Session
from spec.broker_mutants import BROKER_MUTANTS
from spec.broker_versions import BROKER_NEXT
from spec.controller import ControllerState
from spec.controller_mutants import CONTROLLER_MUTANTS
from spec.controller_protocol import ControllerSettings
from spec.controller_versions import KRAFT_NEXT
from spec.fetcher import NOT_DELAYED, NOT_FETCHING, FetchState, needs_no_answer
from spec.follower import fetch_or_truncate
from spec.followers import UNKNOWN_FOLLOWER, Follower, FollowerState
from spec.local_log import LocalLog
from spec.log import EMPTY_LOG, RecordLog
from spec.metadata import BrokerRegistration, MetadataImage, PartitionRecord, PartitionRegistration
from spec.mutants import weaken
from spec.partition import Broker, Partition, Settings
from spec.values import NO_LEADER, UNKNOWN_OFFSET, BrokerEpoch, BrokerId, Epoch, Incarnation, Offset, PartitionEpoch

Log = RecordLog

LATE = 1_000_000
"""A time at which every delay is over and every lag too long."""

NEVER = inf
"""An offset that no fetch reaches."""

RUN = BrokerEpoch(1)
"""The broker epoch of every broker: none ever stops."""


class Numbers(NamedTuple):
    """Of what each action is tried: epochs, partition epochs, fetches and proposals. For proofs: any.

    `now` is the time of every action, `caught_up` when the leader last saw each follower caught up, `believed_fenced` which
    brokers a leader believes to be fenced. Within bounds every lag is too long, and nobody is believed to be fenced; in
    proofs they are any, in every action anew.
    """

    epochs: Sequence[Epoch]
    versions: Sequence[PartitionEpoch]
    fetches: Sequence[MessageId]
    proposals: Sequence[MessageId]
    now: int = LATE
    caught_up: Mapping[BrokerId, int] = {}
    believed_fenced: Mapping[BrokerId, bool] = {}


class Slots(NamedTuple):
    """`awaited[leader]` has a slot for each follower, `known[follower]` for each leader, `fetched[replica]` by epoch."""

    partition: Slot
    decision: dict[int, Slot]
    fenced: dict[int, Slot]
    log: dict[int, Slot]
    high_watermark: dict[int, Slot]
    role: dict[int, Slot]
    applied: dict[int, Slot]
    fetcher: dict[int, Slot]
    known: dict[int, dict[int, Slot]]
    awaited: dict[int, dict[int, Slot]]
    fetch: dict[int, Slot]
    reply: dict[int, Slot]
    next_fetch: Slot
    proposed: dict[int, Slot]
    verdict: dict[int, Slot]
    next_proposal: Slot
    latest: dict[int, Slot]
    next_value: Slot
    reign: dict[int, Slot]
    term: dict[int, Slot]
    ledger: dict[int, Slot]
    settled: Slot
    fetched: dict[int, dict[int, Slot]]


class Board:
    """A model that is being built."""

    def __init__(self, name: str, parameters: dict[str, Any], numbers: Numbers | None) -> None:
        self.model = Model(name, parameters)
        self.parameters = parameters
        self.rules, self.control = BROKER_NEXT, KRAFT_NEXT
        for mutant in BROKER_MUTANTS:
            if mutant.name == parameters["mutant"]:
                self.rules = weaken(self.rules, mutant)
        for mutant in CONTROLLER_MUTANTS:
            if mutant.name == parameters["mutant"]:
                self.control = weaken(self.control, mutant)
        self.brokers = [BrokerId(broker) for broker in range(1, parameters["replicas"] + 1)]
        self.model.interchangeable = tuple(self.brokers)
        self.numbers = numbers or Numbers(
            [Epoch(epoch) for epoch in range(parameters["max_epoch"] + 1)],
            [PartitionEpoch(version) for version in range(parameters["max_version"] + 1)],
            [MessageId(fetch) for fetch in range(parameters["fetches"])],
            [MessageId(proposal) for proposal in range(parameters["proposals"])],
        )
        self.min_isr = parameters["min_isr"]
        self.settings = ControllerSettings(self.min_isr)
        self.slots = self._slots()

    def _slots(self) -> Slots:
        model, brokers, numbers = self.model, self.brokers, self.numbers
        return Slots(
            partition=model.slot("partition", NOT_DECIDED),
            decision=model.numbered_slots("decision", numbers.versions, NOT_DECIDED),
            fenced=model.broker_slots("fenced", brokers, False),
            log=model.broker_slots("log", brokers, EMPTY_LOG),
            high_watermark=model.broker_slots("highWatermark", brokers, Offset(0)),
            role=model.broker_slots("role", brokers, NO_ROLE),
            applied=model.broker_slots("applied", brokers, NOT_DECIDED),
            fetcher=model.broker_slots("fetcher", brokers, NOT_FETCHING),
            known={broker: model.broker_slots("knows of", brokers, UNKNOWN_OFFSET, broker) for broker in brokers},
            awaited={broker: model.broker_slots("awaits", brokers, NO_MESSAGE, broker) for broker in brokers},
            fetch=model.numbered_slots("fetch", numbers.fetches, NOT_SENT),
            reply=model.numbered_slots("reply", numbers.fetches, NO_REPLY),
            next_fetch=model.slot("nextFetch", 0, bookkeeping=True),
            proposed=model.numbered_slots("proposed", numbers.proposals, NOT_PROPOSED),
            verdict=model.numbered_slots("verdict", numbers.proposals, NO_VERDICT),
            next_proposal=model.slot("nextProposal", 0, bookkeeping=True),
            latest=model.broker_slots("latest", brokers, NO_MESSAGE),
            next_value=model.slot("nextValue", 0, bookkeeping=True),
            reign=model.numbered_slots("reign", numbers.epochs, NO_REIGN),
            term=model.numbered_slots("term", numbers.epochs, NO_TERM),
            ledger=model.numbered_slots("ledger", numbers.epochs, EMPTY_LOG),
            settled=model.slot("settled", NOTHING_SETTLED, bookkeeping=True),
            fetched={broker: model.numbered_slots("fetched", numbers.epochs, NO_FETCH, about=broker) for broker in brokers},
        )

    def others(self, broker: BrokerId) -> list[BrokerId]:
        """All brokers but one."""
        return [other for other in self.brokers if other != broker]

    def pairs(self) -> list[tuple[BrokerId, BrokerId]]:
        """Every broker with every other one."""
        return [(one, other) for one in self.brokers for other in self.others(one)]

    # ---- brokers

    def registrations(self, fenced: Sequence[bool]) -> tuple[BrokerRegistration, ...]:
        """All brokers, in their first run."""
        known = zip(self.brokers, fenced, strict=True)
        return tuple(BrokerRegistration(broker, RUN, Incarnation(1), fenced=is_fenced) for broker, is_fenced in known)

    def broker(self, broker: BrokerId) -> Broker:
        """What the handlers know of the broker that they run in."""
        settings = Settings(self.min_isr, max_lag=1, back_off=0)
        believed = [self.numbers.believed_fenced.get(other, False) for other in self.brokers]
        return Broker(broker, self.rules, RUN, self.registrations(believed), settings)

    def led_slots(self, leader: BrokerId) -> list[Slot]:
        """What makes up a leader."""
        slots = self.slots
        known = [slots.known[other][leader] for other in self.others(leader)]
        return [slots.log[leader], slots.high_watermark[leader], slots.role[leader], *known]

    def leading(self, leader: BrokerId, log: Log, high_watermark: Offset, role: Role, *known: Offset) -> Partition[Log]:
        """The partition as its leader has it, from `led_slots`."""
        others = zip(self.others(leader), known, strict=True)
        followers = tuple(Follower(other, self._known(other, end_offset)) for other, end_offset in others)
        local = LocalLog(log, high_watermark)
        return Partition(PARTITION, local, role.leader, role.leader_epoch, role.isr, role.epoch_start, followers)

    def led(self, leader: BrokerId, after: Partition[Log]) -> tuple[Any, ...]:
        """The values of `led_slots` after a step."""
        leads = after.leader == leader
        role = Role(after.leader, after.leader_epoch, after.isr if leads else NO_ROLE.isr, after.epoch_start)
        states = {follower.broker: follower.state for follower in after.followers}
        known = [states.get(other, UNKNOWN_FOLLOWER).end_offset for other in self.others(leader)]
        return (after.local.log, after.local.high_watermark, role, *known)

    def _known(self, follower: BrokerId, end_offset: Offset) -> FollowerState:
        """What a leader knows of a follower. No fetch but one from the leader's end makes it count as caught up.

        A broker that never stops has one broker epoch; it is named in its own fetches only.
        """
        caught_up = self.numbers.caught_up.get(follower, 0)
        return FollowerState(end_offset, leader_end_offset=NEVER, caught_up_time=caught_up)  # type: ignore[arg-type]

    def following(self, log: Log, high_watermark: Offset, fetcher: FetchState) -> Partition[Log]:
        """The partition as a fetcher has it."""
        return Partition(PARTITION, LocalLog(log, high_watermark), fetcher.leader, fetcher.leader_epoch, fetcher=fetcher)

    def followed(self, follower: BrokerId, after: Partition[Log]) -> tuple[Log, Offset, FetchState]:
        """What a follower keeps after a step. A log without any epoch needs no answer; delays may be over at any time."""
        if needs_no_answer(after.fetcher, after.local.log):
            after = fetch_or_truncate(self.broker(follower), after, self.numbers.now).state
        return after.local.log, after.local.high_watermark, after.fetcher._replace(delayed_until=NOT_DELAYED)

    # ---- the controller

    def one_of(self, broker: BrokerId) -> BrokerId:
        """A broker's id by itself."""
        return next((known for known in self.brokers if known == broker), NO_LEADER)

    def those_in(self, isr: Iterable[BrokerId]) -> frozenset[BrokerId]:
        """The members of an ISR by themselves."""
        return frozenset(known for known in self.brokers if known in isr)

    def controller(
        self, decision: Decision, first: BrokerId, fenced: Sequence[bool], silent: BrokerId = NO_LEADER
    ) -> ControllerState:
        """The controller's state after `decision`; `first` is the preferred replica, `silent` one that is not heard of."""
        image = MetadataImage(Offset(1), self.registrations(fenced))
        if decision.partition_epoch >= 0:
            image = image._replace(partitions=(PartitionRecord(PARTITION, self.registration(decision, first)),))
        sessions = tuple(Session(broker, 0 if broker == silent else LATE) for broker in self.brokers)
        return ControllerState(Epoch(0), image, sessions)

    def registration(self, decision: Decision, first: BrokerId) -> PartitionRegistration:
        """The partition as the rules have it: every broker has a replica."""
        replicas = (first, *self.others(first))
        isr, leader = self.those_in(decision.isr), self.one_of(decision.leader)
        return PartitionRegistration(replicas, isr, leader, decision.leader_epoch, decision.partition_epoch)

    def announced(self, decision: Decision) -> PartitionRegistration:
        """The partition as brokers read it; they do not look at who is preferred."""
        return PartitionRegistration(
            tuple(self.brokers), decision.isr, decision.leader, decision.leader_epoch, decision.partition_epoch
        )


def decision_of(state: ControllerState) -> Decision:
    """What the controller has decided by now."""
    if not state.image.partitions:
        return NOT_DECIDED
    partition = state.image.partitions[0].registration
    return Decision(partition.leader, partition.leader_epoch, partition.isr, partition.partition_epoch)
