"""Fields whose values no model has to know: what an answer repeats of its request, and what a lone broker says always.

They are looked at beside what a model looks at, in the entries of an answer that are not refused.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import (
    AllowedValues,
    AtLeast,
    Constraint,
    Exchange,
    Fields,
    NotEmpty,
    RequestEnding,
    equals,
)

NOT_ASKED = -(2**31)
"""Authorized operations that nobody has asked for. Kafka: the default of the field in each message."""

THROTTLED = "throttle_time_ms"
NEVER_THROTTLED = ("WriteTxnMarkers",)
"""APIs whose answers do not have that field."""

CLIENT_ID = object()
"""The client id of the case's requests."""


class PlainField(NamedTuple):
    """A field with its value, the least that it may be, or neither: then it has some value of its own."""

    name: str
    value: Any = ...
    least: int | None = None

    def constraint(self, entry: str, client_id: bytes) -> Constraint:
        """The constraint on the field of an entry, which ends with a dot unless it is the answer itself."""
        path = f"{entry}{self.name}"
        if self.least is not None:
            return AtLeast(path, self.least)
        if self.value is ...:
            return NotEmpty(path)
        return equals(path, client_id.decode() if self.value is CLIENT_ID else self.value)


NO_MESSAGE = PlainField("error_message", None)
MEMBER = (PlainField("client_id", CLIENT_ID), PlainField("client_host"))
LED = (
    PlainField("leader_id", least=0),
    PlainField("leader_epoch", least=0),
    PlainField("replica_nodes[#]", 1),
    PlainField("isr_nodes[#]", 1),
    PlainField("offline_replicas[#]", 0),
)
"""A partition whose one replica leads it."""

PLAIN_FIELDS: Mapping[str, Mapping[str, tuple[PlainField, ...]]] = MappingProxyType(
    {
        "AlterConfigs": {"responses": (NO_MESSAGE,)},
        "ConsumerGroupDescribe": {
            "groups": (NO_MESSAGE, PlainField("authorized_operations", NOT_ASKED)),
            "groups.members": (*MEMBER, PlainField("rack_id", None)),
        },
        "ConsumerGroupHeartbeat": {"": (NO_MESSAGE,)},
        "CreatePartitions": {"results": (NO_MESSAGE,)},
        "CreateTopics": {"topics": (NO_MESSAGE,)},
        "DeleteGroups": {"results": (NO_MESSAGE,)},
        "DeleteTopics": {"responses": (NO_MESSAGE,)},
        "DescribeCluster": {"": (NO_MESSAGE, PlainField("cluster_authorized_operations", NOT_ASKED))},
        "DescribeConfigs": {
            "results.configs": (
                PlainField("is_sensitive", False),
                PlainField("synonyms[#]", 0),
                PlainField("documentation", None),
            )
        },
        "DescribeGroups": {
            "groups": (NO_MESSAGE, PlainField("authorized_operations", NOT_ASKED)),
            "groups.members": MEMBER,
        },
        "DescribeProducers": {
            "topics.partitions": (NO_MESSAGE,),
            "topics.partitions.active_producers": (PlainField("last_timestamp", least=0),),
        },
        "DescribeTopicPartitions": {"topics.partitions": LED},
        "Fetch": {
            "responses.partitions": (
                PlainField("preferred_read_replica", -1),
                PlainField("current_leader.leader_id", -1),
                PlainField("current_leader.leader_epoch", -1),
                PlainField("snapshot_id.end_offset", -1),
                PlainField("snapshot_id.epoch", -1),
            )
        },
        "IncrementalAlterConfigs": {"responses": (NO_MESSAGE,)},
        "Metadata": {
            "": (PlainField("cluster_authorized_operations", NOT_ASKED), PlainField("error_code", 0)),
            "topics": (PlainField("topic_authorized_operations", NOT_ASKED),),
            "topics.partitions": LED,
        },
        "Produce": {
            "responses.partition_responses": (
                NO_MESSAGE,
                PlainField("record_errors[#]", 0),
                PlainField("current_leader.leader_id", -1),
                PlainField("current_leader.leader_epoch", -1),
            )
        },
    }
)
"""By API and entry of its answer."""


class RepeatedList(NamedTuple):
    """A list of an answer that has an entry for each of a list of the request, and the fields that are repeated.

    `inner`: the same of a list in each entry.
    """

    answer: str
    request: str
    fields: Mapping[str, str]
    inner: "RepeatedList | None" = None


NAME = MappingProxyType({"name": "name"})
NAMED = MappingProxyType({"name": "name", "topic_id": "topic_id"})
PARTITIONS = RepeatedList("partitions", "partitions", {"partition_index": "partition_index"})

ECHOES: Mapping[str, tuple[RepeatedList, ...]] = MappingProxyType(
    {
        "AddPartitionsToTxn": (
            RepeatedList("results_by_topic_v3_and_below", "v3_and_below_topics", NAME),
            RepeatedList(
                "results_by_transaction",
                "transactions",
                {"transactional_id": "transactional_id"},
                RepeatedList("topic_results", "topics", NAME),
            ),
        ),
        "ConsumerGroupDescribe": (RepeatedList("groups", "group_ids", {"group_id": ""}),),
        "DescribeConfigs": (
            RepeatedList("results", "resources", {"resource_type": "resource_type", "resource_name": "resource_name"}),
        ),
        "DescribeGroups": (RepeatedList("groups", "groups", {"group_id": ""}),),
        "DescribeProducers": (
            RepeatedList("topics", "topics", NAME, RepeatedList("partitions", "partition_indexes", {"partition_index": ""})),
        ),
        "LeaveGroup": (
            RepeatedList("members", "members", {"member_id": "member_id", "group_instance_id": "group_instance_id"}),
        ),
        "OffsetCommit": (RepeatedList("topics", "topics", NAMED, PARTITIONS),),
        "OffsetDelete": (RepeatedList("topics", "topics", NAME, PARTITIONS),),
        "OffsetFetch": (
            RepeatedList("topics", "topics", NAME),
            RepeatedList("groups", "groups", {"group_id": "group_id"}, RepeatedList("topics", "topics", NAMED)),
        ),
        "TxnOffsetCommit": (RepeatedList("topics", "topics", NAMED, PARTITIONS),),
        "WriteTxnMarkers": (
            RepeatedList("markers", "markers", {"producer_id": "producer_id"}, RepeatedList("topics", "topics", NAME)),
        ),
    }
)
"""By API, of requests that name one thing alone: the answer is about it, and nothing else.

An API may have one more for its older versions.
"""


def with_plain_fields(exchange: Exchange, client_id: bytes, is_last: bool) -> Exchange:
    """The exchange, which looks at the plain fields of its answer, too.

    `is_last`: whether it is the request that a case is there for: whether a broker throttles is looked at there alone.
    """
    if exchange.request.raw is not None or exchange.ending != RequestEnding.ANSWERED:
        return exchange
    api, known = exchange.request.api, exchange.constraints
    more = [*_always(api, known, client_id), *_repeated(exchange)]
    if is_last and api not in NEVER_THROTTLED:
        more.append(equals(THROTTLED, 0))
    paths = {one.path for one in known}
    return exchange._replace(constraints=(*known, *(one for one in more if one.path not in paths)))


def _always(api: str, known: Iterable[Constraint], client_id: bytes) -> Iterator[Constraint]:
    """The constraints on plain fields of the entries that are looked at and not refused."""
    entries = PLAIN_FIELDS.get(api, {})
    refused = {one.path.removesuffix("error_code") for one in known if _refuses(one)}
    for entry in dict.fromkeys(place for one in known for place in _entries(one.path)):
        if not any(entry.startswith(one) for one in refused):
            for field in entries.get(_without_places(entry), ()):
                yield field.constraint(entry, client_id)


def _refuses(constraint: Constraint) -> bool:
    is_error = constraint.path.endswith("error_code")
    return is_error and not (isinstance(constraint, AllowedValues) and constraint.values == (0,))


def _entries(path: str) -> Iterator[str]:
    """The answer, and the entries of lists on the way to a field, each with its dot."""
    yield ""
    for found in re.finditer(r"\[(#?)[^\]]*\]\.", path):
        if found[1]:
            return
        yield path[: found.end()]


def _without_places(entry: str) -> str:
    return re.sub(r"\[[^\]]*\]", "", entry).removesuffix(".")


def _repeated(exchange: Exchange) -> Iterator[Constraint]:
    """The constraints on what is repeated of a request that names one thing."""
    for echo in ECHOES.get(exchange.request.api, ()):
        yield from _repeated_in(echo, exchange.request.fields, "", exchange.constraints)


def _repeated_in(echo: RepeatedList, given: Fields, where: str, known: Sequence[Constraint]) -> Iterator[Constraint]:
    asked = given.get(echo.request)
    wanted = re.compile(re.escape(f"{where}{echo.answer}[") + r"[^#\]][^\]]*\]\.")
    entry = next((found[0] for one in known if (found := wanted.match(one.path))), None)
    if entry is None or asked is None or len(asked) != 1:
        return
    yield equals(f"{where}{echo.answer}[#]", 1)
    for field, of in echo.fields.items():
        if not of or of in asked[0]:
            yield equals(f"{entry}{field}", asked[0][of] if of else asked[0])
    if echo.inner is not None:
        yield from _repeated_in(echo.inner, asked[0], entry, known)
