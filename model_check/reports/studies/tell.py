"""Tells a study: runs both checks, replays the failing run under the repaired rules, and lays out the story."""

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from model_check.core.exploration import Exploration, Limits, Progress, Trace, Verdict, uninterrupted
from model_check.core.model import Model
from model_check.core.symmetry import Symmetry
from model_check.engines.explorer import Explore, explorer
from model_check.engines.reference import explore as explore_with_reference_engine
from model_check.models import MODELS
from model_check.reports.report import vacuous
from model_check.reports.studies.study import Configuration, Study
from model_check.traces.mermaid import sequence_diagram
from model_check.traces.render import length_in_words, sequence_text, trace_table
from model_check.traces.retrace import retrace
from model_check.traces.text import filled


class UnfinishedError(Exception):
    """A check was stopped before it had an answer."""


@dataclass(frozen=True, slots=True)
class Telling:
    """A study with what the checker has found: the failing run, the repaired check, and the run under the repair.

    `replay` says in a sentence where the repaired rules leave the failing run.
    """

    study: Study
    failing: Exploration
    repaired: Exploration
    replay: str

    @property
    def verdict(self) -> Verdict:
        """The failing property's verdict, with the run that shows it."""
        return self.failing.verdicts[0]

    @property
    def trace(self) -> Trace:
        """The failing run, a shortest one."""
        assert self.verdict.trace is not None
        return self.verdict.trace

    @property
    def duration_s(self) -> float:
        return self.failing.duration_s + self.repaired.duration_s


def tell(
    study: Study,
    explore: Explore | None = None,
    verify: Explore | None = None,
    report: Callable[[Progress], None] | None = None,
) -> Telling:
    """Find the failing run of `study` with `explore`, and check its repaired configuration completely with `verify`.

    By default the reference engine finds the run, so that pages are the same everywhere, and the fastest engine does the
    check. In the model with messages the fastest engine does both, up to renaming of brokers.

    In the repaired configuration the `sometimes` twin of the property is checked as well, so that the property does not
    hold vacuously. Raises `UnfinishedError` if a check is stopped early.
    """
    find = explore or (None if study.failing.symmetry else explore_with_reference_engine)
    failing = _check(study.failing, study.invariant, find, report, with_twin=False)
    verdict = failing.verdicts[0]
    if not verdict.violated and failing.stopped_because:
        raise UnfinishedError(f"{study.name}: the failing check stopped, {failing.stopped_because}")
    assert verdict.violated, f"{study.name}: {study.invariant} does not fail"
    assert verdict.trace
    repaired = _check(study.repaired, study.invariant, verify, report, with_twin=True)
    assert not repaired.violated, f"{study.name}: {study.invariant} fails in the repaired configuration"
    if repaired.stopped_because:
        raise UnfinishedError(f"{study.name}: the repaired check stopped, {repaired.stopped_because}")
    return Telling(study, failing, repaired, replay(verdict.trace, failing.model, repaired.model, study.invariant))


def _check(
    configuration: Configuration,
    invariant: str,
    explore: Explore | None,
    report: Callable[[Progress], None] | None,
    with_twin: bool,
) -> Exploration:
    model = MODELS[configuration.model].build(configuration.parameters)
    prop = model.property_named(invariant)
    assert prop is not None, f"{model.name} has no property {invariant}"
    twin = model.property_named(prop.twin) if with_twin and prop.twin else None
    explore = explore or explorer(symmetry=Symmetry(model) if configuration.symmetry else None)
    return uninterrupted(explore(model, [prop] if twin is None else [prop, twin], Limits(report=report)))


def replay(trace: Trace, model: Model, repaired: Model, invariant: str) -> str:
    """Take the steps of a failing run under the repaired rules. The result says where the runs part, and what follows."""
    retraced = retrace(trace, model, repaired)
    if retraced.state is None:
        return retraced.words
    prop = repaired.property_named(invariant)
    assert prop is not None
    assert prop.bind()(retraced.state), f"{invariant} fails under the repaired rules too"
    return f"{retraced.words or 'Every step is possible'}, and {invariant} holds in the end."


@dataclass(frozen=True, slots=True)
class _Rule:
    """A repairing rule for readers: its file, function, and first sentence and Kafka's class from its docstring."""

    place: str
    meaning: str
    kafka: str


def _rules(study: Study) -> Iterator[_Rule]:
    for rule in study.rules:
        doc = textwrap.dedent("    " + (rule.__doc__ or "")).strip()
        file = PurePosixPath(*rule.__module__.split(".")).with_suffix(".py")
        first = " ".join(doc.partition("\n\n")[0].split()).partition(" **Kafka:**")[0]
        kafka = " ".join(doc.partition("**Kafka:**")[2].partition("\n\n")[0].partition("**Leaves out:**")[0].split())
        yield _Rule(f"{file}: {rule.__name__}", first, kafka)


def _meaning(telling: Telling) -> str:
    prop = telling.verdict.prop
    return f"{prop.name}: {prop.meaning}."


def _states(result: Exploration) -> str:
    return f"{result.distinct_states:,} distinct states{' up to renaming of brokers' if result.symmetry else ''}"


def _numbers(result: Exploration) -> str:
    return f"{_states(result)}, depth {result.depth}, {result.duration_s:.1f} s"


def _outcome_of_repair(telling: Telling) -> str:
    result = telling.repaired
    words = f"{telling.study.invariant} holds in every reachable state: {_states(result)}, depth {result.depth}"
    return " ".join([f"{words}, explored completely.", *vacuous(result)])


def _found(telling: Telling) -> str:
    return (
        f"The shortest run that violates {telling.study.invariant} has {length_in_words(telling.trace)}; found among"
        f" {telling.failing.distinct_states:,} states{' up to renaming of brokers' if telling.failing.symmetry else ''}."
    )


def as_text(telling: Telling) -> str:
    """The story for a terminal."""
    study, model = telling.study, telling.failing.model

    def heading(words: str) -> list[str]:
        return ["", words, "-" * len(words), ""]

    lines = [study.title, "=" * len(study.title), "", *filled(study.reference), *heading("Set-up"), *filled(study.setup)]
    lines += ["", *filled(_meaning(telling)), "", f"  $ {study.failing.command(study.invariant)}"]
    lines += [*heading("The failing run"), *filled(_found(telling)), ""]
    lines += [trace_table(model, telling.trace, fit=True), "", sequence_text(model, telling.trace)]
    lines += [*heading("What went wrong"), *filled(study.outcome), *heading("The repair"), *filled(study.repair)]
    for rule in _rules(study):
        lines += ["", f"  {rule.place}", *filled(rule.meaning, "    "), *filled(f"Kafka: {rule.kafka}", "    ")]
    lines += ["", *filled(f"The failing run under the repaired rules: {telling.replay}")]
    lines += [*heading("The check of the repair"), f"  $ {study.repaired.command(study.invariant)}", ""]
    lines += [*filled(_outcome_of_repair(telling)), "", f"  failing check   {_numbers(telling.failing)}"]
    lines += [f"  repaired check  {_numbers(telling.repaired)}"]
    return "\n".join(lines) + "\n"


def as_markdown(telling: Telling) -> str:
    """The story as a page. It holds no times, so that the same check gives the same page."""
    study, model = telling.study, telling.failing.model
    parts = [f"# {study.title}", f"*{study.summary}* ({study.reference})", "## Set-up", study.setup]
    parts += [f"`{telling.verdict.prop.name}`: {telling.verdict.prop.meaning}."]
    parts += [_code("sh", study.failing.command(study.invariant)), "## The failing run", _found(telling)]
    parts += [_code("mermaid", sequence_diagram(model, telling.trace).rstrip())]
    parts += [_code("text", trace_table(model, telling.trace)), "## What went wrong", study.outcome]
    parts += ["## The repair", study.repair, "| Rule | What it says | In Kafka |\n| --- | --- | --- |"]
    for rule in _rules(study):
        parts[-1] += f"\n| `{rule.place}` | {rule.meaning} | {rule.kafka} |"
    parts += [f"The failing run under the repaired rules: {telling.replay}", "## The check of the repair"]
    parts += [_code("sh", study.repaired.command(study.invariant)), _outcome_of_repair(telling)]
    return "\n\n".join(parts) + "\n"


def _code(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"
