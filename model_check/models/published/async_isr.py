"""ISR changes by request (KIP-497): Gustafson's `AsyncIsr.tla` over `spec.broker.rules.isr`.

One leader that never changes, followers that replicate record by record, a controller that changes the ISR on its own
or on the leader's request; requests and announcements arrive late, repeatedly, or never.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations, pairwise
from math import inf
from typing import Any, NamedTuple

from kspec.model_check.core.model import (
    CONTROLLER,
    PRODUCER,
    Argument,
    Arrow,
    Event,
    LivenessProperty,
    Local,
    Model,
    Note,
    PropertyCase,
    Slot,
    then,
    when,
)
from kspec.model_check.core.parameters import Parameter
from kspec.model_check.core.temporal import weak
from kspec.spec.broker.rules.isr.announcement import apply_partition, is_newer_partition
from kspec.spec.broker.rules.isr.proposal import LeaderIsr, PartitionIsr, isr_with, isr_without, maximal_isr, nothing_pending
from kspec.spec.claims import claim
from kspec.spec.controller.rules.isr_writer import check_partition_epoch
from kspec.spec.mutation import weaken
from kspec.spec.published.async_isr import (
    change_isr,
    high_watermark_of,
    may_propose_expand,
    may_propose_shrink,
)
from kspec.spec.published.mutants import ISR_MUTANTS
from kspec.spec.published.versions import IsrProtocol
from kspec.spec.values import NO_PARTITION_EPOCH, BrokerId, Error, Offset, PartitionEpoch

LEADER = BrokerId(1)
FIRST_PARTITION_EPOCH = PartitionEpoch(0)

QUIRKS = {
    "one-proposal": "a leader proposes nothing while a proposal is unanswered (published: it may pile them up)",
}

PARAMETERS = (
    Parameter("replicas", 3, "replicas of the partition, ids 1 to N; 1 leads throughout", minimum=1, maximum=12),
    Parameter("max_offset", 2, "highest log end offset", minimum=1),
    Parameter("max_partition_epoch", 3, "highest partition epoch (the published module calls it version)", minimum=0),
    Parameter("repair", (), "quirks of the published model to repair", choices=tuple(QUIRKS), many=True),
    Parameter("mutant", None, "weaken one rule", choices=tuple(mutant.name for mutant in ISR_MUTANTS)),
)

Messages = frozenset[frozenset[BrokerId]]
"""The ISRs that messages of one partition epoch carry."""

NOTHING: Messages = frozenset()


class Slots(NamedTuple):
    """`requested` holds the leader's proposals by partition epoch, `announced` the controller's decisions."""

    end_offset: dict[int, Slot]
    leader: Slot
    controller: Slot
    requested: dict[int, Slot]
    announced: dict[int, Slot]


def build(
    name: str, protocol: IsrProtocol, parameters: dict[str, Any], partition_epochs: Sequence[PartitionEpoch] | None = None
) -> Model:
    """The model over `protocol`, within the bounds of `parameters`.

    `partition_epochs` go from 0 to the highest, and one beyond, unless given: a proof gives one that stands for all, and the
    one after it.
    """
    mutant = next((mutant for mutant in ISR_MUTANTS if mutant.name == parameters["mutant"]), None)
    return _Builder(name, protocol if mutant is None else weaken(protocol, mutant), parameters, partition_epochs).build()


def _one_more(end: Offset) -> Offset:
    return Offset(end + 1)


def _drop(replica: BrokerId, partition: PartitionIsr) -> PartitionIsr:
    return change_isr(partition, isr_without(partition.isr, frozenset({replica})))


def _grant(isr: frozenset[BrokerId], partition: PartitionIsr) -> PartitionIsr:
    return change_isr(partition, isr)


def _dropping(replica: BrokerId) -> Callable[[LeaderIsr], frozenset[BrokerId]]:
    return lambda leader: isr_without(leader.isr, frozenset({replica}))


def _admitting(replica: BrokerId) -> Callable[[LeaderIsr], frozenset[BrokerId]]:
    return lambda leader: isr_with(leader.isr, replica)


def _named(isr: frozenset[BrokerId]) -> str:
    return "{" + ", ".join(str(replica) for replica in sorted(isr)) + "}"


class _Builder:
    def __init__(
        self,
        name: str,
        rules: IsrProtocol,
        parameters: dict[str, Any],
        partition_epochs: Sequence[PartitionEpoch] | None,
    ) -> None:
        self.model = model = Model(name, parameters)
        model.interchangeable = tuple(range(2, parameters["replicas"] + 1))
        self.rules = rules
        self.repairs = parameters["repair"]
        self.replicas = [BrokerId(replica) for replica in range(1, parameters["replicas"] + 1)]
        self.followers = self.replicas[1:]
        self.max_offset, self.max_partition_epoch = parameters["max_offset"], parameters["max_partition_epoch"]
        self.partition_epochs = partition_epochs or [
            PartitionEpoch(partition_epoch) for partition_epoch in range(self.max_partition_epoch + 2)
        ]
        everyone = frozenset(self.replicas)
        self.slots = Slots(
            end_offset=model.broker_slots("endOffset", self.replicas, Offset(0)),
            leader=model.slot(
                "leaderIsr", LeaderIsr(everyone, FIRST_PARTITION_EPOCH, frozenset(), NO_PARTITION_EPOCH), broker=LEADER
            ),
            controller=model.slot("partition", PartitionIsr(everyone, FIRST_PARTITION_EPOCH)),
            requested=model.numbered_slots("requested", self.partition_epochs[:-1], NOTHING, Messages),
            announced=model.numbered_slots("announced", self.partition_epochs[1:], NOTHING, Messages),
        )

    def build(self) -> Model:
        self._controller()
        self._propose()
        self._apply()
        self._replicate()
        self._properties()
        if self.max_partition_epoch != inf:
            self._liveness()
        return self.model

    def _isrs(self) -> list[frozenset[BrokerId]]:
        """Every ISR that contains the leader, which is never removed."""
        return [
            frozenset({LEADER, *chosen})
            for size in range(len(self.followers) + 1)
            for chosen in combinations(self.followers, size)
        ]

    def _controller(self) -> None:
        slots = self.slots
        for partition_epoch, following in pairwise(self.partition_epochs):
            at_partition_epoch = when(
                lambda state, partition_epoch=partition_epoch: state.partition_epoch == partition_epoch, slots.controller
            )
            announced = slots.announced[following]
            for replica in self.followers:
                self._decide(
                    "ControllerShrinkIsr",
                    {"replica": replica},
                    [at_partition_epoch, when(lambda state, replica=replica: replica in state.isr, slots.controller)],
                    partial(_drop, replica),
                    announced,
                    [Note(CONTROLLER, f"takes broker {replica} out of the ISR")],
                )
            requested = slots.requested[partition_epoch]
            for isr in self._isrs():
                self._decide(
                    "ControllerHandleRequest",
                    {"partition_epoch": partition_epoch, "isr": tuple(sorted(isr))},
                    [
                        when(lambda requests, isr=isr: isr in requests, requested),
                        when(
                            lambda state, partition_epoch=partition_epoch: (
                                check_partition_epoch(state.partition_epoch, partition_epoch) == Error.NONE
                            ),
                            slots.controller,
                        ),
                    ],
                    partial(_grant, isr),
                    announced,
                    [
                        Arrow(
                            LEADER,
                            CONTROLLER,
                            f"AlterPartition, sent at partition epoch {partition_epoch}: ISR {_named(isr)}",
                        )
                    ],
                )

    def _decide(
        self,
        name: str,
        args: dict[str, Argument],
        guards: list[Local],
        decide: Callable[[PartitionIsr], PartitionIsr],
        announced: Slot,
        events: list[Event],
    ) -> None:
        controller = self.slots.controller
        effects = [
            then(controller, decide, controller),
            then(announced, lambda state: frozenset({decide(state).isr}), controller),
        ]
        self.model.action(name, args, guards, effects, events)

    def _propose(self) -> None:
        slots = self.slots
        idle = [when(nothing_pending, slots.leader)] if "one-proposal" in self.repairs else []
        ends = tuple(slots.end_offset.values())
        for replica in self.followers:
            self._request(
                "LeaderRequestShrinkIsr",
                "drop",
                replica,
                [when(lambda leader, replica=replica: may_propose_shrink(leader, LEADER, replica), slots.leader), *idle],
                _dropping(replica),
            )
            self._request(
                "LeaderRequestExpandIsr",
                "admit",
                replica,
                [when(self._may_expand(replica), slots.leader, *ends), *idle],
                _admitting(replica),
            )

    def _may_expand(self, replica: BrokerId) -> Callable[..., bool]:
        def may_expand(leader: LeaderIsr, *ends: Offset) -> bool:
            return may_propose_expand(leader, replica, ends[replica - 1], self._high_watermark(leader, ends))

        return may_expand

    def _high_watermark(self, leader: LeaderIsr, ends: tuple[Offset, ...]) -> Offset:
        end_offsets = dict(zip(self.replicas, ends, strict=True))
        return high_watermark_of(LEADER, end_offsets, self.rules.counted_isr(leader))

    def _request(
        self,
        name: str,
        wish: str,
        replica: BrokerId,
        guards: list[Local],
        isr: Callable[[LeaderIsr], frozenset[BrokerId]],
    ) -> None:
        slots, propose = self.slots, self.rules.propose
        for partition_epoch in self.partition_epochs[:-1]:
            requested = slots.requested[partition_epoch]
            self.model.action(
                name,
                {"replica": replica},
                guards=[
                    when(
                        lambda leader, partition_epoch=partition_epoch: leader.partition_epoch == partition_epoch,
                        slots.leader,
                    ),
                    *guards,
                ],
                events=[Note(LEADER, f"proposes to {wish} broker {replica}")],
                effects=[
                    then(slots.leader, lambda leader: propose(leader, isr(leader)).leader, slots.leader),
                    then(
                        requested,
                        lambda requests, leader: requests | {propose(leader, isr(leader)).request.isr},
                        requested,
                        slots.leader,
                    ),
                ],
            )

    def _apply(self) -> None:
        leader = self.slots.leader
        for partition_epoch in self.partition_epochs[1:]:
            announced = self.slots.announced[partition_epoch]
            for isr in self._isrs():
                update = PartitionIsr(isr, partition_epoch)
                self.model.action(
                    "LeaderHandleUpdate",
                    {"partition_epoch": partition_epoch},
                    guards=[
                        when(lambda isrs, isr=isr: isr in isrs, announced),
                        when(lambda leader, update=update: is_newer_partition(leader, update), leader),
                    ],
                    effects=[then(leader, lambda state, update=update: apply_partition(state, update), leader)],
                    events=[Arrow(CONTROLLER, LEADER, f"partition epoch {partition_epoch}: ISR {_named(isr)}")],
                )

    def _replicate(self) -> None:
        slots, model = self.slots, self.model
        own = slots.end_offset[LEADER]
        write = [Arrow(PRODUCER, LEADER, "write a record")]
        model.action("LeaderWrite", {}, [], [then(own, _one_more, own)], write)
        for replica in self.followers:
            end = slots.end_offset[replica]
            lags = when(lambda end, leader_end: end < leader_end, end, own)
            fetch = [Arrow(replica, LEADER, "fetch"), Arrow(LEADER, replica, "one record")]
            model.action("FollowerReplicate", {"follower": replica}, [lags], [then(end, _one_more, end)], fetch)
        model.constraint.append(when(lambda end: end <= self.max_offset, own))
        model.constraint.append(when(lambda state: state.partition_epoch <= self.max_partition_epoch, slots.controller))

    def _properties(self) -> None:
        slots, model = self.slots, self.model
        ends = tuple(slots.end_offset.values())
        model.always("TypeOk", self._type_terms(), claim("TypeOk", "async-isr"), None)

        # Kafka elects from the controller's ISR, so the published invariant and the one in plain language coincide here.
        def reaches_high_watermark(replica: BrokerId) -> Callable[..., bool]:
            def reaches(partition: PartitionIsr, leader: LeaderIsr, *ends: Offset) -> bool:
                return replica not in partition.isr or ends[replica - 1] >= self._high_watermark(leader, ends)

            return reaches

        model.always(
            "ValidHighWatermark",
            [when(reaches_high_watermark(replica), slots.controller, slots.leader, *ends) for replica in self.replicas],
            claim("ValidHighWatermark", "async-isr"),
            "CommitsWhilePending",
        )
        model.always(
            "CommittedOnNextLeader",
            [when(reaches_high_watermark(replica), slots.controller, slots.leader, *ends) for replica in self.replicas],
            claim("CommittedOnNextLeader", "async-isr"),
            "CommitsWhilePending",
        )
        model.sometimes(
            "CommitsWhilePending",
            [
                when(
                    lambda leader, *ends: self._high_watermark(leader, ends) > 0 and maximal_isr(leader) != leader.isr,
                    slots.leader,
                    *ends,
                )
            ],
            claim("CommitsWhilePending", "async-isr"),
        )

    def _liveness(self) -> None:
        """Liveness properties. The published module declares no fairness, so the properties declare their own."""
        slots = self.slots
        ends = tuple(slots.end_offset.values())

        def answered(partition_epoch: PartitionEpoch) -> PropertyCase:
            waits = when(lambda leader: leader.pending_epoch == partition_epoch, slots.leader)
            goes_on = when(lambda leader: leader.pending_epoch != partition_epoch, slots.leader)
            return PropertyCase(f"proposal at partition epoch {partition_epoch}", ((waits,),), ((goes_on,),))

        def committed(offset: Offset) -> PropertyCase:
            written = when(lambda end: end > offset, slots.end_offset[LEADER])
            passed = when(lambda leader, *ends: self._high_watermark(leader, ends) > offset, slots.leader, *ends)
            return PropertyCase(f"the record at offset {offset}", ((written,),), ((passed,),))

        self.model.liveness += [
            LivenessProperty(
                "ProposalIsAnswered",
                "leads-to",
                tuple(answered(partition_epoch) for partition_epoch in self.partition_epochs[:-2]),
                claim("ProposalIsAnswered", "async-isr"),
                (weak("ControllerHandleRequest"), weak("LeaderHandleUpdate")),
            ),
            LivenessProperty(
                "WriteIsCommitted",
                "leads-to",
                tuple(committed(Offset(offset)) for offset in range(self.max_offset)),
                claim("WriteIsCommitted", "async-isr"),
                (weak("FollowerReplicate"),),
            ),
        ]

    def _type_terms(self) -> list[Local]:
        slots = self.slots
        everyone = frozenset(self.replicas)

        def leader_ok(leader: LeaderIsr) -> bool:
            partition_epochs = (
                0 <= leader.partition_epoch <= self.max_partition_epoch
                and -1 <= leader.pending_epoch <= self.max_partition_epoch
            )
            return partition_epochs and LEADER in leader.isr <= everyone and leader.pending_isr <= everyone

        def partition_ok(partition: PartitionIsr) -> bool:
            return 0 <= partition.partition_epoch <= self.max_partition_epoch and LEADER in partition.isr <= everyone

        def messages_ok(isrs: Messages) -> bool:
            return all(LEADER in isr <= everyone for isr in isrs)

        return [
            *(when(lambda end: 0 <= end <= self.max_offset, slot) for slot in slots.end_offset.values()),
            when(leader_ok, slots.leader),
            when(partition_ok, slots.controller),
            *(when(messages_ok, slot) for slot in (*slots.requested.values(), *slots.announced.values())),
        ]
