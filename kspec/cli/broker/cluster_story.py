"""`--story` of `kspec cluster` and `kspec simulate-cluster`: a cluster goes through the run of a study, by rules that fail
and by rules that do not.
"""

import asyncio
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from kspec.cli.broker.serve import PROGRAM, rules_of
from kspec.cli.statuses import ALL_HOLD, STOPPED, VIOLATED, StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kspec.conformance.story.catalogue import Story, StoryRules
    from kspec.conformance.story.runs import StoryRun
    from kspec.conformance.story.story_run import StoryEnding

FAILING = "failing"
"""The name of the first run."""

APART = 10
"""The ports of the second cluster are so many behind those of the first."""


class StoryPart(NamedTuple):
    """One of the two runs of a story, and the rules of its nodes."""

    name: str
    run: "StoryRun"
    rules: "StoryRules"


def tell_story(name: str, release: str | None, mutant: str | None, log_dir: str | None, port: int) -> int:
    """Tell a story with processes; the exit status. Raises: bad usage."""
    from kspec.trials.cluster.plan import ClusterError, UsageError

    if sys.platform != "linux":
        raise click.UsageError("stories on processes need Linux: the process of a connection is read in /proc")
    folder = tempfile.TemporaryDirectory(prefix="kspec-story-") if log_dir is None else nullcontext(log_dir)
    with folder as path:

        def carry_out(part: StoryPart) -> "StoryEnding | None":
            first = port if part.name == FAILING else port + APART
            return asyncio.run(_until_stopped(part, Path(path) / part.name, first))

        try:
            return _told(name, release, mutant, carry_out)
        except UsageError as error:
            raise click.UsageError(str(error)) from error
        except ClusterError as error:
            raise StoppedError(str(error)) from error


def tell_simulated_story(name: str, release: str | None, mutant: str | None) -> int:
    """Tell a story with a simulated cluster; the exit status. Raises: bad usage."""
    from kspec.conformance.story.story_run import run_simulated

    return _told(name, release, mutant, lambda part: run_simulated(part.run, rules_of(*part.rules), click.echo))


def _told(name: str, release: str | None, mutant: str | None, carry_out: "Callable[[StoryPart], StoryEnding | None]") -> int:
    from kspec.conformance.story.catalogue import StoryRules, story_named
    from kspec.conformance.story.errors import StoryError, UnknownStoryError

    try:
        story = story_named(name)
    except UnknownStoryError as error:
        raise click.UsageError(str(error)) from error
    failing = story.failing if release is None else StoryRules(release, mutant)
    rules_of(*failing)
    try:
        return _StoryCommand(story, failing, carry_out).tell()
    except StoryError as error:
        click.echo(f"The story did not go as told: {error}.")
        return VIOLATED


class _StoryCommand:
    """The command's run of a story. `failing`: the rules by which it is to fail. `carry_out` gives none if stopped."""

    def __init__(
        self, story: "Story", failing: "StoryRules", carry_out: "Callable[[StoryPart], StoryEnding | None]"
    ) -> None:
        self._story = story
        self._failing = failing
        self._carry_out = carry_out

    def tell(self) -> int:
        """Tell it: first with the rules that fail, then with the others; the exit status."""
        from dataclasses import replace

        from kspec.conformance.story.runs import failing_run, same_steps

        story = replace(self._story, failing=self._failing)
        _heading(story.study.title)
        click.echo(f"{story.study.summary} ({story.study.reference})\n")
        run = failing_run(story)
        click.echo(f"The checker found the run: {len(run.trace) - 1} steps that violate {story.invariant}.")
        _heading(f"With {story.fails_with}")
        ended = self._ended(StoryPart(FAILING, run, story.failing))
        if ended is None:
            return STOPPED
        wrong = ended.wrong.get(story.invariant)
        click.echo(f"\n{story.invariant} fails: {wrong}." if wrong else f"\n{story.invariant} holds: nothing is lost.")
        _heading(f"With {story.holds_with}")
        same = same_steps(run, story.repaired, story.repaired_bounds)
        repaired = self._ended(StoryPart("repaired", same, story.repaired))
        if repaired is None:
            return STOPPED
        lost = [*repaired.wrong.values(), *repaired.wrong_when_settled.values()]
        click.echo(f"\nWrong all the same: {'; '.join(lost)}." if lost else "\nNothing is lost, and the logs agree.")
        return ALL_HOLD if wrong and not lost else VIOLATED

    def _ended(self, part: StoryPart) -> "StoryEnding | None":
        """Let a cluster go through a run; `None`, if a signal stopped it."""
        for action in part.run.left_out:
            click.echo(f"(not possible by these rules: {action.label})")
        return self._carry_out(part)


async def _until_stopped(part: StoryPart, folder: Path, port: int) -> "StoryEnding | None":
    from kspec.conformance.story.story_run import run_on_processes
    from kspec.trials.cluster.foreground import handled, unless
    from kspec.trials.cluster.plan import CONTROLLER
    from kspec.trials.cluster.programs import KspecProgram

    _, run, rules = part
    nodes = [CONTROLLER, *map(str, range(1, int(run.model.parameters["brokers"]) + 1))]
    program = KspecProgram(PROGRAM, dict.fromkeys(nodes, rules.release), dict.fromkeys(nodes, rules.mutant))
    endings: list[StoryEnding] = []

    async def tell() -> None:
        endings.append(await run_on_processes(run, program, folder, port, lambda text: print(text, flush=True)))

    stop = asyncio.Event()
    with handled(stop.set):
        await unless(stop, tell())
    return endings[0] if endings else None


def _heading(words: str) -> None:
    click.echo(f"\n{words}\n{'-' * min(len(words), 80)}\n")


def list_stories() -> int:
    """Print all studies, with what processes show of them."""
    from kspec.conformance.story.catalogue import page

    click.echo("\n".join(page()))
    return ALL_HOLD
