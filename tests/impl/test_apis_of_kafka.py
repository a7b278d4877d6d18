"""Every API of Apache Kafka 4.4.0, asked of our nodes as Kafka's nodes were asked: same, or named with its reason.

`tests/data/kafka-4.4.0-apis.json` has Kafka's answers; `conformance.kafka.answers` has asked for them, and asks here.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kspec.conformance.kafka.answers import CLOSED, answers_of, offered, prepare
from tests.impl.broker.process import BrokerProcess
from tests.places import DATA, DOCS
from tests.trials.cluster.running import RunningCluster

KAFKAS = json.loads((DATA / "kafka-4.4.0-apis.json").read_text(encoding="utf-8"))
FORMS = (("one", "broker"), ("three", "broker"), ("three", "controller"))

NOT_OFFERED: dict[str, tuple[str, ...]] = {
    "broker": (
        *("ShareGroupHeartbeat", "ShareGroupDescribe", "ShareFetch", "ShareAcknowledge", "DescribeShareGroupOffsets"),
        *("AlterShareGroupOffsets", "DeleteShareGroupOffsets", "InitializeShareGroupState", "ReadShareGroupState"),
        *("WriteShareGroupState", "DeleteShareGroupState", "ReadShareGroupStateSummary"),
        *("StreamsGroupHeartbeat", "StreamsGroupDescribe", "StreamsGroupTopologyDescriptionUpdate"),
        "UnregisterController",
    ),
    "controller": (
        *("ControllerRegistration", "DescribeUserScramCredentials"),
        "UnregisterController",
    ),
}
"""APIs that Kafka offers and we do not. `docs/broker.md` and `docs/controller.md` name them all."""

ANSWERED_BUT_NOT_OFFERED = ("GetTelemetrySubscriptions", "PushTelemetry")
"""Kafka answers these without having said that it does, as no receiver of telemetry is configured."""

OTHERWISE: dict[str, str] = {
    "DescribeAcls: nothing in it": "a filter of no kind of resource, which Kafka cannot read: the connection is closed",
    "AlterClientQuotas: user, to see": "Kafka keeps quotas; here nobody would keep to them",
    "AddPartitionsToTxn: nothing in it": "Kafka answers with the last transaction, and so never where there is none",
    "DescribeConfigs: client metrics": "client metrics have no settings here",
    "DescribeConfigs: a group": "groups have no settings here",
    "IncrementalAlterConfigs: client metrics": "client metrics have no settings here",
    "IncrementalAlterConfigs: a group": "groups have no settings here",
}
"""Answers that differ on each listener of both forms, and why."""

OTHERWISE_OF: dict[tuple[str, str], dict[str, str]] = {
    ("one", "broker"): {
        "DescribeQuorum: metadata": "the controller in this process has no listener of its own: the broker's is told",
    },
    ("three", "broker"): {
        "Metadata: nothing in it": "Kafka names a random broker as the controller",
        "DescribeCluster: nothing in it": "Kafka names a random broker as the controller",
        "DescribeCluster: brokers": "Kafka names a random broker as the controller",
    },
    ("three", "controller"): {
        "DescribeDelegationToken: nothing in it": "Kafka's controller offers it and answers UNKNOWN_SERVER_ERROR",
        "IncrementalAlterConfigs: a logger": "any node of the cluster is known as one with loggers",
        "IncrementalAlterConfigs: a strange kind": "a broker answers the same as ours; Kafka's controller another error",
        "IncrementalAlterConfigs: keystore": "Kafka's controller takes what its broker refuses",
        "IncrementalAlterConfigs: read only": "Kafka's controller takes what its broker refuses",
        "IncrementalAlterConfigs: authorizer": "Kafka's controller takes what its broker refuses",
    },
}

IN_ORDER = ("synonyms", "replica_nodes")
"""Lists whose order is a part of what they say."""


def unordered(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: unordered(one, key) for key, one in value.items()}
    if isinstance(value, list):
        found = [unordered(one) for one in value]
        return found if name in IN_ORDER else sorted(found, key=json.dumps)
    return value


def differences(kafkas: Any, ours: Any, path: str = "") -> Iterator[str]:
    if "*" in (kafkas, ours):
        return
    if isinstance(kafkas, dict) and isinstance(ours, dict):
        for key in sorted(kafkas.keys() | ours.keys()):
            yield from differences(kafkas.get(key, "missing"), ours.get(key, "missing"), f"{path}.{key}")
    elif isinstance(kafkas, list) and isinstance(ours, list) and len(kafkas) == len(ours):
        for number, (one, other) in enumerate(zip(kafkas, ours, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif kafkas != ours:
        yield f"{path}: Kafka {kafkas}, here {ours}"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Versions and answers of our nodes, asked once."""
    folder: Path = tmp_path_factory.mktemp("apis")
    found: dict[tuple[str, str], dict[str, Any]] = {}
    newest = KAFKAS["newest"]
    with BrokerProcess(folder / "one") as broker:
        prepare(broker.port, 1)
        found["one", "broker"] = {"versions": offered(broker.port), "answers": answers_of(broker.port, newest)}
    with RunningCluster(folder / "three", brokers=3, combined=False) as cluster:
        prepare(cluster.port, 3)
        for listener, port in (("broker", cluster.port), ("controller", cluster.port + 3)):
            found["three", listener] = {"versions": offered(port), "answers": answers_of(port, newest)}
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("form", "listener"), FORMS)
def test_apis_and_versions_are_kafkas(form: str, listener: str, asked: dict[tuple[str, str], dict[str, Any]]) -> None:
    kafkas = {name: tuple(versions) for name, versions in KAFKAS[form][listener]["versions"].items()}
    ours = asked[form, listener]["versions"]
    assert {name: versions for name, versions in kafkas.items() if name not in NOT_OFFERED[listener]} == ours
    assert kafkas.keys() >= set(NOT_OFFERED[listener])


def complaints(form: str, listener: str, case: str, ours: Any) -> list[str]:
    """The differences of an answer from Kafka's that have no reason; or the reason, if there is no difference any more."""
    kafkas = KAFKAS[form][listener]["answers"][case]
    api = case.partition(":")[0]
    not_offered = api in (*NOT_OFFERED[listener], *ANSWERED_BUT_NOT_OFFERED)
    if not_offered or (kafkas == CLOSED and api not in KAFKAS[form][listener]["versions"]):
        return [] if ours == CLOSED else [f"{ours}, and not closed"]
    reason = OTHERWISE.get(case) or OTHERWISE_OF[form, listener].get(case)
    found = list(differences(unordered(kafkas), unordered(ours)))
    if reason is None:
        return found
    return [] if found or "random" in reason else [f"the answer is Kafka's now: {reason}"]


@pytest.mark.slow
@pytest.mark.parametrize(("form", "listener"), FORMS)
def test_an_answer_is_kafkas_or_named(form: str, listener: str, asked: dict[tuple[str, str], dict[str, Any]]) -> None:
    cases, ours = KAFKAS[form][listener]["answers"], asked[form, listener]["answers"]
    assert len(cases) > 200
    found = {case: complaints(form, listener, case, ours[case]) for case in cases}
    assert {case: told for case, told in found.items() if told} == {}


@pytest.mark.parametrize(("listener", "page"), [("broker", "broker.md"), ("controller", "controller.md")])
def test_what_is_not_offered_is_named_in_the_docs(listener: str, page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert [name for name in NOT_OFFERED[listener] if name not in text] == []
