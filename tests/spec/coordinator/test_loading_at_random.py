"""A log of groups at random: taken together, or without what others make needless, it gives the same groups."""

from dataclasses import replace
from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from kspec.spec.coordinator.group import absent
from kspec.spec.coordinator.loading import entries_needed, groups_of, replay, replay_all, replay_entry
from kspec.spec.coordinator.records import (
    EndOfTransaction,
    GroupMetadataRecord,
    GroupRecord,
    GroupTombstone,
    LogEntry,
    OffsetCommitRecord,
    OffsetTombstone,
    TransactionalCommit,
)
from kspec.spec.coordinator.runtime import (
    CoordinatedGroup,
    LoadedGroups,
    LoggedEntry,
    UncommittedWrite,
    load_groups,
)
from kspec.spec.values import Epoch, Generation, GroupId, Offset, ProducerId, TimestampMs

group_ids = st.sampled_from([GroupId("g"), GroupId("h")])
topics, partitions = st.sampled_from(["t", "u"]), st.integers(0, 1)
commits = st.builds(
    lambda group_id, topic, partition, offset, at: OffsetCommitRecord(
        group_id, topic, partition, Offset(offset), Epoch(0), "", TimestampMs(at)
    ),
    group_ids,
    topics,
    partitions,
    st.integers(0, 9),
    st.integers(0, 99),
)
plain = st.one_of(
    commits,
    commits,
    st.builds(OffsetTombstone, group_ids, topics, partitions),
    st.builds(GroupTombstone, group_ids),
    st.builds(
        lambda group_id, generation: GroupMetadataRecord(
            group_id, "consumer", Generation(generation), None, None, TimestampMs(5), ()
        ),
        group_ids,
        st.integers(0, 3),
    ),
)
producers = st.sampled_from([ProducerId(7), ProducerId(8)])
entries = st.one_of(
    plain, plain, st.builds(TransactionalCommit, producers, commits), st.builds(EndOfTransaction, producers, st.booleans())
)


@given(st.lists(plain, max_size=12))
def test_records_taken_together(records: list[GroupRecord]) -> None:
    of_one = [replace(one, group_id=GroupId("g")) for one in records]
    assert replay_all(absent(GroupId("g")), of_one) == reduce(replay, of_one, absent(GroupId("g")))


def loaded_one_by_one(before: LoadedGroups, log: list[LoggedEntry]) -> LoadedGroups:
    """The same as `load_groups` says, entry by entry."""
    groups = {group.latest.group_id: group for group in before.groups}
    for end, entry in log:
        for group_id in groups_of(entry, {one: group.latest for one, group in groups.items()}):
            group = groups.get(group_id, CoordinatedGroup(absent(group_id), absent(group_id)))
            latest = replay_entry(group.latest, entry)
            if end <= before.committed:
                groups[group_id] = group._replace(latest=latest, committed=latest)
            else:
                writes = (*group.writes, UncommittedWrite(end, (entry,), is_loaded=True))
                groups[group_id] = group._replace(latest=latest, writes=writes)
    return before._replace(groups=tuple(groups.values()))


@given(st.lists(entries, max_size=20), st.integers(0, 20), st.integers(0, 20))
def test_groups_of_a_log(log: list[LogEntry], committed: int, cut: int) -> None:
    logged = [LoggedEntry(Offset(number), entry) for number, entry in enumerate(log, 1)]
    before = LoadedGroups(Offset(committed))
    in_pieces = load_groups(load_groups(before, logged[:cut]), logged[cut:])
    assert in_pieces == loaded_one_by_one(before, logged)


@given(st.lists(plain, max_size=30))
def test_entries_that_are_needed(log: list[LogEntry]) -> None:
    logged = [LoggedEntry(Offset(number), entry) for number, entry in enumerate(log, 1)]
    commits_of = [(one.group_id, one.topic, one.partition) if isinstance(one, OffsetCommitRecord) else None for one in log]
    needed = entries_needed(commits_of)
    before = LoadedGroups(Offset(len(log)))
    assert set(load_groups(before, [logged[place] for place in needed]).groups) == set(load_groups(before, logged).groups)
    assert len(needed) <= len(log)


def test_commits_between_the_first_and_the_last_are_not_needed() -> None:
    assert entries_needed(["a", "a", "b", "a", None, "a", "a", "a"]) == [0, 2, 3, 4, 5, 7]
