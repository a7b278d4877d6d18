"""Every rule is needed: the model `kafka` with one rule weakened, and the property that then fails.

A hunt is the release and the bounds in which a mutant is explored. A mutant that costs progress, but no records, violates a
liveness property: the checker finds a fair infinite run. Mutants that the model cannot catch are listed with the reason. A
test checks that every mutant has a hunt or a reason.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kspec.model_check.core.exploration import Exploration, Limits, Progress, uninterrupted
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.explorer import explorer
from kspec.model_check.extras import need
from kspec.model_check.models import MODELS
from kspec.model_check.traces.text import row
from kspec.spec.mutation import Mutant
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS

if TYPE_CHECKING:
    from kspec.model_check.graphs.liveness import Lasso

ALL_MUTANTS: Mapping[str, Mutant] = {mutant.name: mutant for mutant in (*BROKER_MUTANTS, *CONTROLLER_MUTANTS)}

ONE_ELECTION: Mapping[str, Any] = {"elections": 1}
TWO_VALUES: Mapping[str, Any] = {"elections": 1, "values": 2}
ONE_SHRINK: Mapping[str, Any] = {"elections": 1, "isr_shrinks": 1}
ONE_FENCING: Mapping[str, Any] = {"elections": 1, "fencings": 1}

OLD_BASE: Mapping[str, Any] = {"release": "2.2", "elections": 2, "values": 2}
"""A release whose followers ask where to truncate. By itself it loses nothing within these bounds."""

LATE_ANSWER: Mapping[str, Any] = {"elections": 2, "values": 2, "late_fetches": 1}
"""An answer may come when the broker that gave it leads again."""

HUNTS: Mapping[str, Mapping[str, Any]] = {
    "forget-proposal-on-old-news": {"elections": 0, "isr_shrinks": 1},
    "keep-followers-over-missed-epochs": ONE_FENCING,
    "truncate-to-high-watermark": ONE_ELECTION,
    "min-isr-of-one": ONE_SHRINK,
    "unfenced-requests": ONE_FENCING,
    "no-divergence-check": TWO_VALUES,
    "count-what-is-sent": ONE_ELECTION,
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
    "take-old-announcement": {"release": "2.6", "elections": 0, "isr_shrinks": 1, "fencings": 1},
    "no-epoch-entry": OLD_BASE,
    "epoch-lookup-by-end": OLD_BASE,
    "fenced-replica-admitted": {"elections": 0, "fencings": 1, "unclean_shutdowns": 1},
    "take-registration-of-earlier-incarnation": {"elections": 0, "unclean_shutdowns": 1, "late_registrations": 1},
    "act-before-registration": {
        "brokers": 2,
        "min_isr": 1,
        "elections": 0,
        "isr_shrinks": 1,
        "unclean_shutdowns": 2,
        "slow_registrations": 1,
        "only_stops": 2,
    },
    "refusal-without-trace": {
        "brokers": 2,
        "min_isr": 1,
        "elections": 0,
        "isr_shrinks": 1,
        "fencings": 1,
        "late_proposals": 1,
    },
    "stale-broker-epoch-accepted": {"elections": 0, "isr_shrinks": 1, "unclean_shutdowns": 1},
    "count-fetch-of-earlier-incarnation": {"elections": 0, "unclean_shutdowns": 1, "late_fetches": 1},
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
"""The bounds in which each mutant is caught, where they differ from the model's defaults."""

BESIDE: Mapping[str, str] = {
    "forget-last-epoch": "take-answer-of-other-epoch",
    "act-on-old-metadata": "open-ports-at-once",
    "admit-anybody": "refusal-without-trace",
}
"""Mutants that are caught only together with another, which alone violates nothing within the bounds; releases had both.

A broker that acts on old metadata is not heard while its ports are closed. A leader that proposes replicas which are down is
refused again and again. If each refusal is written, as in `next`, the partition epochs have no end, and neither has the
model.
"""


def weakened(name: str) -> str:
    """The model's parameter `mutant` that weakens this rule, and the one beside it if it needs one."""
    return ",".join(filter(None, (BESIDE.get(name), name)))


class LivenessHunt(NamedTuple):
    """The place at which a mutant violates a liveness property: bounds, the property, and which actions need not be fair."""

    bounds: Mapping[str, Any]
    prop: str
    without: tuple[str, ...] = ()


LEADER_TO_AND_FRO: Mapping[str, Any] = {"brokers": 2, "min_isr": 1, "elections": 2, "isr_shrinks": 1}
ONE_BROKER_STAYS_AWAY: Mapping[str, Any] = {"brokers": 2, "min_isr": 1, "elections": 0}

LIVENESS_HUNTS: Mapping[str, LivenessHunt] = {
    "do-not-restart-fetcher": LivenessHunt(LEADER_TO_AND_FRO, "AcknowledgedIsReplicated"),
    "truncate-only-if-longer": LivenessHunt(LEADER_TO_AND_FRO, "AcknowledgedIsReplicated"),
    "await-ineligible": LivenessHunt(
        {**ONE_BROKER_STAYS_AWAY, "clean_shutdowns": 1, "endless_lag": True}, "WriteIsAnswered", without=("Register",)
    ),
    "last-known-leader-while-down": LivenessHunt(
        {**ONE_BROKER_STAYS_AWAY, "values": 0, "unclean": True, "fencings": 1, "unclean_shutdowns": 2},
        "LeaderTakesOffice",
        without=("Register",),
    ),
    "admit-anybody": LivenessHunt(
        {"values": 0, "elections": 0, "isr_shrinks": 1, "fencings": 1}, "ActiveReplicaJoinsIsr", without=("Unfence",)
    ),
    "second-registration-fences": LivenessHunt(
        {"brokers": 2, "elections": 0, "fencings": 1, "late_registrations": 1}, "BrokerComesBack"
    ),
}
"""The checks that catch mutants that cost progress."""

NOT_CAUGHT: Mapping[str, str] = {
    "epoch-lookup-as-designed": (
        "differs from the rule only for an epoch above all of the leader's, and a leader since 2.1 has noted its own, above "
        "all that it is asked about; see the study of KIP-279 for the model in which it fails"
    ),
    "diverging-before-start": (
        "logs of the model start at 0: nothing is deleted; in Kafka the follower drops the partition, which costs progress"
    ),
    "await-isr-only": (
        "costs progress, not records (KAFKA-4485): a replica that is overtaken again and again never joins, but only"
        " while producers go on writing, and in a finite model they stop"
    ),
    "admit-earlier-incarnation": (
        "a fetch of an earlier incarnation than the leader knows of is refused by `check_replica_epoch` before it can"
        " admit a replica; the rest concerns the replicas that the high watermark waits for, and costs progress"
    ),
    "join-under-min-isr": (
        "costs progress, not records (KAFKA-19996): a replica that joins and leaves again and again opens partition"
        " epochs without end, and a finite model has a last one"
    ),
    "open-ports-at-once": (
        "in `next` a broker does not act before it is registered, and a registration makes it lead nothing; in 3.5 to 4.4,"
        " which act before, it loses records: see the study of brokers that answer before they are unfenced"
    ),
    "unfenced-before-caught-up": "a broker asks to be unfenced only once it has caught up",
}
"""The reasons why the model does not catch the others."""


class Hunt(NamedTuple):
    """A mutant and its verdict. `caught_by`: the properties that fail, with the steps of a shortest run each.

    `beside`: another mutant that was there as well, empty if there was none.
    For a liveness property the steps are those of a lasso; the last `loop` of them repeat for ever (0: nothing happens
    any more).
    `without`: actions that need not be fair.
    """

    mutant: Mutant
    bounds: Mapping[str, Any]
    caught_by: Mapping[str, int]
    states: int
    seconds: float
    not_caught_because: str | None = None
    beside: str = ""
    loop: int | None = None
    without: tuple[str, ...] = ()

    @property
    def caught(self) -> bool:
        """Whether a property fails."""
        return bool(self.caught_by)


def is_listed(name: str) -> bool:
    """Whether a hunt, or a reason why none catches it, is listed for a mutant."""
    return name in HUNTS or name in LIVENESS_HUNTS or name in NOT_CAUGHT


def hunt(name: str, report: Callable[[Progress], None] | None = None, workers: int | None = None) -> Hunt:
    """Explore one mutant up to its first violation. A mutant that is known not to be caught is not explored.

    It is explored on all cores unless `workers` gives their number. The outcome does not depend on it.
    Raises `MissingExtraError` if deciding a liveness property needs a library that is missing.
    """
    mutant = ALL_MUTANTS[name]
    if name in LIVENESS_HUNTS:
        return hunt_infinite_run(mutant, LIVENESS_HUNTS[name], report)
    if name not in HUNTS:
        return Hunt(mutant, {}, {}, 0, 0.0, NOT_CAUGHT[name])
    began, result = time.monotonic(), explore_mutant(name, HUNTS[name], report, workers)
    found = {verdict.prop.name: len(verdict.trace or ()) - 1 for verdict in result.verdicts if verdict.violated}
    states, seconds = result.distinct_states, time.monotonic() - began
    return Hunt(mutant, HUNTS[name], found, states, seconds, beside=BESIDE.get(name, ""))


def hunt_infinite_run(
    mutant: Mutant, chosen: LivenessHunt, report: Callable[[Progress], None] | None, model: str = "kafka"
) -> Hunt:
    """Look for a fair infinite run of a model with this mutant that violates a liveness property."""
    began, bounds = time.monotonic(), {**chosen.bounds, "mutant": weakened(mutant.name)}
    verdict = check_liveness_within(bounds, chosen, report, model)
    found, loop, lasso = {}, None, verdict.lasso
    if lasso is not None:
        loop = len(lasso.steps) - lasso.loop_start if lasso.closing else 0
        found = {chosen.prop: len(lasso.steps) - (0 if lasso.closing else 1)}
    seconds = time.monotonic() - began
    return Hunt(
        mutant,
        chosen.bounds,
        found,
        verdict.states,
        seconds,
        beside=BESIDE.get(mutant.name, ""),
        loop=loop,
        without=chosen.without,
    )


def check_liveness_within(
    bounds: Mapping[str, Any],
    chosen: LivenessHunt,
    report: Callable[[Progress], None] | None = None,
    model_name: str = "kafka",
) -> "LivenessOutcome":
    """Whether the model within these bounds satisfies a hunt's liveness property, under the fairness that remains."""
    need(("scipy",), "a liveness property")
    from kspec.model_check.graphs.edges import state_graph  # noqa: PLC0415
    from kspec.model_check.graphs.liveness import check_liveness  # noqa: PLC0415

    model = MODELS[model_name].build(bounds)
    graph = state_graph(model, report=report)
    properties = [prop for prop in model.liveness if prop.name == chosen.prop]
    fairness = [one for one in model.fairness if one.action not in chosen.without]
    (verdict,) = check_liveness(graph, properties, lambda prop: fairness).verdicts
    return LivenessOutcome(graph.states, verdict.met, verdict.lasso)


class LivenessOutcome(NamedTuple):
    """States of the graph, the cases in which the property was due, and a lasso if it is violated."""

    states: int
    met: int
    lasso: "Lasso | None"


def explore_mutant(
    name: str,
    bounds: Mapping[str, Any],
    report: Callable[[Progress], None] | None = None,
    workers: int | None = None,
) -> Exploration:
    """Explore the model with this mutant, and the one in `BESIDE` if there is one, up to the first violation."""
    model = MODELS["kafka"].build({**bounds, "mutant": weakened(name)})
    properties = [prop for prop in model.properties if prop.by_default and prop.kind == "always"]
    return uninterrupted(explorer(workers=workers, symmetry=Symmetry(model))(model, properties, Limits(report=report)))


def hunts(names: tuple[str, ...], report: Callable[[Progress], None] | None = None) -> Iterator[Hunt]:
    """The hunts for these mutants, one after the other."""
    for name in names or tuple(ALL_MUTANTS):
        yield hunt(name, report)


def as_json(done: list[Hunt]) -> dict[str, Any]:
    """All hunts."""
    return {
        "caught": sum(entry.caught for entry in done),
        "mutants": [
            {
                "name": entry.mutant.name,
                "rule": entry.mutant.field,
                "summary": entry.mutant.summary,
                "bounds": dict(entry.bounds),
                "beside": entry.beside,
                "without": list(entry.without),
                "caught": entry.caught,
                "caught_by": [{"property": name, "steps": steps} for name, steps in entry.caught_by.items()],
                "loop": entry.loop,
                "states": entry.states,
                "seconds": round(entry.seconds, 2),
                "not_caught_because": entry.not_caught_because,
            }
            for entry in done
        ],
    }


def line(entry: Hunt) -> str:
    """One hunt in one line, or a few if the terminal is narrow."""
    return "\n".join(row(f"  {entry.mutant.name}", _in_words(entry), 39))


def _in_words(entry: Hunt) -> str:
    if not entry.caught:
        return f"is not caught: {entry.not_caught_because or 'nothing fails within its bounds'}"
    name, steps = next(iter(entry.caught_by.items()))
    how = "fails after" if entry.loop is None else "fails in an infinite run of"
    return f"{name} {how} {steps} steps ({entry.states:,} states, {entry.seconds:.1f} s)"


def options(bounds: Mapping[str, Any]) -> list[str]:
    """The bounds as command-line options."""
    named = [(f"--{key.replace('_', '-')}", value) for key, value in bounds.items()]
    return [option if value is True else f"{option} {value}" for option, value in named]


SECTION = "In the model"
"""The title of the section of the page of mutants that is about the model `kafka`."""


def as_markdown(done: list[Hunt]) -> str:
    """The section of `docs/mutants.md` about the model."""
    caught = [entry for entry in done if entry.caught]
    lines = [
        f"## {SECTION}",
        "",
        "Each rule of broker and controller weakened by itself, in the model `kafka`.",
        "Written by `kspec mutants --write docs/mutants.md`, which leaves the other sections.",
        "",
        f"{len(caught)} of {len(done)} are caught."
        " `kspec check kafka --symmetry --mutant NAME` and the bounds show the run,",
        "`--mutant OTHER,NAME` if a mutant is caught only beside another one, which alone does no harm there.",
        "Where a liveness property fails, `kspec liveness kafka --mutant NAME` shows an infinite run. Its steps are",
        "those of the way to the loop and of the loop; `--without` names what need not be fair ([liveness](liveness.md)).",
        "",
        *table_of_hunts(done),
    ]
    return "\n".join(lines) + "\n"


def table_of_hunts(done: list[Hunt]) -> list[str]:
    """The lines of the tables of those that are caught and those that are not."""
    lines = [
        "| mutant | rule | what it means | bounds | caught by | steps |",
        "|---|---|---|---|---|---|",
    ]
    for entry in (one for one in done if one.caught):
        without = [f"--without {action}" for action in entry.without]
        beside = f" beside `{entry.beside}`" if entry.beside else ""
        chosen = " ".join([*options(entry.bounds), *without])
        bounds = f"`{chosen}`{beside}" if chosen else "none"
        properties = ", ".join(entry.caught_by) if entry.loop is None else f"liveness property {', '.join(entry.caught_by)}"
        steps = min(entry.caught_by.values())
        mutant = entry.mutant
        lines.append(f"| `{mutant.name}` | `{mutant.field}` | {mutant.summary} | {bounds} | {properties} | {steps} |")
    lines += [
        "",
        "### Not caught by the model",
        "",
        "| mutant | rule | what it means | why the model does not catch it |",
        "|---|---|---|---|",
    ]
    for entry in done:
        if not entry.caught:
            mutant = entry.mutant
            reason = entry.not_caught_because or "nothing fails within its bounds"
            lines.append(f"| `{mutant.name}` | `{mutant.field}` | {mutant.summary} | {reason} |")
    return lines
