"""Requests to change the voters of the metadata log (KIP-853). What is answered is decided in `spec.quorum`.

Kafka: `KafkaRaftClient`, `AddVoterHandler`, `RemoveVoterHandler`, `UpdateVoterHandler`.
"""

from collections.abc import Iterable

from kspec.impl.broker.calls import Call, Effect
from kspec.impl.controller.core import ControllerCore
from kspec.impl.controller.quorum.messages import endpoints_in
from kspec.impl.metadata.voters import Endpoint
from kspec.impl.wire.quorum import FIRST_WITH_ACK, key_of
from kspec.impl.wire.values import Message
from kspec.spec.controller.rules.features import KRAFT_VERSION, FeatureLevel, FeatureRange, supports
from kspec.spec.messages.quorum.voter_changes import AddVoterRequest, UpdateVoterRequest
from kspec.spec.quorum.refusals import check_changed_voter, check_leader_epoch
from kspec.spec.values import NO_DIRECTORY, NO_LEADER, Epoch, Error, Instant, ReplicaKey


def add_raft_voter(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """A replica is to vote. **Kafka:** `KafkaRaftClient.handleAddVoterRequest`."""
    message, voter = call.message, _voter(call.message)
    endpoints = _by_listener(core, endpoints_in(message.listeners))
    error = _check(core, call, voter, bool(endpoints))

    def answer(error: Error) -> list[Effect]:
        return [call.respond(error_code=error.value, error_message=_said(core, error, voter, message.cluster_id))]

    if error != Error.NONE:
        return answer(error)
    waits = message.ack_when_committed if call.version >= FIRST_WITH_ACK else True
    return core.voter.add_voter(AddVoterRequest(voter, waits), endpoints, now, answer)


def remove_raft_voter(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """A replica is not to vote any more. **Kafka:** `KafkaRaftClient.handleRemoveVoterRequest`."""
    message, voter = call.message, _voter(call.message)
    error = _check(core, call, voter, True)

    def answer(error: Error) -> list[Effect]:
        return [call.respond(error_code=error.value, error_message=_said(core, error, voter, message.cluster_id))]

    return answer(error) if error != Error.NONE else core.voter.remove_voter(voter, now, answer)


def update_raft_voter(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """A voter says where it is reached. **Kafka:** `KafkaRaftClient.handleUpdateVoterRequest`."""
    message, voter = call.message, _voter(call.message)
    endpoints = _by_listener(core, endpoints_in(message.listeners))
    error = _check_update(core, call, voter, bool(endpoints))

    def answer(error: Error) -> list[Effect]:
        leader = core.voter.leader
        at = None if leader == NO_LEADER else core.endpoint_of(leader)
        place = {"host": "", "port": -1} if at is None else {"host": at.host, "port": at.port}
        told = Message(leader_id=leader, leader_epoch=core.voter.epoch, **place)
        return [call.respond(error_code=error.value, current_leader=told)]

    if error != Error.NONE:
        return answer(error)
    supports_upgrade = supports((_known_levels(message),), FeatureLevel(KRAFT_VERSION, WANTED))
    return core.voter.update_voter(UpdateVoterRequest(voter, supports_upgrade), endpoints, now, answer)


def _voter(message: Message) -> ReplicaKey:
    return key_of(message.voter_id, message.voter_directory_id)


def _by_listener(core: ControllerCore, endpoints: Iterable[Endpoint]) -> tuple[Endpoint, ...]:
    """The listeners of a voter, that of controllers first; none without that one."""
    listed = tuple(endpoints)
    own = [one for one in listed if one.listener.upper() == core.listener.upper()]
    return (*own, *(one for one in listed if one not in own)) if own else ()


def _check(core: ControllerCore, call: Call, voter: ReplicaKey, is_reached: bool) -> Error:
    same_cluster = call.message.cluster_id in (None, core.cluster_id)
    names_voter = voter.id >= 0 and voter.directory != NO_DIRECTORY
    return check_changed_voter(same_cluster, core.voter.leads, names_voter, is_reached)


def _check_update(core: ControllerCore, call: Call, voter: ReplicaKey, is_reached: bool) -> Error:
    is_known = supports((_known_levels(call.message),), FeatureLevel(KRAFT_VERSION, core.voter.kraft_version))
    error = _check(core, call, voter, is_reached and is_known)
    epoch = Epoch(call.message.current_leader_epoch)
    return check_leader_epoch(core.voter.state, epoch) if error == Error.NONE else error


def _known_levels(message: Message) -> FeatureRange:
    ranges = message.k_raft_version_feature
    return FeatureRange(KRAFT_VERSION, ranges.min_supported_version, ranges.max_supported_version)


def _said(core: ControllerCore, error: Error, voter: ReplicaKey, cluster_id: str | None) -> str | None:
    """The reason for an error, in words; after a timeout nobody knows yet whether the voters change."""
    match error:
        case Error.NONE | Error.NOT_LEADER_OR_FOLLOWER:
            return None
        case Error.INCONSISTENT_CLUSTER_ID:
            return f'The given id "{cluster_id}" doesn\'t match the cluster id "{core.cluster_id}"'
        case Error.INVALID_REQUEST:
            return f"voter {voter.id} needs a directory, the listener {core.listener}, and kraft.version {WANTED}"
        case Error.UNSUPPORTED_VERSION:
            return f"the voters are not changed with kraft.version {core.voter.kraft_version}"
        case Error.DUPLICATE_VOTER:
            return f"a voter with the id {voter.id} is there already"
        case Error.VOTER_NOT_FOUND:
            return f"{voter.id} with this directory is no voter, or the only one"
        case _:
            return (
                f"voter {voter.id}: another change is under way, nothing of this epoch is committed yet, the new voter does "
                "not answer or lags behind, or the change is not yet committed, and may be later"
            )


WANTED = 1
"""The level of `kraft.version` with which voters are changed."""
