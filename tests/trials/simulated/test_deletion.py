"""DeleteRecords in a cluster: the client is answered once no live follower has the records any more.

In few seeds records are deleted all the time, by a client and by size; all properties hold there.
"""

from collections.abc import Callable

import pytest

from kspec.impl.broker.calls import Ask, ChannelKey
from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from kspec.spec.broker.leader.deletion import answer_deletion
from kspec.spec.controller.protocol import Controller
from kspec.spec.log.producers import ProducerBatch
from kspec.spec.messages.delete_records import TO_HIGH_WATERMARK, DeleteRecordsResponse
from kspec.spec.messages.produce import ACKS_ALL
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.values import Error, Offset, PartitionId
from kspec.trials.simulated.checks.steps import StepChecks
from kspec.trials.simulated.clients.client import ClientEndpoint, nothing
from kspec.trials.simulated.cluster import SimulatedCluster
from kspec.trials.simulated.history import BrokenPromiseError, Value
from kspec.trials.simulated.ids import TOPIC
from kspec.trials.simulated.nodes import BrokerNode
from kspec.trials.simulated.plan import DELETES_EVERY, RunConditions, conditions_of
from kspec.trials.simulated.runs import run
from kspec.trials.simulated.setup import RunSetup
from tests.limits.marks import marked
from tests.limits.turns import Turns
from tests.trials.oracle.listening import OracledCluster
from tests.trials.simulated.hunting import setup_of_next

BROKERS = (1, 2, 3)
SEEDS = tuple(seed for seed in range(1, 60) if conditions_of(seed).deletes)


def ready() -> SimulatedCluster:
    conditions = RunConditions(partitions=1, max_lag=10_000)
    setup = RunSetup(1, dict.fromkeys(BROKERS, BROKER_NEXT), Controller(KRAFT_NEXT), conditions=conditions)
    cluster = SimulatedCluster(setup)
    cluster.run(500)
    return cluster


def asked(cluster: SimulatedCluster, offset: int, timeout_ms: int, partition: int = 0) -> list[Message]:
    """The answers to come."""
    found: list[Message] = []
    topic = Message(name=TOPIC, partitions=[Message(partition_index=partition, offset=offset)])
    message = Message(topics=[topic], timeout_ms=timeout_ms)
    channel = ChannelKey(cluster.leader_of(0), "admin")

    def take(answer: Message | None) -> None:
        assert answer is not None
        found.append(answer.topics[0].partitions[0])

    cluster.network.ask(ClientEndpoint(999), Ask(channel, "DeleteRecords", message, nothing), take)
    return found


def go_on(cluster: SimulatedCluster, for_ms: int) -> None:
    end_ms = cluster.clock.now_ms + for_ms
    turns = Turns()
    while cluster.clock.now_ms < end_ms:
        turns.go()
        cluster.clock.next_event()


def followers(cluster: SimulatedCluster) -> list[int]:
    return [node for node in BROKERS if node != cluster.leader_of(0)]


def test_the_answer_comes_when_followers_have_deleted() -> None:
    cluster = ready()
    found = asked(cluster, 3, 5_000)
    go_on(cluster, 20)
    assert not found
    go_on(cluster, 1_500)
    (answer,) = found
    assert (answer.error_code, answer.low_watermark) == (0, 3)
    starts = [
        node.core.replicas[place].partition.local.log.start_offset
        for node in cluster.brokers.values()
        for place in node.core.replicas
    ]
    assert starts == [3, 3, 3]


def test_a_follower_that_stands_still_is_waited_for_as_long_as_the_client_said() -> None:
    cluster = ready()
    cluster.brokers[followers(cluster)[0]].pause()
    found = asked(cluster, 3, 1_000)
    go_on(cluster, 900)
    assert not found
    go_on(cluster, 300)
    (answer,) = found
    assert (Error(answer.error_code), answer.low_watermark) == (Error.REQUEST_TIMED_OUT, 0)


def test_a_dead_follower_is_not_waited_for() -> None:
    """It is fenced, and then only live ones count."""
    cluster = ready()
    gone = cluster.brokers[followers(cluster)[0]]
    gone.pause()
    go_on(cluster, 6_000)
    found = asked(cluster, 3, 5_000)
    go_on(cluster, 1_500)
    (answer,) = found
    assert (answer.error_code, answer.low_watermark) == (0, 3)


def test_what_cannot_be_deleted_is_refused_at_once() -> None:
    cluster = ready()
    (beyond, unknown) = (asked(cluster, 10_000_000, 5_000), asked(cluster, 3, 5_000, partition=7))
    go_on(cluster, 20)
    assert Error(beyond[0].error_code) == Error.OFFSET_OUT_OF_RANGE
    assert Error(unknown[0].error_code) == Error.UNKNOWN_TOPIC_OR_PARTITION


# ---- a retry of a batch that is deleted


def last_batch(cluster: SimulatedCluster) -> ProducerBatch:
    """The last batch that the leader remembers."""
    (replica,) = cluster.brokers[cluster.leader_of(0)].core.replicas.values()
    return max((entry.batches[-1] for entry in replica.partition.producers), key=lambda one: one.base_offset)


def send(cluster: SimulatedCluster, batch: ProducerBatch) -> Offset:
    """Send a batch, and return the offset that the leader says it has."""
    found: list[Message] = []
    (replica,) = cluster.brokers[cluster.leader_of(0)].core.replicas.values()
    records = new_batch(
        [(cluster.clock.now_ms, None, Value(batch.producer_id, 0).to_bytes())] * batch.record_count,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.first_sequence,
    )
    topic = Message(name=TOPIC, topic_id=replica.topic_id, partition_data=[Message(index=0, records=records)])
    message = Message(transactional_id=None, acks=ACKS_ALL, timeout_ms=5_000, topic_data=[topic])

    def take(answer: Message | None) -> None:
        assert answer is not None
        found.append(answer.responses[0].partition_responses[0])

    channel = ChannelKey(cluster.leader_of(0), "producer")
    cluster.network.ask(ClientEndpoint(998), Ask(channel, "Produce", message, nothing), take)
    go_on(cluster, 2_000)
    (answer,) = found
    assert answer.error_code == 0
    return Offset(answer.base_offset)


def restart_all(cluster: SimulatedCluster, end: Callable[[BrokerNode], None]) -> None:
    """Restart all brokers, one after the other. Each ends in this way, and is started as all that are down after faults."""
    for node in cluster.brokers.values():
        before = node.incarnation
        end(node)
        go_on(cluster, 10_000)
        assert node.incarnation > before
        assert cluster.all_in_sync()


ENDS = pytest.mark.parametrize("end", [BrokerNode.kill, BrokerNode.stop])


def test_a_retry_of_a_deleted_batch_is_no_new_record_while_the_leader_runs() -> None:
    """Producers are remembered longer than their records (KAFKA-7190)."""
    cluster = ready()
    sent = last_batch(cluster)
    asked(cluster, TO_HIGH_WATERMARK, 5_000)
    go_on(cluster, 1_500)
    assert send(cluster, sent) == sent.base_offset


@ENDS
def test_a_retry_is_no_new_record_after_a_restart_either(end: Callable[[BrokerNode], None]) -> None:
    cluster = ready()
    sent = last_batch(cluster)
    restart_all(cluster, end)
    assert send(cluster, sent) == sent.base_offset


@ENDS
def test_a_retry_of_a_deleted_batch_is_appended_again_after_a_restart(end: Callable[[BrokerNode], None]) -> None:
    """The state of producers is made anew from the log start on, and an unknown producer may begin anywhere (KIP-360).

    So does Apache Kafka, see docs/findings/README.md: `UnifiedLog.rebuildProducerState`, `ProducerStateManager.
    truncateAndReload`, which deletes snapshots up to the log start, and `ProducerAppendInfo.checkSequence`.
    """
    cluster = ready()
    sent = last_batch(cluster)
    asked(cluster, TO_HIGH_WATERMARK, 5_000)
    go_on(cluster, 1_500)
    restart_all(cluster, end)
    assert send(cluster, sent) > sent.last_offset


# ---- whether the check sees a deletion that is not done


def look_at_answer(cluster: SimulatedCluster, offset: int) -> None:
    """Let the checks look at an answer of the leader that all records before an offset are deleted."""
    core = cluster.brokers[cluster.leader_of(0)].core
    (replica,) = core.replicas.values()
    checks = StepChecks(cluster.controller, cluster.brokers, keeps=True)
    told = DeleteRecordsResponse(Error.NONE, Offset(offset), Offset(offset))
    checks.look_at(answer_deletion, core.broker(replica), replica.partition, (told,), told)


def test_a_follower_that_still_has_the_records_is_seen_whatever_its_number_of_the_partition() -> None:
    """Each node numbers partitions by its own image of the metadata, and a snapshot has them in another order."""
    cluster = ready()
    look_at_answer(cluster, 0)
    for number in (0, 7):
        for node in followers(cluster):
            (replica,) = cluster.brokers[node].core.replicas.values()
            replica.partition = replica.partition._replace(partition_id=PartitionId(number))
        with pytest.raises(BrokenPromiseError, match="LowWatermark"):
            look_at_answer(cluster, 3)


# ---- seeds in which records are deleted all the time


def test_records_are_deleted_in_one_of_six_seeds() -> None:
    assert len(SEEDS) == 60 // DELETES_EVERY


def test_logs_start_late() -> None:
    cluster = OracledCluster(setup_of_next(11))
    cluster.run(2_000)
    starts = [
        replica.partition.local.log.start_offset
        for node in cluster.brokers.values()
        for replica in node.core.replicas.values()
    ]
    assert min(starts) > 0
    assert cluster.oracles.asked["DeleteAsAsked"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", marked(SEEDS, nightly=SEEDS[4:]))
def test_all_properties_hold(seed: int) -> None:
    assert run(setup_of_next(seed), 3_500).broken is None


@pytest.mark.slow
def test_a_record_is_read_twice_once_its_first_copy_is_deleted() -> None:
    """In seed 35 a consumer reads a record, a client deletes it, all brokers are killed, and the producer sends it again."""
    assert run(setup_of_next(35), 14_500).broken is None


@pytest.mark.slow
def test_partitions_have_other_numbers_on_other_nodes() -> None:
    """In seed 383 a broker reads a snapshot: its partition 0 is another one than its leader's."""
    assert run(setup_of_next(383), 3_000).broken is None
