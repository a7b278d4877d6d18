"""The protocol's history in one table: the verdict of each version within the same bounds."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kspec.model_check.core.exploration import Exploration, Limits, Progress, uninterrupted
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.explorer import explorer
from kspec.model_check.models import MODELS
from kspec.model_check.reports.report import exploration_as_json, run_as_text, violations
from kspec.model_check.traces.parameters import parameters_in_words
from kspec.model_check.traces.render import length_in_words
from kspec.model_check.traces.text import filled, row

QUESTION = "CommittedOnNextLeader"


class Chapter(NamedTuple):
    """A version of the protocol, and its answer to the common question. `model`: its name, with a release if it has one."""

    model: str
    kafka: str
    result: Exploration


RELEASES = {
    "truncate-to-hw": "0.8 to 0.10 (2012)",
    "kip-101": "0.11 (2017)",
    "kip-279": "2.0 (2018)",
    "kip-320-first-try": "never released",
    "kip-320": "2.1 (2018)",
    "async-isr": "2.7 (2020)",
}


LATER: Mapping[str, str] = {"3.0 (2021)": "3.0", "4.4 (newest)": "4.4", "4.4 repaired": "next"}
"""Releases of the model `kafka`: since 3.0 brokers read the controller's decisions from a log, at their own pace."""

LATER_BOUNDS: Mapping[str, Any] = {"elections": 1, "fencings": 1}
"""The smallest bounds that show a loss in all releases from 3.0 on; `kspec matrix` has each release by itself."""


def run_history(report: Callable[[Progress], None] | None = None) -> list[Chapter]:
    """Ask every model, in the order of history, whether a committed record is on every possible next leader."""
    explore = explorer()
    chapters = []
    for name, kafka in RELEASES.items():
        model = MODELS[name].build({})
        question = model.property_named(QUESTION)
        assert question is not None
        chapters.append(Chapter(name, kafka, uninterrupted(explore(model, [question], Limits(report=report)))))
    for kafka, release in LATER.items():
        model = MODELS["kafka"].build({**LATER_BOUNDS, "release": release})
        question = model.property_named(QUESTION)
        assert question is not None
        result = explorer(symmetry=Symmetry(model))(model, [question], Limits(report=report))
        chapters.append(Chapter(f"kafka {release}", kafka, uninterrupted(result)))
    return chapters


def history_as_json(chapters: list[Chapter]) -> dict[str, Any]:
    """The chapters with their whole results."""
    return {
        "question": QUESTION,
        "chapters": [{"kafka": chapter.kafka, **exploration_as_json(chapter.result)} for chapter in chapters],
    }


NEXT = (
    ("study kip-101-loss", "how the first of them loses it, and the rule that repairs it"),
    ("explore", "step such runs, and others, in a browser"),
    ("history --traces", "a shortest run for each loss"),
)
"""The commands to go on with, and what they show."""


def history_as_text(chapters: list[Chapter], traces: bool, command: str = "kspec") -> str:
    """The verdict table; with `traces`, the shortest counterexample of each version that has one; what to ask next."""
    meaning = chapters[0].result.verdicts[0].prop.meaning
    lines = [*filled(f"Is it true that {meaning}?"), ""]
    lines.append(f"  {'Kafka':<20} {'model':<18} answer")
    for chapter in chapters:
        result = chapter.result
        found = violations(result)
        answer = f"NO: lost after {length_in_words(found[0][1])}" if found else "yes, in every reachable state"
        lines.append(f"  {chapter.kafka:<20} {chapter.model:<18} {answer}")
    lines.append("")
    for chapter in (chapters[0], chapters[len(RELEASES) - 1], chapters[-1]):
        lines += filled(f"{chapter.model}: {parameters_in_words(chapter.result.model)}", "    ", "  ")
    for chapter in chapters if traces else ():
        for name, trace in violations(chapter.result):
            lines += ["", f"{chapter.model}: the shortest run that loses a committed record ({length_in_words(trace)})", ""]
            lines.append(run_as_text(chapter.result.model, trace, [name]))
    lines += ["", "Next:"]
    column = max(len(asked) for asked, _ in NEXT) + len(command) + 6
    for asked, meaning in NEXT:
        lines += row(f"  {command} {asked}", meaning, column)
    return "\n".join(lines)
