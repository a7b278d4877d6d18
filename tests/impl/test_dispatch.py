"""Requests that a broker offers are answered."""

from kspec.impl.requests.dispatch import OF_GROUPS, OF_PARTITIONS, OF_TRANSACTIONS
from kspec.impl.wire.apis import FORWARDED, OFFERED


def test_every_api_that_is_offered_has_one_function() -> None:
    assert sorted(OFFERED) == sorted([*OF_PARTITIONS, *OF_GROUPS, *OF_TRANSACTIONS, *FORWARDED])
