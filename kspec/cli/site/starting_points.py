"""Runs to begin with: each study, finding and mutant, and ten samples of each model, as addresses that the explorer opens.

They are found by searches, which take minutes, and are kept as data: `model_check/explorer/page/runs/index.json`.
docs/explorer.md has the format; a test opens each address again.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import resources
from itertools import pairwise
from typing import Any, NamedTuple

from kspec.cli.explorer.recording import last_view
from kspec.model_check.core.exploration import Exploration, Limits, Progress, Trace, TraceStep, uninterrupted
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.explorer import explorer
from kspec.model_check.engines.reference import explore as explore_with_reference_engine
from kspec.model_check.explorer import Explorer
from kspec.model_check.explorer.run import Run
from kspec.model_check.models import MODELS
from kspec.model_check.reports import mutants
from kspec.model_check.reports.mutants import HUNTS, LIVENESS_HUNTS, NOT_CAUGHT, LivenessHunt, check_liveness_within
from kspec.model_check.reports.studies import STUDIES, Study
from kspec.model_check.reports.studies.study import WITH_MESSAGES

FORMAT = 1
SAMPLES = 10
"""Sample runs of each model."""

WALKS, LONGEST_WALK = 100, 24
"""Random walks that are tried for samples, and the steps of one at most."""

Report = Callable[[Progress], None] | None


class StartingPoint(NamedTuple):
    """A run to begin with.

    - `about`: what it shows, in a sentence; `fails`: the properties that fail at its end;
    - `repaired`: what the message `retrace` says to take its steps under rules that repair it, if some do;
    - `doc`: the page that tells of it, from the root of the repository;
    - `kept`: the recording beside the index, of a run that no model has.
    """

    name: str
    title: str
    about: str
    address: str
    steps: int
    fails: tuple[str, ...] = ()
    repaired: Mapping[str, Any] | None = None
    doc: str | None = None
    kept: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The entry of the index."""
        model = self.address.partition("~")[0]
        about = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", self.about)  # a link of a page leads nowhere from here
        told = {**self._asdict(), "about": about, "model": model, "fails": list(self.fails)}
        return told if self.kept else {name: value for name, value in told.items() if name != "kept"}


class FindingHunt(NamedTuple):
    """A finding without a study: its title, the bounds that show it, the rules that repair it, what fails."""

    title: str
    bounds: Mapping[str, Any]
    repaired: Mapping[str, Any] | None
    prop: str
    infinite: bool = False
    model: str = "kafka"


OF_STUDIES: Mapping[str, str] = {
    "missed-epoch": "missed-epoch",
    "forgotten-proposal": "forgotten-proposal",
    "fetch-before-registration": "fetch-before-registration",
    "second-copy": "second-copy-of-a-proposal",
    "second-marker": "second-marker-of-a-fence",
    "uncommitted-end": "coordinator-ahead-of-its-log",
}
"""The findings that a study tells."""

FINDINGS: Mapping[str, FindingHunt] = {
    "missed-epoch-with-zookeeper": FindingHunt(
        "A missed epoch before KRaft: the controller is replaced",
        {"release": "2.6", "elections": 1, "fencings": 1, "failovers": 1},
        None,
        "CommittedOnNextLeader",
    ),
    "lost-confirmation": FindingHunt(
        "A successful write of the ISR counts as failed",
        {"release": "2.6", "isr_shrinks": 1, "lost_confirmations": 1},
        None,
        "AcknowledgedOnNextLeader",
    ),
    "eligible-without-assignment": FindingHunt(
        "Eligibility outlives an assignment",
        {"release": "4.4", "elections": 0, "min_isr": 3, "fencings": 1, "reassignments": 2},
        {"release": "next"},
        "CommittedOnNextLeader",
    ),
    "late-registration": FindingHunt(
        "A registration that arrives twice leaves the broker without a valid epoch",
        {"release": "3.8", "brokers": 2, "elections": 0, "late_registrations": 1},
        {"release": "3.9"},
        "BrokerComesBack",
        infinite=True,
    ),
    "registration-of-the-incarnation-before": FindingHunt(
        "A late registration of an earlier incarnation displaces the broker that runs",
        {
            "release": "4.4",
            "brokers": 2,
            "min_isr": 1,
            "values": 0,
            "elections": 0,
            "unclean_shutdowns": 1,
            "earlier_registrations": 1,
        },
        None,
        "BrokerComesBack",
        infinite=True,
    ),
    "reassignment-never-over": FindingHunt(
        "A reassignment that takes an added replica back never completes",
        {"release": "4.4", "values": 0, "elections": 0, "reassignments": 3},
        {"release": "next"},
        "ReassignmentEnds",
        infinite=True,
    ),
    "stopping-broker-is-elected": FindingHunt(
        "A broker that is stopping is elected leader",
        {"release": "4.4", "brokers": 2, "shutdowns": 2, "lag": 1, "late_heartbeats": 1},
        {"release": "next"},
        "LeaderIsActive",
        model="shutdown",
    ),
}
"""The findings that no study tells, and that a model shows."""

KEPT: Mapping[str, tuple[str, str]] = {
    "partitions-half-created": (
        "A request for more partitions is refused, and half carried out",
        "a conformance case that was run on Apache Kafka 3.9.2, and the count of partitions after it",
    ),
}
"""The findings that no model shows: the title, and what was recorded. The recording lies beside the index."""

STORY: Mapping[str, str] = {
    "story-1": "kip-101-loss",
    "story-2": "kip-101-divergence",
    "story-3": "kip-279-fast-leader-changes",
    "story-4": "kip-320-zombie",
    "story-5": "high-watermark-over-committed-isr",
    "story-5-incarnations": "earlier-incarnation",
    "story-6": "last-replica-standing",
    "story-6-finding": "missed-epoch",
}
"""The runs of docs/story/: each is that of a study or a mutant; with `-repaired` its steps are taken under the repair."""

CHAPTERS: Mapping[int, str] = {
    1: "1-truncation-to-the-high-watermark",
    2: "2-leader-epochs",
    3: "3-fast-failovers",
    4: "4-fencing",
    5: "5-alter-partition",
    6: "6-eligible-leader-replicas",
}
"""The pages of the chapters in docs/story/."""

PAGES: Mapping[str, str] = {"missed-epoch-with-zookeeper": "missed-epoch"}
"""The page of a finding, where its name is another."""

ROOMY: Mapping[str, Mapping[str, Any]] = {
    "kafka": {
        "values": 2,
        "elections": 1,
        "isr_shrinks": 1,
        "fencings": 1,
        "clean_shutdowns": 1,
        "unclean_shutdowns": 1,
        "late_fetches": 1,
        "reassignments": 1,
    },
    "group": {"moves": 1, "disconnects": 1, "leaves": 1, "expiries": 1, "lives": 2, "generations": 4},
    "transactions": {"late_requests": 1, "timeouts": 1, "moves": 1, "late_markers": 1, "leader_changes": 1},
    "delivery": {
        "retries": True,
        "commits": "after",
        "disconnects": 1,
        "late_requests": 1,
        "restarts": 1,
        "leader_changes": 1,
        "rebalances": 1,
        "crashes": 1,
        "late_commits": 1,
    },
    "quorum": {"restarts": 1, "power_losses": 1, "resignations": 1, "lost_answers": 1},
    "truncate-to-hw": {"restarts": 1, "power_losses": 1},
    "kip-101": {"restarts": 1, "power_losses": 1},
    "kip-279": {"restarts": 1, "power_losses": 1},
    "kip-320-first-try": {"restarts": 1, "power_losses": 1},
    "kip-320": {"restarts": 1, "power_losses": 1},
}
"""The bounds of random walks, where more may happen than by default."""


RUNS = resources.files("kspec.model_check.explorer") / "page" / "runs"
"""The folder of the index, and of the recordings that are kept."""


def index() -> dict[str, Any]:
    """The index as it is kept."""
    found: dict[str, Any] = json.loads((RUNS / "index.json").read_text(encoding="utf-8"))
    return found


def as_text(groups: Mapping[str, tuple[str, Sequence[StartingPoint]]]) -> str:
    """The index as a file."""
    told = [
        {"group": name, "title": title, "runs": [run.as_json() for run in runs]} for name, (title, runs) in groups.items()
    ]
    return json.dumps({"format": FORMAT, "groups": told}, indent=1) + "\n"


# ---- from a search to an address


def _explored(model_name: str, bounds: Mapping[str, Any], names: Sequence[str], report: Report) -> Exploration:
    """The exploration up to the first of these properties that fails, or of all that are asked by default."""
    model = MODELS[model_name].build(bounds)
    properties = [
        prop for prop in model.properties if (prop.name in names if names else prop.by_default and prop.kind == "always")
    ]
    explore = explorer(symmetry=Symmetry(model)) if model_name in WITH_MESSAGES else explore_with_reference_engine
    return uninterrupted(explore(model, properties, Limits(report=report)))


def _shortest(model_name: str, bounds: Mapping[str, Any], names: Sequence[str], report: Report) -> Trace:
    """The shortest run that violates one of these properties."""
    return next(
        verdict.trace
        for verdict in _explored(model_name, bounds, names, report).verdicts
        if verdict.violated and verdict.trace is not None
    )


def _address_of(model_name: str, bounds: Mapping[str, Any], trace: Trace) -> tuple[str, tuple[str, ...]]:
    """The address of a run, and the properties that fail at its end."""
    run = Run(MODELS[model_name], bounds)
    end = trace[-1].state
    return run.address(run.named(trace), end), tuple(run.watch.violated_at(end))


def of_study(study: Study, report: Report = None) -> StartingPoint:
    """The failing run of a study."""
    model, bounds = study.failing
    trace = _shortest(model, bounds, (study.invariant,), report)
    address, fails = _address_of(model, bounds, trace)
    return StartingPoint(
        f"study-{study.name}",
        study.title,
        f"{study.summary} ({study.reference})",
        address,
        len(trace) - 1,
        fails,
        _change(study),
        f"docs/studies/{study.name}.md",
    )


def _change(study: Study) -> dict[str, Any]:
    """The change from the failing configuration of a study to the repaired one, as the message `retrace` has it."""
    (model, bounds), (repaired, others) = study.failing, study.repaired
    before, after = MODELS[model].build(bounds).parameters, MODELS[repaired].build(others).parameters
    change: dict[str, Any] = {} if model == repaired else {"model": repaired}
    known = {parameter.name: parameter for parameter in MODELS[repaired].parameters}
    parameters = {
        name.replace("_", "-"): list(value) if isinstance(value, tuple) else value
        for name, value in after.items()
        if before.get(name) != value and (name in before or name in others) and name in known
    }
    for name in ("release", "mutant"):
        if name in parameters:
            change[name] = parameters.pop(name)
    return {**change, **({"parameters": parameters} if parameters else {})}


def of_story(report: Report = None) -> Iterator[StartingPoint]:
    """The runs of the chapters: each failing, and under the rules that repair it."""
    told = {study.name: study for study in STUDIES}
    for name, source in STORY.items():
        page = f"docs/story/{CHAPTERS[int(name.split('-')[1])]}.md"
        found = of_study(told[source], report) if source in told else of_mutant(source, report)
        broken = found._replace(name=name, doc=page)
        yield broken
        yield repaired_run(broken)


def repaired_run(broken: StartingPoint) -> StartingPoint:
    """The steps of a run under the rules that repair it, as far as they are possible."""
    page = Explorer()
    page.answer({"do": "open", "address": broken.address})
    under = page.answer({"do": "retrace", **(broken.repaired or {})})
    view = page.answer({"do": "open", "address": under["address"]})
    fails = tuple(view["steps"][-1]["violates"])
    title, words = f"{broken.title}: repaired", f"{under['words'][0].lower()}{under['words'][1:]}"
    name = f"{broken.name}-repaired"
    return StartingPoint(name, title, words, view["address"], view["position"] - 1, fails, None, broken.doc)


def of_findings(report: Report = None) -> Iterator[StartingPoint]:
    """The findings that a model shows."""
    told = {study.name: study for study in STUDIES}
    for finding, study in OF_STUDIES.items():
        run = of_study(told[study], report)
        yield run._replace(name=f"finding-{finding}", doc=f"docs/findings/{finding}.md")
    for name, hunted in FINDINGS.items():
        page = f"docs/findings/{PAGES.get(name, name)}.md"
        if hunted.infinite:
            trace, words = _lasso(hunted.bounds, LivenessHunt(hunted.bounds, hunted.prop), report)
            address, fails = _address_of(hunted.model, hunted.bounds, trace)
            about = f"{hunted.prop} fails in Kafka {hunted.bounds['release']}, {words}"
        else:
            trace = _shortest(hunted.model, hunted.bounds, (hunted.prop,), report)
            address, fails = _address_of(hunted.model, hunted.bounds, trace)
            about = f"{hunted.prop} fails in Kafka {hunted.bounds['release']}"
        yield StartingPoint(f"finding-{name}", hunted.title, about, address, len(trace) - 1, fails, hunted.repaired, page)

    for name, (title, about) in KEPT.items():
        yield _of_kept(name, title, about)


def _of_kept(name: str, title: str, about: str) -> StartingPoint:
    """A run that was recorded elsewhere."""
    file = f"{name}.json"
    last = last_view(json.loads((RUNS / file).read_text(encoding="utf-8")))
    fails = tuple(last["steps"][-1]["violates"])
    page = f"docs/findings/{name}.md"
    return StartingPoint(f"finding-{name}", title, about, last["whole"], len(last["steps"]), fails, None, page, file)


def of_mutants(report: Report = None) -> Iterator[StartingPoint]:
    """The shortest run that catches each mutant; of one that costs progress, a run up to the end of the loop."""
    for name in mutants.ALL_MUTANTS:
        if name not in NOT_CAUGHT:
            yield of_mutant(name, report)


def of_mutant(name: str, report: Report = None) -> StartingPoint:
    """The shortest run that catches a mutant."""
    mutant, hunted = mutants.ALL_MUTANTS[name], LIVENESS_HUNTS.get(name)
    bounds = {**(hunted.bounds if hunted else HUNTS[name]), "mutant": mutants.weakened(name)}
    if hunted:
        trace, words = _lasso(bounds, hunted, report)
        about = f"{mutant.summary}: {hunted.prop} fails, {words}"
    else:
        trace, about = _shortest("kafka", bounds, (), report), mutant.summary
    address, fails = _address_of("kafka", bounds, trace)
    title = f"{name} ({mutant.field})"
    return StartingPoint(f"mutant-{name}", title, about, address, len(trace) - 1, fails, {"mutant": None}, "docs/mutants.md")


def _lasso(bounds: Mapping[str, Any], hunted: LivenessHunt, report: Report) -> tuple[Trace, str]:
    """A run into a loop and once around it, and what then goes on for ever."""
    lasso = check_liveness_within(bounds, hunted, report).lasso
    assert lasso is not None
    if lasso.closing is None:
        return lasso.steps, "and nothing more happens"
    steps = len(lasso.steps) - lasso.loop_start
    return (
        *lasso.steps,
        lasso.closing,
    ), f"the last {steps} steps go on for ever" if steps > 1 else "the last step goes on for ever"


# ---- samples


def samples_of(name: str, report: Report = None) -> list[StartingPoint]:
    """Ten runs of a model: to what its properties claim possible, to each kind of step, and to two in a row.

    The first are shortest runs. The others are the shortest prefixes of random walks, rare steps first.
    """
    found: dict[str, StartingPoint] = {}
    seen: set[str | tuple[str, str]] = set()

    def add(title: str, about: str, bounds: Mapping[str, Any], trace: Trace) -> None:
        address, fails = _address_of(name, bounds, trace)
        seen.update(_shown(trace))
        found.setdefault(address, StartingPoint("", title, about, address, len(trace) - 1, fails))

    for prop, trace in _reached(name, report):
        add(prop.name, f"the shortest run to a state of which is said: {prop.meaning}", {}, trace)
    walks = [_walk(name, ROOMY.get(name, {}), seed) for seed in range(WALKS)]
    for goal in _rare_first(walks):
        if len(found) < SAMPLES and goal not in seen:
            prefix = min((_up_to(goal, walk) for walk in walks if goal in _shown(walk)), key=len)
            words = goal if isinstance(goal, str) else ", then ".join(goal)
            add(
                words,
                "a run up to this step" if isinstance(goal, str) else "a run up to these two steps",
                ROOMY.get(name, {}),
                prefix,
            )
    for walk in sorted(walks, key=len, reverse=True):
        if len(found) < SAMPLES:
            add("a random walk", "a run by chance, each kind of step equally likely", ROOMY.get(name, {}), walk)
    return [run._replace(name=f"{name}-{number}") for number, run in enumerate(found.values(), start=1)][:SAMPLES]


def _rare_first(walks: Sequence[Trace]) -> list[str | tuple[str, str]]:
    """All kinds of steps, then all pairs of different ones in a row, each from the rarest on."""
    count = Counter(one for walk in walks for one in _shown(walk))
    goals = [goal for goal in count if isinstance(goal, str) or goal[0] != goal[1]]
    return sorted(goals, key=lambda goal: (not isinstance(goal, str), count[goal], goal))


def _up_to(goal: str | tuple[str, str], walk: Trace) -> Trace:
    """A walk up to the first step of a kind, or to the first two in a row."""
    names = [step.action.name if step.action is not None else "" for step in walk]
    end = names.index(goal) if isinstance(goal, str) else list(pairwise(names)).index(goal) + 1
    return walk[: end + 1]


def _reached(name: str, report: Report) -> Iterator[tuple[Any, Trace]]:
    """The properties of a model that claim something possible, with a shortest run to it."""
    model = MODELS[name].build({})
    wanted = [prop for prop in model.properties if prop.kind == "sometimes"]
    limits = Limits(report=report, max_states=20_000)
    for verdict in uninterrupted(explore_with_reference_engine(model, wanted, limits)).verdicts:
        if verdict.trace is not None:
            yield verdict.prop, verdict.trace


def _walk(name: str, bounds: Mapping[str, Any], seed: int) -> Trace:
    """A random walk: each kind of action is equally likely, so that rare ones are seen."""
    chance = random.Random(seed)
    run = _RUNS.setdefault(name, Run(MODELS[name], bounds))
    trace = [TraceStep(None, run.model.initial)]
    while len(trace) <= LONGEST_WALK:
        ways: dict[str, list[Any]] = {}
        for move in run.moves.values():
            ways.setdefault(move.name, []).extend(
                way for way in run.ways(move, trace[-1].state) if way[1] != trace[-1].state
            )
        possible = sorted(kind for kind, found in ways.items() if found)
        if not possible:
            break
        trace.append(TraceStep(*chance.choice(ways[chance.choice(possible)])))
    return tuple(trace)


_RUNS: dict[str, Run] = {}
"""The models that are walked through; building one takes longer than a walk."""


def _shown(walk: Trace) -> set[str | tuple[str, str]]:
    """The actions of a walk, and which follows which."""
    names = [step.action.name for step in walk if step.action is not None]
    return {*names, *pairwise(names)}


# ---- all of them


GROUPS: Mapping[str, tuple[str, Callable[[Report], Iterable[StartingPoint]]]] = {
    "story": ("The story in six chapters", of_story),
    "studies": ("Studies: failures, past and possible", lambda report: [of_study(study, report) for study in STUDIES]),
    "findings": ("Findings: defects of Apache Kafka", of_findings),
    "mutants": ("Mutants: one rule weakened", of_mutants),
    "models": ("Sample runs of each model", lambda report: [run for name in MODELS for run in samples_of(name, report)]),
}
"""The groups of the index: the title of each, and the function that finds its runs."""


def find_all(report: Report = None) -> dict[str, tuple[str, list[StartingPoint]]]:
    """All starting points by groups, found anew."""
    return {name: (title, list(found(report))) for name, (title, found) in GROUPS.items()}
