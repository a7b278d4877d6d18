"""The verdict on a run that was replayed: it was followed to its end, or the broker departed from it at a step."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

FOLLOWS, DEPARTS = "follows", "departs"


class BrokerDeparture(NamedTuple):
    """A departure of the broker from a run: the step (from 1) and its action, what was expected and observed, whose rule."""

    step: int
    action: str
    what: str
    expected: str
    observed: str
    rule: str

    def in_words(self) -> str:
        """In one sentence."""
        return (
            f"departs at step {self.step} ({self.action}): {self.what} is {self.observed}, expected {self.expected};"
            f" rule: {self.rule}"
        )


@dataclass(slots=True)
class RunVerdict:
    """The outcome of one run. `told`: the observation at each step's barrier, one line for each step."""

    kafka: str
    run: str
    real: int
    steps: int
    departure: BrokerDeparture | None = None
    acknowledged: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    acknowledged_lost: bool = False
    told: list[str] = field(default_factory=list)
    target: str = "Kafka"

    @property
    def verdict(self) -> str:
        """`follows` or `departs`."""
        return FOLLOWS if self.departure is None else DEPARTS

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "verdict": self.verdict,
            "target": self.target,
            "kafka": self.kafka,
            "run": self.run,
            "real": self.real,
            "steps": self.steps,
            "departure": None if self.departure is None else self.departure._asdict(),
            "acknowledged": self.acknowledged,
            "refused": self.refused,
            "acknowledged_lost": self.acknowledged_lost,
        }

    def in_words(self) -> str:
        """In a sentence or two."""
        where = f"{self.target} {self.kafka}, broker {self.real} of {self.run}"
        if self.departure is not None:
            return f"{where}: {self.departure.in_words()}"
        text = f"{where}: follows the run to the end, {self.steps} steps"
        if self.acknowledged_lost:
            return f"{text}. AN ACKNOWLEDGED RECORD IS LOST"
        return text
