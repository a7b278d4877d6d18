"""Transactions in simulated clusters under faults: what the history finds, and that `next` gives it nothing to find."""

import pytest

from kspec.spec.controller.protocol import Controller
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.values import Offset
from kspec.trials.simulated.cluster import SimulatedCluster
from kspec.trials.simulated.history import BrokenPromiseError
from kspec.trials.simulated.runs import RunOutcome, run
from kspec.trials.simulated.setup import RunSetup
from kspec.trials.simulated.transactions.cluster import TransactionalCluster
from kspec.trials.simulated.transactions.history import (
    TransactionHistory,
    TransactionName,
    TransactionOutcome,
    TransactionValue,
)
from tests.limits.marks import marked

ONE, TWO = TransactionName(1, 1), TransactionName(1, 2)
A, B = TransactionValue(ONE, 0), TransactionValue(ONE, 1)


def setup(seed: int) -> RunSetup:
    return RunSetup(seed, dict.fromkeys((1, 2, 3), BROKER_NEXT), Controller(KRAFT_NEXT), transactions=True)


def outcome_of(seed: int, steps: int, made: list[TransactionalCluster]) -> RunOutcome:
    class NotingCluster(TransactionalCluster):
        def begin(self) -> None:
            made.append(self)
            super().begin()

    kind: type[SimulatedCluster] = NotingCluster
    return run(setup(seed), steps, kind=kind)


# ---- the history


def history(outcome: TransactionOutcome, *acknowledged: tuple[int, TransactionValue]) -> TransactionHistory:
    made = TransactionHistory()
    made.begin(ONE)
    made.outcomes[ONE] = outcome
    for partition, value in acknowledged:
        made.send(partition, value)
        made.acknowledge(partition, Offset(3 + 2 * partition), value)
    return made


@pytest.mark.parametrize("outcome", [TransactionOutcome.COMMITTED, TransactionOutcome.UNKNOWN])
def test_what_may_be_committed_may_be_read(outcome: TransactionOutcome) -> None:
    made = history(outcome, (0, A), (1, B))
    made.see(0, Offset(3), A)
    made.check({0: {Offset(3): A}, 1: {Offset(5): B}})


def test_what_is_not_committed_may_be_missing() -> None:
    for outcome in (TransactionOutcome.UNKNOWN, TransactionOutcome.ABORTED, TransactionOutcome.OPEN):
        history(outcome, (0, A), (1, B)).check({0: {}, 1: {}})


@pytest.mark.parametrize(
    ("outcome", "partitions", "name"),
    [
        (TransactionOutcome.OPEN, {0: {Offset(3): A}}, "OnlyCommittedIsRead"),
        (TransactionOutcome.ABORTED, {0: {Offset(3): A}}, "OnlyCommittedIsRead"),
        (TransactionOutcome.COMMITTED, {0: {Offset(3): TransactionValue(TWO, 0)}}, "OnlyCommittedIsRead"),
        (TransactionOutcome.COMMITTED, {0: {}, 1: {}}, "CommittedIsKept"),
        (TransactionOutcome.COMMITTED, {0: {Offset(3): A}, 1: {}}, "CommittedIsKept"),
        (TransactionOutcome.UNKNOWN, {0: {Offset(3): A}, 1: {}}, "OneEnd"),
        (TransactionOutcome.COMMITTED, {0: {Offset(3): A, Offset(7): A}, 1: {Offset(5): B}}, "Duplicate"),
    ],
)
def test_what_breaks_a_promise_is_found(
    outcome: TransactionOutcome, partitions: dict[int, dict[Offset, TransactionValue]], name: str
) -> None:
    made = history(outcome, (0, A), (1, B))
    with pytest.raises(BrokenPromiseError) as broken:
        _read(made, partitions)
    assert broken.value.name == name


def _read(made: TransactionHistory, partitions: dict[int, dict[Offset, TransactionValue]]) -> None:
    """Readers get all records one by one, and in the end all of them are there."""
    for partition, records in partitions.items():
        for offset, value in records.items():
            made.see(partition, offset, value)
    made.check(partitions)


def test_what_was_read_stays() -> None:
    made = history(TransactionOutcome.UNKNOWN)
    made.see(0, Offset(0), A)
    with pytest.raises(BrokenPromiseError, match="ConsistentRead"):
        made.see(0, Offset(0), B)
    kept = history(TransactionOutcome.UNKNOWN, (0, A))
    kept.see(0, Offset(3), A)
    with pytest.raises(BrokenPromiseError, match="CommittedIsKept"):
        kept.check({0: {}})


# ---- clusters


@pytest.mark.parametrize("seed", marked(range(1, 13), slow=range(2, 5), nightly=range(5, 13)))
def test_transactions_keep_their_promises_under_faults(seed: int) -> None:
    made: list[TransactionalCluster] = []
    outcome = outcome_of(seed, 3_000, made)
    assert outcome.broken is None, outcome.in_words()
    known = list(made[0].transactions.outcomes.values())
    assert TransactionOutcome.COMMITTED in known
    assert made[0].transactions.read


def test_what_a_leader_asks_of_itself_waits_for_what_the_metadata_change_in_its_files() -> None:
    """A broker heard of two partitions at once, wrote a marker to itself for one, and it came before the new epoch."""
    assert outcome_of(2, 4_000, []).broken is None


def test_a_seed_is_always_the_same_run() -> None:
    first: list[TransactionalCluster] = []
    assert outcome_of(5, 2_000, first) == outcome_of(5, 2_000, first)
    assert first[0].transactions == first[1].transactions
