"""A group whose records are committed late, not in time, or never, while its clients go on and its coordinator changes.

The oracle is a client's: an offset that was acknowledged is what a fetch tells, until a later one; and what was answered
without an error is in the log that every later coordinator has.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kspec.spec.coordinator.group import GroupState, exists
from kspec.spec.coordinator.loading import load
from kspec.spec.coordinator.records import (
    EndOfTransaction,
    GroupMetadataRecord,
    GroupTombstone,
    LogEntry,
    OffsetCommitRecord,
    OffsetTombstone,
    TransactionalCommit,
)
from kspec.spec.coordinator.runtime import (
    LoadedGroups,
    LoggedEntry,
    activate,
    expire_offsets,
    forget_topic,
    load_groups,
    resign,
    unknown_group,
)
from kspec.spec.messages.groups.delete_groups import DeleteGroupsRequest
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest
from kspec.spec.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest
from kspec.spec.messages.groups.offset_delete import OffsetDeleteRequest
from kspec.spec.messages.groups.offset_fetch import OffsetFetchPartition, OffsetFetchRequest
from kspec.spec.messages.groups.sync_group import MemberAssignment, SyncGroupRequest, SyncGroupResponse
from kspec.spec.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from kspec.spec.values import (
    NO_GENERATION,
    NO_MEMBER_ID,
    NO_TOPIC_ID,
    UNKNOWN_OFFSET,
    Error,
    Generation,
    MemberId,
    Offset,
    ProducerEpoch,
    ProducerId,
    RequestNumber,
    TransactionalId,
)
from tests.limits.marks import is_night
from tests.spec.coordinator_driver import GROUP, REBALANCE_MS, SESSION_MS, CoordinatorDriver, at, offers
from tests.times import at_ms

CLIENTS, PARTITIONS = 3, 2
TIMEOUT_MS = 5_000
RETENTION_MS = 60_000
INSTANCES = (None, None, "static")
REFUSALS = (Error.NOT_LEADER_OR_FOLLOWER, Error.MESSAGE_TOO_LARGE, Error.KAFKA_STORAGE_ERROR)
ROUNDS_TO_SETTLE = 400
PRODUCERS = (ProducerId(1), ProducerId(2))

COMMITS = st.builds(
    OffsetCommitRecord, st.just(GROUP), st.just("topic"), st.integers(0, PARTITIONS - 1), st.integers(1_000, 1_999)
)
ENTRIES: st.SearchStrategy[LogEntry] = st.one_of(
    st.builds(TransactionalCommit, st.sampled_from(PRODUCERS), COMMITS),
    st.builds(TransactionalCommit, st.sampled_from(PRODUCERS), COMMITS),
    st.builds(EndOfTransaction, st.sampled_from(PRODUCERS), st.booleans()),
    st.just(GroupTombstone(GROUP)),
)
WRITTEN: st.SearchStrategy[list[LogEntry]] = st.lists(ENTRIES, min_size=1, max_size=3) | st.just([])
"""Entries of another coordinator: transactions, and the change of a group to another protocol."""


def key_of(entry: LogEntry) -> Any:
    """The key that compaction goes by: of two entries with one key it keeps the later. It keeps all of a transaction."""
    match entry:
        case OffsetCommitRecord(topic=topic, partition=partition) | OffsetTombstone(topic=topic, partition=partition):
            return topic, partition
        case GroupMetadataRecord() | GroupTombstone():
            return "group"
    return id(entry)


class RandomClient:
    """A member as it knows itself, with the one request that it waits to be answered."""

    def __init__(self, number: int) -> None:
        self.number, self.instance = number, INSTANCES[number]
        self.member_id, self.generation = NO_MEMBER_ID, NO_GENERATION
        self.others: tuple[MemberId, ...] = ()
        self.waits_for: int | None = None
        self.is_in, self.assignment = False, b""

    def lost(self) -> None:
        """It is in no group any more."""
        self.member_id, self.generation, self.is_in, self.assignment = NO_MEMBER_ID, NO_GENERATION, False, b""


class Machine(RuleBasedStateMachine):
    """Rules are what clients, followers, the log and the cluster do."""

    @initialize(delay=st.sampled_from([0, 3_000]))
    def begin(self, delay: int) -> None:
        self.driver = CoordinatorDriver(
            initial_rebalance_delay_ms=delay, commit_timeout_ms=TIMEOUT_MS, offsets_retention_ms=RETENTION_MS
        )
        self.driver.commits_at_once = False
        self.clients = [RandomClient(number) for number in range(CLIENTS)]
        self.requests: dict[int, tuple[Any, int, int]] = {}  # each request, when it was sent, and the log's end after it
        self.acknowledged = 0  # how much of the log clients know to be committed, since they were told of its last record
        self.known_at: dict[int, int] = {}  # and how much that was when each fetch was sent
        self.seen: set[int] = set()
        self.was_compacted = False  # then a group of whose offsets none is left is forgotten
        self.safe = 0  # what is on all replicas: a new leader has it, and learns of that later

    # ---- clients

    def send(self, request: Any, client: RandomClient | None = None) -> None:
        number = request.request if hasattr(request, "request") else self.driver.new_number()
        if isinstance(request, OffsetFetchRequest):
            self.known_at[number] = self.acknowledged
        before = len(self.driver.log)
        if client is not None:
            client.waits_for = number
        self.driver.hand_in(number, request)
        wrote = len(self.driver.log) if len(self.driver.log) > before else 0
        self.requests[number] = (request, self.driver.now, wrote)
        self.look()

    def new_number(self) -> int:
        return self.driver.new_number()

    @rule(number=st.integers(0, CLIENTS - 1), protocols=st.permutations(["range", "sticky"]), known=st.booleans())
    def go_on(self, number: int, protocols: list[str], known: bool) -> None:
        """A client does what it has to do next: it joins, or asks for its assignment, or is alive."""
        client = self.clients[number]
        if client.waits_for is None:
            self.send(self._next(client, tuple(protocols), known), client)

    def _next(self, client: RandomClient, protocols: tuple[str, ...] = ("range", "sticky"), known: bool = True) -> Any:
        if client.generation == NO_GENERATION:
            self.driver.ids += 1
            return JoinGroupRequest(
                RequestNumber(self.new_number()),
                GROUP,
                client.member_id,
                client.instance,
                "client",
                "/127.0.0.1",
                SESSION_MS,
                REBALANCE_MS,
                "consumer",
                offers(*protocols),
                MemberId(f"m{self.driver.ids}"),
                known,
                skips_assignment=known,
            )
        if not client.is_in:
            given = tuple(MemberAssignment(one, f"{client.generation}/{one}".encode()) for one in client.others)
            return SyncGroupRequest(
                RequestNumber(self.new_number()),
                GROUP,
                Generation(client.generation),
                client.member_id,
                client.instance,
                None,
                None,
                given,
            )
        return HeartbeatRequest(GROUP, Generation(client.generation), client.member_id, client.instance)

    @rule(number=st.integers(0, CLIENTS - 1), partition=st.integers(0, PARTITIONS - 1), offset=st.integers(0, 999))
    def commit(self, number: int, partition: int, offset: int) -> None:
        client = self.clients[number]
        if client.waits_for is None:
            who = (Generation(client.generation), client.member_id, client.instance if client.member_id else None)
            self.send(OffsetCommitRequest(GROUP, (at("topic", partition, offset),), *who), client)

    @rule(partition=st.integers(0, PARTITIONS - 1), offset=st.integers(0, 999))
    def commit_without_a_group(self, partition: int, offset: int) -> None:
        """A consumer that assigns partitions to itself; it does not wait for an answer before it commits again."""
        self.send(OffsetCommitRequest(GROUP, (at("topic", partition, offset),), NO_GENERATION, NO_MEMBER_ID))

    @rule(
        producer=st.sampled_from(PRODUCERS),
        number=st.integers(0, CLIENTS - 1),
        named=st.booleans(),
        partition=st.integers(0, PARTITIONS - 1),
        offset=st.integers(0, 999),
    )
    def commit_in_transaction(self, producer: ProducerId, number: int, named: bool, partition: int, offset: int) -> None:
        """A producer commits what a client has read, and says which member that is, or not; it waits for no answer."""
        client = self.clients[number]
        who = (Generation(client.generation), client.member_id, client.instance if client.member_id else None)
        asked = (TransactionalId("id"), GROUP, producer, ProducerEpoch(0), (at("topic", partition, offset),))
        self.send(TxnOffsetCommitRequest(*asked, *(who if named else ())))

    @rule(producer=st.sampled_from(PRODUCERS), committed=st.booleans())
    def transaction_ends(self, producer: ProducerId, committed: bool) -> None:
        """The marker of a producer is in the log, which has taken it; nobody of the group waits for that."""
        refuses, self.driver.refuses = self.driver.refuses, Error.NONE
        self.driver.end_transaction(producer, committed)
        self.driver.refuses = refuses
        self.look()

    @rule(number=st.integers(0, CLIENTS - 1))
    def leave(self, number: int) -> None:
        client = self.clients[number]
        if client.waits_for is None and client.member_id:
            self.send(LeaveGroupRequest(GROUP, (MemberIdentity(client.member_id, client.instance),)), client)

    @rule(number=st.integers(0, CLIENTS - 1))
    def start_again(self, number: int) -> None:
        """The process of a client is another one: it has forgotten what it has asked, and who it was."""
        self.clients[number] = RandomClient(number)

    @rule(stable=st.booleans())
    def fetch(self, stable: bool) -> None:
        wanted = tuple(OffsetFetchPartition("topic", partition) for partition in range(PARTITIONS))
        self.send(OffsetFetchRequest(GROUP, wanted, stable))

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def delete_offset(self, partition: int) -> None:
        self.send(OffsetDeleteRequest(GROUP, (OffsetFetchPartition("topic", partition),)))

    @rule()
    def delete_group(self) -> None:
        self.send(DeleteGroupsRequest(GROUP))

    # ---- the log

    @rule(part=st.floats(0, 1))
    def followers_catch_up(self, part: float) -> None:
        self.driver.commit_up_to(self._end_of_a_batch(part, self.driver.committed))
        self.look()

    def _end_of_a_batch(self, part: float, first: int, last: int | None = None) -> int:
        ends = [end for end in self.driver.ends if first <= end and (last is None or end <= last)]
        return ends[round(part * (len(ends) - 1))]

    @rule(error=st.sampled_from((Error.NONE, *REFUSALS)))
    def log_refuses(self, error: Error) -> None:
        self.driver.refuses = error

    @rule(milliseconds=st.sampled_from([1, 1_000, TIMEOUT_MS, SESSION_MS, REBALANCE_MS, RETENTION_MS]))
    def wait(self, milliseconds: int) -> None:
        self.driver.pass_time(milliseconds)
        self.look()

    @rule()
    def offsets_expire(self) -> None:
        driver = self.driver
        driver.happen(expire_offsets(driver.coordinator, driver.state_of_group, driver.position, at_ms(driver.now)))
        self.look()

    @rule()
    def topic_is_deleted(self) -> None:
        driver = self.driver
        given = (driver.coordinator, driver.state_of_group, "topic", NO_TOPIC_ID, driver.position, at_ms(driver.now))
        driver.happen(forget_topic(*given))
        self.look()

    @rule(
        kept=st.floats(0, 1),
        lags=st.floats(0, 1),
        written=WRITTEN,
        compacted=st.booleans(),
    )
    def another_coordinator(self, kept: float, lags: float, written: list[LogEntry], compacted: bool) -> None:
        """The next leader has all that is committed, some of what is not, and may know of less that is committed.

        In between it may have been a broker of Apache Kafka, which writes what this one does not.
        """
        driver = self.driver
        driver.carry_out(resign(driver.coordinator, driver.state_of_group, at_ms(driver.now)))
        waiting = [one for one in self.requests if one not in driver.replies and one not in driver.answers]
        assert not waiting, "nobody waits for a coordinator that has resigned"
        self.look()
        self.safe = max(self.safe, driver.committed)
        end, committed = self._end_of_a_batch(kept, self.safe), self._end_of_a_batch(lags, 0, self.safe)
        del driver.log[end:]
        driver.ends = [one for one in driver.ends if one <= end]
        driver.committed = committed
        for entry in written:
            driver.log.append(entry)
            driver.ends.append(len(driver.log))
        self.load(compacted)

    def load(self, compacted: bool) -> None:
        driver = self.driver
        entries = [LoggedEntry(Offset(number + 1), entry) for number, entry in enumerate(driver.log)]
        self.was_compacted = self.was_compacted or compacted
        if compacted:
            open_at = (number for number, entry in enumerate(driver.log) if isinstance(entry, TransactionalCommit))
            bound = min(driver.committed, next(open_at, driver.committed))  # compaction never goes beyond a transaction
            last = {key_of(one.entry): one.end for one in entries[:bound]}
            entries = [one for one in entries if one.end > bound or last[key_of(one.entry)] == one.end]
        loaded, middle = LoadedGroups(Offset(driver.committed)), len(entries) // 2
        for piece in (entries[:middle], entries[middle:]):
            loaded = load_groups(loaded, piece)
        assert loaded == load_groups(LoadedGroups(Offset(driver.committed)), entries)
        (group,) = loaded.known() or (unknown_group(GROUP),)
        driver.state_of_group = group
        driver.happen(activate(driver.coordinator, group, driver.position, at_ms(driver.now)))

    @rule()
    def all_is_well(self) -> None:
        """Nothing fails any more: all clients are in one generation soon, each with its assignment, and nobody waits."""
        driver = self.driver
        driver.refuses = Error.NONE
        for _ in range(ROUNDS_TO_SETTLE):
            for client in self.clients:
                if client.waits_for is None:
                    self.send(self._next(client), client)
            driver.commit_up_to(len(driver.log))
            driver.pass_time(200)
            self.look()
            if self._is_settled():
                break
        assert self._is_settled(), f"{driver.group}"

    def _is_settled(self) -> bool:
        group = self.driver.group
        return (
            group.state == GroupState.STABLE
            and {client.member_id for client in self.clients} == {one.member_id for one in group.members}
            and all(client.is_in and client.generation == group.generation for client in self.clients)
            and {client.assignment for client in self.clients} == {one.assignment for one in group.members}
            and not self.driver.state_of_group.waiting
        )

    # ---- answers

    def look(self) -> None:
        """See what has been answered, and hold it against what clients may expect."""
        answers = {**self.driver.replies, **self.driver.answers}
        for number in sorted(set(answers) - self.seen):
            if number not in self.requests:
                continue  # it is being sent
            self.seen.add(number)
            request, _, wrote = self.requests[number]
            self._take(number, request, wrote, answers[number])

    def _take(self, number: int, request: Any, wrote: int, answer: Any) -> None:
        client = next((one for one in self.clients if one.waits_for == number), None)
        if client is not None:
            client.waits_for = None
        match request:
            case OffsetCommitRequest() | TxnOffsetCommitRequest():
                (told,) = answer.partitions
                if told.error == Error.NONE:
                    assert 0 < wrote <= self.driver.committed, "acknowledged before it is committed"
                    self.acknowledged = max(self.acknowledged, wrote)
                elif client is not None and told.error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
                    client.lost()
            case OffsetDeleteRequest():
                if answer.error == Error.NONE and wrote:
                    assert wrote <= self.driver.committed
                    self.acknowledged = max(self.acknowledged, wrote)
            case DeleteGroupsRequest():
                if answer.error == Error.NONE:
                    assert 0 < wrote <= self.driver.committed
                    self.acknowledged = max(self.acknowledged, wrote)
            case OffsetFetchRequest():
                if answer.error == Error.NONE:
                    for one in answer.partitions:
                        if one.error == Error.UNSTABLE_OFFSET_COMMIT:
                            continue
                        told = one.offset
                        assert told in self._possible(one.partition, self.known_at[number]), answer
            case JoinGroupRequest():
                record = self.driver.log[wrote - 1] if wrote else None
                if answer.error == Error.NONE and isinstance(record, GroupMetadataRecord) and record.members:
                    assert wrote <= self.driver.committed, "a static member is told its new id before that is stored"
                self._joined(client, answer)
            case SyncGroupRequest():
                self._synced(client, answer)
            case HeartbeatRequest() if client is not None and answer.error != Error.NONE:
                if answer.error == Error.REBALANCE_IN_PROGRESS:
                    client.generation, client.is_in = NO_GENERATION, False
                elif answer.error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID):
                    client.lost()
            case LeaveGroupRequest() if client is not None and answer.error == Error.NONE:
                client.lost()

    def _joined(self, client: RandomClient | None, answer: JoinGroupResponse) -> None:
        if client is None:
            return
        if answer.error == Error.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id
        elif answer.error == Error.NONE:
            client.member_id, client.generation, client.is_in = answer.member_id, answer.generation, False
            leads = answer.leader == answer.member_id and not answer.skip_assignment
            client.others = tuple(one.member_id for one in answer.members) if leads else ()
        elif answer.error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
            client.lost()

    def _synced(self, client: RandomClient | None, answer: SyncGroupResponse) -> None:
        if client is None:
            return
        if answer.error == Error.NONE:
            client.is_in, client.assignment = True, answer.assignment
            assert answer.assignment in (b"", *(f"{client.generation}/{one}".encode() for one in self._ids()))
            stored = [one for one in self.driver.log[: self.driver.committed] if isinstance(one, GroupMetadataRecord)]
            assert any(one.generation == client.generation and one.members for one in stored), "it is not stored"
        elif answer.error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
            client.lost()
        else:
            client.generation = NO_GENERATION

    def _ids(self) -> list[str]:
        return [f"m{number}" for number in range(1, self.driver.ids + 1)]

    # ---- the oracle

    def _possible(self, partition: int, known: int) -> set[int]:
        """Offsets that a fetch may tell: the one acknowledged when it was sent, or any that is committed and later."""
        return set(self._history(partition)[known : max(self.driver.committed, known) + 1])

    def _history(self, partition: int) -> list[int]:
        """A partition's committed offset before the log begins, and after each of its records.

        By the offsets of records, as Kafka does it: of two offsets the one whose record is the later stays.
        """
        stored: tuple[int, int] | None = None  # the place of the record, and the offset
        pending: dict[ProducerId, tuple[int, int]] = {}
        there, found = False, [int(UNKNOWN_OFFSET)]
        for place, entry in enumerate(self.driver.log):
            match entry:
                case OffsetCommitRecord(partition=of, offset=offset):
                    there, stored = True, (place, offset) if of == partition else stored
                case TransactionalCommit(producer, OffsetCommitRecord(partition=of, offset=offset)):
                    there, pending = True, pending | {producer: (place, offset)} if of == partition else pending
                case EndOfTransaction(producer, committed):
                    ended = pending.get(producer)
                    pending = {one: offset for one, offset in pending.items() if one != producer}
                    if committed and ended is not None and (stored is None or ended[0] > stored[0]):
                        stored = ended
                case OffsetTombstone(partition=of) if of == partition:
                    stored, pending = None, {}
                case GroupMetadataRecord():
                    there = True
                case GroupTombstone():
                    there = False
            found.append(stored[1] if there and stored is not None else int(UNKNOWN_OFFSET))
        return found

    # ---- what always holds

    @invariant()
    def what_was_acknowledged_is_in_the_log(self) -> None:
        assert self.acknowledged <= max(self.safe, self.driver.committed)

    @invariant()
    def the_newest_state_is_what_a_load_gives(self) -> None:
        for group, log in (
            (self.driver.group, self.driver.log),
            (self.driver.state_of_group.committed, self.driver.log[: self.driver.committed]),
        ):
            for partition in range(PARTITIONS):
                found = [one.offset for one in group.offsets if one.partition == partition and exists(group)]
                assert (found or [UNKNOWN_OFFSET]) == [self._history(partition)[len(log)]]
            (loaded,) = load(log) or (unknown_group(GROUP).latest,)
            assert (loaded.offsets, loaded.pending_offsets) == (group.offsets, group.pending_offsets)
            assert exists(loaded) == exists(group) or (self.was_compacted and not group.offsets)

    @invariant()
    def nobody_waits_for_too_long(self) -> None:
        for one in self.driver.state_of_group.waiting:
            assert one.deadline_ms > self.driver.now
            assert one.until > self.driver.committed
        assert all(one.end > self.driver.committed for one in self.driver.state_of_group.writes)
        group = self.driver.group
        leader = next((one for one in group.members if one.member_id == group.leader), None)
        if group.state == GroupState.COMPLETING_REBALANCE and leader is not None and leader.sync_request is not None:
            assert self.driver.state_of_group.waiting, "the leader has brought the assignment, and nothing goes on"

    @invariant()
    def the_group_is_as_its_state_says(self) -> None:
        group = self.driver.group
        assert (group.join_deadline_ms is not None) == (group.state == GroupState.PREPARING_REBALANCE)
        if group.state == GroupState.STABLE:
            assert all(one.join_request is None and one.sync_request is None for one in group.members)
        if group.state in (GroupState.EMPTY, GroupState.DEAD):
            assert not group.members

    @invariant()
    def no_request_is_forgotten(self) -> None:
        """Requests without an answer wait for the log or the others; a client that has started again has forgotten it."""
        group = self.driver.group
        waiting = {one for member in group.members for one in (member.join_request, member.sync_request)}
        waiting |= {one.number for one in self.driver.state_of_group.waiting}
        asked = {client.waits_for for client in self.clients} - {None}
        assert asked - set(self.driver.answers) - set(self.driver.replies) <= waiting


TestRuntimeAtRandom = Machine.TestCase
EXAMPLES = 1_000 if is_night() else 150
TestRuntimeAtRandom.settings = settings(max_examples=EXAMPLES, stateful_step_count=50, deadline=None)
