"""Groups of consumers: requests for the coordinator of `spec`, and its answers."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol, TypeAlias, TypeVar, TypeVarTuple, assert_never

from kspec.impl.broker.calls import TURN_SIZE, Call, Effect, InTurns, Steps, Then, ends_turn
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.replica import Replica
from kspec.impl.requests.coordinator_log import CoordinatorRole
from kspec.impl.requests.group_log import TOPIC, GroupLog, Shard, StoredRecords
from kspec.impl.requests.topics import create_missing
from kspec.impl.storage.small_files import random_uuid
from kspec.impl.wire.values import Message
from kspec.spec.controller.topics.names import CONSUMER_OFFSETS, TRANSACTION_STATE
from kspec.spec.coordinator.administration import (
    GROUP_KEY,
    TRANSACTION_KEY,
    check_coordinated,
    check_coordinator_key,
    find_coordinator,
)
from kspec.spec.coordinator.effects import (
    AnswerMember,
    AnswerRequest,
    GroupAnswer,
    PersistRecords,
    PersistTransactionalOffsets,
    RuntimeEffect,
)
from kspec.spec.coordinator.joining import check_join_request
from kspec.spec.coordinator.members import check_sync_request
from kspec.spec.coordinator.modern.heartbeat import check_consumer_heartbeat
from kspec.spec.coordinator.modern.state import ResolvedRegularExpression
from kspec.spec.coordinator.protocol import MINUTE_MS, Coordinator, CoordinatorSettings, MigrationPolicy
from kspec.spec.coordinator.records import EndOfTransaction
from kspec.spec.coordinator.refusals import GroupRequest, refuse
from kspec.spec.coordinator.runtime import (
    NO_REQUEST,
    NOWHERE,
    CoordinatedGroup,
    LoadedGroups,
    LogPosition,
    RuntimeStep,
    activate,
    check_marker_of_groups,
    end_transaction,
    expire_offsets,
    forget_topic,
    handle_group_request,
    next_due,
    numbered,
    on_append_refused,
    on_committed,
    on_due,
    on_event_refused,
    resign,
    take_resolved,
    unknown_group,
)
from kspec.spec.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kspec.spec.messages.groups.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from kspec.spec.messages.groups.join_group import GroupProtocol, JoinGroupRequest, JoinGroupResponse
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, single_error
from kspec.spec.messages.groups.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kspec.spec.messages.groups.sync_group import MemberAssignment, SyncGroupRequest, SyncGroupResponse
from kspec.spec.releases.names import coordinator_of
from kspec.spec.step import Step
from kspec.spec.transactions.log.partition import NO_GUARD
from kspec.spec.values import Error, Generation, GroupId, Instant, MemberId, MonotonicMs, ProducerId, TopicId

"""What FindCoordinator looks for. Kafka: `FindCoordinatorRequest.CoordinatorType`."""

FIRST_NAMING_PROTOCOLS = 5
"""The version of SyncGroup from which a member says which protocol it uses."""

FIRST_WITHOUT_PROTOCOL_NAME = 7
"""The version of JoinGroup from which an answer may have no protocol."""

FIRST_WITH_MANY_KEYS, FIRST_REQUIRING_MEMBER_ID, FIRST_SKIPPING_ASSIGNMENT, FIRST_WITH_MANY_MEMBERS = 4, 4, 9, 3

GroupResponse: TypeAlias = GroupAnswer | JoinGroupResponse | SyncGroupResponse
ResponseT = TypeVar("ResponseT", bound=GroupResponse)
Given = TypeVarTuple("Given")


class GroupHandler(Protocol[*Given]):
    """A handler of `spec` that the coordinator calls for one of its groups."""

    def __call__(self, coordinator: Coordinator, group: CoordinatedGroup, /, *given: *Given) -> RuntimeStep:
        """Handle a request or an event."""


class Groups(CoordinatorRole[LoadedGroups, Shard]):
    """The coordinator of this broker's groups."""

    def __init__(self, core: BrokerCore) -> None:
        self.core = core
        config = core.config
        self.log: GroupLog = GroupLog(core)
        self.coordinator = Coordinator(
            coordinator_of(core.protocol.name),
            CoordinatorSettings(
                min_session_timeout_ms=config.number("group.min.session.timeout.ms"),
                max_session_timeout_ms=config.number("group.max.session.timeout.ms"),
                initial_rebalance_delay_ms=config.number("group.initial.rebalance.delay.ms"),
                max_size=config.number("group.max.size"),
                max_metadata_size=config.number("offset.metadata.max.bytes"),
                offsets_retention_ms=config.number("offsets.retention.minutes") * MINUTE_MS,
                retention_check_interval_ms=config.number("offsets.retention.check.interval.ms"),
                commit_timeout_ms=config.number("offsets.commit.timeout.ms"),
                consumer_session_timeout_ms=config.number("group.consumer.session.timeout.ms"),
                consumer_heartbeat_interval_ms=config.number("group.consumer.heartbeat.interval.ms"),
                consumer_max_size=config.number("group.consumer.max.size"),
                consumer_assignors=config.words("group.consumer.assignors"),
                consumer_assignment_interval_ms=config.number("group.consumer.assignment.interval.ms"),
                migration=MigrationPolicy(config.word("group.consumer.migration.policy")),
            ),
        )
        self.resolving: set[GroupId] = set()
        """The groups whose regular expressions a thread resolves."""
        self._newest_topic = 0
        self._waiting: dict[int, Callable[[GroupResponse], list[Effect]]] = {}
        """The takers of responses, by the number of the request."""
        self._due: dict[GroupId, MonotonicMs] = {}
        core.topic_deleted.append(self.forget_topic)
        core.role_changed.append(self.role_changed)

    # ---- asking `spec`

    def ask(
        self,
        call: Call,
        request: GroupRequest,
        kind: type[ResponseT],
        shown: Callable[[ResponseT], dict[str, object]],
        now: Instant,
        is_long: bool = False,
        guard: int = NO_GUARD,
    ) -> list[Effect]:
        """Hand a request about one group to its group; `shown` puts the answer, of this kind, into the words of the wire."""
        return self.decide(request, kind, lambda reply: [call.respond(**shown(reply)).long_if(is_long)], now, guard)

    def decide(
        self,
        request: GroupRequest,
        kind: type[ResponseT],
        answer: Callable[[ResponseT], list[Effect]],
        now: Instant,
        guard: int = NO_GUARD,
    ) -> list[Effect]:
        """Hand a request to its group, or refuse if this broker does not coordinate it. The answer may come later.

        `guard`: the one under which its transaction was verified, if it is of one.
        """

        def take(response: GroupResponse) -> list[Effect]:
            assert isinstance(response, kind), f"{request} is answered with {response}"
            return answer(response)

        number = self.core.next_number()
        if isinstance(request, (JoinGroupRequest, SyncGroupRequest)):
            number = request.request
        self._waiting[number] = take
        group_id = group_of(request)
        shard = self.log.shard_of(group_id)
        if shard is not None:
            before = shard.group(group_id)
            step = self._run(handle_group_request, before, number, request, shard.position, now)

            def refused(error: Error) -> RuntimeStep:
                return self._run(on_append_refused, before, number, request, error, now)

            return self._take(shard, step, refused, now, guard)
        if group_id:
            error = Error.NONE
            if isinstance(request, JoinGroupRequest):
                error = check_join_request(self.coordinator, request)
            elif isinstance(request, ConsumerGroupHeartbeatRequest):
                error = check_consumer_heartbeat(self.coordinator, request)
            refusal = refuse(request, check_coordinated(error, self.log.is_loading(group_id)))
            return self._tell(numbered((refusal,), number))
        step = self._run(handle_group_request, unknown_group(group_id), number, request, NOWHERE, now)
        stores, _ = divided(step.effects)
        refusal = refuse(request, check_coordinated(Error.NONE, is_loading=False))
        return self._tell(numbered((refusal,), number) if stores else step.effects)

    def _run(self, handler: GroupHandler[*Given], group: CoordinatedGroup, *given: *Given) -> RuntimeStep:
        """Call a handler of a group."""
        self._know_topics()
        return self.core.step(handler, self.coordinator, group, *given)

    def _know_topics(self) -> None:
        """The coordinator knows the topics that this broker has read of."""
        image, known = self.core.cluster.image.spec, self.coordinator.topics
        if image.topics is not known:
            if {topic.topic_id for topic in image.topics.by_id} - {topic.topic_id for topic in known.by_id}:
                self._newest_topic = image.end_offset
            self.coordinator = replace(self.coordinator, topics=image.topics)

    def newest_topic(self) -> int:
        """The offset of the metadata at which this broker has last seen a topic that is new."""
        self._know_topics()
        return self._newest_topic

    def take_resolved(self, group_id: GroupId, found: tuple[ResolvedRegularExpression, ...], now: Instant) -> list[Effect]:
        """Regular expressions of a group are resolved."""
        shard = self.log.shard_of(group_id)
        if shard is None:
            return []
        group = shard.group(group_id)
        return self._take_event(shard, group, self._run(take_resolved, group, found, shard.position, now), now)

    # ---- transactions

    def check_marker(self, replica: Replica) -> Error:
        """Whether a marker may be appended to a partition of `__consumer_offsets` that this broker leads."""
        shard = self.log.shards.get(replica.place.partition)
        return check_marker_of_groups(shard is not None and shard.replica is replica)

    def transaction_ended(self, replica: Replica, producer_id: ProducerId, committed: bool, now: Instant) -> list[Effect]:
        """The marker of a producer is the last record of a partition of `__consumer_offsets`; `check_marker` was asked."""
        shard = self.log.shards[replica.place.partition]
        ended = EndOfTransaction(producer_id, committed)
        effects: list[Effect] = []
        for group_id in sorted(shard.unsettled):
            group = shard.group(group_id)
            step = self._run(end_transaction, group, ended, shard.position, now)
            effects += self._take_event(shard, group, step, now)
        return effects

    def _take(
        self,
        shard: Shard,
        step: RuntimeStep,
        refused: Callable[[Error], RuntimeStep],
        now: Instant,
        guard: int = NO_GUARD,
    ) -> list[Effect]:
        """Append a step's records, if it has any; then the group is as the step says, or as it is if the log refuses."""
        effects: list[Effect] = []
        stored, _ = divided(step.effects)
        if stored:
            error, effects = self.log.append(shard.replica, stored[0], now, guard)
            if error != Error.NONE:
                step = refused(error)
                assert not divided(step.effects)[0], "refused, and stored again"
            else:
                effects.append(Then(lambda: self.resign_if_offline(shard, now)))
        shard.keep(step.state)
        self._schedule(step.state)
        return effects + self._tell(step.effects)

    def _take_event(self, shard: Shard, before: CoordinatedGroup, step: RuntimeStep, now: Instant) -> list[Effect]:
        def refused(error: Error) -> RuntimeStep:
            _, answers = divided(step.effects)
            return Step(on_event_refused(self.coordinator, before, step.state, now), tuple(answers))

        return self._take(shard, step, refused, now)

    def _tell(self, effects: Iterable[RuntimeEffect]) -> list[Effect]:
        found: list[Effect] = []
        _, answers = divided(effects)
        for effect in answers:
            answer = self._waiting.pop(effect.request, None)
            if answer is not None:
                found += answer(effect.response)
        return found

    # ---- time

    def _schedule(self, group: CoordinatedGroup) -> None:
        group_id, due = group.latest.group_id, next_due(group)
        known = self._due.get(group_id)
        if due is not None and (known is None or due < known):
            self._due[group_id] = due
            self.core.timers.at(due, lambda now: self._on_time(group_id, due, now))

    def _on_time(self, group_id: GroupId, due: MonotonicMs, now: Instant) -> list[Effect]:
        if self._due.get(group_id) != due:
            return []
        del self._due[group_id]
        shard = self.log.shard_of(group_id)
        if shard is None:
            return []
        group = shard.group(group_id)
        following = next_due(group)
        if following is None or following > now.monotonic:
            self._schedule(group)
            return []
        return self._take_event(shard, group, self._run(on_due, group, shard.position, now), now)

    # ---- the log

    def activate(self, shard: Shard, now: Instant) -> list[Effect]:
        """Groups have been loaded: each goes on, and what is committed meanwhile is told."""
        effects: list[Effect] = []
        shard.replica.on_high_watermark = lambda at: self._committed(shard, at)
        for group in list(shard.groups.values()):
            effects += self._take_event(shard, group, self._run(activate, group, shard.position, now), now)
        return effects + self._committed(shard, now)

    def unload(self, shard: Shard, now: Instant) -> list[Effect]:
        """Groups are coordinated by another broker: whoever waits is told so."""
        effects: list[Effect] = []
        for group in shard.groups.values():
            self._due.pop(group.latest.group_id, None)
            effects += self._tell(self._run(resign, group, now).effects)
        return effects

    def _committed(self, shard: Shard, now: Instant) -> list[Effect]:
        """More of a partition is committed."""
        if shard.replica.offline or self.log.shards.get(shard.index) is not shard:
            return []
        effects: list[Effect] = []
        committed = shard.replica.partition.local.high_watermark
        for group_id in shard.commit(committed):
            step = self._run(on_committed, shard.group(group_id), committed, now)
            shard.keep(step.state)
            self._schedule(step.state)
            effects += self._tell(step.effects)
        return effects

    # ---- what happens to all

    def expire_offsets(self, now: Instant) -> list[Effect]:
        """Forget the offsets of groups that have been empty for too long."""
        return self._each(expire_offsets, now)

    def forget_topic(self, topic: str, topic_id: TopicId, now: Instant) -> list[Effect]:
        """Forget the offsets of a topic that is deleted. Without `__consumer_offsets` nobody coordinates groups any more."""
        return [] if topic == TOPIC else self._each(forget_topic, now, topic, topic_id)

    def _each(self, event: GroupHandler[*Given, LogPosition, Instant], now: Instant, *given: *Given) -> list[Effect]:
        """Tell every group of an event."""
        effects: list[Effect] = []
        for shard in self.log.led():
            for group in list(shard.groups.values()):
                effects += self._take_event(shard, group, self._run(event, group, *given, shard.position, now), now)
        return effects

    def listed(self, request: ListGroupsRequest, now: Instant) -> list[ListedGroup]:
        """The groups of this broker that a request asks for."""
        found: list[ListedGroup] = []
        for shard in self.log.led():
            for group in shard.groups.values():
                _, answers = divided(
                    self._run(handle_group_request, group, NO_REQUEST, request, shard.position, now).effects
                )
                for effect in answers:
                    assert isinstance(effect.response, ListGroupsResponse)
                    found += effect.response.groups
        return found


def divided(effects: Iterable[RuntimeEffect]) -> tuple[list[StoredRecords], list[AnswerMember | AnswerRequest]]:
    """The records that a step stores, and the requests that it answers, both in their order."""
    stored: list[StoredRecords] = []
    answers: list[AnswerMember | AnswerRequest] = []
    for effect in effects:
        match effect:
            case PersistRecords() | PersistTransactionalOffsets():
                stored.append(effect)
            case AnswerMember() | AnswerRequest():
                answers.append(effect)
            case _:
                assert_never(effect)
    return stored, answers


def group_of(request: GroupRequest) -> GroupId:
    """The group that a request is about."""
    return GroupId("") if isinstance(request, ListGroupsRequest) else request.group_id


# ---- requests of members


TOPICS = {GROUP_KEY: CONSUMER_OFFSETS, TRANSACTION_KEY: TRANSACTION_STATE}
"""The topics whose leaders are coordinators."""


def find(groups: Groups, call: Call, now: Instant) -> list[Effect]:
    """The coordinators of groups, or of transactional ids. **Kafka:** `KafkaApis.handleFindCoordinatorRequest`."""
    message = call.message
    if call.version >= FIRST_WITH_MANY_KEYS:
        return [InTurns(call, _find_many(groups, call, now))]
    found = _coordinator(groups.core, message.key, message.key_type)
    fields = dict(found.__dict__)
    del fields["key"]
    return [call.respond(**fields), *_wanted_topic(groups, message.key_type, now)]


def _find_many(groups: Groups, call: Call, now: Instant) -> Steps:
    keys, key_type = call.message.coordinator_keys, call.message.key_type
    found = []
    for number, key in enumerate(keys):
        found.append(_coordinator(groups.core, key, key_type))
        if ends_turn(number):
            yield []
    answer = call.respond(coordinators=found).long_if(len(keys) > TURN_SIZE)
    return [answer, *_wanted_topic(groups, key_type, now)] if keys else [answer]


def _wanted_topic(groups: Groups, key_type: int, now: Instant) -> list[Effect]:
    """Create the topic of a kind of coordinator, if somebody looks for one and it is not there."""
    topic = TOPICS.get(key_type)
    if topic is None or topic in groups.core.cluster.image.topics:
        return []
    return create_missing(groups.core, [topic], now)


def _coordinator(core: BrokerCore, key: str, key_type: int) -> Message:
    error, node = check_coordinator_key(key_type), -1
    if error == Error.NONE:
        topic = core.cluster.image.topics.get(TOPICS[key_type])
        registrations = core.cluster.registrations()
        leaders = tuple(registrations[one].leader for one in topic.partitions) if topic is not None else ()
        answer: FindCoordinatorResponse = find_coordinator(leaders, FindCoordinatorRequest(GroupId(key)))
        error, node = answer.error, answer.coordinator
    endpoint = core.cluster.image.endpoints.get(node) if error == Error.NONE else None
    host, port = (endpoint.host, endpoint.port) if endpoint is not None else ("", -1)
    message = None if error == Error.NONE else error.name
    return Message(key=key, node_id=node, host=host, port=port, error_code=error.value, error_message=message)


def join_group(groups: Groups, call: Call, now: Instant) -> list[Effect]:
    """A member joins. **Kafka:** `KafkaApis.handleJoinGroupRequest`."""
    message = call.message
    client_id = call.header.client_id
    request = JoinGroupRequest(
        groups.core.next_number(),
        GroupId(message.group_id),
        MemberId(message.member_id),
        message.group_instance_id,
        client_id,
        f"/{call.peer.host}",
        message.session_timeout_ms,
        message.rebalance_timeout_ms if call.version >= 1 else message.session_timeout_ms,
        message.protocol_type,
        tuple(GroupProtocol(one.name, bytes(one.metadata)) for one in message.protocols),
        MemberId(f"{message.group_instance_id or client_id}-{random_uuid()}"),
        call.version >= FIRST_REQUIRING_MEMBER_ID,
        call.version >= FIRST_SKIPPING_ASSIGNMENT,
    )

    def shown(answer: JoinGroupResponse) -> dict[str, object]:
        name = answer.protocol_name if answer.error == Error.NONE else None
        return {
            "error_code": answer.error.value,
            "generation_id": answer.generation,
            "protocol_type": answer.protocol_type,
            "protocol_name": "" if name is None and call.version < FIRST_WITHOUT_PROTOCOL_NAME else name,
            "leader": answer.leader,
            "skip_assignment": answer.skip_assignment,
            "member_id": answer.member_id,
            "members": [
                Message(member_id=one.member_id, group_instance_id=one.instance_id, metadata=one.metadata)
                for one in answer.members
            ],
        }

    return groups.ask(call, request, JoinGroupResponse, shown, now)


def sync_group(groups: Groups, call: Call, now: Instant) -> list[Effect]:
    """A member asks for its assignment. **Kafka:** `KafkaApis.handleSyncGroupRequest`."""
    message = call.message
    request = SyncGroupRequest(
        groups.core.next_number(),
        GroupId(message.group_id),
        Generation(message.generation_id),
        MemberId(message.member_id),
        message.group_instance_id,
        message.protocol_type,
        message.protocol_name,
        tuple(MemberAssignment(MemberId(one.member_id), bytes(one.assignment)) for one in message.assignments),
    )

    error = check_sync_request(request, call.version >= FIRST_NAMING_PROTOCOLS)
    if error != Error.NONE:
        return [call.respond(error_code=error.value)]

    def shown(answer: SyncGroupResponse) -> dict[str, object]:
        return {
            "error_code": answer.error.value,
            "protocol_type": answer.protocol_type,
            "protocol_name": answer.protocol_name,
            "assignment": answer.assignment,
        }

    return groups.ask(call, request, SyncGroupResponse, shown, now)


def heartbeat(groups: Groups, call: Call, now: Instant) -> list[Effect]:
    """A member is alive. **Kafka:** `KafkaApis.handleHeartbeatRequest`."""
    message = call.message
    request = HeartbeatRequest(
        GroupId(message.group_id),
        Generation(message.generation_id),
        MemberId(message.member_id),
        message.group_instance_id,
    )
    return groups.ask(call, request, HeartbeatResponse, lambda answer: {"error_code": answer.error.value}, now)


def leave_group(groups: Groups, call: Call, now: Instant) -> list[Effect]:
    """Members leave. **Kafka:** `KafkaApis.handleLeaveGroupRequest`."""
    message = call.message
    leaving: tuple[MemberIdentity, ...]
    if call.version < FIRST_WITH_MANY_MEMBERS:
        leaving = (MemberIdentity(MemberId(message.member_id)),)
    else:
        leaving = tuple(MemberIdentity(MemberId(one.member_id), one.group_instance_id) for one in message.members)
    request = LeaveGroupRequest(GroupId(message.group_id), leaving)

    def shown(answer: LeaveGroupResponse) -> dict[str, object]:
        if call.version < FIRST_WITH_MANY_MEMBERS:
            return {"error_code": single_error(answer).value}
        members = [
            Message(member_id=one.member_id, group_instance_id=one.instance_id, error_code=one.error.value)
            for one in answer.members
        ]
        return {"error_code": answer.error.value, "members": members}

    return groups.ask(call, request, LeaveGroupResponse, shown, now, len(leaving) > TURN_SIZE)
