"""Test vectors: what Apache Kafka's own unit tests expect, as data, replayed against this specification.

A file of vectors is a JSON list. A vector names a component, the operations to carry out on it in order (`setup`), and
what its state must be at the end (`expect`); an operation may carry the answer that it must give (`expect`). A pair is
a list, an absent value is null, an undefined epoch or offset is -1.

A component is a class here with one method per operation. Run a file with `python -m tests.conformance.vectors FILE`: one
line for each vector, and exit status 1 if any fails. What no class or method here can do, or what has another form than they
know, is reported as unsupported: not passed over, and no exception.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from spec.broker.rules.epoch_lookup import (
    answer_offset_for_leader_epoch,
    look_up_as_released,
    offset_for_leader_epoch_without_log,
)
from spec.broker.rules.fencing import check_serves
from spec.log.batch import Batch
from spec.log.epoch_history import NO_ENTRY, EpochEntry, EpochHistory
from spec.log.record_log import EMPTY_LOG, RecordLog
from spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from spec.values import NO_EPOCH, BrokerId, Epoch, LeaderAndIsr, Offset
from tests.conformance.components import Answer
from tests.conformance.components.fetcher import Fetcher
from tests.conformance.components.leader_partition import LeaderPartition
from tests.conformance.components.logs import CheckpointFile, Log, ProducerState, ReplicaState
from tests.conformance.controller_vectors import CONTROLLER_COMPONENTS
from tests.conformance.outcomes import MismatchError, UnsupportedError

Vector = dict[str, Any]

KAFKA_VECTORS = Path(__file__).parent / "data" / "kafka-vectors.json"


class Component(Protocol):
    """Something that vectors operate on: a method for each operation, which returns its answer as JSON has it."""

    def final_state(self) -> dict[str, Any]:
        """What a vector may expect at its end, by name."""


class EpochCache:
    """`epoch_cache`: Kafka's `LeaderEpochFileCache` is `EpochHistory`."""

    def __init__(self) -> None:
        self.history = EpochHistory()

    def final_state(self) -> dict[str, Any]:
        return {"entries": [list(pair) for pair in self.history.pairs]}

    def assign(self, epoch: int, start_offset: int) -> None:
        self.history = self.history.assign(Epoch(epoch), Offset(start_offset))

    def truncate_from_end(self, offset: int) -> None:
        self.history = self.history.truncate_from_end(Offset(offset))

    def truncate_from_start(self, offset: int) -> None:
        self.history = self.history.truncate_from_start(Offset(offset))

    def clear(self) -> None:
        self.history = EpochHistory()

    def reload_from_checkpoint(self) -> None:
        """The history is what the checkpoint holds; Kafka reads it by assigning entry after entry."""
        entries, self.history = self.history.entries, EpochHistory()
        for entry in entries:
            self.history = self.history.assign(entry.leader_epoch, entry.start_offset)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> list[int]:
        return list(self.history.end_offset_for(Epoch(epoch), Offset(log_end_offset)))

    def latest_epoch(self) -> int | None:
        return _epoch_or_null(self.history.latest_epoch)

    def previous_epoch(self) -> int | None:
        return _epoch_or_null(self.history.previous_epoch)

    def next_epoch(self, epoch: int) -> int | None:
        return _epoch_or_null(self.history.epoch_after(Epoch(epoch)))

    def epoch_for_offset(self, offset: int) -> int | None:
        return _epoch_or_null(self.history.epoch_at(Offset(offset)))

    def epoch_entry(self, epoch: int) -> list[int] | None:
        return _entry_or_null(self.history.entry_of(Epoch(epoch)))

    def previous_entry(self, epoch: int) -> list[int] | None:
        return _entry_or_null(self.history.entry_before(Epoch(epoch)))


def _epoch_or_null(epoch: Epoch) -> int | None:
    return None if epoch == NO_EPOCH else epoch


def _entry_or_null(entry: EpochEntry) -> list[int] | None:
    return None if entry == NO_ENTRY else [entry.leader_epoch, entry.start_offset]


class OffsetForLeaderEpochApi:
    """`offset_for_leader_epoch_api`: one broker, asked about one partition."""

    SELF, OTHER = BrokerId(0), BrokerId(1)
    WITHOUT_LOG = ("not_in_metadata", "in_metadata_without_log", "online_partition_without_log")

    def __init__(self) -> None:
        self.host_role = "not_in_metadata"
        self.leader_epoch = Epoch(7)
        self.log = EMPTY_LOG

    def final_state(self) -> dict[str, Any]:
        return {}

    def host(self, role: str, log_end_offset_for: dict[str, list[int]] | None = None, leader_epoch: int = 7) -> None:
        """The broker's role; of a leader or follower: its leader epoch, and where the epochs of its log end."""
        if role not in ("leader", "follower", *self.WITHOUT_LOG):
            raise UnsupportedError(f"role {role}")
        self.host_role, self.leader_epoch = role, Epoch(leader_epoch)
        self.log = _log_with_epoch_ends(log_end_offset_for or {})

    def offset_for_leader_epoch(self, current_leader_epoch: int | None, leader_epoch: int) -> dict[str, Any]:
        response = self._response(Epoch(-1 if current_leader_epoch is None else current_leader_epoch), Epoch(leader_epoch))
        return {"error": response.error.name, "epoch": response.end.leader_epoch, "end_offset": response.end.end_offset}

    def _response(self, claimed: Epoch, asked: Epoch) -> OffsetForLeaderEpochResponse:
        if self.host_role in self.WITHOUT_LOG:
            return offset_for_leader_epoch_without_log(self.host_role != "not_in_metadata")
        leader = self.SELF if self.host_role == "leader" else self.OTHER
        role = LeaderAndIsr(leader, self.leader_epoch, frozenset({self.SELF, self.OTHER}))
        verdict = check_serves(self.SELF, role, claimed, leader_only=True)
        return answer_offset_for_leader_epoch(verdict, look_up_as_released(self.log, asked))


def _log_with_epoch_ends(ends: dict[str, list[int]]) -> RecordLog:
    log = EMPTY_LOG
    for epoch, end in sorted(ends.values()):
        log = log.append((Batch(end - log.end_offset, Epoch(epoch)),))
    return log


COMPONENTS: dict[str, type[Component]] = {
    "epoch_cache": EpochCache,
    "offset_for_leader_epoch_api": OffsetForLeaderEpochApi,
    "log": Log,
    "replica_state": ReplicaState,
    "producer_state": ProducerState,
    "checkpoint_file": CheckpointFile,
    "leader_partition": LeaderPartition,
    "fetcher": Fetcher,
    **CONTROLLER_COMPONENTS,
}


class Outcome(NamedTuple):
    """What became of a vector, and why unless it passed."""

    vector: str
    verdict: Literal["pass", "fail", "unsupported"]
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.verdict:11} {self.vector}" + (f": {self.reason}" if self.reason else "")


def load(file: Path) -> list[Vector]:
    vectors: list[Vector] = json.loads(file.read_text(encoding="utf-8"))
    return vectors


def replay(vector: Vector) -> Outcome:
    """Carry out one vector, in every mode that it names, and compare."""
    outcomes = [_replay(variant) for variant in _in_each_mode(vector)]
    return next((outcome for outcome in outcomes if outcome.verdict != "pass"), outcomes[0])


def _in_each_mode(vector: Vector) -> Iterator[Vector]:
    """An operation `mode` lists values of settings; the vector holds for each combination of them."""
    setup = vector.get("setup", [])
    modes = [operation for operation in setup if operation.get("op") == "mode"]
    others = [operation for operation in setup if operation.get("op") != "mode"]
    choices = {name: values for mode in modes for name, values in mode.items() if name != "op"}
    for chosen in product(*choices.values()):
        mode = [{"op": "mode"} | dict(zip(choices, chosen, strict=True))] if modes else []
        yield vector | {"setup": mode + others}


def _replay(vector: Vector) -> Outcome:
    try:
        if vector["component"] not in COMPONENTS:
            raise UnsupportedError(f"component {vector['component']}")
        component = COMPONENTS[vector["component"]]()
        for number, operation in enumerate(vector["setup"], start=1):
            _carry_out(component, operation, f"operation {number}, {operation['op']}")
        _compare_state("final", vector["expect"], component.final_state())
    except UnsupportedError as gap:
        return Outcome(_id_of(vector), "unsupported", str(gap))
    except MismatchError as failure:
        return Outcome(_id_of(vector), "fail", str(failure))
    except AssertionError as failure:
        return Outcome(_id_of(vector), "fail", f"our own bug, or a state that no broker is in: {failure}")
    except UNREADABLE as gap:
        return Outcome(_id_of(vector), "unsupported", f"not in the vocabulary: {type(gap).__name__}: {gap}")
    return Outcome(_id_of(vector), "pass")


UNREADABLE = (TypeError, ValueError, LookupError, AttributeError)
"""What a component raises for arguments of another form than it knows."""


def _id_of(vector: Vector) -> str:
    return str(vector.get("id", "a vector without id"))


def _carry_out(component: Component, operation: dict[str, Any], which: str) -> None:
    """Carry out one operation, and compare its error, its answer, and whatever else the vector expects of it by name."""
    arguments = {name: value for name, value in operation.items() if name != "op" and not name.startswith("expect")}
    expected = {name: value for name, value in operation.items() if name.startswith("expect")}
    method = getattr(component, operation["op"], None)
    if method is None and operation["op"] == "state" and not arguments:
        _compare_state(which, expected.get("expect", {}), component.final_state())
        return
    if method is None or not _takes(method, arguments):
        raise UnsupportedError(which)
    answered = method(**arguments)
    answer = answered if isinstance(answered, Answer) else Answer(value=answered)
    error = expected.pop("expect_error", expected.pop("expect_status", "NONE"))
    _compare(f"{which}, error", error, answer.error)
    if "expect" in expected:
        _compare(which, expected.pop("expect"), answer.value)
    for name, value in expected.items():
        asked = name.removeprefix("expect_")
        if asked not in answer.named:
            raise UnsupportedError(f"{which}, {name}")
        _compare(f"{which}, {asked}", value, answer.named[asked])


def _takes(method: Callable[..., Any], arguments: dict[str, Any]) -> bool:
    try:
        signature(method).bind(**arguments)
    except TypeError:
        return False
    return True


def _compare_state(what: str, expected: dict[str, Any], state: dict[str, Any]) -> None:
    """Compare the part of a state that a vector speaks of."""
    for name, value in expected.items():
        if name not in state:
            raise UnsupportedError(f"{what} {name}")
        if isinstance(value, dict) and isinstance(state[name], dict):
            _compare_state(f"{what} {name}", value, state[name])
        else:
            _compare(f"{what} {name}", value, state[name])


def _compare(what: str, expected: object, actual: object) -> None:
    if actual != expected:
        raise MismatchError(f"{what}: expected {json.dumps(expected)}, got {json.dumps(actual, default=repr)}")


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tests.conformance.vectors FILE", file=sys.stderr)
        return 2
    outcomes = [replay(vector) for vector in load(Path(arguments[0]))]
    for outcome in outcomes:
        print(outcome)
    counts = Counter(outcome.verdict for outcome in outcomes)
    print(f"{len(outcomes)} vectors: {counts['pass']} pass, {counts['fail']} fail, {counts['unsupported']} unsupported")
    return 1 if counts["fail"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
