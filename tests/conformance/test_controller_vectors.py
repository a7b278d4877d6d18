"""Expectations of Apache Kafka's unit tests of the controller, replayed."""

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.controller_vectors import CONTROLLER_COMPONENTS
from tests.conformance.vectors import Vector, VectorOutcome, load, replay

VECTORS = load(Path(__file__).parent / "data" / "kafka-controller-vectors.json")
REGISTRATION = {"replicas": [2, 1, 3], "isr": [2, 1, 3], "leader": 1, "leader_epoch": 100, "partition_epoch": 200}


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_kafka(vector: Vector) -> None:
    assert replay(vector) == VectorOutcome(vector["id"], "pass")


def test_every_component_has_vectors() -> None:
    assert {vector["component"] for vector in VECTORS} == set(CONTROLLER_COMPONENTS)
    assert len({vector["id"] for vector in VECTORS}) == len(VECTORS) == 13


def outcome(op: str, expect: Any, **given: Any) -> VectorOutcome:
    operation = {"op": op, "registration": REGISTRATION, "acceptable": [1, 2, 4], "expect": expect} | given
    return replay({"id": "example", "component": "controller_partition_change", "setup": [operation], "expect": {}})


@pytest.mark.parametrize(
    ("given", "expect"),
    [
        ({"election": "PREFERRED"}, [2, False]),
        ({}, [1, False]),
        ({"election": "unclean"}, {"leader": 1, "unclean": False}),
        ({"target_isr": [1, 3]}, {"node": 1}),
        ({"target_isr": [3]}, -1),
        ({"target_isr": [3], "election": "UNCLEAN"}, [2, True]),
        ({"target_isr": [4], "election": "UNCLEAN", "target_replicas": [2, 1, 3, 4]}, [4, False]),
    ],
)
def test_elections(given: dict[str, Any], expect: Any) -> None:
    """Expectations of `PartitionChangeBuilderTest.testElectLeader`, in each way in which one may be written."""
    assert outcome("elect_leader", expect, **given).verdict == "pass"


@pytest.mark.parametrize("expect", [[1, True], 2, {"leader": 2}, {"leader": 1, "unclean": True}, {}, "1"])
def test_a_wrong_election_fails(expect: Any) -> None:
    assert outcome("elect_leader", expect).verdict == "fail"


@pytest.mark.parametrize(
    ("given", "expect"),
    [
        ({"target_isr": [2, 1]}, {"isr": [1, 2]}),
        ({"target_isr": [2, 1], "metadata_version": "3.5-IV2"}, {"isr": [2, 1], "leader": 1}),
        ({"target_replicas": [3, 2, 1]}, {"replicas": [3, 2, 1]}),
        ({"target_replicas": [1, 2, 3, 4], "target_adding": [4]}, {"replicas": [1, 2, 3, 4], "adding": [4]}),
        ({"target_isr": [3], "election": "UNCLEAN"}, {"isr": [2], "leader": 2, "recovery": "RECOVERING"}),
        ({"target_isr": [3], "election": "UNCLEAN", "metadata_version": "3.1"}, {"isr": [2], "leader": 2}),
        ({"target_recovery": "RECOVERING"}, {"leader_recovery": "RECOVERING"}),
        ({"target_recovery": 1}, {"leaderRecoveryState": 1}),
    ],
)
def test_changes(given: dict[str, Any], expect: Any) -> None:
    assert outcome("build_change", expect, **given).verdict == "pass"


@pytest.mark.parametrize("expect", [None, {}, {"isr": [2]}, {"isr": [2, 1], "leader": 1}, [2, 1]])
def test_a_wrong_change_fails(expect: Any) -> None:
    assert outcome("build_change", expect, target_isr=[2, 1]).verdict == "fail"


@pytest.mark.parametrize(
    ("op", "given", "reason"),
    [
        ("build_change", {"rack": "a"}, "argument rack"),
        ("elect_leader", {"election": "DESIGNATED"}, "election DESIGNATED"),
        ("elect_leader", {"acceptable": "some"}, "acceptable some"),
        ("build_change", {"expect": {"directories": []}}, "expected directories"),
        ("build_change", {"registration": REGISTRATION | {"racks": []}}, "registration's racks"),
    ],
)
def test_what_nobody_reads_is_unsupported(op: str, given: dict[str, Any], reason: str) -> None:
    found = outcome(op, **({"expect": None} | given))
    assert (found.verdict, found.reason.removeprefix(f"operation 1, {op}, ")) == ("unsupported", reason)


@pytest.mark.parametrize(
    "registration",
    [
        {"replicas": [2, 1, 3], "isr": [2, 1, 3], "leader": 1},
        {"replicas": [2, 1, 3], "isr": [2, 1, 3], "leader": 1, "leaderRecoveryState": 0, "directories": ["x"], "elr": None},
    ],
)
def test_a_registration_needs_only_what_matters(registration: dict[str, Any]) -> None:
    unchanged = {"expect": {"leader": -2, "leader_recovery_state": "NO_CHANGE", "isr": None}}
    assert outcome("build_change", **unchanged, registration=registration).verdict == "pass"
    shrunk = {"targetIsr": [2, 1], "expect_isr": [1, 2], "expect_leader": None, "acceptable": "all"}
    assert outcome("build_change", {"isr": [2, 1]}, registration=registration, **shrunk).verdict == "pass"
    nobody = {"acceptable": "none", "expect_node": -1, "expect_unclean": False}
    assert outcome("elect_leader", -1, registration=registration, **nobody).verdict == "pass"
