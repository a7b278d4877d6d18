"""Findings of simulated clusters, by seed: `python -m tests.trials.simulated.mutants [NAME …]`.

Mutants of `next`, findings, releases, and acks=1, each run seed by seed until a promise is broken. What is found is written
to `tests/data/mutants-in-clusters.json` and to its section of docs/mutants.md.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kspec.model_check.reports.sections import with_section
from tests.places import DATA, DOCS
from tests.trials.simulated.hunting import (
    FINDINGS,
    MUTANTS,
    OF_QUORUM,
    OLD,
    ONE_ACK,
    TRANSACTIONAL,
    hunt,
    hunt_finding,
    hunt_mutants,
)

FILE = DATA / "mutants-in-clusters.json"
PAGE = DOCS / "mutants.md"
SECTION = "In simulated clusters"
SEEDS, STEPS = 40, 3_500
"""The number of seeds that are tried, with how many steps each."""

OTHERS: dict[str, str] = {
    ONE_ACK: "`next`, and producers that wait for the leader alone",
    **{f"release {name}": "all brokers, with the oldest controller there is" for name in OLD[:2]},
    **{f"release {name}": "all brokers, and the controller" for name in OLD[2:]},
}
"""The runs beside mutants and findings."""


def known() -> dict[str, dict[str, Any]]:
    """The content of the file."""
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def page(found: dict[str, dict[str, Any]]) -> str:
    """The section of the page: what is found, and what is not, with the reason."""
    caught = [one for one in MUTANTS if "promise" in found.get(one.name, {})]
    rows = [_row(f"`{one.name}`", one.summary, found[one.name]) for one in caught]
    others = [
        _row(name, _with_rules(text, found[name]), found[name])
        for name, text in OTHERS.items()
        if "promise" in found.get(name, {})
    ]
    left = [one for one in MUTANTS if one not in caught]
    open_ones = [f"`{name}`" for name in (*FINDINGS, *OTHERS) if name not in found]
    unfound = [name for name in OTHERS if name in found and "promise" not in found[name]]
    return "\n".join(
        [
            f"## {SECTION}",
            "",
            "Whole brokers and a controller run in",
            "[simulated time](simulated-clusters.md). All brokers, or the controller, have one rule of `next`",
            "weakened. Seeds are run until a property fails. Written by `python -m tests.trials.simulated.mutants`. *Steps*",
            "are those of the seed up to there. Tests run these seeds again; `kspec simulate-cluster --seed SEED",
            f"--steps {STEPS} --controllers 1 --mutant NAME` does so, too, and says which of the faults are needed.",
            "",
            "Each seed runs by the rules of `next` first, and the weakened rules are asked the same questions. Only where",
            "a rule has had another answer does the seed run with the mutant: up to there both runs are the same.",
            "",
            f"{len(caught)} of {len(MUTANTS)} are caught.",
            "",
            "| mutant | what it means | caught by | seed | steps |",
            "|---|---|---|---|---|",
            *rows,
            "",
            "### Transactions, in simulated clusters",
            "",
            "The same, with producers of transactions (`--transactions`) and one rule of transactions weakened.",
            f"{sum('promise' in found.get(name, {}) for name in TRANSACTIONAL)} of {len(TRANSACTIONAL)} are caught.",
            "",
            "| mutant | what it means | caught by | seed | steps |",
            "|---|---|---|---|---|",
            *[
                _row(f"`{name}`", one.summary, found[name])
                for name, one in TRANSACTIONAL.items()
                if "promise" in found.get(name, {})
            ],
            "",
            "Not caught:",
            "",
            *[
                f"- `{name}` ({one.summary}) ({_tried(found, name)}): {REASONS.get(name, UNKNOWN)}"
                for name, one in TRANSACTIONAL.items()
                if "promise" not in found.get(name, {})
            ],
            "",
            "### Rules of the quorum, in simulated clusters with three controllers",
            "",
            "The same, with `--controllers 3` and one rule of the quorum weakened, or as 4.2 to 4.4 have it where `next`",
            "repairs it. Voters are removed and added, and controllers lose power, disks and links in these seeds",
            "([how](simulated-clusters.md#several-controllers)). A seed need not be the first that shows it.",
            f"{sum('promise' in found.get(name, {}) for name in OF_QUORUM)} of {len(OF_QUORUM)} are caught.",
            "",
            "| mutant | what it means | caught by | seed | steps |",
            "|---|---|---|---|---|",
            *[
                _row(f"`{name}`", one.summary, found[name])
                for name, one in OF_QUORUM.items()
                if "promise" in found.get(name, {})
            ],
            "",
            "Not caught:",
            "",
            *[
                f"- `{name}` ({one.summary}) ({_tried(found, name)}): {REASONS.get(name, UNKNOWN)}"
                for name, one in OF_QUORUM.items()
                if "promise" not in found.get(name, {})
            ],
            "",
            "### Findings of the model checker, in simulated clusters",
            "",
            "All brokers and the controller have the rules of the release. A seed counts if a property fails with these,",
            "and none fails with the same seed once the one rule in question is as in `next`. `kspec simulate-cluster",
            f"--release 4.0 --seed SEED --steps {STEPS} --controllers 1` shows the first.",
            "",
            "| finding | rule | property | seed | steps |",
            "|---|---|---|---|---|",
            *[_row_of_finding(name, found[name]) for name in FINDINGS if name in found],
            "",
            "### Releases and acks=1, in simulated clusters",
            "",
            "A rule is named if all properties hold for the same seed, with the same faults, and this rule as in `next`.",
            "",
            "| what | | property | seed | steps |",
            "|---|---|---|---|---|",
            *others,
            *[_row_of_none(name, found[name]) for name in unfound],
            "",
            "### Not caught in simulated clusters",
            "",
            "In brackets: in how many seeds the weakened rule had another answer, of those that were run.",
            "",
            *[
                f"- `{one.name}` ({one.summary}) ({_tried(found, one.name)}): {REASONS.get(one.name, UNKNOWN)}"
                for one in left
            ],
            "",
            *([f"Not run yet: {', '.join(open_ones)}.", ""] if open_ones else []),
        ]
    )


def _tried(found: dict[str, dict[str, Any]], name: str) -> str:
    """In how many seeds a mutant ran."""
    return f"{found[name]['runs']} of {found[name]['seeds']}" if name in found else "not run"


def _row_of_finding(name: str, one: dict[str, Any]) -> str:
    finding = FINDINGS[name]
    text = f"| [{finding.page}](findings/{finding.page}.md) in {finding.release} | `{finding.field}` |"
    if "promise" not in one:
        return f"{text} none fails | {one['seeds']} seeds | |"
    return f"{text} {one['promise']} | {one['seed']} | {one['steps']:,} |"


def _row(name: str, text: str, one: dict[str, Any]) -> str:
    return f"| {name} | {text} | {one['promise']} | {one['seed']} | {one['steps']:,} |"


def _row_of_none(name: str, one: dict[str, Any]) -> str:
    return f"| {name} | {OTHERS[name]} | none fails | {one['seeds']} seeds | |"


MOST_RULES = 3
"""If the run keeps its promises with more rules than these, it has taken another course, which says nothing."""


def _with_rules(text: str, one: dict[str, Any]) -> str:
    if len(one["rules"]) > MOST_RULES:
        return f"{text}; no rule is named: with any of {len(one['rules'])} the run takes another course"
    return text + (f"; rules: {', '.join(f'`{rule}`' for rule in one['rules'])}" if one["rules"] else "")


UNKNOWN = "no schedule has come up yet."

PROGRESS = "it costs progress only while a fault lasts, and at the end, without faults, all properties hold."
REASONS: dict[str, str] = {
    "take-registration-of-earlier-incarnation": "a connection ends with its process, and no answer reaches the next one.",
    "count-fetch-of-earlier-incarnation": (
        "the fetch must arrive when the next incarnation is in sync again and lacks what that fetch had, and while the high"
        " watermark stands still below it."
    ),
    "admit-earlier-incarnation": "a fetch of an earlier incarnation is refused before it can admit a replica.",
    "open-ports-at-once": "in `next` a broker does not act before it is registered, and then it leads nothing.",
    "take-old-announcement": "what `next` takes of an announcement, by `announced_isr`, is nothing if it is older.",
    "diverging-before-start": "a follower must ask below its leader's log start, with an epoch that ends there.",
    "take-later-epochs": "this broker reads records when it makes the answer, so none is later than the answer's epoch.",
    "forget-last-epoch": "the model catches it only beside `take-answer-of-other-epoch`.",
    "await-isr-only": PROGRESS,
    "await-ineligible": PROGRESS,
    "join-under-min-isr": PROGRESS,
    "admit-anybody": "the controller refuses the proposal; " + PROGRESS,
    "do-not-restart-fetcher": (
        "a follower must keep a fetcher that is at another offset than its log, in an epoch in which its leader is the same,"
        " and nothing that comes later may restart it."
    ),
    "no-sequence-check": (
        "a batch that is sent again is known by its number among the last five without this rule; it takes one that"
        " arrives after five later ones, at a leader that has stayed."
    ),
    "high-watermark-before-truncation": (
        "it must take a follower two steps to truncate, as after two epochs whose records its leader does not have."
    ),
    "high-watermark-over-committed-isr": (
        "the new member must be behind while the leader does not know that it is a member; it was at the high watermark"
        " when it was proposed, and fetches again within milliseconds."
    ),
    "no-epoch-for-a-smaller-assignment": (
        "the removed replica must be added again, empty, while a fetch of before is under way, or before its leader has read"
        " that it was removed."
    ),
    "fence-keeps-epoch": "in version 2 the end of the transaction raises the epoch all the same.",
    "fence-bumps-twice": "epochs here are far from the last one.",
    "fence-never-rotates": "epochs here are far from the last one.",
    "pending-last": "epochs here are far from the last one.",
    "fence-each-time": "it uses up epochs, and there are enough.",
    "end-of-later-epoch": "no producer has a later epoch than its coordinator.",
    "nobody-named": "no producer here says who it was.",
    "any-guard": "in version 2 a late batch has an earlier epoch.",
    "guard-before-epoch": "a producer that is fenced must write just then, and be told the wrong error.",
    "guard-of-equal-epoch": "the marker of a fence must come twice while the first record of the next producer is verified.",
    "acts-before-committed": (
        "a coordinator must stop just before a record is committed, and the next one must be lost before that; a test has"
        " these steps (`tests/trials/simulated/transactions/test_loading.py`)."
    ),
    "marker-goes-with-batches": "logs with transactions are not compacted here; a test of compaction finds it.",
    "marker-goes-at-once": "logs with transactions are not compacted here; a test of compaction finds it.",
    "begins-anywhere": "a producer here has one batch under way.",
    "any-coordinator": "in version 2 the epoch of a late marker is refused before.",
    "stable-when-ended": "what is decided is read, a little before all replicas know of it.",
    "refusal-without-trace": "a proposal must be refused and its copy arrive after the cause of the refusal is over.",
}
"""Reasons why a mutant is not found, where that is understood."""


def write(found: dict[str, dict[str, Any]], file: Path = FILE, text: Path = PAGE) -> None:
    """The file and the page."""
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    text.write_text(with_section(text.read_text(encoding="utf-8"), page(found)), encoding="utf-8")


def hunts(names: list[str], seeds: range, steps: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The finding for each, as it is found."""
    mutants = (*MUTANTS, *TRANSACTIONAL.values(), *OF_QUORUM.values())
    yield from hunt_mutants([one.name for one in mutants if one.name in names], seeds, steps)
    for name in names:
        if name in FINDINGS:
            yield name, hunt_finding(name, seeds, steps)
        elif name in OTHERS:
            yield name, hunt(name, seeds, steps)


def main() -> int:
    """Hunt all, or those that are named; the others stay as the file has them."""
    names = [*(mutant.name for mutant in MUTANTS), *TRANSACTIONAL, *OF_QUORUM, *FINDINGS, *OTHERS]
    parser = argparse.ArgumentParser(prog="python -m tests.trials.simulated.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="these only")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--page", action="store_true", help="run nothing; write the page from the file")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(names)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    if not arguments.page:
        seeds = range(arguments.seed, arguments.seed + arguments.seeds)
        for name, one in hunts(arguments.names or names, seeds, arguments.steps):
            print(name, one, flush=True)
            found = (known() if FILE.exists() else {}) | {name: one}
            FILE.write_text(
                json.dumps({one: found[one] for one in names if one in found}, indent=1) + "\n", encoding="utf-8"
            )
    found = known()
    write({name: found[name] for name in names if name in found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
