"""The mutants of transactions: the model `transactions` with one rule weakened, and the property that fails."""

from collections.abc import Mapping
from typing import Any

from kspec.model_check.reports.catalogues.catalogue import MutantCatalogue
from kspec.spec.mutation import Mutant
from kspec.spec.releases.transactions.mutants import TRANSACTION_MUTANTS
from kspec.spec.releases.transactions.offset_mutants import OFFSET_MUTANTS

ALL_MUTANTS: Mapping[str, Mutant] = {mutant.name: mutant for mutant in (*TRANSACTION_MUTANTS, *OFFSET_MUTANTS)}

PLAIN: dict[str, Any] = {"transaction_version": "0"}
"""Producers without version 2."""

PROCESSES: dict[str, Any] = {"inputs": 1, "producers": 2, "own_ids": True, "rebalances": 1, "transactions": 1}
"""Two processes of a group that read one input, one after the other."""

HUNTS: dict[str, tuple[dict[str, Any], str, int]] = {
    "late-end-counts": ({"late_requests": 1}, "OnlyCommittedIsRead", 16),
    "fence-keeps-epoch": ({**PLAIN, "producers": 2, "late_requests": 1, "transactions": 1}, "CommittedIsKept", 24),
    "fence-bumps-twice": ({"first_epoch": 32765, "timeouts": 1}, "FailsIfFenced", 16),
    "fence-never-rotates": ({"first_epoch": 32766, "timeouts": 2}, "OpenIsKnown", 23),
    "pending-last": ({"first_epoch": 32766}, "FailsIfFenced", 17),
    "acts-before-committed": ({"uncommitted_loads": 1, "moves": 1, "transactions": 1, "timeouts": 1}, "CommittedIsKept", 17),
    "overtaken-commit-invalid": ({"timeouts": 1}, "FailsIfFenced", 16),
    "nothing-verified": ({**PLAIN, "late_requests": 1, "transactions": 1}, "OpenIsKnown", 15),
    "any-guard": ({**PLAIN, "late_requests": 1, "disconnects": 1}, "TransactionsApart", 32),
    "guard-dropped": ({"late_markers": 1}, "FailsIfFenced", 22),
    "guard-of-equal-epoch": ({"producers": 2, "late_markers": 1, "transactions": 1}, "FailsIfFenced", 23),
    "guard-before-epoch": ({"timeouts": 1}, "FailsIfFenced", 12),
    "any-marker": ({"late_markers": 1}, "OnlyCommittedIsRead", 21),
    "marker-not-earlier": ({"late_markers": 1}, "OnlyCommittedIsRead", 21),
    "aborted-begun-before": ({"records": 2, "transactions": 1}, "OnlyCommittedIsRead", 16),
    "aborted-first-alone": ({"producers": 2, "own_ids": True, "transactions": 1}, "OnlyCommittedIsRead", 26),
    "stable-though-open": ({}, "StableIsDecided", 8),
    "offsets-checked-early": (PROCESSES, "EachInputOnce", 39),
    "aborted-offset-counts": ({"inputs": 1}, "NoInputSkipped", 20),
    "open-offset-hidden": (PROCESSES, "EachInputOnce", 39),
    "offsets-of-any-generation": (PROCESSES, "EachInputOnce", 39),
}
"""Mutants that violate a property of states: the bounds, the property, and the steps of the shortest run."""

LIVENESS_HUNTS: dict[str, dict[str, Any]] = {
    "markers-forgotten-by-id": {"moves": 1, "late_markers": 1},
    "marker-strictly-later": {"late_markers": 1},
}
"""Mutants with which a transaction whose end is decided may never end: the bounds."""

NOT_CAUGHT = {
    "fence-each-time": "uses up epochs, of which there are more than any run of the model needs",
    "end-of-later-epoch": "a producer of the model never has a later epoch than the coordinator",
    "nobody-named": "a producer that is fenced in vain is fenced, too, when the other one starts",
    "stale-append-counts": "a move of the coordinator refuses the record under way, so none is answered later",
    "begins-anywhere": "a producer of the model has one record under way",
    "any-coordinator": "before version 2 a late marker ends another transaction even of the same coordinator",
    "earlier-offset-counts": "nobody commits an offset outside of transactions, nor while one of the group is open",
    "marker-goes-with-batches": "logs of the model are not compacted; a test of compaction finds it",
    "marker-goes-at-once": "logs of the model are not compacted; a test of compaction finds it",
    "stable-when-ended": "records of partitions are committed at once",
}
"""Mutants that no run of the model tells apart by what it violates, and why."""


TRANSACTIONS_SECTION = "In the model of transactions"
"""The title of the section of the page of mutants that is about the model `transactions`."""

CATALOGUE = MutantCatalogue(
    model="transactions",
    mutants=ALL_MUTANTS,
    hunted=HUNTS,
    not_caught=NOT_CAUGHT,
    title=TRANSACTIONS_SECTION,
    about="Each rule of transactions weakened by itself, in the model [`transactions`](transactions-model.md).",
    hunted_for_ever=LIVENESS_HUNTS,
    liveness="TransactionEnds",
)
"""All of them."""
