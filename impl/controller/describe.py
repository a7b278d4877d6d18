"""A controller's description of itself: versions and features, the quorum, the cluster."""

from kspec.impl.broker.calls import Call, Effect
from kspec.impl.controller.core import ControllerCore
from kspec.impl.requests.administration.controller import feature_fields
from kspec.impl.wire.apis import CONTROLLER_APIS
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.metadata_requests import OF_BROKERS, OF_CONTROLLERS, check_endpoint_type
from kspec.spec.values import Error, Instant

NO_OPERATIONS, CLUSTER_OPERATIONS = -(2**31), 8096


def api_versions(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """Requests that are answered, and features that there are. **Kafka:** `ControllerApis.handleApiVersionsRequest`."""
    keys = [
        Message(api_key=api.key, min_version=api.offered.first, max_version=api.offered.last)
        for api in CONTROLLER_APIS.values()
    ]
    features = feature_fields(core.supported_features, core.image, call.version, core.kraft_version)
    return [call.respond(error_code=0, api_keys=sorted(keys, key=lambda entry: entry.api_key), **features)]


def describe_cluster(core: ControllerCore, call: Call, now: Instant) -> list[Effect]:
    """The controllers of the cluster. **Kafka:** `ControllerApis.handleDescribeCluster`, which knows no brokers either."""
    asked = call.message
    operations = CLUSTER_OPERATIONS if asked.include_cluster_authorized_operations else NO_OPERATIONS
    error = check_endpoint_type(OF_CONTROLLERS, asked.endpoint_type if call.version else OF_BROKERS)
    if error != Error.NONE:
        return [call.respond(error_code=error.value, error_message=error.name, brokers=[])]
    known = [
        Message(broker_id=node, host=at.host, port=at.port, rack=None, is_fenced=False)
        for node, at in sorted(core.endpoints.items())
    ]
    return [
        call.respond(
            error_code=0,
            error_message=None,
            endpoint_type=OF_CONTROLLERS,
            cluster_id=core.cluster_id,
            controller_id=core.voter.leader,
            brokers=known,
            cluster_authorized_operations=operations,
        )
    ]
