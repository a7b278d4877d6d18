"""Members of groups of several families, on clusters of processes: their lines, and a short trial."""

import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from kspec.trials.faults.members.families import BOTH, CLASSIC, CONSUMER, PROTOCOLS, MemberFamily, built
from kspec.trials.faults.members.load import MemberLoad, TimedEvents, now_ms
from kspec.trials.faults.members.trial import MembersSettings, MembersVerdict, Rebalances
from kspec.trials.faults.transactors.families import MissingFamilyError
from kspec.trials.history.anomalies import anomalies_in
from kspec.trials.history.events import (
    ACKNOWLEDGED,
    CommitOutcome,
    CommitStart,
    OffsetFetchOutcome,
    OffsetFetchStart,
    OwnershipEnd,
    OwnershipStart,
    read_history,
)
from kspec.trials.history.ownership import SharedTime
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.trials.cluster.running import free_ports, kspec, kspec_program


def printing(lines: Sequence[str], status: int = 0) -> MemberFamily:
    """A family whose program prints lines, waits for the end of its input, and ends."""
    text = "".join(f"{line}\n" for line in lines)
    program = f"import sys; print({text!r}, end=''); sys.stdin.read(); exit({status})"
    return MemberFamily("any", (sys.executable, "-c", program), BOTH)


def load_of(events: TimedEvents) -> MemberLoad:
    return MemberLoad("nowhere:1", "t", 2, events, pause_ms=1, stays_s=1.0)


def test_the_lines_of_a_program_are_a_history_in_order_of_time() -> None:
    events, now = TimedEvents(), now_ms() + 1_000
    load = load_of(events)
    lines = [
        f"{now}\towns\ta\t0",
        f"{now + 3}\tcommitted\ta\t0\t7\tacknowledged\t",
        f"{now + 1}\tcommits\ta\t0\t7",
        f"{now + 4}\tcommitted\ta\t1\t8\tunknown\tREBALANCE_IN_PROGRESS",
        f"{now + 9}\tgives\ta\t0",
        f"{now + 9}\tanew\ta\tbroken",
    ]
    load.start(printing(lines), {"a": CLASSIC, "b": CONSUMER})
    load.keep()
    load.stop()
    assert load.failed == []
    assert (load.acknowledged, load.errors, load.gave_up) == ({"a": 1}, {"REBALANCE_IN_PROGRESS": 1}, {"a": 1})
    listed = events.in_order
    assert [type(event) for event in listed] == [
        OwnershipStart,
        CommitStart,
        CommitOutcome,
        CommitOutcome,
        OwnershipEnd,
    ]
    assert {event.partition for event in listed} == {"t-classic/t-0", "t-classic/t-1"}  # type: ignore[union-attr]


def test_events_of_one_millisecond_begin_before_others_end() -> None:
    events = TimedEvents()
    events.note(CommitOutcome("p", 7, ACKNOWLEDGED, None, 5))
    events.note(OffsetFetchOutcome("r", "p", 7, 5))
    events.note(OffsetFetchStart("r", "p", 5))
    events.note(CommitStart("a", "p", 7, 5))
    assert anomalies_in(events.in_order) == []


def test_a_program_that_fails_or_babbles_is_told() -> None:
    load = load_of(TimedEvents())
    load.start(printing(["what?", "x\towns\ta\t0"], status=3), {"a": CLASSIC})
    load.stop()
    assert len(load.failed) == 3
    assert "the members of any ended with status 3" in load.failed


def test_a_family_that_cannot_be_built_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    told = {"java": "no Java compiler", "franz-go": "there is no Go", "sarama": "there is no Go"}
    for name in PROTOCOLS:
        with pytest.raises(MissingFamilyError, match=told.get(name, "is not installed")):
            built(name, tmp_path / name, tuple)


def test_a_rebalance_goes_on_until_the_group_is_stable() -> None:
    group = Rebalances()
    for state in ("Empty", "Stable", "PreparingRebalance", "CompletingRebalance", "Stable", "Stable"):
        group.note(state)
    assert len(group.took) == 1
    assert group.state == "Stable"


def test_the_figures_of_a_trial() -> None:
    settings = MembersSettings(20, (MemberFamily("any", (), BOTH),))
    made = MembersVerdict(
        settings, (), (), "", {"any": 40}, Counter(), 0, {CLASSIC: [1.0, 2.5]}, 1, 3, 9, took_s=20.0, cpu_s=2.0
    )
    assert not made.is_bad
    assert "2.0 commits per second, 20.0 per CPU-second of the nodes" in str(made)
    assert "classic: 2 rebalances, the longest 2.5 s" in str(made)
    shared = SharedTime("g/t-0", ("a", "b"), 0, 1000)
    assert not made._replace(shared=(shared,)).is_bad, "a member may not have heard of it yet"
    longer = made._replace(shared=(shared._replace(ended=30_000),))
    assert longer.is_bad
    assert "TWO OWNERS FOR 30.0 s" in str(longer)
    assert made._replace(stuck="it hangs").is_bad


def started(*options: str) -> None:
    """Run a trial, and look at what it has kept."""
    folder = Path(options[1])
    done = kspec("cluster", *options, "--port", str(free_ports(8)), "--plain")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^members: each acknowledged commit was there$", done.stdout, re.MULTILINE), done.stdout
    verdict = json.loads((folder / "members" / "verdict.json").read_text(encoding="utf-8"))
    missing = set(re.findall(r"NOT RUN: members of (\S+):", done.stderr))
    assert {*verdict["families"]} == {*PROTOCOLS} - missing
    assert {*verdict["committed"]} == {*verdict["families"]}, "a family has not committed"
    assert anomalies_in(read_history(folder / "members" / "history.jsonl")) == []


@pytest.fixture(scope="module")
def needs_clients() -> None:
    pytest.importorskip("confluent_kafka", reason="NOT RUN: confluent-kafka (librdkafka) is not installed")
    kspec_program()


@pytest.mark.slow
def test_no_commit_of_a_few_members_is_lost(needs_clients: None, tmp_path: Path) -> None:
    started("--log-dir", str(tmp_path / "cluster"), "--members", "12", "--group-size", "6")


@pytest.mark.nightly
@pytest.mark.parametrize("kafka", [False, True])
def test_no_commit_of_fifty_members_is_lost_on_ours_or_on_apache_kafka(
    needs_clients: None, tmp_path: Path, kafka: bool
) -> None:
    if kafka:
        jars_or_skip(NEWEST)
    nodes = ("--kafka", NEWEST) if kafka else ()
    started("--log-dir", str(tmp_path / "cluster"), "--members", "90", *nodes)
