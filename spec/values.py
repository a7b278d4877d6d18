"""The values that the protocol is about: ids, epochs, offsets, records, messages, errors.

All are frozen and compare by content. Offsets are exclusive ends throughout, as in Kafka: a log end offset is the
offset of the *next* record, a high watermark is the offset of the first record that is *not* committed.
"""

from enum import Enum
from typing import NamedTuple, NewType

BrokerId = NewType("BrokerId", int)
"""A replica is named by the id of the broker that hosts it (`node.id`)."""


Offset = NewType("Offset", int)
"""A position in a log, counted in records from 0."""


Epoch = NewType("Epoch", int)
"""A leader epoch: grows by one with every leader (or controller-side ISR) change of the partition."""


PartitionEpoch = NewType("PartitionEpoch", int)
"""The version of a partition's registration: grows with every change of it, ISR changes included."""


BrokerEpoch = NewType("BrokerEpoch", int)
"""The number of one registration of a broker: the offset of its record in the metadata log."""


Incarnation = NewType("Incarnation", int)
"""One process of a broker, from its start to its stop. Kafka: the incarnation id, a random UUID; here a number."""


PartitionId = NewType("PartitionId", int)
"""Names a partition among all that a broker or controller knows. Kafka: topic id and partition index."""


ProducerId = NewType("ProducerId", int)
"""Names an idempotent producer."""


ProducerEpoch = NewType("ProducerEpoch", int)
"""Tells a producer from earlier producers with the same id: grows with each."""


TransactionalId = NewType("TransactionalId", str)
"""Names a producer of transactions over all its starts (`transactional.id`)."""


TopicId = NewType("TopicId", bytes)
"""Names a topic for ever: a topic that is created again under the same name gets another. 16 bytes. Kafka: `Uuid`."""


DirectoryId = NewType("DirectoryId", bytes)
"""Names a log directory for ever: one that is made anew, on an empty disk, gets another. 16 bytes. Kafka: `Uuid`."""


GroupId = NewType("GroupId", str)
"""Names a group of consumers (`group.id`)."""


MemberId = NewType("MemberId", str)
"""Names a member of a group. The coordinator gives it; a member that has none yet sends `NO_MEMBER_ID`."""


Generation = NewType("Generation", int)
"""The number of one assignment of a group: grows by one with every completed rebalance. Kafka: generation id."""

GroupEpoch = NewType("GroupEpoch", int)
"""A number that a consumer group counts up (KIP-848): its group epoch, its assignment epoch, a member's epoch."""


RequestNumber = NewType("RequestNumber", int)
"""The number that a connection's owner gives a request whose answer may come much later. Never on the wire."""

MonotonicMs = NewType("MonotonicMs", int)
"""A time in milliseconds by a clock that goes on evenly and never jumps: for time-outs, sessions, lags and back-offs.

It means something beside others of the same process only, so it is neither stored nor sent. It is counted from a moment that
was long before any process began, so that 0 is long ago, as it is for Kafka's rules. Kafka: `Time.hiResClockMs`,
`Time.nanoseconds`.
"""


TimestampMs = NewType("TimestampMs", int)
"""A time in milliseconds since 1970 by the wall clock of a node, which people may set: for what is written into records, and
compared with that. Kafka: `Time.milliseconds`.
"""


NO_TIMESTAMP = TimestampMs(-1)
"""Kafka: `RecordBatch.NO_TIMESTAMP`."""


class Instant(NamedTuple):
    """One moment by both clocks of a node."""

    monotonic: MonotonicMs
    timestamp: TimestampMs

    def after(self, ms: int) -> MonotonicMs:
        """The time when so many milliseconds have gone by from here."""
        return MonotonicMs(self.monotonic + ms)


NO_BROKER_EPOCH = BrokerEpoch(-1)
"""Absent broker epoch: the sender does not know it, or its release sends none."""

NO_LEADER = BrokerId(-1)
"""Kafka: `LeaderAndIsr.NoLeader`."""

NO_EPOCH = Epoch(-1)
"""Absent or undefined epoch. Kafka: `RecordBatch.NO_PARTITION_LEADER_EPOCH`, `UNDEFINED_EPOCH`."""

NO_VALUE = -1
"""The value of a record where a log does not hold values, or holds no record."""

UNKNOWN_OFFSET = Offset(-1)
"""Absent or undefined offset. Kafka: `UnifiedLog.UnknownOffset`, `UNDEFINED_EPOCH_OFFSET`."""

NO_PRODUCER_ID = ProducerId(-1)
"""The producer id of a batch whose producer is not idempotent. Kafka: `RecordBatch.NO_PRODUCER_ID`."""

NO_PRODUCER_EPOCH = ProducerEpoch(-1)
NO_SEQUENCE = -1


NO_DIRECTORY = DirectoryId(bytes(16))
"""The directory is not known. Kafka: `ReplicaKey.NO_DIRECTORY_ID`."""


class ReplicaKey(NamedTuple):
    """A replica of the metadata log: the id of its server, and the directory that its log is in (KIP-853).

    So a server that comes back with an empty disk is another replica. The directory is `NO_DIRECTORY` in a voter set of
    `kraft.version` 0, and in requests of releases before 3.9. Kafka: `ReplicaKey`.
    """

    id: BrokerId
    directory: DirectoryId = NO_DIRECTORY


NO_REPLICA = ReplicaKey(NO_LEADER)
"""Nobody. Kafka: an empty `Optional<ReplicaKey>`."""

NO_TOPIC_ID = TopicId(bytes(16))
"""The topic is named by its name alone. Kafka: `Uuid.ZERO_UUID`."""

NO_MEMBER_ID = MemberId("")
"""Kafka: `JoinGroupRequest.UNKNOWN_MEMBER_ID`."""

NO_GROUP_EPOCH = GroupEpoch(0)
"""The epochs of a consumer group of which nothing is known."""

NO_GENERATION = Generation(-1)
"""The generation of a commit that comes from no member. Kafka: `OffsetCommitRequest.DEFAULT_GENERATION_ID`."""


LAST_PRODUCER_EPOCH = ProducerEpoch(2**15 - 1)
"""The largest producer epoch. No client is told it: it is kept for the coordinator, to fence a producer with."""


class Error(Enum):
    """A refusal, by Kafka's own name and wire code. Kafka: `org.apache.kafka.common.protocol.Errors`."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    UNKNOWN_PRODUCER_ID = 59
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INVALID_UPDATE_VERSION = 95
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    UNEXPECTED_APPEND_OFFSET = "never leaves a broker: the leader sent records that the follower has already"
    LOG_TRUNCATION = "proposed in the first draft of KIP-320, never released"


class Record(NamedTuple):
    """One record as replication sees it: its value, and the leader epoch in which it was written.

    It counts as a batch of one record from a producer that is not idempotent (`spec.log.batch`).
    """

    value: int
    leader_epoch: Epoch

    @property
    def record_count(self) -> int:
        """As a batch: one record."""
        return 1

    @property
    def records(self) -> tuple["Record", ...]:
        """As a batch: itself."""
        return (self,)

    @property
    def producer_id(self) -> ProducerId:
        """As a batch: none, its producer is not idempotent."""
        return NO_PRODUCER_ID

    @property
    def producer_epoch(self) -> ProducerEpoch:
        """As a batch: none."""
        return NO_PRODUCER_EPOCH

    @property
    def first_sequence(self) -> int:
        """As a batch: none."""
        return NO_SEQUENCE

    @property
    def is_transactional(self) -> bool:
        """As a batch: it is not."""
        return False

    @property
    def marker(self) -> None:
        """As a batch: it ends no transaction."""
        return None

    def in_epoch(self, leader_epoch: Epoch) -> "Record":
        """The record with the leader epoch in which a leader appends it."""
        return self._replace(leader_epoch=leader_epoch)


class EpochEndOffset(NamedTuple):
    """The answer to "where does epoch E end in your log?": an epoch and its (exclusive) end offset.

    Kafka: `OffsetForLeaderEpochResponseData.EpochEndOffset`.
    """

    leader_epoch: Epoch
    end_offset: Offset


UNDEFINED_EPOCH_END = EpochEndOffset(NO_EPOCH, UNKNOWN_OFFSET)


class LeaderAndIsr(NamedTuple):
    """A partition's leader, its leader epoch, and its in-sync replicas.

    Three places hold one: the controller's (or ZooKeeper's) state of the partition, the request that announces it, and the
    last announcement that a replica has accepted. Kafka: `LeaderAndIsr`.
    """

    leader: BrokerId
    leader_epoch: Epoch
    isr: frozenset[BrokerId]


def next_epoch(leader_epoch: Epoch) -> Epoch:
    """The leader epoch after this one. **Kafka:** `LeaderAndIsr.newEpoch`, `PartitionRegistration.merge`."""
    return Epoch(leader_epoch + 1)


NO_PARTITION_EPOCH = PartitionEpoch(-1)


def next_partition_epoch(partition_epoch: PartitionEpoch) -> PartitionEpoch:
    """The partition epoch after this one. **Kafka:** `PartitionRegistration.merge`; in ZooKeeper the node's version."""
    return PartitionEpoch(partition_epoch + 1)
