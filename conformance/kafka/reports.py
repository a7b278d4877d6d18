"""Reports of runs: their steps, whether Kafka does what the rules say, and whether the claim is confirmed."""

from typing import Any, NamedTuple


class RunReport(NamedTuple):
    """A run that was replayed: how it ended in words, how often it was replayed because of the clock, and the seconds."""

    name: str
    words: str
    claim: str
    kafka: str
    steps: tuple[str, ...]
    follows: bool
    confirmed: bool
    ending: str
    tries: int
    seconds: float

    @property
    def verdict(self) -> str:
        """The verdict in a line."""
        ending = self.ending
        if self.follows and self.claim:
            ending += f"; CONFIRMED: {self.claim}" if self.confirmed else f"; refuted: {self.claim} at no time"
        return f"Apache Kafka {self.kafka}, {self.name}: {ending}"

    @property
    def lines(self) -> list[str]:
        """The steps, and the verdict in the last line."""
        steps = [f"{number:3}  {step}" for number, step in enumerate(self.steps, start=1)]
        return [f"{self.name}: {self.words}", *steps, self.verdict]

    def as_json(self) -> dict[str, Any]:
        """As JSON; a run without a claim, or that Kafka departs from, confirms nothing."""
        confirmed = {"confirmed": self.confirmed} if self.follows and self.claim else {}
        found = {"name": self.name, "kafka": self.kafka, "follows": self.follows, **confirmed, "claim": self.claim}
        return {**found, "steps": len(self.steps), "lines": self.lines}
