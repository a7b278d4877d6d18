"""Each bug has its place in the sources of today, so that a change of them cannot take bugs out of the score silently."""

from tests.conformance.wire.broken.own_code import in_order_for
from tests.conformance.wire.broken.planting import BUGS, source_with


def test_each_bug_has_one_place_and_is_python() -> None:
    for bug in BUGS.values():
        compile(source_with(bug), bug.module, "exec")


def test_cases_of_a_modules_requests_come_first() -> None:
    cases = [{"steps": [{"api": "Fetch"}, {"api": "CreateTopics", "setup": True}]}, {"steps": [{"api": "CreateTopics"}]}]
    assert in_order_for("impl.requests.topics", cases) == [cases[1], cases[0]]
    assert in_order_for("impl.requests.fetch", cases) == cases
