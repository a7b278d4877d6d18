"""Every small log, and what it must answer: said once more from its records alone, without a line of `EpochHistory`.

`RecordLog` asks `EpochHistory` too, so a comparison of the two carriers alone would miss a mistake that both have. A
`PlainLog` is compared with a carrier operation by operation, over all logs within bounds (`differences`).
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

from kspec.spec.log.batch import Batch, records_of
from kspec.spec.values import NO_EPOCH, UNDEFINED_EPOCH_END, Epoch, EpochEndOffset, Offset
from tests.limits.turns import Turns

MOST_RECORDS = 3
"""The highest offset of a log's end."""
MOST_EPOCH = 2


@dataclass(frozen=True)
class PlainLog:
    """The epoch of each record; the log's start; an epoch without a record: opened at the end, or left by deleted ones."""

    epochs: tuple[int, ...] = ()
    start: int = 0
    empty_epoch: int = NO_EPOCH

    @property
    def end(self) -> int:
        return self.start + len(self.epochs)

    @property
    def latest(self) -> int:
        return max((*self.epochs, self.empty_epoch), default=NO_EPOCH)

    @property
    def history(self) -> list[tuple[int, int]]:
        """Each epoch with the offset of its first record; the one without a record with the log's end."""
        placed = {epoch: self.start + self.epochs.index(epoch) for epoch in self.epochs if epoch != NO_EPOCH}
        if self.empty_epoch != NO_EPOCH:
            placed[self.empty_epoch] = self.end
        return sorted(placed.items())

    # ---- answers

    def epoch_at(self, offset: int) -> int:
        return self.epochs[offset - self.start] if self.start <= offset < self.end else NO_EPOCH

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        known = [one for one, _ in self.history]
        if epoch == NO_EPOCH or not known or epoch > max(known):
            return UNDEFINED_EPOCH_END
        return max([one for one in known if one <= epoch], default=epoch), self._first_after(epoch)

    def largest_epoch_up_to(self, epoch: int) -> tuple[int, int]:
        return max([one for one, _ in self.history if one <= epoch], default=NO_EPOCH), self._first_after(epoch)

    def first_above(self, epoch: int) -> int:
        return min([self.start + at for at, one in enumerate(self.epochs) if one > epoch], default=self.end)

    def _first_after(self, epoch: int) -> int:
        return min([start for one, start in self.history if one > epoch], default=self.end)

    def read(self, start: int, limit: int) -> list[int]:
        return (
            [self.epoch_at(offset) for offset in range(start, min(start + limit, self.end))] if start >= self.start else []
        )

    # ---- operations

    def append(self, epochs: tuple[int, ...]) -> "PlainLog":
        return PlainLog(self.epochs + epochs, self.start) if epochs else self

    def append_at(self, base: int, epochs: tuple[int, ...]) -> "PlainLog":
        return self.append((self.latest,) * (base - self.end) + epochs)

    def truncate_to(self, offset: int) -> "PlainLog":
        return PlainLog(self.epochs[: max(offset - self.start, 0)], min(self.start, offset))

    def start_at(self, offset: int) -> "PlainLog":
        kept = self.epochs[offset - self.start :]
        return PlainLog(kept, offset, self.empty_epoch if kept else self.latest)

    def restart_at(self, offset: int) -> "PlainLog":
        return PlainLog((), offset)

    def open_epoch(self, epoch: int) -> "PlainLog":
        return PlainLog(self.epochs, self.start, epoch)


Operation = tuple[str, Callable[[PlainLog], PlainLog], Callable[[Any], Any]]
"""An operation: its words, its function on a plain log, and its function on a carrier."""


def operations(log: PlainLog) -> Iterator[Operation]:
    """Everything that a broker may do to a log, within the bounds; epochs never go back."""
    end = log.end
    yield "append nothing", lambda plain: plain, lambda carrier: carrier.append(())
    for epoch in range(max(log.latest, 0), MOST_EPOCH + 1):
        for base in range(end, MOST_RECORDS + 1):
            for count in range(1, MOST_RECORDS - base + 1):
                batch, epochs = Batch(count, Epoch(epoch)), (epoch,) * count
                yield (
                    f"append {count} of epoch {epoch} at {base}",
                    lambda plain, base=base, epochs=epochs: plain.append_at(base, epochs),  # type: ignore[misc]
                    lambda carrier, base=base, batch=batch: carrier.append_at(Offset(base), (batch,)),  # type: ignore[misc]
                )
        for later in range(epoch, MOST_EPOCH + 1):
            if end + 2 <= MOST_RECORDS:
                two = (Batch(1, Epoch(epoch)), Batch(1, Epoch(later)))
                yield (
                    f"append one of epoch {epoch} and one of epoch {later}",
                    lambda plain, epochs=(epoch, later): plain.append(epochs),  # type: ignore[misc]
                    lambda carrier, two=two: carrier.append(two),  # type: ignore[misc]
                )
    if log.latest == NO_EPOCH and end < MOST_RECORDS:
        yield "append one without epoch", lambda plain: plain.append((NO_EPOCH,)), lambda log: log.append((Batch(1),))
    for epoch in range(log.latest, MOST_EPOCH + 1):
        if epoch > NO_EPOCH:
            opened = log if epoch == log.latest else log.open_epoch(epoch)
            yield (
                f"open epoch {epoch}",
                lambda _, opened=opened: opened,  # type: ignore[misc]
                lambda carrier, epoch=epoch: carrier.open_epoch(Epoch(epoch)),  # type: ignore[misc]
            )
    for offset in range(MOST_RECORDS + 2):
        at = Offset(offset)
        yield (
            f"truncate to {offset}",
            lambda plain, at=at: plain.truncate_to(at),  # type: ignore[misc]
            lambda carrier, at=at: carrier.truncate_to(at),  # type: ignore[misc]
        )
        if log.start <= offset <= end:
            yield f"start at {offset}", lambda plain, at=at: plain.start_at(at), lambda one, at=at: one.start_at(at)  # type: ignore[misc]
        if offset <= MOST_RECORDS:
            yield (
                f"restart at {offset}",
                lambda plain, at=at: plain.restart_at(at),  # type: ignore[misc]
                lambda carrier, at=at: carrier.restart_at(at),  # type: ignore[misc]
            )


def answers_of_plain(log: PlainLog) -> dict[str, Any]:
    """Every answer of a plain log."""
    epochs, offsets = range(NO_EPOCH, MOST_EPOCH + 2), range(-1, MOST_RECORDS + 3)
    known = log.history
    return {
        "ends": (log.start, log.end),
        "latest_epoch": log.latest,
        "epoch_history": tuple(known),
        "epoch_at": [log.epoch_at(offset) for offset in offsets],
        "read": [log.read(start, limit) for start in offsets for limit in range(MOST_RECORDS + 2)],
        "read nothing": [not log.read(start, limit) for start in offsets for limit in range(MOST_RECORDS + 2)],
        "end_offset_for_epoch": [log.end_offset_for_epoch(epoch) for epoch in epochs],
        "largest_epoch_up_to": [log.largest_epoch_up_to(epoch) for epoch in epochs],
        "first_above": [log.first_above(epoch) for epoch in epochs],
        "previous_epoch": [epoch for epoch, _ in known][-2] if len(known) > 1 else NO_EPOCH,
        "entry_of": [dict(known).get(epoch) for epoch in epochs],
        "entry_before": [max([one for one, _ in known if one < epoch], default=NO_EPOCH) for epoch in epochs],
        "epoch_after": [min([one for one, _ in known if one > epoch], default=NO_EPOCH) for epoch in epochs],
        "in force": [max([one for one, start in known if start <= offset], default=NO_EPOCH) for offset in offsets],
    }


def answers_of(log: Any) -> dict[str, Any]:
    """Every answer of a carrier, in the same form."""
    epochs = [Epoch(epoch) for epoch in range(NO_EPOCH, MOST_EPOCH + 2)]
    offsets, history = [Offset(offset) for offset in range(-1, MOST_RECORDS + 3)], log.epoch_history
    return {
        "ends": (log.start_offset, log.end_offset),
        "latest_epoch": log.latest_epoch,
        "epoch_history": history.pairs,
        "epoch_at": [log.epoch_at(offset) for offset in offsets],
        "read": [
            [record.leader_epoch for record in records_of(log.read(start, limit))]
            for start in offsets
            for limit in range(MOST_RECORDS + 2)
        ],
        "read nothing": [log.read(start, limit) == () for start in offsets for limit in range(MOST_RECORDS + 2)],
        "end_offset_for_epoch": [_pair(log.end_offset_for_epoch(epoch)) for epoch in epochs],
        "largest_epoch_up_to": [_pair(log.largest_epoch_up_to(epoch)) for epoch in epochs],
        "first_above": [log.first_above(epoch) for epoch in epochs],
        "previous_epoch": history.previous_epoch,
        "entry_of": [
            entry.start_offset if (entry := history.entry_of(epoch)).leader_epoch != NO_EPOCH else None for epoch in epochs
        ],
        "entry_before": [history.entry_before(epoch).leader_epoch for epoch in epochs],
        "epoch_after": [history.epoch_after(epoch) for epoch in epochs],
        "in force": [history.epoch_at(offset) for offset in offsets],
    }


def _pair(answer: EpochEndOffset) -> tuple[int, int]:
    return answer.leader_epoch, answer.end_offset


def agree_as_plain(one: PlainLog, other: PlainLog) -> dict[str, Any]:
    """The expected result of a comparison of two logs by their epochs."""
    ends = range(max(one.end, other.end) + 2)
    same = [one.epoch_at(at) == other.epoch_at(at) != NO_EPOCH for at in ends]
    lowest = min(one.start, other.start)
    agreement = max([at + 1 for at in ends if same[at]], default=lowest)
    return {
        "holds_as": same,
        "agrees_below": [all(same[:end]) for end in ends],
        "agreement_end": max(agreement, min(lowest, one.end, other.end)),
    }


def agree(one: Any, other: Any) -> dict[str, Any]:
    """The result of a comparison of two logs of a carrier."""
    ends = [Offset(offset) for offset in range(max(one.end_offset, other.end_offset) + 2)]
    return {
        "holds_as": [one.holds_as(other, at) for at in ends],
        "agrees_below": [one.agrees_below(other, end) for end in ends],
        "agreement_end": one.agreement_end(other),
    }


def differences(empty: Any) -> Iterator[str]:
    """Differences of a carrier from a plain log: over every log that operations reach within the bounds.

    `empty` is the carrier's empty log. Every log is compared whose run of operations is a shortest one, and so is each
    outcome of an operation on it. Two ways to one plain log must give one log of the carrier.
    """
    known: dict[PlainLog, Any] = {PlainLog(): empty}
    how: dict[PlainLog, tuple[str, ...]] = {PlainLog(): ()}
    waiting = deque(known)
    turns = Turns()
    while waiting:
        turns.go()
        plain = waiting.popleft()
        for name, change_plain, change in operations(plain):
            after, steps = change_plain(plain), (*how[plain], name)
            try:
                made = change(known[plain])
                told = answers_of(made)
            except Exception as error:
                yield f"{'; '.join(steps)}: {error!r}"
                continue
            if after not in known:
                known[after], how[after] = made, steps
                waiting.append(after)
                yield from (f"{'; '.join(steps)}: {what}" for what in _differing(told, answers_of_plain(after)))
            elif made != known[after]:
                yield f"{'; '.join(steps)}: {made} is not {known[after]}, as after {'; '.join(how[after])}"
    for one, first in known.items():
        for other, second in known.items():
            try:
                told = agree(first, second)
            except Exception as error:
                yield f"compare {one} with {other}: {error!r}"
                continue
            if NO_EPOCH not in (*one.epochs, *other.epochs):  # records without an epoch are the same by their values alone
                yield from (f"compare {one} with {other}: {what}" for what in _differing(told, agree_as_plain(one, other)))


def _differing(told: dict[str, Any], right: dict[str, Any]) -> Iterator[str]:
    return (f"{name} is {told[name]}, not {right[name]}" for name in right if told[name] != right[name])


def histories() -> Iterator[tuple[tuple[int, int], ...]]:
    """Every epoch history within the bounds: epochs with their start offsets, both growing."""
    for count in range(MOST_EPOCH + 2):
        for epochs in combinations(range(MOST_EPOCH + 2), count):
            for starts in combinations(range(MOST_RECORDS + 2), count):
                yield tuple(zip(epochs, starts, strict=True))


def differences_of_histories(make: Callable[[tuple[tuple[int, int], ...]], Any]) -> Iterator[str]:
    """Differences of the operations on an epoch history by itself from what their sentences say.

    A batch may come with an earlier epoch or an earlier offset than the history knows: then it erases what contradicts it.
    `make` makes a history of pairs.
    """
    epochs, offsets = range(MOST_EPOCH + 3), range(MOST_RECORDS + 3)
    for known in histories():
        tried: list[tuple[str, Callable[[Any], Any], Any]] = []
        for start in offsets:
            for epoch in epochs:
                before = tuple(one for one in known if one[0] < epoch and one[1] < start)
                changes = not known or known[-1][0] != epoch or known[-1][1] > start
                right = (*before, (epoch, start)) if changes else known
                tried.append((f"assign {epoch} at {start}", partial(_assigned, epoch, start), right))
            in_force = [(epoch, start) for epoch, first in known if first <= start][-1:]
            later = [one for one in known if one[1] > start]
            tried.append((f"truncate_from_start {start}", partial(_from_start, start), (*in_force, *later)))
            for end in offsets[start + 1 :]:
                first = ([epoch for epoch, begin in known if begin <= start] or [NO_EPOCH])[-1]
                rest = [one for one in known if start < one[1] < end]
                tried.append((f"between {start} and {end}", partial(_between, start, end), [(first, start), *rest]))
        for end in range(-1, MOST_RECORDS + 3):
            right = known if end < 0 else tuple(one for one in known if one[1] < end)
            tried.append((f"truncate_from_end {end}", partial(_from_end, end), right))
        history = make(known)
        for name, change, right in tried:
            try:
                told = change(history)
            except Exception as error:
                told = repr(error)
            if told != right:
                yield f"{known}: {name} gives {told}, not {right}"


def _assigned(epoch: int, start: int, history: Any) -> Any:
    return history.assign(Epoch(epoch), Offset(start)).pairs


def _from_start(start: int, history: Any) -> Any:
    return history.truncate_from_start(Offset(start)).pairs


def _from_end(end: int, history: Any) -> Any:
    return history.truncate_from_end(Offset(end)).pairs


def _between(start: int, end: int, history: Any) -> Any:
    return [(entry.leader_epoch, entry.start_offset) for entry in history.between(Offset(start), Offset(end))]


def logs_within_bounds() -> list[PlainLog]:
    """Every log that operations reach."""
    known = {PlainLog()}
    waiting = [PlainLog()]
    turns = Turns()
    while waiting:
        turns.go()
        plain = waiting.pop()
        for _, change, _ in operations(plain):
            after = change(plain)
            if after not in known:
                known.add(after)
                waiting.append(after)
    return sorted(known, key=repr)
