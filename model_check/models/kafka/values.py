"""The values of the model's slots: all fields that rules read, and no others.

Sets replace the protocol's lists in the order of ids, and no field is optional, so that brokers can be renamed by type.
"""

from enum import Enum
from typing import NamedTuple, TypeAlias

from kspec.model_check.models.parts import PARTITION
from kspec.spec.broker.partition import WaitingProduce
from kspec.spec.broker.rules.followers import Follower
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kspec.spec.messages.fetch import FetchPosition, FetchRequest, FetchResponse
from kspec.spec.metadata import NOBODY, BrokerRegistration, LeaderRecoveryState
from kspec.spec.values import (
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
from kspec.spec.zookeeper.protocol import LiveBroker


class TopicRegistration(NamedTuple):
    """A partition's registration without an order of preference: each election chooses an order.

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


NO_TOPIC = TopicRegistration()
"""Before the partition is created."""


class ModelController(NamedTuple):
    """The state of the controller: the image of the metadata log, and the brokers in controlled shutdown by its sessions."""

    topic: TopicRegistration
    brokers: frozenset[BrokerRegistration]
    leaving: frozenset[BrokerId] = NOBODY


FIRST_CONTROLLER = Epoch(0)
"""The controller epoch before any failover."""


class ZkCluster(NamedTuple):
    """The content of ZooKeeper, and what the controller that works on it remembers besides.

    `topic`: the partition's assignment and node, whose version is the partition epoch. `brokers`: the sessions of all
    brokers; `fenced` is one whose session has ended, so that its ephemeral node is gone. Of the controller: the brokers in
    controlled shutdown (`leaving`), those that it takes for `live`, and its own epoch.
    """

    topic: TopicRegistration
    brokers: frozenset[BrokerRegistration]
    leaving: frozenset[BrokerId] = NOBODY
    live: frozenset[LiveBroker] = frozenset()
    controller_epoch: Epoch = FIRST_CONTROLLER


AnyCluster: TypeAlias = ModelController | ZkCluster
"""The state of a KRaft controller, or of ZooKeeper and its controller."""


class RequestKind(Enum):
    """The kind of a request of the ZooKeeper controller."""

    LEAD_OR_FOLLOW = "LeaderAndIsr"
    STOP_FETCHING = "StopReplica"
    GIVE_UP = "StopReplica, and delete"


class Order(NamedTuple):
    """A request of the ZooKeeper controller, with the fields that brokers read."""

    told: RequestKind
    controller_epoch: Epoch
    broker_epoch: BrokerEpoch
    topic: TopicRegistration


class Inbox(NamedTuple):
    """The requests of the controller that a broker has still to handle.

    `orders`: those of the present controller, one after the other. `stray`: the request that was under way when its
    predecessor was replaced; it may arrive before, between or after the others, or never.
    """

    orders: tuple[Order, ...] = ()
    stray: tuple[Order, ...] = ()


NO_ORDERS = Inbox()


class Image(NamedTuple):
    """The metadata that a broker takes; the lists that only the controller reads are empty."""

    topic: TopicRegistration
    brokers: frozenset[BrokerRegistration]


class MetadataChange(NamedTuple):
    """The input of a broker that takes new metadata: its last image, and the next one."""

    before: Image
    after: Image


class Memory(NamedTuple):
    """A leader's memory: its followers, and the producers that wait for a commit."""

    followers: frozenset[Follower] = frozenset()
    waiting: frozenset[WaitingProduce] = frozenset()


NO_MEMORY = Memory()


class Process(NamedTuple):
    """A broker process, or the files that it has left behind.

    `life` is the present incarnation, or the last one. `published`: it has taken its first image. `noted`: the broker epoch
    in the clean-shutdown file of a broker that is down.
    """

    up: bool
    life: BrokerLifecycle
    published: bool = False
    noted: BrokerEpoch = NO_BROKER_EPOCH


class RequestState(Enum):
    """The state of a request and its answer."""

    NOTHING = "nothing is under way"
    SENT = "the request is under way"
    WRITTEN = "ZooKeeper has written, and the confirmation is lost"
    ANSWERED = "the answer is under way"


class AlterPartitionExchange(NamedTuple):
    """A leader's AlterPartition request: one at a time."""

    state: RequestState
    request: AlterPartitionRequest
    response: AlterPartitionResponse


NO_EXCHANGE = AlterPartitionExchange(
    RequestState.NOTHING,
    AlterPartitionRequest(NO_LEADER, NO_BROKER_EPOCH, PARTITION, NO_EPOCH, NO_PARTITION_EPOCH, frozenset()),
    AlterPartitionResponse(Error.NONE, PARTITION),
)


class LateFetch(NamedTuple):
    """A follower's late fetch: the leader, the request, the epoch in which the follower sent it; and the answer.

    `awaited`: the thread that sent it waits for the answer, until its connection is lost or its process ends.
    """

    state: RequestState = RequestState.NOTHING
    leader: BrokerId = NO_LEADER
    asked_in: Epoch = NO_EPOCH
    request: FetchRequest = FetchRequest(NO_LEADER, FetchPosition(NO_EPOCH, UNKNOWN_OFFSET, NO_EPOCH))
    answer: FetchResponse = FetchResponse(Error.NONE)
    awaited: bool = False


NOTHING_LATE = LateFetch()


class PlacedRecord(NamedTuple):
    """A record and its offset."""

    offset: Offset
    record: Record


class ClientKnowledge(NamedTuple):
    """The acknowledged records, and the records that consumers can have read. No rule reads this."""

    told: frozenset[PlacedRecord] = frozenset()
    read: frozenset[PlacedRecord] = frozenset()


NOTHING_SEEN = ClientKnowledge()
