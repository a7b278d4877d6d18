"""`kspec consumer-groups` on this broker and on Apache Kafka, and beside Kafka's own tool."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kspec.cli.broker.groups.resetting import parse_datetime, parse_duration
from kspec.cli.main import cli
from kspec.conformance.kafka.process import free_port
from kspec.conformance.kafka.single import SingleKafka
from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from kspec.spec.coordinator.rules.consumer_protocol import write_assignment
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until
from tests.impl.clients.kafka_tool import printed_by_kafka
from tests.limits.marks import marked

TOPIC, OTHER, PARTITIONS = "alpha", "beta", 3
RECORDS = 10
TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
EPOCHS = ("CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT")
SUBSCRIPTION = b"\0\0\0\0\0\1\0\5alpha\xff\xff\xff\xff"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("groups") / "logs") as running:
        with BrokerClient(running.port) as client:
            prepare(client)
        yield running.address


@pytest.fixture(scope="module")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with SingleKafka(jars_or_skip(NEWEST), tmp_path_factory.mktemp("apache") / "kafka") as kafka:
        with BrokerClient(kafka.port) as client:
            prepare(client)
        yield kafka.address


@pytest.fixture(params=marked(["ours", "kafkas"], nightly=["kafkas"]))
def address(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


def prepare(client: BrokerClient) -> None:
    """Topics with records; the groups `new` (KIP-848), `old` (classic protocol), and `past`, which has no members."""
    for topic in (TOPIC, OTHER):
        client.create(topic, PARTITIONS)
    ids: dict[str, bytes] = {}

    def is_led() -> bool:
        found = client.call("Metadata", 12, topics=[Message(name=TOPIC), Message(name=OTHER)]).topics
        ids.update({one.name: bytes(one.topic_id) for one in found})
        return all(part.leader_id == 1 for one in found for part in one.partitions)

    wait_until(is_led)
    batch = new_batch([(1_000 * (number + 1), b"k", b"v") for number in range(RECORDS)])
    for index in range(PARTITIONS):
        wait_until(lambda index=index: client.produce(TOPIC, batch, partition=index).error_code == 0)
    for group in ("past", "old", "new"):
        wait_until(lambda group=group: client.call("FindCoordinator", 3, key=group, key_type=0).error_code == 0)
    wait_until(lambda: commit(client, "past", {0: 4, 1: 7}) == 0)
    join_modern(client, "m-1", "static-1", [])
    join_modern(client, "m-2", None, [])
    join_classic(client)
    assert commit(client, "old", {0: 3}, "", -1) != 0


def commit(client: BrokerClient, group: str, offsets: dict[int, int], member: str = "", epoch: int = -1) -> int:
    """Commit offsets; the first error."""
    partitions = [
        Message(partition_index=index, committed_offset=offset, committed_leader_epoch=-1, committed_metadata="")
        for index, offset in offsets.items()
    ]
    topics = [Message(name=TOPIC, partitions=partitions)]
    fields = {"generation_id_or_member_epoch": epoch, "member_id": member, "topics": topics}
    answer = client.call("OffsetCommit", 9, group_id=group, **fields)
    found: int = answer.topics[0].partitions[0].error_code
    return found


def join_modern(client: BrokerClient, member: str, instance: str | None, owned: list[Message]) -> None:
    asked: dict[str, Any] = {"member_epoch": 0, "instance_id": instance, "rebalance_timeout_ms": 300_000}
    asked |= {"subscribed_topic_names": [TOPIC, OTHER], "topic_partitions": owned, "server_assignor": "range"}

    def joined() -> bool:
        return bool(client.call("ConsumerGroupHeartbeat", 1, group_id="new", member_id=member, **asked).error_code == 0)

    wait_until(joined)


def join_classic(client: BrokerClient) -> None:
    protocols = [Message(name="range", metadata=SUBSCRIPTION)]
    asked: dict[str, Any] = {"session_timeout_ms": 300_000, "rebalance_timeout_ms": 300_000, "protocol_type": "consumer"}
    asked |= {"group_id": "old", "protocols": protocols}
    first = client.call("JoinGroup", 9, member_id="", **asked)
    joined = client.call("JoinGroup", 9, member_id=first.member_id, **asked)
    parts = frozenset((TOPIC, index) for index in range(PARTITIONS))
    given = [Message(member_id=joined.member_id, assignment=write_assignment(0, parts))]
    named = {"group_id": "old", "generation_id": joined.generation_id, "member_id": joined.member_id}
    kinds = {"protocol_type": "consumer", "protocol_name": "range"}
    assert client.call("SyncGroup", 5, assignments=given, **named, **kinds).error_code == 0
    assert commit(client, "old", {0: 3}, joined.member_id, joined.generation_id) == 0


def tool(address: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["consumer-groups", "--bootstrap-server", address, *arguments])


def table(address: str, *arguments: str) -> list[list[str]]:
    ended = tool(address, *arguments)
    assert ended.exit_code == 0, ended.output
    return [line.split() for line in ended.stdout.splitlines() if line]


def test_groups_are_listed_and_described(address: str) -> None:
    assert {"old", "new", "past"} <= {row[0] for row in table(address, "--list")}
    listed = table(address, "--list", "--state", "--type")
    assert listed[0] == ["GROUP", "TYPE", "STATE"]
    assert ["past", "Classic", "Empty"] in listed
    assert ["old", "Classic", "Stable"] in listed
    assert [row[0] for row in table(address, "--list", "--type", "consumer")][:2] == ["GROUP", "new"]
    assert [row[0] for row in table(address, "--list", "--state", "stable", "--type", "classic")] == ["GROUP", "old"]
    head, *rows = table(address, "--describe", "--group", "old")
    assert head[:6] == ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    assert [row[:6] for row in rows] == [
        ["old", TOPIC, "0", "3", "10", "7"],
        ["old", TOPIC, "1", "-", "10", "-"],
        ["old", TOPIC, "2", "-", "10", "-"],
    ]
    head, row = table(address, "--describe", "--group", "old", "--state")
    assert (row[0], *row[3:]) == ("old", "range", "Stable", "1")
    head, *rows = table(address, "--describe", "--group", "new", "--members", "--verbose")
    assert head == ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS", *EPOCHS]
    assert {row[1] for row in rows} == {"m-1", "m-2"}


def test_offsets_are_set_and_deleted(address: str, tmp_path: Path) -> None:
    of_past = ("--reset-offsets", "--group", "past")

    def planned(*way: str) -> list[list[str]]:
        return [row[2:] for row in table(address, *of_past, "--topic", f"{TOPIC}:0,1", *way, "--dry-run")[-2:]]

    assert planned("--to-earliest") == [["0", "0"], ["1", "0"]]
    assert planned("--to-latest") == [["0", "10"], ["1", "10"]]
    assert planned("--to-current") == [["0", "4"], ["1", "7"]]
    assert planned("--to-offset", "99") == [["0", "10"], ["1", "10"]]
    assert planned("--shift-by", "-5") == [["0", "0"], ["1", "2"]]
    assert planned("--to-datetime", "1970-01-01T00:00:02.500") == [["0", "2"], ["1", "2"]]
    assert planned("--by-duration", "PT1S") == [["0", "10"], ["1", "10"]]
    assert table(address, "--describe", "--group", "past")[1][:4] == ["past", TOPIC, "0", "4"]
    exported = tool(address, *of_past, "--all-topics", "--shift-by", "1", "--export", "--execute")
    assert exported.stdout == f"{TOPIC},0,5\n{TOPIC},1,8\n"
    file = tmp_path / "offsets.csv"
    file.write_text(exported.stdout, encoding="utf-8")
    assert table(address, *of_past, "--from-file", str(file), "--execute")[1:] == [
        ["past", TOPIC, "0", "5"],
        ["past", TOPIC, "1", "8"],
    ]
    deleted = table(address, "--delete-offsets", "--group", "past", "--topic", f"{TOPIC}:1")
    assert deleted[1:] == [["TOPIC", "PARTITION", "STATUS"], [TOPIC, "1", "Successful"]]
    assert [row[2:4] for row in table(address, "--describe", "--group", "past")[1:]] == [["0", "5"]]
    made = table(address, "--reset-offsets", "--group", "made", "--topic", TOPIC, "--to-latest", "--execute")
    assert len(made) == 1 + PARTITIONS
    assert tool(address, "--delete", "--group", "made").stdout.endswith("('made') was successful.\n")


def test_refusals_are_one_line(address: str) -> None:
    for status, said, arguments in (
        (1, "Consumer group 'nothing' does not exist.", ["--describe", "--group", "nothing"]),
        (1, "NON_EMPTY_GROUP", ["--delete", "--group", "old"]),
        (1, "GROUP_SUBSCRIBED_TO_TOPIC", ["--delete-offsets", "--group", "old", "--topic", TOPIC]),
        (1, "current state is Stable", ["--reset-offsets", "--group", "old", "--topic", TOPIC, "--to-latest"]),
        (1, "'no-topic' does not exist", ["--reset-offsets", "--group", "past", "--topic", "no-topic", "--to-latest"]),
        (1, "alpha-7", ["--reset-offsets", "--group", "past", "--topic", "alpha:7", "--to-latest"]),
        (2, "say what to do", []),
        (2, "needs --group", ["--describe"]),
        (2, "--list takes no group", ["--list", "--group", "old"]),
        (2, "one of --offsets and --members", ["--describe", "--group", "old", "--offsets", "--members"]),
        (2, "--type is one of", ["--list", "--type", "share-it"]),
        (2, "--reset-offsets takes one of", ["--reset-offsets", "--group", "past", "--to-latest", "--to-earliest"]),
        (2, "reset scopes", ["--reset-offsets", "--group", "past", "--to-latest"]),
        (2, "NAME:0,1,2", ["--reset-offsets", "--group", "past", "--topic", "alpha:x", "--to-latest"]),
        (2, "--verbose goes with --describe only", ["--list", "--verbose"]),
    ):
        ended = tool(address, *arguments)
        assert ended.exit_code == status, (arguments, ended.output)
        assert isinstance(ended.exception, SystemExit)
        assert said in ended.output, (arguments, ended.output)
    nowhere = tool(f"127.0.0.1:{free_port()}", "--list", "--timeout", "2000")
    assert nowhere.exit_code == 1


def test_times_and_durations() -> None:
    assert parse_datetime("1970-01-02T00:00:00.001") == 86_400_001
    assert parse_datetime("1970-01-01T02:00:00.000+02:00") == 0
    assert parse_duration("P1DT2H3M4.5S") == ((26 * 60 + 3) * 60 + 4) * 1000 + 500
    for wrong in ("P", "PT", "1D", "P1H"):
        with pytest.raises(Exception, match="PnDTnHnMnS"):
            parse_duration(wrong)


OF_PAST = ("--reset-offsets", "--group", "past", "--all-topics", "--dry-run")
SHOWN = (
    ("--list", "--state", "--type"),
    *(
        ("--describe", "--all-groups", *what, *more)
        for what in ((), ("--members",), ("--state",))
        for more in ((), ("--verbose",))
    ),
    (*OF_PAST, "--to-earliest"),
    (*OF_PAST, "--to-current"),
    (*OF_PAST, "--to-offset", "9"),
    (*OF_PAST, "--shift-by", "-5"),
    (*OF_PAST, "--to-datetime", "1970-01-01T00:00:02.500"),
)


@pytest.mark.slow
def test_kafkas_own_tool_prints_the_same(address: str) -> None:
    for arguments, theirs in zip(SHOWN, printed_by_kafka(TOOL, address, SHOWN), strict=True):
        assert sorted(theirs.splitlines()) == sorted(tool(address, *arguments).stdout.splitlines()), arguments
