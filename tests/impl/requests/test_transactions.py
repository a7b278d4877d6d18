"""Requests about transactions on one broker, field by field: what a client is told, and what is left after a restart."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until
from tests.impl.requests.transaction_client import TIMEOUT_MS, TransactionClient

PLACE = ("t", 0)
QUICK = ("transaction.abort.timed.out.transaction.cleanup.interval.ms=50",)


class TransactionBroker(NamedTuple):
    """A broker with a topic of two partitions, and a client."""

    broker: BrokerProcess
    client: BrokerClient

    def producer(self, name: str, end_version: int = 5) -> TransactionClient:
        """A producer that has its id."""
        made = TransactionClient(self.client, name, end_version)
        made.init_when_possible()
        return made


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransactionBroker]:
    folder = tmp_path_factory.mktemp("transactions") / "broker"
    with BrokerProcess(folder, overrides=QUICK) as broker, BrokerClient(broker.port) as client:
        client.create("t", 2)
        TransactionClient(client, "first").find()
        yield TransactionBroker(broker, client)


# ---- InitProducerId


def test_a_producer_gets_an_id_and_its_successor_the_next_epoch(served: TransactionBroker) -> None:
    one, two = served.producer("successor"), served.producer("successor")
    assert (one.epoch, two.epoch, one.producer_id) == (0, 1, two.producer_id)
    other = served.producer("another")
    assert other.producer_id != one.producer_id
    assert one.add(PLACE) == [Error.PRODUCER_FENCED]
    assert one.add(PLACE, version=1) == [Error.INVALID_PRODUCER_EPOCH]
    assert one.end(True) == Error.PRODUCER_FENCED
    assert one.end(True, version=1) == Error.INVALID_PRODUCER_EPOCH
    assert one.add_offsets("g") == Error.PRODUCER_FENCED
    assert one.init(producer_id=one.producer_id, producer_epoch=one.epoch) == Error.PRODUCER_FENCED
    named = {"producer_id": two.producer_id, "producer_epoch": two.epoch}
    assert two.init(**named) == two.init(**named) == Error.NONE
    assert two.epoch == 2  # the first answer counts as lost, so the second is the same
    assert two.init(producer_id=99, producer_epoch=0) == Error.PRODUCER_FENCED


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"transactional_id": ""}, Error.INVALID_REQUEST),
        ({"transaction_timeout_ms": 0}, Error.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": -1}, Error.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": 900_001}, Error.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": 900_000}, Error.NONE),
        ({"producer_id": 1}, Error.INVALID_REQUEST),
        ({"producer_epoch": 1}, Error.INVALID_REQUEST),
        ({"transactional_id": None, "transaction_timeout_ms": -1}, Error.NONE),
    ],
)
def test_what_a_producer_may_ask_for(served: TransactionBroker, fields: dict[str, Any], error: Error) -> None:
    assert TransactionClient(served.client, "asking").init(**fields) == error


def test_two_ask_at_once_and_one_is_told_to_wait(served: TransactionBroker) -> None:
    """Requests of two connections, again and again: nobody gets the epoch of somebody else."""
    given: list[int] = []
    refused: list[Error] = []

    def ask() -> None:
        with BrokerClient(served.broker.port) as client:
            mine = TransactionClient(client, "contended")
            for _ in range(20):
                error = mine.init()
                if error == Error.NONE:
                    given.append(mine.epoch)
                else:
                    refused.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(given) == list(range(len(given)))
    assert len(given) + len(refused) == 60
    assert set(refused) <= {Error.CONCURRENT_TRANSACTIONS}


# ---- a transaction begins, and grows


def test_a_partition_that_there_is_not_fails_all(served: TransactionBroker) -> None:
    producer = served.producer("unknown")
    assert producer.add(PLACE, ("t", 7)) == [Error.OPERATION_NOT_ATTEMPTED, Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert producer.ask(PLACE, ("absent", 0), verify_only=False) == [
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.OPERATION_NOT_ATTEMPTED,
    ]
    assert producer.state() == "Empty"


def test_requests_without_a_producer(served: TransactionBroker) -> None:
    nobody = TransactionClient(served.client, "nobody")
    assert nobody.add(PLACE) == nobody.ask(PLACE) == [Error.INVALID_PRODUCER_ID_MAPPING]
    assert nobody.add_offsets("g") == nobody.end(True) == Error.INVALID_PRODUCER_ID_MAPPING
    unnamed = TransactionClient(served.client, "")
    assert unnamed.add(PLACE) == unnamed.ask(PLACE) == [Error.INVALID_REQUEST]
    assert unnamed.add_offsets("g") == unnamed.end(True) == Error.INVALID_REQUEST
    assert unnamed.state() == "INVALID_REQUEST"
    assert nobody.state() == "TRANSACTIONAL_ID_NOT_FOUND"


def test_leaders_ask_and_add_for_several_producers_at_once(served: TransactionBroker) -> None:
    one, two = served.producer("verified"), served.producer("verified-too")
    assert one.add(PLACE) == [Error.NONE]
    topics = [Message(name="t", partitions=[0, 1])]

    def asked(producer: TransactionClient, verify_only: bool, **fields: object) -> Message:
        given = {"transactional_id": producer.name, "producer_id": producer.producer_id, "producer_epoch": producer.epoch}
        return Message(**{**given, "verify_only": verify_only, "topics": topics, **fields})

    wanted = [asked(one, True), asked(two, False), asked(one, True, transactional_id="nobody")]
    answer = served.client.call("AddPartitionsToTxn", 4, transactions=wanted)
    told = {
        result.transactional_id: [
            Error(part.partition_error_code) for topic in result.topic_results for part in topic.results_by_partition
        ]
        for result in answer.results_by_transaction
    }
    assert told == {
        "verified": [Error.NONE, Error.TRANSACTION_ABORTABLE],
        "verified-too": [Error.NONE, Error.NONE],
        "nobody": [Error.INVALID_PRODUCER_ID_MAPPING] * 2,
    }
    assert [(topic.topic, topic.partitions) for topic in two.described().topics] == [("t", [0, 1])]


def test_offsets_of_a_group_are_added(served: TransactionBroker) -> None:
    producer = served.producer("offsets")
    assert producer.add_offsets("group") == Error.NONE
    (topic,) = producer.described().topics
    assert topic.topic == "__consumer_offsets"
    assert len(topic.partitions) == 1


# ---- looking


def test_transactions_are_listed_by_filters(served: TransactionBroker) -> None:
    open_one, idle = served.producer("listed-open"), served.producer("listed-idle")
    assert open_one.add(PLACE) == [Error.NONE]

    def listed(version: int = 2, **fields: object) -> tuple[set[str], list[str]]:
        given = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1, "transactional_id_pattern": None}
        answer = served.client.call("ListTransactions", version, **{**given, **fields})
        assert answer.error_code == 0
        names = {one.transactional_id for one in answer.transaction_states if one.transactional_id.startswith("listed-")}
        return names, list(answer.unknown_state_filters)

    both = {"listed-open", "listed-idle"}
    assert listed() == listed(version=0) == (both, [])
    assert listed(state_filters=["Ongoing", "Lost"]) == ({"listed-open"}, ["Lost"])
    assert listed(producer_id_filters=[idle.producer_id]) == ({"listed-idle"}, [])
    assert listed(transactional_id_pattern="listed-o.*") == ({"listed-open"}, [])
    assert listed(transactional_id_pattern="listed") == (set(), [])
    assert listed(transactional_id_pattern="") == (both, [])
    assert listed(state_filters=["Ongoing"], duration_filter=3_600_000) == (set(), [])
    refused = served.client.call(
        "ListTransactions", 2, state_filters=[], producer_id_filters=[], transactional_id_pattern="["
    )
    assert refused.error_code == Error.INVALID_REGULAR_EXPRESSION.value


# ---- the end


@pytest.mark.parametrize("version", [3, 5])
def test_an_end_is_decided_once(served: TransactionBroker, version: int) -> None:
    """Markers are on their way for ever here: what the leaders make of them is tried elsewhere."""
    producer = served.producer(f"ended-{version}", version)
    assert producer.end(True) == Error.INVALID_TXN_STATE
    assert producer.add(PLACE) == [Error.NONE]
    assert producer.add(PLACE) == [Error.NONE]
    wrong = {"producer_epoch": producer.epoch + 1}
    assert producer.end(True, **wrong) == Error.PRODUCER_FENCED
    assert producer.end(True, producer_id=producer.producer_id + 1) == Error.INVALID_PRODUCER_ID_MAPPING
    assert producer.end(True) == Error.NONE


def test_an_empty_transaction_of_version_2_is_aborted_and_has_an_epoch(served: TransactionBroker) -> None:
    producer = served.producer("empty")
    epoch = producer.epoch
    assert producer.end(False) == Error.NONE
    assert producer.epoch == epoch + 1
    wait_until(lambda: producer.state() == "CompleteAbort")
    assert producer.end(False, producer_epoch=epoch) == Error.NONE  # the answer was lost, so it is asked for again
    assert producer.epoch == epoch + 1
    assert producer.end(True, producer_epoch=epoch) in (Error.INVALID_TXN_STATE, Error.PRODUCER_FENCED)


def test_without_markers_to_write_a_deleted_topic_ends_the_transaction(served: TransactionBroker) -> None:
    served.client.create("short-lived")
    producer = served.producer("short")
    assert producer.add(("short-lived", 0)) == [Error.NONE]
    served.client.call("DeleteTopics", 4, topic_names=["short-lived"], timeout_ms=5_000)
    wait_until(lambda: producer.add(("short-lived", 0)) == [Error.UNKNOWN_TOPIC_OR_PARTITION])
    assert producer.end(True) == Error.NONE
    wait_until(lambda: producer.state() == "CompleteCommit")


def test_what_is_open_for_too_long_is_aborted_and_its_producer_fenced(served: TransactionBroker) -> None:
    served.client.create("brief")
    producer = TransactionClient(served.client, "late")
    producer.init_when_possible(transaction_timeout_ms=50)
    assert producer.add(("brief", 0)) == [Error.NONE]
    wait_until(lambda: producer.state() in ("PrepareAbort", "CompleteAbort"))
    assert producer.described().producer_epoch == producer.epoch + 1
    fenced = (Error.INVALID_TXN_STATE, Error.PRODUCER_FENCED)  # the first up to 4.4, as its transaction was aborted
    assert producer.end(True) in (Error.CONCURRENT_TRANSACTIONS, *fenced)


# ---- restarts


def test_all_is_known_after_a_restart_and_what_has_timed_out_is_aborted(tmp_path: Path) -> None:
    slow = ("transaction.abort.timed.out.transaction.cleanup.interval.ms=1000",)
    with BrokerProcess(tmp_path / "broker", overrides=slow) as broker:
        with BrokerClient(broker.port) as client:
            client.create("t", 1)
            TransactionClient(client, "open").find()
            kept, late = TransactionClient(client, "open"), TransactionClient(client, "late")
            kept.init_when_possible()
            late.init_when_possible(transaction_timeout_ms=1)
            assert kept.add(PLACE) == late.add(PLACE) == [Error.NONE]
            before = kept.described()
        broker.kill()
        broker.start()
        with BrokerClient(broker.port) as client:
            kept.client = late.client = client
            wait_until(lambda: kept.state() == "Ongoing")
            assert kept.described() == before
            assert kept.described().transaction_timeout_ms == TIMEOUT_MS
            wait_until(lambda: late.state() in ("PrepareAbort", "CompleteAbort"))
            assert kept.add(PLACE) == [Error.NONE]


def test_an_id_that_nobody_uses_is_forgotten_and_stays_so(tmp_path: Path) -> None:
    quick = ("transactional.id.expiration.ms=1", "transaction.remove.expired.transaction.cleanup.interval.ms=100")
    with BrokerProcess(tmp_path / "broker", overrides=quick) as broker:
        with BrokerClient(broker.port) as client:
            producer = TransactionClient(client, "brief")
            producer.find()
            producer.init_when_possible()
            wait_until(lambda: producer.state() == "TRANSACTIONAL_ID_NOT_FOUND")
            assert producer.end(False) == Error.INVALID_PRODUCER_ID_MAPPING
        broker.restart()
        with BrokerClient(broker.port) as client:
            producer.client = client
            wait_until(lambda: producer.state() == "TRANSACTIONAL_ID_NOT_FOUND")
