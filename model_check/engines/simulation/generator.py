"""The random numbers of walks: splitmix64, here in plain Python, and again in `choice` for compiled walks.

Each walk has its own stream, which depends only on the seed and the walk's number. So a walk is the same in any worker
and in any order, and one walk can be repeated without those before it.
"""

BITS_64 = (1 << 64) - 1
GOLDEN, FIRST_FACTOR, SECOND_FACTOR = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""The constants of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)."""


def mix(number: int) -> int:
    """Spread the bits of a 64-bit number over all 64: the output function of splitmix64."""
    number = ((number ^ (number >> 30)) * FIRST_FACTOR) & BITS_64
    number = ((number ^ (number >> 27)) * SECOND_FACTOR) & BITS_64
    return number ^ (number >> 31)


class Stream:
    """The random numbers of walk number `walk` under `seed`."""

    def __init__(self, seed: int, walk: int) -> None:
        self.state = mix((mix(seed & BITS_64) + walk * GOLDEN) & BITS_64)

    def below(self, bound: int) -> int:
        """The next number from 0 to `bound - 1`; `bound` is less than 2**32."""
        self.state = (self.state + GOLDEN) & BITS_64
        return ((mix(self.state) >> 32) * bound) >> 32
