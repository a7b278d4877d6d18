"""Chance as a value: the numbers that Java's generator gives for a seed."""

from typing import NamedTuple, TypeVar

ItemT = TypeVar("ItemT")

MULTIPLIER, INCREMENT, MODULUS = 0x5DEECE66D, 0xB, 1 << 48


class Chance(NamedTuple):
    """A state of the generator. **Kafka:** Java's `Random`."""

    state: int


def chance_of(seed: int) -> Chance:
    """The generator for a seed."""
    return Chance((seed ^ MULTIPLIER) % MODULUS)


def draw(chance: Chance, below: int) -> tuple[Chance, int]:
    """A number from 0 up to below this one. **Kafka:** `Random.nextInt(bound)`."""
    following = Chance((chance.state * MULTIPLIER + INCREMENT) % MODULUS)
    bits = following.state >> 17
    if below & -below == below:
        return following, (below * bits) >> 31
    number = bits % below
    if bits - number + below - 1 >= 1 << 31:  # the last, incomplete round of numbers would favour the small ones
        return draw(following, below)
    return following, number


def shuffled(chance: Chance, items: tuple[ItemT, ...]) -> tuple[Chance, tuple[ItemT, ...]]:
    """The items in another order. **Kafka:** `Collections.shuffle`."""
    order = list(items)
    for size in range(len(order), 1, -1):
        chance, chosen = draw(chance, size)
        order[size - 1], order[chosen] = order[chosen], order[size - 1]
    return chance, tuple(order)
