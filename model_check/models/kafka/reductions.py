"""The reductions of the model `kafka`: it leaves out states and steps on which no checked property depends.

Each reduction merges states, or leaves steps out. Its argument is given here. It can be switched off separately
(`--without-reduction NAME`): a test compares verdicts and the lengths of counterexamples with and without it.
"""

from enum import Enum
from typing import NamedTuple

from kspec.model_check.models.kafka.cluster import is_registration_of
from kspec.model_check.models.kafka.values import (
    NO_EXCHANGE,
    NO_TOPIC,
    AlterPartitionExchange,
    Image,
    ModelController,
    Order,
    RequestKind,
    TopicRegistration,
)
from kspec.model_check.models.parts import NO_ROLE
from kspec.spec.broker.effects import Effect
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.fetcher import FetchState
from kspec.spec.broker.rules.isr.errors import AfterError
from kspec.spec.broker.rules.isr.proposal import LeaderIsr
from kspec.spec.metadata import NOBODY, BrokerRegistration
from kspec.spec.values import NO_EPOCH, NO_LEADER, BrokerId, Epoch, Error, PartitionEpoch, next_epoch


class Reduction(Enum):
    """A reduction, by the name that switches it off."""

    UNREAD_FIELDS = "unread-fields"
    """A broker keeps only what its rules look at: of metadata, of the controller's requests, of its role, of its fetcher.

    A follower asks who leads since when, and whether it has a replica itself, in sync or not. ISR, assignment and partition
    epoch are a leader's business. A replica that begins to lead gets them all, with a later partition epoch than any that it
    has seen. So two states that differ only in such a field have the same steps, and these lead to states that differ only
    in such fields.
    """

    IDLE_IMAGES = "idle-images"
    """A broker reads metadata at once that require no new step of it.

    Unread metadata only disable steps. If the later image requires no step that the earlier one did not require, the broker
    may do after reading it everything that it may do before.
    """

    EARLY_FOLLOWING = "early-following"
    """A broker begins to follow a leader only when that leader leads in the epoch.

    Before, the leader would refuse every request. A broker that has not read yet may do all that one which has begun to
    follow may, so it can wait. This is not so, and not done, where beginning to follow cuts the log at once, where the
    controller asks who has read, and for a leader that relies on what it knew of its followers unless it has followed since.
    """

    VAIN_PROPOSALS = "vain-proposals"
    """A proposal for the ISR vanishes when the controller can only refuse it, and the refusal does not change the leader.

    Leader epochs and partition epochs only grow, so an outdated proposal stays outdated. The leader waits for metadata
    before and after the answer: the answer does not change it, and a lost answer is one that is never taken. A second copy
    of a request vanishes when it is outdated: nobody gets its answer.
    """

    IDLE_ANSWERS = "idle-answers"
    """An answer about the ISR that does not change the leader is lost when it is given.

    Taking it changes nothing and sends nothing. It does not change the leader later either: its proposal may be superseded
    in between, and then the answer is ignored.
    """

    LOST_ANSWERS = "lost-answers"
    """The answer to a granted proposal is lost only if the answer to a repeated request would change the leader.

    The controller answers a repeated proposal, which it has granted already, with an outdated partition epoch or leader
    epoch. If the leader then waits for metadata, as it does without an answer, a lost answer is one that is never taken.
    """

    REPEATED_REQUESTS = "repeated-requests"
    """A request of the controller that repeats the one before it is left out (up to 2.8).

    A broker that has handled the first ignores the second.
    """

    LONE_TRUNCATION = "lone-truncation"
    """A follower whose log has no epoch truncates it in the step in which it begins to follow.

    It cannot ask its leader, so it needs no answer. No other party reads the truncated records before: a follower serves no
    fetch.
    """


ALL_REDUCTIONS = frozenset(Reduction)


# ---- fields that nobody reads


LATER = 1_000
"""Partition epochs from here on are later than any that a broker leads with."""


def image_for(broker: BrokerId, cluster: ModelController, remembers: bool) -> Image:
    """The parts of the metadata that `broker` uses: see `Reduction.UNREAD_FIELDS`.

    A leader takes all fields of its partition except the lists that only the controller reads. Another broker takes only the
    leader, the leader epoch, and whether it has a replica, in sync or not. The number in place of the partition epoch
    differs where these differ, and is later than any partition epoch with which the broker led. A broker that `remembers`
    metadata over a restart also takes its own registration.
    """
    topic = cluster.topic
    if topic.leader == broker:
        public = topic._replace(recovery=NO_TOPIC.recovery, elr=NOBODY, last_known_elr=NOBODY)
        return Image(public, cluster.brokers)
    own = frozenset(entry for entry in cluster.brokers if remembers and is_registration_of(entry, broker))
    if topic == NO_TOPIC:
        return Image(NO_TOPIC, own)
    hosts = topic.replicas & {broker}
    known = NO_TOPIC._replace(
        replicas=hosts,
        isr=topic.isr & {broker},
        leader=topic.leader,
        leader_epoch=topic.leader_epoch,
        partition_epoch=PartitionEpoch(LATER + 2 * topic.leader_epoch + len(hosts)),
    )
    return Image(known, own)


def order_for(broker: BrokerId, order: Order) -> Order:
    """The parts of a request that `broker` reads: the leader and the leader epoch; if it leads itself, all."""
    topic = order.topic
    if order.told != RequestKind.LEAD_OR_FOLLOW or topic.leader == broker:
        return order
    known = NO_TOPIC._replace(replicas=frozenset({broker}), leader=topic.leader, leader_epoch=topic.leader_epoch)
    return order._replace(topic=known)


def isr_in_role(isr: LeaderIsr, leads: bool) -> LeaderIsr:
    """The announced ISR with its partition epoch as a replica keeps it: a follower keeps none."""
    return isr if leads else NO_ROLE.isr


def without_unread_answer(fetcher: FetchState, protocol: BrokerProtocol) -> FetchState:
    """The fetcher without the field `answered`, where no rule reads it."""
    return fetcher._replace(answered=fetcher.answered and protocol.last_epoch_needs_answer)


# ---- metadata that ask nothing


def is_same_to(broker: BrokerId, image: Image, following: Image) -> bool:
    """Whether a broker that has taken an image does nothing about the following one: see `Reduction.IDLE_IMAGES`.

    (One thing that Kafka does is left out: a broker in controlled shutdown stops fetching once it is out of the ISR. Here it
    may as well never fetch again.)
    """
    one, other = image.topic, following.topic
    if broker in (one.leader, other.leader):
        return one == other and _only_unfenced(image.brokers, following.brokers)
    return one.partition_epoch == other.partition_epoch


def _only_unfenced(brokers: frozenset[BrokerRegistration], following: frozenset[BrokerRegistration]) -> bool:
    """Whether the only change is that brokers are unfenced.

    A leader learns that at once: the controller could have made the decision at that moment.
    """
    changed = following - brokers
    return {entry._replace(fenced=True) for entry in changed} == brokers - following


class LeaderToFollow(NamedTuple):
    """The leader that an image makes a broker follow, with its epoch; or that the image requires another step."""

    leader: BrokerId
    leader_epoch: Epoch
    otherwise: bool = False


def followed_in(topic: TopicRegistration, replica: BrokerId) -> LeaderToFollow:
    """The leader that metadata with this partition make a replica follow."""
    if topic.leader == replica or replica not in topic.replicas:
        return LeaderToFollow(NO_LEADER, NO_EPOCH, otherwise=True)
    return LeaderToFollow(topic.leader, topic.leader_epoch)


def may_wait_to_follow(protocol: BrokerProtocol, controller_awaits_all: bool) -> bool:
    """Whether the rules of broker and controller allow the reduction: see `Reduction.EARLY_FOLLOWING`."""
    return not protocol.truncates_at_once and not controller_awaits_all


def is_time_to_follow(protocol: BrokerProtocol, following: LeaderToFollow, leads_in: Epoch, own: Epoch) -> bool:
    """Whether a replica begins to follow: see `Reduction.EARLY_FOLLOWING`.

    `leads_in`: the epoch in which the leader leads; `own`: the epoch in which the replica itself leads. The first epoch in
    which the replica may lead again is the one after it has followed.
    """
    again = next_epoch(following.leader_epoch)
    relies = own != NO_EPOCH and protocol.knows_followers(True, own, again)
    return following.otherwise or following.leader_epoch == leads_in or relies


# ---- proposals and answers that tell nothing


OUT_OF_DATE = (Error.FENCED_LEADER_EPOCH, Error.INVALID_UPDATE_VERSION)
"""The controller's answers to an outdated proposal, now and at all later times."""


def unless_in_vain(exchange: AlterPartitionExchange, error: Error, protocol: BrokerProtocol) -> AlterPartitionExchange:
    """A proposal that is under way, unless what the controller would answer makes it one of `Reduction.VAIN_PROPOSALS`."""
    in_vain = error in OUT_OF_DATE and protocol.on_isr_error(error) == AfterError.AWAIT_METADATA
    return NO_EXCHANGE if in_vain else exchange


def tells_something(before: LeaderIsr, after: LeaderIsr, effects: tuple[Effect, ...]) -> bool:
    """Whether an answer changes the leader, or has effects: see `Reduction.IDLE_ANSWERS`."""
    return before != after or bool(effects)


def may_miss_answers(protocol: BrokerProtocol) -> bool:
    """Whether the answer to a repeated request would not change a leader whose proposal was granted: see
    `Reduction.LOST_ANSWERS`.
    """
    return all(protocol.on_isr_error(error) == AfterError.AWAIT_METADATA for error in OUT_OF_DATE)


# ---- requests up to 2.8


def repeats(order: Order, waiting: tuple[Order, ...]) -> bool:
    """Whether a request only repeats the last one that waits: see `Reduction.REPEATED_REQUESTS`."""
    return waiting[-1:] == (order,)
