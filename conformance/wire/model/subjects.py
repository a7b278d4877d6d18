"""All subjects."""

from kspec.conformance.wire.model.anew import MADE_ANEW
from kspec.conformance.wire.model.append_time import APPEND_TIME
from kspec.conformance.wire.model.fetches.forgetting import FORGETTING
from kspec.conformance.wire.model.fetches.sessions import SESSIONS
from kspec.conformance.wire.model.fetches.sizes import SIZES
from kspec.conformance.wire.model.fetches.waiting import WAITING
from kspec.conformance.wire.model.frames import FRAMES
from kspec.conformance.wire.model.groups.consumers import CONSUMERS, CONSUMERS_OFFSETS, STATIC_CONSUMERS
from kspec.conformance.wire.model.groups.conversion import CONVERSION
from kspec.conformance.wire.model.groups.deleted_topics import OFFSETS_OF_DELETED
from kspec.conformance.wire.model.groups.members import CHOSEN_PROTOCOLS, MEMBERS, SESSION_LIMITS, STATIC_MEMBERS
from kspec.conformance.wire.model.groups.offsets import MEMBERS_AGAIN, OFFSETS, OFFSETS_AGAIN
from kspec.conformance.wire.model.groups.silence import SILENT_MEMBERS, WAITING_MEMBERS
from kspec.conformance.wire.model.producer_ids import PRODUCER_IDS, PRODUCER_IDS_AGAIN
from kspec.conformance.wire.model.producing import CUT_SEQUENCES, PRODUCING, PRODUCING_AGAIN, SEQUENCE_NUMBERS
from kspec.conformance.wire.model.reading.logs import COMPACTED, LEADER_EPOCHS, READING, READING_AGAIN, TIMES
from kspec.conformance.wire.model.received.headers import LIMITS_OF_A_TOPIC, RECEIVED
from kspec.conformance.wire.model.received.records import RECORDS_INSIDE, STAMPED_RECORDS
from kspec.conformance.wire.model.several.groups import SEVERAL_GROUPS
from kspec.conformance.wire.model.several.nothing import NOTHING
from kspec.conformance.wire.model.several.partitions import SEVERAL_PARTITIONS
from kspec.conformance.wire.model.topics.absent import ABSENT
from kspec.conformance.wire.model.topics.metadata import METADATA
from kspec.conformance.wire.model.topics.pages import DESCRIBED
from kspec.conformance.wire.model.topics.settings import SETTINGS_AGAIN, SETTINGS_OF_TOPICS
from kspec.conformance.wire.model.topics.topics import TOPICS, TOPICS_AGAIN
from kspec.conformance.wire.model.transactions.identifiers import TRANSACTIONAL_IDS, TRANSACTIONAL_IDS_AGAIN
from kspec.conformance.wire.model.transactions.listing import TWO_TRANSACTIONAL_IDS
from kspec.conformance.wire.model.transactions.markers import MARKERS
from kspec.conformance.wire.model.transactions.offsets import TRANSACTIONAL_OFFSETS
from kspec.conformance.wire.model.transactions.records import (
    ADDED_TRANSACTIONS,
    ADDED_TRANSACTIONS_AGAIN,
    INTERLEAVED,
    TRANSACTIONS,
    TRANSACTIONS_AGAIN,
)

SUBJECTS = (
    FRAMES,
    ABSENT,
    PRODUCER_IDS,
    PRODUCER_IDS_AGAIN,
    PRODUCING,
    SEQUENCE_NUMBERS,
    PRODUCING_AGAIN,
    CUT_SEQUENCES,
    RECEIVED,
    LIMITS_OF_A_TOPIC,
    RECORDS_INSIDE,
    STAMPED_RECORDS,
    READING,
    READING_AGAIN,
    TIMES,
    COMPACTED,
    LEADER_EPOCHS,
    APPEND_TIME,
    SIZES,
    WAITING,
    SESSIONS,
    FORGETTING,
    TOPICS,
    TOPICS_AGAIN,
    MEMBERS,
    STATIC_MEMBERS,
    SESSION_LIMITS,
    CHOSEN_PROTOCOLS,
    SILENT_MEMBERS,
    WAITING_MEMBERS,
    OFFSETS,
    OFFSETS_AGAIN,
    MEMBERS_AGAIN,
    OFFSETS_OF_DELETED,
    CONSUMERS,
    STATIC_CONSUMERS,
    CONSUMERS_OFFSETS,
    CONVERSION,
    METADATA,
    DESCRIBED,
    MADE_ANEW,
    SETTINGS_OF_TOPICS,
    SETTINGS_AGAIN,
    NOTHING,
    SEVERAL_PARTITIONS,
    SEVERAL_GROUPS,
    TRANSACTIONAL_IDS,
    TRANSACTIONAL_IDS_AGAIN,
    TWO_TRANSACTIONAL_IDS,
    TRANSACTIONS,
    ADDED_TRANSACTIONS,
    INTERLEAVED,
    TRANSACTIONS_AGAIN,
    ADDED_TRANSACTIONS_AGAIN,
    MARKERS,
    TRANSACTIONAL_OFFSETS,
)
