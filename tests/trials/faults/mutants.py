"""Findings of rounds of faults on real processes: `python -m tests.trials.faults.mutants [NAME ...]`.

Mutants of `next`, old releases, and acks=1, each in rounds by the plans that are aimed at its rule, until clients see what
must not be. The record of the processes then names the rule. What is found is written to
`tests/data/mutants-in-processes.json` and its section of docs/mutants.md. `next` itself goes through all plans, too.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kspec.model_check.reports.sections import with_section
from kspec.spec.mutation import Mutant
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from kspec.trials.faults.plans.catalogue import PLANS, RANDOM
from tests.places import DATA, DOCS
from tests.trials.cluster.running import is_free

FILE = DATA / "mutants-in-processes.json"
PAGE = DOCS / "mutants.md"
SECTION = "In clusters of processes"
SECONDS, RATE = 15, 40
LIMIT_S = 420
"""An emergency stop of one round."""

PORTS, FIRST_PORT = 8, 23000

MUTANTS: tuple[Mutant, ...] = (*BROKER_MUTANTS, *CONTROLLER_MUTANTS)
CONTROLLERS = {one.name for one in CONTROLLER_MUTANTS}


class Other(NamedTuple):
    """A round beside mutants: the options, the plan, and the rule whose repair must end the loss, if one is to blame."""

    options: tuple[str, ...]
    plan: str
    repair: str = ""


OTHERS: Mapping[str, Other] = {
    "acks=1": Other(("--acks", "1"), "leader-dies"),
    "release 0.10": Other(("--release", "0.10"), "fast-elections", "start_following@0.11"),
    "release 0.11": Other(("--release", "0.11"), "parted-leaders", "epoch_lookup@2.0"),
    "release 3.9, late news": Other(("--release", "3.9"), "late-news", "announced_isr@next"),
    "release 3.9, missed epoch": Other(("--release", "3.9"), "missed-epoch", "knows_followers@next"),
}

NEVER_WHOLE = "never whole again"
"""The verdict on a cluster whose replicas do not get in sync after the last fault."""


def rule_of(mutant: Mutant) -> str:
    """The weakened rule, as plans and records name it."""
    return f"controller: {mutant.field}" if mutant.name in CONTROLLERS else mutant.field


def plans_for(name: str) -> list[str]:
    """The plans of a mutant's rounds: those that are aimed at its rule, or random faults if there are none."""
    if name in OTHERS:
        return [OTHERS[name].plan]
    (mutant,) = (one for one in MUTANTS if one.name == name)
    return [plan.name for plan in PLANS.values() if rule_of(mutant) in plan.rules] or [RANDOM]


def command_of(options: Sequence[str], plan: str, seed: int, folder: str, port: int | str = "PORT") -> list[str]:
    """One round."""
    rounds = ["--rounds", "1", "--plans", plan, "--seed", str(seed), "--seconds", str(SECONDS), "--rate", str(RATE)]
    return ["cluster", "--log-dir", folder, *options, *rounds, "--trace", "--plain", "--port", str(port)]


def free_ports() -> int:
    """The first of some ports in a row, above a fixed one, that nobody listens on."""
    return next(
        first
        for first in range(FIRST_PORT, 65536 - PORTS, PORTS)
        if all(is_free(port) for port in range(first, first + PORTS))
    )


def round_of(options: Sequence[str], plan: str, seed: int) -> str:
    """The output of a round; nothing, if it does not come to its end."""
    program = [sys.executable, "-c", "from kspec.cli.start import main; main()"]
    with tempfile.TemporaryDirectory() as folder:
        command = [*program, *command_of(options, plan, seed, folder, free_ports())]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return ""
    return done.stdout + done.stderr


def hunt(name: str, seeds: Sequence[int]) -> dict[str, Any]:
    """The first round in which clients see what must not be: what they saw, and the rule that the record names."""
    options = OTHERS[name].options if name in OTHERS else ("--mutant", name)
    plans = plans_for(name)
    for seed in seeds:
        for plan in plans:
            begin = time.monotonic()
            found = judged(round_of(options, plan, seed))
            took = round(time.monotonic() - begin)
            if found is not None:
                return {"plan": plan, "seed": seed, "took": took, **found, **_repaired(name, plan, seed)}
    return {"plans": plans, "rounds": len(plans) * len(seeds)}


def _repaired(name: str, plan: str, seed: int) -> dict[str, Any]:
    """The finding of the same round on a release with the rule to blame as in a later one."""
    if name not in OTHERS or not OTHERS[name].repair:
        return {}
    repair = OTHERS[name].repair
    found = judged(round_of((*OTHERS[name].options, "--mutant", f"repaired:{repair}"), plan, seed))
    return {"repair": repair, "repaired": "nothing lost" if found is None else found["found"]}


def judged(said: str) -> dict[str, Any] | None:
    """The finding in a round's output, if there is one."""
    anomalies = re.search(r"^seed \d+: (?:ANOMALIES|lost as acks=1 may): ([^;]*);", said, re.MULTILINE)
    rules = re.findall(r"^rule (.*?): not as in next, decided ([\d,]+) steps? otherwise", said, re.MULTILINE)
    if anomalies is None and "NEVER WHOLE" not in said:
        return None
    return {
        "found": anomalies[1] if anomalies else NEVER_WHOLE,
        "rules": {rule: int(steps.replace(",", "")) for rule, steps in rules},
    }


def known() -> dict[str, dict[str, Any]]:
    """The content of the file."""
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return found


# ---- the page


def page(found: dict[str, dict[str, Any]]) -> str:
    """The section of the page: what is found, and what is not."""
    caught = [one for one in MUTANTS if "found" in found.get(one.name, {})]
    missed = [one for one in MUTANTS if "rounds" in found.get(one.name, {})]
    others = [name for name in OTHERS if "found" in found.get(name, {})]
    return "\n".join(
        [
            f"## {SECTION}",
            "",
            "[Rounds of faults](cluster.md#rounds-of-faults) upon three brokers and",
            "a controller, each a process, under load. All have one rule of `next` weakened. The faults of a round are",
            "those of a [plan](cluster.md#plans) that is aimed at the rule, or random if there is none. The clients'",
            "history is judged; then the steps that all processes have recorded are run by the rules of `next`, and those",
            "that come out otherwise name the rule. When faults meet the processes is up to the machine, so a seed that",
            "found something need not find it again. Written by `python -m tests.trials.faults.mutants`; one round is",
            "`kspec cluster --log-dir DIR --mutant NAME --rounds 1 --plans PLAN --seed S --trace`. The same rounds choose",
            "among these plans and random faults by their seeds if no plan is named.",
            "",
            f"{len(caught)} of the {len(caught) + len(missed)} that were tried are found.",
            "",
            "| mutant | what it means | plan | what clients saw | seed | rule that the record names (steps) | s |",
            "|---|---|---|---|---|---|---|",
            *[_row(f"`{one.name}`", one.summary, found[one.name]) for one in caught],
            "",
            "*s*: how long the round took, with start, end and replay of the record, on a machine with much other work.",
            f"*{NEVER_WHOLE}*: the replicas do not come to be in sync after all faults are over.",
            "",
            "### Releases and acks=1, in processes",
            "",
            "A release differs from `next` in many rules, and the record names all that decided steps otherwise: first",
            "those that the plan is aimed at, then those that decided most. The last column is the proof: the same round",
            "with one rule as in a later release (`--mutant repaired:RULE@RELEASE`). That rule stands first here.",
            "",
            "| what | | plan | what clients saw | seed | rules that the record names (steps) | s | with one rule repaired |",
            "|---|---|---|---|---|---|---|---|",
            *[_row(name, f"`{' '.join(OTHERS[name].options)}`", found[name], last=True) for name in others],
            "",
            "### Not found in processes",
            "",
            *(
                [
                    *[f"- `{one.name}` ({one.summary}): {_rounds(found[one.name])}" for one in missed],
                    *[f"- {name}: {_rounds(found[name])}" for name in OTHERS if "rounds" in found.get(name, {})],
                ]
                or ["All that a plan is aimed at are found."]
            ),
            "",
            "### Not tried in processes",
            "",
            "No plan is aimed at the rules of these. [Simulated clusters](#in-simulated-clusters) find some of",
            "them, and say of the others why nothing shows them.",
            "",
            *[f"- `{one.name}` ({one.summary})" for one in MUTANTS if one.name not in found],
            "",
        ]
    )


MOST_RULES = 3


def _rounds(one: dict[str, Any]) -> str:
    plans = ", ".join(one["plans"])
    return f"{one['rounds']} round{'s' if one['rounds'] > 1 else ''} of {plans}"


def _row(name: str, text: str, one: dict[str, Any], *, last: bool = False) -> str:
    to_blame = one.get("repair", "").partition("@")[0]
    named = sorted(one["rules"].items(), key=lambda item: item[0] != to_blame)
    rules = [f"`{rule}` ({steps:,})" for rule, steps in named][:MOST_RULES]
    cells = [name, text, one["plan"], one["found"], one["seed"], ", ".join(rules) or "none: all steps are those of `next`"]
    cells.append(one["took"])
    if last:
        cells.append(f"`{one['repair']}`: {one['repaired']}" if "repair" in one else "")
    return f"| {' | '.join(map(str, cells))} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Hunt, and write both files after each mutant. What was found once stays, if it is not found this time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants, releases or acks=1; all, if none is named")
    parser.add_argument("--rounds", type=int, default=2, help="how many rounds of each plan, at most")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    given = parser.parse_args(arguments)
    for name in given.names or [*OTHERS, *(one.name for one in MUTANTS)]:
        one = hunt(name, range(given.seed, given.seed + given.rounds))
        before = known()
        found = {**before, name: before[name] if "found" in before.get(name, {}) and "found" not in one else one}
        FILE.write_text(json.dumps(found, indent=1, sort_keys=False) + "\n", encoding="utf-8")
        PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), page(found)), encoding="utf-8")
        print(name, one, flush=True)


if __name__ == "__main__":
    main()
