"""The published replication models: one partition, a fetch is one atomic step.

They are Gustafson's TLA+ modules (hachikuji/kafka-specification), stated over `spec`: each action names the slots that
it reads, and composes the request, the handler and the response that Kafka would exchange. What a published module does
that no broker could, or that Kafka does otherwise, is a *quirk*: kept by default, for the counts to be TLC's, and mended
by `--repair`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from model_check.model import (
    CONTROLLER,
    PRODUCER,
    REFUSED,
    Effect,
    Event,
    Local,
    Message,
    Model,
    Note,
    Refusal,
    Slot,
    then,
    when,
)
from model_check.models.gustafson_properties import add_properties
from model_check.parameters import Parameter, ParameterError
from spec.election import (
    elect_cleanly,
    elect_uncleanly,
    fail_broker,
    may_elect_cleanly,
    may_elect_uncleanly,
    may_fail,
    next_epoch,
)
from spec.fetch import apply_fetch_response, fetch_request, handle_fetch
from spec.high_watermark import has_record_to_commit, high_watermark_after_truncation, holds_back_high_watermark
from spec.isr import check_isr_update, may_join_isr, may_leave_isr, with_replica, without_replica
from spec.log import EMPTY_LOG, RecordLog
from spec.mutants import MUTANTS, weaken
from spec.produce import (
    ACKS_ALL,
    ACKS_LEADER,
    acknowledged_on_append,
    acknowledged_on_commit,
    append_as_leader,
    check_produce,
)
from spec.protocol import Protocol
from spec.replica import NO_ROLE, is_newer, leads, restart, start_leading_with_epoch_entry
from spec.truncation import (
    answer_as_leader,
    clamped,
    handle_offset_for_leader_epoch,
    keep_whole_log,
    look_up_as_released,
    truncate_to_common_epoch,
    truncate_to_high_watermark,
)
from spec.values import (
    NO_EPOCH,
    NO_FETCH,
    NO_LEADER,
    BrokerId,
    Epoch,
    EpochEndOffset,
    Error,
    FetchRequest,
    LeaderAndIsr,
    Offset,
    Record,
)

Role = LeaderAndIsr
MAX_RECORDS_PER_FETCH = 1

QUIRKS = {
    "leaderless-followers": "an announcement without a leader reaches the replicas (published: it never does)",
    "keep-last-isr": "the controller never removes the last in-sync replica (published: it may empty the ISR)",
    "clamp-truncation": "an answer beyond the follower's end truncates nothing (published: the step is disabled)",
    "truncate-against-leader": "only a replica that believes to lead answers OffsetForLeaderEpoch (published, up to"
    " KIP-279: any)",
    "kafka-epoch-lookup": "a replica answers OffsetForLeaderEpoch as Kafka was released: undefined above its latest epoch"
    " (published, since KIP-279: as designed)",
    "own-epoch-entry": "a new leader notes the start of its epoch before any record (KAFKA-7415; published: not)",
}

PARAMETERS = (
    Parameter("replicas", 3, "replicas of the partition, ids 1 to N", minimum=1),
    Parameter("log_size", 2, "most records in a log", minimum=0),
    Parameter("max_records", 2, "most records ever written", minimum=0),
    Parameter("max_epoch", 2, "highest leader epoch (the first is 0)", minimum=0),
    Parameter("unclean", False, "the controller may elect an out-of-sync replica when nobody leads"),
    Parameter("restarts", 0, "how many times a broker other than the leader may restart", minimum=0),
    Parameter("power_losses", 0, "how many such restarts may lose records that were not flushed", minimum=0),
    Parameter("acks", None, "track what producers were told, with acks 1 or all", choices=("1", "all")),
    Parameter("min_isr", 1, "min.insync.replicas, for acks=all", minimum=1),
    Parameter("repair", (), "quirks of the published model to mend", choices=tuple(QUIRKS), many=True),
    Parameter("mutant", None, "weaken one rule", choices=tuple(mutant.name for mutant in MUTANTS)),
)


TRUNCATION = Parameter(
    "truncation",
    "exchange",
    "how the common end of two logs is found: by exchanging OffsetForLeaderEpoch messages, or at once, as published",
    choices=("exchange", "agreement"),
)
"""For the versions since KIP-279. The two differ where logs are not in the order of epochs; see `docs/models.md`."""


class ActionNames(NamedTuple):
    """What the published module calls its variants of the actions."""

    expand_isr: str = "LeaderExpandIsr"
    shrink_isr: str = "LeaderShrinkIsr"
    advance_high_watermark: str = "LeaderIncHighWatermark"
    become_follower: str = "BecomeFollower"
    fetch: str = "FollowerReplicate"
    truncate: str = "FollowerTruncate"


NAMES = {
    "truncate-to-hw": ActionNames(become_follower="BecomeFollowerTruncateToHighWatermark"),
    "kip-101": ActionNames(become_follower="BecomeFollowerTruncateKip101"),
    "kip-279": ActionNames(become_follower="BecomeFollowerTruncateKip279"),
    "kip-320-first-try": ActionNames(
        expand_isr="LeaderExpandIsrBetterFencing",
        shrink_isr="LeaderShrinkIsrBetterFencing",
        advance_high_watermark="ImprovedLeaderIncHighWatermark",
        fetch="FollowerFetch",
    ),
    "kip-320": ActionNames(
        expand_isr="FencedLeaderExpandIsr",
        shrink_isr="FencedLeaderShrinkIsr",
        advance_high_watermark="FencedLeaderIncHighWatermark",
        become_follower="FencedBecomeFollowerAndTruncate",
        fetch="FencedFollowerFetch",
    ),
}


class Acknowledged(NamedTuple):
    """A record that a producer was told is safe, and its offset. Only the model knows it; no rule reads it."""

    offset: Offset
    record: Record


class Slots(NamedTuple):
    """The slots of the model; `announcement` holds the controller's decision of each epoch, once taken."""

    log: dict[int, Slot]
    high_watermark: dict[int, Slot]
    role: dict[int, Slot]
    partition: Slot
    next_record: Slot
    announcement: dict[int, Slot]
    restarts_left: Slot | None
    power_losses_left: Slot | None
    acknowledged: Slot | None


NOT_ANNOUNCED = LeaderAndIsr(NO_LEADER, NO_EPOCH, frozenset())


def build(name: str, protocol: Protocol, parameters: dict[str, Any]) -> Model:
    """The model `name` over `protocol`, within the bounds and with the settings of `parameters`."""
    if parameters["min_isr"] > 1 and parameters["acks"] != "all":
        raise ParameterError(f"--min-isr {parameters['min_isr']}: only --acks all looks at it")
    mutant = next((mutant for mutant in MUTANTS if mutant.name == parameters["mutant"]), None)
    rules = protocol if mutant is None else weaken(protocol, mutant)
    return _Builder(name, _repaired(rules, parameters["repair"]), parameters).build()


def _repaired(rules: Protocol, repairs: tuple[str, ...]) -> Protocol:
    changes: dict[str, Any] = {}
    if "keep-last-isr" in repairs:
        changes["fail_broker"] = fail_broker
    if "own-epoch-entry" in repairs:
        changes["start_leading"] = start_leading_with_epoch_entry
    if "truncate-against-leader" in repairs and rules.truncation_fencing(BrokerId(1), NO_ROLE, NO_EPOCH) == Error.NONE:
        changes["truncation_fencing"] = answer_as_leader
    if "kafka-epoch-lookup" in repairs:
        changes["epoch_lookup"] = look_up_as_released
    return replace(rules, **changes)


def _ask(rules: Protocol, leader_log: RecordLog) -> Callable[[Epoch], EpochEndOffset]:
    """The round trip of one OffsetForLeaderEpoch request, to a leader whose fence has let the follower through."""
    return lambda epoch: handle_offset_for_leader_epoch(Error.NONE, rules.epoch_lookup(leader_log, epoch)).end


def _truncated(log: RecordLog, high_watermark: Offset, offset: Offset) -> tuple[RecordLog, Offset]:
    remaining = log.truncate_to(offset)
    return remaining, high_watermark_after_truncation(high_watermark, remaining.end_offset)


def _with(replica: BrokerId, role: Role) -> Role:
    return with_replica(role, replica)


def _without(replica: BrokerId, role: Role) -> Role:
    return without_replica(role, replica)


def _last_fetch(leader: BrokerId, role: Role, log: RecordLog, offset: Offset) -> FetchRequest:
    """What `leader` remembers of a replica that has fetched whatever it could, of the fetch nearest to `offset`."""
    if not leads(leader, role):
        return NO_FETCH
    return fetch_request(role, log, min(offset, log.end_offset))


class _Builder:
    """Builds one model; each method adds the actions of one kind."""

    def __init__(self, name: str, rules: Protocol, parameters: dict[str, Any]) -> None:
        self.model = Model(name, parameters)
        self.rules = rules
        self.names = NAMES[name]
        self.parameters = parameters
        self.repairs = parameters["repair"]
        self.replicas = [BrokerId(replica) for replica in range(1, parameters["replicas"] + 1)]
        self.epochs = [Epoch(epoch) for epoch in range(parameters["max_epoch"] + 1)]
        self.acks = {None: None, "1": ACKS_LEADER, "all": ACKS_ALL}[parameters["acks"]]
        self.slots = slots = self._slots()
        self.is_leader = {replica: when(partial(leads, replica), slots.role[replica]) for replica in self.replicas}
        self.is_announced = {
            (leader, epoch): when(partial(leads, leader), slots.announcement[epoch])
            for leader in self.replicas
            for epoch in self.epochs
        }
        self.is_next_epoch = {
            epoch: when(lambda partition, epoch=epoch: next_epoch(partition) == epoch, slots.partition)
            for epoch in self.epochs
        }

    def _slots(self) -> Slots:
        model, replicas = self.model, self.replicas
        return Slots(
            log=model.broker_slots("log", replicas, EMPTY_LOG),
            high_watermark=model.broker_slots("highWatermark", replicas, Offset(0)),
            role=model.broker_slots("role", replicas, NO_ROLE),
            partition=model.slot("partition", LeaderAndIsr(NO_LEADER, NO_EPOCH, frozenset(replicas))),
            next_record=model.slot("nextRecord", 0, bookkeeping=True),
            announcement=model.numbered_slots("announcement", self.epochs, NOT_ANNOUNCED),
            restarts_left=self._budget("restarts"),
            power_losses_left=self._budget("power_losses"),
            acknowledged=model.slot("acknowledged", frozenset[Acknowledged]()) if self.acks is not None else None,
        )

    def _budget(self, parameter: str) -> Slot | None:
        """How many disturbances of a kind are left; no slot where there are none."""
        most = self.parameters[parameter]
        return self.model.slot(f"{parameter}_left", most, bookkeeping=True) if most else None

    def build(self) -> Model:
        self._controller()
        self._become_leader()
        self._become_follower()
        self._write()
        self._advance_high_watermark()
        self._change_isr()
        self._fetch()
        self._restart()
        self._properties()
        return self.model

    def _pairs(self) -> list[tuple[BrokerId, BrokerId]]:
        return [(leader, other) for leader in self.replicas for other in self.replicas if leader != other]

    # ---- the controller

    def _controller(self) -> None:
        for replica in self.replicas:
            self._decide("ControllerElectLeader", replica, may_elect_cleanly, elect_cleanly, "elects broker {}")
            self._decide("ControllerShrinkIsr", replica, may_fail, self.rules.fail_broker, "notices that broker {} failed")
            if self.parameters["unclean"]:
                self._decide(
                    "ControllerElectUncleanLeader",
                    replica,
                    may_elect_uncleanly,
                    elect_uncleanly,
                    "elects broker {}, which is out of sync",
                )

    def _decide(
        self,
        name: str,
        replica: BrokerId,
        may: Callable[[LeaderAndIsr, BrokerId], bool],
        decide: Callable[[LeaderAndIsr, BrokerId], LeaderAndIsr],
        story: str,
    ) -> None:
        """A decision of the controller: the partition changes, and the new state is announced under its epoch."""
        partition = self.slots.partition
        for epoch in self.epochs:
            self.model.action(
                name,
                {"replica": replica},
                events=[Note(CONTROLLER, story.format(replica))],
                guards=[self.is_next_epoch[epoch], when(lambda state: may(state, replica), partition)],
                effects=[
                    then(
                        (partition, self.slots.announcement[epoch]),
                        lambda state: (decide(state, replica), decide(state, replica)),
                        partition,
                    )
                ],
            )

    # ---- becoming leader or follower

    def _become_leader(self) -> None:
        slots = self.slots
        for epoch in self.epochs:
            announced = slots.announcement[epoch]
            for leader in self.replicas:
                self.model.action(
                    "BecomeLeader",
                    {"leader": leader, "epoch": epoch},
                    events=[Message(CONTROLLER, leader, f"LeaderAndIsr: lead in epoch {epoch}")],
                    guards=[
                        self.is_announced[leader, epoch],
                        when(is_newer, slots.role[leader], announced),
                    ],
                    effects=[
                        then(slots.role[leader], lambda request: request, announced),
                        *self._start_leading(leader, epoch),
                    ],
                )

    def _start_leading(self, leader: BrokerId, epoch: Epoch) -> list[Effect]:
        start_leading = self.rules.start_leading
        if start_leading(EMPTY_LOG, epoch) == EMPTY_LOG:
            return []
        return [then(self.slots.log[leader], lambda log: start_leading(log, epoch), self.slots.log[leader])]

    def _become_follower(self) -> None:
        slots = self.slots
        for epoch in self.epochs:
            announced = slots.announcement[epoch]
            for leader, follower in self._pairs():
                self.model.action(
                    self.names.become_follower,
                    {"follower": follower, "leader": leader, "epoch": epoch},
                    events=[
                        Message(CONTROLLER, follower, f"LeaderAndIsr: follow broker {leader} in epoch {epoch}"),
                        *self._truncation_events(leader, follower),
                    ],
                    guards=[
                        self.is_announced[leader, epoch],
                        when(is_newer, slots.role[follower], announced),
                        *self._leader_answers(leader, epoch),
                    ],
                    effects=[
                        then(slots.role[follower], lambda request: request, announced),
                        *self._truncation(leader, follower),
                    ],
                )
            if "leaderless-followers" in self.repairs:
                self._become_follower_of_none(epoch)

    def _become_follower_of_none(self, epoch: Epoch) -> None:
        slots = self.slots
        announced = slots.announcement[epoch]
        for replica in self.replicas:
            self.model.action(
                self.names.become_follower,
                {"follower": replica, "leader": NO_LEADER, "epoch": epoch},
                events=[Message(CONTROLLER, replica, f"LeaderAndIsr: nobody leads in epoch {epoch}")],
                guards=[
                    when(lambda request: request != NOT_ANNOUNCED and request.leader == NO_LEADER, announced),
                    when(is_newer, slots.role[replica], announced),
                ],
                effects=[then(slots.role[replica], lambda request: request, announced)],
            )

    def _truncation_events(self, leader: BrokerId, follower: BrokerId) -> list[Event]:
        rule = self.rules.truncation
        if rule == keep_whole_log:
            return []
        if rule == truncate_to_high_watermark:
            return [Note(follower, "truncates its log to its own high watermark")]
        return [
            Message(follower, leader, "OffsetForLeaderEpoch: where does my last epoch end?"),
            Message(leader, follower, "its end in the leader's log"),
        ]

    def _leader_answers(self, leader: BrokerId, epoch: Epoch) -> list[Local]:
        """The follower asks in its new epoch; where the fence refuses, it cannot truncate yet and tries again later."""
        if self.rules.truncation == keep_whole_log:
            return []
        fence = self.rules.truncation_fencing
        return [when(lambda role: fence(leader, role, epoch) == Error.NONE, self.slots.role[leader])]

    def _truncation(self, leader: BrokerId, follower: BrokerId) -> list[Effect]:
        """Truncation of a new follower's log: the whole exchange of questions and answers in one step."""
        rule = self.rules.truncation
        if rule == keep_whole_log:
            return []
        if rule == truncate_to_common_epoch:
            return [self._truncate_to_common_part(leader, follower)]
        log, high_watermark = self.slots.log, self.slots.high_watermark
        clamp = "clamp-truncation" in self.repairs

        def truncate(
            own: RecordLog, own_high_watermark: Offset, leader_log: RecordLog
        ) -> tuple[RecordLog, Offset] | Refusal:
            offset = rule(own, own_high_watermark, _ask(self.rules, leader_log))
            if clamp:
                offset = clamped(offset, own)
            return _truncated(own, own_high_watermark, offset) if offset <= own.end_offset else REFUSED

        reads = (log[follower], high_watermark[follower], log[leader])
        return [then((log[follower], high_watermark[follower]), truncate, *reads)]

    def _truncate_to_common_part(self, leader: BrokerId, follower: BrokerId) -> Effect:
        log, high_watermark = self.slots.log, self.slots.high_watermark
        agreement = self.parameters[TRUNCATION.name] == "agreement"

        def truncate(own: RecordLog, own_high_watermark: Offset, leader_log: RecordLog) -> tuple[RecordLog, Offset]:
            if agreement:
                offset = own.agreement_end(leader_log)
            else:
                offset = truncate_to_common_epoch(own, own_high_watermark, _ask(self.rules, leader_log))
            return _truncated(own, own_high_watermark, offset)

        reads = (log[follower], high_watermark[follower], log[leader])
        return then((log[follower], high_watermark[follower]), truncate, *reads)

    # ---- the leader

    def _write(self) -> None:
        slots, parameters = self.slots, self.parameters
        acks = self.acks
        for leader in self.replicas:
            log, role = slots.log[leader], slots.role[leader]
            effects = [
                then(
                    log,
                    lambda log, role, value: append_as_leader(log, role.leader_epoch, value),
                    log,
                    role,
                    slots.next_record,
                ),
                then(slots.next_record, lambda value: value + 1, slots.next_record),
            ]
            guards = [
                self.is_leader[leader],
                when(lambda value: value < parameters["max_records"], slots.next_record),
                when(lambda log: log.end_offset < parameters["log_size"], log),
            ]
            if acks is not None:
                guards.append(when(lambda role: check_produce(role, acks, self._min_isr) == Error.NONE, role))
            if slots.acknowledged and acks is not None and acknowledged_on_append(acks):
                effects.append(
                    then(
                        slots.acknowledged,
                        lambda acked, log, role, value: (
                            acked | {Acknowledged(log.end_offset, Record(value, role.leader_epoch))}
                        ),
                        slots.acknowledged,
                        log,
                        role,
                        slots.next_record,
                    )
                )
            events = [Message(PRODUCER, leader, "write a record")]
            if acks == ACKS_LEADER:
                events.append(Message(leader, PRODUCER, "acknowledged (acks=1)"))
            self.model.action("LeaderWrite", {"leader": leader}, guards, effects, events)

    @property
    def _min_isr(self) -> int:
        return min(int(self.parameters["min_isr"]), len(self.replicas))

    def _advance_high_watermark(self) -> None:
        slots = self.slots
        for leader in self.replicas:
            log, role, high_watermark = slots.log[leader], slots.role[leader], slots.high_watermark[leader]
            effects = [then(high_watermark, lambda offset: Offset(offset + 1), high_watermark)]
            if slots.acknowledged and self.acks == ACKS_ALL:
                effects.append(then(slots.acknowledged, self._acknowledge, slots.acknowledged, log, role, high_watermark))
            self.model.action(
                self.names.advance_high_watermark,
                {"leader": leader},
                events=[Note(leader, "every in-sync replica has the next record: it is committed")],
                guards=[
                    self.is_leader[leader],
                    when(has_record_to_commit, log, high_watermark),
                    *(self._does_not_hold_back(leader, replica) for replica in self.replicas),
                ],
                effects=effects,
            )

    def _acknowledge(
        self, acknowledged: frozenset[Acknowledged], log: RecordLog, role: Role, offset: Offset
    ) -> frozenset[Acknowledged]:
        if not acknowledged_on_commit(role, ACKS_ALL, self._min_isr):
            return acknowledged
        return acknowledged | {Acknowledged(offset, log.read(offset, 1)[0])}

    def _does_not_hold_back(self, leader: BrokerId, replica: BrokerId) -> Local:
        def free_to_advance(
            role: Role, log: RecordLog, high_watermark: Offset, other_role: Role, other_log: RecordLog
        ) -> bool:
            reached = self._has_replicated(leader, role, log, other_role, other_log, Offset(high_watermark + 1))
            return not holds_back_high_watermark(role, replica, reached)

        slots = self.slots
        own = (slots.role[leader], slots.log[leader], slots.high_watermark[leader])
        return when(free_to_advance, *own, slots.role[replica], slots.log[replica])

    def _has_replicated(
        self, leader: BrokerId, role: Role, log: RecordLog, follower_role: Role, follower_log: RecordLog, offset: Offset
    ) -> bool:
        """Whether the leader may believe that a replica has its log up to `offset`, if the replica fetches just now."""
        fetch = _last_fetch(leader, follower_role, follower_log, offset)
        return self.rules.has_replicated(role, log, fetch, offset)

    def _change_isr(self) -> None:
        slots = self.slots
        for leader, follower in self._pairs():
            args = {"leader": leader, "follower": follower}
            partition, role = slots.partition, slots.role[leader]
            both = (role, slots.log[leader], slots.role[follower], slots.log[follower])
            is_true_leader = when(lambda state, role: check_isr_update(state, role) == Error.NONE, partition, role)
            self.model.action(
                self.names.shrink_isr,
                args,
                events=[Message(leader, CONTROLLER, f"ISR without broker {follower}")],
                guards=[self.is_leader[leader], is_true_leader, when(self._may_leave(leader, follower), *both)],
                effects=self._update_isr(leader, partial(_without, follower)),
            )
            self.model.action(
                self.names.expand_isr,
                args,
                events=[Message(leader, CONTROLLER, f"ISR with broker {follower}")],
                guards=[
                    self.is_leader[leader],
                    is_true_leader,
                    when(self.rules.may_join, role, slots.log[leader], slots.high_watermark[leader]),
                    when(self._may_join(leader, follower), *both, slots.high_watermark[leader]),
                ],
                effects=self._update_isr(leader, partial(_with, follower)),
            )

    def _may_leave(self, leader: BrokerId, follower: BrokerId) -> Callable[..., bool]:
        def may_leave(role: Role, log: RecordLog, other_role: Role, other_log: RecordLog) -> bool:
            reached = self._has_replicated(leader, role, log, other_role, other_log, log.end_offset)
            return may_leave_isr(role, follower, reached)

        return may_leave

    def _may_join(self, leader: BrokerId, follower: BrokerId) -> Callable[..., bool]:
        def may_join(role: Role, log: RecordLog, other_role: Role, other_log: RecordLog, high_watermark: Offset) -> bool:
            reached = self._has_replicated(leader, role, log, other_role, other_log, high_watermark)
            return may_join_isr(role, follower, reached)

        return may_join

    def _update_isr(self, leader: BrokerId, change: Callable[[Role], Role]) -> list[Effect]:
        """Proposal, conditional write and confirmation of an ISR change, in one step."""
        partition, role = self.slots.partition, self.slots.role[leader]
        return [then(partition, change, role), then(role, change, role)]

    # ---- fetching

    def _fetch(self) -> None:
        slots = self.slots
        for leader, follower in self._pairs():
            guards = [self.is_leader[leader], when(partial(leads, leader), slots.role[follower])]
            own = (slots.role[follower], slots.log[follower])
            asked = (slots.role[leader], slots.log[leader])
            written = (slots.log[follower], slots.high_watermark[follower])
            self.model.action(
                self.names.fetch,
                {"follower": follower, "leader": leader},
                events=[Message(follower, leader, "Fetch"), Message(leader, follower, "one record, and the high watermark")],
                guards=guards,
                effects=[
                    then(written, self._fetch_once(leader), *own, *asked, slots.high_watermark[leader]),
                ],
            )
            if self.rules.truncation == keep_whole_log:
                self.model.action(
                    self.names.truncate,
                    {"follower": follower, "leader": leader},
                    events=[
                        Message(follower, leader, "Fetch"),
                        Message(leader, follower, "LOG_TRUNCATION"),
                        Message(follower, leader, "OffsetForLeaderEpoch: where does my last epoch end?"),
                        Message(leader, follower, "its end in the leader's log"),
                    ],
                    guards=guards,
                    effects=[
                        then(written, self._truncate_when_refused(leader), *own, *asked, slots.high_watermark[follower]),
                    ],
                )

    def _fetch_once(self, leader: BrokerId) -> Callable[..., tuple[RecordLog, Offset] | Refusal]:
        fencing = self.rules.fetch_fencing

        def fetch(
            own_role: Role, own_log: RecordLog, role: Role, log: RecordLog, high_watermark: Offset
        ) -> tuple[RecordLog, Offset] | Refusal:
            request = fetch_request(own_role, own_log, own_log.end_offset)
            verdict = fencing(role, log, request)
            response = handle_fetch(leader, role, log, high_watermark, request, MAX_RECORDS_PER_FETCH, verdict)
            if response.error != Error.NONE or not response.records:
                return REFUSED
            return apply_fetch_response(own_log, response)

        return fetch

    def _truncate_when_refused(self, leader: BrokerId) -> Callable[..., tuple[RecordLog, Offset] | Refusal]:
        fencing = self.rules.fetch_fencing
        agreement = self.parameters[TRUNCATION.name] == "agreement"

        def truncate(
            own_role: Role, own_log: RecordLog, role: Role, log: RecordLog, own_high_watermark: Offset
        ) -> tuple[RecordLog, Offset] | Refusal:
            if fencing(role, log, fetch_request(own_role, own_log, own_log.end_offset)) != Error.LOG_TRUNCATION:
                return REFUSED
            if agreement:
                return _truncated(own_log, own_high_watermark, own_log.agreement_end(log))
            offset = truncate_to_common_epoch(own_log, own_high_watermark, _ask(self.rules, log))
            return _truncated(own_log, own_high_watermark, offset)

        return truncate

    # ---- disturbances

    def _restart(self) -> None:
        slots = self.slots
        for replica in self.replicas:
            role, log, high_watermark = slots.role[replica], slots.log[replica], slots.high_watermark[replica]
            guards = [
                when(lambda role: role != NO_ROLE, role),
                when(lambda partition, replica=replica: not leads(replica, partition), slots.partition),
            ]
            if slots.restarts_left:
                self.model.action(
                    "Restart",
                    {"replica": replica},
                    events=[Note(replica, "restarts, with its log and its checkpointed high watermark")],
                    guards=[when(bool, slots.restarts_left), *guards],
                    effects=[
                        then(role, restart, slots.partition),
                        then(slots.restarts_left, lambda left: left - 1, slots.restarts_left),
                    ],
                )
            if slots.power_losses_left:
                for end in range(self.parameters["log_size"]):
                    self.model.action(
                        "PowerLoss",
                        {"replica": replica, "end": end},
                        events=[Note(replica, f"loses power, and every record from offset {end} on: not yet flushed")],
                        guards=[
                            when(bool, slots.power_losses_left),
                            *guards,
                            when(lambda log, end=end: end < log.end_offset, log),
                        ],
                        effects=[
                            then(role, restart, slots.partition),
                            then(
                                (log, high_watermark),
                                lambda log, offset, end=end: _truncated(log, offset, Offset(end)),
                                log,
                                high_watermark,
                            ),
                            then(slots.power_losses_left, lambda left: left - 1, slots.power_losses_left),
                        ],
                    )

    # ---- properties

    def _properties(self) -> None:
        add_properties(self.model, self.slots, self.replicas, self.parameters)
