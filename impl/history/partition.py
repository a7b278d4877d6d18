"""The events of one partition, looked up by value, offset and consumer."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from impl.history.events import ACKNOWLEDGED, Assigned, Ended, Event, Outcome, Polled, Sent


class Place(NamedTuple):
    """Somebody saw a value at an offset: the event that shows it, cut down to this record, and its number in the history."""

    offset: int
    value: str
    event: Outcome | Polled
    number: int


class Step(NamedTuple):
    """A consumer went from one place to the next: `before` is none if it began there. `inside`: both are of one poll."""

    consumer: str
    before: Assigned | Polled
    expected: int
    place: Place
    inside: bool


class Reading(NamedTuple):
    """A consumer read everything from an offset to the end of the partition."""

    assigned: Assigned
    number: int
    ended: Ended
    values: frozenset[str]


def cut(poll: Polled, *records: tuple[int, str]) -> Polled:
    """A poll as if it had given only these records."""
    return Polled(poll.consumer, poll.partition, records, poll.ms)


class PartitionHistory:
    """What is known of one partition, gathered in one pass over its events."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.sent: dict[str, Sent] = {}
        self.outcomes: dict[str, Outcome] = {}
        self.numbers: dict[str, int] = {}
        """Of the outcomes."""
        self.by_producer: dict[str, list[Sent]] = {}
        self.by_offset: dict[int, dict[str, Place]] = {}
        """The first event that shows each value at an offset."""
        self.by_value: dict[str, dict[int, Place]] = {}
        self.first_poll: dict[str, Place] = {}
        self.highest_poll: Place | None = None
        self.steps: list[Step] = []
        self.readings: list[Reading] = []
        self._offsets: list[int] = []
        self._gather(events)

    def _gather(self, events: Iterable[Event]) -> None:
        at: dict[str, tuple[Assigned | Polled, int]] = {}
        reading: dict[str, tuple[Assigned, int, set[str]]] = {}
        for number, event in enumerate(events):
            match event:
                case Sent():
                    self.sent.setdefault(event.value, event)
                    self.by_producer.setdefault(event.producer, []).append(event)
                case Outcome():
                    self.outcomes[event.value] = event
                    self.numbers[event.value] = number
                    if event.kind == ACKNOWLEDGED and event.offset is not None:
                        self._see(Place(event.offset, event.value, event, number))
                case Assigned():
                    at[event.consumer] = event, event.offset - 1
                    reading[event.consumer] = event, number, set()
                case Polled():
                    for step in self._polled(event, number, at.get(event.consumer)):
                        at[event.consumer] = cut(event, (step.offset, step.value)), step.offset
                    if event.consumer in reading:
                        reading[event.consumer][2].update(value for _, value in event.records)
                case Ended():
                    if event.consumer in reading:
                        assigned, began, values = reading.pop(event.consumer)
                        self.readings.append(Reading(assigned, began, event, frozenset(values)))

    def _polled(self, poll: Polled, number: int, before: tuple[Assigned | Polled, int] | None) -> Iterator[Place]:
        for index, (offset, value) in enumerate(poll.records):
            place = Place(offset, value, cut(poll, (offset, value)), number)
            self._see(place)
            self.first_poll.setdefault(value, place)
            if self.highest_poll is None or offset > self.highest_poll.offset:
                self.highest_poll = place
            if before is not None:
                self.steps.append(Step(poll.consumer, before[0], before[1] + 1, place, index > 0))
            before = cut(poll, (offset, value)), offset
            yield place

    def _see(self, place: Place) -> None:
        if place.offset not in self.by_offset:
            insort(self._offsets, place.offset)
        self.by_offset.setdefault(place.offset, {}).setdefault(place.value, place)
        self.by_value.setdefault(place.value, {}).setdefault(place.offset, place)

    def known_between(self, first: int, end: int) -> Place | None:
        """A record that somebody saw at an offset from `first` to below `end`."""
        index = bisect_left(self._offsets, first)
        if index == len(self._offsets) or self._offsets[index] >= end:
            return None
        return min(self.by_offset[self._offsets[index]].values(), key=lambda place: place.number)
