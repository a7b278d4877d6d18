"""Tells a study: runs both checks, replays the failing run under the repaired rules, and lays out the story."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from kspec.model_check.core.exploration import Exploration, Limits, Progress, Trace, Verdict, uninterrupted
from kspec.model_check.core.model import Model
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.explorer import Explore, explorer
from kspec.model_check.engines.reference import explore as explore_with_reference_engine
from kspec.model_check.explorer.marks import remarks_of
from kspec.model_check.models import MODELS
from kspec.model_check.reports.report import run_as_text, vacuous
from kspec.model_check.reports.studies.study import Configuration, Study
from kspec.model_check.traces.docstrings import kafka_of, meaning_of
from kspec.model_check.traces.mermaid import sequence_diagram
from kspec.model_check.traces.render import length_in_words, sequence_text, trace_table, up_to_renaming
from kspec.model_check.traces.retrace import retrace
from kspec.model_check.traces.text import filled


class UnfinishedError(Exception):
    """A check was stopped before it had an answer."""


@dataclass(frozen=True, slots=True)
class StudyReport:
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
) -> StudyReport:
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
    return StudyReport(study, failing, repaired, replay(verdict.trace, failing.model, repaired.model, study.invariant))


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
class _RepairingRule:
    """A repairing rule for readers: its file, function, and first sentence and Kafka's class from its docstring."""

    place: str
    meaning: str
    kafka: str


def _rules(study: Study) -> Iterator[_RepairingRule]:
    for rule in study.rules:
        file = PurePosixPath(*rule.__module__.removeprefix("kspec.").split(".")).with_suffix(".py")
        yield _RepairingRule(f"{file}: {rule.__name__}", meaning_of(rule), kafka_of(rule))


def _meaning(telling: StudyReport) -> str:
    prop = telling.verdict.prop
    return f"{prop.name}: {prop.meaning}."


def _renamed(result: Exploration) -> str:
    return f" {up_to_renaming(result.model)}" if result.symmetry else ""


def _states(result: Exploration) -> str:
    return f"{result.distinct_states:,} distinct states{_renamed(result)}"


def _numbers(result: Exploration) -> str:
    return f"{_states(result)}, depth {result.depth}, {result.duration_s:.1f} s"


def _outcome_of_repair(telling: StudyReport) -> str:
    result = telling.repaired
    words = f"{telling.study.invariant} holds in every reachable state: {_states(result)}, depth {result.depth}"
    return " ".join([f"{words}, explored completely.", *vacuous(result)])


def _found(telling: StudyReport) -> str:
    return (
        f"The shortest run that violates {telling.study.invariant} has {length_in_words(telling.trace)}; found among"
        f" {telling.failing.distinct_states:,} states{_renamed(telling.failing)}."
    )


LINK = re.compile(r"\[([^\]]+)\]\((?:\.\./)*([^)]+)\)")
"""A link of a page, relative to its folder."""


def _unlinked(text: str) -> str:
    """A text without links, which a terminal does not have: the page's name stands in parentheses."""
    return LINK.sub(r"\1 (docs/\2)", text)


def as_text(telling: StudyReport, full: bool = False, page: Sequence[str] = ()) -> str:
    """The story for a terminal: what went wrong and what repairs it, then the run, then the checks.

    `full`: the run with all that it changed, its last state, and a diagram. `page`: commands that show the run elsewhere.
    """
    study, model = telling.study, telling.failing.model

    def heading(words: str) -> list[str]:
        return ["", words, "-" * len(words), ""]

    def told(text: str) -> list[str]:
        return filled(_unlinked(text))

    lines = [study.title, "=" * len(study.title), "", *told(study.reference), "", *told(study.setup)]
    lines += [*heading("What went wrong"), *told(study.outcome), *heading("The repair"), *told(study.repair)]
    for rule in _rules(study):
        lines += ["", f"  {rule.place}", *filled(rule.meaning, "    "), *filled(f"Kafka: {rule.kafka}", "    ")]
    lines += [*heading("The failing run"), *filled(_meaning(telling)), "", *filled(_found(telling)), ""]
    if full:
        lines += [
            trace_table(model, telling.trace, fit=True),
            "",
            sequence_text(model, telling.trace, remarks_of, [study.invariant]),
        ]
    else:
        lines += [run_as_text(model, telling.trace, [study.invariant])]
    lines += ["", *filled(f"The same steps under the repaired rules: {telling.replay}")]
    lines += [*heading("The checks"), f"  $ {study.failing.command(study.invariant)}", ""]
    lines += [f"  {_numbers(telling.failing)}", "", f"  $ {study.repaired.command(study.invariant)}", ""]
    lines += [f"  {_numbers(telling.repaired)}", "", *filled(_outcome_of_repair(telling))]
    if page:
        lines += [*heading("To step it yourself"), *(f"  $ {command}" for command in page)]
    return "\n".join(lines) + "\n"


def as_markdown(telling: StudyReport) -> str:
    """The story as a page: what goes wrong, the run, the repair; the run step by step, as diagram and text, is folded.

    It holds no times, so that the same check gives the same page.
    """
    study, model = telling.study, telling.failing.model
    parts = [f"# {study.title}", f"*{study.summary}* ({study.reference})", study.setup]
    parts += ["## What goes wrong", study.outcome, "## The run"]
    parts += [_code(f"run study-{study.name}", f"kspec study {study.name}"), _found(telling)]
    parts += [f"`{telling.verdict.prop.name}`: {telling.verdict.prop.meaning}."]
    parts += [_code("sh", study.failing.command(study.invariant)), "## The repair", study.repair]
    parts += ["| Rule | What it says | In Kafka |\n| --- | --- | --- |"]
    for rule in _rules(study):
        parts[-1] += f"\n| `{rule.place}` | {rule.meaning} | {rule.kafka} |"
    parts += [f"The failing run under the repaired rules: {telling.replay}", "## The check of the repair"]
    parts += [_code("sh", study.repaired.command(study.invariant)), _outcome_of_repair(telling), "## Step by step"]
    drawn = sequence_diagram(model, telling.trace, remarks_of, [study.invariant])
    parts += [_folded("The run as a diagram", _code("mermaid", drawn.rstrip()))]
    parts += [_folded("The run as text", _code("text", trace_table(model, telling.trace)))]
    return "\n\n".join(parts) + "\n"


def _folded(summary: str, text: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def _code(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"
