"""What simulated clusters find, by seed: `python -m tests.impl.sim.mutants [NAME …]`.

Mutants of `next`, releases, and acks=1, each run seed by seed until a promise is broken. What is found is written to
`tests/data/mutants-in-clusters.json` and to docs/mutants-in-simulated-clusters.md.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from impl.sim.causes import rules_that_repair
from impl.sim.runs import Outcome, run
from impl.sim.setup import Setup
from spec.broker.protocol import BrokerProtocol
from spec.controller.protocol import Controller, ControllerProtocol
from spec.messages.produce import ACKS_LEADER
from spec.mutation import Mutant, weaken
from spec.releases.broker import BROKER_NEXT, BROKER_RELEASES
from spec.releases.broker_mutants import BROKER_MUTANTS
from spec.releases.kraft import KRAFT_NEXT
from spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from spec.releases.names import KRAFT_NAMES, kraft_of
from tests.places import DATA, DOCS

FILE = DATA / "mutants-in-clusters.json"
PAGE = DOCS / "mutants-in-simulated-clusters.md"
BROKERS = (1, 2, 3)
SEEDS, STEPS = 14, 2_500
"""How many seeds are tried, with how many steps each."""

MUTANTS: tuple[Mutant, ...] = (*BROKER_MUTANTS, *CONTROLLER_MUTANTS)
RELEASES = {one.name: one for one in BROKER_RELEASES}
ONE_ACK = "acks=1"
OLD = ("0.10", "0.11", "3.9", "4.0")
OTHERS: dict[str, str] = {
    ONE_ACK: "`next`, and producers that wait for the leader alone",
    **{f"release {name}": "all brokers, with the oldest controller there is" for name in OLD[:2]},
    **{f"release {name}": "all brokers, and the controller" for name in OLD[2:]},
}
"""What is run beside mutants."""


def _setup(seed: int, broker: BrokerProtocol, controller: ControllerProtocol) -> Setup:
    return Setup(seed, dict.fromkeys(BROKERS, broker), Controller(controller))


def setup_of(name: str, seed: int) -> Setup:
    """The cluster of a mutant, a release or acks=1."""
    if name == ONE_ACK:
        return replace(_setup(seed, BROKER_NEXT, KRAFT_NEXT), acks=ACKS_LEADER)
    if name in OTHERS:
        release = name.removeprefix("release ")
        return _setup(seed, RELEASES[release], kraft_of(release if release in KRAFT_NAMES else KRAFT_NAMES[0]))
    (mutant,) = [one for one in MUTANTS if one.name == name]
    if mutant in BROKER_MUTANTS:
        return _setup(seed, weaken(BROKER_NEXT, mutant), KRAFT_NEXT)
    return _setup(seed, BROKER_NEXT, weaken(KRAFT_NEXT, mutant))


def hunt(name: str, first_seed: int, seeds: int, steps: int) -> dict[str, Any]:
    """The first seed that breaks a promise, its steps, and those of all seeds before."""
    total = 0
    for seed in range(first_seed, first_seed + seeds):
        outcome = run(setup_of(name, seed), steps)
        total += outcome.steps
        if outcome.broken is not None:
            return {
                "promise": outcome.broken.name,
                "seed": seed,
                "steps": outcome.steps,
                "all_steps": total,
                "limit": steps,
                "rules": _causes(name, outcome),
            }
    return {"seeds": seeds, "all_steps": total, "limit": steps}


def _causes(name: str, outcome: Outcome) -> list[str]:
    """For a release, the rules with which the run keeps its promises."""
    if name not in OTHERS or name == ONE_ACK:
        return []
    return list(rules_that_repair(setup_of(name, outcome.seed), outcome, BROKER_NEXT, KRAFT_NEXT))


def known() -> dict[str, dict[str, Any]]:
    """What the file says."""
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def page(found: dict[str, dict[str, Any]]) -> str:
    """The page: what is found, and what is not, with the reason."""
    broken = [one for one in MUTANTS if "promise" in found.get(one.name, {})]
    rows = [_row(f"`{one.name}`", one.summary, found[one.name]) for one in broken]
    others = [
        _row(name, _with_rules(text, found[name]), found[name])
        for name, text in OTHERS.items()
        if "promise" in found.get(name, {})
    ]
    left = [one for one in MUTANTS if one not in broken]
    open_ones = [f"`{name}`" for name in (*(one.name for one in left), *OTHERS) if name not in found]
    unfound = [name for name in OTHERS if name in found and "promise" not in found[name]]
    return "\n".join(
        [
            "# Mutants in simulated clusters",
            "",
            "You want to know which weakened rules simulated clusters catch. Whole brokers and a controller run in",
            "[simulated time](simulated-clusters-of-brokers.md). All brokers, or the controller, have one rule of `next`",
            "weakened. Seeds are run until a property fails. Written by `python -m tests.impl.sim.mutants`. *Steps* are",
            "those of the seed in which it fails, in brackets those of all seeds up to it. Tests run these seeds again.",
            "",
            f"{len(broken)} of {len(MUTANTS)} are caught.",
            "",
            "| mutant | what it means | caught by | seed | steps |",
            "|---|---|---|---|---|",
            *rows,
            "",
            "## Releases, and acks=1",
            "",
            "A rule is named if all properties hold for the same seed, with the same faults, and this rule as in `next`.",
            "",
            "| what | | property | seed | steps |",
            "|---|---|---|---|---|",
            *others,
            *[_row_of_none(name, found[name]) for name in unfound],
            "",
            "## Not caught",
            "",
            *[
                f"- `{one.name}` ({one.summary}), in {found[one.name]['seeds']} seeds: {REASONS.get(one.name, UNKNOWN)}"
                for one in left
                if one.name in found
            ],
            "",
            *([f"Not run yet: {', '.join(open_ones)}.", ""] if open_ones else []),
        ]
    )


def _row(name: str, text: str, one: dict[str, Any]) -> str:
    return f"| {name} | {text} | {one['promise']} | {one['seed']} | {one['steps']:,} ({one['all_steps']:,}) |"


def _row_of_none(name: str, one: dict[str, Any]) -> str:
    return f"| {name} | {OTHERS[name]} | none fails | {one['seeds']} seeds | {one['all_steps']:,} |"


MOST_RULES = 3
"""If the run keeps its promises with more rules than these, it has taken another course, which says nothing."""


def _with_rules(text: str, one: dict[str, Any]) -> str:
    if len(one["rules"]) > MOST_RULES:
        return f"{text}; no rule is named: with any of {len(one['rules'])} the run takes another course"
    return text + (f"; rules: {', '.join(f'`{rule}`' for rule in one['rules'])}" if one["rules"] else "")


UNKNOWN = "no schedule has come up yet."

ASKS_ONCE = "`next` asks where an epoch ends only while its log has no epoch; it truncates by the answers to fetches."
PROGRESS = "it costs progress only while a fault lasts, and at the end, without faults, all properties hold."
ONE_PROCESS = "a connection ends with its process, and here what the process has sent ends with it."
LEADER_FIRST = (
    "a leader of `next` does not propose such a replica; the controller is asked only if the leader's metadata are old."
)

REASONS: dict[str, str] = {
    "take-registration-of-earlier-incarnation": ONE_PROCESS,
    "count-fetch-of-earlier-incarnation": ONE_PROCESS,
    "admit-earlier-incarnation": "a fetch of an earlier incarnation is refused before it can admit a replica.",
    "act-on-old-metadata": "a broker whose ports are closed is not heard, whatever it believes.",
    "open-ports-at-once": "in `next` a broker does not act before it is registered, and then it leads nothing.",
    "unfenced-before-caught-up": "a broker asks to be unfenced only once it has caught up.",
    "epoch-lookup-as-designed": ASKS_ONCE,
    "epoch-lookup-by-end": ASKS_ONCE,
    "no-epoch-entry": "the first record of an epoch makes the entry, and no follower of `next` asks for one before.",
    "diverging-before-start": "logs start at 0: nothing is deleted.",
    "await-isr-only": PROGRESS,
    "await-ineligible": PROGRESS,
    "join-under-min-isr": PROGRESS,
    "admit-anybody": "the controller refuses the proposal; " + PROGRESS,
    "second-registration-fences": "the broker is fenced, and unfenced by its next heartbeats; " + PROGRESS,
    "fenced-replica-admitted": LEADER_FIRST,
    "stale-broker-epoch-accepted": LEADER_FIRST,
    "no-sequence-check": (
        "a batch that is sent again is known by its number among the last five without this rule; it takes one that"
        " arrives after five later ones, at a leader that has stayed."
    ),
    "high-watermark-over-committed-isr": (
        "the new member must be behind while the leader does not know that it is a member; it was at the high watermark"
        " when it was proposed, and fetches again within milliseconds."
    ),
    "roll-back-on-any-error": (
        "the grant must be lost, the second copy refused, and the metadata that tell of the grant later than both."
    ),
    "refusal-without-trace": "a proposal must be refused and its copy arrive after the cause of the refusal is over.",
    "last-known-leader-while-down": "all replicas must be lost for the controller, and the last leader down.",
}
"""Why a mutant is not found, where that is understood."""


def write(found: dict[str, dict[str, Any]], file: Path = FILE, text: Path = PAGE) -> None:
    """The file and the page."""
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    text.write_text(page(found), encoding="utf-8")


def main() -> int:
    """Hunt all, or those that are named; the others stay as the file has them."""
    names = [*(mutant.name for mutant in MUTANTS), *OTHERS]
    parser = argparse.ArgumentParser(prog="python -m tests.impl.sim.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="these only")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--page", action="store_true", help="run nothing; write the page from the file")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(names)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    found = known() if FILE.exists() else {}
    if not arguments.page:
        for name in arguments.names or names:
            found[name] = hunt(name, arguments.seed, arguments.seeds, arguments.steps)
            print(name, found[name], flush=True)
            file = {one: found[one] for one in names if one in found}
            FILE.write_text(json.dumps(file, indent=1) + "\n", encoding="utf-8")
    write({name: found[name] for name in names if name in found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
