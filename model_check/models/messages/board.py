"""The slots of the model, and how a broker's and the controller's state is put together from them."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from model_check.core.model import Model, Slot
from model_check.models.messages.values import (
    FIRST_RUN,
    FROM_THE_START,
    NO_FETCH,
    NO_FETCH_ID,
    NO_PROPOSAL_ID,
    NO_REIGN,
    NO_REPLY,
    NO_ROLE,
    NO_TERM,
    NO_VERDICT,
    NOT_DECIDED,
    NOT_FENCED,
    NOT_PROPOSED,
    NOT_SENT,
    NOTHING_SETTLED,
    PARTITION,
    UNKNOWN,
    Decision,
    FetchId,
    KnownFollower,
    ProposalId,
    Registered,
    Role,
)
from spec.broker.follower import fetch_or_truncate
from spec.broker.partition import Broker, BrokerSettings, Partition
from spec.broker.rules.fetcher import NOT_DELAYED, NOT_FETCHING, FetchState, needs_no_answer
from spec.broker.rules.followers import UNKNOWN_FOLLOWER, Follower, FollowerState
from spec.controller.protocol import ControllerSettings
from spec.controller.rules.brokers import Session
from spec.controller.state import ControllerState
from spec.log.local_log import LocalLog
from spec.log.record_log import EMPTY_LOG, RecordLog
from spec.metadata import (
    NOBODY,
    BrokerRegistration,
    MetadataImage,
    PartitionRecord,
    PartitionRegistration,
    broker_of,
)
from spec.mutation import weaken
from spec.releases.broker import BROKER_NEXT
from spec.releases.broker_mutants import BROKER_MUTANTS
from spec.releases.kraft import KRAFT_NEXT
from spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Incarnation,
    Offset,
    PartitionEpoch,
)

Log = RecordLog

LATE = 1_000_000
"""A time at which every delay is over and every lag too long."""

LONG_AGO = 0
"""When a follower was caught up that lags too much."""

NEVER = inf
"""An offset that no fetch reaches."""

ANOTHER_PROCESS = Incarnation(2)
"""The incarnation of a run that registers: another one than that of the run before."""


class Numbers(NamedTuple):
    """Of what each action is tried: epochs, partition epochs, fetches and proposals. For proofs: any.

    When a broker stops, `survives` is where its log ends after that, and `checkpointed` its high watermark as the file has
    it; `runs` are broker epochs. `last_caught_up` is when the leader saw the follower caught up that now fetches.

    `now` is the time of every action, `caught_up` when the leader last saw each follower caught up, `believed_fenced` which
    brokers a leader believes to be fenced. Within bounds every lag is too long (but that of who fetches, if it matters), and
    nobody is believed to be fenced; in proofs they are any, in every action anew.
    """

    epochs: Sequence[Epoch]
    versions: Sequence[PartitionEpoch]
    fetches: Sequence[FetchId]
    proposals: Sequence[ProposalId]
    survives: Sequence[Offset]
    checkpointed: Sequence[Offset]
    runs: Sequence[BrokerEpoch]
    last_caught_up: Sequence[int]
    now: int = LATE
    caught_up: Mapping[BrokerId, int] = {}
    believed_fenced: Mapping[BrokerId, bool] = {}


class Slots(NamedTuple):
    """`awaited[leader]` has a slot for each follower, `known[follower]` and `heard[follower]` for each leader.

    `heard`: which run of the follower the leader has heard to be registered. `fetched[replica]` has a slot for each epoch,
    `named[replica]` one for each proposal: which run of the replica that names, if it is a member.
    """

    partition: Slot
    decision: dict[int, Slot]
    registered: dict[int, Slot]
    next_run: Slot
    run: dict[int, Slot]
    since: dict[int, Slot]
    entered: dict[int, Slot]
    stops: Slot
    log: dict[int, Slot]
    high_watermark: dict[int, Slot]
    role: dict[int, Slot]
    applied: dict[int, Slot]
    fetcher: dict[int, Slot]
    known: dict[int, dict[int, Slot]]
    heard: dict[int, dict[int, Slot]]
    awaited: dict[int, dict[int, Slot]]
    fetch: dict[int, Slot]
    reply: dict[int, Slot]
    next_fetch: Slot
    proposed: dict[int, Slot]
    named: dict[int, dict[int, Slot]]
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
        self.stops = parameters["stops"] > 0
        self.min_isr = parameters["min_isr"]
        self.loses = self.min_isr > 1
        """Whether a broker that stops may lose what it has not flushed. With fewer than two in sync nobody else has it."""
        self.asks_for_lag = self.min_isr > 1
        """Whether it matters, when a follower fetches, how far it lags: below min ISR, who lags does not join."""
        self.numbers = numbers or Numbers(
            [Epoch(epoch) for epoch in range(parameters["max_epoch"] + 1)],
            [PartitionEpoch(version) for version in range(parameters["max_version"] + 1)],
            [FetchId(fetch) for fetch in range(parameters["fetches"])],
            [ProposalId(proposal) for proposal in range(parameters["proposals"])],
            [Offset(offset) for offset in range(parameters["values"] + 1)],
            [Offset(offset) for offset in range(parameters["values"] + 1)],
            [BrokerEpoch(FIRST_RUN + run) for run in range(parameters["stops"] + 1)],
            [LONG_AGO, LATE] if self.asks_for_lag else [LONG_AGO],
        )
        self.settings = ControllerSettings(self.min_isr, eligible_leader_replicas=self.loses, last_known_leader=False)
        self.slots = self._slots()

    def _slots(self) -> Slots:
        model, brokers, numbers = self.model, self.brokers, self.numbers
        return Slots(
            partition=model.slot("partition", NOT_DECIDED),
            decision=model.numbered_slots("decision", numbers.versions, NOT_DECIDED),
            registered=model.broker_slots("registered", brokers, NOT_FENCED),
            next_run=model.slot("nextRun", BrokerEpoch(FIRST_RUN + 1), bookkeeping=True),
            run=model.broker_slots("run", brokers, FIRST_RUN),
            since=model.broker_slots("since", brokers, FROM_THE_START),
            entered=model.broker_slots("entered", brokers, NO_EPOCH),
            stops=model.slot("stops", 0, bookkeeping=True),
            log=model.broker_slots("log", brokers, EMPTY_LOG),
            high_watermark=model.broker_slots("highWatermark", brokers, Offset(0)),
            role=model.broker_slots("role", brokers, NO_ROLE),
            applied=model.broker_slots("applied", brokers, NOT_DECIDED),
            fetcher=model.broker_slots("fetcher", brokers, NOT_FETCHING),
            known={broker: model.broker_slots("knows of", brokers, UNKNOWN, broker) for broker in brokers},
            heard={broker: model.broker_slots("has heard of", brokers, FIRST_RUN, broker) for broker in brokers},
            awaited={broker: model.broker_slots("awaits", brokers, NO_FETCH_ID, broker) for broker in brokers},
            fetch=model.numbered_slots("fetch", numbers.fetches, NOT_SENT),
            reply=model.numbered_slots("reply", numbers.fetches, NO_REPLY),
            next_fetch=model.slot("nextFetch", 0, bookkeeping=True),
            proposed=model.numbered_slots("proposed", numbers.proposals, NOT_PROPOSED),
            named={
                broker: model.numbered_slots("named", numbers.proposals, NO_BROKER_EPOCH, about=broker) for broker in brokers
            },
            verdict=model.numbered_slots("verdict", numbers.proposals, NO_VERDICT),
            next_proposal=model.slot("nextProposal", 0, bookkeeping=True),
            latest=model.broker_slots("latest", brokers, NO_PROPOSAL_ID),
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

    def asked(self, proposal: ProposalId) -> tuple[Slot, ...]:
        """A proposal, and the runs of the members that it names."""
        return (self.slots.proposed[proposal], *(self.slots.named[broker][proposal] for broker in self.brokers))

    # ---- brokers

    def registrations(self, registered: Iterable[Registered]) -> tuple[BrokerRegistration, ...]:
        """All brokers, as they are registered."""
        known = zip(self.brokers, registered, strict=True)
        return tuple(BrokerRegistration(broker, run, Incarnation(1), fenced=fenced) for broker, (run, fenced) in known)

    def broker(self, broker: BrokerId, run: BrokerEpoch, heard: Sequence[BrokerEpoch] = ()) -> Broker:
        """What the handlers know of the broker that they run in; `heard`: the runs that it takes others to be in."""
        settings = BrokerSettings(self.min_isr, max_lag=1, back_off=0)
        runs = dict(zip(self.others(broker), heard, strict=False))
        believed = [
            Registered(runs.get(other, run), self.numbers.believed_fenced.get(other, False)) for other in self.brokers
        ]
        return Broker(broker, self.rules, run, self.registrations(believed), settings)

    def led_slots(self, leader: BrokerId) -> list[Slot]:
        """What makes up a leader."""
        slots = self.slots
        known = [slots.known[other][leader] for other in self.others(leader)]
        return [slots.log[leader], slots.high_watermark[leader], slots.role[leader], *known]

    def as_leader(self, leader: BrokerId) -> list[Slot]:
        """All that a leader reads: `led_slots`, its own run, and the runs of others of which it has heard."""
        heard = [self.slots.heard[other][leader] for other in self.others(leader)]
        return [*self.led_slots(leader), self.slots.run[leader], *heard]

    def leading(
        self, leader: BrokerId, *own: Any, caught_up: Mapping[BrokerId, int] | None = None
    ) -> tuple[Broker, Partition[Log]]:
        """A leader and its partition, from `as_leader`; `caught_up`: when it last saw some followers caught up."""
        log, high_watermark, role, *rest = own
        others = self.others(leader)
        known, run, heard = rest[: len(others)], rest[len(others)], rest[len(others) + 1 :]
        times = {**self.numbers.caught_up, **(caught_up or {})}
        states = (self._known(state, times.get(other, LONG_AGO)) for other, state in zip(others, known, strict=True))
        followers = tuple(map(Follower, others, states))
        local = LocalLog(log, high_watermark)
        partition = Partition(PARTITION, local, role.leader, role.leader_epoch, role.isr, role.epoch_start, followers)
        return self.broker(leader, run, heard), partition

    def led(self, leader: BrokerId, after: Partition[Log]) -> tuple[Any, ...]:
        """The values of `led_slots` after a step."""
        leads = after.leader == leader
        role = Role(after.leader, after.leader_epoch, after.isr if leads else NO_ROLE.isr, after.epoch_start)
        states = {follower.broker: follower.state for follower in after.followers}
        known = [states.get(other, UNKNOWN_FOLLOWER) for other in self.others(leader)]
        noted = (KnownFollower(state.end_offset, state.broker_epoch) for state in known)
        return (after.local.log, after.local.high_watermark, role, *noted)

    def _known(self, known: KnownFollower, caught_up: int) -> FollowerState:
        """What a leader knows of a follower. No fetch but one from the leader's end makes it count as caught up now."""
        never: Any = NEVER
        return FollowerState(known.end_offset, leader_end_offset=never, caught_up_time=caught_up, broker_epoch=known.run)

    def following(self, log: Log, high_watermark: Offset, fetcher: FetchState) -> Partition[Log]:
        """The partition as a fetcher has it."""
        return Partition(PARTITION, LocalLog(log, high_watermark), fetcher.leader, fetcher.leader_epoch, fetcher=fetcher)

    def followed(self, follower: BrokerId, after: Partition[Log]) -> tuple[Log, Offset, FetchState]:
        """What a follower keeps after a step. A log without any epoch needs no answer; delays may be over at any time."""
        if needs_no_answer(after.fetcher, after.local.log):
            after = fetch_or_truncate(self.broker(follower, FIRST_RUN), after, self.numbers.now).state
        return after.local.log, after.local.high_watermark, after.fetcher._replace(delayed_until=NOT_DELAYED)

    # ---- the controller

    def one_of(self, broker: BrokerId) -> BrokerId:
        """A broker's id by itself."""
        return next((known for known in self.brokers if known == broker), NO_LEADER)

    def those_in(self, isr: Iterable[BrokerId]) -> frozenset[BrokerId]:
        """The members of an ISR by themselves."""
        return frozenset(known for known in self.brokers if known in isr)

    def controller(
        self,
        decision: Decision,
        first: BrokerId,
        registered: Sequence[Registered],
        silent: BrokerId = NO_LEADER,
        next_run: BrokerEpoch = FIRST_RUN,
    ) -> ControllerState:
        """The controller's state after `decision`.

        `first` is the preferred replica, `silent` one that is not heard of; `next_run` the broker epoch of the next run that
        registers, for which the metadata log ends there.
        """
        image = MetadataImage(Offset(next_run), self.registrations(registered))
        if decision.partition_epoch >= 0:
            image = image._replace(partitions=(PartitionRecord(PARTITION, self.registration(decision, first)),))
        sessions = tuple(Session(broker, 0 if broker == silent else LATE) for broker in self.brokers)
        return ControllerState(Epoch(0), image, sessions)

    def registration(self, decision: Decision, first: BrokerId) -> PartitionRegistration:
        """The partition as the rules have it: every broker has a replica."""
        replicas = (first, *self.others(first))
        isr, leader = self.those_in(decision.isr), self.one_of(decision.leader)
        elr = self.those_in(decision.elr) if self.loses else NOBODY
        return PartitionRegistration(replicas, isr, leader, decision.leader_epoch, decision.partition_epoch, elr=elr)

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
    epochs = partition.leader_epoch, partition.partition_epoch
    return Decision(partition.leader, epochs[0], partition.isr, epochs[1], partition.elr)


def registered_of(state: ControllerState, broker: BrokerId) -> Registered:
    """What the controller knows of a broker by now."""
    registration = broker_of(state.image.brokers, broker)
    assert registration is not None, "all brokers are registered"
    return Registered(registration.broker_epoch, registration.fenced)
