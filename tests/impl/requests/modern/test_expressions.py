"""Regular expressions of consumers."""

import time

from kspec.impl.requests.modern.expressions import is_expression, matching

NAMES = ("a", "ab", "b", "__consumer_offsets")


def test_a_name_matches_as_a_whole() -> None:
    assert matching(["a", "a.*", ".*b"], NAMES) == {"a": {"a"}, "a.*": {"a", "ab"}, ".*b": {"ab", "b"}}


def test_what_is_none_matches_nothing() -> None:
    for text in ("(", "*", "a{1001}", r"(a)\1", "(?=a)"):
        assert not is_expression(text)
        assert matching([text], NAMES) == {text: frozenset()}
    assert is_expression("^a|b$")


def test_no_expression_takes_long() -> None:
    begin = time.perf_counter()
    assert matching(["(a*)*b"], ["a" * 249]) == {"(a*)*b": frozenset()}
    assert time.perf_counter() - begin < 5
