"""What a broker offers, it answers."""

from impl.requests.dispatch import OF_GROUPS, OF_PARTITIONS
from impl.wire.apis import OFFERED


def test_every_api_that_is_offered_has_one_function() -> None:
    assert sorted(OFFERED) == sorted([*OF_PARTITIONS, *OF_GROUPS])
