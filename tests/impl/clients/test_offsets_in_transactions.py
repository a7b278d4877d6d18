"""Consumers and producers of librdkafka that read, write and commit in one transaction: on ours, and on Apache Kafka."""

from typing import Any

import pytest

from tests.impl.broker.process import wait_until
from tests.impl.clients.test_transactional_clients import (  # noqa: F401 (fixtures)
    LIMIT_S,
    address,
    confluent,
    create,
    kafkas,
    ours,
    producer_of,
    read,
)
from tests.limits.turns import Turns

pytestmark = pytest.mark.slow
RECORDS = 6


def consumer_of(confluent: Any, address: str, group: str, protocol: str) -> Any:  # noqa: F811
    settings = {"bootstrap.servers": address, "group.id": group, "group.protocol": protocol}
    others = {"enable.auto.commit": False, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    return confluent.Consumer({**settings, **others})


def next_records(consumer: Any, count: int) -> list[Any]:
    """The next records of a consumer, in the order in which it gets them."""
    found: list[Any] = []
    turns = Turns()
    while len(found) < count:
        turns.go()
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found.append(message)
    return found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_is_read_is_written_once(confluent: Any, address: str, protocol: str) -> None:  # noqa: F811
    """Half of the input is processed in a transaction that is aborted, and again in one that is committed."""
    source, target, group = f"in-{protocol}", f"out-{protocol}", f"group-{protocol}"
    create(address, source, 1)
    create(address, target, 1)
    plain = confluent.Producer({"bootstrap.servers": address})
    for number in range(RECORDS):
        plain.produce(source, str(number).encode(), partition=0)
    assert plain.flush(LIMIT_S) == 0
    producer = producer_of(confluent, address, f"id-{protocol}")
    for committed in (False, True):
        consumer = consumer_of(confluent, address, group, protocol)
        consumer.subscribe([source])
        producer.begin_transaction()
        for message in next_records(consumer, RECORDS // 2):
            producer.produce(target, b"done " + message.value(), partition=0)
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), LIMIT_S
        )
        if committed:
            producer.commit_transaction(LIMIT_S)
        else:
            producer.abort_transaction(LIMIT_S)
        wanted = [confluent.TopicPartition(source, 0)]
        offset = RECORDS // 2 if committed else confluent.OFFSET_INVALID
        wait_until(lambda: consumer.committed(wanted, LIMIT_S)[0].offset == offset)  # noqa: B023
        consumer.close()
    assert read(confluent, address, target, partitions=1) == [f"done {number}".encode() for number in range(RECORDS // 2)]


def test_who_is_no_member_any_more_commits_nothing(confluent: Any, address: str) -> None:  # noqa: F811
    create(address, "left", 1)
    plain = confluent.Producer({"bootstrap.servers": address})
    plain.produce("left", b"0", partition=0)
    assert plain.flush(LIMIT_S) == 0
    consumer = consumer_of(confluent, address, "leaving", "classic")
    consumer.subscribe(["left"])
    next_records(consumer, 1)
    member, position = consumer.consumer_group_metadata(), consumer.position(consumer.assignment())
    consumer.close()
    producer = producer_of(confluent, address, "leaver")
    producer.begin_transaction()
    with pytest.raises(confluent.KafkaException) as failed:
        producer.send_offsets_to_transaction(position, member, LIMIT_S)
    assert failed.value.args[0].txn_requires_abort()
    producer.abort_transaction(LIMIT_S)
