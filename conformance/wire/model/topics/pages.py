"""Topics that are described page by page (KIP-966): where a page begins, how much is on it, where the next begins."""

from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import Constraint, Exchange, Hole, RequestFields, equals
from kspec.conformance.wire.model.requests import NOT_READY, TOPIC, create_topic, look_up_topic
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.spec.broker.clients.metadata_requests import Cursor, check_cursor, check_missing_topic, page_size
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.values import Error

PAGES = "who reads page by page reads each partition once"
PARTITIONS, MOST = 3, 2_000
"""The topic's partitions, and the most of a page. Kafka: `max.request.partition.size.limit`."""

OTHER = Hole("topic_dotted")
"""A topic that there is not. Its name is behind the topic's: a hyphen is before a dot."""


class PageState(NamedTuple):
    """The partition at which the next page begins; nothing that is asked here changes anything else."""

    next_partition: int = 0


def _page(name: str, words: str, limit: int, goes_on: bool = False) -> Move:
    """A page of so many partitions; from the start, or from where the last one ended."""

    def take(protocol: BrokerProtocol, state: PageState) -> MoveResult | None:
        first = state.next_partition if goes_on else 0
        if goes_on and first == 0:
            return None
        assert check_cursor({"topic"}, Cursor("topic", first)) == Error.NONE
        last = min(first + page_size(limit, MOST), PARTITIONS)
        cursor: Any = {"topic_name": TOPIC, "partition_index": first} if goes_on else None
        constraints: list[Constraint] = [
            equals("topics[#]", 1),
            equals("topics[0].error_code", 0),
            equals("topics[0].name", TOPIC),
            equals("topics[0].topic_id", Hole("topic_id")),
            equals("topics[0].is_internal", False),
            equals("topics[0].partitions[#]", last - first),
        ]
        for number, partition in enumerate(range(first, last)):
            constraints += [
                equals(f"topics[0].partitions[{number}].partition_index", partition),
                equals(f"topics[0].partitions[{number}].error_code", 0),
                equals(f"topics[0].partitions[{number}].leader_id", Hole("broker_id")),
                equals(f"topics[0].partitions[{number}].replica_nodes[0]", Hole("broker_id")),
                equals(f"topics[0].partitions[{number}].isr_nodes[0]", Hole("broker_id")),
            ]
        if last < PARTITIONS:
            constraints += [
                equals("next_cursor.topic_name", TOPIC),
                equals("next_cursor.partition_index", last),
            ]
        else:
            constraints.append(equals("next_cursor", None))
        fields = {"topics": [{"name": TOPIC}], "response_partition_limit": limit, "cursor": cursor}
        request = RequestFields("DescribeTopicPartitions", fields)
        outcome = f"partitions {first} to {last - 1}"
        exchange = Exchange(request, outcome, constraints=tuple(constraints), retried=NOT_READY)
        return MoveResult(PageState(last % PARTITIONS), exchange)

    return Move(f"page.{name}", words, page_size, PAGES, take)


def _wrong_cursor(name: str, words: str, topic: Hole, partition: int) -> Move:
    def take(protocol: BrokerProtocol, state: PageState) -> MoveResult | None:
        error = check_cursor({"topic"}, Cursor("topic" if topic == TOPIC else "other", partition))
        cursor = {"topic_name": topic, "partition_index": partition}
        fields = {"topics": [{"name": TOPIC}], "response_partition_limit": MOST, "cursor": cursor}
        constraints = (equals("topics[0].error_code", error.value),)
        request = RequestFields("DescribeTopicPartitions", fields)
        return MoveResult(state, Exchange(request, error.name, error, constraints=constraints))

    return Move(f"page.{name}", words, check_cursor, PAGES, take)


def _missing() -> Move:
    """A topic that there is not beside one that there is."""

    def take(protocol: BrokerProtocol, state: PageState) -> MoveResult | None:
        error = check_missing_topic(False, True)
        fields = {"topics": [{"name": OTHER}, {"name": TOPIC}], "response_partition_limit": MOST, "cursor": None}
        constraints = (
            equals("topics[#]", 2),
            equals(f"topics[name=@{OTHER.name}].error_code", error.value),
            equals(f"topics[name=@{TOPIC.name}].error_code", 0),
            equals(f"topics[name=@{TOPIC.name}].partitions[#]", PARTITIONS),
        )
        request = RequestFields("DescribeTopicPartitions", fields)
        return MoveResult(state, Exchange(request, error.name, error, constraints=constraints, retried=NOT_READY))

    words = "ask for the partitions of a topic that there is not, and of one that there is"
    return Move("page.missing", words, check_missing_topic, PAGES, take)


def _looked_up() -> Exchange:
    """The topic's id, and the broker's."""
    known = look_up_topic()
    return known._replace(kept=(*known.kept, ("broker_id", "brokers[0].node_id")))


DESCRIBED = Subject(
    "pages",
    "topics that are described page by page",
    PageState(),
    (
        _page("all", "ask for the partitions of a topic", MOST),
        _page("exactly", "ask for a page of as many partitions as the topic has", PARTITIONS),
        _page("two", "ask for a page of two partitions", 2),
        _page("one", "ask for a page of one partition", 1),
        _page("zero", "ask for a page of no partitions", 0),
        _page("next", "ask for the next page, of one partition", 1, goes_on=True),
        _page("rest", "ask for the rest", MOST, goes_on=True),
        _wrong_cursor("negative", "ask for a page from partition -1 on", TOPIC, -1),
        _wrong_cursor("other", "ask for a page from a topic on that is not asked for", OTHER, 0),
        _missing(),
    ),
    lambda state, holes: (create_topic(TOPIC, partitions=PARTITIONS), _looked_up()),
    {"partitions": PARTITIONS},
)
