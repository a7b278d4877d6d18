"""The page of mutants, `docs/mutants.md`: rule by rule, where a weakened one is caught.

`python -m tests.mutants_page` writes it. Its sections are written by those that hunt. The table before them is made of the
sections and of what else there is: the files of proofs, and the tables of the conformance levels.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kspec.model_check.reports.catalogues.group import GROUP_SECTION
from kspec.model_check.reports.catalogues.quorum import QUORUM_SECTION
from kspec.model_check.reports.catalogues.transactions import TRANSACTIONS_SECTION
from kspec.model_check.reports.mutants import ALL_MUTANTS, SECTION
from kspec.model_check.reports.sections import section_of, with_section
from tests.places import DOCS, REPOSITORY
from tests.trials.faults import mutants as processes
from tests.trials.simulated import mutants as clusters

PAGE = DOCS / "mutants.md"
OVERVIEW = "Where each is caught"
PROOFS = ("kafka_next", "kafka_next_power_loss")
THEOREMS = REPOSITORY / "tests" / "proofs" / "theorems"
LIVENESS = "liveness property "

HEAD = """\
# Mutants

You want to know whether a rule is needed, and what notices that it is wrong. A *mutant* is a release in which one rule of
broker or controller is weakened, of the coordinator of groups and consumers, of transactions, or of the quorum of
controllers. Sections: [in the model](#in-the-model), [in the model of a group](#in-the-model-of-a-group),
[in the model of transactions](#in-the-model-of-transactions), [in the model of the quorum](#in-the-model-of-the-quorum),
[in simulated clusters](#in-simulated-clusters),
[in clusters of processes](#in-clusters-of-processes). The table is about brokers and controllers.
[Planted bugs](planted-bugs.md) are small errors made by operators, without a meaning. The mutants of the published models
are in [models](models.md#mutants), and what the proofs say in [proofs](proofs.md).

Each section is written by its own command, and the table by `python -m tests.mutants_page`.
"""


def caught_in_model(page: str) -> dict[str, str]:
    """The first property that fails in the model, by mutant; a liveness property is called one."""
    caught, _, _ = section_of(page, SECTION).partition("\n### ")
    rows = re.findall(r"^\| `([\w-]+)` \|.*\| ([^|]+) \| \d+ \|$", caught, re.MULTILINE)
    return dict(rows)


def caught_by_proofs() -> dict[str, str]:
    """The theorems whose induction breaks, by mutant."""
    found: dict[str, list[str]] = {}
    for theorem in PROOFS:
        tried = json.loads((THEOREMS / f"{theorem}_mutants.json").read_text(encoding="utf-8"))
        for one in tried:
            if one["action"]:
                found.setdefault(one["mutant"], []).append(theorem.replace("_", "-"))
    return {mutant: ", ".join(theorems) for mutant, theorems in found.items()}


def caught_in_level_0() -> dict[str, str]:
    """The number of cases for one broker that catch a mutant."""
    page = (DOCS / "conformance" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (\d+) \|", section_of(page, "Weakened rules"), re.MULTILINE)
    return {mutant: f"{cases} cases" if cases != "1" else "1 case" for mutant, cases in rows if cases != "0"}


def caught_in_level_1() -> dict[str, str]:
    """The tries in which a loss written by hand is found, of those that were made."""
    page = (DOCS / "conformance.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `([\w-]+)` \| (\d+ of \d+) \| `", page, re.MULTILINE))


def caught_in_level_2() -> dict[str, str]:
    """The step at which Apache Kafka 4.4.0 departs from a model with the mutant, among the real broker's neighbours."""
    page = section_of((DOCS / "world.md").read_text(encoding="utf-8"), "Is an error in the model noticed?")
    found: dict[str, str] = {}
    for names, step in re.findall(r"^\| (`[^|]+`) \| (\d+), `\w+` \|", page, re.MULTILINE):
        found |= dict.fromkeys(re.findall(r"`([\w-]+)`", names), f"step {step}")
    return found


def columns(page: str) -> dict[str, Mapping[str, str]]:
    """The catches of each mutant, by column of the table."""
    model = caught_in_model(page)
    found = {name: one for name, one in clusters.known().items() if "promise" in one}
    rounds = {name: one for name, one in processes.known().items() if "found" in one}
    return {
        "model": {name: said.split(", ")[0] for name, said in model.items() if not said.startswith(LIVENESS)},
        "liveness": {name: said.removeprefix(LIVENESS) for name, said in model.items() if said.startswith(LIVENESS)},
        "proof": caught_by_proofs(),
        "simulated cluster": {name: f"{one['promise']}, seed {one['seed']}" for name, one in found.items()},
        "processes": {name: _anomaly(one) for name, one in rounds.items()},
        "level 0": caught_in_level_0(),
        "level 1": caught_in_level_1(),
        "level 2": caught_in_level_2(),
    }


def _anomaly(one: dict[str, Any]) -> str:
    """The first kind of anomaly that clients saw."""
    return re.sub(r" \d+$", "", str(one["found"]).split(", ")[0])


EXPLANATION = """\
An empty cell: not caught there, or not tried; the sections say which, and why. *Model*, *liveness*: the property that fails
within bounds. *Proof*: the theorem whose induction breaks. *Simulated cluster*: property and seed. *Processes*: the first
anomaly that clients see. *Level 0*: [cases](conformance.md) for one broker. *Level 1*: tries in which the loss of a
[cluster](conformance.md#losses-runs-written-by-hand) is found. *Level 2*: where Apache Kafka 4.4.0 departs from a
[model](world.md#is-an-error-in-the-model-noticed) that has the mutant.
"""


def overview(page: str) -> str:
    """The table: a row for each mutant, a column for each instrument."""
    return "\n".join(_overview(columns(page)))


def _overview(caught: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    by_nobody = [name for name in ALL_MUTANTS if not any(name in found for found in caught.values())]
    yield f"## {OVERVIEW}\n"
    yield EXPLANATION
    yield f"{len(ALL_MUTANTS) - len(by_nobody)} of {len(ALL_MUTANTS)} are caught somewhere.\n"
    yield f"| rule | mutant | {' | '.join(caught)} |"
    yield "|---|---|" + "---|" * len(caught)
    for name, mutant in sorted(ALL_MUTANTS.items(), key=lambda entry: (entry[1].field, entry[0])):
        cells = (found.get(name, "") for found in caught.values())
        yield f"| `{mutant.field}` | `{name}` | {' | '.join(cells)} |"
    counts = (str(sum(name in ALL_MUTANTS for name in found)) for found in caught.values())
    yield f"| | caught | {' | '.join(counts)} |"
    yield f"\nCaught nowhere: {', '.join(f'`{name}`' for name in by_nobody) or 'none'}.\n"


def composed(page: str) -> str:
    """The whole page; the sections about models stay as `page` has it, since finding them takes minutes."""
    made = HEAD
    for section in (
        overview(page),
        section_of(page, SECTION),
        section_of(page, GROUP_SECTION),
        section_of(page, TRANSACTIONS_SECTION),
        section_of(page, QUORUM_SECTION),
        clusters.page(clusters.known()),
        processes.page(processes.known()),
    ):
        made = with_section(made, section)
    return made


if __name__ == "__main__":
    PAGE.write_text(composed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
