"""The coordinator of classic groups in different releases."""

import pytest

from kspec.spec.coordinator.group import GroupState
from kspec.spec.coordinator.runtime import LoadedGroups, LoggedEntry, load_groups
from kspec.spec.values import Error, Generation, Offset
from tests.spec.coordinator_driver import DELAY_MS, CoordinatorDriver, offers


@pytest.mark.parametrize(("release", "error"), [("3.2", Error.UNKNOWN_MEMBER_ID), ("3.3", Error.NONE)])
def test_a_consumer_that_assigns_to_itself_may_have_an_instance_id(release: str, error: Error) -> None:
    """KAFKA-14201."""
    driver = CoordinatorDriver(release)
    assert driver.commit() == [Error.NONE]
    assert driver.commit(instance_id="one") == [error]
    assert driver.commit(member_id="m") == [error]


@pytest.mark.parametrize(("release", "state"), [("4.4", GroupState.STABLE), ("next", GroupState.COMPLETING_REBALANCE)])
def test_a_static_member_that_reads_another_topic(release: str, state: GroupState) -> None:
    """KAFKA-12759."""
    driver = CoordinatorDriver(release)
    driver.stable("one")
    driver.join(instance_id="one", protocols=offers("range", topic="another"))
    driver.pass_time(DELAY_MS)
    assert driver.state == state
    driver = CoordinatorDriver(release)
    driver.stable("one")
    driver.join(instance_id="one")
    assert driver.state == GroupState.STABLE


@pytest.mark.parametrize("release", ["4.4", "next"])
def test_who_gets_an_assignment_that_another_coordinator_has_left_uncommitted(release: str) -> None:
    """Up to 4.4 a member gets it at once, though the next coordinator may be in the generation before again."""
    driver = CoordinatorDriver(release)
    (member,) = driver.stable(None)
    entries = [LoggedEntry(Offset(end), entry) for end, entry in enumerate(driver.log, start=1)]
    (driver.state_of_group,) = load_groups(LoadedGroups(Offset(0)), entries).groups
    driver.commits_at_once, driver.committed = False, 0
    asked = driver.sync(member)
    assert (asked in driver.answers) is (release == "4.4")
    refused = driver.sync(member, generation=Generation(7))
    assert driver.synced(refused).error == Error.ILLEGAL_GENERATION, "a refusal waits for nothing"
    driver.commit_up_to(len(driver.log))
    assert (driver.synced(asked).error, driver.synced(asked).assignment) == (Error.NONE, f"for {member}".encode())
    late = driver.sync(member)
    assert driver.synced(late).error == Error.NONE, "nothing waits where all is committed"
