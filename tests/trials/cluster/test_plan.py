"""The nodes of a cluster, and their settings."""

from pathlib import Path

import pytest

from kspec.impl.storage.small_files import UUID_TEXT
from kspec.trials.cluster.plan import (
    VOTERS,
    UsageError,
    by_node,
    controller_names,
    first_directory,
    nodes_of,
    ports_behind,
    ports_from,
)
from kspec.trials.cluster.programs import KspecProgram

FOLDER = Path("/nowhere")


def test_a_controller_and_brokers_know_each_other_by_kafkas_names() -> None:
    controller, *brokers = nodes_of(FOLDER, 3, ports_from(19192, 3), {"num.partitions": "5", "min.insync.replicas": "1"})
    assert (controller.name, controller.node_id, controller.is_broker) == ("controller", 100, False)
    assert controller.properties["process.roles"] == "controller"
    assert controller.properties["listeners"] == "CONTROLLER://127.0.0.1:19195"
    assert [broker.address for broker in brokers] == ["127.0.0.1:19192", "127.0.0.1:19193", "127.0.0.1:19194"]
    for number, broker in enumerate(brokers, 1):
        assert broker.properties["process.roles"] == "broker"
        assert broker.properties["node.id"] == broker.name == str(number)
        assert broker.properties["log.dirs"] == f"/nowhere/{number}/data"
        assert broker.properties["default.replication.factor"] == "3"
    for node in (controller, *brokers):
        assert node.properties["controller.quorum.voters"] == "100@127.0.0.1:19195"
        assert (node.properties["num.partitions"], node.properties["min.insync.replicas"]) == ("5", "1")
        assert "advertised.listeners" not in node.properties


def test_behind_proxies_each_is_told_the_proxies_of_the_others() -> None:
    controller, first, *_ = nodes_of(FOLDER, 3, ports_behind(19192, 3), {})
    assert (first.properties["listeners"], first.properties["advertised.listeners"]) == (
        "PLAINTEXT://127.0.0.1:19196",
        "PLAINTEXT://127.0.0.1:19192",
    )
    assert first.properties["controller.quorum.voters"] == "100@127.0.0.1:19195"
    assert controller.properties["listeners"] == "CONTROLLER://127.0.0.1:19199"
    assert controller.properties["advertised.listeners"] == "CONTROLLER://127.0.0.1:19195"
    assert controller.properties["controller.quorum.voters"] == "100@127.0.0.1:19199"


def test_several_controllers_vote_by_the_log_of_the_metadata() -> None:
    first, second, _, broker = nodes_of(FOLDER, 1, ports_behind(19192, 1, 3), {})
    places = "127.0.0.1:19193,127.0.0.1:19194,127.0.0.1:19195"
    for node in (first, second, broker):
        assert VOTERS not in node.properties
        assert node.properties["controller.quorum.bootstrap.servers"] == places
    assert first.properties["advertised.listeners"] == "CONTROLLER://127.0.0.1:19193"
    assert first.first_voters == second.first_voters
    assert first.first_voters.split(",")[0] == f"101@127.0.0.1:19193:{first_directory('controller-1')}"
    assert broker.first_voters == ""
    directories = {first_directory(name) for name in controller_names(9)}
    assert {UUID_TEXT.fullmatch(one) is None for one in directories} == {False}
    assert len(directories) == 9


def test_a_cluster_that_has_begun_with_fixed_voters_keeps_them(tmp_path: Path) -> None:
    fixed = "101@127.0.0.1:19193,102@127.0.0.1:19194,103@127.0.0.1:19195"
    before = nodes_of(tmp_path, 1, ports_from(19192, 1, 3), {}, voters_in_log=False)
    assert {(node.properties[VOTERS], node.first_voters) for node in before} == {(fixed, "")}
    before[0].folder.mkdir()
    before[0].file.write_text(f"{VOTERS}={fixed}\n")
    assert [node.properties[VOTERS] for node in nodes_of(tmp_path, 1, ports_from(19192, 1, 3), {})] == [fixed] * 4


def test_a_choice_is_for_all_or_for_each() -> None:
    assert by_node(None, ["1", "2"], otherwise="next") == {"1": "next", "2": "next"}
    assert by_node("3.9", ["1", "2"], otherwise="next") == {"1": "3.9", "2": "3.9"}
    assert by_node("2=3.9", ["1", "2"], otherwise="next") == {"1": "next", "2": "3.9"}
    for wrong in ("3=3.9", "1=", "1=3.9,2"):
        with pytest.raises(UsageError, match="NODE=VALUE"):
            by_node(wrong, ["1", "2"], otherwise=None)


def test_a_node_has_its_release_mutant_and_a_trace_for_each_start() -> None:
    _, first, second, _ = nodes_of(FOLDER, 3, ports_from(19192, 3), {})
    program = KspecProgram(["kspec", "broker"], {"1": "3.9", "2": "next"}, {"2": "weak"}, trace=True)
    begin = ["kspec", "broker", "--config"]
    assert program.command(first, 1) == [
        *begin,
        "/nowhere/1/server.properties",
        "--release",
        "3.9",
        "--trace",
        "/nowhere/1/steps-1.jsonl",
    ]
    assert program.command(second, 4)[-4:] == ["--mutant", "weak", "--trace", "/nowhere/2/steps-4.jsonl"]
