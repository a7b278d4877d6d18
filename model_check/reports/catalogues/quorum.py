"""The mutants of the quorum of controllers: the model `quorum` with one rule weakened, and the property that fails."""

from collections.abc import Mapping
from typing import Any

from kspec.model_check.reports.catalogues.catalogue import MutantCatalogue
from kspec.spec.mutation import Mutant
from kspec.spec.releases.mutants.quorum import QUORUM_MUTANTS

ALL_MUTANTS: Mapping[str, Mutant] = {mutant.name: mutant for mutant in QUORUM_MUTANTS}

OLDER: dict[str, Any] = {"release": "3.9", "records": 0}
"""Elections that nobody asks about before: fewer states."""

CUT_OFF: dict[str, Any] = {"records": 0, "fair_timers": True, "cuts": 1}
"""Timers that end only for who is cut off."""

HUNTS: dict[str, tuple[dict[str, Any], str, int]] = {
    "forgets-vote": ({}, "VotesOnce", 7),
    "leads-again": ({"power_losses": 1}, "SameEpochSameRecords", 4),
    "commits-at-epoch-start": (
        {**OLDER, "max_epoch": 4, "answer_size": 1, "lost_answers": 1},
        "CommittedOnNewestLeader",
        12,
    ),
    "never-flushes": ({"power_losses": 1}, "CommittedOnNewestLeader", 9),
    "same-epoch-after-resignation": ({"resignations": 1, "release": "4.2"}, "NoIllegalState", 7),
    "votes-again": ({}, "ElectionSafety", 6),
    "votes-for-itself": ({}, "VotesOnce", 4),
    "counts-parted": ({**OLDER, "max_epoch": 3}, "CommittedOnNewestLeader", 8),
    "keeps-high-watermark": ({}, "HighWatermarkGrows", 11),
    "longest-log-wins": ({**OLDER, "max_epoch": 3}, "CommittedOnNewestLeader", 9),
    "changes-while-changing": ({**OLDER, "voter_changes": 2}, "CommittedOnNewestLeader", 9),
    "keeps-cut-voters": ({"records": 0, "voter_changes": 1}, "SameEpochSameRecords", 9),
    "late-answers-count": ({"late_answers": 1}, "NoIllegalState", 7),
    "upgrades-unreported": ({"records": 0, "upgrades": 1}, "CommittedOnNewestLeader", 7),
    "snapshots-uncommitted": ({**OLDER, "snapshots": 1}, "CommittedOnNewestLeader", 9),
    "promises-while-following": (CUT_OFF, "NoNeedlessElection", 9),
    "stands-without-majority": (CUT_OFF, "NoNeedlessElection", 9),
}
"""Mutants that violate a property of states: the bounds, the property, and the steps of the shortest run."""

LIVENESS_HUNTS: dict[str, dict[str, Any]] = {"no-check-quorum": {**CUT_OFF, "cuts": 2, "max_epoch": 1}}
"""Bounds within which a leader that is cut off leads on for ever with the mutant."""

NOT_CAUGHT = {
    "follower-forgets-vote": (
        "a follower knows who leads, and votes for nobody in that epoch, whether it waits, asks, or starts again; up to"
        " 3.9 it forgets its vote"
    ),
    "counts-leader-always": (
        "a leader that is removed commits with one voter too few, but whoever lacks that record still asks this leader for"
        " its vote, by the voters that it knows, and is refused"
    ),
    "changes-before-own-record": (
        "no search has come so far: a run of 13 steps with four voters and three epochs loses a committed record; a test"
        " replays it (`--release 3.9 --servers 4 --voter-changes 2 --max-epoch 3 --records 0`)"
    ),
    "truncates-committed": "no leader lacks what is committed, so none asks for that, as long as no disk is lost",
    "votes-by-id": (
        "where directories are known, a replica with another one is no voter, and stands for nothing; where they are not, a"
        " disk that is lost breaks elections anyhow"
    ),
}
"""Mutants that no run of the model tells apart by what it violates, and why."""

QUORUM_SECTION = "In the model of the quorum"
"""The title of the section of the page of mutants that is about the model `quorum`."""

CATALOGUE = MutantCatalogue(
    model="quorum",
    mutants=ALL_MUTANTS,
    hunted=HUNTS,
    not_caught=NOT_CAUGHT,
    title=QUORUM_SECTION,
    about="Each rule of the quorum of controllers weakened by itself, in the model [`quorum`](quorum-model.md).",
    hunted_for_ever=LIVENESS_HUNTS,
    liveness="CutOffLeaderResigns",
    symmetry=True,
)
"""All of them."""
