"""A group of several members at random: they come and go, forget to answer, and coordinators change."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from kspec.spec.coordinator.deadlines import next_deadline, on_activation, on_resignation
from kspec.spec.coordinator.group import GroupState, absent
from kspec.spec.coordinator.loading import load
from kspec.spec.messages.groups.join_group import JoinGroupResponse
from kspec.spec.messages.groups.leave_group import MemberIdentity
from kspec.spec.values import NO_MEMBER_ID, Error, MemberId, RequestNumber
from tests.spec.coordinator_driver import GROUP, REBALANCE_MS, SESSION_MS, CoordinatorDriver, at, offers
from tests.times import at_ms

LONGEST_WAIT_MS = REBALANCE_MS * 3
"""A member waits for a join at most its first rebalance's delays, or the time-out of a rebalance begun anew."""

IN_A_GENERATION = (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)


class Machine(RuleBasedStateMachine):
    """Rules are what members send; invariants are what the group promises."""

    ids = Bundle("ids")

    @initialize(max_size=st.sampled_from([2, 2**31 - 1]), delay=st.sampled_from([0, 3_000]))
    def begin(self, max_size: int, delay: int) -> None:
        self.driver = CoordinatorDriver(max_size=max_size, initial_rebalance_delay_ms=delay)
        self.generation = 0
        self.sent: dict[int, int] = {}  # when each request that may have to wait was sent
        self.superseded: set[int] = set()  # requests of a member that has sent another one since
        self.asked_by: dict[int, MemberId] = {}
        self.instances: dict[MemberId, str | None] = {}
        self.given: dict[tuple[int, str], bytes] = {}  # what the leader gave it
        self.seen: set[int] = set()
        self.committed: dict[tuple[str, int], int] = {}

    # ---- what members send

    @rule(
        target=ids,
        instance=st.sampled_from([None, None, "a", "b"]),
        known=st.booleans(),
        preferred=st.permutations(["range", "sticky"]),
    )
    def join_as_new(self, instance: str | None, known: bool, preferred: list[str]) -> MemberId:
        number = self.driver.join(instance_id=instance, requires_member_id=known, protocols=offers(*preferred))
        self.sent[number] = self.driver.now
        new = MemberId(f"m{self.driver.ids}")
        self.instances[new] = instance
        if known and number in self.driver.answers and self.driver.joined(number).error == Error.MEMBER_ID_REQUIRED:
            self.join_again(new, preferred)
        return new

    @rule(member=ids, preferred=st.permutations(["range", "sticky"]))
    def join_again(self, member: MemberId, preferred: list[str]) -> None:
        instance, waiting = self._of(member)
        number = self.driver.join(member, instance_id=instance, protocols=offers(*preferred))
        self.superseded |= {one for one in waiting if self._forgotten(one)}
        self.sent[number] = self.driver.now

    @rule(member=ids, current=st.integers(0, 9))
    def sync(self, member: MemberId, current: int) -> None:
        instance, waiting = self._of(member)
        group = self.driver.group
        generation = group.generation if current else group.generation - 1
        assignments: dict[str, bytes] = {one.member_id: f"{generation}/{one.member_id}".encode() for one in group.members}
        leads = group.leader == member
        if leads and group.state == GroupState.COMPLETING_REBALANCE and current:
            self.given |= {(generation, one): data for one, data in assignments.items()}
        number = self.driver.sync(member, assignments if leads else {}, generation=generation, instance_id=instance)
        self.asked_by[number] = member
        self.superseded |= {one for one in waiting if self._forgotten(one)}
        self.sent[number] = self.driver.now

    @rule(member=ids)
    def heartbeat(self, member: MemberId) -> None:
        error = self.driver.heartbeat(member)
        known = any(one.member_id == member for one in self.driver.group.members)
        assert (error == Error.UNKNOWN_MEMBER_ID) == (not known)

    @rule(rounds=st.integers(1, 3), milliseconds=st.sampled_from([1, 3_000]))
    def all_behave(self, rounds: int, milliseconds: int) -> None:
        """Every member does what is asked of it, followers first: it joins again, or asks for its assignment."""
        for _ in range(rounds):
            self.driver.pass_time(milliseconds)
            for member in reversed(self.driver.group.members):
                if self.driver.group.state == GroupState.PREPARING_REBALANCE and member.join_request is None:
                    self.join_again(member.member_id, [one.name for one in member.protocols])
                elif self.driver.group.state in IN_A_GENERATION and member.sync_request is None:
                    self.heartbeat(member.member_id)
                    self.sync(member.member_id, 1)

    @rule(member=consumes(ids), by_instance=st.booleans())
    def leave(self, member: MemberId, by_instance: bool) -> None:
        instance, _ = self._of(member)
        identity = MemberIdentity(NO_MEMBER_ID if by_instance and instance else member, instance)
        self.driver.leave(identity)
        assert all(one.member_id != member for one in self.driver.group.members)

    @rule(member=ids, partition=st.integers(0, 2), offset=st.integers(0, 99))
    def commit(self, member: MemberId, partition: int, offset: int) -> None:
        generation = self.driver.group.generation
        instance, _ = self._of(member)
        offsets = at("topic", partition, offset)
        (error,) = self.driver.commit(offsets, member_id=member, generation=generation, instance_id=instance)
        if error == Error.NONE:
            self.committed["topic", partition] = offset

    @rule(milliseconds=st.sampled_from([1, 100, 3_000, SESSION_MS // 2, SESSION_MS // 2, SESSION_MS, REBALANCE_MS]))
    def wait(self, milliseconds: int) -> None:
        self.driver.pass_time(milliseconds)

    @precondition(lambda self: self.driver.group.state == GroupState.STABLE or self.driver.group.offsets)
    @rule()
    def another_coordinator(self) -> None:
        """Another broker takes over: what it knows is in the log."""
        before = self.driver.group
        self.driver.carry_out(on_resignation(self.driver.coordinator, before, at_ms(self.driver.now)))
        (loaded,) = load(self.driver.log) or (absent(GROUP),)
        self.driver.carry_out(on_activation(self.driver.coordinator, loaded, at_ms(self.driver.now)))
        self.generation = loaded.generation
        if before.state == GroupState.STABLE:
            assert {one.member_id: one.assignment for one in loaded.members} == {
                one.member_id: one.assignment for one in before.members
            }

    def _of(self, member_id: MemberId) -> tuple[str | None, list[RequestNumber]]:
        """The instance id of a member, and the requests that it waits to be answered."""
        for member in self.driver.group.members:
            if member.member_id == member_id:
                waiting = [one for one in (member.join_request, member.sync_request) if one is not None]
                return member.instance_id, waiting
        return None, []

    def _forgotten(self, request: int) -> bool:
        waiting = {one.join_request for one in self.driver.group.members}
        waiting |= {one.sync_request for one in self.driver.group.members}
        return request not in waiting and request not in self.driver.answers

    # ---- what always holds

    @invariant()
    def generations_grow(self) -> None:
        assert self.driver.group.generation >= self.generation
        self.generation = self.driver.group.generation

    @invariant()
    def an_assignment_goes_to_its_member_in_its_generation(self) -> None:
        for number, answer in self.driver.answers.items():
            if number in self.seen:
                continue
            self.seen.add(number)
            if not isinstance(answer, JoinGroupResponse) and answer.error == Error.NONE and answer.assignment:
                generation, _, member = answer.assignment.decode().partition("/")
                assert self.given[int(generation), member] == answer.assignment
                asker, owner = self.asked_by[number], MemberId(member)
                started_again = self.instances[asker] is not None and self.instances[asker] == self.instances[owner]
                assert asker == owner or started_again

    @invariant()
    def offsets_never_go_away_by_a_rebalance(self) -> None:
        assert {(one.topic, one.partition): one.offset for one in self.driver.group.offsets} == self.committed

    @invariant()
    def in_a_stable_group_nobody_waits(self) -> None:
        if self.driver.group.state in IN_A_GENERATION:
            assert all(member.join_request is None for member in self.driver.group.members)
        if self.driver.group.state == GroupState.STABLE:
            assert all(member.sync_request is None for member in self.driver.group.members)

    @invariant()
    def every_waiting_request_is_answered_in_time(self) -> None:
        for number, sent_at in self.sent.items():
            if number not in self.driver.answers and number not in self.superseded:
                assert self.driver.now - sent_at <= LONGEST_WAIT_MS, f"request {number} is still waiting"

    @invariant()
    def no_request_is_forgotten(self) -> None:
        group = self.driver.group
        waiting = {one for member in group.members for one in (member.join_request, member.sync_request)}
        assert set(self.sent) - set(self.driver.answers) - self.superseded <= waiting

    @invariant()
    def who_waits_has_a_deadline(self) -> None:
        if any(one.join_request is not None or one.sync_request is not None for one in self.driver.group.members):
            assert next_deadline(self.driver.group) is not None

    @invariant()
    def the_group_is_as_its_state_says(self) -> None:
        group = self.driver.group
        members = {member.member_id for member in group.members}
        assert (group.leader in members) if members else (group.leader is None)
        assert len(members) == len(group.members)
        instances = [member.instance_id for member in group.members if member.instance_id is not None]
        assert len(set(instances)) == len(instances)
        if group.state in IN_A_GENERATION:
            assert members
            assert all(any(one.name == group.protocol_name for one in member.protocols) for member in group.members)
        if group.state in (GroupState.EMPTY, GroupState.DEAD):
            assert not members
        assert (group.join_deadline_ms is not None) == (group.state == GroupState.PREPARING_REBALANCE)


TestGroupAtRandom = Machine.TestCase
TestGroupAtRandom.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
