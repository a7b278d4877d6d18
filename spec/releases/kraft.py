"""The history of Kafka's KRaft controller: each release is the one before with some rules replaced.

From 4.0 on, the rules were read from kafka-metadata's jars: 4.0.0 to 4.0.2, 4.1.0 to 4.1.2, 4.2.0 to 4.2.2, 4.3.0, 4.3.1,
and 4.4.0.
"""

from dataclasses import replace

from kspec.spec.controller.protocol import ControllerProtocol, eligible_leaders_as_configured, without_eligible_leaders
from kspec.spec.controller.rules import brokers, isr_proposals, partition_change
from kspec.spec.metadata import is_active, is_unfenced

KRAFT_3_0 = ControllerProtocol(
    name="3.0",
    may_lead=is_unfenced,
    elr_enabled=without_eligible_leaders,
    eligible_leaders=partition_change.with_eligible_leaders,
    complete_reassignment=partition_change.complete_when_added_are_in_sync,
    elect=partition_change.elect_first_in_sync,
    last_known_leader=partition_change.last_known_leader_never,
    remembers_leader=partition_change.record_last_known_leader,
    marks_recovering=partition_change.never_recovering,
    opens_epoch=partition_change.removes_replica_or_shrinks_isr,
    check_controller_ahead=isr_proposals.controller_knows_best,
    check_proposer=isr_proposals.check_proposer,
    eligible_for_isr=isr_proposals.anybody_is_eligible,
    moved_away=isr_proposals.moved_away_as_fenced,
    ends_refused=isr_proposals.refusal_changes_nothing,
    register_again=brokers.register_again_anew,
    valid_session=brokers.is_valid_session,
    heard_at_registration=brokers.registration_is_contact,
    departure=brokers.new_incarnation_is_ignored,
    caught_up=brokers.caught_up_with_all,
    may_unfence=brokers.unfences_whoever_asks,
    marks_shutdown=brokers.marks_shutdown_never,
    shutdown_offset=brokers.shutdown_offset_of_last_heartbeat,
    awaits_all_metadata=True,
)
"""3.0 and 3.1: the first KRaft controllers (KIP-500)."""

KRAFT_3_2 = replace(
    KRAFT_3_0, name="3.2", elect=partition_change.elect, marks_recovering=partition_change.recovering_unless_already
)
"""3.2: an acceptable leader stays; unclean elections set a recovery state (KIP-704)."""

KRAFT_3_3 = replace(
    KRAFT_3_2,
    name="3.3",
    may_lead=is_active,
    check_controller_ahead=isr_proposals.controller_may_be_behind,
    eligible_for_isr=isr_proposals.active_is_eligible,
    moved_away=isr_proposals.moved_away_as_new_leader,
    caught_up=brokers.caught_up_with_registration,
    awaits_all_metadata=False,
    marks_shutdown=brokers.marks_shutdown_once,
)
"""3.3: fenced brokers, and those in controlled shutdown, neither lead nor join (KIP-841)."""

KRAFT_3_4 = replace(KRAFT_3_3, name="3.4", shutdown_offset=brokers.shutdown_offset_of_first_heartbeat)
"""3.4: a controlled shutdown ends on a busy log, too (KAFKA-14292, in 3.3.2)."""

KRAFT_3_5 = replace(KRAFT_3_4, name="3.5", eligible_for_isr=isr_proposals.same_broker_epoch_is_eligible)
"""3.5: proposals carry broker epochs (KIP-903)."""

KRAFT_3_6 = replace(KRAFT_3_5, name="3.6", opens_epoch=partition_change.removes_replica)
"""3.6 and 3.7: a shrinking ISR no longer opens a leader epoch (KAFKA-15021)."""

KRAFT_3_8 = replace(
    KRAFT_3_6,
    name="3.8",
    complete_reassignment=partition_change.complete_when_all_are_in_sync,
    register_again=brokers.register_again_with_new_epoch,
)
"""3.8: a reassignment waits for all replicas that stay. An incarnation that registers twice stays unfenced (KAFKA-16757, in
3.7.1)."""

KRAFT_3_9 = replace(KRAFT_3_8, name="3.9", register_again=brokers.register_again_as_is)
"""3.9: an incarnation that registers twice keeps its broker epoch."""

KRAFT_4_0 = replace(
    KRAFT_3_9,
    name="4.0",
    elr_enabled=eligible_leaders_as_configured,
    last_known_leader=partition_change.last_known_leader_up_or_down,
    departure=brokers.new_incarnation_is_clean_if_it_says_so,
    valid_session=brokers.is_valid_session_fenced_or_not,
    heard_at_registration=brokers.heartbeats_are_contact,
)
"""4.0: eligible leader replicas (KIP-966), which a new cluster does not have unless it is formatted with them. A new
incarnation of a broker leaves the ISRs of the incarnation before (KAFKA-18106); it may say that this one stopped cleanly
(KAFKA-18635). A session lasts whether its broker is fenced or not."""

KRAFT_4_1 = replace(KRAFT_4_0, name="4.1", last_known_leader=partition_change.last_known_leader_if_up)
"""4.1: the last known leader must be up (KAFKA-19522). New clusters have eligible leader replicas."""

KRAFT_4_1_1 = replace(KRAFT_4_1, name="4.1.1", remembers_leader=partition_change.record_last_known_leader_once)
"""4.1.1 and 4.2: the last known leader is remembered from the loss of the leader to the next election."""

KRAFT_4_3 = replace(
    KRAFT_4_1_1, name="4.3", complete_reassignment=partition_change.complete_when_added_are_in_sync_unless_fewer_stay
)
"""4.3 and 4.4: a reassignment waits for the added replicas; for all only if it adds fewer than it removes (KAFKA-19975)."""

NEWEST = KRAFT_4_3
"""The rules of the newest release."""

KRAFT_NEXT = replace(
    NEWEST,
    name="next",
    eligible_leaders=partition_change.with_assigned_eligible_leaders,
    last_known_leader=partition_change.last_known_leader_if_assigned,
    ends_refused=isr_proposals.refusal_ends_proposal,
    complete_reassignment=partition_change.complete_when_added_that_stay_are_in_sync,
    valid_session=brokers.is_valid_session,
    heard_at_registration=brokers.registration_is_contact,
    may_unfence=brokers.unfences_who_is_not_stopping,
)
"""The newest release with its known defects repaired.

Only assigned replicas are eligible, or remembered as last known; a proposal is refused for good; a reassignment that takes
back an added replica comes to an end. A broker in controlled shutdown stays fenced until it registers anew. A session is
over when its broker is fenced, as up to 3.9: a broker that starts again while it was fenced need not wait.
"""

KRAFT_RELEASES: tuple[ControllerProtocol, ...] = tuple(
    release for name, release in vars().items() if name.startswith("KRAFT_")
)
"""The releases above, the oldest first."""
