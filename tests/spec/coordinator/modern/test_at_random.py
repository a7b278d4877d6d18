"""Consumer groups at random: nothing has two owners, epochs go up, and everybody ends with what is meant for it."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kspec.spec.coordinator.group import GroupState
from kspec.spec.coordinator.loading import load
from kspec.spec.coordinator.modern.state import ConsumerGroup, ConsumerGroupMember, MemberState, places, target_of
from kspec.spec.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import NO_MEMBER_ID, Error, GroupEpoch, MemberId
from tests.limits.turns import Turns
from tests.spec.coordinator.modern.driver import REBALANCE_MS, ConsumerDriver, topic_id, topics
from tests.spec.coordinator_driver import GROUP

NAMES = ("a", "b")
RELEASES = ("4.0", "4.2", "4.3", "4.4")
INSTANCES = (None, None, "i", "j")
NOTHING: frozenset[TopicIdPartition] = frozenset()


class RandomConsumer:
    """A consumer as it knows itself: its epoch, what it owns and what it was told to own."""

    def __init__(self, number: int) -> None:
        self.number, self.instance = number, INSTANCES[number]
        self.life = 0
        self.epoch = 0
        self.topics = frozenset({"a"})
        self.owned = self.told = NOTHING
        self.is_new = True
        self.is_in = False

    @property
    def name(self) -> MemberId:
        """Its member id: a process has one for ever."""
        return MemberId(f"c{self.number}.{self.life}")

    def starts_anew(self) -> None:
        """Another process."""
        self.life += 1
        self.out()

    def out(self) -> None:
        """It has lost all, and joins again."""
        self.epoch, self.owned, self.told, self.is_new = 0, NOTHING, NOTHING, True


class Machine(RuleBasedStateMachine):
    """Clients send heartbeats, whose answers may be lost, and time goes by."""

    @initialize(release=st.sampled_from(RELEASES), interval=st.sampled_from([0, 500]))
    def begin(self, release: str, interval: int) -> None:
        self.driver = ConsumerDriver(release, topics(a=3, b=2), None, consumer_assignment_interval_ms=interval)
        self.driver.now = 1
        self.clients = [RandomConsumer(number) for number in range(len(INSTANCES))]
        self.epochs = (0, 0)

    def request(self, client: RandomConsumer, tells_all: bool) -> ConsumerGroupHeartbeatRequest:
        joins = client.epoch == 0
        every: dict[str, Any] = {"rebalance_timeout_ms": REBALANCE_MS, "topics": client.topics, "owned": client.owned}
        given = every if joins or tells_all or client.is_new else {"owned": client.owned}
        return ConsumerGroupHeartbeatRequest(
            GROUP, client.name, GroupEpoch(client.epoch), client.instance, **given, new_member_id=NO_MEMBER_ID
        )

    @rule(number=st.integers(0, len(INSTANCES) - 1), lost=st.booleans(), tells_all=st.booleans())
    def beat(self, number: int, lost: bool, tells_all: bool) -> None:
        client = self.clients[number]
        answer = self.driver.send(self.request(client, tells_all))
        client.is_in = answer.error == Error.NONE
        if lost:
            client.is_new = True
            return
        if answer.error in (Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID, Error.GROUP_ID_NOT_FOUND):
            client.out()
        elif answer.error in (Error.UNRELEASED_INSTANCE_ID, Error.FENCED_INSTANCE_ID):
            client.starts_anew()
        else:
            assert answer.error == Error.NONE
            client.epoch, client.is_new = answer.member_epoch, False
            client.told = client.told if answer.assignment is None else answer.assignment

    @rule(number=st.integers(0, len(INSTANCES) - 1))
    def reconcile(self, number: int) -> None:
        """The client gives up what it has to, and then takes what is new."""
        client = self.clients[number]
        client.owned = client.owned & client.told if client.owned - client.told else client.told

    @rule(number=st.integers(0, len(INSTANCES) - 1), names=st.frozensets(st.sampled_from(NAMES)))
    def subscribe(self, number: int, names: frozenset[str]) -> None:
        self.clients[number].topics = names
        self.clients[number].is_new = True

    @rule(number=st.integers(0, len(INSTANCES) - 1), for_good=st.booleans())
    def leave(self, number: int, for_good: bool) -> None:
        client = self.clients[number]
        epoch = -1 if for_good or client.instance is None else -2
        self.driver.send(ConsumerGroupHeartbeatRequest(GROUP, client.name, GroupEpoch(epoch), client.instance))
        client.starts_anew()

    @rule(ms=st.sampled_from([100, 500, 10_000, REBALANCE_MS, 45_000]))
    def wait(self, ms: int) -> None:
        self.driver.wait(ms)

    @rule(count=st.integers(1, 5))
    def change_topics(self, count: int) -> None:
        self.driver.know(topics(a=3, b=count) if count < 5 else topics(a=4))

    @property
    def group(self) -> ConsumerGroup:
        return self.driver.group.consumer or ConsumerGroup()

    @invariant()
    def nothing_has_two_owners(self) -> None:
        if hasattr(self, "driver"):
            had = [one.place for member in self.group.members for one in (*member.assigned, *member.pending)]
            assert len(had) == len(set(had))
            epochs = {one.place: one.epoch for one in self.group.owners}
            assert epochs == {one: member.epoch for member in self.group.members for one in self.all_of(member)}

    @staticmethod
    def all_of(member: ConsumerGroupMember) -> frozenset[TopicIdPartition]:
        return places(member.assigned) | places(member.pending)

    @invariant()
    def epochs_go_up_and_stay_in_order(self) -> None:
        if hasattr(self, "driver"):
            now = (self.group.epoch, self.group.assignment_epoch)
            assert now >= self.epochs
            assert now[0] >= now[1]
            self.epochs = now
            for member in self.group.members:
                assert member.epoch <= self.group.assignment_epoch
                assert all(one.epoch <= max(member.epoch, 0) for one in member.assigned)

    @invariant()
    def the_log_says_the_same(self) -> None:
        if hasattr(self, "driver") and self.driver.log:
            found = load(self.driver.log)
            assert [one.consumer.epoch for one in found if one.consumer is not None] == [self.group.epoch]

    @invariant()
    def a_stable_member_has_its_target(self) -> None:
        if hasattr(self, "driver"):
            for member in self.group.members:
                if member.state == MemberState.STABLE and member.epoch == self.group.assignment_epoch:
                    assert places(member.assigned) <= target_of(self.group, member.member_id)

    def teardown(self) -> None:
        """Clients that all go on end in a stable group in which everything is owned, and know it.

        A static member whose first answer was lost is not let in before its own session ends.
        """
        if not hasattr(self, "driver"):
            return
        turns, quiet = Turns(200), 0
        while quiet < 2:
            turns.go()
            before = self.driver.group.consumer
            for client in self.clients:
                self.driver.wait(500)
                self.beat(client.number, lost=False, tells_all=False)
                self.reconcile(client.number)
                self.reconcile(client.number)
            done = self.driver.group.state == GroupState.STABLE and before is not None
            done = done and all(client.is_in for client in self.clients)
            quiet = quiet + 1 if done and before.epoch == self.group.epoch else 0  # type: ignore[union-attr]
        wanted = {topic for client in self.clients for topic in client.topics}
        there = {one.name: len(one.partitions) for one in self.driver.coordinator.topics.by_name}
        everything = {
            TopicIdPartition(topic_id(name), index) for name in wanted if name in there for index in range(there[name])
        }
        assert {one for client in self.clients for one in client.owned} == everything
        assert sum(len(client.owned) for client in self.clients) == len(everything)


TestConsumerGroupsAtRandom = Machine.TestCase
TestConsumerGroupsAtRandom.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
