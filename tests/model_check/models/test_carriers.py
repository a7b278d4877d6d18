"""Models with the carrier that brokers run (`--log epochs`): the same states, verdicts and runs as with `RecordLog`."""

from functools import cache
from typing import Any, NamedTuple, cast

import pytest

from kspec.model_check.core.exploration import Exploration, Limits
from kspec.model_check.core.model import Model, when
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines import compiled, reference
from kspec.model_check.models import MODELS, carriers
from kspec.model_check.models.carriers import ModelLog, follows_from_its_records
from kspec.model_check.reports.matrix import ROWS, configurations_of, rules_in
from kspec.model_check.reports.mutants import HUNTS, weakened
from kspec.model_check.traces.encode import in_words
from kspec.model_check.traces.itf import as_itf
from kspec.spec.log.epoch_history import EpochEntry, EpochHistory
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.stored_log import StoredLog
from kspec.spec.releases.names import RELEASES
from kspec.spec.values import Epoch, Offset, Record
from tests.limits.marks import is_night, marked
from tests.model_check.engines.comparison import numbers_of
from tests.spec.log.one_line_changes import Change, carrier_with, changes

pytestmark = pytest.mark.slow

OF_CARRIER = ("HistoryFollowsRecords", "TwoEpochsInHistory")
"""Properties that only `--log epochs` has."""


MOST_STATES = 150_000
"""A configuration of the matrix is explored up to so many states by night."""

MOST_STATES_BY_DAY = 4_000

DIFFERENT_ROWS = list({rules_in(ROWS[row]): row for row in reversed(list(ROWS))}.values())[::-1]
"""The rows of the matrix, but for releases with the same rules as another."""

ROWS_BY_DAY = ("2.5", "4.2")
"""Those that every run of the tests compares."""


def explored(model: Model, *, everything: bool = False, without: tuple[str, ...] = OF_CARRIER) -> Exploration:
    chosen = [prop for prop in model.properties if (prop.by_default or everything) and prop.name not in without]
    limits = Limits(stop_at_first=not everything)
    return compiled.explore(model, chosen, limits, workers=1, symmetry=Symmetry(model))


def built(name: str, log: str, bounds: dict[str, Any]) -> Model:
    return MODELS[name].build({**bounds, "log": log})


def compare(name: str, bounds: dict[str, Any], *, everything: bool = False) -> Exploration:
    """Both carriers count the same states, levels and steps of each action, and find runs of the same lengths."""
    as_records, as_epochs = (explored(built(name, log, bounds), everything=everything) for log in ("records", "epochs"))
    assert numbers_of(as_epochs) == numbers_of(as_records)
    return as_epochs


DAY = ("0.10", "2.0", "2.8", "4.4", "next")
NIGHT = [release for release in RELEASES if release not in DAY]


@pytest.mark.parametrize("release", [*DAY, *marked(NIGHT, slow=NIGHT, nightly=NIGHT)])
def test_a_release_has_the_same_verdicts_with_either_carrier(release: str) -> None:
    compare("kafka", {"release": release})


@pytest.mark.nightly
@pytest.mark.parametrize("name", HUNTS)
def test_a_weakened_rule_is_caught_with_either_carrier(name: str) -> None:
    bounds = {**HUNTS[name], "mutant": weakened(name)}
    if name not in WHERE_EPOCHS_GO_BACK:
        assert compare("kafka", bounds).violated
        return
    as_records, as_epochs = (explored(built("kafka", log, bounds)) for log in ("records", "epochs"))
    assert violations_of(as_records) == violations_of(as_epochs)
    assert as_epochs.violated


WHERE_EPOCHS_GO_BACK = ("epoch-lookup-by-end", "take-answer-of-other-offset", "forget-last-epoch")
"""Followers take records of an earlier epoch than they have: states are counted otherwise, and verdicts are the same."""


def violations_of(exploration: Exploration) -> list[tuple[str, int]]:
    return [(verdict.prop.name, len(verdict.trace or ())) for verdict in exploration.verdicts if verdict.violated]


@pytest.mark.parametrize("row", marked(DIFFERENT_ROWS, nightly=set(DIFFERENT_ROWS) - set(ROWS_BY_DAY)))
def test_the_matrix_of_releases_is_the_same_with_either_carrier(row: str) -> None:
    """By day every fourth configuration, as far as `MOST_STATES_BY_DAY`."""
    most = MOST_STATES if is_night() else MOST_STATES_BY_DAY
    for bounds in list(configurations_of(ROWS[row]).values())[:: 1 if is_night() else 4]:
        results = []
        for log in ("records", "epochs"):
            model = built("kafka", log, {**bounds, "release": ROWS[row]})
            chosen = [prop for prop in model.properties if prop.by_default and prop.name not in OF_CARRIER]
            symmetry = Symmetry(model) if model.interchangeable else None
            limits = Limits(stop_at_first=False, max_states=most)
            results.append(compiled.explore(model, chosen, limits, workers=1, symmetry=symmetry))
        assert violations_of(results[0]) == violations_of(results[1])
        assert results[0].complete == results[1].complete
        if always_in_order({**bounds, "release": ROWS[row]}, most):
            assert results[0].levels == results[1].levels


@pytest.mark.parametrize("name", ["truncate-to-hw", "kip-101", "kip-279", "kip-320-first-try", "kip-320"])
def test_a_published_model_has_the_same_verdicts_with_either_carrier(name: str) -> None:
    compare(name, {"max_epoch": 1, "replicas": 2}, everything=True)


def test_the_model_messages_counts_the_same_with_either_carrier() -> None:
    compare("messages", {"fetches": 2}, everything=True)


SMALL: list[dict[str, Any]] = [
    {"release": "next", "brokers": 2, "min_isr": 1, "elections": 0, "values": 1, "unclean_shutdowns": 1},
    {"release": "2.7", "brokers": 2, "min_isr": 1, "elections": 2, "values": 2},
    {"release": "next", "brokers": 2, "min_isr": 1, "elections": 1, "unclean_shutdowns": 1},
    {"release": "next", "brokers": 2, "min_isr": 1, "elections": 1, "values": 2, "unclean": True, "unclean_shutdowns": 1},
]


@pytest.mark.parametrize("bounds", marked(SMALL, nightly=SMALL[2:]), ids=str)
def test_every_state_is_counted_as_often_where_epochs_never_go_back(bounds: dict[str, Any]) -> None:
    """Counts must be equal where every reachable log is in order: then each carrier's log follows from the other's."""
    assert always_in_order(bounds)
    compare("kafka", bounds, everything=True)


def test_counts_may_differ_only_where_epochs_go_back() -> None:
    """Up to 2.6 a follower keeps an epoch that it had opened, and takes records of an earlier one (KAFKA-10706)."""
    bounds = {"release": "2.2", "brokers": 2, "min_isr": 1, "elections": 2, "values": 2}
    assert not always_in_order(bounds)
    as_records, as_epochs = (explored(built("kafka", log, bounds), everything=True) for log in ("records", "epochs"))
    assert as_records.distinct_states != as_epochs.distinct_states
    assert not as_records.violated
    assert not as_epochs.violated


def always_in_order(bounds: dict[str, Any], most: int = MOST_STATES) -> bool:
    """Whether in every reachable log epochs never go back, and never did: its history is that of its records."""

    def in_order(log: LocalLog[ModelLog]) -> bool:
        epochs = [record.leader_epoch for record in log.log.records]
        return epochs == sorted(epochs) and follows_from_its_records(log.log)

    model = built("kafka", "epochs", bounds)
    logs = [slot for slot in model.slots if slot.name == "log"]
    model.properties.clear()
    model.always("InOrder", [when(in_order, slot) for slot in logs], "epochs never go back", None)
    limits = Limits(max_states=most)
    symmetry = Symmetry(model) if model.interchangeable else None
    return not compiled.explore(model, model.properties, limits, workers=1, symmetry=symmetry).violated


@pytest.mark.parametrize("symmetric", marked([True, False], nightly=[False]))
def test_the_reference_engine_counts_the_same(symmetric: bool) -> None:
    model = built("kafka", "epochs", {"release": "2.7", "brokers": 2, "min_isr": 1, "elections": 1, "values": 1})
    limits, symmetry = Limits(stop_at_first=False), Symmetry(model)
    symmetry.check(model.properties)
    of = symmetry if symmetric else None
    expected = numbers_of(reference.explore(model, model.properties, limits, of))
    assert numbers_of(compiled.explore(model, model.properties, limits, symmetry=of)) == expected


# ---- the carrier weakened


class CarrierHunt(NamedTuple):
    """A one-line change of `EpochLog` or `EpochHistory`, and where a model shows it."""

    change: str
    model: str
    bounds: dict[str, Any]
    prop: str
    steps: int


TWO: dict[str, Any] = {"brokers": 2, "min_isr": 1, "elections": 2, "values": 2}
OLD, NEW = {**TWO, "release": "2.2"}, {**TWO, "release": "next"}
MIDDLE = {**TWO, "release": "2.7", "elections": 3}
PUBLISHED: dict[str, Any] = {"replicas": 2, "max_epoch": 1}

STARTS = "self.entries[kept - 1].start_offset >= start_offset"
HIGHER = "self.entries[kept - 1].leader_epoch >= epoch"
NOTED = "HistoryFollowsRecords"
HUNTED = (
    CarrierHunt(f"EpochHistory.assign: {STARTS} -> {STARTS.replace('>=', '>')}", "kafka", OLD, "TypeOk", 6),
    CarrierHunt(f"EpochHistory.assign: {HIGHER} -> {HIGHER.replace('>=', '>')}", "kafka", OLD, "TypeOk", 14),
    CarrierHunt("EpochHistory.assign: *self.entries[:kept] -> *()", "kafka", OLD, "CommittedOnNextLeader", 13),
    CarrierHunt("EpochHistory.assign: epoch == self.latest_epoch -> epoch >= self.latest_epoch", "kafka", NEW, NOTED, 6),
    CarrierHunt(
        "EpochHistory.end_offset_for: entry.leader_epoch > epoch -> entry.leader_epoch >= epoch",
        "kafka",
        OLD,
        "AcknowledgedOnNextLeader",
        10,
    ),
    CarrierHunt(
        "EpochHistory.end_offset_for: epoch == self.latest_epoch -> epoch != self.latest_epoch",
        "kafka",
        OLD,
        "CommittedOnNextLeader",
        10,
    ),
    CarrierHunt(
        "EpochHistory.end_offset_for: floor == NO_EPOCH -> floor != NO_EPOCH", "kafka", OLD, "CommittedOnNextLeader", 13
    ),
    CarrierHunt(
        "EpochHistory.largest_epoch_up_to: entry.leader_epoch > epoch -> entry.leader_epoch >= epoch",
        "kip-279",
        {**PUBLISHED, "truncation": "exchange"},
        "WeakIsr",
        8,
    ),
    CarrierHunt("EpochHistory.epoch_at: bisect_right -> bisect_left", "kip-101", PUBLISHED, "CommittedOnNextLeader", 8),
    CarrierHunt(
        "EpochLog.first_above: entry.leader_epoch > epoch -> entry.leader_epoch >= epoch",
        "kip-101",
        PUBLISHED,
        "CommittedOnNextLeader",
        11,
    ),
    CarrierHunt(
        "EpochHistory.truncate_from_end: entry.start_offset < end_offset -> entry.start_offset <= end_offset",
        "kafka",
        MIDDLE,
        NOTED,
        14,
    ),
    CarrierHunt("EpochHistory.truncate_from_end: end_offset < 0 -> end_offset <= 0", "kafka", MIDDLE, NOTED, 14),
    CarrierHunt(
        "EpochLog.truncate_to: self.epoch_history.truncate_from_end(end) -> self.epoch_history", "kafka", MIDDLE, NOTED, 14
    ),
    CarrierHunt("EpochLog.truncate_to: min -> max", "kafka", OLD, "CommittedOnNextLeader", 3),
    CarrierHunt(
        "EpochLog.open_epoch: self.epoch_history.assign(epoch, self.end_offset) -> self.epoch_history",
        "kafka",
        OLD,
        "CommittedOnNextLeader",
        14,
    ),
    CarrierHunt(
        "EpochLog.append_at: history.assign(batch.leader_epoch, end) -> history",
        "kafka",
        OLD,
        "AcknowledgedOnNextLeader",
        14,
    ),
    CarrierHunt("EpochLog.read: min -> max", "kafka", OLD, "AcknowledgedOnLeader", 7),
)


@cache
def violated_when_sound(name: str, bounds: tuple[tuple[str, Any], ...]) -> set[str]:
    """The properties of the hunts that a model with the carrier as it is violates within these bounds: explored once."""
    sound = built(name, "epochs", dict(bounds))
    hunted = {hunt.prop for hunt in HUNTED if (hunt.model, tuple(hunt.bounds.items())) == (name, bounds)}
    asked = [prop for prop in sound.properties if prop.name in hunted]
    assert {prop.name for prop in asked} == hunted
    found = compiled.explore(sound, asked, Limits(), workers=1, symmetry=Symmetry(sound))
    return {verdict.prop.name for verdict in found.verdicts if verdict.violated}


@cache
def all_changes() -> dict[str, Change]:
    """The changes by name. One name may stand for several places, of which the first counts."""
    found: dict[str, Change] = {}
    for change in changes():
        found.setdefault(change.name, change)
    return found


@pytest.mark.xdist_group("weakened carriers")
@pytest.mark.parametrize("hunt", HUNTED, ids=lambda hunt: hunt.change)
def test_a_weakened_carrier_is_caught_by_a_shortest_run(hunt: CarrierHunt, monkeypatch: pytest.MonkeyPatch) -> None:
    assert violated_when_sound(hunt.model, tuple(hunt.bounds.items())) == set()
    change = all_changes()[hunt.change]
    weak = carrier_with(change.module, change.tree).log.EMPTY_EPOCH_LOG
    monkeypatch.setitem(cast(dict[str, Any], carriers.CARRIERS), "epochs", StoredLog(weak))
    model = built(hunt.model, "epochs", hunt.bounds)
    prop = model.property_named(hunt.prop)
    assert prop is not None
    found = compiled.explore(model, [prop], Limits(), workers=1, symmetry=Symmetry(model)).verdicts[0]
    assert found.trace is not None
    assert len(found.trace) - 1 == hunt.steps


# ---- how such a log is shown


def a_log(pairs: tuple[tuple[int, int], ...], end: int) -> StoredLog:
    entries = tuple(EpochEntry(Epoch(epoch), Offset(start)) for epoch, start in pairs)
    records = (Record(1, Epoch(0)), Record(2, Epoch(3)))
    return StoredLog(EpochLog(EpochHistory(entries), Offset(0), Offset(end)), records)


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (StoredLog(), "empty"),
        (a_log(((0, 0), (3, 1)), 2), "m1(e0) m2(e3)"),
        (a_log(((0, 0), (3, 1), (4, 2)), 2), "m1(e0) m2(e3) +e4"),
        (a_log(((0, 0),), 2), "m1(e0) m2(e3) (epochs by the history: e0 from 0; end 2)"),
        (a_log(((0, 0), (3, 1)), 1), "m1(e0) m2(e3) (epochs by the history: e0 from 0, e3 from 1; end 1)"),
    ],
    ids=str,
)
def test_in_words(log: StoredLog, words: str) -> None:
    assert in_words(log) == words


def test_a_run_is_written_as_itf() -> None:
    model = built("kafka", "epochs", {"release": "1.1"})
    trace = next(verdict.trace for verdict in explored(model).verdicts if verdict.violated)
    assert trace is not None
    last = as_itf(model, trace, "a run")["states"][-1]
    logs = [log["log"]["epochs"]["epoch_history"]["entries"] for _, log in last["log"]["#map"]]
    epochs = [entry for entries in logs for entry in entries]
    assert all(set(entry) == {"leader_epoch", "start_offset"} for entry in epochs)
    assert epochs
