"""The cases of level 1: which there are, and that a seed gives the same again."""

from kspec.conformance.cluster.cases import LOST_BY_LEADER, REFUSED, all_cases, random_case, scheduled
from kspec.conformance.cluster.driver import ABILITIES, needs
from kspec.model_check.reports.mutants import HUNTS
from kspec.trials.faults.plans.losses import LOSSES
from kspec.trials.faults.plans.steps import LEADER, StepKind

NEEDS_MORE = ("late_fetches", "late_proposals", "late_registrations", "reassignments")


def test_names_are_stable() -> None:
    assert [case.name for case in all_cases()] == [
        "acks-1/leader-dies-alone",
        "losses/counted_isr/high-watermark-over-committed-isr",
        "losses/departure/unclean-replica-keeps-its-place",
        "losses/divergence/no-divergence-check",
        "losses/elect/election-outside-isr-and-elr",
        "losses/has_reached/join-before-high-watermark",
        "losses/may_advance/advance-below-min-isr",
        "losses/min_isr/min-isr-of-one",
        "losses/notes_fetch/count-what-is-sent",
        "losses/propose/shrink-before-confirmation",
        "losses/start_following/truncate-to-high-watermark",
        "rules/announced_isr/forget-proposal-on-old-news",
        "rules/check_proposer/stale-partition-epoch-accepted",
        "rules/counted_isr/high-watermark-over-committed-isr",
        "rules/counts_fetch/count-diverging-fetch",
        "rules/divergence/no-divergence-check",
        "rules/elect/election-outside-isr-and-elr",
        "rules/has_reached/join-before-epoch-start",
        "rules/has_reached/join-before-high-watermark",
        "rules/high_watermark_when_diverging/high-watermark-before-truncation",
        "rules/knows_followers/keep-followers-over-missed-epochs",
        "rules/may_advance/advance-below-min-isr",
        "rules/min_isr/min-isr-of-one",
        "rules/notes_fetch/count-what-is-sent",
        "rules/propose/shrink-before-confirmation",
        "rules/serves/unfenced-requests",
        "rules/start_following/truncate-to-high-watermark",
    ]


def test_every_mutant_with_a_run_is_a_case_or_has_a_reason() -> None:
    played_ones = {case.source for case in all_cases() if not case.by_hand}
    left = {name for name, bounds in HUNTS.items() if not any(bounds.get(one) for one in NEEDS_MORE)} - played_ones
    assert left <= set(REFUSED)
    assert not played_ones & set(REFUSED)


def test_each_case_names_its_rule_and_what_it_guards() -> None:
    for case in all_cases():
        assert case.rule.function.startswith("spec."), case
        assert case.rule.doc, case
        assert case.guards, case
        if not case.by_hand:
            assert (case.acks == LEADER) == (case.name == LOST_BY_LEADER)


def test_a_case_is_the_run_of_its_mutant() -> None:
    (case,) = [one for one in all_cases() if one.source == "min-isr-of-one" and not one.by_hand]
    found = scheduled(case)
    assert found.run[-1] == "Produce(leader=1)"
    assert needs(found.schedule) <= set(ABILITIES)


def test_a_seed_gives_the_same_run_again_and_another_seed_another() -> None:
    runs = [scheduled(random_case(seed)) for seed in (1, 1, 2)]
    assert runs[0].run == runs[1].run
    assert runs[0].schedule == runs[1].schedule
    assert runs[0].run != runs[2].run


def test_a_run_by_hand_needs_no_more_than_drivers_can_do_and_names_brokers_that_there_are() -> None:
    by_hand = [case for case in all_cases() if case.by_hand]
    assert {case.source for case in by_hand} == set(LOSSES)
    for case in by_hand:
        schedule = scheduled(case).schedule
        assert needs(schedule) <= set(ABILITIES), case
        assert {step.broker for step in schedule.steps} <= {0, *schedule.replicas}, case


def test_who_is_started_or_waited_for_in_a_run_by_hand_can_be() -> None:
    """No broker is killed twice or started while it is up; one that is to lead or to serve is up and not paused."""
    for name, loss in LOSSES.items():
        down: set[int] = set()
        still: set[int] = set()
        for step in loss.schedule.steps:
            match step.kind:
                case StepKind.KILL:
                    assert step.broker not in down, name
                    down.add(step.broker)
                    still.discard(step.broker)
                case StepKind.START | StepKind.ERASE:
                    assert step.broker in down, name
                    down -= {step.broker} if step.kind is StepKind.START else set()
                case StepKind.PAUSE:
                    still.add(step.broker)
                case StepKind.RESUME:
                    still.remove(step.broker)
                case StepKind.LEAD | StepKind.SERVE | StepKind.KNOW_LEADER | StepKind.JOIN_ISR:
                    assert step.broker not in down | still, name
