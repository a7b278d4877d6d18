"""Regular expressions of consumer groups: when they are resolved, and what follows."""

from kspec.spec.coordinator.modern.records import ConsumerRecordKind, ConsumerTombstone
from kspec.spec.coordinator.modern.regexes import regexes_due
from kspec.spec.coordinator.modern.state import ResolvedRegularExpression
from kspec.spec.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kspec.spec.values import Error, TimestampMs
from tests.spec.coordinator.modern.driver import REBALANCE_MS, ConsumerDriver, held, topics
from tests.spec.coordinator_driver import GROUP
from tests.times import at_ms

T = topics(a=2, ab=2, b=2)


def found(regex: str, *names: str, metadata_offset: int = 1, at: int = 0) -> ResolvedRegularExpression:
    return ResolvedRegularExpression(regex, frozenset(names), metadata_offset, TimestampMs(at))


def by_regex(driver: ConsumerDriver, name: str, regex: str, valid: bool = True) -> ConsumerGroupHeartbeatResponse:
    asked = {"rebalance_timeout_ms": REBALANCE_MS, "regex": regex, "regex_is_valid": valid}
    return driver.beat(name, 0, "", **asked)


def test_an_expression_stands_for_nothing_until_it_is_resolved() -> None:
    driver = ConsumerDriver(known=T)
    answer = by_regex(driver, "m1", "a.*")
    assert (answer.error, answer.member_epoch, answer.assignment) == (Error.NONE, 0, frozenset())
    driver.resolve(found("a.*", "a", "ab"), found("other", "b"))
    assert driver.consumers.epoch == 1
    assert driver.beat("m1", 0, "", rebalance_timeout_ms=1, regex="a.*").assignment == held("a:0,1 ab:0,1")
    driver.resolve(found("a.*", "a", "ab", at=5))
    assert driver.consumers.epoch == 1
    driver.resolve(found("a.*", "a"))
    assert driver.consumers.epoch == 2


def test_an_expression_is_compiled_when_it_is_new() -> None:
    driver = ConsumerDriver(known=T)
    assert by_regex(driver, "m1", "(", valid=False).error == Error.INVALID_REGULAR_EXPRESSION
    by_regex(driver, "m1", "a.*")
    assert by_regex(driver, "m2", "a.*", valid=False).error == Error.NONE


def test_an_expression_that_is_resolved_is_a_change_at_once() -> None:
    driver = ConsumerDriver(known=T)
    by_regex(driver, "m1", "a.*")
    driver.resolve(found("a.*", "a", "ab"))
    assert by_regex(driver, "m2", "a.*").member_epoch == 2
    assert driver.consumers.epoch == 2


def test_the_last_subscriber_takes_the_topics_with_it() -> None:
    driver = ConsumerDriver(known=T)
    by_regex(driver, "m1", "a.*")
    by_regex(driver, "m2", "a.*")
    driver.resolve(found("a.*", "a"))
    driver.beat("m1", 0, "", rebalance_timeout_ms=1, regex="")
    assert driver.consumers.regexes
    gone = ConsumerTombstone(GROUP, ConsumerRecordKind.REGULAR_EXPRESSION, "a.*")
    assert gone not in driver.log
    by_regex(driver, "m2", "b.*")
    assert gone in driver.log
    assert not driver.consumers.regexes
    driver.resolve(found("b.*", "b"))
    driver.go("m2")
    assert not driver.consumers.regexes


def test_a_group_that_is_gone_has_nothing_to_resolve() -> None:
    driver = ConsumerDriver(known=T)
    driver.resolve(found("a.*", "a"))
    assert not driver.log


def test_when_expressions_are_due() -> None:
    driver = ConsumerDriver(known=T)
    by_regex(driver, "m1", "a.*")
    assert regexes_due(driver.consumers, 1, at_ms(0)) == {"a.*"}
    driver.resolve(found("a.*", "a"))
    assert regexes_due(driver.consumers, 1, at_ms(20_000)) == frozenset()
    assert regexes_due(driver.consumers, 2, at_ms(10_000)) == frozenset(), "not twice in ten seconds"
    assert regexes_due(driver.consumers, 2, at_ms(10_001)) == {"a.*"}
    assert regexes_due(driver.consumers, 1, at_ms(600_001)) == {"a.*"}
    by_regex(driver, "m2", "b.*")
    assert regexes_due(driver.consumers, 1, at_ms(10_001)) == {"a.*", "b.*"}
