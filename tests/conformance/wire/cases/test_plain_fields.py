"""The fields that are looked at beside what a model looks at: those that are always so, and repeated ones."""

from kspec.conformance.wire.cases.plain_fields import with_plain_fields
from kspec.conformance.wire.exchange import (
    AtLeast,
    Constraint,
    Exchange,
    Hole,
    NotEmpty,
    RequestEnding,
    RequestFields,
    equals,
)

CLIENT = b"kspec/a-case"


def added(exchange: Exchange, is_last: bool = False) -> list[Constraint]:
    """The constraints that are added."""
    return list(with_plain_fields(exchange, CLIENT, is_last).constraints[len(exchange.constraints) :])


def answered(api: str, fields: dict[str, object], *constraints: Constraint) -> Exchange:
    """An exchange that a model looks at so."""
    return Exchange(RequestFields(api, fields), "answered", constraints=constraints)


def test_an_entry_that_is_not_refused_has_no_message() -> None:
    two = (equals("topics[0].error_code", 0), equals("topics[1].error_code", 36))
    assert added(answered("CreateTopics", {"topics": []}, *two)) == [equals("topics[0].error_message", None)]
    known = equals("topics[0].error_message", None)
    assert added(answered("CreateTopics", {"topics": []}, *two, known)) == []


def test_an_entry_inside_one_that_is_refused_is_left_alone() -> None:
    refused = (equals("groups[0].error_code", 69), equals("groups[0].members[0].member_id", "a"))
    assert added(answered("DescribeGroups", {"groups": ["g", "h"]}, *refused)) == []


def test_a_member_has_the_client_id_of_the_case() -> None:
    path = "groups[0].members[member_id=@member_A1]"
    looked = added(answered("DescribeGroups", {"groups": ["g", "h"]}, equals(f"{path}.member_assignment", b"")))
    assert equals(f"{path}.client_id", CLIENT.decode()) in looked
    assert NotEmpty(f"{path}.client_host") in looked


def test_a_partition_has_some_leader() -> None:
    looked = added(answered("Metadata", {}, equals("topics[0].partitions[0].error_code", 0)))
    assert AtLeast("topics[0].partitions[0].leader_id", 0) in looked
    assert equals("topics[0].partitions[0].isr_nodes[#]", 1) in looked


def test_the_answer_to_one_thing_repeats_it() -> None:
    topic = {"name": Hole("topic"), "topic_id": Hole("topic_id"), "partitions": [{"partition_index": 7}]}
    inside = equals("topics[0].partitions[0].error_code", 3)
    assert added(answered("OffsetCommit", {"topics": [topic]}, inside)) == [
        equals("topics[#]", 1),
        equals("topics[0].name", Hole("topic")),
        equals("topics[0].topic_id", Hole("topic_id")),
        equals("topics[0].partitions[#]", 1),
        equals("topics[0].partitions[0].partition_index", 7),
    ]
    assert added(answered("OffsetCommit", {"topics": [topic, topic]}, inside)) == []
    assert added(answered("OffsetCommit", {"topics": [topic]}, equals("topics[#]", 0))) == []


def test_whether_a_broker_throttles_is_looked_at_in_the_last_request() -> None:
    asked = answered("Heartbeat", {}, equals("error_code", 0))
    assert added(asked) == []
    assert added(asked, is_last=True) == [equals("throttle_time_ms", 0)]
    assert added(asked._replace(ending=RequestEnding.CLOSED), is_last=True) == []
    assert added(answered("WriteTxnMarkers", {}), is_last=True) == []
