"""Mutants of the group coordinator, and of consumers: one rule weakened, to show that the rule is needed."""

from collections.abc import Set as AbstractSet

from kspec.spec.consumer import rules
from kspec.spec.coordinator.group import Group
from kspec.spec.coordinator.modern.replaying import Owners
from kspec.spec.coordinator.modern.state import AssignedPartition, ConsumerGroupMember, places
from kspec.spec.coordinator.rules import consumers, runtime
from kspec.spec.coordinator.rules.consumers import Places
from kspec.spec.mutation import Mutant
from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import NO_MEMBER_ID, MemberId


def answers_at_once(end: int, committed: int) -> bool:
    """Nothing waits until the log is committed."""
    return True


def reads_what_is_known(is_stable: bool, is_loaded: bool) -> bool:
    """A read that does not ask for stable offsets waits for nothing."""
    return not is_stable


def offsets_as_committed(latest: Group, committed: Group) -> Group:
    """A step is taken on the offsets that are committed, and what others have written meanwhile is gone after it."""
    return latest._replace(offsets=committed.offsets, pending_offsets=committed.pending_offsets)


def is_any_generation(asked: int, present: int) -> bool:
    """A request of any generation counts."""
    return True


def generation_stays(generation: int) -> int:
    """A generation begins with the number of the one before."""
    return max(generation, 1)


def nobody_is_left_behind(has_joined: bool, is_static: bool) -> bool:
    """A member that has not joined is in the next generation all the same."""
    return False


def hears_nobody(waits: bool, is_new: bool) -> bool:
    """A member whose session ends is out, though it waits for an answer."""
    return False


def commits_any_time(completing: bool) -> bool:
    """A member may commit before its generation has an assignment."""
    return True


def counts_always(is_present: bool) -> bool:
    """An error counts whose request was sent in an earlier generation."""
    return True


def keeps_id_always(is_known: bool) -> bool:
    """A member keeps an id that the coordinator does not know."""
    return True


def keeps_id_never(is_known: bool) -> bool:
    """A member that is out of its generation takes a new id."""
    return False


def free_though_owned(wanted: Places, owned_by_any: AbstractSet[TopicIdPartition], own_pending: Places) -> Places:
    """A member gets what it is to have, whoever has it."""
    return wanted


def assigned_and_pending_by_themselves(owners: Owners, before: ConsumerGroupMember, after: ConsumerGroupMember) -> Owners:
    """A member owns first what it is assigned, then what it has to give up: of what it is given back the entry is lost."""
    for had, has in ((before.assigned, after.assigned), (before.pending, after.pending)):
        if places(had) != places(has):
            kept = frozenset(one for one in owners if one.place not in places(had))
            owners = kept | {AssignedPartition(place, after.epoch) for place in places(has)}
    return owners


def silence_releases(owned: Places | None, revoked: Places) -> bool:
    """A member that says nothing of what it owns has given up what it had to."""
    return owned is not None and not owned.isdisjoint(revoked)


def knows_any_epoch(received: int, epoch: int, previous: int, owned: Places | None, assigned: Places) -> bool:
    """A heartbeat of any epoch is let in."""
    return True


def knows_previous_epoch(received: int, epoch: int, previous: int, owned: Places | None, assigned: Places) -> bool:
    """A heartbeat of the epoch before is let in, whatever the member owns."""
    return received in (0, epoch, previous)


def knows_own_epoch(received: int, epoch: int, previous: int, owned: Places | None, assigned: Places) -> bool:
    """A heartbeat of no other epoch than the member's is let in, unless it joins."""
    return received in (0, epoch)


def commits_of_any_epoch(received: int, assigned_in: int | None) -> bool:
    """A commit of an earlier epoch counts, whoever has the partition."""
    return True


def says_what_is_assigned(reconciled: frozenset[int], assigned: frozenset[int]) -> frozenset[int]:
    """A consumer says that it owns what it is assigned, before it has given up the rest."""
    return reconciled & assigned


def no_id_at_first(own: MemberId) -> MemberId:
    """A consumer joins without an id, and is told one by the answer."""
    return NO_MEMBER_ID


def tells_all_after_refusal(is_refused: bool) -> bool:
    """A heartbeat whose answer is lost is not repeated in full."""
    return is_refused


COORDINATOR_MUTANTS = (
    Mutant(
        "step-on-committed",
        "taken_on",
        runtime.what_is_committed,
        "a step is taken on what is committed, and so undoes what others have written since",
    ),
    Mutant(
        "lost-update",
        "taken_on",
        offsets_as_committed,
        "a commit is made on the offsets of its time, and undoes others that were written since",
        traits=(("reads", runtime.newest),),
    ),
    Mutant("uncommitted-read", "reads", runtime.newest, "a read of offsets sees what may yet be lost"),
    Mutant(
        "read-what-is-known",
        "reads_at_once",
        reads_what_is_known,
        "a new coordinator reads what it knows to be committed, though more was acknowledged; Kafka's does from 4.0 on",
    ),
    Mutant("answer-before-commit", "is_answered", answers_at_once, "an answer does not wait until the log is committed"),
    Mutant(
        "any-generation", "is_present_generation", is_any_generation, "a member of an earlier generation counts as present"
    ),
    Mutant("same-generation", "following_generation", generation_stays, "a generation has the number of the one before"),
    Mutant(
        "nobody-left-behind", "is_left_behind", nobody_is_left_behind, "who has not joined is in the next generation as well"
    ),
    Mutant("waiting-member-out", "is_heard", hears_nobody, "a member is out though it waits for the coordinator's answer"),
    Mutant(
        "commit-before-assignment",
        "may_commit",
        commits_any_time,
        "a member commits before the generation has its assignment",
    ),
    Mutant(
        "given-back-forgotten",
        "owners_after",
        assigned_and_pending_by_themselves,
        "the owner of a partition that it was to give up, and is given back, is forgotten (KAFKA-16147)",
    ),
    Mutant("free-though-owned", "free_partitions", free_though_owned, "a consumer gets a partition that another one has"),
    Mutant(
        "silence-releases",
        "still_owns",
        silence_releases,
        "a consumer that says nothing of what it owns has given up what it had to",
    ),
    Mutant("any-epoch", "knows_epoch", knows_any_epoch, "a heartbeat of any epoch is let in"),
    Mutant(
        "previous-epoch-owns-more",
        "knows_epoch",
        knows_previous_epoch,
        "a heartbeat of the epoch before is let in, whatever the consumer owns",
    ),
    Mutant("own-epoch-only", "knows_epoch", knows_own_epoch, "a consumer that has missed its new epoch is fenced"),
    Mutant(
        "known-member-fenced",
        "knows_epoch",
        consumers.is_known_epoch,
        "a consumer that joins again is fenced until its session ends (KAFKA-19233)",
    ),
    Mutant("commits-of-any-epoch", "commits_of_old_epoch", commits_of_any_epoch, "a commit of an earlier epoch counts"),
    Mutant(
        "old-epoch-refused",
        "commits_of_old_epoch",
        consumers.never_of_old_epoch,
        "a commit on its way while the epoch moves is refused",
    ),
    Mutant(
        "own-pending-not-free",
        "free_partitions",
        consumers.free_if_unowned,
        "a consumer does not get back at once what it was to give up",
    ),
)

HEARTBEAT_MUTANTS = (
    Mutant(
        "says-what-is-assigned",
        "says_it_owns",
        says_what_is_assigned,
        "a consumer acknowledges its assignment before it has given up the rest",
    ),
    Mutant(
        "keeps-when-fenced",
        "keeps_when_fenced",
        rules.keep_all,
        "a consumer that is fenced reads on until it has joined again",
    ),
    Mutant(
        "told-its-id",
        "joins_as",
        no_id_at_first,
        "a consumer has no id until its first answer, and is another member if that is lost (KAFKA-17116, KIP-1082)",
    ),
    Mutant(
        "lost-answer-forgotten",
        "tells_all_again",
        tells_all_after_refusal,
        "a heartbeat whose answer is lost is not followed by a full one",
    ),
)

CONSUMER_MUTANTS = (
    Mutant("keeps-while-joining", "keeps_while_joining", rules.keep_all, "an eager member goes on reading while it joins"),
    Mutant("keeps-when-out", "keeps_when_out", rules.keep_all, "a member that is out of the group goes on reading"),
    Mutant(
        "keeps-what-others-get",
        "gives_up_by_assignment",
        rules.give_up_nothing,
        "a cooperative member goes on reading what its assignment takes away",
    ),
    Mutant(
        "hands-out-what-is-owned",
        "hands_out",
        rules.hand_out_all,
        "a leader assigns a partition before its owner has given it up",
    ),
    Mutant(
        "late-error-counts",
        "is_answer_to_present",
        counts_always,
        "an error puts a member out that was given to its earlier self",
    ),
    Mutant("keeps-unknown-id", "keeps_member_id", keeps_id_always, "a member joins again by an id that is not known"),
    Mutant("forgets-known-id", "keeps_member_id", keeps_id_never, "a member joins as a new one though its id is known"),
)
