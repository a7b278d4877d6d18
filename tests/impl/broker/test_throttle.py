"""Effect of a throttle's rate that is set while a broker runs."""

import pytest

from kspec.impl.broker.throttle import rate_in


@pytest.mark.parametrize(("text", "rate"), [("1000", 1000), (" 7 ", 7), ("0", 0), ("-1", None), ("fast", None), ("", None)])
def test_a_rate_that_is_no_number_is_ignored(text: str, rate: int | None) -> None:
    assert rate_in(text) == rate
