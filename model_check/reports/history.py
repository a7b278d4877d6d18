"""The protocol's history in one table: the verdict of each version within the same bounds."""

from collections.abc import Callable
from typing import Any, NamedTuple

from model_check.core.exploration import Exploration, Limits, Progress, uninterrupted
from model_check.engines.explorer import explorer
from model_check.models import MODELS
from model_check.reports.report import exploration_as_json, violations
from model_check.traces.parameters import parameters_in_words
from model_check.traces.render import length_in_words, trace_table
from model_check.traces.text import filled

QUESTION = "CommittedOnNextLeader"


class Chapter(NamedTuple):
    """A version of the protocol, and its answer to the common question."""

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


def run_history(report: Callable[[Progress], None] | None = None) -> list[Chapter]:
    """Ask every model, in the order of history, whether a committed record is on every possible next leader."""
    explore = explorer()
    chapters = []
    for name, kafka in RELEASES.items():
        model = MODELS[name].build({})
        question = model.property_named(QUESTION)
        assert question is not None
        chapters.append(Chapter(name, kafka, uninterrupted(explore(model, [question], Limits(report=report)))))
    return chapters


def history_as_json(chapters: list[Chapter]) -> dict[str, Any]:
    """The chapters with their whole results."""
    return {
        "question": QUESTION,
        "chapters": [{"kafka": chapter.kafka, **exploration_as_json(chapter.result)} for chapter in chapters],
    }


def history_as_text(chapters: list[Chapter], traces: bool) -> str:
    """The verdict table, then the shortest counterexample of each version that has one."""
    meaning = chapters[0].result.verdicts[0].prop.meaning
    lines = [*filled(f"Is it true that {meaning}?"), ""]
    lines.append(f"  {'Kafka':<20} {'model':<18} answer")
    for chapter in chapters:
        result = chapter.result
        found = violations(result)
        answer = f"NO: lost after {length_in_words(found[0][1])}" if found else "yes, in every reachable state"
        lines.append(f"  {chapter.kafka:<20} {chapter.model:<18} {answer}")
    lines.append("")
    for chapter in (chapters[0], chapters[-1]):
        lines += filled(f"{chapter.model}: {parameters_in_words(chapter.result.model)}", "    ", "  ")
    lines += ["", "`kspec study` tells what went wrong in each, and which rule repairs it."]
    for chapter in chapters if traces else ():
        for _, trace in violations(chapter.result):
            lines += ["", f"{chapter.model}: the shortest run that loses a committed record ({length_in_words(trace)})", ""]
            lines.append(trace_table(chapter.result.model, trace, fit=True))
    return "\n".join(lines)
