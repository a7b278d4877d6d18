"""A target that stops answering: told apart from one that answers wrong, and the other cases go on."""

import asyncio
from collections.abc import Mapping

import pytest

from kspec.conformance.wire.run.results import Result, Status
from kspec.conformance.wire.run.runner import TargetGoneError
from kspec.conformance.wire.run.suite_run import NameSpace, Suite, SuiteRun
from tests.conformance.wire.run.frail_broker import ALTER_PARTITION, NEGATIVE_API, NO_API, FrailBroker
from tests.conformance.wire.targets import documents

FRAMES = {
    "alive": "frames/alive/alive",
    "unknown": "frames/frame.unknown-api/closed",
    "negative": "frames/frame.negative-api/closed",
    "controllers": "frames/frame.of-controllers/closed",
    "size": "frames/frame.negative/closed",
    "oversized": "frames/frame.oversized/closed",
    "too-new": "frames/frame.api-versions-99/unsupported-version",
}


def run(
    broker: FrailBroker, *cases: str, together: int = 1, allowed: Mapping[str, str] | None = None, revives: bool = True
) -> tuple[dict[str, Result], list[str]]:
    """Results by short name, and the names that were told, in order."""
    told: list[str] = []

    async def work() -> list[Result]:
        target = await broker.start()
        chosen = [one for case in cases for one in documents(FRAMES[case])]
        suite = Suite(chosen, together, allowed or {}, revive=broker.start if revives else None)
        try:
            return await SuiteRun(target, suite, NameSpace("x"), lambda one: told.append(one.name)).run()
        finally:
            broker.end()

    return dict(zip(cases, asyncio.run(work()), strict=True)), told


def statuses(results: Mapping[str, Result]) -> dict[str, str]:
    return {name: one.status.value for name, one in results.items()}


def test_the_others_are_run_after_the_case_that_ends_the_broker() -> None:
    broker = FrailBroker({NO_API})
    found, told = run(broker, "alive", "unknown", "size", "controllers")
    assert statuses(found) == {"alive": "pass", "unknown": "stops answering", "size": "pass", "controllers": "pass"}
    assert "it no longer answers: it does not take a connection" in found["unknown"].reason
    assert broker.starts == 2
    assert sorted(told) == sorted(FRAMES[name] for name in found)


def test_the_case_that_ends_it_is_found_among_those_that_ran_together() -> None:
    broker = FrailBroker({NO_API, NEGATIVE_API})
    found, _ = run(broker, "alive", "unknown", "size", "controllers", "negative", "too-new", together=6)
    ended = [name for name, status in statuses(found).items() if status == "stops answering"]
    assert ended == ["unknown", "negative"]
    assert {found[name].status for name in ("alive", "size", "controllers", "too-new")} == {Status.PASS}


def test_an_end_that_no_case_brings_about_alone_is_no_pass() -> None:
    broker = FrailBroker(set(), together={NO_API, NEGATIVE_API})
    found, _ = run(broker, "unknown", "negative", together=2)
    (ended,) = [one for one in found.values() if one.status == Status.ENDED]
    assert "after 2 cases that ran together; none of them alone ends it" in ended.reason


def test_without_a_way_to_start_it_again_the_run_ends_and_says_how() -> None:
    with pytest.raises(TargetGoneError, match=r"after case frames/frame.unknown-api/closed.*--start COMMAND"):
        run(FrailBroker({NO_API}), "unknown", "size", revives=False)


def test_a_target_that_does_not_start_again_ends_the_run() -> None:
    class GoneForGood(FrailBroker):
        async def start(self) -> object:  # type: ignore[override]
            if self.starts:
                raise TargetGoneError("it does not start again")
            return await super().start()

    with pytest.raises(TargetGoneError, match="it does not start again"):
        run(GoneForGood({NO_API}), "unknown", "size")


def test_an_end_may_be_allowed_as_any_failure() -> None:
    found, _ = run(FrailBroker({NO_API}), "unknown", "size", allowed={FRAMES["unknown"]: "bug 7"})
    assert statuses(found) == {"unknown": "allowed", "size": "pass"}
    assert found["unknown"].reason.startswith("bug 7: ")


def test_what_the_protocol_leaves_free_is_no_failure_and_no_pass() -> None:
    """This broker waits for the two gibibytes that a frame announces."""
    found, _ = run(FrailBroker({ALTER_PARTITION}), "oversized", "alive")
    assert statuses(found) == {"oversized": "unlike Kafka", "alive": "pass"}
    assert found["oversized"].reason.startswith("it does not close the connection within 2 s: the protocol has no limit")
