"""The metadata image, and what a broker makes of several records at once (rules A8, B1, B4, B6)."""

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.spec.metadata import (
    DELETED,
    EMPTY_IMAGE,
    NO_LEADER_CHANGE,
    UNCHANGED,
    BrokerRegistration,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    LeaderRecoveryState,
    LocalChange,
    LocalRole,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    PartitionRegistration,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    broker_of,
    has_leader,
    is_active,
    is_unfenced,
    local_change,
    merge,
    partition_of,
    replay,
    replay_all,
)
from kspec.spec.values import NO_LEADER, BrokerEpoch, BrokerId, Epoch, Incarnation, PartitionEpoch, PartitionId
from tests.spec.controller_driver import ids, order

PARTITION = PartitionId(0)


def partition(leader: int = 1, epoch: int = 5, partition_epoch: int = 7) -> PartitionRegistration:
    return PartitionRegistration(
        order(1, 2, 3), ids(1, 2, 3), BrokerId(leader), Epoch(epoch), PartitionEpoch(partition_epoch)
    )


def change(leader: int = NO_LEADER_CHANGE, isr: frozenset[BrokerId] | None = None) -> PartitionChangeRecord:
    return PartitionChangeRecord(PARTITION, isr=isr, leader=BrokerId(leader))


def broker(number: int, epoch: int = 0, fenced: bool = False) -> BrokerRegistration:
    return BrokerRegistration(BrokerId(number), BrokerEpoch(epoch), Incarnation(1), fenced)


# ---- partitions


@pytest.mark.parametrize(
    ("record", "leader", "leader_epoch"),
    [
        pytest.param(change(isr=ids(1)), 1, 5, id="no leader named"),
        pytest.param(change(leader=1), 1, 6, id="the same leader named"),
        pytest.param(change(leader=2), 2, 6, id="another leader"),
        pytest.param(change(leader=-1), -1, 6, id="no leader any more"),
    ],
)
def test_epochs_of_a_change(record: PartitionChangeRecord, leader: int, leader_epoch: int) -> None:
    merged = merge(partition(), record)
    assert (merged.leader, merged.leader_epoch, merged.partition_epoch) == (leader, leader_epoch, 8)


def test_a_change_replaces_what_it_names_and_keeps_the_rest() -> None:
    full = PartitionChangeRecord(
        PARTITION, ids(2), BrokerId(2), order(2, 1), ids(3), ids(4), LeaderRecoveryState.RECOVERING, ids(1), ids(3)
    )
    changed = merge(partition(), full)
    assert changed == PartitionRegistration(
        order(2, 1), ids(2), BrokerId(2), Epoch(6), PartitionEpoch(8),
        LeaderRecoveryState.RECOVERING, ids(1), ids(3), adding=ids(4), removing=ids(3),
    )  # fmt: skip
    assert merge(changed, change()) == changed._replace(partition_epoch=PartitionEpoch(9))


def test_who_leads() -> None:
    assert has_leader(partition())
    assert not has_leader(partition(leader=NO_LEADER))


# ---- brokers


def test_a_broker_is_registered_changed_and_struck_off() -> None:
    epoch = BrokerEpoch(0)
    image = replay_all(EMPTY_IMAGE, (RegisterBrokerRecord(broker(2)), RegisterBrokerRecord(broker(1, fenced=True))))
    assert [entry.broker for entry in image.brokers] == [1, 2]
    assert [entry.registered_at for entry in image.brokers] == [1, 0]
    assert not is_unfenced(image.brokers, BrokerId(1))
    image = replay(image, BrokerRegistrationChangeRecord(BrokerId(1), epoch, fenced=False))
    assert is_unfenced(image.brokers, BrokerId(1))
    assert is_active(image.brokers, BrokerId(1))
    image = replay(image, BrokerRegistrationChangeRecord(BrokerId(1), epoch, in_controlled_shutdown=True))
    assert is_unfenced(image.brokers, BrokerId(1))
    assert not is_active(image.brokers, BrokerId(1))
    image = replay(image, UnregisterBrokerRecord(BrokerId(1), epoch))
    assert broker_of(image.brokers, BrokerId(1)) is None
    assert not is_unfenced(image.brokers, BrokerId(1))
    assert not is_active(image.brokers, BrokerId(1))
    assert (image.end_offset, len(image.brokers)) == (5, 1)


def test_a_change_touches_only_what_it_names() -> None:
    registered = [
        BrokerRegistration(BrokerId(broker), BrokerEpoch(broker), Incarnation(1), fenced=True) for broker in (1, 2)
    ]
    records = [PartitionRecord(PartitionId(number), partition(epoch=number)) for number in (0, 1)]
    image = replay_all(EMPTY_IMAGE, (*map(RegisterBrokerRecord, registered), *records))
    after = replay(image, change(leader=3))
    assert (after.brokers, after.partitions[1:]) == (image.brokers, image.partitions[1:])
    assert after.partitions[0].registration == merge(partition(epoch=0), change(leader=3)) != partition(epoch=0)
    after = replay(image, BrokerRegistrationChangeRecord(BrokerId(1), BrokerEpoch(1), fenced=False))
    assert (after.brokers[1:], after.partitions) == (image.brokers[1:], image.partitions)
    assert after.brokers[0] == image.brokers[0]._replace(fenced=False) != image.brokers[0]


numbers = st.integers(0, 4).map(PartitionId)
records_of_partitions = st.lists(
    st.one_of(
        st.builds(lambda number, epoch: PartitionRecord(number, partition(epoch=epoch)), numbers, st.integers(0, 9)),
        st.builds(lambda number, leader: change(leader)._replace(partition_id=number), numbers, st.sampled_from([1, 2, -2])),
        st.just(RegisterBrokerRecord(broker(1))),
    ),
    max_size=12,
)


@given(records_of_partitions)
def test_records_together_say_what_they_say_one_after_the_other(records: list[MetadataRecord]) -> None:
    begun = tuple(PartitionRecord(PartitionId(number), partition()) for number in range(5))
    image = replay_all(EMPTY_IMAGE, begun)
    assert image == reduce(replay, begun, EMPTY_IMAGE)
    assert replay_all(image, tuple(records)) == reduce(replay, records, image)


def test_partitions_are_found_by_id() -> None:
    records = tuple(PartitionRecord(PartitionId(number), partition(epoch=number)) for number in (2, 0, 1))
    image = replay_all(EMPTY_IMAGE, records)
    assert [entry.partition_id for entry in image.partitions] == [0, 1, 2]
    assert partition_of(image, PartitionId(1)) == partition(epoch=1)
    assert partition_of(image, PartitionId(3)) is None
    assert partition_of(replay(image, change(leader=3)), PARTITION) == merge(partition(epoch=0), change(leader=3))


# ---- merged deltas


@pytest.mark.parametrize(
    ("before", "after", "local"),
    [
        pytest.param(None, None, UNCHANGED, id="never heard of"),
        pytest.param(partition(), partition(), UNCHANGED, id="the same"),
        pytest.param(None, partition(), LocalChange(LocalRole.LEADER, partition(), elected=True), id="created, led"),
        pytest.param(None, partition(2), LocalChange(LocalRole.FOLLOWER, partition(2)), id="created, followed"),
        pytest.param(partition(), None, DELETED, id="deleted"),
        pytest.param(None, partition()._replace(replicas=order(2, 3)), UNCHANGED, id="others' partition"),
        pytest.param(partition(), partition(2, 6, 8)._replace(replicas=order(2, 3)), DELETED, id="no longer a replica"),
        pytest.param(partition(), partition(1, 5, 8), LocalChange(LocalRole.LEADER, partition(1, 5, 8)), id="ISR changed"),
        pytest.param(
            partition(), partition(-1, 6, 8), LocalChange(LocalRole.FOLLOWER, partition(-1, 6, 8)), id="nobody leads"
        ),
    ],
)
def test_what_a_broker_has_to_do(
    before: PartitionRegistration | None, after: PartitionRegistration | None, local: LocalChange
) -> None:
    assert local_change(before, after, BrokerId(1)) == local


def test_two_elections_in_one_delta_hide_the_first() -> None:
    """Hazard Z19: broker 1 leads, another one does, broker 1 does again; broker 1 never becomes follower."""
    between, after = (reduce(merge, elections, partition()) for elections in ((change(2),), (change(2), change(1))))
    assert local_change(partition(), between, BrokerId(1)).role == LocalRole.FOLLOWER
    assert local_change(partition(), after, BrokerId(1)) == LocalChange(LocalRole.LEADER, after, elected=True)
    assert after.leader_epoch == partition().leader_epoch + 2


changes = st.builds(change, st.sampled_from([NO_LEADER_CHANGE, -1, 1, 2, 3]), st.none() | st.just(ids(1)))


@given(st.lists(changes, max_size=6))
def test_epochs_only_grow_and_leader_epochs_no_faster(records: list[PartitionChangeRecord]) -> None:
    after = reduce(merge, records, partition())
    named = [record for record in records if record.leader != NO_LEADER_CHANGE]
    assert after.partition_epoch == 7 + len(records)
    assert after.leader_epoch == 5 + len(named)


@given(st.lists(changes, max_size=6), st.integers(0, 6))
def test_an_image_is_the_same_however_the_log_is_cut(records: list[PartitionChangeRecord], cut: int) -> None:
    start = replay(EMPTY_IMAGE, PartitionRecord(PARTITION, partition()))
    in_two = replay_all(replay_all(start, tuple(records[:cut])), tuple(records[cut:]))
    assert in_two == replay_all(start, tuple(records))


def test_a_feature_has_its_last_level_and_none_at_level_0() -> None:
    records = (FeatureLevelRecord("b", 1), FeatureLevelRecord("a", 2), FeatureLevelRecord("b", 3))
    image = reduce(replay, records, EMPTY_IMAGE)
    assert image.features == (("a", 2), ("b", 3))
    assert image.end_offset == 3
    assert replay(image, FeatureLevelRecord("a", 0)).features == (("b", 3),)
