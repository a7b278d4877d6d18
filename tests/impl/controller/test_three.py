"""Three controllers: elections, what is answered when, what a controller that leads no more drops."""

import json
from random import Random

import pytest

from kspec.impl.controller.quorum.voter_sets import KnownVoterSets
from kspec.impl.metadata.election_file import QUORUM_STATE, read_election, write_election
from kspec.impl.metadata.files import FOLDER
from kspec.impl.metadata.voters import Endpoint
from kspec.impl.storage import StorageError
from kspec.impl.wire.values import Message
from kspec.spec.quorum.replica import ElectionState
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.values import BrokerId, DirectoryId, Epoch, Error, ReplicaKey
from kspec.trials.simulated.disk import SimulatedDisk, Survives
from kspec.trials.simulated.nodes import ControllerNode
from tests.impl.controller.three import SimulatedPeer, ThreeControllers

RELEASES = ("3.8", "3.9", "4.0", "4.4", "next")


@pytest.mark.parametrize("release", RELEASES)
def test_one_is_elected_and_all_learn_what_it_decides(release: str) -> None:
    cluster = ThreeControllers(release=release)
    active = cluster.elect()
    broker = SimulatedPeer(cluster, active)
    broker.join()
    assert broker.create_topic("t", 3).error_code == 0
    cluster.until(cluster.same_logs)
    for node in cluster.nodes.values():
        assert list(node.core.image.topics) == ["t"]
        assert node.core.voter.leader == active.node_id
        assert node.core.is_active is (node is active)
        stored = json.loads(node.disk.read_file(f"/sim/{node.node_id}/{FOLDER}/{QUORUM_STATE}"))
        assert (stored["leaderId"], stored["leaderEpoch"]) == (active.node_id, active.core.voter.epoch)


def test_who_is_not_active_refuses_in_the_form_of_each_api() -> None:
    cluster = ThreeControllers()
    standby = cluster.others(cluster.elect())[0]
    broker = SimulatedPeer(cluster, standby)
    code = Error.NOT_CONTROLLER.value
    assert broker.register().error_code == code
    assert broker.heartbeat().error_code == code
    assert broker.create_topic("t").error_code == code
    by_name = {"topics": [Message(name="t")], "timeout_ms": 1}
    assert broker.call("DeleteTopics", 6, **by_name).responses[0].error_code == code
    assert broker.call("Envelope", 0, request_data=b"", client_host_address=b"").error_code == code
    assert broker.call("AlterPartition", 3, broker_id=1, broker_epoch=1, topics=[]).error_code == code
    changed = Message(resource_type=2, resource_name="t", configs=[])
    answer = broker.call("IncrementalAlterConfigs", 1, resources=[changed], validate_only=False)
    assert (answer.responses[0].error_code, answer.responses[0].resource_name) == (code, "t")
    wanted = [Message(name="t", count=2, assignments=None)]
    assert broker.call("CreatePartitions", 3, topics=wanted, timeout_ms=1, validate_only=False).results[0].error_code == code
    asked = [Message(topic_name="__cluster_metadata", partitions=[Message(partition_index=0)])]
    (told,) = broker.call("DescribeQuorum", 2, topics=asked).topics[0].partitions
    assert told.error_code == Error.NOT_LEADER_OR_FOLLOWER.value
    assert broker.call("ApiVersions", 4, client_software_name="a", client_software_version="1").error_code == 0


def test_a_fetch_from_a_standby_says_who_leads() -> None:
    cluster = ThreeControllers()
    active = cluster.elect()
    standby = cluster.others(active)[0]
    cluster.until(lambda: standby.core.voter.leader == active.node_id)
    part = SimulatedPeer(cluster, standby).fetch_metadata(epoch=active.core.voter.epoch)
    assert (part.error_code, part.current_leader.leader_id) == (Error.NOT_LEADER_OR_FOLLOWER.value, active.node_id)


def test_the_quorum_is_described_by_its_leader() -> None:
    cluster = ThreeControllers()
    active = cluster.elect()
    broker = SimulatedPeer(cluster, active)
    broker.join()
    broker.fetch_metadata(epoch=active.core.voter.epoch)
    cluster.until(cluster.same_logs)
    cluster.pass_time(1_000)
    asked = [Message(topic_name="__cluster_metadata", partitions=[Message(partition_index=0)])]
    answer = broker.call("DescribeQuorum", 2, topics=asked)
    (told,) = answer.topics[0].partitions
    end = active.core.log.end_offset
    assert (told.leader_id, told.leader_epoch, told.high_watermark) == (active.node_id, active.core.voter.epoch, end)
    assert [(one.replica_id, one.log_end_offset) for one in told.current_voters] == [(101, end), (102, end), (103, end)]
    assert [one.replica_id for one in told.observers] == [1]
    assert [node.node_id for node in answer.nodes] == [101, 102, 103]


def test_nothing_is_answered_that_a_majority_does_not_have() -> None:
    cluster = ThreeControllers()
    active = cluster.elect()
    broker = SimulatedPeer(cluster, active)
    broker.join()
    cluster.until(cluster.same_logs)
    cluster.cut_off(active)
    wanted = Message(name="lost", num_partitions=1, replication_factor=1, assignments=[], configs=[])
    answers = broker.send("CreateTopics", topics=[wanted], timeout_ms=5000)
    reads = broker.send(
        "DescribeConfigs", resources=[Message(resource_type=2, resource_name="lost", configuration_keys=None)]
    )
    cluster.pass_time(1_000)
    assert not answers
    assert list(active.core.image.topics) == ["lost"], "it decides on with what it has decided"
    cluster.until(lambda: answers)
    assert answers[0] is not None
    assert answers[0].topics[0].error_code == Error.NOT_CONTROLLER.value
    assert active.core.voter.state.role != VoterRole.LEADER, "it has heard of no majority, and resigned"
    assert list(active.core.image.topics) == []
    cluster.until(lambda: reads)
    assert reads[0] is not None
    assert reads[0].results[0].error_code == Error.NOT_CONTROLLER.value, "it rests on what was not committed"
    other = cluster.elect()
    assert other is not active
    second = SimulatedPeer(cluster, other, 2)
    second.join(2)
    second.create_topic("kept")
    cluster.mend()
    cluster.until(cluster.same_logs)
    assert list(active.core.image.topics) == ["kept"]


@pytest.mark.parametrize("survives", list(Survives))
@pytest.mark.parametrize("seed", range(3))
def test_what_was_answered_outlives_the_active_controller(seed: int, survives: Survives) -> None:
    cluster = ThreeControllers(seed)
    names = []
    for turn in range(4):
        active = cluster.elect()
        broker = SimulatedPeer(cluster, active, turn + 1)
        broker.join(turn + 1)
        for number in range(3):
            names.append(f"t{turn}-{number}")
            assert broker.create_topic(names[-1]).error_code == 0
        active.kill(survives)
        assert cluster.until_another_than(active) < 6_000
        assert set(names) <= set(cluster.elect().core.image.topics)
        active.start()
    cluster.until(cluster.same_logs)
    assert set(cluster.elect().core.image.topics) == set(names)


def test_a_standby_that_starts_again_goes_on_from_its_disk() -> None:
    cluster = ThreeControllers()
    active = cluster.elect()
    SimulatedPeer(cluster, active).join().create_topic("t")
    cluster.until(cluster.same_logs)
    standby = cluster.others(active)[0]
    standby.kill(Survives.NOTHING)
    standby.start()
    assert standby.core.log.end_offset == active.core.log.end_offset, "what it acknowledged was flushed"
    assert list(standby.core.image.topics) == [], "it does not know yet what is committed"
    cluster.until(cluster.same_logs)
    assert cluster.active() is active


def test_a_snapshot_takes_the_place_of_the_log_of_who_is_far_behind() -> None:
    cluster = ThreeControllers(metadata_log_max_record_bytes_between_snapshots="4000")
    active = cluster.elect()
    broker = SimulatedPeer(cluster, active)
    broker.join()
    late = cluster.others(active)[0]
    late.kill()
    for number in range(12):
        broker.create_topic(f"t{number}", 3)
    cluster.until(lambda: active.core.log.log.start_offset > 0)
    late.start()
    cluster.until(cluster.same_logs)
    assert late.core.log.snapshot == active.core.log.snapshot
    assert late.core.voter.state.snapshot == active.core.log.snapshot
    active.kill()
    cluster.until_another_than(active)
    assert len(cluster.elect().core.image.topics) == 12
    for node in cluster.nodes.values():
        node.kill()
        node.start()
    assert len(cluster.elect().core.image.topics) == 12


def test_a_leader_that_stops_says_so() -> None:
    cluster = ThreeControllers()
    active = cluster.elect()
    cluster.until(cluster.same_logs)
    active.run(lambda: active.shell.carry_out(active.core.voter.resign(active.now())))
    assert cluster.until_another_than(active) < 500, "nobody waits for a fetch to be over"


def test_a_voter_that_meets_what_cannot_be_stops() -> None:
    cluster = ThreeControllers()
    active = cluster.elect()
    epoch = active.core.voter.epoch
    broker = SimulatedPeer(cluster, active)
    part = Message(partition_index=0, leader_id=cluster.others(active)[0].node_id, leader_epoch=epoch)
    topics = [Message(topic_name="__cluster_metadata", partitions=[part])]
    broker.send("BeginQuorumEpoch", voter_id=active.node_id, topics=topics, leader_endpoints=[])
    cluster.until(lambda: not active.up)


def test_a_request_of_another_cluster_or_about_another_log_is_refused() -> None:
    cluster = ThreeControllers()
    active = cluster.elect()
    broker = SimulatedPeer(cluster, active)
    part = Message(partition_index=0, replica_epoch=9, replica_id=7, last_offset_epoch=1, last_offset=5)
    topics = [Message(topic_name="__cluster_metadata", partitions=[part])]
    asked = Message(cluster_id="another", voter_id=-1, topics=topics)
    answers = broker.send("Vote", **asked.__dict__)
    cluster.until(lambda: answers)
    assert answers[0] is not None
    assert answers[0].error_code == Error.INCONSISTENT_CLUSTER_ID.value
    others = [Message(topic_name="another", partitions=[part])]
    answers = broker.send("Vote", cluster_id=None, voter_id=-1, topics=others)
    cluster.until(lambda: answers)
    assert answers[0] is not None
    assert answers[0].error_code == Error.INVALID_REQUEST.value
    assert cluster.active() is active


def test_the_stored_election_is_in_kafkas_form() -> None:
    """As written by Apache Kafka 4.4.0 with `kraft.version` 0."""
    disk = SimulatedDisk()
    disk.make_folder("/log")
    text = (
        '{"clusterId":"","leaderId":-1,"leaderEpoch":7,"votedId":102,"appliedOffset":0,'
        '"currentVoters":[{"voterId":101},{"voterId":102}],"data_version":0}'
    )
    assert read_election(disk, "/log") == ElectionState()
    disk.write_file(f"/log/{QUORUM_STATE}", text.encode())
    assert read_election(disk, "/log") == ElectionState(Epoch(7), BrokerId(-1), ReplicaKey(BrokerId(102)))
    for damaged in ("", "{}", "[]", '{"leaderEpoch":"x"}', "\x00" * 20):
        disk.write_file(f"/log/{QUORUM_STATE}", damaged.encode())
        with pytest.raises(StorageError, match="quorum-state is damaged"):
            read_election(disk, "/log")


@pytest.mark.parametrize(
    "wrong",
    [
        {"leaderEpoch": 2**31},
        {"leaderEpoch": -1},
        {"leaderEpoch": True},
        {"leaderId": 1.5},
        {"votedId": 2**40},
        {"votedDirectoryId": "AAA"},
        {"votedDirectoryId": 3},
        {"data_version": 2},
        {"data_version": None},
        {"data_version": True},
    ],
    ids=str,
)
def test_a_stored_election_is_damaged_if_one_field_is_none_of_its_kind(wrong: dict[str, object]) -> None:
    disk = SimulatedDisk()
    disk.make_folder("/log")
    write_election(disk, "/log", ElectionState(Epoch(7), BrokerId(2), ReplicaKey(BrokerId(2), DirectoryId(b"d" * 16))), None)
    assert read_election(disk, "/log").leader == 2
    fields = json.loads(disk.read_file(f"/log/{QUORUM_STATE}"))
    disk.write_file(f"/log/{QUORUM_STATE}", json.dumps(fields | wrong).encode())
    with pytest.raises(StorageError, match="quorum-state is damaged"):
        read_election(disk, "/log")


def test_who_refuses_all_is_logged_once_and_tells_no_address(caplog: pytest.LogCaptureFixture) -> None:
    """A node of another cluster, say."""
    known, state = KnownVoterSets({}), ThreeControllers().elect().core.voter.state
    told = {"node_endpoints": [Message(node_id=9, host="h", port=1)]}
    refusal = Message(error_code=Error.INCONSISTENT_CLUSTER_ID.value, **told)
    for answer in (refusal, refusal, None):
        known.hear_from(9, answer)
    words = ["node 9 refuses what this controller asks: INCONSISTENT_CLUSTER_ID"]
    assert [one.getMessage() for one in caplog.records if "refuses" in one.getMessage()] == words
    assert known.place_of(state, 9) is None
    known.hear_from(9, Message(error_code=0, **told))
    assert known.place_of(state, 9) == Endpoint("", "h", 1)
    known.hear_from(9, refusal)
    assert [one.getMessage() for one in caplog.records if "refuses" in one.getMessage()] == words * 2


# ---- whatever happens

TURNS, LONG_MS = 8, 6_000


class Misfortune:
    """Faults of one seed, while topics are created."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"misfortune {seed}")
        small = {"metadata_log_max_record_bytes_between_snapshots": "6000"} if self.random.random() < 0.3 else {}
        release = self.random.choice(("next", "next", "next", "4.4", "3.9"))
        stragglers = self.random.choice((0.0, 1.0))
        self.cluster = ThreeControllers(seed, release, stragglers, **small)
        self.acknowledged: set[str] = set()

    def run(self) -> None:
        """Take turns, heal, and see that what was acknowledged is there."""
        cluster = self.cluster
        for turn in range(TURNS):
            active = cluster.elect()
            self._create(active, turn)
            for node in self.random.sample(list(cluster.nodes.values()), self.random.choice((1, 1, 1, 2))):
                self._strike(node if self.random.random() < 0.5 else active)
            cluster.pass_time(self.random.randrange(LONG_MS))
            self._heal()
        cluster.until(cluster.same_logs)
        assert self.acknowledged <= set(cluster.elect().core.image.topics)

    def _create(self, active: ControllerNode, turn: int) -> None:
        """Create topics; the last one may have no answer when the fault comes."""
        peer = SimulatedPeer(self.cluster, active, turn + 1)
        if peer.register(turn + 1).error_code or peer.heartbeat().error_code:
            return
        for number in range(self.random.randint(1, 4)):
            name = f"t{turn}-{number}"
            if peer.create_topic(name, 2).error_code == 0:
                self.acknowledged.add(name)
        wanted = Message(name=f"t{turn}-last", num_partitions=1, replication_factor=1, assignments=[], configs=[])
        peer.send("CreateTopics", topics=[wanted], timeout_ms=5000)
        self.cluster.pass_time(self.random.randrange(20))

    def _strike(self, node: ControllerNode) -> None:
        if not node.up:
            return
        match self.random.choice(("kill", "power", "cut", "pause", "resign")):
            case "kill":
                node.kill()
            case "power":
                node.kill(self.random.choice(list(Survives)))
            case "cut":
                self.cluster.cut_off(node)
            case "pause":
                node.pause()
            case _:
                node.run(lambda: node.shell.carry_out(node.core.voter.resign(node.now())))

    def _heal(self) -> None:
        self.cluster.mend()
        for node in self.cluster.nodes.values():
            if node.up:
                node.go_on()
            else:
                node.start()


@pytest.mark.parametrize("seed", range(6))
def test_nothing_acknowledged_is_lost(seed: int) -> None:
    Misfortune(seed).run()


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(100, 600, 50))
def test_nothing_acknowledged_is_lost_with_many_seeds(first: int) -> None:
    for seed in range(first, first + 50):
        Misfortune(seed).run()
