"""All plans, and the choice of one by a seed."""

import random
from collections.abc import Mapping, Sequence

from kspec.trials.faults.plans import assignment, committing, epochs, isr, starts
from kspec.trials.faults.plans.plan import Plan
from kspec.trials.faults.plans.scheduled import LOSS_PLANS

RANDOM = "random"
"""No plan: faults at random (`trials.faults.schedule`)."""

PLANS: Mapping[str, Plan] = {
    plan.name: plan
    for plan in (
        Plan(
            "leader-dies",
            "answers to followers are held, and the leader dies after it has acknowledged",
            ("notes_fetch",),
            committing.leader_dies_after_acknowledging,
        ),
        Plan(
            "leader-alone",
            "nobody fetches until the leader is alone in the ISR; it dies after clients have been told something",
            ("min_isr", "may_advance"),
            committing.leader_is_alone,
        ),
        Plan(
            "follower-behind",
            "a follower far behind asks and gets no answers; then the others die",
            ("has_reached", "controller: elect"),
            committing.follower_is_behind,
        ),
        Plan(
            "shrink-held",
            "the request for a smaller ISR is held, and the replica that it drops is elected",
            ("propose",),
            committing.smaller_isr_is_not_granted,
        ),
        Plan(
            "diverging-fetch",
            "a deposed leader fetches behind records of its own, and is elected before it is answered",
            ("counts_fetch",),
            committing.diverging_follower,
        ),
        Plan(
            "late-copy",
            "a producer's request arrives again after later ones",
            ("check_sequences",),
            committing.late_copy_of_a_request,
        ),
        Plan(
            "admission-unconfirmed",
            "a leader does not hear that its follower is admitted; the follower fetches no more, and is elected",
            ("counted_isr",),
            isr.admission_is_not_confirmed,
        ),
        Plan(
            "admission-lost",
            "as admission-unconfirmed, and the connection is lost, so the leader asks again and is refused",
            ("on_isr_error", "counted_isr"),
            isr.admission_is_lost,
        ),
        Plan(
            "late-news",
            "a leader hears late that a follower was dropped, while it admits it again; the follower is elected",
            ("announced_isr",),
            isr.late_news,
        ),
        Plan(
            "stale-proposal",
            "a request for another ISR arrives after the partition has changed; who joins by it is elected",
            ("controller: check_proposer",),
            isr.stale_proposal,
        ),
        Plan(
            "early-join",
            "a follower that lacks committed records asks a new leader, which does not know of them, and is elected",
            ("has_reached",),
            isr.early_join,
        ),
        Plan(
            "fast-elections",
            "a follower follows another leader for a moment, and is elected itself (KIP-101)",
            ("start_following",),
            epochs.fast_leader_changes,
        ),
        Plan(
            "parted-leaders",
            "two leaders write in turns, and neither follows the other in between (KIP-279)",
            ("epoch_lookup", "divergence", "start_following"),
            epochs.leaders_do_not_hear_of_each_other,
        ),
        Plan(
            "dead-tail",
            "a leader dies with records that nobody has, follows, and leads again",
            ("divergence", "start_following"),
            epochs.tail_of_a_dead_leader,
        ),
        Plan(
            "missed-epoch",
            "a leader hears of two elections at once; its follower has truncated in between, and is elected",
            ("knows_followers",),
            epochs.missed_epoch,
        ),
        Plan(
            "old-epoch",
            "a follower of an old epoch fetches from a later leader, truncates in an epoch between, and is elected",
            ("serves",),
            epochs.follower_of_an_old_epoch,
        ),
        Plan(
            "power-loss",
            "one of two replicas in sync loses power and what it had not synced, and is back; then the other dies",
            ("controller: departure",),
            starts.power_is_lost,
        ),
        Plan(
            "earlier-incarnation",
            "a follower loses power while its admission is asked for, is back at once, and is elected",
            ("controller: eligible_for_isr",),
            starts.proposal_of_an_earlier_incarnation,
        ),
        Plan(
            "second-registration",
            "a broker registers, and its first request arrives after the second",
            ("controller: register_again",),
            starts.registration_arrives_twice,
        ),
        Plan(
            "stop-and-controller",
            "the leader stops in order while the controller is killed",
            (),
            starts.leader_stops_while_the_controller_dies,
        ),
        Plan(
            "damaged-files",
            "each broker in turn is down and finds some of its files damaged, while the others are in sync",
            (),
            starts.files_are_damaged,
            not_simulated="the damage is drawn on the files of real folders, beside an operator who deletes some",
        ),
        Plan(
            "given-back",
            "a replica is taken from a broker and given back empty, while one after the other of the rest dies",
            ("controller: eligible_leaders",),
            assignment.replica_is_taken_and_given_back,
            {"min.insync.replicas": "3"},
        ),
        Plan(
            "removed-and-back",
            "a replica is removed and added again, and a fetch of before arrives at its leader; it is elected",
            ("controller: opens_epoch",),
            assignment.fetch_of_before_the_removal,
        ),
        Plan(
            "paused-leader",
            "the leader is paused until another one leads, while a follower is reassigned; then all are replicas again",
            (),
            assignment.leader_is_paused_while_its_follower_is_reassigned,
        ),
        Plan(
            "hand-over",
            "a leader hears nothing from the controller while a follower that is behind is elected and then shut down",
            ("knows_followers", "start_following"),
            epochs.leader_is_handed_over_and_stops,
            mutants=("keep-followers-over-missed-epochs", "truncate-to-high-watermark"),
        ),
        Plan(
            "late-fetch",
            "a fetch arrives at a leader that has been deposed and elected again, while one that was behind led",
            ("serves",),
            epochs.fetch_of_before_two_elections,
            mutants=("unfenced-requests",),
        ),
        *LOSS_PLANS,
    )
}

LEAST_BROKERS = 3
"""The number of brokers that a plan needs, and of its partition's replicas."""


def drawn(seed: int) -> Plan | None:
    """The plan of a seed among all; none, if its faults are random, which is so in one round of two."""
    choose = random.Random(f"plan {seed}")
    return None if choose.random() < 0.5 else PLANS[choose.choice(list(PLANS))]


def in_turn(seed: int, names: Sequence[str]) -> Plan | None:
    """The plan of a seed where plans are named: seed 1 has the first, and so on, again and again."""
    return PLANS.get(names[(seed - 1) % len(names)])
