"""The slots of the model, and the state of a broker and of the controller built from them."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, NamedTuple

from kspec.model_check.core.model import Model, Slot, when
from kspec.model_check.models.carriers import ModelLog, empty_log
from kspec.model_check.models.messages.values import (
    FIRST_BROKER_EPOCH,
    FROM_THE_START,
    NO_FETCH,
    NO_FETCH_ANSWER,
    NO_FETCH_ID,
    NO_ISR_ANSWER,
    NO_LAST_DECISION,
    NO_LEADERSHIP,
    NO_PROPOSAL_ID,
    NOT_DECIDED,
    NOT_FENCED,
    NOT_PROPOSED,
    NOT_SENT,
    NOTHING_COMMITTED,
    UNKNOWN,
    FetchId,
    KnownFollower,
    PartitionState,
    ProposalId,
    RegistrationState,
)
from kspec.model_check.models.messages.words import unless
from kspec.model_check.models.parts import LATE, NO_ROLE, PARTITION, Role, Values, following, role_of
from kspec.spec.broker.follower import fetch_or_truncate
from kspec.spec.broker.partition import Broker, BrokerSettings, Partition
from kspec.spec.broker.rules.fetcher import NOT_DELAYED, NOT_FETCHING
from kspec.spec.broker.rules.followers import UNKNOWN_FOLLOWER, Follower, FollowerState
from kspec.spec.controller.protocol import Controller, ControllerSettings
from kspec.spec.controller.rules.brokers import BrokerSession
from kspec.spec.controller.state import ControllerState
from kspec.spec.log.local_log import LocalLog
from kspec.spec.metadata import (
    NOBODY,
    BrokerRegistration,
    MetadataImage,
    PartitionRecord,
    PartitionRegistration,
    broker_of,
)
from kspec.spec.mutation import weaken
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Incarnation,
    MonotonicMs,
    Offset,
    PartitionEpoch,
)

LONG_AGO = MonotonicMs(0)
"""The last caught-up time of a follower that lags too much."""

NEVER = inf
"""An offset that no fetch reaches."""

ANOTHER_PROCESS = Incarnation(2)
"""The incarnation that registers after an unclean shutdown: not the one before."""


class Numbers(NamedTuple):
    """The arguments of actions: epochs, partition epochs, fetches and proposals. In proofs they are arbitrary.

    When a broker stops, `survives` is where its log ends after that, and `checkpointed` its high watermark as the file has
    it; `last_caught_up` is when the leader saw the follower caught up that now fetches.

    `now` is the time of every action, `caught_up` when the leader last saw each follower caught up, `believed_fenced` which
    brokers a leader believes to be fenced. Within bounds every lag is too long (but that of the follower that fetches, if it
    matters), and nobody is believed to be fenced; in proofs they are any, in every action anew.
    """

    epochs: Sequence[Epoch]
    partition_epochs: Sequence[PartitionEpoch]
    fetches: Sequence[FetchId]
    proposals: Sequence[ProposalId]
    survives: Sequence[Offset]
    checkpointed: Sequence[Offset]
    broker_epochs: Sequence[BrokerEpoch]
    last_caught_up: Sequence[int]
    now: int = LATE
    caught_up: Mapping[BrokerId, int] = {}
    believed_fenced: Mapping[BrokerId, bool] = {}


class Slots(NamedTuple):
    """`awaited[leader]` has a slot for each follower, `known[follower]` and `heard[follower]` for each leader.

    `heard`: the follower's broker epoch by the leader's metadata. `fetched[replica]` has a slot for each epoch,
    `named[replica]` one for each proposal: the broker epoch that it names of a member.
    """

    partition: Slot
    decision: dict[int, Slot]
    registered: dict[int, Slot]
    next_broker_epoch: Slot
    broker_epoch: dict[int, Slot]
    registered_at: dict[int, Slot]
    highest_epoch: dict[int, Slot]
    unclean_shutdowns: Slot
    log: dict[int, Slot]
    high_watermark: dict[int, Slot]
    role: dict[int, Slot]
    applied: dict[int, Slot]
    fetcher: dict[int, Slot]
    known: dict[int, dict[int, Slot]]
    heard: dict[int, dict[int, Slot]]
    awaited: dict[int, dict[int, Slot]]
    fetch: dict[int, Slot]
    fetch_answer: dict[int, Slot]
    next_fetch: Slot
    proposed: dict[int, Slot]
    named: dict[int, dict[int, Slot]]
    isr_answer: dict[int, Slot]
    next_proposal: Slot
    latest: dict[int, Slot]
    next_value: Slot
    last_decision: dict[int, Slot]
    leadership: dict[int, Slot]
    leader_log: dict[int, Slot]
    furthest_commit: Slot
    fetched: dict[int, dict[int, Slot]]


class Board:
    """A model under construction."""

    def __init__(self, name: str, parameters: dict[str, Any], numbers: Numbers | None) -> None:
        self.model = Model(name, parameters)
        self.parameters = parameters
        self.rules, control = BROKER_NEXT, KRAFT_NEXT
        for mutant in BROKER_MUTANTS:
            if mutant.name == parameters["mutant"]:
                self.rules = weaken(self.rules, mutant)
        for mutant in CONTROLLER_MUTANTS:
            if mutant.name == parameters["mutant"]:
                control = weaken(control, mutant)
        self.brokers = [BrokerId(broker) for broker in range(1, parameters["brokers"] + 1)]
        self.model.interchangeable = tuple(self.brokers)
        self.unclean_shutdowns = parameters["unclean_shutdowns"] > 0
        self.min_isr = parameters["min_isr"]
        self.loses = self.min_isr > 1
        """Whether a broker that stops may lose records. With min ISR 1 no other broker needs to have them."""
        self.asks_for_lag = self.min_isr > 1
        """Whether it matters how far a follower lags that fetches: below min ISR, one that lags does not join."""
        self.numbers = numbers or Numbers(
            epochs=[Epoch(epoch) for epoch in range(parameters["max_epoch"] + 1)],
            partition_epochs=[
                PartitionEpoch(partition_epoch) for partition_epoch in range(parameters["max_partition_epoch"] + 1)
            ],
            fetches=[FetchId(fetch) for fetch in range(parameters["fetches"])],
            proposals=[ProposalId(proposal) for proposal in range(parameters["proposals"])],
            survives=[Offset(offset) for offset in range(parameters["values"] + 1)],
            checkpointed=[Offset(offset) for offset in range(parameters["values"] + 1)],
            broker_epochs=[BrokerEpoch(FIRST_BROKER_EPOCH + stops) for stops in range(parameters["unclean_shutdowns"] + 1)],
            last_caught_up=[LONG_AGO, LATE] if self.asks_for_lag else [LONG_AGO],
        )
        settings = ControllerSettings(self.min_isr, eligible_leader_replicas=self.loses, last_known_leader=False)
        self.control = Controller(control, settings)
        self.slots = self._slots()
        for broker, broker_epoch in self.slots.broker_epoch.items():
            self.model.silent[broker] = when(lambda known: known == NO_BROKER_EPOCH, broker_epoch)

    def _slots(self) -> Slots:
        model, brokers, numbers = self.model, self.brokers, self.numbers
        return Slots(
            partition=model.slot("partition", NOT_DECIDED),
            decision=model.numbered_slots("decision", numbers.partition_epochs, NOT_DECIDED),
            registered=model.broker_slots("registered", brokers, NOT_FENCED),
            next_broker_epoch=model.slot("nextBrokerEpoch", BrokerEpoch(FIRST_BROKER_EPOCH + 1), bookkeeping=True),
            broker_epoch=self._numbers("brokerEpoch", FIRST_BROKER_EPOCH),
            registered_at=model.broker_slots("registeredAt", brokers, FROM_THE_START),
            highest_epoch=self._numbers("highestEpoch", NO_EPOCH),
            unclean_shutdowns=model.slot("uncleanShutdowns", 0, bookkeeping=True),
            log=model.broker_slots("log", brokers, empty_log(self.parameters)),
            high_watermark=model.broker_slots("highWatermark", brokers, Offset(0)),
            role=model.broker_slots("role", brokers, NO_ROLE),
            applied=model.broker_slots("applied", brokers, NOT_DECIDED),
            fetcher=model.broker_slots("fetcher", brokers, NOT_FETCHING),
            known={broker: model.broker_slots("knows of", brokers, UNKNOWN, broker) for broker in brokers},
            heard={broker: self._numbers("has heard of", FIRST_BROKER_EPOCH, broker) for broker in brokers},
            awaited={broker: self._numbers("awaits", NO_FETCH_ID, broker) for broker in brokers},
            fetch=model.numbered_slots("fetch", numbers.fetches, NOT_SENT),
            fetch_answer=model.numbered_slots("fetchAnswer", numbers.fetches, NO_FETCH_ANSWER),
            next_fetch=model.slot("nextFetch", 0, bookkeeping=True),
            proposed=model.numbered_slots("proposed", numbers.proposals, NOT_PROPOSED),
            named={
                broker: model.numbered_slots("named", numbers.proposals, NO_BROKER_EPOCH, about=broker) for broker in brokers
            },
            isr_answer=model.numbered_slots("isrAnswer", numbers.proposals, NO_ISR_ANSWER),
            next_proposal=model.slot("nextProposal", 0, bookkeeping=True),
            latest=self._numbers("latestProposal", NO_PROPOSAL_ID),
            next_value=model.slot("nextValue", 0, bookkeeping=True),
            last_decision=model.numbered_slots("lastDecision", numbers.epochs, NO_LAST_DECISION),
            leadership=model.numbered_slots("leadership", numbers.epochs, NO_LEADERSHIP),
            leader_log=model.numbered_slots("leaderLog", numbers.epochs, empty_log(self.parameters)),
            furthest_commit=model.slot("furthestCommit", NOTHING_COMMITTED, bookkeeping=True),
            fetched={broker: model.numbered_slots("fetched", numbers.epochs, NO_FETCH, about=broker) for broker in brokers},
        )

    def _numbers(self, name: str, first: int, about: BrokerId | None = None) -> dict[int, Slot]:
        """One slot for each broker that holds a number; traces leave it out as long as it is the first one."""
        shown = partial(unless, first)
        return {broker: self.model.slot(name, first, broker, broker, about=about, words=shown) for broker in self.brokers}

    def others(self, broker: BrokerId) -> list[BrokerId]:
        """All brokers but one."""
        return [other for other in self.brokers if other != broker]

    def pairs(self) -> list[tuple[BrokerId, BrokerId]]:
        """Every broker with every other one."""
        return [(one, other) for one in self.brokers for other in self.others(one)]

    def asked(self, proposal: ProposalId) -> tuple[Slot, ...]:
        """A proposal, and the broker epochs of the members that it names."""
        return (self.slots.proposed[proposal], *self.named(proposal).values())

    def named(self, proposal: ProposalId) -> dict[BrokerId, Slot]:
        """The slots for the broker epochs of the members that a proposal names."""
        return {broker: self.slots.named[broker][proposal] for broker in self.brokers}

    # ---- brokers

    def registrations(self, registered: Mapping[BrokerId, RegistrationState]) -> tuple[BrokerRegistration, ...]:
        """All brokers, as they are registered."""
        return tuple(
            BrokerRegistration(broker, known.broker_epoch, Incarnation(1), fenced=known.fenced)
            for broker, known in registered.items()
        )

    def broker(
        self, broker: BrokerId, broker_epoch: BrokerEpoch, heard: Mapping[BrokerId, BrokerEpoch] | None = None
    ) -> Broker:
        """The handlers' view of their broker; `heard`: the broker epochs of others."""
        settings = BrokerSettings(self.min_isr, max_lag=1, back_off=0)
        broker_epochs, fenced = heard or {}, self.numbers.believed_fenced
        believed = {
            other: RegistrationState(broker_epochs.get(other, broker_epoch), fenced.get(other, False))
            for other in self.brokers
        }
        return Broker(broker, self.rules, broker_epoch, self.registrations(believed), settings)

    def led_slots(self, leader: BrokerId) -> list[Slot]:
        """The slots of a leader."""
        slots = self.slots
        known = [slots.known[other][leader] for other in self.others(leader)]
        return [slots.log[leader], slots.high_watermark[leader], slots.role[leader], *known]

    def as_leader(self, leader: BrokerId) -> list[Slot]:
        """All slots that a leader reads: `led_slots`, its own broker epoch, and those of other brokers by its metadata."""
        heard = [self.slots.heard[other][leader] for other in self.others(leader)]
        return [*self.led_slots(leader), self.slots.broker_epoch[leader], *heard]

    def leading(
        self, leader: BrokerId, at: Values, caught_up: Mapping[BrokerId, int] | None = None
    ) -> tuple[Broker, Partition[ModelLog]]:
        """A leader and its partition, from `as_leader`; `caught_up`: when it last saw some followers caught up."""
        slots, others = self.slots, self.others(leader)
        role: Role = at[slots.role[leader]]
        times = {**self.numbers.caught_up, **(caught_up or {})}
        followers = tuple(
            Follower(other, self._known(at[slots.known[other][leader]], times.get(other, LONG_AGO))) for other in others
        )
        local = LocalLog(at[slots.log[leader]], at[slots.high_watermark[leader]])
        partition = Partition(PARTITION, local, role.leader, role.leader_epoch, role.isr, role.epoch_start, followers)
        heard = {other: at[slots.heard[other][leader]] for other in others}
        return self.broker(leader, at[slots.broker_epoch[leader]], heard), partition

    def led(self, leader: BrokerId, after: Partition[ModelLog]) -> dict[Slot, Any]:
        """The values of `led_slots` after a step."""
        slots, states = self.slots, {follower.broker: follower.state for follower in after.followers}
        known = {other: states.get(other, UNKNOWN_FOLLOWER) for other in self.others(leader)}
        return {
            slots.log[leader]: after.local.log,
            slots.high_watermark[leader]: after.local.high_watermark,
            slots.role[leader]: role_of(after, leader),
            **{slots.known[other][leader]: _remembered(of) for other, of in known.items()},
        }

    def _known(self, known: KnownFollower, caught_up: int) -> FollowerState:
        """A leader's state of a follower. Only a fetch from the leader's end makes it count as caught up now."""
        never: Any = NEVER
        return FollowerState(**known._asdict(), leader_end_offset=never, caught_up_time=MonotonicMs(caught_up))

    def fetching_slots(self, follower: BrokerId) -> tuple[Slot, ...]:
        """The slots of a fetcher."""
        slots = self.slots
        return slots.log[follower], slots.high_watermark[follower], slots.fetcher[follower]

    def following(self, follower: BrokerId, at: Values) -> Partition[ModelLog]:
        """The partition as a follower's fetcher has it, from `fetching_slots`."""
        slots = self.slots
        local = LocalLog(at[slots.log[follower]], at[slots.high_watermark[follower]])
        return following(local, at[slots.fetcher[follower]])

    def followed(self, follower: BrokerId, after: Partition[ModelLog]) -> dict[Slot, Any]:
        """The values of `fetching_slots` after a step.

        A log without any epoch needs no answer; a back-off may be over at any time.
        """
        slots, own = self.slots, self.broker(follower, FIRST_BROKER_EPOCH)
        if own.protocol.needs_no_answer(after.fetcher, after.local.log):
            after = fetch_or_truncate(own, after, MonotonicMs(self.numbers.now)).state
        return {
            slots.log[follower]: after.local.log,
            slots.high_watermark[follower]: after.local.high_watermark,
            slots.fetcher[follower]: after.fetcher._replace(delayed_until=NOT_DELAYED),
        }

    # ---- the controller

    def one_of(self, broker: BrokerId) -> BrokerId:
        """A broker's id by itself."""
        return next((known for known in self.brokers if known == broker), NO_LEADER)

    def those_in(self, isr: Iterable[BrokerId]) -> frozenset[BrokerId]:
        """The members of an ISR by themselves."""
        return frozenset(known for known in self.brokers if known in isr)

    def controller(
        self,
        decision: PartitionState,
        first: BrokerId,
        registered: Mapping[BrokerId, RegistrationState],
        silent: BrokerId = NO_LEADER,
        next_broker_epoch: BrokerEpoch = FIRST_BROKER_EPOCH,
    ) -> ControllerState:
        """The controller's state after `decision`.

        `first` is the preferred replica, `silent` a broker whose session has expired. `next_broker_epoch`: that of the
        broker that registers next; the metadata log ends there.
        """
        image = MetadataImage(Offset(next_broker_epoch), self.registrations(registered))
        if decision.partition_epoch >= 0:
            image = image._replace(partitions=(PartitionRecord(PARTITION, self.registration(decision, first)),))
        sessions = tuple(BrokerSession(broker, LONG_AGO if broker == silent else LATE) for broker in self.brokers)
        return ControllerState(Epoch(0), image, sessions)

    def registration(self, decision: PartitionState, first: BrokerId) -> PartitionRegistration:
        """The partition as a value of `spec`: every broker has a replica."""
        replicas = (first, *self.others(first))
        isr, leader = self.those_in(decision.isr), self.one_of(decision.leader)
        elr = self.those_in(decision.elr) if self.loses else NOBODY
        return PartitionRegistration(replicas, isr, leader, decision.leader_epoch, decision.partition_epoch, elr=elr)

    def announced(self, decision: PartitionState) -> PartitionRegistration:
        """The partition as brokers read it; they do not look at the preferred replica."""
        return PartitionRegistration(
            tuple(self.brokers), decision.isr, decision.leader, decision.leader_epoch, decision.partition_epoch
        )


def decision_of(state: ControllerState) -> PartitionState:
    """The controller's last decision."""
    if not state.image.partitions:
        return NOT_DECIDED
    partition = state.image.partitions[0].registration
    return PartitionState(
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        partition_epoch=partition.partition_epoch,
        elr=partition.elr,
    )


def registered_of(state: ControllerState, broker: BrokerId) -> RegistrationState:
    """The controller's present registration of a broker."""
    registration = broker_of(state.image.brokers, broker)
    assert registration is not None, "all brokers are registered"
    return RegistrationState(registration.broker_epoch, registration.fenced)


def _remembered(state: FollowerState) -> KnownFollower:
    """The part of a leader's state of a follower that the model keeps."""
    return KnownFollower(**{field: getattr(state, field) for field in KnownFollower._fields})
