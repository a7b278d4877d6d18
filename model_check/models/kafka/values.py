"""The values of the model's slots, in which no rule's input is missing and nothing stands that no rule can tell apart.

Sets stand where the protocol has lists in the order of ids, and nothing is optional: so brokers can be renamed by type.
"""

from enum import Enum
from typing import NamedTuple, TypeAlias

from model_check.models.parts import PARTITION
from spec.broker.partition import WaitingProduce
from spec.broker.rules.followers import Follower
from spec.broker.rules.lifecycle import BrokerLifecycle
from spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from spec.messages.fetch import FetchPosition, FetchRequest, FetchResponse
from spec.metadata import NOBODY, BrokerRegistration, LeaderRecoveryState
from spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NO_LEADER,
    NO_PARTITION_EPOCH,
    UNKNOWN_OFFSET,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    Offset,
    PartitionEpoch,
    Record,
)
from spec.zookeeper.protocol import LiveBroker


class Topic(NamedTuple):
    """A partition's registration without an order of preference: each election finds the order that it likes.

    See `spec.metadata.PartitionRegistration`.
    """

    replicas: frozenset[BrokerId] = NOBODY
    isr: frozenset[BrokerId] = NOBODY
    leader: BrokerId = NO_LEADER
    leader_epoch: Epoch = NO_EPOCH
    partition_epoch: PartitionEpoch = NO_PARTITION_EPOCH
    recovery: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    elr: frozenset[BrokerId] = NOBODY
    last_known_elr: frozenset[BrokerId] = NOBODY
    adding: frozenset[BrokerId] = NOBODY
    removing: frozenset[BrokerId] = NOBODY


NO_TOPIC = Topic()
"""Before the partition is created."""


class Cluster(NamedTuple):
    """What the controller holds: the image of the metadata log, and who is in controlled shutdown by its sessions."""

    topic: Topic
    brokers: frozenset[BrokerRegistration]
    leaving: frozenset[BrokerId] = NOBODY


FIRST_CONTROLLER = Epoch(0)
"""The controller epoch before any failover."""


class ZkCluster(NamedTuple):
    """What ZooKeeper holds, and what the controller that works on it remembers besides.

    `topic`: the partition's assignment and node, whose version is the partition epoch. `brokers`: the sessions of all
    brokers; `fenced` is one whose session has ended, so that its ephemeral node is gone. Of the controller: the brokers in
    controlled shutdown (`leaving`), those that it takes for `live`, and its own epoch.
    """

    topic: Topic
    brokers: frozenset[BrokerRegistration]
    leaving: frozenset[BrokerId] = NOBODY
    live: frozenset[LiveBroker] = frozenset()
    controller_epoch: Epoch = FIRST_CONTROLLER


AnyCluster: TypeAlias = Cluster | ZkCluster
"""What a KRaft controller holds, or ZooKeeper and its controller."""


class Told(Enum):
    """What a controller asks of a broker."""

    LEAD_OR_FOLLOW = "LeaderAndIsr"
    STOP_FETCHING = "StopReplica"
    GIVE_UP = "StopReplica, and delete"


class Order(NamedTuple):
    """A request of the controller that works on ZooKeeper, with what brokers look at in it."""

    told: Told
    controller_epoch: Epoch
    broker_epoch: BrokerEpoch
    topic: Topic


class Inbox(NamedTuple):
    """The requests of the controller that a broker has still to handle.

    `orders`: those of the present controller, one after the other. `stray`: the one that was under way when its predecessor
    was replaced; it may arrive before, between or after the others, or never.
    """

    orders: tuple[Order, ...] = ()
    stray: tuple[Order, ...] = ()


NO_ORDERS = Inbox()


class Image(NamedTuple):
    """What a broker takes from the metadata; the lists that only the controller reads are empty."""

    topic: Topic
    brokers: frozenset[BrokerRegistration]


class Change(NamedTuple):
    """What a broker finds when it takes what has arrived: its last image, and the next one."""

    before: Image
    after: Image


class Memory(NamedTuple):
    """What a leader keeps in memory: its followers, and the producers that wait for a commit."""

    followers: frozenset[Follower] = frozenset()
    waiting: frozenset[WaitingProduce] = frozenset()


NO_MEMORY = Memory()


class Process(NamedTuple):
    """A broker process, or what it has left behind.

    `life` is that of the present incarnation, or of the last one. `published`: it has taken its first image. `noted`: of a
    broker that is down, the broker epoch in its clean-shutdown file.
    """

    up: bool
    life: BrokerLifecycle
    published: bool = False
    noted: BrokerEpoch = NO_BROKER_EPOCH


class Under(Enum):
    """Where a request is."""

    NOTHING = "nothing is under way"
    SENT = "the request is under way"
    WRITTEN = "ZooKeeper has written, and the confirmation is lost"
    ANSWERED = "the answer is under way"


class Exchange(NamedTuple):
    """A leader's AlterPartition request: one at a time."""

    state: Under
    request: AlterPartitionRequest
    response: AlterPartitionResponse


NO_EXCHANGE = Exchange(
    Under.NOTHING,
    AlterPartitionRequest(NO_LEADER, NO_BROKER_EPOCH, PARTITION, NO_EPOCH, NO_PARTITION_EPOCH, frozenset()),
    AlterPartitionResponse(Error.NONE, PARTITION),
)


class LateFetch(NamedTuple):
    """A follower's fetch that takes long: whom it asks, what, and in which epoch it then followed; and the answer.

    `awaited`: the thread that sent it waits for the answer. It does not once its connection is lost, or its process gone.
    """

    state: Under = Under.NOTHING
    leader: BrokerId = NO_LEADER
    asked_in: Epoch = NO_EPOCH
    request: FetchRequest = FetchRequest(NO_LEADER, FetchPosition(NO_EPOCH, UNKNOWN_OFFSET, NO_EPOCH))
    answer: FetchResponse = FetchResponse(Error.NONE)
    awaited: bool = False


NOTHING_LATE = LateFetch()


class Placed(NamedTuple):
    """A record and its offset."""

    offset: Offset
    record: Record


class Clients(NamedTuple):
    """What producers were told is safe, and what consumers can have read. Only the model knows it; no rule reads it."""

    told: frozenset[Placed] = frozenset()
    read: frozenset[Placed] = frozenset()


NOTHING_SEEN = Clients()
