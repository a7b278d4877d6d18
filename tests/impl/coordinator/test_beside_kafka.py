"""Hypothesis drives coordinator and members over the wire, this broker and Apache Kafka side by side: the same answers.

Members of both protocols join, are assigned to, commit, leave, come back, and use ids and epochs that are not theirs; after
each step both brokers describe the groups alike. No timer runs out while this is done: sessions are long, and nothing waits
for a time. Freedoms that Kafka leaves, what is not driven, and what is still to be mended are listed with their reasons.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from kspec.conformance.kafka.single import SingleKafka
from kspec.impl.wire.values import Message
from kspec.spec.coordinator.rules.consumer_protocol import write_assignment
from kspec.spec.values import Error
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until
from tests.impl.coordinator.side_by_side import KAFKAS, OURS, FreedomTaken, MadeUpId, NamedTopic, Request, SideBySide, Told
from tests.limits.marks import is_night

EXAMPLES, STEPS = (400, 90) if is_night() else (12, 90)
EXAMPLES = int(os.environ.get("KSPEC_GROUP_EXAMPLES", EXAMPLES))

HOUR_MS = 3_600_000
SESSION_MS, REBALANCE_MS = 1_700_000, HOUR_MS
"""So long that nobody is waited for in vain, on any machine."""

SHARED = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.session.timeout.ms": str(HOUR_MS),
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignors": "range",
}
KAFKAS_OWN = {
    "group.consumer.max.session.timeout.ms": HOUR_MS,
    "group.consumer.assignor.offload.enable": "false",
    "group.coordinator.append.linger.ms": 0,
    "group.coordinator.threads": 1,
    "num.network.threads": 1,
    "num.io.threads": 1,
}
"""Settings by which Kafka, too, handles requests in the order in which they come, and computes a target at once."""

FREEDOMS = {
    "leader": "who leads a classic group after its leader has left is the first in a hash table of ids that are made up",
}
"""Freedoms that Kafka leaves, and where they show: the group is left alone from there on."""

NOT_DRIVEN = {
    "group.consumer.assignors=uniform": "its sets follow the order of a hash table (`spec.assignors.uniform`)",
    "SubscribedTopicRegex": "an expression is looked up some time later, by a thread of its own",
    "ConsumerGroupHeartbeat 0 without a member id": "ranges follow the order of ids, and these would be made up",
    "ids that Kafka makes up for dynamic members of the classic protocol in a consumer group": "they begin with nothing that"
    " is known, and ranges follow their order; members bring an id of their own there",
    "sessions that end": "a clock decides; the cases of level 0 have them",
    "TxnOffsetCommit": "transactions have their own tests",
}

LEFT_ALONE = {
    "a refused join": "JoinGroup with a member id is refused in an empty consumer group, and Kafka forgets the group all the"
    " same, in memory only (docs/findings/refused-join.md); this broker keeps it",
    "another instance": "a static member of KIP-848 joins again under its member id, and with another instance id: Kafka's"
    " memory, and not its log, has it under both (`ConsumerGroup.updateStaticMember`), and who comes with the first one when"
    " it has left is an unknown member",
}
"""Defects of Kafka that this broker does not have: the request is driven, and the group is left alone from there on."""

POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")
SETTINGS: list[dict[str, str]] = [
    *({"group.consumer.migration.policy": policy} for policy in POLICIES),
    {"group.consumer.max.size": "2"},
    {"group.max.size": "2"},
]
"""Settings with which both may be started again."""

TOPICS = {"even": 4, "odd": 3}
ABSENT = "absent"
NAMES = st.sampled_from([("even",), ("odd",), ("even", "odd"), ("even",), ("odd", ABSENT)])
MEMBERS, INSTANCES = 4, 2
INSTANCE = st.sampled_from([None, None, None, 0, 0, 0, 1])
AGAIN = ("new", "new", "same", "same", "changed")
ASSIGNORS = st.sampled_from([None, None, None, None, "range", "unknown"])
OWN, EMPTY, UNKNOWN, OTHERS = "own", "empty", "unknown", "others"
WHO = st.sampled_from([OWN] * 12 + [EMPTY, UNKNOWN, OTHERS])
AHEAD = st.sampled_from([0] * 12 + [1, -1, 5])
PICK = st.integers(0, 40)
SLOT = st.integers(0, MEMBERS - 1)
KINDS = {"consumer": ("range", "roundrobin"), "connect": ("eager",)}
PROTOCOLS = st.sampled_from([("range",), ("range", "roundrobin"), ("roundrobin", "range"), ("range",), ("eager",)])


@dataclass(eq=False)
class DrivenMember:
    """A member as a client knows itself. `joined`: how often it has begun to be one, by which its ids are ordered."""

    number: int
    clients: tuple[BrokerClient, BrokerClient]
    joined: int = 0
    member_id: str = ""
    epoch: int = -1
    instance: str | None = None
    by_heartbeat: bool = False
    owned: tuple[tuple[str, tuple[int, ...]], ...] = ()
    topics: tuple[str, ...] = ("even",)
    protocol: str = "range"
    members: tuple[str, ...] = ()
    """All members, if it leads."""

    waiting: Request | None = None

    @property
    def client_id(self) -> str:
        """Its name. Ids that brokers make up begin with it, so they are in the same order on both."""
        return f"c{self.joined:04}"


def subscription(layout: int, topics: tuple[str, ...]) -> bytes:
    """The bytes of a consumer's subscription. Kafka: `ConsumerProtocolSubscription`."""
    names = [len(one).to_bytes(2, "big") + one.encode() for one in topics]
    more = [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff"][:layout]
    return b"".join((layout.to_bytes(2, "big"), len(topics).to_bytes(4, "big"), *names, b"\xff\xff\xff\xff", *more))


def picked(api: str, pick: int) -> int:
    """One of the versions that both brokers offer, the newest first."""
    versions = VERSIONS[api]
    return versions[-1 - pick % len(versions)]


VERSIONS = {
    "JoinGroup": range(2, 10),
    "SyncGroup": range(6),
    "Heartbeat": range(5),
    "LeaveGroup": range(6),
    "ConsumerGroupHeartbeat": range(2),
    "OffsetCommit": range(2, 10),
    "OffsetFetch": range(1, 10),
    "DescribeGroups": range(7),
    "ConsumerGroupDescribe": range(2),
    "ListGroups": range(6),
    "DeleteGroups": range(3),
    "OffsetDelete": range(1),
}
"""The versions that are sent. Kafka 4.4.0 has no older ones; those with topics' ids have cases of level 0."""


def only_if(condition: Callable[["GroupsMachine"], object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A rule that does nothing unless this holds.

    Hypothesis has preconditions, by which it chooses rules. But what holds here depends on what brokers make up, and is not
    the same if the same steps are taken once more.
    """

    def with_rule(taken: Callable[..., None]) -> Callable[..., None]:
        @wraps(taken)
        def taken_if(self: "GroupsMachine", *given: Any, **named: Any) -> None:
            if condition(self):
                taken(self, *given, **named)

        return taken_if

    return with_rule


class GroupsMachine(RuleBasedStateMachine):
    """Requests of members and of others about one group."""

    brokers: ClassVar[SideBySide]
    examples: ClassVar[int] = 0
    steps: ClassVar[int] = 0
    seen: ClassVar[Counter[str]] = Counter()
    """The answers, by API and error, and the freedoms that were taken."""

    @initialize(restarts=st.sampled_from([False] * 15 + [True]))
    def begin(self, restarts: bool) -> None:
        if self.brokers.settings:
            self.brokers.restart({}, in_order=True)
        self.may_restart = restarts
        self.joins = self.asked = 0
        self.members = [DrivenMember(number, self.brokers.connect()) for number in range(MEMBERS)]
        self._new_group()

    def _new_group(self) -> None:
        """Another group, which nobody has been in."""
        GroupsMachine.examples += 1
        self.group, self.state, self.offset = f"group-{self.examples}", "Dead", 0
        self.described: list[Told] = []
        self.is_modern = False
        for member in self.members:
            if member.waiting is not None:
                self._connect(member)
            member.member_id, member.epoch, member.owned, member.members = "", -1, (), ()
            member.by_heartbeat, member.instance = False, None

    def _connect(self, member: DrivenMember) -> None:
        for client in member.clients:
            client.close()
        member.clients, member.waiting = self.brokers.connect(), None

    def _leave_alone(self, why: str) -> None:
        self.seen[f"left alone: {why}"] += 1
        assert why in LEFT_ALONE
        self._new_group()

    def teardown(self) -> None:
        for member in getattr(self, "members", ()):
            for client in member.clients:
                client.close()

    # ---- parts of requests

    def _id(self, member: DrivenMember, who: str) -> str:
        if who == OTHERS:
            return self.members[member.number - 1].member_id
        return {OWN: member.member_id, EMPTY: "", UNKNOWN: "nobody"}[who]

    def _send(self, member: DrivenMember, api: str, version: int, **fields: Any) -> Request:
        return self.brokers.send(member.clients, api, version, member.client_id, **fields)

    def _call(self, member: DrivenMember, api: str, version: int, **fields: Any) -> Told:
        """Ask as a member what is answered at once; others may get their answers by that, too."""
        told = self.brokers.receive(self._send(member, api, version, **fields))
        self._count(api, told)
        self._settle()
        return told

    def _ask(self, api: str, version: int, **fields: Any) -> Told:
        told = self.brokers.ask(api, version, **fields)
        self._count(api, told)
        return told

    def _count(self, api: str, told: Told) -> None:
        for number in sorted(set(_errors(told))):
            self.seen[f"{api} {Error(number).name}"] += 1

    def _settle(self, must: DrivenMember | None = None) -> None:
        """Take the answers to requests that waited. `must`: a member that is answered whatever others do."""
        waiting = {member.waiting: member for member in self.members if member.waiting is not None}
        try:
            found = self.brokers.settle(waiting, self.group)
            if must is not None and must.waiting is not None and must.waiting not in [request for request, _ in found]:
                found.append((must.waiting, self.brokers.receive(must.waiting)))
        except FreedomTaken as freedom:
            self.seen[f"freedom {freedom}"] += 1
            self._new_group()
            return
        for request, told in found:
            member = waiting[request]
            member.waiting = None
            self._count(request.api, told)
            if request.api == "JoinGroup":
                self._joined(member, told)
            elif told["error_code"] == 0 and request.api == "SyncGroup":
                self.seen["assigned"] += bool(told["assignment"])

    def _joined(self, member: DrivenMember, told: Told) -> None:
        if told["member_id"] and told["error_code"] in (0, Error.MEMBER_ID_REQUIRED.value):
            made = told["member_id"]
            member.member_id = MadeUpId(made) if made.startswith("made-") else made
            if self.described and told["error_code"]:
                member.member_id = f"c{member.joined:04}-by-itself"
        if told["error_code"] == 0:
            member.epoch, member.by_heartbeat = told["generation_id"], False
            member.protocol = told["protocol_name"] or ""
            member.members = tuple(one["member_id"] for one in told["members"])

    def _is_made_up(self, member_id: str, instance: str | None) -> bool:
        """Whether a member that is not static would come into the consumer group under an id that a broker has made up."""
        ids = [one["member_id"] for one in self.described]
        return bool(ids) and instance is None and isinstance(member_id, MadeUpId) and member_id not in ids

    # ---- members of the classic protocol

    @rule(slot=SLOT, pick=PICK, who=WHO, static=st.booleans(), protocols=PROTOCOLS, topics=NAMES, layout=st.integers(0, 3))
    def join(
        self, slot: int, pick: int, who: str, static: bool, protocols: tuple[str, ...], topics: tuple[str, ...], layout: int
    ) -> None:
        member, version = self.members[slot], picked("JoinGroup", pick)
        if member.waiting is not None:
            return
        member_id = self._id(member, who)
        if not member_id:
            self.joins += 1
            member.joined = self.joins
        instance = f"instance-{slot % INSTANCES}" if static and version >= 5 else None
        kind = "connect" if protocols == ("eager",) else "consumer"
        if self.described and not member_id and instance is None and version < 4:
            return
        if self._is_made_up(member_id, instance):
            return
        fields: dict[str, Any] = {"group_id": self.group, "session_timeout_ms": SESSION_MS, "member_id": member_id}
        fields |= {"rebalance_timeout_ms": REBALANCE_MS, "protocol_type": kind}
        fields["protocols"] = [
            Message(name=name, metadata=subscription((layout + place) % 4, topics)) for place, name in enumerate(protocols)
        ]
        if version >= 5:
            fields["group_instance_id"] = instance
        member.instance, member.topics = instance, topics
        was_empty = self.state in ("Empty", "Dead")
        is_forgotten = bool(member_id) and self.is_modern and self.state == "Empty"
        member.waiting = self._send(member, "JoinGroup", version, **fields)
        self._settle(must=member if was_empty else None)
        if is_forgotten:
            self._leave_alone("a refused join")

    @rule(slot=SLOT, pick=PICK, who=WHO, ahead=AHEAD, lacking=st.sampled_from([False, False, False, True]))
    @only_if(lambda self: any(member.member_id for member in self.members))
    def sync(self, slot: int, pick: int, who: str, ahead: int, lacking: bool) -> None:
        member, version = self.members[slot], picked("SyncGroup", pick)
        if member.waiting is not None:
            return
        fields: dict[str, Any] = {"group_id": self.group, "generation_id": member.epoch + ahead}
        fields["member_id"] = self._id(member, who)
        if version >= 3:
            fields["group_instance_id"] = member.instance
        if version >= 5:
            fields |= {"protocol_type": "consumer", "protocol_name": member.protocol}
        fields["assignments"] = [] if lacking else self._assignments(member)
        member.waiting = self._send(member, "SyncGroup", version, **fields)
        self._settle()

    def _assignments(self, member: DrivenMember) -> list[Message]:
        """The assignments that a leader gives everybody: partitions in turns."""
        made = []
        for place, other in enumerate(member.members):
            parts = frozenset((topic, one) for topic in member.topics for one in range(place, 4, len(member.members)))
            member_id = MadeUpId(other) if other.startswith("made-") else other
            made.append(Message(member_id=member_id, assignment=write_assignment(0, parts)))
        return made

    @rule(pick=PICK, topics=NAMES, also_sync=st.sampled_from([True, True, False]))
    @only_if(lambda self: self.state not in ("Empty", "Dead"))
    def all_join(self, pick: int, topics: tuple[str, ...], also_sync: bool) -> None:
        """All members join again, and so a generation begins; and they take their assignments, the leader first."""
        group = self.group
        classic = [member for member in self.members if member.member_id and not member.by_heartbeat]
        for member in classic:
            self.join(member.number, pick, OWN, member.instance is not None, ("range",), topics, 1)
        for member in sorted(classic, key=lambda one: not one.members):
            if also_sync and self.group == group:
                self.sync(member.number, pick, OWN, 0, lacking=False)

    @rule(slot=SLOT, pick=PICK, who=WHO, ahead=AHEAD)
    @only_if(lambda self: any(member.member_id for member in self.members))
    def heartbeat(self, slot: int, pick: int, who: str, ahead: int) -> None:
        member, version = self.members[slot], picked("Heartbeat", pick)
        if member.waiting is not None:
            return
        fields: dict[str, Any] = {"generation_id": member.epoch + ahead, "member_id": self._id(member, who)}
        if version >= 3:
            fields["group_instance_id"] = member.instance
        self._call(member, "Heartbeat", version, group_id=self.group, **fields)

    @rule(slots=st.lists(SLOT, min_size=1, max_size=3, unique=True), pick=PICK, who=WHO, by_instance=st.booleans())
    @only_if(lambda self: any(member.member_id for member in self.members))
    def leave(self, slots: list[int], pick: int, who: str, by_instance: bool) -> None:
        leaving, version = [self.members[slot] for slot in slots], picked("LeaveGroup", pick)
        fields: dict[str, Any] = {"group_id": self.group}
        if version < 3:
            del leaving[1:]
            fields["member_id"] = self._id(leaving[0], who)
        else:
            fields["members"] = [
                Message(member_id="" if by_instance and one.instance else self._id(one, who), group_instance_id=one.instance)
                for one in leaving
            ]
        told = self._ask("LeaveGroup", version, **fields)
        self._settle()
        if not told["error_code"] and who == OWN:
            for one in leaving:
                if one.waiting is None and not one.by_heartbeat:
                    one.member_id, one.epoch = "", -1

    # ---- members by KIP-848

    @rule(slot=SLOT, pick=PICK, instance=INSTANCE, topics=NAMES, again=st.sampled_from(AGAIN), who=WHO, assignor=ASSIGNORS)
    def join_by_heartbeat(
        self,
        slot: int,
        pick: int,
        instance: int | None,
        topics: tuple[str, ...],
        again: str,
        who: str,
        assignor: str | None,
    ) -> None:
        """As a new member, as the one it has been, or as that with another instance id."""
        member = self.members[slot]
        if member.waiting is not None:
            return
        named = None if instance is None else f"instance-{(slot + instance) % INSTANCES}"
        if again == "new" or not member.by_heartbeat:
            self.joins += 1
            member.joined = self.joins
            member.member_id = f"m{member.joined:04}"
        if again != "same":
            member.instance = named
        member.by_heartbeat, member.epoch, member.topics = True, 0, topics
        self._beat(member, pick, 0, topics, who=who, assignor=assignor)

    @rule(slot=SLOT, pick=PICK, who=WHO, ahead=AHEAD, told=st.sampled_from(["all", "all", "nothing", "something"]))
    @only_if(lambda self: any(member.by_heartbeat for member in self.members))
    def beat(self, slot: int, pick: int, who: str, ahead: int, told: str) -> None:
        """A heartbeat with all that the member has been given, with nothing, or with nothing but its epoch."""
        member = self.members[slot]
        if member.waiting is not None:
            return
        owned = {"all": member.owned, "nothing": (), "something": None}[told]
        self._beat(member, pick, member.epoch + ahead, None, owned, who)

    @rule(slot=SLOT, pick=PICK, topics=NAMES)
    @only_if(lambda self: any(member.by_heartbeat for member in self.members))
    def subscribe(self, slot: int, pick: int, topics: tuple[str, ...]) -> None:
        member = self.members[slot]
        if member.waiting is None:
            member.topics = topics
            self._beat(member, pick, member.epoch, topics, member.owned)

    @rule(slot=SLOT, pick=PICK, epoch=st.sampled_from([-1, -1, -2, -3]), who=WHO)
    @only_if(lambda self: any(member.by_heartbeat for member in self.members))
    def leave_by_heartbeat(self, slot: int, pick: int, epoch: int, who: str) -> None:
        member = self.members[slot]
        if member.waiting is None:
            self._beat(member, pick, epoch, None, None, who)

    @rule(rounds=st.integers(1, 3))
    @only_if(lambda self: any(member.by_heartbeat for member in self.members))
    def all_beat(self, rounds: int) -> None:
        """All members say what they have, some times: so a rebalance goes on."""
        for _ in range(rounds):
            for member in self.members:
                if member.by_heartbeat and member.waiting is None:
                    self._beat(member, 0, member.epoch, None, member.owned)

    def _beat(
        self,
        member: DrivenMember,
        pick: int,
        epoch: int,
        topics: tuple[str, ...] | None,
        owned: tuple[tuple[str, tuple[int, ...]], ...] | None = (),
        who: str = OWN,
        assignor: str | None = None,
    ) -> None:
        version = picked("ConsumerGroupHeartbeat", pick)
        fields: dict[str, Any] = {"member_id": self._id(member, who), "member_epoch": epoch}
        fields |= {"instance_id": member.instance, "server_assignor": assignor}
        if topics is not None:
            fields |= {"subscribed_topic_names": list(topics), "rebalance_timeout_ms": REBALANCE_MS}
        if owned is not None:
            fields["topic_partitions"] = [Message(topic_id=NamedTopic(name), partitions=list(of)) for name, of in owned]
        else:
            fields["topic_partitions"] = None
        if not fields["member_id"] and version == 0 and epoch == 0:
            return
        if epoch == 0 and self._is_made_up(fields["member_id"], member.instance):
            return
        had = {one["member_id"]: one["instance_id"] for one in self.described}.get(fields["member_id"])
        told = self._call(member, "ConsumerGroupHeartbeat", version, group_id=self.group, **fields)
        if epoch == 0 and not told["error_code"] and None not in (had, member.instance) and had != member.instance:
            self._leave_alone("another instance")
            return
        if told["error_code"] or who != OWN:
            return
        member.epoch = told["member_epoch"]
        if told["assignment"] is not None:
            given = told["assignment"]["topic_partitions"]
            member.owned = tuple((one["topic_id"], tuple(one["partitions"])) for one in given)
        if epoch < 0:
            member.owned = ()

    # ---- offsets

    @rule(slot=SLOT, pick=PICK, who=WHO, ahead=AHEAD, alone=st.sampled_from([False, False, True]), topics=NAMES)
    def commit(self, slot: int, pick: int, who: str, ahead: int, alone: bool, topics: tuple[str, ...]) -> None:
        """As a member, or as a consumer without a group."""
        member, version = self.members[slot], picked("OffsetCommit", pick)
        self.offset += 1
        fields: dict[str, Any] = {"group_id": self.group, "topics": [self._commits(topic, version) for topic in topics]}
        fields["generation_id_or_member_epoch"] = -1 if alone else member.epoch + ahead
        fields["member_id"] = "" if alone else self._id(member, who)
        if version >= 7:
            fields["group_instance_id"] = None if alone else member.instance
        self._ask("OffsetCommit", version, **fields)

    def _commits(self, topic: str, version: int) -> Message:
        one = Message(partition_index=self.offset % 5, committed_offset=self.offset, committed_metadata=f"of {self.offset}")
        return Message(name=topic, partitions=[one])

    @rule(slot=SLOT, pick=PICK, who=WHO, ahead=AHEAD, alone=st.booleans(), topics=st.none() | NAMES)
    def fetch_offsets(self, slot: int, pick: int, who: str, ahead: int, alone: bool, topics: tuple[str, ...] | None) -> None:
        member, version = self.members[slot], picked("OffsetFetch", pick)
        wanted = None
        if topics is not None:
            wanted = [Message(name=topic, partition_indexes=[0, 1, 2, 3, 4]) for topic in topics]
        elif version < 2:
            return
        fields: dict[str, Any] = {"group_id": self.group, "topics": wanted}
        if version >= 8:
            if version >= 9 and not alone:
                fields |= {"member_id": self._id(member, who), "member_epoch": member.epoch + ahead}
            fields = {"groups": [Message(**fields)]}
        self._ask("OffsetFetch", version, **fields)

    @rule(topics=NAMES)
    @only_if(lambda self: self.offset)
    def delete_offsets(self, topics: tuple[str, ...]) -> None:
        parts = [Message(partition_index=one) for one in (0, 3, 7)]
        wanted = [Message(name=topic, partitions=parts) for topic in topics]
        self._ask("OffsetDelete", 0, group_id=self.group, topics=wanted)

    @rule(pick=PICK, more=st.booleans())
    @only_if(lambda self: self.state == "Empty" or self.asked % 7 == 0)
    def delete_group(self, pick: int, more: bool) -> None:
        names = [self.group, "group-nobody-has"] if more else [self.group]
        self._ask("DeleteGroups", picked("DeleteGroups", pick), groups_names=names)

    # ---- the brokers

    @rule(settings=st.sampled_from(SETTINGS), in_order=st.booleans())
    @only_if(lambda self: self.may_restart and self.asked > STEPS // 4)
    def restart(self, settings: dict[str, str], in_order: bool) -> None:
        """Both begin anew, by their logs, perhaps with other settings; who waited is not answered. Once is enough."""
        self.may_restart = False
        for member in self.members:
            for client in member.clients:
                client.close()
        self.brokers.restart(settings, in_order=in_order)
        for member in self.members:
            self._connect(member)
        self.seen["restarted"] += 1

    # ---- after each step

    @invariant()
    def both_describe_the_group_alike(self) -> None:
        if not hasattr(self, "group"):
            return
        GroupsMachine.steps += 1
        names = [self.group, "group-nobody-has"]
        self.asked += 1
        questions = (
            ("DescribeGroups", 5, {"groups": names}),
            ("DescribeGroups", picked("DescribeGroups", self.asked), {"groups": names}),
            ("ConsumerGroupDescribe", 1, {"group_ids": names}),
        )
        answers = self.brokers.ask_all(*questions)
        for (api, _, _), answer in zip(questions, answers, strict=True):
            self._count(api, answer)
        told, _, found = answers
        self.state = next(one for one in told["groups"] if one["group_id"] == self.group)["group_state"]
        modern: Told = next(one for one in found["groups"] if one["group_id"] == self.group)
        self.described, self.is_modern = modern["members"], not modern["error_code"]
        if self.is_modern:
            self.state = modern["group_state"]
            self.seen[f"consumer group {self.state}"] += 1
        else:
            self.seen[f"classic group {self.state}"] += 1
        self.brokers.list_groups(picked("ListGroups", self.asked), names)


def _errors(told: Told) -> Iterator[int]:
    """All errors in an answer."""
    if isinstance(told, dict):
        for name, value in told.items():
            yield from [value] if name == "error_code" else _errors(value)
    elif isinstance(told, list):
        for one in told:
            yield from _errors(one)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SideBySide]:
    folder = tmp_path_factory.mktemp("side-by-side")
    ours = [f"{name}={value}" for name, value in SHARED.items()]
    with (
        SingleKafka(jars_or_skip(NEWEST), folder / "kafka", {**SHARED, **KAFKAS_OWN}) as kafka,
        BrokerProcess(folder / "logs", "--release", "4.4", overrides=ours) as broker,
        SideBySide(broker, kafka, TOPICS) as both,
    ):
        both.prepare()
        yield both


@pytest.mark.slow
@pytest.mark.timeout(900 + 60 * EXAMPLES)
def test_every_answer_is_kafkas(brokers: SideBySide) -> None:
    GroupsMachine.brokers, GroupsMachine.steps = brokers, 0
    GroupsMachine.seen = Counter()
    checks = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=not is_night(),
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(GroupsMachine, settings=checks)
    assert GroupsMachine.steps > EXAMPLES * STEPS // 4, "hardly a step was taken"
    seen = {name.partition(" ")[0] for name in GroupsMachine.seen}
    assert seen >= {*VERSIONS} - {"ListGroups"}, "an API was never asked"
    assert {"consumer group Stable", "classic group CompletingRebalance"} <= {*GroupsMachine.seen}


def _first_offset(brokers: SideBySide, side: int, group: str) -> tuple[int, int]:
    """The error of the group, and the committed offset of the first partition, as a broker tells them."""
    asked = Message(group_id=group, topics=[Message(name="even", partition_indexes=[0])])
    (told,) = brokers.asking[side].call("OffsetFetch", 8, groups=[asked]).groups
    return told.error_code, told.topics[0].partitions[0].committed_offset


def _is_described(brokers: SideBySide, side: int, group: str) -> tuple[int, str, int]:
    (told,) = brokers.asking[side].call("ConsumerGroupDescribe", 1, group_ids=[group]).groups
    return told.error_code, told.group_state, told.group_epoch


@pytest.mark.slow
def test_a_refused_join_takes_an_empty_group_away(brokers: SideBySide) -> None:
    """Of Kafka until it starts again, of this broker never: docs/findings/refused-join.md."""
    if brokers.settings:
        brokers.restart({}, in_order=True)
    group, partition = "refused", Message(partition_index=0, committed_offset=42, committed_metadata="")
    subscribed = {"subscribed_topic_names": ["even"], "rebalance_timeout_ms": REBALANCE_MS, "topic_partitions": []}
    of_group = {"group_id": group, "member_id": "m"}
    joined = brokers.ask("ConsumerGroupHeartbeat", 1, **of_group, member_epoch=0, **subscribed)
    epoch, commits = joined["member_epoch"], [Message(name="even", partitions=[partition])]
    brokers.ask("OffsetCommit", 9, **of_group, generation_id_or_member_epoch=epoch, topics=commits)
    brokers.ask("ConsumerGroupHeartbeat", 1, **of_group, member_epoch=-1)
    fields: dict[str, Any] = {"group_id": group, "session_timeout_ms": SESSION_MS, "rebalance_timeout_ms": REBALANCE_MS}
    fields["protocols"] = [Message(name="range", metadata=subscription(1, ("even",)))]
    refused = brokers.ask("JoinGroup", 5, **fields, member_id="told-before", protocol_type="consumer")
    assert refused["error_code"] == Error.UNKNOWN_MEMBER_ID.value
    for number in range(12):  # some of these groups are in the same partition of the log
        brokers.ask("OffsetCommit", 2, group_id=f"other-{number}", topics=commits)
    empty, there = (0, "Empty", epoch + 1), (0, 42)
    assert (_is_described(brokers, OURS, group), _first_offset(brokers, OURS, group)) == (empty, there)
    wait_until(lambda: _first_offset(brokers, KAFKAS, group) == (0, -1))
    assert _is_described(brokers, KAFKAS, group)[0] == Error.GROUP_ID_NOT_FOUND.value
    brokers.restart({}, in_order=True)
    for side in (OURS, KAFKAS):
        assert (_is_described(brokers, side, group), _first_offset(brokers, side, group)) == (empty, there)
