"""Each bug has its place in the sources of today, so that a change of them cannot take bugs out of the score silently."""

from tests.conformance.wire.broken.planting import BUGS, source_with


def test_each_bug_has_one_place_and_is_python() -> None:
    for bug in BUGS.values():
        compile(source_with(bug), bug.module, "exec")
