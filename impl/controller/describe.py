"""What a controller tells of itself: versions and features, the quorum, the cluster."""

from impl.broker.calls import Call, Effect
from impl.controller.core import ControllerCore, Observer
from impl.requests.features import feature_fields
from impl.wire.apis import CONTROLLER_APIS
from impl.wire.values import Message
from spec.controller.topics.names import CLUSTER_METADATA
from spec.values import Error

OF_BROKERS, OF_CONTROLLERS = 1, 2
"""Kafka: `EndpointType`."""

NO_OPERATIONS, CLUSTER_OPERATIONS = -(2**31), 8096


def api_versions(core: ControllerCore, call: Call, now: int) -> list[Effect]:
    """Which requests are answered, and which features there are. **Kafka:** `ControllerApis.handleApiVersionsRequest`."""
    keys = [
        Message(api_key=api.key, min_version=api.offered.first, max_version=api.offered.last)
        for api in CONTROLLER_APIS.values()
    ]
    features = feature_fields(core.supported_features, core.image, call.version)
    return [call.respond(error_code=0, api_keys=sorted(keys, key=lambda entry: entry.api_key), **features)]


def describe_quorum(core: ControllerCore, call: Call, now: int) -> list[Effect]:
    """The quorum, and who else reads the metadata log. **Kafka:** `KafkaRaftClient.handleDescribeQuorumRequest`."""
    topics = [
        Message(
            topic_name=topic.topic_name,
            partitions=[_quorum(core, topic.topic_name, one.partition_index, now) for one in topic.partitions],
        )
        for topic in call.message.topics
    ]
    listener = Message(name=core.config.listener.name, host=core.host, port=core.port)
    nodes = [Message(node_id=core.config.node_id, listeners=[listener])]
    return [call.respond(error_code=0, error_message=None, topics=topics, nodes=nodes)]


def _quorum(core: ControllerCore, topic: str, index: int, now: int) -> Message:
    if topic != CLUSTER_METADATA or index != 0:
        return Message(partition_index=index, error_code=Error.UNKNOWN_TOPIC_OR_PARTITION.value, error_message=None)
    end = core.log.log.end_offset
    return Message(
        partition_index=0,
        error_code=0,
        error_message=None,
        leader_id=core.config.node_id,
        leader_epoch=core.log.epoch,
        high_watermark=end,
        current_voters=[_replica(core.config.node_id, Observer(end, now, now))],
        observers=[_replica(node, observer) for node, observer in sorted(core.observers.items())],
    )


def _replica(node: int, observer: Observer) -> Message:
    return Message(
        replica_id=node,
        log_end_offset=observer.end_offset,
        last_fetch_timestamp=observer.fetched_ms,
        last_caught_up_timestamp=observer.caught_up_ms,
    )


def describe_cluster(core: ControllerCore, call: Call, now: int) -> list[Effect]:
    """The controllers of the cluster. **Kafka:** `ControllerApis.handleDescribeCluster`, which knows no brokers either."""
    asked = call.message
    operations = CLUSTER_OPERATIONS if asked.include_cluster_authorized_operations else NO_OPERATIONS
    if call.version == 0 or asked.endpoint_type != OF_CONTROLLERS:
        wrong = Error.MISMATCHED_ENDPOINT_TYPE
        if call.version and asked.endpoint_type != OF_BROKERS:
            wrong = Error.UNSUPPORTED_ENDPOINT_TYPE
        return [call.respond(error_code=wrong.value, endpoint_type=OF_CONTROLLERS, brokers=[])]
    own = Message(broker_id=core.config.node_id, host=core.host, port=core.port, rack=None, is_fenced=False)
    return [
        call.respond(
            error_code=0,
            error_message=None,
            endpoint_type=OF_CONTROLLERS,
            cluster_id=core.cluster_id,
            controller_id=core.config.node_id,
            brokers=[own],
            cluster_authorized_operations=operations,
        )
    ]
