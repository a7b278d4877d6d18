"""All subjects."""

from conformance.wire.model.absent import ABSENT
from conformance.wire.model.frames import FRAMES
from conformance.wire.model.groups.members import MEMBERS, STATIC_MEMBERS
from conformance.wire.model.groups.offsets import OFFSETS
from conformance.wire.model.producer_ids import PRODUCER_IDS
from conformance.wire.model.producing import PRODUCING
from conformance.wire.model.reading import COMPACTED, LEADER_EPOCHS, READING
from conformance.wire.model.received import LIMITS_OF_A_TOPIC, RECEIVED
from conformance.wire.model.sessions import SESSIONS
from conformance.wire.model.topics import TOPICS

SUBJECTS = (
    FRAMES,
    ABSENT,
    PRODUCER_IDS,
    PRODUCING,
    RECEIVED,
    LIMITS_OF_A_TOPIC,
    READING,
    COMPACTED,
    LEADER_EPOCHS,
    SESSIONS,
    TOPICS,
    MEMBERS,
    STATIC_MEMBERS,
    OFFSETS,
)
