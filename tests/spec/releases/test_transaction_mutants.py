"""The mutants of transactions: each has its field, and differs from the rule there. And what errors mean to producers."""

from collections import Counter
from dataclasses import fields

import pytest

from kspec.spec.mutation import Mutant, weaken
from kspec.spec.releases.coordinator import COORDINATOR_NEXT
from kspec.spec.releases.transactions.history import TRANSACTIONS_NEXT
from kspec.spec.releases.transactions.mutants import TRANSACTION_MUTANTS
from kspec.spec.releases.transactions.offset_mutants import OFFSET_MUTANTS
from kspec.spec.transactions.clients import ErrorMeaning, meaning_for_records, meaning_for_transaction
from kspec.spec.transactions.protocol import TransactionProtocol
from kspec.spec.values import LAST_PRODUCER_EPOCH, Error

ASKED: dict[str, tuple[tuple[object, ...], object, object]] = {
    "late-end-counts": ((3, False), 4, 3),
    "fence-keeps-epoch": ((3, False), 4, 3),
    "fence-each-time": ((3, True), 3, 4),
    "fence-bumps-twice": ((3, 4), 3, 4),
    "fence-never-rotates": ((True,), True, False),
    "end-of-later-epoch": ((True, 4, 3), False, True),
    "nobody-named": (((1, 2),), (1, 2), None),
    "markers-forgotten-by-id": ((1, 2), False, True),
    "acts-before-committed": ((2, 1), False, True),
    "stale-append-counts": ((1, 2), False, True),
    "overtaken-commit-invalid": ((True,), Error.PRODUCER_FENCED, Error.INVALID_TXN_STATE),
    "nothing-verified": ((False,), True, False),
    "any-guard": ((2, 1), False, True),
    "guard-dropped": ((True, True, 1, 1), True, False),
    "guard-of-equal-epoch": ((True, True, 1, 2), True, False),
    "begins-anywhere": ((1, 0), False, True),
    "any-marker": ((0, 1, False, False), False, True),
    "marker-not-earlier": ((1, 1, True, True), False, True),
    "marker-strictly-later": ((1, 1, True, False), True, False),
    "any-coordinator": ((0, 1), False, True),
    "marker-goes-with-batches": ((True,), False, True),
    "marker-goes-at-once": ((True, 7, 6), False, True),
    "aborted-begun-before": ((2, 6, 4, 8), True, False),
    "aborted-first-alone": ((3, 8), False, True),
    "stable-though-open": (((3,), (5,)), 3, 5),
    "stable-when-ended": (((5,), (3,)), 3, 5),
}
"""Questions to a rule, with its own answer and that of the mutant."""


OFFSETS_ASKED: dict[str, tuple[tuple[object, ...], object, object]] = {
    "earlier-offset-counts": ((True, True), False, True),
    "aborted-offset-counts": ((False, False), False, True),
    "open-offset-hidden": ((True, True), True, False),
    "offsets-of-any-generation": ((1, 2), False, True),
}


@pytest.mark.parametrize("mutant", OFFSET_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_of_offsets_has_the_weaker_rule(mutant: Mutant) -> None:
    weakened = weaken(COORDINATOR_NEXT, mutant)
    right, wrong = getattr(COORDINATOR_NEXT, mutant.field), getattr(weakened, mutant.field)
    if mutant.name in OFFSETS_ASKED:
        asked, *answers = OFFSETS_ASKED[mutant.name]
        assert [right(*asked), wrong(*asked)] == answers
    else:
        assert (right, wrong) == (True, False)


@pytest.mark.parametrize("mutant", TRANSACTION_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_has_the_weaker_rule(mutant: Mutant) -> None:
    weakened = weaken(TRANSACTIONS_NEXT, mutant)
    right, wrong = getattr(TRANSACTIONS_NEXT, mutant.field), getattr(weakened, mutant.field)
    if mutant.name in ASKED:
        asked, *answers = ASKED[mutant.name]
        assert [right(*asked), wrong(*asked)] == answers
    else:
        assert (right, wrong) == (True, False)


def test_every_mutant_is_of_a_field_and_has_its_own_name() -> None:
    assert {mutant.field for mutant in TRANSACTION_MUTANTS} <= {field.name for field in fields(TransactionProtocol)}
    assert max(Counter(mutant.name for mutant in TRANSACTION_MUTANTS).values()) == 1


def test_the_largest_epoch_can_be_left_out_of_what_follows() -> None:
    assert TRANSACTIONS_NEXT.epoch_after(LAST_PRODUCER_EPOCH, True) == LAST_PRODUCER_EPOCH
    assert not TRANSACTIONS_NEXT.takes_marker(0, 1, True, False)


@pytest.mark.parametrize(
    ("error", "transaction", "records"),
    [
        (Error.NONE, ErrorMeaning.DONE, ErrorMeaning.DONE),
        (Error.CONCURRENT_TRANSACTIONS, ErrorMeaning.AGAIN, ErrorMeaning.AGAIN),
        (Error.TRANSACTION_ABORTABLE, ErrorMeaning.ABORT, ErrorMeaning.ABORT),
        (Error.INVALID_PRODUCER_EPOCH, ErrorMeaning.FATAL, ErrorMeaning.ABORT),
        (Error.INVALID_TXN_STATE, ErrorMeaning.FATAL, ErrorMeaning.FATAL),
    ],
)
def test_what_an_error_means_to_a_producer(error: Error, transaction: ErrorMeaning, records: ErrorMeaning) -> None:
    assert (meaning_for_transaction(error), meaning_for_records(error)) == (transaction, records)
