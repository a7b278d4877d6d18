"""Each rule of the controller is needed: a few steps that go well with it, and not without it."""

from collections.abc import Callable
from dataclasses import fields

import pytest

from kspec.spec.controller.protocol import ControllerProtocol
from kspec.spec.metadata import is_active, is_unfenced
from kspec.spec.mutation import Mutant, changed_rules, weaken
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from kspec.spec.values import NO_LEADER, BrokerId, Error
from tests.spec.controller_driver import TIMEOUT_MS, ControllerDriver, answer_of, cluster, ids, order

Story = Callable[[ControllerProtocol], bool]


def members_are_active(driver: ControllerDriver) -> bool:
    return all(is_active(driver.image.brokers, broker) for broker in driver.partition.isr)


def an_old_run_does_not_join(rules: ControllerProtocol) -> bool:
    driver = cluster(rules)
    driver.alter(driver.proposal(1, 2))
    proposal = driver.proposal(1, 2, 3)
    driver.expire(3)
    driver.start(3)
    driver.alter(proposal)
    return driver.partition.isr == ids(1, 2)


def who_is_fenced_does_not_join(rules: ControllerProtocol) -> bool:
    driver = cluster(rules)
    driver.expire(3)
    driver.alter(driver.proposal(1, 2, 3))
    return members_are_active(driver)


def a_proposal_is_taken_once(rules: ControllerProtocol) -> bool:
    driver = cluster(rules)
    proposal = driver.proposal(1, 2)
    driver.alter(proposal)
    driver.alter(driver.proposal(1, 2, 3))
    refused: Error = answer_of(driver.alter(proposal)).error
    return refused == Error.INVALID_UPDATE_VERSION


def a_refused_proposal_stays_refused(rules: ControllerProtocol) -> bool:
    driver = cluster(rules)
    driver.alter(driver.proposal(1, 2))
    proposal = driver.proposal(1, 2, 3)
    driver.expire(3)
    driver.alter(proposal)
    driver.heartbeat(3)
    driver.alter(proposal)
    return driver.partition.isr == ids(1, 2)


def a_new_incarnation_inherits_nothing(rules: ControllerProtocol) -> bool:
    driver = cluster(rules)
    driver.now_ms += TIMEOUT_MS + 1
    driver.register(2)
    return members_are_active(driver)


def only_replicas_with_all_records_are_elected(rules: ControllerProtocol) -> bool:
    driver = cluster(rules)
    driver.alter(driver.proposal(1))
    driver.expire(1)
    return driver.partition.leader == NO_LEADER


def a_leader_is_up(rules: ControllerProtocol) -> bool:
    driver = cluster(rules, min_isr=2, eligible_leader_replicas=True)
    driver.expire(2, 3)
    driver.expire(1)
    for broker in (1, 2, 3):
        driver.register(broker)
    return driver.partition.leader == NO_LEADER


def who_is_eligible_is_assigned(rules: ControllerProtocol) -> bool:
    driver = cluster(rules, min_isr=2, eligible_leader_replicas=True)
    driver.reassign(1)
    return driver.partition.elr <= frozenset(driver.partition.replicas)


def a_reassignment_ends_with_all_in_sync(rules: ControllerProtocol) -> bool:
    driver = cluster(rules)
    driver.start(4)
    driver.reassign(2, 4)
    driver.alter(driver.proposal(1, 4))
    return driver.partition.replicas == order(2, 4, 1, 3)


def who_is_removed_hears_of_it_by_epoch(rules: ControllerProtocol) -> bool:
    driver = cluster(rules)
    driver.reassign(1, 2)
    return driver.partition.leader_epoch == 1


def who_takes_part_knows_that_it_is_registered(rules: ControllerProtocol) -> bool:
    driver = ControllerDriver(rules)
    driver.register(1)
    driver.heartbeat(1, offset=-1)
    return not is_unfenced(driver.image.brokers, BrokerId(1))


def a_registration_may_be_sent_twice(rules: ControllerProtocol) -> bool:
    driver = cluster(rules)
    driver.register(1, new_incarnation=False)
    return members_are_active(driver)


STORIES: dict[str, Story] = {
    "stale-broker-epoch-accepted": an_old_run_does_not_join,
    "fenced-replica-admitted": who_is_fenced_does_not_join,
    "stale-partition-epoch-accepted": a_proposal_is_taken_once,
    "refusal-without-trace": a_refused_proposal_stays_refused,
    "unclean-replica-keeps-its-place": a_new_incarnation_inherits_nothing,
    "election-outside-isr-and-elr": only_replicas_with_all_records_are_elected,
    "last-known-leader-while-down": a_leader_is_up,
    "eligible-without-assignment": who_is_eligible_is_assigned,
    "reassignment-over-too-early": a_reassignment_ends_with_all_in_sync,
    "no-epoch-for-a-smaller-assignment": who_is_removed_hears_of_it_by_epoch,
    "unfenced-before-caught-up": who_takes_part_knows_that_it_is_registered,
    "second-registration-fences": a_registration_may_be_sent_twice,
}


@pytest.mark.parametrize("mutant", CONTROLLER_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_breaks_what_the_rule_keeps(mutant: Mutant) -> None:
    weakened = weaken(KRAFT_NEXT, mutant)
    assert set(changed_rules(KRAFT_NEXT, weakened)) == {mutant.field}
    assert STORIES[mutant.name](KRAFT_NEXT)
    assert not STORIES[mutant.name](weakened)


def test_every_mutant_has_a_name_of_its_own_and_a_rule_that_exists() -> None:
    assert [mutant.name for mutant in CONTROLLER_MUTANTS] == list(STORIES)
    assert {mutant.field for mutant in CONTROLLER_MUTANTS} <= {field.name for field in fields(ControllerProtocol)}
