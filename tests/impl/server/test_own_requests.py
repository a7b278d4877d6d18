"""Requests of a broker to itself."""

from kspec.impl.server.own_requests import OwnRequest
from kspec.impl.wire.apis import APIS
from kspec.impl.wire.values import Message

API_OF = {api.name: api for api in APIS.values()}


def test_both_sides_see_all_fields_and_one_answer_is_taken() -> None:
    taken: list[Message | None] = []
    request = OwnRequest(API_OF["FindCoordinator"], Message(key_type=1, coordinator_keys=["one"]), taken.append)
    assert (request.message.key_type, request.message.coordinator_keys) == (1, ["one"])
    assert request.header.version == API_OF["FindCoordinator"].offered.last
    request.take(Message(coordinators=[Message(key="one", node_id=3)]))
    request.close()
    (answer,) = taken
    assert answer is not None
    assert (answer.coordinators[0].node_id, answer.coordinators[0].error_code, answer.throttle_time_ms) == (3, 0, 0)


def test_a_request_that_fails_has_no_answer() -> None:
    taken: list[Message | None] = []
    request = OwnRequest(API_OF["DescribeCluster"], Message(include_cluster_authorized_operations=False), taken.append)
    request.hold()
    request.release()
    request.close()
    request.answer(request.new_place(), [])
    assert taken == [None]
