"""Brokers of a controller: registration, heartbeats, the end of a session, producer ids, directories."""

import pytest

from kspec.impl.wire.values import Message
from kspec.spec.controller.rules.directories import UNASSIGNED
from kspec.spec.metadata import broker_of
from kspec.spec.values import NO_LEADER, BrokerId, Error
from tests.impl.controller.in_process import InProcess, InProcessPeer
from tests.impl.controller.requests import METADATA_TOPIC


def is_fenced(controller: InProcess, broker: int) -> bool:
    registration = broker_of(controller.core.image.spec.brokers, BrokerId(broker))
    assert registration is not None
    return registration.fenced


def test_a_broker_registers_and_is_unfenced_when_it_has_replayed_its_registration() -> None:
    controller = InProcess()
    answer = controller.register()
    assert answer.error_code == 0
    assert controller.heartbeat(offset=answer.broker_epoch - 1).is_fenced
    assert not controller.heartbeat(offset=answer.broker_epoch).is_fenced
    registered = controller.core.image.registered[1]
    assert [(one.name, one.port) for one in registered.end_points] == [("PLAINTEXT", 9001)]
    assert [one.name for one in registered.features] == [
        "metadata.version",
        "eligible.leader.replicas.version",
        "transaction.version",
        "kraft.version",
    ]
    assert list(map(bytes, registered.log_dirs)) == [controller.directory]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"cluster_id": "another"}, Error.INCONSISTENT_CLUSTER_ID),
        ({"features": []}, Error.UNSUPPORTED_VERSION),
        (
            {"features": [Message(name="metadata.version", min_supported_version=1, max_supported_version=21)]},
            Error.UNSUPPORTED_VERSION,
        ),
    ],
)
def test_who_may_not_register(fields: dict[str, object], error: Error) -> None:
    controller = InProcess()
    assert controller.register(**fields).error_code == error.value  # type: ignore[arg-type]
    assert controller.core.image.spec.brokers == ()


def test_another_incarnation_waits_for_the_end_of_the_session() -> None:
    controller = InProcess()
    controller.join()
    assert controller.register(incarnation=2).error_code == Error.DUPLICATE_BROKER_REGISTRATION.value
    controller.pass_time(9_500)
    assert is_fenced(controller, 1)
    assert controller.register(incarnation=2).error_code == 0


def test_a_silent_broker_is_fenced_and_its_partitions_get_other_leaders() -> None:
    controller = InProcess({"broker.session.timeout.ms": "3000"})
    controller.join()
    (other,) = controller.others(2)
    controller.create_on("t", [1, 2], [2, 1])
    for _ in range(4):
        controller.pass_time(1_000)
        other.heartbeat()
    assert (is_fenced(controller, 1), is_fenced(controller, 2)) == (True, False)
    assert [controller.partition("t", index).leader for index in (0, 1)] == [2, 2]
    controller.pass_time(10_000)
    assert is_fenced(controller, 2)
    assert [controller.partition("t", index).leader for index in (0, 1)] == [NO_LEADER] * 2
    other.heartbeat()
    assert controller.partition("t").leader == 2


def test_a_controlled_shutdown_moves_the_leaders_first() -> None:
    controller = InProcess()
    controller.join()
    (other,) = controller.others(2)
    controller.create_on("t", [1, 2])
    before = controller.core.image.spec.end_offset
    answer = controller.heartbeat(want_shut_down=True)
    assert (answer.is_fenced, answer.should_shut_down) == (False, False)
    assert controller.partition("t").leader == 2
    other.heartbeat(offset=before)
    assert not controller.heartbeat(want_shut_down=True).should_shut_down
    other.heartbeat()
    assert controller.heartbeat(want_shut_down=True).should_shut_down


def test_heartbeats_of_strangers_are_refused() -> None:
    assert InProcess().heartbeat().error_code == Error.STALE_BROKER_EPOCH.value


def test_a_broker_is_unregistered() -> None:
    controller = InProcess()
    controller.join()
    answers = [controller.call("UnregisterBroker", 0, broker_id=1).error_code for _ in range(2)]
    assert answers == [0, Error.BROKER_ID_NOT_REGISTERED.value]
    assert controller.core.image.registered == {}


def test_no_producer_id_is_given_twice() -> None:
    controller = InProcess()
    controller.join()

    def ask(epoch: int) -> tuple[int, int, int]:
        answer = controller.call("AllocateProducerIds", 0, broker_id=1, broker_epoch=epoch)
        return answer.error_code, answer.producer_id_start, answer.producer_id_len

    assert [ask(controller.broker_epoch) for _ in range(2)] == [(0, 0, 1000), (0, 1000, 1000)]
    assert ask(controller.broker_epoch + 1)[0] == Error.STALE_BROKER_EPOCH.value
    again = InProcess(disk=controller.disk)
    answer = again.call("AllocateProducerIds", 0, broker_id=1, broker_epoch=controller.broker_epoch)
    assert answer.producer_id_start == 2000


# ---- directories


def test_a_directory_of_another_broker_is_refused() -> None:
    """A folder was copied, with its `meta.properties`: both would be the same replica's."""
    controller = InProcess()
    controller.join()
    copied = InProcessPeer(controller)
    refused = copied.register(2, log_dirs=[controller.directory])
    assert (refused.error_code, refused.broker_epoch) == (Error.INVALID_REGISTRATION.value, -1)
    assert copied.register(2, log_dirs=[]).error_code == Error.INVALID_REGISTRATION.value
    assert copied.register(2).error_code == 0


def directories(controller: InProcess, topic: str) -> tuple[bytes, ...]:
    image = controller.core.image
    return image.directories[image.topics[topic].partitions[0]]


def test_a_new_replica_lies_in_its_broker_s_only_directory() -> None:
    controller = InProcess()
    controller.join()
    several = InProcessPeer(controller)
    assert several.register(2, log_dirs=[bytes([8]) * 16, bytes([9]) * 16]).error_code == 0
    several.heartbeat()
    controller.create_on("t", [1, 2])
    assert directories(controller, "t") == (controller.directory, UNASSIGNED)
    controller.call("AlterPartitionReassignments", 1, topics=[moved("t", [2, 1])])
    assert directories(controller, "t") == (UNASSIGNED, controller.directory)


def moved(topic: str, replicas: list[int] | None) -> Message:
    return Message(name=topic, partitions=[Message(partition_index=0, replicas=replicas)])


def test_a_broker_says_where_its_replicas_lie() -> None:
    controller = InProcess()
    controller.join()
    controller.others(2)
    controller.create_on("t", [1])
    topic_id = controller.core.image.topics["t"].topic_id
    told = bytes([7]) * 16

    def say(broker: int, epoch: int, topic: bytes, *partitions: int) -> Message:
        listed = [Message(topic_id=topic, partitions=[Message(partition_index=one) for one in partitions])]
        given = [Message(id=told, topics=listed)]
        return controller.call("AssignReplicasToDirs", 0, broker_id=broker, broker_epoch=epoch, directories=given)

    own = controller.broker_epoch
    answer = say(1, own, topic_id, 0, 1)
    found = [one.error_code for one in answer.directories[0].topics[0].partitions]
    assert found == [0, Error.UNKNOWN_TOPIC_OR_PARTITION.value]
    assert directories(controller, "t") == (told,)
    assert (controller.partition("t").partition_epoch, controller.partition("t").leader) == (1, 1)
    assert say(1, own + 1, topic_id, 0).error_code == Error.STALE_BROKER_EPOCH.value
    unknown = say(1, own, METADATA_TOPIC, 0)
    assert unknown.directories[0].topics[0].partitions[0].error_code == Error.UNKNOWN_TOPIC_ID.value
