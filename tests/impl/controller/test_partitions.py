"""Partitions of a controller: topics, ISR proposals, elections, reassignments, settings of topics."""

from typing import Any

import pytest

from kspec.impl.wire.values import Message
from kspec.spec.controller.rules.features import ELIGIBLE_LEADER_REPLICAS
from kspec.spec.topics import ConfigResource, ResourceType, configs_of
from kspec.spec.values import NO_LEADER, Error
from tests.impl.controller.in_process import InProcess, InProcessPeer


def three(overrides: dict[str, str] | None = None, release: str = "next") -> tuple[InProcess, InProcessPeer, InProcessPeer]:
    controller = InProcess(overrides, release=release)
    controller.join()
    second, third = controller.others(2, 3)
    return controller, second, third


def propose(controller: InProcess, topic: str, isr: list[InProcessPeer | InProcess], **fields: Any) -> Message:
    known = controller.partition(topic)
    partition = {
        "partition_index": 0,
        "leader_epoch": known.leader_epoch,
        "new_isr_with_epochs": [Message(broker_id=one.broker, broker_epoch=one.broker_epoch) for one in isr],
        "leader_recovery_state": 0,
        "partition_epoch": known.partition_epoch,
    }
    topic_id = fields.pop("topic_id", controller.core.image.topics[topic].topic_id)
    epoch = fields.pop("broker_epoch", controller.broker_epoch)
    topics = [Message(topic_id=topic_id, partitions=[Message(**(partition | fields))])]
    return controller.call("AlterPartition", 3, broker_id=1, broker_epoch=epoch, topics=topics)


def test_topics_are_created_grown_and_deleted() -> None:
    controller, *_ = three()
    assert controller.create_topic("t", 2, 3, retention_ms="5").error_code == 0
    assert controller.create_topic("t").error_code == Error.TOPIC_ALREADY_EXISTS.value
    assert controller.create_topic("u", 1, 4).error_code == Error.INVALID_REPLICATION_FACTOR.value
    grown = controller.call("CreatePartitions", 3, topics=[Message(name="t", count=4, assignments=None)], timeout_ms=1)
    assert grown.results[0].error_code == 0
    assert len(controller.core.image.topics["t"].partitions) == 4
    assert configs_of(controller.core.image.spec.configs, ConfigResource(ResourceType.TOPIC, "t")) == (
        ("retention.ms", "5"),
    )
    deleted = controller.call("DeleteTopics", 6, topics=[Message(name="t"), Message(name="v")], timeout_ms=1)
    assert [one.error_code for one in deleted.responses] == [0, Error.UNKNOWN_TOPIC_OR_PARTITION.value]
    assert controller.core.image.spec.partitions == ()


def test_a_leader_proposes_an_isr() -> None:
    controller, second, _ = three()
    controller.create_on("t", [1, 2, 3])
    answer = propose(controller, "t", [controller, second]).topics[0].partitions[0]
    assert (answer.error_code, answer.leader_id, answer.isr, answer.partition_epoch) == (0, 1, [1, 2], 1)
    assert controller.partition("t").isr == {1, 2}
    twice = propose(controller, "t", [controller, second, second]).topics[0].partitions[0]
    assert (twice.error_code, controller.partition("t").partition_epoch) == (Error.INVALID_REQUEST.value, 1)
    stale = propose(controller, "t", [controller], partition_epoch=0).topics[0].partitions[0]
    assert stale.error_code == Error.INVALID_UPDATE_VERSION.value


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"topic_id": bytes([9]) * 16}, Error.UNKNOWN_TOPIC_ID),
        ({"partition_index": 5}, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": -1}, Error.FENCED_LEADER_EPOCH),
        ({"new_isr_with_epochs": [Message(broker_id=1, broker_epoch=1 << 40)]}, Error.INELIGIBLE_REPLICA),
    ],
)
def test_proposals_that_are_refused(fields: dict[str, Any], error: Error) -> None:
    controller, *_ = three()
    controller.create_on("t", [1, 2, 3])
    assert propose(controller, "t", [controller], **fields).topics[0].partitions[0].error_code == error.value


def test_a_proposal_of_a_stranger_is_refused_as_a_whole() -> None:
    controller, *_ = three()
    controller.create_on("t", [1, 2, 3])
    answer = propose(controller, "t", [controller], broker_epoch=controller.broker_epoch + 1)
    assert (answer.error_code, answer.topics) == (Error.STALE_BROKER_EPOCH.value, [])


def test_several_proposals_are_one_batch() -> None:
    controller, *_ = three()
    controller.create_on("t", [1, 2], [1, 3], [1, 2])
    batches = controller.log.end_offset
    ids = controller.core.image.topics["t"]
    member = [Message(broker_id=1, broker_epoch=controller.broker_epoch)]
    fields = {"leader_epoch": 0, "new_isr_with_epochs": member, "leader_recovery_state": 0, "partition_epoch": 0}
    partitions = [Message(partition_index=index, **fields) for index in range(3)]
    topics = [Message(topic_id=ids.topic_id, partitions=partitions)]
    answer = controller.call("AlterPartition", 3, broker_id=1, broker_epoch=controller.broker_epoch, topics=topics)
    assert [one.error_code for one in answer.topics[0].partitions] == [0, 0, 0]
    assert controller.log.end_offset == batches + 3
    assert [controller.partition("t", index).isr for index in range(3)] == [{1}] * 3


# ---- elections


def elect(controller: InProcess, unclean: bool, *partitions: tuple[str, list[int]]) -> dict[tuple[str, int], int]:
    wanted = [Message(topic=topic, partitions=indexes) for topic, indexes in partitions] if partitions else None
    answer = controller.call("ElectLeaders", 2, election_type=int(unclean), topic_partitions=wanted)
    return {
        (topic.topic, one.partition_id): one.error_code
        for topic in answer.replica_election_results
        for one in topic.partition_result
    }


def test_leaders_are_elected_by_request() -> None:
    controller, *_ = three()
    controller.create_on("t", [1, 2], [2, 1])
    controller.heartbeat(want_fence=True)
    controller.heartbeat()
    assert controller.partition("t").leader == 2
    assert elect(controller, False) == {("t", 0): Error.PREFERRED_LEADER_NOT_AVAILABLE.value}
    asked = elect(controller, False, ("t", [1, 7]), ("u", [0]))
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION.value
    assert asked == {("t", 1): Error.ELECTION_NOT_NEEDED.value, ("t", 7): unknown, ("u", 0): unknown}


def test_preferred_replicas_are_elected_in_time() -> None:
    controller, second, _ = three({"leader.imbalance.check.interval.seconds": "20", "broker.session.timeout.ms": "90000"})
    controller.create_on("t", [1, 2])
    controller.heartbeat(want_fence=True)
    controller.heartbeat()
    known = controller.partition("t")
    members = [Message(broker_id=one.broker, broker_epoch=one.broker_epoch) for one in (controller, second)]
    partition = Message(
        partition_index=0,
        leader_epoch=known.leader_epoch,
        new_isr_with_epochs=members,
        leader_recovery_state=0,
        partition_epoch=known.partition_epoch,
    )
    topics = [Message(topic_id=controller.core.image.topics["t"].topic_id, partitions=[partition])]
    second.call("AlterPartition", 3, broker_id=2, broker_epoch=second.broker_epoch, topics=topics)
    assert (controller.partition("t").leader, controller.partition("t").isr) == (2, {1, 2})
    controller.pass_time(25_000)
    assert controller.partition("t").leader == 1


@pytest.mark.parametrize("of_topic", [True, False])
def test_unclean_leaders_are_elected_in_time_where_the_topic_or_the_cluster_allows_it(of_topic: bool) -> None:
    overrides = {"unclean.leader.election.interval.ms": "5000", "broker.session.timeout.ms": "90000"}
    controller, second, _ = three(overrides, release="3.9")
    for topic in ("t", "u"):
        controller.create_on(topic, [1, 2])
        propose(controller, topic, [controller])
    controller.heartbeat(want_fence=True)
    assert [controller.partition(topic).leader for topic in ("t", "u")] == [NO_LEADER] * 2
    change = Message(name="unclean.leader.election.enable", config_operation=0, value="true")
    resource = Message(resource_type=2 if of_topic else 4, resource_name="t" if of_topic else "", configs=[change])
    answer = controller.call("IncrementalAlterConfigs", 1, resources=[resource])
    assert answer.responses[0].error_code == 0
    controller.pass_time(6_000)
    assert [controller.partition(topic).leader for topic in ("t", "u")] == [2, NO_LEADER if of_topic else 2]
    assert second.heartbeat().error_code == 0


# ---- eligible leader replicas


@pytest.mark.parametrize(("release", "eligible"), [("next", {2}), ("3.9", set())])
def test_eligible_leader_replicas_by_release_and_by_the_topic_s_min_isr(release: str, eligible: set[int]) -> None:
    controller, second, _ = three(release=release)
    assert controller.core.image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) == (1 if eligible else 0)
    assert controller.create_topic("t", 1, 1).error_code == 0
    controller.create_on("u", [1, 2])
    change = Message(name="min.insync.replicas", config_operation=0, value="2")
    controller.call("IncrementalAlterConfigs", 1, resources=[Message(resource_type=2, resource_name="u", configs=[change])])
    second.heartbeat(want_fence=True)
    assert (controller.partition("u").isr, controller.partition("u").elr) == ({1}, eligible)
    change = Message(name="min.insync.replicas", config_operation=0, value="1")
    controller.call("IncrementalAlterConfigs", 1, resources=[Message(resource_type=2, resource_name="u", configs=[change])])
    assert controller.partition("u").elr == set()


def test_features_are_changed_by_request() -> None:
    controller, *_ = three(release="4.0")

    def update(level: int, kind: int, validate_only: bool = False) -> int:
        one = Message(feature=ELIGIBLE_LEADER_REPLICAS, max_version_level=level, upgrade_type=kind)
        answer = controller.call("UpdateFeatures", 2, feature_updates=[one], validate_only=validate_only)
        code: int = answer.error_code
        return code

    assert update(1, 1, validate_only=True) == 0
    assert not controller.core.deciding.controller.settings.eligible_leader_replicas
    assert update(1, 1) == 0
    assert controller.core.deciding.controller.settings.eligible_leader_replicas
    assert configs_of(controller.core.image.spec.configs, ConfigResource(ResourceType.BROKER, "")) == (
        ("min.insync.replicas", "1"),
    )
    assert update(0, 1) == update(2, 1) == Error.INVALID_UPDATE_VERSION.value
    assert update(0, 2) == 0
    assert ELIGIBLE_LEADER_REPLICAS not in controller.core.image.features


# ---- reassignments


def move(controller: InProcess, replicas: list[int] | None, **fields: Any) -> int:
    topics = [Message(name="t", partitions=[Message(partition_index=0, replicas=replicas)])]
    answer = controller.call("AlterPartitionReassignments", 1, topics=topics, **fields)
    code: int = answer.responses[0].partitions[0].error_code
    return code


def moving(controller: InProcess, topics: list[Message] | None = None) -> list[tuple[str, int, list[int], list[int]]]:
    answer = controller.call("ListPartitionReassignments", 0, topics=topics)
    return [
        (topic.name, one.partition_index, one.adding_replicas, one.removing_replicas)
        for topic in answer.topics
        for one in topic.partitions
    ]


@pytest.mark.parametrize("index", [-(2**31), -2, -1, 1, 2**31 - 1])
def test_a_partition_that_is_not_there_is_not_moving(index: int) -> None:
    controller, *_ = three()
    controller.create_on("t", [1, 2])
    assert moving(controller, [Message(name="t", partition_indexes=[index])]) == []


def test_a_partition_moves_and_the_move_is_cancelled() -> None:
    controller, *_ = three()
    controller.create_on("t", [1, 2])
    assert moving(controller) == []
    assert move(controller, None) == Error.NO_REASSIGNMENT_IN_PROGRESS.value
    assert move(controller, [1, 9]) == Error.INVALID_REPLICA_ASSIGNMENT.value
    assert move(controller, [3], allow_replication_factor_change=False) == Error.INVALID_REPLICATION_FACTOR.value
    assert move(controller, [1, 3], allow_replication_factor_change=False) == 0
    assert moving(controller) == [("t", 0, [3], [2])]
    listed = [Message(name="t", partition_indexes=[0, 5]), Message(name="u", partition_indexes=[0])]
    assert moving(controller, listed) == [("t", 0, [3], [2])]
    assert move(controller, None) == 0
    assert (moving(controller), controller.partition("t").replicas) == ([], (1, 2))


def test_a_partition_that_is_not_there_does_not_move() -> None:
    controller, *_ = three()
    assert move(controller, [1]) == Error.UNKNOWN_TOPIC_OR_PARTITION.value


# ---- the log takes nothing


def test_what_could_not_be_stored_is_refused_and_forgotten() -> None:
    controller, *_ = three()
    before = controller.core.state
    controller.fails = True
    assert controller.create_topic("t").error_code == Error.UNKNOWN_SERVER_ERROR.value
    assert controller.register(4).error_code == Error.UNKNOWN_SERVER_ERROR.value
    assert controller.core.image.topics == {}
    assert controller.core.state.image == before.image


def test_an_image_of_decisions_is_the_one_that_a_restart_reads() -> None:
    """A controller does not read again what it has decided: the log has to say the same."""
    controller, *_ = three()
    controller.create_topic("t", 2, 3, retention_ms="5")
    controller.create_topic("u", 1, 1)
    controller.call("CreatePartitions", 3, topics=[Message(name="u", count=3, assignments=None)], timeout_ms=1)
    controller.call("DeleteTopics", 6, topics=[Message(name="t")], timeout_ms=1)
    controller.create_topic("t", 1, 3)
    image, read = controller.core.image, controller.log.image()
    assert image.spec == read.spec
    assert (image.directories, image.endpoints.keys()) == (read.directories, read.endpoints.keys())
    assert [record.name for record in image.records()] == [record.name for record in read.records()]
