"""Voters of the metadata log change while controllers decide (KIP-853), in virtual time and on disks that lose things."""

import json
from functools import partial

import pytest

from kspec.cli.broker.serve import rules_of
from kspec.impl.controller.quorum.voter_changes import VoterChanges, level_of
from kspec.impl.metadata.election_file import QUORUM_STATE
from kspec.impl.metadata.files import FOLDER
from kspec.impl.metadata.voters import Endpoint
from kspec.impl.wire.values import Message
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.values import NO_DIRECTORY, BrokerId, DirectoryId, Error, ReplicaKey
from kspec.trials.simulated.disk import SimulatedDisk, Survives
from tests.impl.controller.three import SimulatedPeer, ThreeControllers
from tests.impl.controller.voters.changing import FIRST, LATE, ChangingControllers, key_of

WIPED = DirectoryId(b"w" * 16)
ALL = (*FIRST, LATE)


def test_an_observer_catches_up_and_is_added() -> None:
    cluster = ChangingControllers()
    active, late = cluster.elect(), cluster.nodes[LATE]
    SimulatedPeer(cluster, active).join().create_topic("t")
    cluster.until(lambda: cluster.all_know(*FIRST))
    assert late.core.voter.state.role == VoterRole.FOLLOWER
    assert list(late.core.image.topics) == ["t"]
    assert cluster.add(active, key_of(late)) == 0
    second = SimulatedPeer(cluster, active, 2).join(2)
    cluster.until(lambda: cluster.all_know(*ALL))
    registered = {one.broker: one.registered_at for one in late.core.image.spec.brokers}
    assert registered[BrokerId(2)] == second.broker_epoch, "its offset is that of the log"
    stored = json.loads(late.disk.read_file(f"/sim/{LATE}/{FOLDER}/{QUORUM_STATE}"))
    assert (stored["data_version"], stored["leaderId"]) == (1, active.node_id)


def test_the_added_one_may_lead() -> None:
    cluster = ChangingControllers()
    active, late = cluster.elect(), cluster.nodes[LATE]
    cluster.until(lambda: cluster.all_know(*FIRST))
    assert cluster.add(active, key_of(late)) == 0
    cluster.until(lambda: cluster.all_know(*ALL))
    others = [node for node in cluster.others(active) if node is not late]
    assert cluster.remove(active, key_of(others[0])) == 0
    assert cluster.remove(active, key_of(others[1])) == 0
    assert cluster.remove(active, key_of(active)) == 0
    cluster.until(lambda: late.core.is_active)
    assert SimulatedPeer(cluster, late).join().create_topic("t").error_code == 0
    cluster.until(lambda: cluster.all_know(LATE))
    assert all(node.core.voter.leader == LATE for node in cluster.nodes.values())
    assert cluster.remove(late, key_of(late)) == Error.VOTER_NOT_FOUND.value, "the last one"


def test_the_active_one_is_removed_and_the_others_go_on() -> None:
    cluster = ChangingControllers()
    active = cluster.elect()
    SimulatedPeer(cluster, active).join().create_topic("t")
    cluster.until(lambda: cluster.all_know(*FIRST))
    assert cluster.remove(active, key_of(active)) == 0
    assert cluster.until_another_than(active) < 3_000
    rest = [one for one in FIRST if one != active.node_id]
    cluster.until(lambda: cluster.all_know(*rest))
    assert SimulatedPeer(cluster, cluster.elect(), 2).join(2).create_topic("u").error_code == 0
    active.kill(Survives.NOTHING)
    active.start()
    cluster.until(lambda: cluster.all_know(*rest))
    assert sorted(active.core.image.topics) == ["t", "u"]
    assert active.core.voter.state.role == VoterRole.FOLLOWER
    before = cluster.elect().core.voter.epoch
    cluster.pass_time(10_000)
    assert cluster.elect().core.voter.epoch == before, "it raises nobody's epoch"


def test_what_is_wrong_is_said() -> None:
    cluster = ChangingControllers()
    active, late = cluster.elect(), cluster.nodes[LATE]
    cluster.until(lambda: cluster.all_know(*FIRST))
    new, voter = key_of(late), key_of(cluster.others(active)[0])
    assert cluster.told(cluster.ask_to_add(active, new, "another")) == Error.INCONSISTENT_CLUSTER_ID.value
    assert cluster.told(cluster.ask_to_remove(active, voter, "another")) == Error.INCONSISTENT_CLUSTER_ID.value
    standby = cluster.others(active)[0]
    assert cluster.add(standby, new) == Error.NOT_LEADER_OR_FOLLOWER.value
    assert cluster.remove(standby, voter) == Error.NOT_LEADER_OR_FOLLOWER.value
    assert cluster.add(active, new._replace(directory=NO_DIRECTORY)) == Error.INVALID_REQUEST.value
    assert cluster.told(cluster.ask_to_add(active, new, listener="OTHER")) == Error.INVALID_REQUEST.value
    assert cluster.remove(active, voter._replace(directory=NO_DIRECTORY)) == Error.INVALID_REQUEST.value
    assert cluster.add(active, voter) == Error.DUPLICATE_VOTER.value
    assert cluster.add(active, voter._replace(directory=WIPED)) == Error.DUPLICATE_VOTER.value
    assert cluster.remove(active, new) == Error.VOTER_NOT_FOUND.value
    assert cluster.remove(active, voter._replace(directory=WIPED)) == Error.VOTER_NOT_FOUND.value
    assert cluster.remove(active, ReplicaKey(BrokerId(999), WIPED)) == Error.VOTER_NOT_FOUND.value
    nobody = ReplicaKey(BrokerId(999), WIPED)
    assert cluster.add(active, nobody) == Error.REQUEST_TIMED_OUT.value, "nobody answers there"
    assert cluster.add(active, new._replace(directory=WIPED)) == Error.REQUEST_TIMED_OUT.value, "it has not caught up"
    assert cluster.add(active, new) == 0
    assert cluster.add(active, new) == Error.DUPLICATE_VOTER.value, "once more"
    cluster.until(lambda: cluster.all_know(*ALL))


def test_the_voters_of_settings_are_not_changed() -> None:
    cluster = ThreeControllers()
    active = cluster.elect()
    named = {"voter_id": 104, "voter_directory_id": WIPED, "timeout_ms": 1_000}
    listeners = [Message(name="CONTROLLER", host="127.0.0.1", port=104)]
    peer = SimulatedPeer(cluster, active, 900)
    added = peer.call("AddRaftVoter", 1, cluster_id=None, listeners=listeners, **named)
    assert added.error_code == Error.UNSUPPORTED_VERSION.value
    removed = peer.call("RemoveRaftVoter", 0, cluster_id=None, voter_id=102, voter_directory_id=WIPED)
    assert removed.error_code == Error.UNSUPPORTED_VERSION.value


def test_two_changes_at_once_are_one_and_a_refusal() -> None:
    cluster = ChangingControllers()
    active, late = cluster.elect(), cluster.nodes[LATE]
    cluster.until(lambda: cluster.all_know(*FIRST))
    other = cluster.others(active)[0]
    added, removed = cluster.ask_to_add(active, key_of(late)), cluster.ask_to_remove(active, key_of(other))
    assert sorted([cluster.told(added), cluster.told(removed)]) == [0, Error.REQUEST_TIMED_OUT.value]


def test_a_change_that_no_majority_has_times_out_and_may_come_about() -> None:
    cluster = ChangingControllers()
    active = cluster.elect()
    cluster.until(lambda: cluster.all_know(*FIRST))
    voters = [node for node in cluster.others(active) if node.node_id != LATE]
    for node in voters:
        node.pause()
    assert cluster.remove(active, key_of(voters[0])) == Error.REQUEST_TIMED_OUT.value
    for node in voters:
        node.go_on()
    cluster.until(cluster.same_logs)
    assert cluster.voters(voters[1]) in ([101, 102, 103], sorted((active.node_id, voters[1].node_id)))


def test_a_wiped_one_is_removed_and_added_anew() -> None:
    cluster = ChangingControllers()
    active = cluster.elect()
    cluster.until(lambda: cluster.all_know(*FIRST))
    lost = next(node for node in cluster.others(active) if node.node_id != LATE)
    before = key_of(lost)
    lost.kill()
    lost.disk = SimulatedDisk(now_ms=lambda: lost.now().timestamp)
    lost.start()
    cluster.until(lambda: cluster.all_know(*FIRST))
    assert key_of(lost) != before
    assert lost.core.voter.state.role == VoterRole.FOLLOWER, "another replica, which does not vote"
    assert cluster.add(active, key_of(lost)) == Error.DUPLICATE_VOTER.value
    assert cluster.remove(active, before) == 0
    assert cluster.add(active, key_of(lost)) == 0
    cluster.until(lambda: cluster.all_know(*FIRST))


def test_a_snapshot_tells_the_voters_and_a_start_finds_them() -> None:
    cluster = ChangingControllers(metadata_log_max_record_bytes_between_snapshots="4000")
    active, late = cluster.elect(), cluster.nodes[LATE]
    cluster.until(lambda: cluster.all_know(*FIRST))
    assert cluster.add(active, key_of(late)) == 0
    removed = next(node for node in cluster.others(active) if node is not late)
    assert cluster.remove(active, key_of(removed)) == 0
    removed.kill()
    broker = SimulatedPeer(cluster, active).join()
    for number in range(12):
        broker.create_topic(f"t{number}", 3)
    cluster.until(lambda: active.core.log.log.start_offset > 0)
    rest = [one for one in ALL if one != removed.node_id]
    removed.start()
    cluster.until(lambda: cluster.all_know(*rest))
    assert removed.core.log.snapshot == active.core.log.snapshot
    for node in cluster.nodes.values():
        node.kill(Survives.NOTHING)
    for node in cluster.nodes.values():
        node.start()
    assert all(cluster.voters(node) == rest for node in cluster.nodes.values()), "from the snapshot"
    cluster.until(lambda: cluster.all_know(*rest))
    assert len(cluster.elect().core.image.topics) == 12


def test_one_controller_becomes_three() -> None:
    cluster = ChangingControllers(first=(101,))
    active = cluster.elect()
    assert active.node_id == 101
    for number in (1, 2):
        cluster.until(partial(cluster.all_know, *FIRST[:number]))
        assert cluster.add(active, key_of(cluster.nodes[FIRST[number]])) == 0
    cluster.until(lambda: cluster.all_know(*FIRST))
    active.kill()
    cluster.until_another_than(active)


@pytest.mark.parametrize("survives", [None, *Survives])
@pytest.mark.parametrize("seed", range(4))
def test_the_active_one_is_killed_amid_a_change(seed: int, survives: Survives | None) -> None:
    cluster = ChangingControllers(seed)
    names = []
    for turn in range(3):
        active = cluster.elect()
        peer = SimulatedPeer(cluster, active, turn + 1)
        peer.join(turn + 1)
        names.append(f"t{turn}")
        assert peer.create_topic(names[-1]).error_code == 0
        late = cluster.nodes[LATE]
        if LATE in cluster.voters(active):
            answers = cluster.ask_to_remove(active, key_of(late))
        else:
            answers = cluster.ask_to_add(active, key_of(late))
        cluster.pass_time(cluster.random.randrange(8))
        is_done = bool(answers) and answers[0] is not None and answers[0].error_code == 0
        wanted = cluster.voters(active)
        active.kill() if survives is None else active.kill(survives)
        cluster.until_another_than(active)
        now = cluster.elect()
        assert set(names) <= set(now.core.image.topics)
        if is_done:
            assert cluster.voters(now) == wanted, "what was acknowledged stays"
        active.start()
        cluster.until(cluster.same_logs)
        assert len({tuple(cluster.voters(node)) for node in cluster.nodes.values()}) == 1


def test_the_quorum_is_described_with_directories() -> None:
    cluster = ChangingControllers()
    active = cluster.elect()
    cluster.until(lambda: cluster.all_know(*FIRST))
    cluster.pass_time(1_000)
    asked = [Message(topic_name="__cluster_metadata", partitions=[Message(partition_index=0)])]
    answer = cluster.peer(active).call("DescribeQuorum", 2, topics=asked)
    (told,) = answer.topics[0].partitions
    named = [(one.replica_id, bytes(one.replica_directory_id)) for one in told.current_voters]
    assert named == [(one, one.to_bytes(16, "big")) for one in FIRST]
    assert [(one.replica_id, bytes(one.replica_directory_id)) for one in told.observers] == [
        (LATE, key_of(cluster.nodes[LATE]).directory)
    ]
    assert [(node.node_id, node.listeners[0].port) for node in answer.nodes] == [(one, one) for one in FIRST]
    versions = cluster.peer(active).call("ApiVersions", 4, client_software_name="a", client_software_version="1")
    assert ("kraft.version", 1) in [(one.name, one.max_version_level) for one in versions.finalized_features]


def test_a_voter_that_moves_is_told() -> None:
    cluster = ChangingControllers()
    active = cluster.elect()
    cluster.until(lambda: cluster.all_know(*FIRST))
    voter = key_of(cluster.others(active)[0])
    listeners = [Message(name="CONTROLLER", host="elsewhere", port=9), Message(name="OTHER", host="h", port=1)]
    named = {"voter_id": voter.id, "voter_directory_id": voter.directory}
    fields = {"cluster_id": None, "current_leader_epoch": active.core.voter.epoch, "listeners": listeners}
    versions = Message(min_supported_version=0, max_supported_version=1)
    answer = cluster.peer(active).call("UpdateRaftVoter", 0, **fields, **named, k_raft_version_feature=versions)
    assert (answer.error_code, answer.current_leader.leader_id) == (0, active.node_id)
    assert [at.host for at in active.core.voter.voters[voter]] == ["elsewhere", "h"]
    named["voter_directory_id"] = WIPED
    answer = cluster.peer(active).call("UpdateRaftVoter", 0, **fields, **named, k_raft_version_feature=versions)
    assert answer.error_code in (Error.VOTER_NOT_FOUND.value, Error.REQUEST_TIMED_OUT.value)


def test_an_update_names_the_versions_of_the_voter() -> None:
    cluster = ChangingControllers()
    active = cluster.elect()
    cluster.until(lambda: cluster.all_know(*FIRST))
    voter = key_of(cluster.others(active)[0])
    named = {"voter_id": voter.id, "voter_directory_id": voter.directory, "cluster_id": None}
    about = {"current_leader_epoch": active.core.voter.epoch, "listeners": [Message(name="CONTROLLER", host="h", port=1)]}
    for lowest, highest, error in ((0, 0, Error.INVALID_REQUEST), (2, 3, Error.INVALID_REQUEST), (1, 1, Error.NONE)):
        versions = Message(min_supported_version=lowest, max_supported_version=highest)
        answer = cluster.peer(active).call("UpdateRaftVoter", 0, **named, **about, k_raft_version_feature=versions)
        assert answer.error_code == error.value


def test_a_voter_that_is_reached_elsewhere_says_so() -> None:
    cluster = ChangingControllers()
    active = cluster.elect()
    cluster.until(lambda: cluster.all_know(*FIRST))
    moved = cluster.others(active)[0]
    elsewhere = (Endpoint("CONTROLLER", "127.0.0.1", 7_000),)
    moved.core.voter.own = elsewhere
    cluster.pass_time(6_000)
    told = [node.core.voter.voters[key_of(moved)] for node in cluster.nodes.values() if node.up]
    assert told == [elsewhere] * len(told)
    assert not moved.core.voter.server.has_moved
    end = moved.core.log.end_offset
    cluster.pass_time(6_000)
    assert moved.core.log.end_offset == end, "it says so once"


def test_a_controller_that_is_to_join_votes_by_itself() -> None:
    cluster = ChangingControllers(controller_quorum_auto_join_enable="true")
    active = cluster.elect()
    cluster.until(lambda: cluster.all_know(*FIRST, LATE))
    late = cluster.nodes[LATE]
    assert cluster.remove(active, key_of(late)) == Error.NONE.value
    cluster.until(lambda: cluster.all_know(*FIRST))
    cluster.until(lambda: cluster.all_know(*FIRST, LATE))  # it comes back (KAFKA-19850)


def test_a_controller_with_an_empty_disk_takes_its_old_place_by_itself() -> None:
    cluster = ChangingControllers(controller_quorum_auto_join_enable="true")
    active = cluster.elect()
    cluster.until(lambda: cluster.all_know(*FIRST, LATE))
    lost = cluster.others(active)[0]
    before = key_of(lost)
    lost.kill()
    lost.disk = SimulatedDisk()
    lost.start()
    cluster.until(lambda: key_of(lost) in active.core.voter.voters)
    assert before not in active.core.voter.voters
    assert cluster.voters(active) == [*FIRST, LATE]


@pytest.mark.parametrize("release", ["4.1", "4.2"])
def test_nobody_joins_by_itself_before_4_2(release: str) -> None:
    cluster = ChangingControllers(release=release, controller_quorum_auto_join_enable="true")
    active = cluster.elect()
    cluster.pass_time(10_000)
    assert (LATE in cluster.voters(active)) is (release == "4.2")


@pytest.mark.parametrize(("release", "quorum"), [("3.6", "2.8"), ("3.7", "3.7"), ("4.2", "4.2"), ("4.4", "4.2")])
def test_a_controller_votes_by_the_rules_of_its_release(release: str, quorum: str) -> None:
    """The quorum has changed in releases that have changed nothing else of the controller."""
    rules = rules_of(release, None)
    assert rules.quorum.name == quorum
    assert rules_of(release, "votes-again").quorum.name == f"{quorum} with votes-again"


def test_a_new_voter_is_asked_for_its_versions_by_a_name_that_kafka_takes() -> None:
    """Kafka answers INVALID_REQUEST, and no features, to whoever names no software."""
    cluster = ChangingControllers()
    voter = cluster.elect().core.voter
    asked = VoterChanges(voter._take).ask_for_versions(lambda: voter.state, voter.key, level_of(1))
    assert asked.message.client_software_name
    assert asked.message.client_software_version
