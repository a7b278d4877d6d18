"""Every study: its failure shows in a run of known length, its repair holds over a state space of known size."""

import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from kspec.cli.check import REPLAYED
from kspec.cli.site.starting_points import index
from kspec.conformance.world.runs.findings import FINDINGS
from kspec.model_check.core.exploration import Exploration, Limits
from kspec.model_check.core.model import Model, Property, when
from kspec.model_check.core.parameters import resolve
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines import compiled
from kspec.model_check.engines.explorer import explorer
from kspec.model_check.engines.reference import explore
from kspec.model_check.explorer import Explorer
from kspec.model_check.models import MODELS, published
from kspec.model_check.reports.studies import (
    STUDIES,
    Configuration,
    Study,
    StudyReport,
    UnfinishedError,
    as_markdown,
    as_text,
    tell,
)
from kspec.model_check.reports.studies.hazards import HAZARDS
from kspec.model_check.reports.studies.matching import studies_of
from kspec.model_check.reports.studies.tell import LINK
from kspec.model_check.traces.mermaid import sequence_diagram
from kspec.model_check.traces.render import length_in_words
from kspec.spec.broker.rules.fencing import check_serves
from kspec.spec.log.record_log import RecordLog
from kspec.spec.published.fetch import fetch_fenced_by_leader_epoch
from kspec.spec.published.versions import KIP_279, Protocol
from tests.limits.marks import marked
from tests.model_check.commands import Command
from tests.places import DOCS


class ExpectedStudy(NamedTuple):
    """The failing run's length (with the initial state), and the repaired state space: distinct states and depth."""

    trace_length: int
    distinct_states: int
    depth: int


def expected(study: str) -> ExpectedStudy:
    """The numbers on the study's page. What the page says of the failure counts steps."""
    page = (DOCS / "studies" / f"{study}.md").read_text(encoding="utf-8")
    run = re.search(r"has (\d+) steps?; found", page)
    repaired = re.search(r"([\d,]+) distinct states.*?, depth (\d+), exp", page)
    assert run is not None
    assert repaired is not None
    return ExpectedStudy(int(run[1]) + 1, int(repaired[1].replace(",", "")), int(repaired[2]))


EXPECTED = {study.name: expected(study.name) for study in STUDIES}
"""The page of each study, which the command writes. Another test writes it anew and compares."""

SLOW = {"fenced-replica", "last-replica-standing", "unclean-incarnation-in-isr", "diverging-fetch"}
"""Beside those with large spaces: where brokers stop, rules are asked often."""

# What the repaired rules make of the failing run: how its telling begins, and how it ends.
REPLAYS = {
    "kip-101-loss": ("Step 10 (", "leads elsewhere: log of broker 2 is `m0(e0)`, not `empty`", "holds in the end."),
    "kip-101-divergence": (
        "Step 3 (",
        "leads elsewhere",
        "step 13 (LeaderIncHighWatermark(leader=2)) is then not possible.",
    ),
    "epochs-out-of-order": ("Step 5 (", "follower=2, leader=1, epoch=0", "is not possible."),
    "join-before-epoch-start": ("Step 12 (FencedLeaderExpandIsr(", "follower=3", "is not possible."),
    "async-isr-committed-only": ("Every step is possible", ", and ", "CommittedOnNextLeader holds in the end."),
    "unclean-election": ("Step 7 (ControllerElectUncleanLeader(", "replica=2", "is not possible."),
    "late-divergence": ("Step 23 (TakeLateAnswer(", "CommittedOnNextLeader holds in the end."),
    "missed-epoch": ("leads elsewhere", "memory of broker", "AcknowledgedOnNextLeader holds in the end."),
    "unclean-incarnation-in-isr": ("Step 9 (Register(", "CommittedOnNextLeader holds in the end."),
    "fenced-replica": ("GrantIsr(", "is not possible."),
    "acks-1": ("Step 6 (LeaderWrite(", "acknowledged is `{}`", "AcknowledgedOnLeader holds in the end."),
}

BY_NAME = {study.name: study for study in STUDIES}
KEPT_RUNS = {run["name"]: run for group in index()["groups"] for run in group["runs"]}
LARGE = 6_000


def study_parameters(large: bool | None = None) -> list[str]:
    def is_large(name: str) -> bool:
        return name in SLOW or EXPECTED[name].distinct_states > LARGE

    return [name for name in EXPECTED if large is None or is_large(name) == large]


OF_NIGHT = [name for name, study in EXPECTED.items() if study.distinct_states > 8_000]
"""Studies whose repaired space is explored whole by night, and their failing run is found anew.

By day the space is explored as far as `SEEN_BY_DAY`. The failing run is stepped as it is kept: another test opens each run
of the index, and asks that it fails as it says.
"""

SEEN_BY_DAY = 1_000


def large_studies() -> list[Any]:
    """All tests of a large study run in one process, which explores it once."""
    late = {name: [pytest.mark.nightly] for name in OF_NIGHT}
    names = study_parameters(large=True)
    return [pytest.param(name, marks=[pytest.mark.xdist_group(f"study {name}"), *late.get(name, ())]) for name in names]


@cache
def telling_of(name: str) -> StudyReport:
    return tell(BY_NAME[name])


@pytest.fixture(scope="module")
def loss() -> StudyReport:
    return telling_of("kip-101-loss")


def assert_as_expected(study: Study, expected: ExpectedStudy) -> None:
    telling = telling_of(study.name)
    assert telling.verdict.violated
    assert len(telling.trace) == expected.trace_length
    assert telling.repaired.complete
    assert not telling.repaired.violated
    assert telling.repaired.distinct_states == expected.distinct_states
    assert telling.repaired.depth == expected.depth
    assert all(verdict.holds for verdict in telling.repaired.verdicts), "the property holds for want of an occasion"
    for part in REPLAYS.get(study.name, ()):
        assert part in telling.replay
    assert_tells_everything(telling)


def assert_tells_everything(telling: StudyReport) -> None:
    study = telling.study
    text, page = " ".join(as_text(telling).split()), as_markdown(telling)
    for told in (text, page):
        for piece in (study.title, study.reference, study.setup, study.outcome, study.repair, telling.replay):
            assert (piece if told is page else LINK.sub(r"\1 (docs/\2)", piece)) in told
        for configuration in (study.failing, study.repaired):
            assert configuration.command(study.invariant) in told
        for rule in study.rules:
            assert f"{rule.__module__.removeprefix('kspec.').replace('.', '/')}.py: {rule.__name__}" in told
        assert f"has {length_in_words(telling.trace)}" in told
        assert f"{telling.repaired.distinct_states:,} distinct states" in told
        assert "warning" not in told.replace("without warning", "")
        for number in range(2, len(telling.trace) + 1):
            assert f"{number} " in told
    assert "```mermaid\nsequenceDiagram\n" in page
    assert f"✕ {study.invariant} fails here\n    end\n```" in page  # the last step violates, and is marked
    assert page.startswith(f"# {study.title}\n")


@pytest.mark.parametrize("name", study_parameters(large=False))
def test_failure_is_found_and_repaired(name: str) -> None:
    assert_as_expected(BY_NAME[name], EXPECTED[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", large_studies())
def test_failure_is_found_and_repaired_in_large_spaces(name: str) -> None:
    assert_as_expected(BY_NAME[name], EXPECTED[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_NIGHT)
def test_failure_is_kept_and_not_among_the_first_states_of_the_repair(name: str) -> None:
    study = BY_NAME[name]
    kept = KEPT_RUNS[f"study-{name}"]
    assert study.invariant in kept["fails"]
    assert kept["steps"] + 1 == EXPECTED[name].trace_length
    repaired = checked(study.repaired, study.invariant, Limits(max_states=SEEN_BY_DAY))
    assert not repaired.violated
    assert repaired.distinct_states >= SEEN_BY_DAY


def checked(configuration: Configuration, invariant: str, limits: Limits) -> Exploration:
    model = MODELS[configuration.model].build(configuration.parameters)
    symmetry = Symmetry(model) if configuration.symmetry else None
    prop = model.property_named(invariant)
    assert prop is not None
    return compiled.explore(model, [prop], limits, symmetry=symmetry)


@pytest.mark.parametrize("name", study_parameters())
def test_configurations_can_be_built_and_have_the_property(name: str) -> None:
    study = BY_NAME[name]
    for configuration in (study.failing, study.repaired):
        model = MODELS[configuration.model].build(configuration.parameters)
        assert model.property_named(study.invariant) is not None


@pytest.mark.parametrize("name", study_parameters())
def test_rules_name_kafka_in_their_docstrings(name: str) -> None:
    for rule in BY_NAME[name].rules:
        assert rule.__module__.startswith("kspec.spec.")
        assert "**Kafka:**" in (rule.__doc__ or "")


def test_every_hazard_has_a_study_or_a_reason() -> None:
    names = [hazard.name for hazard in HAZARDS]
    assert names == [f"Z{number}" for number in range(1, len(HAZARDS) + 1)]
    told = {study.hazard for study in STUDIES}
    assert told <= {*names, ""}
    for hazard in HAZARDS:
        assert (hazard.name in told) != bool(hazard.why)


def test_command_spells_switches_and_choices() -> None:
    study = BY_NAME["min-isr-1"]
    assert study.failing.command(study.invariant) == (
        "kspec check kip-320 --replicas 2 --log-size 1 --max-records 1 --max-epoch 2 --acks all --unclean --min-isr 1"
        " --invariant AcknowledgedOnLeader"
    )
    study = BY_NAME["kafka-7415-own-epoch"]
    assert "--repair kafka-epoch-lookup --repair own-epoch-entry --invariant" in study.repaired.command(study.invariant)


def test_text_shows_kafkas_class_and_the_times(loss: StudyReport) -> None:
    text = as_text(loss)
    assert "  spec/published/truncation.py: truncate_to_epoch_end\n" in text
    assert "Kafka: `ReplicaFetcherThread.maybeTruncate` after KIP-101, 0.11 to 1.1." in text
    assert re.search(r"\n  855 distinct states, depth \d+, \d+\.\d s\n", text)
    assert re.search(r"\n  913 distinct states, depth 13, \d+\.\d s\n", text)


def test_text_has_the_story_before_the_run_and_the_page_after_it(loss: StudyReport) -> None:
    text = as_text(loss, page=("kspec explore somewhere",))
    headings = re.findall(r"\n(.+)\n-+\n", text)
    assert headings == ["What went wrong", "The repair", "The failing run", "The checks", "To step it yourself"]
    assert text.endswith("\n  $ kspec explore somewhere\n")
    assert "   in the end\n" not in text
    assert ">> 11  BecomeLeader  leader 2, epoch 1\n" in text
    assert (
        ">>     AcknowledgedOnLeader fails here\n       offset 0: m0(e0) in acknowledged, nothing in log of broker 2\n"
        in text
    )


def test_full_text_has_the_last_state_and_a_diagram(loss: StudyReport) -> None:
    text = as_text(loss, full=True)
    assert "   in the end\n" in text
    assert "LeaderAndIsr: lead in epoch 0" in text


@pytest.mark.parametrize("name", ["kip-101-loss", "epochs-out-of-order", "join-before-epoch-start", "acks-1"])
def test_text_fits_a_terminal_of_100_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are not broken: they are to be copied."""
    monkeypatch.setenv("COLUMNS", "100")
    lines = as_text(telling_of(name)).splitlines()
    assert [line for line in lines if len(line) > 100 and not line.startswith("  $ ")] == []


def test_text_has_no_link_of_a_page() -> None:
    study = replace(BY_NAME["kip-101-loss"], reference="see [the finding](../findings/missed-epoch.md)")
    assert "\nsee the finding (docs/findings/missed-epoch.md)\n" in as_text(replace(telling_of("kip-101-loss"), study=study))


def test_page_is_the_same_every_time(loss: StudyReport) -> None:
    assert as_markdown(tell(loss.study)) == as_markdown(loss)


def test_another_engine_may_be_used() -> None:
    asked = []

    def counting(model: Model, properties: list[Property], limits: Limits) -> Exploration:
        asked.append((model.name, [prop.name for prop in properties]))
        return explore(model, properties, limits)

    tell(BY_NAME["kip-101-loss"], counting, counting)
    assert asked == [
        ("truncate-to-hw", ["AcknowledgedOnLeader"]),
        ("kip-101", ["AcknowledgedOnLeader", "AcknowledgedAcrossLeaders"]),
    ]


@pytest.mark.parametrize("most", [20, 880])
def test_stopped_check_is_not_told(most: int) -> None:
    def stopping(model: Model, properties: list[Property], limits: Limits) -> Exploration:
        limits.max_states = most
        return explore(model, properties, limits)

    with pytest.raises(UnfinishedError, match="limit of"):
        tell(BY_NAME["kip-101-loss"], stopping, stopping)


@pytest.mark.slow
def test_unfenced_fetches_lose_nothing_committed() -> None:
    """The study's words say so: of all properties only WeakIsr needs the fence on fetches."""
    study = BY_NAME["unfenced-fetch"]
    model = MODELS[study.failing.model].build(study.failing.parameters)
    others = [prop for prop in model.properties if prop.kind == "always" and prop.by_default and prop.name != "WeakIsr"]
    result = compiled.explore(model, others, Limits())
    assert {"CommittedOnNextLeader", "StrongIsr", "LogMatching"} <= {prop.name for prop in others}
    assert result.complete
    assert not result.violated
    assert result.distinct_states == 107_815


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "holds"),
    [
        (KIP_279, False),
        (replace(KIP_279, truncation_fencing=check_serves), False),
        (replace(KIP_279, fetch_fencing=fetch_fenced_by_leader_epoch), True),
    ],
    ids=["kip-279", "fenced truncation", "fenced fetch"],
)
def test_fence_on_fetches_alone_keeps_epochs_in_order(rules: Protocol, holds: bool) -> None:
    study = BY_NAME["epochs-out-of-order"]
    model = published.build("kip-279", rules, resolve("kip-279", MODELS["kip-279"].parameters, study.failing.parameters))

    def in_order(log: RecordLog) -> bool:
        return all(record.leader_epoch <= later.leader_epoch for record, later in pairwise(log.records))

    logs = [slot for slot in model.slots if slot.name == "log"]
    model.always("EpochsInOrder", [when(in_order, log) for log in logs], "epochs never go down in a log", None)
    for name in ("StrongIsr", "EpochsInOrder"):
        prop = model.property_named(name)
        assert prop is not None
        assert explore(model, [prop], Limits()).violated is not holds


PAGES = DOCS / "studies"


@pytest.mark.slow
@pytest.mark.parametrize("name", study_parameters(large=False))
def test_the_page_in_the_docs_is_the_one_that_the_study_writes(name: str) -> None:
    assert (PAGES / f"{name}.md").read_text() == as_markdown(telling_of(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", large_studies())
def test_the_page_of_a_large_space_is_the_one_that_the_study_writes(name: str) -> None:
    assert (PAGES / f"{name}.md").read_text() == as_markdown(telling_of(name))


def test_every_study_has_a_page_and_a_line_in_the_index() -> None:
    pages = {page.stem for page in PAGES.glob("*.md")} - {"README"}
    assert pages == set(BY_NAME)
    index = (PAGES / "README.md").read_text()
    assert all(f"[{name}]({name}.md)" in index for name in BY_NAME)
    for hazard in HAZARDS:
        told = ", ".join(f"[{study.name}]({study.name}.md)" for study in STUDIES if study.hazard == hazard.name)
        assert f"| {hazard.name} | {hazard.what} | {hazard.reference} | {told or f'none: {hazard.why}'} |\n" in index


@pytest.mark.parametrize(
    "name",
    marked(
        ["missed-epoch", "forgotten-proposal", "last-replica-standing", "kip-320-zombie"],
        nightly=["missed-epoch", "last-replica-standing"],
    ),
)
def test_a_run_is_known_as_that_of_its_study(name: str) -> None:
    study = next(one for one in STUDIES if one.name == name)
    model = MODELS[study.failing.model].build(study.failing.parameters)
    prop = model.property_named(study.invariant)
    assert prop is not None
    symmetry = Symmetry(model) if study.failing.symmetry else None
    (verdict,) = explorer(symmetry=symmetry)(model, [prop], Limits()).verdicts
    assert verdict.trace is not None
    assert name in [match.study.name for match in studies_of(model, {prop.name: verdict.trace})]
    # A run that ends before the violation is that of no study.
    assert list(studies_of(model, {prop.name: verdict.trace[:-1]})) == []


def test_a_violation_of_a_release_names_its_study_and_how_to_replay_it(command: Command) -> None:
    done = command(
        *["check", "kafka", "--release", "4.4", "--elections", "0", "--isr-shrinks", "1", "--symmetry", "--quiet"]
    )
    assert done.status == 1
    assert "kspec study forgotten-proposal\n  kspec world replay forgotten-proposal --kafka 4.4.0" in done.stdout


def test_every_finding_that_can_be_replayed_is_named() -> None:
    assert set(REPLAYED) == set(FINDINGS)
    assert set(REPLAYED) <= {study.name for study in STUDIES}


def test_a_broker_that_is_down_sends_nothing_in_a_diagram() -> None:
    """Its request was sent before it stopped: so the study of the last replica showed a dead broker that sends."""
    study = next(one for one in STUDIES if one.name == "last-replica-standing")
    model = MODELS["kafka"].build(study.failing.parameters)
    prop = model.property_named(study.invariant)
    assert prop is not None
    (verdict,) = explorer(symmetry=Symmetry(model))(model, [prop], Limits()).verdicts
    assert verdict.trace is not None
    lines = sequence_diagram(model, verdict.trace).splitlines()
    granted = next(number for number, line in enumerate(lines) if ": GrantIsr" in line)
    stopped = next(number for number, line in enumerate(lines) if ": UncleanShutdown" in line)
    assert stopped < granted
    assert "gets from broker 1, which is down by now: AlterPartition" in lines[granted + 1]


@pytest.mark.parametrize("name", ["kip-101-loss", "acks-1"])
def test_study_names_an_address_that_opens_its_run(name: str, command: Command) -> None:
    text = command("study", name, "--quiet").stdout
    (address,) = re.findall(r"^  \$ kspec explore (\S+)$", text, flags=re.MULTILINE)
    view = Explorer().answer({"do": "open", "address": address})
    assert (view["answer"], view.get("changed")) == ("view", None)
    assert view["position"] == len(telling_of(name).trace)
    assert BY_NAME[name].invariant in view["steps"][-1]["violates"]
