"""`kspec transactions` on this broker and on Apache Kafka, and beside Kafka's own tool."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from click.testing import CliRunner, Result

from kspec.cli.main import cli
from kspec.conformance.kafka.process import free_port
from kspec.conformance.kafka.single import SingleKafka
from kspec.spec.values import Error
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until
from tests.impl.clients.kafka_tool import printed_by_kafka
from tests.impl.requests.transaction_client import TransactionClient
from tests.limits.marks import marked

TOOL = "org.apache.kafka.tools.TransactionsCommand"
TOPIC = "t"
OPEN, IDLE = "open", "idle"


class TransactionAddress(NamedTuple):
    """A cluster, with a producer whose transaction is open, and one that has none."""

    address: str
    port: int


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransactionAddress]:
    with BrokerProcess(tmp_path_factory.mktemp("transactions") / "logs") as running:
        prepare(running.port)
        yield TransactionAddress(running.address, running.port)


@pytest.fixture(scope="module")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransactionAddress]:
    with SingleKafka(jars_or_skip(NEWEST), tmp_path_factory.mktemp("apache") / "kafka") as kafka:
        prepare(kafka.port)
        yield TransactionAddress(kafka.address, kafka.port)


@pytest.fixture(params=marked(["ours", "kafkas"], nightly=["kafkas"]))
def cluster(request: pytest.FixtureRequest) -> TransactionAddress:
    found: TransactionAddress = request.getfixturevalue(request.param)
    return found


def prepare(port: int) -> None:
    """Begin a transaction in two partitions."""
    with BrokerClient(port) as client:
        client.create(TOPIC, 2)
        for name in (OPEN, IDLE):
            producer = TransactionClient(client, name)
            producer.find()
            producer.init_when_possible()
            if name == OPEN:
                wait_until(lambda made=producer: made.add((TOPIC, 0), (TOPIC, 1)) == [Error.NONE, Error.NONE])


def tool(address: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["transactions", "--bootstrap-server", address, *arguments])


def rows(cluster: TransactionAddress, *arguments: str) -> list[list[str]]:
    """The table that is printed, without its headers."""
    ended = tool(cluster.address, *arguments)
    assert ended.exit_code == 0, ended.output
    return [[cell.strip() for cell in line.split("\t")[:-1]] for line in ended.stdout.splitlines()][1:]


def test_transactional_ids_are_listed(cluster: TransactionAddress) -> None:
    assert [(row[0], row[3]) for row in rows(cluster, "list")] == [(IDLE, "Empty"), (OPEN, "Ongoing")]
    assert [row[0] for row in rows(cluster, "list", "--transactional-id-pattern", "o.*")] == [OPEN]
    assert OPEN not in [row[0] for row in rows(cluster, "list", "--duration-filter", "3600000")]


def test_a_transactional_id_is_described(cluster: TransactionAddress) -> None:
    (found,) = rows(cluster, "describe", "--transactional-id", OPEN)
    assert (found[1], found[3:6], found[-1]) == (OPEN, ["0", "Ongoing", "60000"], "t-0,t-1")
    assert int(found[6]) > 0
    (empty,) = rows(cluster, "describe", "--transactional-id", IDLE)
    assert (empty[4], empty[6:]) == ("Empty", ["None", "None", ""])


def test_nothing_hangs_and_no_producer_is_known(cluster: TransactionAddress) -> None:
    assert rows(cluster, "describe-producers", "--topic", TOPIC, "--partition", "0") == []
    assert rows(cluster, "find-hanging", "--topic", TOPIC) == []
    assert rows(cluster, "find-hanging", "--broker-id", "1") == []


def test_refusals_are_one_line(cluster: TransactionAddress) -> None:
    for status, said, arguments in (
        (1, "is not known", ["describe", "--transactional-id", "nobody"]),
        (1, "INVALID_REGULAR_EXPRESSION", ["list", "--transactional-id-pattern", "["]),
        (1, "UNKNOWN_TOPIC_OR_PARTITION", ["describe-producers", "--topic", TOPIC, "--partition", "9"]),
        (1, "there is no broker 77", ["describe-producers", "--topic", TOPIC, "--partition", "0", "--broker-id", "77"]),
        (1, "no open transaction begins", ["abort", "--topic", TOPIC, "--partition", "0", "--start-offset", "5"]),
        (2, "say which transaction", ["abort", "--topic", TOPIC, "--partition", "0"]),
        (2, "--producer-epoch is missing", ["abort", "--topic", TOPIC, "--partition", "0", "--producer-id", "5"]),
        (2, "needs --topic or --broker-id", ["find-hanging"]),
        (2, "--partition needs --topic", ["find-hanging", "--broker-id", "1", "--partition", "0"]),
    ):
        ended = tool(cluster.address, *arguments)
        assert ended.exit_code == status, (arguments, ended.output)
        assert isinstance(ended.exception, SystemExit)
        assert said in ended.output, (arguments, ended.output)
    assert tool(f"127.0.0.1:{free_port()}", "--timeout", "2000", "list").exit_code == 1


SHOWN = (
    ("list",),
    ("list", "--duration-filter", "0"),
    ("list", "--duration-filter", "3600000"),
    ("list", "--transactional-id-pattern", "op.*"),
    ("describe", "--transactional-id", IDLE),
    ("describe-producers", "--topic", TOPIC, "--partition", "0"),
    ("find-hanging", "--topic", TOPIC),
    ("find-hanging", "--broker-id", "1", "--max-transaction-timeout", "0"),
)


@pytest.mark.slow
def test_kafkas_own_tool_prints_the_same(cluster: TransactionAddress) -> None:
    for arguments, theirs in zip(SHOWN, printed_by_kafka(TOOL, cluster.address, SHOWN), strict=True):
        assert sorted(theirs.splitlines()) == sorted(tool(cluster.address, *arguments).stdout.splitlines()), arguments


def test_who_is_terminated_by_force_is_fenced(cluster: TransactionAddress) -> None:
    with BrokerClient(cluster.port) as client:
        producer = TransactionClient(client, "forced")
        producer.find()
        producer.init_when_possible()
        epoch = producer.epoch
        assert tool(cluster.address, "forceTerminateTransaction", "--transactionalId", "forced").exit_code == 0
        assert producer.described().producer_epoch > epoch
        assert producer.add((TOPIC, 0)) == [Error.PRODUCER_FENCED]
