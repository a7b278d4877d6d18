"""Requests of clients that brokers hand on."""

from kspec.impl.replica.forwarding import ANONYMOUS
from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from tests.impl.controller.in_process import InProcess
from tests.impl.controller.requests import answer_of, request_of


def forward(controller: InProcess, data: bytes, principal: bytes = ANONYMOUS) -> Message:
    return controller.call("Envelope", 0, request_data=data, request_principal=principal, client_host_address=b"\x7f\0\0\1")


def creation(topic: str) -> Message:
    wanted = Message(name=topic, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    return Message(topics=[wanted], timeout_ms=1)


def test_a_client_s_request_is_answered_in_its_own_version() -> None:
    controller = InProcess()
    controller.join()
    for number, version in enumerate((2, 7)):
        answer = forward(controller, request_of("CreateTopics", version, 77, creation(f"t{number}")))
        assert answer.error_code == 0
        frame = bytes(answer.response_data)
        assert frame[:4] == (77).to_bytes(4, "big")
        assert answer_of("CreateTopics", version, frame).topics[0].error_code == 0
    assert sorted(controller.core.image.topics) == ["t0", "t1"]


def test_envelopes_that_are_refused() -> None:
    controller = InProcess()
    asked = request_of("CreateTopics", 7, 1, creation("t"))
    registration = request_of("BrokerHeartbeat", 2, 1, Message(broker_id=1, broker_epoch=1, current_metadata_offset=1))
    later = asked[:2] + (99).to_bytes(2, "big") + asked[4:]
    answers = [forward(controller, data) for data in (b"", registration, asked[:-3], later)]
    assert [one.error_code for one in answers] == [
        Error.INVALID_REQUEST.value,
        Error.INVALID_REQUEST.value,
        Error.INVALID_REQUEST.value,
        Error.UNSUPPORTED_VERSION.value,
    ]
    assert {one.response_data for one in answers} == {None}
    for principal in (b"", b"\0", b"\0\7x"):
        assert forward(controller, asked, principal).error_code == Error.PRINCIPAL_DESERIALIZATION_FAILURE.value


def test_what_could_not_be_stored_is_refused_on_the_envelope() -> None:
    controller = InProcess()
    controller.join()
    controller.fails = True
    answer = forward(controller, request_of("CreateTopics", 7, 1, creation("t")))
    assert answer.error_code == Error.UNKNOWN_SERVER_ERROR.value
