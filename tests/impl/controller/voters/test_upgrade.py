"""`kraft.version` is raised from 0 to 1 while controllers decide, in virtual time and on disks that lose things."""

import json
from base64 import urlsafe_b64decode

import pytest

from kspec.impl.metadata.election_file import QUORUM_STATE
from kspec.impl.metadata.files import FOLDER
from kspec.impl.wire.values import Message
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.values import NO_DIRECTORY, Error
from kspec.trials.simulated.disk import Survives
from kspec.trials.simulated.nodes import ControllerNode
from tests.impl.controller.requests import FEATURES
from tests.impl.controller.three import VOTERS, SimulatedPeer, ThreeControllers
from tests.impl.controller.voters.changing import endpoint_of, key_of

REPORTS_MS = 5_000
"""Longer than a follower waits before it reports."""


def ask(
    cluster: ThreeControllers, node: ControllerNode, level: int = 1, kind: int = 1, dry: bool = False, **more: int
) -> list[Message | None]:
    """Ask for a level of `kraft.version`, and of other features after it; the list gets the answer."""
    levels = {"kraft.version": level, **{name.replace("_", "."): value for name, value in more.items()}}
    updates = [Message(feature=name, max_version_level=value, upgrade_type=kind) for name, value in levels.items()]
    return SimulatedPeer(cluster, node, 900).send(
        "UpdateFeatures", timeout_ms=1_000, feature_updates=updates, validate_only=dry
    )


def upgrade(
    cluster: ThreeControllers, node: ControllerNode, level: int = 1, kind: int = 1, dry: bool = False, **more: int
) -> tuple[int, str | None]:
    """Ask for a level of `kraft.version`; the error, and what is said of it."""
    answers = ask(cluster, node, level, kind, dry, **more)
    cluster.until(lambda: answers)
    assert answers[0] is not None
    return answers[0].error_code, answers[0].error_message


def levels(cluster: ThreeControllers) -> set[int]:
    """The levels of `kraft.version` that the controllers that run know."""
    return {node.core.kraft_version for node in cluster.nodes.values() if node.up}


def settled(cluster: ThreeControllers, level: int) -> bool:
    """Whether all have one log, and this level."""
    return cluster.same_logs() and levels(cluster) == {level}


def reported(cluster: ThreeControllers) -> ControllerNode:
    """The active controller, once all have told it their directories."""
    active = cluster.elect()
    cluster.until(lambda: len(active.core.voter.state.reported) == len(VOTERS))
    return active


def test_voters_of_settings_become_those_of_the_log_and_then_may_change() -> None:
    cluster = ThreeControllers()
    active = cluster.elect()
    peer = SimulatedPeer(cluster, active).join()
    error, said = upgrade(cluster, active)
    assert (error, "have not reported" in (said or "")) == (Error.INVALID_UPDATE_VERSION.value, True), said
    reported(cluster)
    peer.create_topic("before")
    assert upgrade(cluster, active, dry=True) == (0, None)
    assert levels(cluster) == {0}, "a dry run changes nothing"
    assert upgrade(cluster, active) == (0, None)
    assert active.core.kraft_version == 1
    assert active.core.all_committed or active.core.voter.committed > active.core.voter.state.voter_sets[-1].offset
    cluster.until(lambda: settled(cluster, 1))
    assert upgrade(cluster, active) == (0, None), "once more: nothing is to be done"
    assert upgrade(cluster, active, 0)[0] == Error.INVALID_UPDATE_VERSION.value, "it never goes down"
    assert upgrade(cluster, active, 0, kind=2)[0] == Error.INVALID_UPDATE_VERSION.value
    assert upgrade(cluster, active, 0, kind=3)[0] == Error.INVALID_UPDATE_VERSION.value
    assert upgrade(cluster, active, 2)[0] == Error.INVALID_UPDATE_VERSION.value
    for node in cluster.nodes.values():
        voters = node.core.voter.voters
        assert dict(voters) == {key_of(one): (endpoint_of(one.node_id),) for one in cluster.nodes.values()}
    other = cluster.others(active)[0]
    named = {"voter_id": other.node_id, "voter_directory_id": key_of(other).directory}
    assert peer.call("RemoveRaftVoter", 0, cluster_id=None, **named).error_code == 0
    rest = sorted({*VOTERS} - {other.node_id})
    cluster.until(lambda: all(sorted(v.id for v in node.core.voter.voters) == rest for node in cluster.nodes.values()))
    assert peer.create_topic("after").error_code == 0
    cluster.until(cluster.same_logs)
    assert sorted(other.core.image.topics) == ["after", "before"]


def test_another_feature_that_is_refused_keeps_the_version_back() -> None:
    """Kafka has raised it by then."""
    cluster = ThreeControllers()
    active = reported(cluster)
    assert upgrade(cluster, active, transaction_version=9)[0] == Error.INVALID_UPDATE_VERSION.value
    cluster.pass_time(2_000)
    assert levels(cluster) == {0}


def test_a_broker_that_does_not_know_the_version_is_in_its_way_and_not_let_in_later() -> None:
    cluster = ThreeControllers()
    active = reported(cluster)
    older = SimulatedPeer(cluster, active, 2)
    features = [Message(name=n, min_supported_version=a, max_supported_version=b) for n, a, b in FEATURES[:-1]]
    assert older.register(features=features).error_code == 0
    assert upgrade(cluster, active)[0] == Error.INVALID_UPDATE_VERSION.value
    fresh = ThreeControllers()
    active = reported(fresh)
    assert upgrade(fresh, active) == (0, None)
    older = SimulatedPeer(fresh, active, 2)
    assert older.register(features=features).error_code == Error.UNSUPPORTED_VERSION.value


@pytest.mark.parametrize("survives", Survives)
@pytest.mark.parametrize("after_ms", [0, 2, 20, 500])
def test_the_active_one_is_lost_amid_the_upgrade(after_ms: int, survives: Survives) -> None:
    """All have it in the end, or none; who was told so has it."""
    cluster = ThreeControllers(seed=after_ms + 1)
    active = reported(cluster)
    answers = ask(cluster, active)
    if after_ms:
        cluster.pass_time(after_ms)
    active.kill(survives)
    was_told = bool(answers) and answers[0] is not None and answers[0].error_code == 0
    successor = cluster.elect()
    cluster.pass_time(3_000)
    active.start()
    cluster.until(lambda: cluster.same_logs() and len(levels(cluster)) == 1)
    assert not was_told or levels(cluster) == {1}
    successor = cluster.elect()
    if levels(cluster) == {0}:
        reported(cluster)
        assert upgrade(cluster, cluster.elect()) == (0, None)
        cluster.until(lambda: settled(cluster, 1))
    assert {voter.id for voter in successor.core.voter.voters} == set(VOTERS)
    assert NO_DIRECTORY not in {voter.directory for voter in successor.core.voter.voters}


def test_a_leader_that_is_cut_off_loses_the_version_that_it_has_written() -> None:
    cluster = ThreeControllers()
    active = reported(cluster)
    cluster.until(cluster.same_logs)
    cluster.cut_off(active)
    answers = ask(cluster, active)
    cluster.until(lambda: active.core.kraft_version == 1)
    cluster.until_another_than(active)
    cluster.mend()
    cluster.until(cluster.same_logs)
    assert levels(cluster) == {0}
    assert not answers or answers[0] is None or answers[0].error_code != 0
    assert active.core.log.voters == {}
    active = reported(cluster)
    assert upgrade(cluster, active) == (0, None)
    cluster.until(lambda: settled(cluster, 1))


def test_who_lost_his_disk_after_his_report_reads_on_and_is_added_again() -> None:
    cluster = ThreeControllers()
    active = reported(cluster)
    other = cluster.others(active)[0]
    before = key_of(other)
    other.kill(Survives.NOTHING)
    other.lose_disk()
    assert upgrade(cluster, active) == (0, None), "what it had reported still counts"
    other.start()
    cluster.until(lambda: settled(cluster, 1))
    assert key_of(other) != before
    assert other.core.voter.state.role == VoterRole.FOLLOWER
    epoch = cluster.elect().core.voter.epoch
    cluster.pass_time(10_000)
    assert cluster.elect().core.voter.epoch == epoch, "it stands for no election"
    peer = SimulatedPeer(cluster, active, 900)
    named = {"voter_id": before.id, "voter_directory_id": before.directory}
    assert peer.call("RemoveRaftVoter", 0, cluster_id=None, **named).error_code == 0
    at = endpoint_of(other.node_id)
    listeners = [Message(name=at.listener, host=at.host, port=at.port)]
    added = {"voter_id": other.node_id, "voter_directory_id": key_of(other).directory, "timeout_ms": 1_000}
    assert peer.call("AddRaftVoter", 1, cluster_id=None, listeners=listeners, **added).error_code == 0
    cluster.until(lambda: key_of(other) in active.core.voter.voters)


def test_snapshots_and_the_file_of_the_election_after_it() -> None:
    cluster = ThreeControllers(metadata_log_max_record_bytes_between_snapshots="2000")
    active = reported(cluster)
    peer = SimulatedPeer(cluster, active).join()
    folder = f"/sim/{active.node_id}/{FOLDER}"
    assert json.loads(active.disk.read_file(f"{folder}/{QUORUM_STATE}"))["data_version"] == 0
    assert upgrade(cluster, active) == (0, None)
    for number in range(30):
        peer.create_topic(f"t{number}")
    cluster.until(lambda: settled(cluster, 1))
    for node in cluster.nodes.values():
        assert node.core.log.snapshot.end_offset > node.core.voter.state.voter_sets[-1].offset
    active.kill(Survives.NOTHING)
    cluster.until_another_than(active)
    active.start()
    cluster.until(lambda: settled(cluster, 1))
    stored = json.loads(active.disk.read_file(f"{folder}/{QUORUM_STATE}"))
    assert stored["data_version"] == 1
    directory = urlsafe_b64decode(f"{stored['votedDirectoryId']}==")
    assert len(directory) == 16
    assert len(active.core.voter.voters) == len(VOTERS)


def test_voters_are_described_without_directories_before_and_with_them_after() -> None:
    cluster = ThreeControllers()
    active = reported(cluster)
    asked = [Message(topic_name="__cluster_metadata", partitions=[Message(partition_index=0)])]

    def described() -> list[tuple[int, bytes]]:
        answer = SimulatedPeer(cluster, active, 900).call("DescribeQuorum", 2, topics=asked)
        (told,) = answer.topics[0].partitions
        assert told.observers == []
        assert all(one.log_end_offset >= 0 for one in told.current_voters)
        return [(one.replica_id, bytes(one.replica_directory_id)) for one in told.current_voters]

    assert described() == [(one, bytes(NO_DIRECTORY)) for one in VOTERS]
    assert upgrade(cluster, active) == (0, None)
    assert described() == [(one.node_id, key_of(one).directory) for one in cluster.nodes.values()]


@pytest.mark.parametrize("release", ["3.9", "4.0"])
def test_older_releases_do_not_upgrade(release: str) -> None:
    cluster = ThreeControllers(release=release)
    active = cluster.elect()
    cluster.pass_time(REPORTS_MS)
    error, said = upgrade(cluster, active)
    assert (error, "since 4.1" in (said or "")) == (Error.INVALID_UPDATE_VERSION.value, True), said
