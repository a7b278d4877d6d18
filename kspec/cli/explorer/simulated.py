"""The end of a simulated cluster's run as a recording: each event that changes one partition, and each fault."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from types import FunctionType
from typing import Any

from kspec.cli.explorer.recording import RecordingError
from kspec.impl.broker.replica import Replica
from kspec.model_check.explorer.files.told import ToldRun, ToldStep, a_broker, a_slot, a_state, as_recording
from kspec.model_check.explorer.rules import rule_as_json
from kspec.model_check.models import MODELS
from kspec.model_check.traces.encode import in_words
from kspec.spec.broker.partition import Broker
from kspec.spec.metadata import PartitionRegistration
from kspec.spec.topics import TopicPartition
from kspec.spec.values import NO_EPOCH, NO_LEADER, Offset
from kspec.trials.simulated.clients.partitions import values_in
from kspec.trials.simulated.clock import START_MS
from kspec.trials.simulated.cluster import SimulatedCluster
from kspec.trials.simulated.history import PROMISES
from kspec.trials.simulated.ids import CONTROLLER_ID, FIRST_CLIENT_ID, TOPIC
from kspec.trials.simulated.kinds.site import Fault
from kspec.trials.simulated.network import SimulatedConnection, SimulatedRequest
from kspec.trials.simulated.runs import RunOutcome, run
from kspec.trials.simulated.setup import RunSetup

MOST = 120
"""Steps of a recording at most: the last ones, which lead to a failure."""

LAST_RECORDS = 24
"""Records of a log that are told, from its end; the page shows no more."""

LAST_ACKNOWLEDGED = 8
"""Records of which clients know, of those that were acknowledged last."""

Event = Mapping[str, str]


def recorded_run(
    setup: RunSetup, outcome: RunOutcome, most_steps: int, faults: Iterable[Fault] | None, most_ms: int | None
) -> dict[str, Any]:
    """The last steps of a run, taken once more, as a recording. It is the same run, since a seed always is.

    `faults` are those of the run, none: its own. The partition is that of which the failure speaks, or the first.
    `RecordingError` if the run comes out otherwise.
    """
    index = _partition_in(outcome)
    made: list[_RecordedCluster] = []

    def kind(setup: RunSetup, planned: Iterable[Fault]) -> SimulatedCluster:
        made.append(_RecordedCluster(setup, planned, index))
        return made[0]

    again = run(setup, most_steps, faults, most_ms, kind)  # type: ignore[arg-type]
    (cluster,) = made
    if (again.broken and again.broken.name) != (outcome.broken and outcome.broken.name):
        raise RecordingError(f"seed {setup.seed} came out otherwise when it was run again: {again.in_words()}")
    return as_recording(cluster.told_run(again))


def _partition_in(outcome: RunOutcome) -> int:
    found = re.search(r"partition (\d+)", outcome.broken.what) if outcome.broken else None
    return int(found[1]) if found else 0


class _ArrivalWatch:
    """A hold on frames that holds none: it sees which arrive."""

    def __init__(self) -> None:
        self.arrived: list[Event] = []

    def takes(self, line: SimulatedConnection, forth: bool, frame: Any) -> bool:
        """Note a frame that arrives now."""
        if frame is not None:
            ends = (_party(line.client.node_id), _party(line.server.node_id))
            source, target = ends if forth else ends[::-1]
            words = _request_name(line, frame) if forth else f"answer to {_answered_name(line)}"
            self.arrived.append({"from": source, "to": target, "words": words})
        return False


def _request_name(line: SimulatedConnection, frame: Any) -> str:
    correlation = frame.correlation if isinstance(frame, SimulatedRequest) else int.from_bytes(frame[4:8], "big")
    return next((one.asked.api for one in line.under_way if one.correlation == correlation), "a request of before")


def _answered_name(line: SimulatedConnection) -> str:
    return line.under_way[0].asked.api if line.under_way else "a request of before"


def _party(node_id: int) -> str:
    if node_id == CONTROLLER_ID:
        return "controller"
    return "producer" if node_id >= FIRST_CLIENT_ID - 1 else f"broker {node_id}"


class _RecordedCluster(SimulatedCluster):
    """A cluster that keeps its last states: what a reader would see of one partition."""

    def __init__(self, setup: RunSetup, planned: Iterable[Fault], index: int) -> None:
        self._watch = _ArrivalWatch()
        self._handled: list[tuple[Any, str]] = []
        self._notes: list[Event] = []
        self._state: dict[str, Any] | None = None
        self._index = index
        self._kept: deque[ToldStep] = deque(maxlen=MOST + 1)
        super().__init__(setup, planned)
        self._place = self.places.get(index, TopicPartition(TOPIC, index))
        self.network.holds.insert(0, self._watch)

    def next_event(self) -> None:
        """Let the next event happen, and keep what it changed."""
        try:
            super().next_event()
        finally:
            self._keep()

    def note(self, handler: Any, party: Any, state: Any, given: Any, outcome: Any) -> None:
        """Note a step of a handler."""
        self._handled.append((handler, _party(party.self_id) if isinstance(party, Broker) else "controller"))
        super().note(handler, party, state, given, outcome)

    def tell(self, what: str) -> None:
        """Note a fault."""
        super().tell(what)
        self._notes.append({"at": "faults", "words": what})

    # ---- what is kept

    def _keep(self) -> None:
        events = [*self._watch.arrived, *self._notes]
        handled, has_faults = self._handled, bool(self._notes)
        self._watch.arrived, self._notes, self._handled = [], [], []
        if not handled and not has_faults:
            return
        before, state = self._state, self._state_now()
        if state == before and not has_faults:
            return
        self._state = state
        handler, party = handled[0] if handled else (None, "faults")
        name = "Fault" if handler is None else handler.__name__
        rules = [rule_as_json(handler, MODELS["kafka"])] if isinstance(handler, FunctionType) else []
        when = f"at {(self.clock.now_ms - START_MS) / 1000:.3f} s"
        self._kept.append(ToldStep(name, when, party, events, state, rules=rules, marks=_acknowledged_since(before, state)))

    def _state_now(self) -> dict[str, Any]:
        epochs: dict[tuple[int, str], int] = {}
        brokers = [self._broker(node, epochs) for node in self.brokers]
        return a_state(brokers, self._controller(), {"acknowledged": list(self._acknowledged(epochs))})

    def _broker(self, node_id: int, epochs: dict[tuple[int, str], int]) -> dict[str, Any]:
        node, party = self.brokers[node_id], f"broker {node_id}"
        replica = node.core.replicas.get(self._place) if node.up else None
        if replica is None:
            slots = [a_slot("process", "starts", f"process[{node_id}]")] if node.up else []
            return a_broker(node_id, party, slots, up=node.up)
        partition = replica.partition
        slots = (
            [] if partition.leader == node_id else [a_slot("fetcher", in_words(partition.fetcher), f"fetcher[{node_id}]")]
        )
        return a_broker(node_id, party, slots, up=True, log=_log(replica, epochs), role=_role(node_id, replica))

    def _controller(self) -> dict[str, Any]:
        if not self.controller.up:
            return {"slots": [a_slot("controller", "down")]}
        image = self.controller.core.image.spec
        brokers = {
            "fenced": sorted(int(one.broker) for one in image.brokers if one.fenced),
            "stopping": sorted(int(one.broker) for one in image.brokers if one.in_controlled_shutdown),
        }
        has_topic = len(image.partitions) > self._index
        return {**brokers, "partition": _partition(self.registration_of(self._index)) if has_topic else None}

    def _acknowledged(self, epochs: Mapping[tuple[int, str], int]) -> Iterator[dict[str, Any]]:
        history = self.histories.get(self._index)
        last = [] if history is None else islice(reversed(history.acknowledged.items()), LAST_ACKNOWLEDGED)
        for value, offset in sorted(last, key=lambda one: one[1]):
            told = f"{value.producer}:{value.number}"
            epoch = epochs.get((offset, told), NO_EPOCH)
            yield {"offset": offset, "value": told, "leader_epoch": epoch, "words": _words(told, epoch)}

    def told_run(self, outcome: RunOutcome) -> ToldRun:
        """The steps that were kept, and what fails after the last one."""
        first, *steps = self._kept
        claims, broken = dict(PROMISES), outcome.broken
        if broken is not None:
            steps[-1] = steps[-1]._replace(fails={broken.name: broken.what})
            claims = {broken.name: PROMISES[broken.name], **claims}
        run = f"{outcome.steps:,} steps of handlers in {outcome.virtual_ms / 1000:.0f} s, {len(outcome.faults)} faults"
        words = f"{run}; here are the last {len(steps)} steps that changed partition {self._index}, and faults"
        name = f"simulated-{outcome.seed}"
        return ToldRun(name, f"simulated cluster, seed {outcome.seed}", words, first.state, steps, claims)


def _words(value: str, epoch: int) -> str:
    return f"{value}(e{epoch})" if epoch != NO_EPOCH else value


def _log(replica: Replica, epochs: dict[tuple[int, str], int]) -> dict[str, Any]:
    """A log as the page draws it; `epochs` gets the leader epoch of each record."""
    local = replica.partition.local
    log, pairs = local.log, local.log.epoch_history.pairs
    start = Offset(max(log.start_offset, log.end_offset - LAST_RECORDS))
    records = []
    for offset, value in _values(replica, start):
        told = f"{value.producer}:{value.number}"
        epoch = max((int(epoch) for epoch, begins in pairs if begins <= offset), default=int(NO_EPOCH))
        epochs.setdefault((offset, told), epoch)
        records.append(
            {
                "offset": offset,
                "value": told,
                "leader_epoch": epoch,
                "words": _words(told, epoch),
                "below_high_watermark": offset < local.high_watermark,
            }
        )
    return {
        "start": int(log.start_offset),
        "end": int(log.end_offset),
        "high_watermark": int(local.high_watermark),
        "records_from": records[0]["offset"] if records else int(log.end_offset),
        "records": records,
        "epochs": [{"leader_epoch": int(epoch), "start_offset": int(begins)} for epoch, begins in pairs][-3:],
    }


def _values(replica: Replica, start: Offset) -> Iterator[tuple[Offset, Any]]:
    """The records of a log from an offset on, as far as its files have them."""
    end = Offset(min(replica.partition.local.log.end_offset, replica.files.log.end_offset))
    offset = start
    while offset < end and not replica.offline:
        piece = replica.files.read(offset, end, 1 << 16, at_least_one=True)
        yield from (one for one in values_in(piece.bytes()) if one[0] >= start)
        if piece.next_offset <= offset:
            return
        offset = piece.next_offset


def _role(node_id: int, replica: Replica) -> dict[str, Any]:
    partition = replica.partition
    leads = partition.leader == node_id
    pending = partition.isr.pending_isr
    return {
        "is": "leader" if leads else "none" if partition.leader == NO_LEADER else "follower",
        "leader": None if partition.leader == NO_LEADER else int(partition.leader),
        "leader_epoch": None if partition.leader_epoch == NO_EPOCH else int(partition.leader_epoch),
        "epoch_start": int(partition.epoch_start) if leads else None,
        "isr": sorted(partition.isr.isr) if leads else None,
        "pending_isr": sorted(pending) if leads and pending else None,
    }


def _partition(registration: PartitionRegistration) -> dict[str, Any]:
    told = {name: sorted(getattr(registration, name)) for name in ("isr", "elr", "last_known_elr", "adding", "removing")}
    leader = None if registration.leader == NO_LEADER else int(registration.leader)
    epochs = {"leader_epoch": int(registration.leader_epoch), "partition_epoch": int(registration.partition_epoch)}
    return {"leader": leader, **epochs, "replicas": [int(one) for one in registration.replicas], **told}


def _acknowledged_since(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records that were acknowledged in this step."""
    known = {one["value"] for one in before["clients"]["acknowledged"]} if before else set()
    fresh = [one for one in after["clients"]["acknowledged"] if one["value"] not in known]
    return [{"kind": "acknowledged", "party": "producer", "offset": one["offset"], "words": one["words"]} for one in fresh]
