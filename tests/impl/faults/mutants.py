"""What rounds of faults on real processes find: `python -m tests.impl.faults.mutants [NAME ...]`.

Mutants of `next`, old releases, and acks=1, each in rounds until clients see what must not be. The record of the processes
then names the rule. What is found is written to `tests/data/mutants-in-processes.json` and docs/mutants-in-processes.md.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from spec.mutation import Mutant
from spec.releases.broker_mutants import BROKER_MUTANTS
from spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from tests.impl.cluster.running import free_ports
from tests.places import DATA, DOCS

FILE = DATA / "mutants-in-processes.json"
PAGE = DOCS / "mutants-in-processes.md"
SECONDS = 15
LIMIT_S = 420
"""An emergency stop of one round."""

MUTANTS: tuple[Mutant, ...] = (*BROKER_MUTANTS, *CONTROLLER_MUTANTS)
OTHERS = {
    "acks=1": ("--acks", "1"),
    "release 0.10": ("--release", "0.10"),
    "release 0.11": ("--release", "0.11"),
    "release 3.9": ("--release", "3.9"),
}
"""What is run beside mutants."""

NEVER_WHOLE = "never whole again"
"""What is said of a cluster whose replicas are not all in sync three minutes after the last fault."""


def options_of(name: str) -> tuple[str, ...]:
    """The options of `kspec cluster` for a mutant, a release or acks=1."""
    return OTHERS.get(name, ("--mutant", name))


def command_of(name: str, seed: int, folder: str, port: int | str = "PORT") -> list[str]:
    """One round."""
    rounds = ["--rounds", "1", "--seed", str(seed), "--seconds", str(SECONDS)]
    return ["cluster", "--log-dir", folder, *options_of(name), *rounds, "--trace", "--plain", "--port", str(port)]


def hunt(name: str, seeds: Sequence[int]) -> dict[str, Any]:
    """The first seed in which clients see what must not be: what they saw, and the rule that the record names."""
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", "from model_check.cli.start import main; main()"]
            try:
                done = subprocess.run(
                    [*command, *command_of(name, seed, folder, free_ports(8))],
                    capture_output=True,
                    text=True,
                    timeout=LIMIT_S,
                    check=False,
                )
            except subprocess.TimeoutExpired:  # it says nothing of the rule, so the next seed is tried
                continue
        found = judged(done.stdout + done.stderr)
        if found is not None:
            return {"seed": seed, **found}
    return {"seeds": len(seeds)}


def judged(said: str) -> dict[str, Any] | None:
    """What a round's output says was found, if anything was."""
    anomalies = re.search(r"^seed \d+: (?:ANOMALIES|lost as acks=1 may): ([^;]*);", said, re.MULTILINE)
    rules = re.findall(r"^rule (.*?): not as in next, decided ([\d,]+) steps? otherwise", said, re.MULTILINE)
    if anomalies is None and "not whole again" not in said:
        return None
    return {
        "found": anomalies[1] if anomalies else NEVER_WHOLE,
        "rules": {rule: int(steps.replace(",", "")) for rule, steps in rules},
    }


def known() -> dict[str, dict[str, Any]]:
    """What the file says."""
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return found


def page(found: dict[str, dict[str, Any]]) -> str:
    """The page: what is found, and what is not."""
    caught = [one for one in MUTANTS if "found" in found.get(one.name, {})]
    missed = [one for one in MUTANTS if "seeds" in found.get(one.name, {})]
    others = [name for name in OTHERS if "found" in found.get(name, {})]
    return "\n".join(
        [
            "# Mutants in clusters of processes",
            "",
            "You want to know which weakened rules [rounds of faults](cluster.md#rounds-of-faults) find: three brokers and",
            "a controller, each a process, under load and random faults. All have one rule of `next` weakened. The clients'",
            "history is judged; then the steps that all processes have recorded are run by the rules of `next`, and those",
            f"that come out otherwise name the rule. A round has {SECONDS} s of faults; when they meet the processes is up",
            "to the machine, so a seed that found something need not find it again. Written by `python -m",
            "tests.impl.faults.mutants`; one round is `kspec cluster --log-dir DIR --mutant NAME --rounds 1 --seed S",
            f"--seconds {SECONDS} --trace`.",
            "",
            f"{len(caught)} of the {len(caught) + len(missed)} that were tried are found.",
            "",
            "| mutant | what it means | what clients saw | seed | rule that the record names (steps) |",
            "|---|---|---|---|---|",
            *[_row(f"`{one.name}`", one.summary, found[one.name]) for one in caught],
            "",
            "## Releases, and acks=1",
            "",
            "A release differs from `next` in many rules; those that decided most steps otherwise come first.",
            "",
            "| what | | what clients saw | seed | rules that the record names (steps) |",
            "|---|---|---|---|---|",
            *[_row(name, f"`{' '.join(OTHERS[name])}`", found[name]) for name in others],
            "",
            "## Not found",
            "",
            *[f"- `{one.name}` ({one.summary}), in {found[one.name]['seeds']} rounds" for one in missed],
            *[f"- {name}, in {found[name]['seeds']} rounds" for name in OTHERS if "seeds" in found.get(name, {})],
            "",
        ]
    )


MOST_RULES = 3


def _row(name: str, text: str, one: dict[str, Any]) -> str:
    rules = [f"`{rule}` ({steps:,})" for rule, steps in one["rules"].items()][:MOST_RULES]
    return (
        f"| {name} | {text} | {one['found']} | {one['seed']} | {', '.join(rules) or 'none: all steps are those of `next`'} |"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Hunt, and write both files after each mutant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants, releases or acks=1; all, if none is named")
    parser.add_argument("--rounds", type=int, default=3, help="how many rounds each, at most")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    given = parser.parse_args(arguments)
    for name in given.names or [*OTHERS, *(one.name for one in MUTANTS)]:
        one = hunt(name, range(given.seed, given.seed + given.rounds))
        found = {**known(), name: one}
        FILE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        PAGE.write_text(page(found), encoding="utf-8")
        print(name, one, flush=True)


if __name__ == "__main__":
    main()
