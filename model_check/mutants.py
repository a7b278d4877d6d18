"""Every rule is needed: the model `kafka` with one rule weakened, and the property that dies of it.

A hunt says in which version and within which bounds a mutant is explored. What the model cannot show is listed with the
reason; a mutant with neither would be a gap, and a test asks for none.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from model_check.engines import explorer
from model_check.exploration import Exploration, Limits, Progress
from model_check.models import MODELS
from model_check.symmetry import Symmetry
from spec.broker_mutants import BROKER_MUTANTS
from spec.controller_mutants import CONTROLLER_MUTANTS
from spec.mutants import Mutant

ALL_MUTANTS: Mapping[str, Mutant] = {mutant.name: mutant for mutant in (*BROKER_MUTANTS, *CONTROLLER_MUTANTS)}

ONE_ELECTION: Mapping[str, Any] = {"elections": 1}
TWO_VALUES: Mapping[str, Any] = {"elections": 1, "values": 2}
ONE_SHRINK: Mapping[str, Any] = {"elections": 1, "isr_shrinks": 1}
ONE_FENCING: Mapping[str, Any] = {"elections": 1, "fencings": 1}

OLD_BASE: Mapping[str, Any] = {"version": "2.2", "elections": 2, "values": 2}
"""Where followers find out by asking. This version loses a record by itself, in 16 steps: a mutant must in fewer."""

LATE_ANSWER: Mapping[str, Any] = {"elections": 2, "values": 2, "late_fetches": 1}
"""An answer may come when the broker that gave it leads again."""

HUNTS: Mapping[str, Mapping[str, Any]] = {
    "forget-proposal-on-old-news": {"elections": 0, "isr_shrinks": 1},
    "keep-followers-over-missed-epochs": ONE_FENCING,
    "truncate-to-high-watermark": ONE_ELECTION,
    "min-isr-of-one": ONE_SHRINK,
    "unfenced-requests": ONE_FENCING,
    "no-divergence-check": TWO_VALUES,
    "count-diverging-fetch": TWO_VALUES,
    "advance-below-min-isr": ONE_SHRINK,
    "join-before-epoch-start": ONE_SHRINK,
    "join-before-high-watermark": ONE_SHRINK,
    "shrink-before-confirmation": ONE_SHRINK,
    "high-watermark-over-committed-isr": ONE_SHRINK,
    "roll-back-on-any-error": ONE_SHRINK,
    "unclean-replica-keeps-its-place": {"elections": 0, "unclean_shutdowns": 1},
    "stale-partition-epoch-accepted": {"elections": 0, "isr_shrinks": 1, "fencings": 1},
    "act-on-old-metadata": {"elections": 0, "unclean_shutdowns": 1, "values": 2},
    "no-epoch-entry": OLD_BASE,
    "epoch-lookup-by-end": OLD_BASE,
    "fenced-replica-admitted": {"elections": 0, "fencings": 1, "unclean_shutdowns": 1},
    "take-registration-of-earlier-run": {"elections": 0, "unclean_shutdowns": 1, "late_registrations": 1},
    "stale-broker-epoch-accepted": {"elections": 0, "isr_shrinks": 1, "unclean_shutdowns": 1},
    "count-fetch-of-earlier-run": {"elections": 0, "unclean_shutdowns": 1, "late_fetches": 1},
    "take-answer-of-other-epoch": {"elections": 3, "late_fetches": 1},
    "take-answer-of-other-offset": LATE_ANSWER,
    "take-later-epochs": {"elections": 1, "values": 4, "late_fetches": 1},
    "forget-last-epoch": LATE_ANSWER,
    "high-watermark-before-truncation": {"elections": 2, "fencings": 1, "values": 2},
    "latest-offset-goes-back": ONE_ELECTION,
    "no-sequence-check": {"brokers": 1, "min_isr": 1, "elections": 0, "values": 6, "retries": 1},
    "election-outside-isr-and-elr": {"elections": 0, "isr_shrinks": 1, "fencings": 2},
    "eligible-without-assignment": {"elections": 0, "min_isr": 3, "fencings": 1, "reassignments": 2},
    "reassignment-over-too-early": {"elections": 0, "isr_shrinks": 1, "unclean_shutdowns": 1, "reassignments": 1},
    "no-epoch-for-a-smaller-assignment": {"elections": 0, "reassignments": 2},
}
"""Where each mutant dies: what differs from the model's defaults."""

BESIDE: Mapping[str, str] = {"forget-last-epoch": "take-answer-of-other-epoch"}
"""Mutants that die only beside another, which alone does no harm within the bounds; releases had both."""

SURVIVORS: Mapping[str, str] = {
    "take-old-announcement": (
        "metadata reach a broker in order, so an older image comes only after the answer to a proposal that told more; "
        "what it says of the ISR the repaired `announced_isr` lets be, and its leader epoch is no older"
    ),
    "do-not-restart-fetcher": (
        "the fetcher goes on naming the old epoch, every leader since 2.1 refuses that, and the follower gives up: "
        "it costs progress; up to 2.0, where nobody refuses, the rule is as weak as this"
    ),
    "epoch-lookup-as-designed": (
        "differs from the rule only for an epoch above all of the leader's, and a leader since 2.1 has noted its own, above "
        "all that it is asked about; see the study of KIP-279 for the model in which it fails"
    ),
    "diverging-before-start": (
        "logs of the model start at 0: nothing is deleted; in Kafka the follower gives up, which costs progress"
    ),
    "await-isr-only": (
        "the clock says that every lag is too long, so nobody but the ISR is waited for; the rule costs "
        "progress, not records"
    ),
    "await-ineligible": "costs progress, not records (KAFKA-15021)",
    "admit-anybody": "the controller refuses what the leader lets in: the rule spares a request",
    "admit-earlier-run": (
        "a fetch of an earlier run than the leader knows of is refused by `check_run` before anybody is admitted by it; "
        "what remains is for whom the high watermark waits, which costs progress"
    ),
    "join-under-min-isr": "costs progress, not records (KAFKA-19996)",
    "truncate-only-if-longer": "costs progress, not records (KAFKA-10706)",
    "last-known-leader-while-down": "costs availability first (KAFKA-19522); not exhausted with three unclean shutdowns",
    "unfenced-before-caught-up": "a broker of its own accord asks to be unfenced only once it has caught up",
    "second-registration-fences": (
        "not killed within one late registration: the broker is fenced and cannot come back, which costs availability"
    ),
}
"""Why the model does not kill the others."""


class Hunt(NamedTuple):
    """A mutant and what became of it. `killed_by`: the properties that fail, with the steps of a shortest run each.

    `beside`: another mutant that was there as well, empty if none was.
    """

    mutant: Mutant
    bounds: Mapping[str, Any]
    killed_by: Mapping[str, int]
    states: int
    seconds: float
    survives_because: str | None = None
    beside: str = ""

    @property
    def killed(self) -> bool:
        """Whether a property fails."""
        return bool(self.killed_by)


def hunt(name: str, report: Callable[[Progress], None] | None = None) -> Hunt:
    """Explore one mutant up to its first violation; one that is known to survive is not explored."""
    mutant = ALL_MUTANTS[name]
    if name not in HUNTS:
        return Hunt(mutant, {}, {}, 0, 0.0, SURVIVORS[name])
    began, result = time.monotonic(), explore_mutant(name, HUNTS[name], report)
    found = {verdict.prop.name: len(verdict.trace or ()) - 1 for verdict in result.verdicts if verdict.violated}
    states, seconds = result.distinct_states, time.monotonic() - began
    return Hunt(mutant, HUNTS[name], found, states, seconds, beside=BESIDE.get(name, ""))


def explore_mutant(name: str, bounds: Mapping[str, Any], report: Callable[[Progress], None] | None = None) -> Exploration:
    """The model with this rule weakened, and the one it needs beside it, up to the first violation."""
    names = [other for other in (BESIDE.get(name), name) if other]
    model = MODELS["kafka"].build({**bounds, "mutant": ",".join(names)})
    properties = [prop for prop in model.properties if prop.by_default and prop.kind == "always"]
    return explorer(symmetry=Symmetry(model))(model, properties, Limits(report=report))


def hunts(names: tuple[str, ...], report: Callable[[Progress], None] | None = None) -> Iterator[Hunt]:
    """The hunts for these mutants, one after the other."""
    for name in names or tuple(ALL_MUTANTS):
        yield hunt(name, report)


def as_json(done: list[Hunt]) -> dict[str, Any]:
    """All hunts."""
    return {
        "killed": sum(entry.killed for entry in done),
        "mutants": [
            {
                "name": entry.mutant.name,
                "rule": entry.mutant.field,
                "summary": entry.mutant.summary,
                "bounds": dict(entry.bounds),
                "beside": entry.beside,
                "killed": entry.killed,
                "killed_by": [{"property": name, "steps": steps} for name, steps in entry.killed_by.items()],
                "states": entry.states,
                "seconds": round(entry.seconds, 2),
                "survives_because": entry.survives_because,
            }
            for entry in done
        ],
    }


def line(entry: Hunt) -> str:
    """One hunt in one line."""
    if not entry.killed:
        return f"  {entry.mutant.name:<36} survives: {entry.survives_because or 'nothing fails within its bounds'}"
    name, steps = next(iter(entry.killed_by.items()))
    return f"  {entry.mutant.name:<36} {name} fails after {steps} steps ({entry.states:,} states, {entry.seconds:.1f} s)"


def as_markdown(done: list[Hunt]) -> str:
    """The page `docs/mutants.md`."""
    killed = [entry for entry in done if entry.killed]
    lines = [
        "# Mutants",
        "",
        "Each rule of broker and controller weakened by itself, in the model `kafka`.",
        "Written by `kspec mutants --write docs/mutants.md`.",
        "",
        f"{len(killed)} of {len(done)} die. `kspec check kafka --symmetry --mutant NAME` with the bounds shows the run;",
        "`--mutant OTHER,NAME` if a mutant dies only beside another one, which alone does no harm within the bounds.",
        "",
        "| mutant | rule | what it means | bounds | dies of | steps |",
        "|---|---|---|---|---|---|",
    ]
    for entry in killed:
        options = [f"--{key.replace('_', '-')} {value}" for key, value in entry.bounds.items()]
        bounds = f"`{' '.join(options)}`" + (f" beside `{entry.beside}`" if entry.beside else "")
        properties = ", ".join(entry.killed_by)
        steps = min(entry.killed_by.values())
        mutant = entry.mutant
        lines.append(f"| `{mutant.name}` | `{mutant.field}` | {mutant.summary} | {bounds} | {properties} | {steps} |")
    lines += [
        "",
        "## Survivors",
        "",
        "| mutant | rule | what it means | why the model does not kill it |",
        "|---|---|---|---|",
    ]
    for entry in done:
        if not entry.killed:
            mutant = entry.mutant
            reason = entry.survives_because or "nothing fails within its bounds"
            lines.append(f"| `{mutant.name}` | `{mutant.field}` | {mutant.summary} | {reason} |")
    return "\n".join(lines) + "\n"
