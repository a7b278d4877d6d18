"""Anomalies by their definitions, read off all events at once: slow, and with nothing in common with `trials.history`."""

from collections.abc import Sequence

from kspec.trials.history.events import (
    ACKNOWLEDGED,
    REFUSED,
    ConsumerAssignment,
    Event,
    PartitionEnd,
    Poll,
    SendOutcome,
    SendStart,
)

Found = set[tuple[str, str]]


def anomalies_by_definition(events: Sequence[Event]) -> Found:
    """Names and subjects of all anomalies of a history of one partition."""
    acks = [(n, e) for n, e in enumerate(events) if isinstance(e, SendOutcome) and e.kind == ACKNOWLEDGED]
    polls = [(n, o, v) for n, e in enumerate(events) if isinstance(e, Poll) for o, v in e.records]
    placed = [(e.offset, e.value) for _, e in acks if e.offset is not None] + [(o, v) for _, o, v in polls]
    polled = {v for *_, v in polls}
    found: Found = set()
    found |= {("duplicate", v) for o, v in placed for p, w in placed if v == w and o != p}
    found |= {("inconsistent-offsets", str(o)) for o, v in placed for p, w in placed if o == p and v != w}
    found |= {("phantom", v) for v in polled if not any(isinstance(e, SendStart) and e.value == v for e in events)}
    refused = {e.value for e in events if isinstance(e, SendOutcome) and e.kind == REFUSED}
    found |= {("aborted-read", v) for v in refused & polled}
    highest = max((o for _, o, _ in polls), default=-1)
    lost = {e.value for _, e in acks if e.value not in polled and e.offset is not None and e.offset < highest}
    lost |= _missing(events, [*((n, e.offset, e.value) for n, e in acks), *polls])
    found |= {("lost-write", v) for v in lost}
    found |= {("unseen", e.value) for _, e in acks if e.value not in polled | lost}
    return found | _of_sends(events) | _of_steps(events, {o for o, _ in placed})


def _missing(events: Sequence[Event], seen: list[tuple[int, int | None, str]]) -> set[str]:
    lost = set()
    for begin, assigned in enumerate(events):
        for end, ended in enumerate(events):
            if not (isinstance(assigned, ConsumerAssignment) and isinstance(ended, PartitionEnd) and begin < end):
                continue
            between = [e for e in events[begin + 1 : end] if getattr(e, "consumer", None) == assigned.consumer]
            if ended.consumer != assigned.consumer or not all(isinstance(e, Poll) for e in between):
                continue
            read = {v for e in between if isinstance(e, Poll) for _, v in e.records}
            covered = {
                v for n, o, v in seen if n < begin and (assigned.offset == 0 or (o is not None and o >= assigned.offset))
            }
            lost |= covered - read
    return lost


def _of_sends(events: Sequence[Event]) -> Found:
    found: Found = set()
    offsets = {e.value: e.offset for e in events if isinstance(e, SendOutcome) and e.kind == ACKNOWLEDGED}
    for producer in {e.producer for e in events if isinstance(e, SendStart)}:
        mine = [e.value for e in events if isinstance(e, SendStart) and e.producer == producer]
        stored = [(v, o) for v in mine if (o := offsets.get(v)) is not None]
        for index in range(len(stored) - 1):
            (one, first), (two, second) = stored[index : index + 2]
            if second <= first:
                found.add(("nonmonotonic-send", f"{producer}: {one}, {two}"))
    return found


def _of_steps(events: Sequence[Event], known: set[int]) -> Found:
    found: Found = set()
    for consumer in {e.consumer for e in events if isinstance(e, (ConsumerAssignment, Poll))}:
        moves: list[tuple[int | None, int, bool]] = []
        at: int | None = None
        for event in events:
            if isinstance(event, ConsumerAssignment) and event.consumer == consumer:
                at = event.offset - 1
            if isinstance(event, Poll) and event.consumer == consumer:
                for index, (offset, _) in enumerate(event.records):
                    moves.append((at, offset, index > 0))
                    at = offset
        for before, after, inside in moves:
            prefix = "int-" if inside else ""
            if before is not None and after <= before:
                found.add((f"{prefix}nonmonotonic-poll", f"{consumer}: {before} to {after}"))
            elif before is not None and any(before < offset < after for offset in known):
                found.add((f"{prefix}poll-skip", f"{consumer}: {before} to {after}"))
    return found
