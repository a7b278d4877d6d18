"""The events of one partition, looked up by value, offset and consumer."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kspec.trials.history.events import ACKNOWLEDGED, ConsumerAssignment, Event, PartitionEnd, Poll, SendOutcome, SendStart


class Sighting(NamedTuple):
    """A sighting of a value at an offset: the event, cut down to this record, and its number in the history."""

    offset: int
    value: str
    event: SendOutcome | Poll
    number: int


class ConsumerStep(NamedTuple):
    """A step of a consumer from one record to the next: `before` is none at its beginning. `inside`: within one poll."""

    consumer: str
    before: ConsumerAssignment | Poll
    expected: int
    place: Sighting
    inside: bool


class ReadRange(NamedTuple):
    """A complete reading of a consumer from an offset to the end of the partition."""

    assigned: ConsumerAssignment
    number: int
    ended: PartitionEnd
    values: frozenset[str]


def cut(poll: Poll, *records: tuple[int, str]) -> Poll:
    """A poll cut down to these records."""
    return Poll(poll.consumer, poll.partition, records, poll.ms)


class PartitionHistory:
    """The history of one partition, gathered in one pass over its events."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.sent: dict[str, SendStart] = {}
        self.outcomes: dict[str, SendOutcome] = {}
        self.numbers: dict[str, int] = {}
        """The partition's outcomes."""
        self.by_producer: dict[str, list[SendStart]] = {}
        self.by_offset: dict[int, dict[str, Sighting]] = {}
        """The first event that shows each value at an offset."""
        self.by_value: dict[str, dict[int, Sighting]] = {}
        self.first_poll: dict[str, Sighting] = {}
        self.highest_poll: Sighting | None = None
        self.steps: list[ConsumerStep] = []
        self.readings: list[ReadRange] = []
        self._offsets: list[int] = []
        self._gather(events)

    def _gather(self, events: Iterable[Event]) -> None:
        at: dict[str, tuple[ConsumerAssignment | Poll, int]] = {}
        reading: dict[str, tuple[ConsumerAssignment, int, set[str]]] = {}
        for number, event in enumerate(events):
            match event:
                case SendStart():
                    self.sent.setdefault(event.value, event)
                    self.by_producer.setdefault(event.producer, []).append(event)
                case SendOutcome():
                    self.outcomes[event.value] = event
                    self.numbers[event.value] = number
                    if event.kind == ACKNOWLEDGED and event.offset is not None:
                        self._see(Sighting(event.offset, event.value, event, number))
                case ConsumerAssignment():
                    at[event.consumer] = event, event.offset - 1
                    reading[event.consumer] = event, number, set()
                case Poll():
                    for step in self._polled(event, number, at.get(event.consumer)):
                        at[event.consumer] = cut(event, (step.offset, step.value)), step.offset
                    if event.consumer in reading:
                        reading[event.consumer][2].update(value for _, value in event.records)
                case PartitionEnd():
                    if event.consumer in reading:
                        assigned, began, values = reading.pop(event.consumer)
                        self.readings.append(ReadRange(assigned, began, event, frozenset(values)))

    def _polled(self, poll: Poll, number: int, before: tuple[ConsumerAssignment | Poll, int] | None) -> Iterator[Sighting]:
        for index, (offset, value) in enumerate(poll.records):
            place = Sighting(offset, value, cut(poll, (offset, value)), number)
            self._see(place)
            self.first_poll.setdefault(value, place)
            if self.highest_poll is None or offset > self.highest_poll.offset:
                self.highest_poll = place
            if before is not None:
                self.steps.append(ConsumerStep(poll.consumer, before[0], before[1] + 1, place, index > 0))
            before = cut(poll, (offset, value)), offset
            yield place

    def _see(self, place: Sighting) -> None:
        if place.offset not in self.by_offset:
            insort(self._offsets, place.offset)
        self.by_offset.setdefault(place.offset, {}).setdefault(place.value, place)
        self.by_value.setdefault(place.value, {}).setdefault(place.offset, place)

    def known_between(self, first: int, end: int) -> Sighting | None:
        """A record that was seen at an offset from `first` to below `end`."""
        index = bisect_left(self._offsets, first)
        if index == len(self._offsets) or self._offsets[index] >= end:
            return None
        return min(self.by_offset[self._offsets[index]].values(), key=lambda place: place.number)
