"""The trace of a broker agrees with the rules: the steps of the other tests' kind, run again."""

from pathlib import Path

import click
from click.testing import CliRunner, Result

from kspec.cli.main import cli
from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from tests.impl.broker.process import BrokerClient, BrokerProcess
from tests.limits.turns import Turns


def kspec(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, standalone_mode=False)


def test_a_recorded_run_comes_out_the_same_and_a_changed_one_does_not(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    with BrokerProcess(tmp_path / "logs", "--trace", str(trace), "--release", "4.4", traced=False) as broker:
        with BrokerClient(broker.port) as client:
            client.create("traced")
            altered = Message(name="retention.ms", config_operation=0, value="7")
            resource = Message(resource_type=2, resource_name="traced", configs=[altered])
            assert client.call("IncrementalAlterConfigs", 1, resources=[resource]).responses[0].error_code == 0
            for number in range(5):
                batch = new_batch([(1, b"k", b"v")], producer_id=7, producer_epoch=0, base_sequence=number)
                assert client.produce("traced", batch).base_offset == number
                assert client.produce("traced", batch).base_offset == number
            client.fetch("traced", 0)
            client.fetch("traced", 99)
            wanted = Message(partition_index=0, timestamp=-1)
            client.call("ListOffsets", 7, replica_id=-1, topics=[Message(name="traced", partitions=[wanted])])
            deleted = Message(name="traced", partitions=[Message(partition_index=0, offset=3)])
            client.call("DeleteRecords", 2, topics=[deleted], timeout_ms=1000)
            for _ in range(2):
                client.call("FindCoordinator", 4, key_type=0, coordinator_keys=["group"])
            protocol = Message(name="range", metadata=b"")
            joining = {"group_id": "group", "session_timeout_ms": 10000, "rebalance_timeout_ms": 10000}
            turns, error = Turns(), Error.NOT_COORDINATOR
            while error in (Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS):
                turns.go()
                asked = {"member_id": "", "protocol_type": "consumer", "protocols": [protocol], **joining}
                error = Error(client.call("JoinGroup", 3, **asked).error_code)
        assert broker.stop() == 0
    ended = kspec("replay", str(trace))
    assert ended.return_value == 0, ended.output
    assert "all come out as recorded" in ended.stdout
    text = trace.read_text(encoding="utf-8")
    for rule in (
        "handle_create_topics",
        "handle_incremental_alter_configs",
        "handle_produce",
        "read_partition",
        "handle_list_offsets",
        "handle_delete_records",
        "handle_group_request",
        "set_ready_to_unfence",
        "handle_broker_heartbeat_response",
    ):
        assert f".{rule}" in text
    changed = text.replace('"OFFSET_OUT_OF_RANGE"', '"FENCED_LEADER_EPOCH"', 1)
    assert changed != text
    trace.write_text(changed, encoding="utf-8")
    ended = kspec("replay", str(trace))
    assert ended.return_value == 1
    assert "spec.broker.leader.fetch.read_partition comes out differently" in ended.stdout
    assert isinstance(kspec("replay", str(tmp_path / "missing")).exception, click.UsageError)


def test_steps_that_a_weakened_rule_decided_name_the_rule(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    mutant = "--release", "next", "--mutant", "no-sequence-check"
    with BrokerProcess(tmp_path / "logs", "--trace", str(trace), *mutant, traced=False) as broker:
        with BrokerClient(broker.port) as client:
            client.create("traced")
            for number in (0, 0, 5):
                batch = new_batch([(1, b"k", b"v")], producer_id=7, producer_epoch=0, base_sequence=number)
                assert client.produce("traced", batch).error_code == 0
        assert broker.stop() == 0
    assert kspec("replay", str(trace)).return_value == 0
    ended = kspec("replay", str(trace), "--against", "next")
    assert ended.return_value == 1, ended.output
    (line,) = ended.stdout.splitlines()
    assert line.startswith("rule check_sequences: not as in next, decided 1 step otherwise, first ")
    assert line.endswith("(handle_produce)")
    step = int(line.rpartition(":")[2].split()[0])
    lines = trace.read_text(encoding="utf-8").splitlines()
    assert step == max(number for number, text in enumerate(lines, start=1) if "handle_produce" in text)
    assert isinstance(kspec("replay", str(trace), "--against", "9.9").exception, click.UsageError)
    with trace.open("a", encoding="utf-8") as file:
        file.write('{"rule":"spec.nowhere","outcome":null,"self":null,"state":null,"given":[]}\n')
    assert isinstance(kspec("replay", str(trace), "--against", "next").exception, click.UsageError)
