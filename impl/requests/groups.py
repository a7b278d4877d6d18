"""Groups of consumers: requests for the coordinator of `spec`, and its answers."""

import uuid
from collections.abc import Callable
from typing import Any

from impl.broker.calls import Call, Effect
from impl.broker.core import Core
from impl.broker.replica import Replica
from impl.requests.group_log import TOPIC, GroupLog
from impl.requests.topics import create_offsets_topic
from impl.wire.values import Message
from spec.coordinator.administration import find_coordinator
from spec.coordinator.deadlines import next_deadline, on_activation, on_deadline, on_resignation
from spec.coordinator.effects import AnswerMember, PersistRecords
from spec.coordinator.group import Group, GroupStep, absent
from spec.coordinator.joining import check_join_request, handle_join_group
from spec.coordinator.members import check_sync_request, handle_heartbeat, handle_leave_group, handle_sync_group
from spec.coordinator.offsets import on_offsets_expiry, on_topic_deleted
from spec.coordinator.protocol import MINUTE_MS, Coordinator, CoordinatorSettings
from spec.coordinator.refusals import GroupRequest, on_records_refused, refuse
from spec.messages.groups.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from spec.messages.groups.heartbeat import HeartbeatRequest
from spec.messages.groups.join_group import GroupProtocol, JoinGroupRequest, JoinGroupResponse
from spec.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, single_error
from spec.messages.groups.sync_group import MemberAssignment, SyncGroupRequest, SyncGroupResponse
from spec.step import Reply
from spec.values import Error, Generation, GroupId, MemberId, TopicId

GROUP_KEY, TRANSACTION_KEY = 0, 1
"""What FindCoordinator looks for. Kafka: `FindCoordinatorRequest.CoordinatorType`."""

FIRST_NAMING_PROTOCOLS = 5
"""The version of SyncGroup from which a member says which protocol it uses."""

FIRST_WITHOUT_PROTOCOL_NAME = 7
"""The version of JoinGroup from which an answer may have no protocol."""

FIRST_WITH_MANY_KEYS, FIRST_REQUIRING_MEMBER_ID, FIRST_SKIPPING_ASSIGNMENT, FIRST_WITH_MANY_MEMBERS = 4, 4, 9, 3

GroupHandler = Callable[[Coordinator, Group, Any, int], GroupStep]
Shown = Callable[[Any], dict[str, Any]]


class Groups:
    """The coordinator of this broker's groups."""

    def __init__(self, core: Core) -> None:
        self.core = core
        config = core.config
        self.log = GroupLog(core)
        self.coordinator = Coordinator(
            CoordinatorSettings(
                min_session_timeout_ms=config["group.min.session.timeout.ms"],
                max_session_timeout_ms=config["group.max.session.timeout.ms"],
                initial_rebalance_delay_ms=config["group.initial.rebalance.delay.ms"],
                max_size=config["group.max.size"],
                max_metadata_size=config["offset.metadata.max.bytes"],
                offsets_retention_ms=config["offsets.retention.minutes"] * MINUTE_MS,
                retention_check_interval_ms=config["offsets.retention.check.interval.ms"],
                offsets_partitions=config["offsets.topic.num.partitions"],
            )
        )
        self._waiting: dict[int, tuple[Call, Shown]] = {}
        self._due: dict[GroupId, int] = {}
        core.topic_deleted.append(self.forget_topic)

    # ---- asking `spec`

    def ask(self, handler: GroupHandler, call: Call, request: Any, shown: Shown, now: int) -> list[Effect]:
        """Hand a request about one group to its handler; `shown` puts the answer into the words of the wire."""
        waits = isinstance(request, (JoinGroupRequest, SyncGroupRequest))
        if waits:
            self._waiting[request.request] = (call, shown)

        def answer(reply: Any) -> list[Effect]:
            return [call.respond(**shown(reply))]

        return self.decide(handler, request, answer, now)

    def decide(self, handler: GroupHandler, request: Any, answer: Callable[[Any], list[Effect]], now: int) -> list[Effect]:
        """Call a handler for the group of a request, or refuse if this broker does not coordinate it."""
        if request.group_id and self.log.replica_of(request.group_id) is None:
            error = check_join_request(self.coordinator, request) if isinstance(request, JoinGroupRequest) else Error.NONE
            return self._tell((refuse(request, Error.NOT_COORDINATOR if error == Error.NONE else error),), answer)
        group = self.log.group(request.group_id) if self.log.partitions else absent(request.group_id)
        return self.take(self.run(handler, group, request, now), request, now, answer)

    def run(self, handler: Callable[..., GroupStep], group: Group, *given: Any) -> GroupStep:
        """Call a handler of a group."""
        step = handler(self.coordinator, group, *given)
        if self.core.note is not None:
            self.core.note(handler, self.coordinator, group, given, step)
        return step

    def take(
        self, step: GroupStep, request: GroupRequest | None, now: int, answer: Callable[[Any], list[Effect]] | None = None
    ) -> list[Effect]:
        """Store a step's records first, if it has any; then the group is as the step says, and answers go out."""
        stored = [effect for effect in step.effects if isinstance(effect, PersistRecords)]
        others = tuple(effect for effect in step.effects if not isinstance(effect, PersistRecords))
        records = tuple(record for effect in stored for record in effect.records)
        replica = self.log.replica_of(step.state.group_id)
        if not records or replica is None:
            return self._settle(step.state, others, answer, now)

        def then(error: Error) -> list[Effect]:
            if error == Error.NONE or request is None:
                return self._settle(step.state, others, answer, now)
            refused = self.run(on_records_refused, self.log.group(step.state.group_id), request, error, now)
            return self._settle(refused.state, refused.effects, answer, now)

        return self.log.append(replica, records, now, then)

    def _settle(
        self, group: Group, effects: tuple[Any, ...], answer: Callable[[Any], list[Effect]] | None, now: int
    ) -> list[Effect]:
        if self.log.partitions:
            self.log.keep(group)
            self._schedule(group)
        return self._tell(effects, answer)

    def _tell(self, effects: tuple[Any, ...], answer: Callable[[Any], list[Effect]] | None) -> list[Effect]:
        found: list[Effect] = []
        for effect in effects:
            if isinstance(effect, AnswerMember):
                waiting = self._waiting.pop(effect.request, None)
                if waiting is not None:
                    found.append(waiting[0].respond(**waiting[1](effect.response)))
            elif isinstance(effect, Reply) and answer is not None:
                found += answer(effect.message)
        return found

    # ---- time

    def _schedule(self, group: Group) -> None:
        due, known = next_deadline(group), self._due.get(group.group_id)
        if due is not None and (known is None or due < known):
            self._due[group.group_id] = due
            self.core.timers.at(due, lambda now: self._on_time(group.group_id, due, now))

    def _on_time(self, group_id: GroupId, due: int, now: int) -> list[Effect]:
        if self._due.get(group_id) != due:
            return []
        del self._due[group_id]
        if self.log.replica_of(group_id) is None:
            return []
        group = self.log.group(group_id)
        following = next_deadline(group)
        if following is None or following > now:
            self._schedule(group)
            return []
        return self.take(self.run(on_deadline, group, now), None, now)

    def load(self, now: int) -> list[Effect]:
        """Read every partition that this broker leads; the members of each group have their session from now on."""
        return self._each(on_activation, now)

    def role_changed(self, replica: Replica, now: int) -> list[Effect]:
        """This broker leads a partition of `__consumer_offsets`, in a new epoch or no longer: groups come and go with it.

        **Kafka:** `GroupCoordinatorService.onElection`, `onResignation`.
        """
        if replica.place.topic != TOPIC:
            return []
        resigned = [self.run(on_resignation, group, now) for group in self.log.resign(replica)]
        for step in resigned:
            self._due.pop(step.state.group_id, None)
        effects = [effect for step in resigned for effect in self._tell(step.effects, None)]
        for group in self.log.elected(replica):
            effects += self.take(self.run(on_activation, group, now), None, now)
        return effects

    def expire_offsets(self, now: int) -> list[Effect]:
        """Forget the offsets of groups that have been empty for too long."""
        return self._each(on_offsets_expiry, now)

    def forget_topic(self, topic: str, topic_id: TopicId, now: int) -> list[Effect]:
        """Forget the offsets of a topic that is deleted. Without `__consumer_offsets` nobody coordinates groups any more."""
        if topic == TOPIC:
            groups = self.log.forget()
            self._due.clear()
            resigned = [self.run(on_resignation, group, now) for group in groups]
            return [effect for step in resigned for effect in self._tell(step.effects, None)]
        return self._each(on_topic_deleted, topic, topic_id, now)

    def _each(self, event: Callable[..., GroupStep], *given: Any) -> list[Effect]:
        """Tell every group of an event; the time is the last that it is given."""
        effects: list[Effect] = []
        for group in self.log.all_groups():
            effects += self.take(self.run(event, group, *given), None, given[-1])
        return effects


# ---- requests of members


def find(groups: Groups, call: Call, now: int) -> list[Effect]:
    """Which broker coordinates groups. **Kafka:** `KafkaApis.handleFindCoordinatorRequest`."""
    message = call.message
    many = call.version >= FIRST_WITH_MANY_KEYS
    keys = message.coordinator_keys if many else [message.key]
    found = [_coordinator(groups.core, key, message.key_type) for key in keys]
    effects: list[Effect] = []
    if message.key_type == GROUP_KEY and not groups.log.partitions:
        effects = create_offsets_topic(groups.core, now)
    if many:
        return [call.respond(coordinators=found), *effects]
    fields = dict(found[0].__dict__)
    del fields["key"]
    return [call.respond(**fields), *effects]


def _coordinator(core: Core, key: str, key_type: int) -> Message:
    error, node = Error.INVALID_REQUEST, -1
    if key_type == TRANSACTION_KEY:
        error = Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif key_type == GROUP_KEY:
        topic = core.cluster.image.topics.get(TOPIC)
        registrations = core.cluster.registrations()
        leaders = tuple(registrations[one].leader for one in topic.partitions) if topic is not None else ()
        answer: FindCoordinatorResponse = find_coordinator(leaders, FindCoordinatorRequest(GroupId(key)))
        error, node = answer.error, answer.coordinator
    endpoint = core.cluster.image.endpoints.get(node) if error == Error.NONE else None
    host, port = (endpoint.host, endpoint.port) if endpoint is not None else ("", -1)
    message = None if error == Error.NONE else error.name
    return Message(key=key, node_id=node, host=host, port=port, error_code=error.value, error_message=message)


def join_group(groups: Groups, call: Call, now: int) -> list[Effect]:
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
        MemberId(f"{message.group_instance_id or client_id}-{uuid.uuid4()}"),
        call.version >= FIRST_REQUIRING_MEMBER_ID,
        call.version >= FIRST_SKIPPING_ASSIGNMENT,
    )

    def shown(answer: JoinGroupResponse) -> dict[str, Any]:
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

    return groups.ask(handle_join_group, call, request, shown, now)


def sync_group(groups: Groups, call: Call, now: int) -> list[Effect]:
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

    def shown(answer: SyncGroupResponse) -> dict[str, Any]:
        return {
            "error_code": answer.error.value,
            "protocol_type": answer.protocol_type,
            "protocol_name": answer.protocol_name,
            "assignment": answer.assignment,
        }

    return groups.ask(handle_sync_group, call, request, shown, now)


def heartbeat(groups: Groups, call: Call, now: int) -> list[Effect]:
    """A member is alive. **Kafka:** `KafkaApis.handleHeartbeatRequest`."""
    message = call.message
    request = HeartbeatRequest(
        GroupId(message.group_id),
        Generation(message.generation_id),
        MemberId(message.member_id),
        message.group_instance_id,
    )
    return groups.ask(handle_heartbeat, call, request, lambda answer: {"error_code": answer.error.value}, now)


def leave_group(groups: Groups, call: Call, now: int) -> list[Effect]:
    """Members leave. **Kafka:** `KafkaApis.handleLeaveGroupRequest`."""
    message = call.message
    leaving: tuple[MemberIdentity, ...]
    if call.version < FIRST_WITH_MANY_MEMBERS:
        leaving = (MemberIdentity(MemberId(message.member_id)),)
    else:
        leaving = tuple(MemberIdentity(MemberId(one.member_id), one.group_instance_id) for one in message.members)
    request = LeaveGroupRequest(GroupId(message.group_id), leaving)

    def shown(answer: LeaveGroupResponse) -> dict[str, Any]:
        if call.version < FIRST_WITH_MANY_MEMBERS:
            return {"error_code": single_error(answer).value}
        members = [
            Message(member_id=one.member_id, group_instance_id=one.instance_id, error_code=one.error.value)
            for one in answer.members
        ]
        return {"error_code": answer.error.value, "members": members}

    return groups.ask(handle_leave_group, call, request, shown, now)
