"""The model `kafka`: what it counts, what it finds in releases, and that the repaired release has none of it."""

from importlib import import_module
from typing import Any

import pytest

from kspec.model_check.core.audit import audit
from kspec.model_check.core.exploration import Exploration, Limits, Trace
from kspec.model_check.core.model import Model
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines import compiled, reference
from kspec.model_check.engines.explorer import explorer
from kspec.model_check.models import MODELS
from kspec.model_check.models.kafka.kraft.reading import Reading, with_image
from kspec.model_check.models.kafka.reductions import image_for
from kspec.model_check.models.kafka.settings import KIP_279_BOUNDS, KIP_320_BOUNDS
from kspec.model_check.models.kafka.values import ModelController, TopicRegistration
from kspec.spec.metadata import BrokerRegistration
from kspec.spec.releases.broker import BROKER_RELEASES
from kspec.spec.releases.kraft import KRAFT_RELEASES
from kspec.spec.values import BrokerEpoch, BrokerId, Epoch, Incarnation, PartitionEpoch
from tests.counts import count_of
from tests.limits.marks import is_night, marked
from tests.model_check.commands import Command
from tests.model_check.engines.comparison import assert_replays, numbers_of

TWO_ELECTIONS_IN_ONE_DELTA = {"elections": 1, "fencings": 1}
"""Enough for the second of two elections to bring the first leader back, both clean."""


def kafka(**parameters: Any) -> Model:
    """The repaired release, if no other is named."""
    return MODELS["kafka"].build({"release": "next", **parameters})


def explored(model: Model, *, everything: bool = False) -> Exploration:
    properties = [prop for prop in model.properties if prop.by_default]
    return compiled.explore(model, properties, Limits(stop_at_first=not everything), symmetry=Symmetry(model))


def violated(exploration: Exploration) -> dict[str, int]:
    """The violated properties, each with the number of steps of its shortest counterexample."""
    return {verdict.prop.name: len(verdict.trace or ()) - 1 for verdict in exploration.verdicts if verdict.violated}


def steps(trace: Trace) -> list[str]:
    return [step.action.label for step in trace if step.action]


SMALL: list[Any] = [
    pytest.param({"brokers": 2, "min_isr": 1, "elections": 1, "isr_shrinks": 1}, marks=pytest.mark.slow),
    pytest.param({"brokers": 2, "min_isr": 2, "elections": 0, "fencings": 1}, marks=pytest.mark.slow),
    pytest.param({"brokers": 2, "min_isr": 1, "elections": 0, "clean_shutdowns": 1}, marks=pytest.mark.nightly),
    {"brokers": 2, "min_isr": 1, "elections": 0, "values": 0, "clean_shutdowns": 1},
    pytest.param(
        {"brokers": 2, "min_isr": 1, "elections": 0, "unclean_shutdowns": 1, "unclean": True}, marks=pytest.mark.slow
    ),
    {"brokers": 2, "min_isr": 1, "elections": 1, "late_fetches": 1},
    {"brokers": 2, "min_isr": 1, "elections": 1, "values": 2, "retries": 1},
    pytest.param({"brokers": 3, "min_isr": 2, "elections": 1}, marks=pytest.mark.nightly),
    pytest.param({"brokers": 2, "release": "3.9", "min_isr": 1, "elections": 2}, marks=pytest.mark.slow),
    {"brokers": 2, "release": "0.10", "min_isr": 1, "elections": 1},
    pytest.param({"brokers": 2, "release": "2.1", "min_isr": 1, "elections": 1, "isr_shrinks": 1}, marks=pytest.mark.slow),
    {"brokers": 2, "release": "3.9,next", "elections": 1},
    pytest.param({"brokers": 3, "release": "3.9,next,4.0", "elections": 1}, marks=pytest.mark.nightly),
]


@pytest.mark.parametrize("parameters", SMALL, ids=str)
def test_the_compiled_engine_counts_as_the_reference_engine(parameters: dict[str, Any]) -> None:
    model = kafka(**parameters)
    limits = Limits(stop_at_first=False, max_states=3000)
    expected = numbers_of(reference.explore(model, model.properties, limits))
    if not expected["complete"]:
        pytest.fail("too big to compare: make the bounds smaller")
    assert numbers_of(compiled.explore(model, model.properties, limits)) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters", [SMALL[0], pytest.param({"brokers": 3, "min_isr": 2, "elections": 1}, marks=pytest.mark.nightly)], ids=str
)
def test_the_engines_count_the_same_orbits(parameters: dict[str, Any]) -> None:
    model = kafka(**parameters)
    symmetry, limits = Symmetry(model), Limits(stop_at_first=False)
    symmetry.check(model.properties)
    expected = numbers_of(reference.explore(model, model.properties, limits, symmetry))
    assert numbers_of(compiled.explore(model, model.properties, limits, symmetry=symmetry)) == expected


@pytest.mark.parametrize(
    "bounds",
    [
        {"release": "3.4,4.2"},
        {"release": "2.6,2.8"},
        {"elections": 0, "values": 0, "only_stops": 1, "clean_shutdowns": 1},
        pytest.param({"only_stops": 1, "clean_shutdowns": 1}, marks=pytest.mark.nightly),
    ],
    ids=str,
)
@pytest.mark.parametrize("engine", ["compiled", "reference", pytest.param("spark", marks=pytest.mark.slow)])
def test_symmetry_of_less_than_two_interchangeable_brokers_changes_nothing(bounds: dict[str, Any], engine: str) -> None:
    model = kafka(**{"brokers": 2, "min_isr": 1, "elections": 1, **bounds})
    limits, settings = Limits(stop_at_first=False), None
    if engine == "spark":
        pytest.importorskip("pyspark", reason="engine spark is not installed")
        settings = import_module("kspec.model_check.engines.spark.session").SparkSettings("local[2]")
    expected = explorer(engine, spark_settings=settings)(model, model.properties, limits)
    result = explorer(engine, symmetry=Symmetry(model), spark_settings=settings)(model, model.properties, limits)
    assert numbers_of(result) == numbers_of(expected)
    assert (result.symmetry, result.represented) == (True, expected.distinct_states)


@pytest.mark.slow
def test_actions_read_and_write_what_they_declare() -> None:
    assert audit(kafka(elections=1, isr_shrinks=1, fencings=1, clean_shutdowns=1), 60, seed=1, unused=False).findings == []


def test_without_disturbances_everything_holds() -> None:
    found = explored(kafka(), everything=True)
    assert found.complete
    assert not violated(found)
    assert (found.distinct_states, found.transitions, found.depth) == count_of("kafka", symmetry=True, elections=1)
    assert all(verdict.holds for verdict in found.verdicts)


@pytest.mark.slow
def test_a_missed_epoch_loses_an_acknowledged_record_by_clean_elections_only() -> None:
    """Z19. The leader of epoch 0 takes epochs 1 and 2 at once, and counts what a follower fetched in epoch 0."""
    found = explored(kafka(release="4.0", **TWO_ELECTIONS_IN_ONE_DELTA))
    lost = violated(found)
    assert lost["AcknowledgedOnNextLeader"] == lost["CommittedOnNextLeader"] == 12
    (trace,) = [verdict.trace for verdict in found.verdicts if verdict.prop.name == "AcknowledgedOnNextLeader"]
    assert trace is not None
    assert_replays(found.model, trace)
    assert any(step.endswith("decisions=2)") for step in steps(trace))
    assert not {step.split("(")[0] for step in steps(trace)} - {
        "CreatePartition",
        "ReplayMetadata",
        "Produce",
        "Fetch",
        "ElectPreferred",
        "Fence",
    }


@pytest.mark.slow
def test_a_missed_epoch_loses_nothing_if_followers_are_forgotten() -> None:
    found = explored(kafka(**TWO_ELECTIONS_IN_ONE_DELTA), everything=True)
    assert found.complete
    assert not violated(found)
    assert found.distinct_states == count_of("kafka", symmetry=True, elections=1, fencings=1).states


KRAFT_NAMES = [release.name for release in KRAFT_RELEASES]


@pytest.mark.slow
@pytest.mark.parametrize("release", marked(KRAFT_NAMES, nightly=[*{*KRAFT_NAMES} - {*KRAFT_NAMES[::4]}]))
def test_every_release_is_explored_with_an_unclean_shutdown(release: str) -> None:
    """Before 4.0 a broker that comes back unclean stays in the ISR: that alone stops no search here."""
    model = kafka(release=release, unclean_shutdowns=1, elections=0)
    others = [prop for prop in model.properties if prop.name != "UncleanExclusion"]
    most = 20_000 if is_night() else 5_000
    found = compiled.explore(model, others, Limits(max_states=most))
    assert violated(found) or found.distinct_states >= most


@pytest.mark.parametrize("release", [pytest.param("3.7", marks=pytest.mark.slow), "4.0"])
def test_a_late_announcement_makes_a_leader_forget_a_proposal_and_lose_a_record(release: str) -> None:
    """No election, nobody stops: one follower was too slow, and is back."""
    model = kafka(release=release, elections=0, isr_shrinks=1)
    committed = [prop for prop in model.properties if prop.name == "CommittedOnNextLeader"]
    found = compiled.explore(model, committed, Limits(), symmetry=Symmetry(model))
    assert violated(found) == {"CommittedOnNextLeader": 13}
    (trace,) = [verdict.trace for verdict in found.verdicts]
    assert trace is not None
    assert_replays(model, trace)
    assert steps(trace)[-1].startswith("ReplayMetadata")


def test_a_leader_that_takes_only_news_forgets_no_proposal() -> None:
    found = explored(kafka(elections=0, isr_shrinks=1), everything=True)
    assert found.complete
    assert not violated(found)


# ---- what each old release is known for, in its default bounds


def test_0_10_loses_a_record_by_truncating_to_the_high_watermark() -> None:
    """KIP-101. The follower that begins to follow the next leader cuts off what the last one has counted."""
    found = explored(kafka(release="0.10"))
    assert violated(found)["CommittedOnNextLeader"] == 11
    assert not violated(explored(kafka(release="0.11", **FIRST_BOUNDS)))


FIRST_BOUNDS = {"brokers": 3, "values": 1, "elections": 1}


@pytest.mark.parametrize(("release", "steps"), [("0.11", 15), pytest.param("1.1", 14, marks=pytest.mark.slow)])
def test_0_11_keeps_a_record_over_two_fast_leader_changes(release: str, steps: int) -> None:
    """KIP-279; and a fetch without an epoch loses a record earlier. From 1.0 to 1.1 an answer has the new high watermark."""
    found = explored(kafka(release=release), everything=True)
    assert found.complete
    assert violated(found)["LogMatching"] == steps
    assert violated(found)["CommittedOnNextLeader"] == 13


def test_2_0_keeps_no_record_over_two_fast_leader_changes() -> None:
    model = kafka(release="2.0", **KIP_279_BOUNDS)
    matching = [prop for prop in model.properties if prop.name == "LogMatching"]
    found = compiled.explore(model, matching, Limits(), symmetry=Symmetry(model))
    assert (found.complete, found.distinct_states, violated(found)) == (True, 4_371, {})


def test_2_0_follows_a_leader_of_the_past() -> None:
    """KIP-320. Nothing tells the follower that the epoch of the leader that it asks is over."""
    found = explored(kafka(release="2.0"))
    assert violated(found)["CommittedOnNextLeader"] == 17
    (trace,) = [verdict.trace for verdict in found.verdicts if verdict.prop.name == "CommittedOnNextLeader"]
    assert trace is not None
    assert_replays(found.model, trace)
    assert any(step.startswith("AskLeader") for step in steps(trace))


def test_2_1_fences_leaders_of_the_past() -> None:
    """Within the same bounds nothing is lost: each broker is told of each epoch, so none is missed."""
    found = explored(kafka(release="2.1", **KIP_320_BOUNDS), everything=True)
    assert found.complete
    assert not violated(found)
    assert found.distinct_states == 4_141


def test_what_is_given_goes_before_the_bounds_of_a_version() -> None:
    assert kafka(release="0.11", brokers=3).parameters["brokers"] == 3
    assert kafka(release="0.11", brokers=3).parameters["values"] == 3
    assert kafka(release="0.11,2.0,2.0").parameters["elections"] == kafka().parameters["elections"] == 1


def test_the_newest_release_is_the_default_and_the_repaired_one_of_a_mutant() -> None:
    build = MODELS["kafka"].build
    assert build({}).parameters["release"] == BROKER_RELEASES[-2].name
    assert build({"mutant": "min-isr-of-one"}).parameters["release"] == "next"
    assert build({"mutant": "min-isr-of-one", "release": "3.9"}).parameters["release"] == "3.9"


def test_without_disturbances_the_newest_release_violates_nothing_either() -> None:
    found = explored(MODELS["kafka"].build({}))
    assert (found.complete, found.distinct_states, violated(found)) == (True, 349, {})


def test_late_fetches_harm_nobody_in_the_repaired_version() -> None:
    found = explored(kafka(late_fetches=1), everything=True)
    assert found.complete
    assert not violated(found)
    assert (found.distinct_states, found.transitions, found.depth) == count_of("kafka", symmetry=True, late_fetches=1)
    assert all(verdict.holds for verdict in found.verdicts)


@pytest.mark.slow
def test_requests_that_arrive_again_harm_nobody_in_the_repaired_version() -> None:
    found = explored(kafka(elections=1, values=2, retries=1), everything=True)
    assert found.complete
    assert not violated(found)
    assert found.distinct_states == count_of("kafka", symmetry=True, elections=1, values=2, retries=1).states
    assert [verdict.holds for verdict in found.verdicts if verdict.prop.name == "SentAgain"] == [True]


@pytest.mark.slow
@pytest.mark.parametrize("count", marked([1, 2], nightly=[2]))
def test_reassignments_tell_no_brokers_apart(count: int) -> None:
    model = kafka(elections=0, reassignments=count)
    Symmetry(model).check(model.properties)
    found = explored(model)
    assert found.complete
    assert not violated(found)
    assert found.distinct_states == count_of("kafka", symmetry=True, elections=0, reassignments=count).states


@pytest.mark.slow
def test_to_ask_for_the_goal_that_a_reassignment_has_already_tells_no_brokers_apart() -> None:
    """The third reassignment may ask for what the second, which waits for its new replica, is to bring."""
    bounds = {"min_isr": 1, "elections": 0, "reassignments": 3, "values": 0}
    model = kafka(**bounds)
    plain = compiled.explore(model, [], Limits(stop_at_first=False))
    orbits = compiled.explore(model, [], Limits(stop_at_first=False), symmetry=Symmetry(model))
    assert plain.distinct_states == orbits.represented == count_of("kafka", **bounds).states
    assert orbits.distinct_states == count_of("kafka", symmetry=True, **bounds).states
    assert plain.actions["CancelReassignment"] > 0


@pytest.mark.slow
def test_eligibility_outlives_an_assignment() -> None:
    """A replica that is removed while it is eligible is so still when it comes back, with an empty log."""
    bounds = {"elections": 0, "min_isr": 3, "fencings": 1, "reassignments": 2}
    found = explored(kafka(release="4.0", **bounds))
    assert violated(found)["AcknowledgedOnNextLeader"] == 9
    trace = next(verdict.trace for verdict in found.verdicts if verdict.violated)
    assert trace is not None
    assert_replays(found.model, trace)
    assert sum(step.startswith("Reassign") for step in steps(trace)) == 2


# ---- the arguments that make the model small


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {"brokers": 2, "min_isr": 1, "elections": 1, "isr_shrinks": 1, "fencings": 1},
        pytest.param({"elections": 1, "isr_shrinks": 1, "fencings": 1}, marks=pytest.mark.nightly),
        pytest.param({"elections": 0, "clean_shutdowns": 1, "unclean_shutdowns": 1}, marks=pytest.mark.nightly),
        pytest.param({"elections": 0, "min_isr": 3, "fencings": 1, "reassignments": 2}, marks=pytest.mark.nightly),
        pytest.param({"elections": 0, "late_fetches": 1, "reassignments": 2}, marks=pytest.mark.nightly),
    ],
    ids=str,
)
def test_nothing_tells_brokers_apart(parameters: dict[str, Any]) -> None:
    model = kafka(**parameters)
    Symmetry(model).check(model.properties)


def _cluster(leader: int, epoch: int, isr: set[int], **fenced: bool) -> ModelController:
    ids = frozenset(map(BrokerId, (1, 2, 3)))
    topic = TopicRegistration(ids, frozenset(map(BrokerId, isr)), BrokerId(leader), Epoch(epoch), PartitionEpoch(len(isr)))
    brokers = frozenset(
        BrokerRegistration(broker, BrokerEpoch(1), Incarnation(1), fenced=fenced.get(f"b{broker}", False)) for broker in ids
    )
    return ModelController(topic, brokers)


def _read(broker: int, *clusters: ModelController) -> Reading:
    """The images in store on a broker that has taken the first one, once the others have come."""
    images = [image_for(BrokerId(broker), cluster, remembers=False) for cluster in clusters]
    reading: Reading = (images[0],)
    for image in images[1:]:
        reading = with_image(BrokerId(broker), reading, image)
    return reading


def test_an_isr_change_is_nothing_to_a_follower_and_news_to_the_leader() -> None:
    before, after = _cluster(1, 0, {1, 2, 3}), _cluster(1, 0, {1, 2})
    assert len(_read(2, before, after)) == 1
    assert len(_read(1, before, after)) == 2


def test_another_leader_is_news_to_everybody() -> None:
    before, after = _cluster(1, 0, {1, 2, 3}), _cluster(2, 1, {1, 2, 3})
    assert all(len(_read(broker, before, after)) == 2 for broker in (1, 2, 3))


def test_a_leader_learns_at_once_who_takes_part_again_but_not_who_no_longer_does() -> None:
    fenced, unfenced = _cluster(1, 0, {1, 2}, b3=True), _cluster(1, 0, {1, 2})
    assert len(_read(1, fenced, unfenced)) == 1
    assert len(_read(1, unfenced, fenced)) == 2


def test_what_a_broker_reads_of_another_leader_does_not_depend_on_the_isr() -> None:
    """So that histories which a broker cannot tell apart are one."""
    assert _read(2, _cluster(1, 0, {1, 2, 3}), _cluster(3, 1, {2, 3})) == _read(
        2, _cluster(1, 0, {1, 2}), _cluster(3, 1, {2, 3})
    )


def test_a_broker_that_reads_nothing_has_nothing_to_read() -> None:
    assert with_image(BrokerId(1), (), image_for(BrokerId(1), _cluster(1, 0, {1}), remembers=False)) == ()


# ---- bad settings


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--release", "2.8,3.0,3.0"), "up to 2.8 the controller works on ZooKeeper, from 3.0 on it is a KRaft controller"),
        (("--failovers", "1"), "--failovers: not with --release 4.4, whose controller is a KRaft controller"),
        (
            ("--release", "2.1", "--late-registrations", "1"),
            "--late-registrations: not with --release 2.1, whose controller",
        ),
        (("--release", "2.7", "--lost-confirmations", "1"), "--lost-confirmations: not with --release 2.7, whose leaders"),
        (
            ("--release", "2.8", "--mutant", "fenced-replica-admitted"),
            "--mutant fenced-replica-admitted: weakens a KRaft controller, which --release 2.8 has not; choose 3.0 or later",
        ),
        (("--release", "3.9,4.0"), "one release, or one for each of 3 brokers"),
        (("--release", "5.0"), "--release 5.0: did you mean 1.0, 2.0 or 3.0?"),
        (("--min-isr", "0"), "--min-isr 0: must be 1 or more"),
        (("--min-isr", "4"), "--min-isr 4: must be 3 or less, the number of brokers"),
        (("--fencings", "-1"), "--fencings -1: must be 0 or more"),
        (("--mutant", "none"), "--mutant none: `kspec models kafka` tells all of them"),
        (("--without-reduction", "early"), "--without-reduction early: did you mean early-"),
        (("--endless-lag", "--isr-shrinks", "1"), "--endless-lag: no follower is ever too slow, so --isr-shrinks must be 0"),
        (("--replicas", "2"), "model kafka has no parameter --replicas"),
    ],
)
def test_bad_settings_are_told_in_one_line(command: Command, arguments: tuple[str, ...], sentence: str) -> None:
    done = command("check", "kafka", *arguments)
    assert done.mistake == (2, 1)
    assert sentence in done.stderr
