"""Messages of engine spark, level by level, and the outcome that reports them."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from kspec.model_check.core.exploration import Exploration


class LevelWork(NamedTuple):
    """The work for the states of a level on Spark, in all jobs that led to it.

    `successors` were found, and `sent_states` of them were sent to their partitions, in `sent_bytes`; `new_states` had not
    been visited. `seconds` is the elapsed time; `expand_s` and `merge_s` are processor seconds for expanding and merging.
    """

    level: int
    jobs: int
    successors: int
    sent_states: int
    sent_bytes: int
    new_states: int
    seconds: float
    expand_s: float
    merge_s: float

    def added_to(self, other: "LevelWork") -> "LevelWork":
        """The sum of both, for one level."""
        return LevelWork(
            self.level,
            self.jobs + other.jobs,
            self.successors + other.successors,
            self.sent_states + other.sent_states,
            self.sent_bytes + other.sent_bytes,
            self.new_states + other.new_states,
            self.seconds + other.seconds,
            self.expand_s + other.expand_s,
            self.merge_s + other.merge_s,
        )


class Shuffles(NamedTuple):
    """Messages of engine spark, level by level; levels that the driver explores by itself send nothing."""

    partitions: int
    state_bytes: int
    levels: list[LevelWork]


@dataclass(slots=True)
class SparkExploration(Exploration):
    """The outcome of engine spark: what every engine answers, and what was sent."""

    shuffles: Shuffles | None = None

    def details(self) -> dict[str, Any]:
        """`shuffles`, once there are any."""
        if self.shuffles is None:
            return {}
        levels = [{name: round(value, 3) for name, value in work._asdict().items()} for work in self.shuffles.levels]
        return {"shuffles": self.shuffles._asdict() | {"levels": levels}}
