"""What a plan is."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from impl.faults.play import Play


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done in a round, in order; `meaning` says so in a line.

    `rules`: the fields of the protocols (`spec/`) without which records are lost in it. `settings`: of the round's topic.
    """

    name: str
    meaning: str
    rules: tuple[str, ...]
    play: Callable[[Play], Awaitable[None]]
    settings: Mapping[str, str] = field(default_factory=dict)
