"""Mutants of the controller: one of its rules weakened, to show that the rule is needed."""

from kspec.spec.controller.rules import brokers, isr_proposals, partition_change
from kspec.spec.controller.rules.partition_change import Election, ElectionOutcome, PartitionTarget
from kspec.spec.messages.alter_partition import AlterPartitionRequest
from kspec.spec.metadata import BrokerRegistration, MetadataImage, PartitionRegistration
from kspec.spec.mutation import Mutant
from kspec.spec.values import NO_LEADER, BrokerId, Error, Offset


def elect_anybody(
    partition: PartitionRegistration,
    target: PartitionTarget,
    acceptable: frozenset[BrokerId],
    election: Election,
    last_known: bool,
) -> ElectionOutcome:
    """As `elect`, but with no replica in sync or eligible, elect any acceptable one as if that were clean."""
    elected = partition_change.elect(partition, target, acceptable, election, last_known)
    return elected if elected.leader != NO_LEADER else partition_change.elect_any(target, acceptable)._replace(unclean=False)


def check_leader_only(partition: PartitionRegistration, request: AlterPartitionRequest) -> Error:
    """As `check_proposer`, without the check of the partition epoch."""
    return isr_proposals.check_proposer(partition, request._replace(partition_epoch=partition.partition_epoch))


def opens_epoch_never(partition: PartitionRegistration, target: PartitionTarget) -> bool:
    """A change that keeps the leader opens no leader epoch."""
    return False


def caught_up_at_once(image: MetadataImage, registration: BrokerRegistration, metadata_offset: Offset) -> bool:
    """A broker may be unfenced without having replayed its registration."""
    return True


CONTROLLER_MUTANTS = (
    Mutant(
        "stale-broker-epoch-accepted",
        "eligible_for_isr",
        isr_proposals.active_is_eligible,
        "a replica joins the ISR by the fetch of an earlier incarnation (KIP-903)",
    ),
    Mutant(
        "fenced-replica-admitted",
        "eligible_for_isr",
        isr_proposals.anybody_is_eligible,
        "a replica joins the ISR even if its broker is fenced or shutting down (KIP-841)",
    ),
    Mutant(
        "stale-partition-epoch-accepted",
        "check_proposer",
        check_leader_only,
        "a proposal is accepted although the partition has changed since (KIP-497)",
    ),
    Mutant(
        "refusal-without-trace",
        "ends_refused",
        isr_proposals.refusal_changes_nothing,
        "a second copy of a refused proposal is granted",
    ),
    Mutant(
        "unclean-replica-keeps-its-place",
        "departure",
        brokers.new_incarnation_is_ignored,
        "a broker that comes back without its records stays in the ISR and eligible (KIP-966, KAFKA-18106)",
    ),
    Mutant(
        "election-outside-isr-and-elr",
        "elect",
        elect_anybody,
        "a replica that is neither in sync nor eligible is elected as if it were",
    ),
    Mutant(
        "last-known-leader-while-down",
        "last_known_leader",
        partition_change.last_known_leader_up_or_down,
        "the last leader is elected whether it is up or not (KAFKA-19522)",
    ),
    Mutant(
        "eligible-without-assignment",
        "eligible_leaders",
        partition_change.with_eligible_leaders,
        "a replica stays eligible after a reassignment has emptied it",
    ),
    Mutant(
        "reassignment-over-too-early",
        "complete_reassignment",
        partition_change.complete_when_added_are_in_sync,
        "a reassignment ends while replicas that stay are not in sync",
    ),
    Mutant(
        "no-epoch-for-a-smaller-assignment",
        "opens_epoch",
        opens_epoch_never,
        "a replica is removed without a new leader epoch",
    ),
    Mutant(
        "unfenced-before-caught-up",
        "caught_up",
        caught_up_at_once,
        "a broker is unfenced before it knows the metadata up to its own registration",
        traits=(("awaits_all_metadata", False),),
    ),
    Mutant(
        "second-registration-fences",
        "register_again",
        brokers.register_again_anew,
        "a repeated registration fences the broker, and leaves it in the ISR",
    ),
)
