"""Transactional clients on clusters of processes: their lines, the bank's snapshots, and rounds of faults."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kspec.trials.faults.load import Recorder
from kspec.trials.faults.transactors import families
from kspec.trials.faults.transactors.bank import BankAuditor, BankSettings, BankVerdict
from kspec.trials.faults.transactors.families import FAMILIES, ClientFamily, MissingFamilyError, built
from kspec.trials.faults.transactors.load import (
    BANK,
    PLAIN,
    TRANSFORM,
    TransactionLoad,
    TransactionTopics,
    counts_of_transactions,
)
from kspec.trials.history.anomalies import anomalies_in, count_by_name
from kspec.trials.history.events import (
    ACKNOWLEDGED,
    REFUSED,
    Consumption,
    Poll,
    SendOutcome,
    SendStart,
    Snapshot,
    TransactionEnd,
    read_history,
)
from kspec.trials.history.transactions import BankEntry
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.trials.cluster.running import free_ports, kspec, kspec_program

TOPICS = TransactionTopics("in", "out", 2)


@pytest.fixture(scope="module")
def needs_clients() -> None:
    pytest.importorskip("confluent_kafka", reason="NOT RUN: confluent-kafka (librdkafka) is not installed")
    kspec_program()


# ---- what a program prints


def printing(lines: Sequence[str], status: int = 0) -> ClientFamily:
    """A family whose program prints lines, waits for the end of its input, and ends."""
    text = "".join(f"{line}\n" for line in lines)
    return ClientFamily(
        "any", (sys.executable, "-c", f"import sys; print({text!r}, end=''); sys.stdin.read(); exit({status})")
    )


def test_the_lines_of_a_program_are_a_history() -> None:
    recorder = Recorder()
    load = TransactionLoad("nowhere:1", TOPICS, recorder)
    lines = [
        "begun\ta.1",
        "sent\ta.1\t0\tx",
        "stored\ta.1\t0\tx\t7",
        "ended\ta.1\tacknowledged\t0\t",
        "consumed\tb.1\t0\t7\tx",
        "sent\tb.1\t1\ty",
        "ended\tb.1\trefused\t0\tTimeoutException",
        "anew\tb\tfenced",
    ]
    load.start(printing(lines), {"a": PLAIN, "b": TRANSFORM})
    load.stop()
    events = recorder.events
    assert [type(event) for event in events] == [
        SendStart,
        SendOutcome,
        TransactionEnd,
        Consumption,
        SendStart,
        TransactionEnd,
    ]
    first, outcome, end, taken, other, last = events
    assert isinstance(first, SendStart)
    assert (first.producer, first.partition, first.value, first.transaction) == ("a", "in-0", "x", "a.1")
    assert isinstance(outcome, SendOutcome)
    assert (outcome.kind, outcome.offset, outcome.transaction) == (ACKNOWLEDGED, 7, "a.1")
    assert isinstance(end, TransactionEnd)
    assert (end.producer, end.kind, end.error) == ("a", ACKNOWLEDGED, None)
    assert isinstance(taken, Consumption)
    assert (taken.transaction, taken.partition, taken.offset) == ("b.1", "in-0", 7)
    assert isinstance(other, SendStart)
    assert other.partition == "out-1", "who transforms writes to the topic of output"
    assert isinstance(last, TransactionEnd)
    assert (last.kind, last.error) == (REFUSED, "TimeoutException")
    assert load.gave_up == ["b: fenced"]
    assert load.failed == []
    assert counts_of_transactions(events) == {
        "transactions committed": 1,
        "transactions aborted": 1,
        "transactions of unknown end": 0,
        "consumed": 1,
    }
    assert counts_of_transactions(()) == {}


def test_a_program_that_fails_or_babbles_is_told() -> None:
    load = TransactionLoad("nowhere:1", TOPICS, Recorder())
    load.start(printing(["what?"], status=3), {"a": PLAIN})
    load.stop()
    assert sorted(load.failed) == ["a client prints ['what?']", "the clients of any ended with status 3: "]


def test_a_family_that_cannot_be_built_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    for name, told in (("java", "there is no Java compiler"), ("franz-go", "there is no Go")):
        with pytest.raises(MissingFamilyError, match=told):
            built(name, tmp_path / name, tuple)
    (tmp_path / "go").write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
    (tmp_path / "go").chmod(0o755)
    with pytest.raises(MissingFamilyError, match="cannot be built: no network"):
        built("franz-go", tmp_path / "franz-go", tuple)
    monkeypatch.setattr(families, "HERE", tmp_path / "a-wheel")
    with pytest.raises(MissingFamilyError, match="a clone of the repository only"):
        built("franz-go", tmp_path / "franz-go", tuple)


# ---- snapshots


class FakeAuditor(BankAuditor):
    """An auditor whose polls give what is listed, one list of records of a partition at a time."""

    def __init__(self, polls: Sequence[tuple[int, list[tuple[int, str]]]]) -> None:
        self.recorder, self.listed = Recorder(), list(polls)
        super().__init__("127.0.0.1:1", "bank", range(2), "auditor", self.recorder)
        self.begin(2)

    @property
    def events(self) -> list[Any]:
        return self.recorder.events

    def poll(self) -> int:
        partition, records = self.listed.pop(0)
        self.recorder.note(lambda ms: Poll("auditor", f"bank-{partition}", tuple(records), ms))
        self.take(partition, records)
        return len(records)


def entry(transaction: str, account: int, amount: int) -> str:
    return str(BankEntry(transaction, account, amount))


def test_a_snapshot_is_completed_and_no_further(needs_clients: None) -> None:
    """It has one side of t, so it reads the other one, and with it one side of u, and of that the other."""
    auditor = FakeAuditor(
        [
            (0, [(0, entry("t", 0, -5))]),
            (1, [(0, entry("u", 1, 7)), (2, entry("t", 1, 5)), (4, entry("v", 1, 9))]),
            (0, [(2, entry("u", 0, -7)), (4, entry("v", 0, -9))]),
        ]
    )
    assert not auditor.has_read
    auditor.poll()
    assert auditor.has_read
    assert auditor.take_snapshot()
    snapshots = [event for event in auditor.events if isinstance(event, Snapshot)]
    assert [one.ends for one in snapshots] == [(("bank-0", 3), ("bank-1", 3))]
    assert auditor.sums == [0]
    assert auditor.take_snapshot()
    assert anomalies_in([*auditor.events, *_sent("tuv")]) == []


def _sent(names: str) -> list[SendStart]:
    """The sends of the entries above, so that nobody takes them for phantoms."""
    amounts = {"t": 5, "u": 7, "v": 9}
    sides = [(name, account, (2 * account - 1) * amounts[name]) for name in names for account in (0, 1)]
    return [SendStart("p", f"bank-{account}", entry(name, account, amount), 0, name) for name, account, amount in sides]


def test_a_transfer_of_which_one_side_never_comes_is_unbalanced(
    needs_clients: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kspec.trials.faults.transactors.bank.COMPLETE_S", 0.0)
    auditor = FakeAuditor([(0, [(0, entry("t", 0, -5))])])
    auditor.poll()
    assert not auditor.take_snapshot()
    assert auditor.sums == [-5]
    assert count_by_name(anomalies_in([*auditor.events, *_sent("t")])) == {"unbalanced": 1}


def test_the_figures_of_a_bank() -> None:
    settings = BankSettings(20, ())
    made = BankVerdict(
        settings, (), "", Counter({10_000: 3}), {"transactions committed": 4}, Counter(), 20.0, 2.0, (1, 2, 3, 9)
    )
    assert not made.is_bad
    assert (made.latency_ms(0.5), made.latency_ms(0.99)) == (3, 9)
    assert "was 10,000 in each of 3 snapshots" in str(made)
    assert "0.2 transactions per second, 2.0 per CPU-second of the nodes" in str(made)
    assert made._replace(sums=Counter({10_000: 2, 9_950: 1})).is_bad
    assert "THE SUM IS WRONG: 10,000 in 2 snapshots, and 9950" in str(made._replace(sums=Counter({10_000: 2, 9_950: 1})))
    assert made._replace(stuck="it hangs").is_bad
    assert made._replace(latencies=()).latency_ms(0.99) == 0


# ---- clusters


def started(*options: str) -> subprocess.CompletedProcess[str]:
    return kspec("cluster", *options, "--port", str(free_ports(8)), "--plain")


def all_families_or_skip(done: subprocess.CompletedProcess[str]) -> None:
    if "NOT RUN" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[0])


@pytest.mark.slow
def test_the_sum_of_a_bank_holds_while_coordinators_and_leaders_are_killed(needs_clients: None, tmp_path: Path) -> None:
    done = started("--log-dir", str(tmp_path / "cluster"), "--bank", "16")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^bank: the sum of 100 accounts was 10,000 in each of \d+ snapshots$", done.stdout, re.MULTILINE)
    assert "kills: 1 of a coordinator" in done.stdout
    history = list(read_history(tmp_path / "cluster" / "bank" / "history.jsonl"))
    assert anomalies_in(history) == []
    families = {event.producer.rpartition("-")[0] for event in history if isinstance(event, TransactionEnd)}
    assert families - {""} <= set(FAMILIES)
    all_families_or_skip(done)
    assert families == {*FAMILIES, ""}


@pytest.mark.nightly
def test_a_broker_that_shows_what_is_not_decided_is_found_by_the_same_judge(needs_clients: None, tmp_path: Path) -> None:
    options = "--bank", "6", "--mutant", "stable-though-open"
    done = started("--log-dir", str(tmp_path / "cluster"), *options)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^bank: ANOMALIES: .*aborted-read", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.nightly
def test_a_round_of_faults_tears_no_transaction(needs_clients: None, tmp_path: Path) -> None:
    done = started(
        "--log-dir", str(tmp_path / "cluster"), "--rounds", "1", "--seed", "103", "--seconds", "8", "--transactions"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    history = list(read_history(tmp_path / "cluster" / "rounds" / "seed-103" / "history.jsonl"))
    ends = Counter(event.kind for event in history if isinstance(event, TransactionEnd))
    assert ends[ACKNOWLEDGED] > 10
    assert any(isinstance(event, Consumption) for event in history)
    assert anomalies_in(history) == []


@pytest.mark.nightly
@pytest.mark.parametrize("kafka", [False, True])
def test_rounds_and_a_longer_bank_on_ours_and_on_apache_kafka(needs_clients: None, tmp_path: Path, kafka: bool) -> None:
    if kafka:
        jars_or_skip(NEWEST)
    nodes = ("--kafka", NEWEST) if kafka else ()
    done = started("--log-dir", str(tmp_path / "bank"), "--bank", "90", *nodes)
    assert done.returncode == 0, done.stdout + done.stderr
    rounds = "--rounds", "3", "--seed", "200", "--transactions"
    done = started("--log-dir", str(tmp_path / "rounds"), *rounds, *nodes)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_bank_is_no_round(tmp_path: Path) -> None:
    done = started("--log-dir", str(tmp_path / "cluster"), "--bank", "5", "--rounds", "1")
    assert (done.returncode, BANK in done.stderr) == (2, True)
