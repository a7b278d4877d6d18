"""`kspec cluster --story`: processes go through the run of a study, by rules that fail and by rules that do not."""

import asyncio
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from model_check.cli.broker.serve import PROGRAM, rules_of
from model_check.cli.statuses import ALL_HOLD, STOPPED, VIOLATED, StoppedError

if TYPE_CHECKING:
    from conformance.story.catalogue import Rules, Story
    from conformance.story.play import Ending
    from conformance.story.runs import Run

APART = 10
"""The ports of the second cluster are so many behind those of the first."""


def tell_story(name: str, release: str | None, mutant: str | None, log_dir: str | None, port: int) -> int:
    """Tell a story; the exit status. Raises: bad usage."""
    from conformance.story.catalogue import Rules, story_named
    from conformance.story.words import StoryError, UnknownStoryError
    from impl.cluster.plan import ClusterError, UsageError

    if sys.platform != "linux":
        raise click.UsageError("stories need Linux: who opens a connection is read in /proc")
    try:
        story = story_named(name)
    except UnknownStoryError as error:
        raise click.UsageError(str(error)) from error
    failing = story.failing if release is None else Rules(release, mutant)
    rules_of(*failing)
    folder = tempfile.TemporaryDirectory(prefix="kspec-story-") if log_dir is None else nullcontext(log_dir)
    with folder as path:
        try:
            return _Telling(story, failing, Path(path), port).tell()
        except UsageError as error:
            raise click.UsageError(str(error)) from error
        except ClusterError as error:
            raise StoppedError(str(error)) from error
        except StoryError as error:
            click.echo(f"The story did not go as told: {error}.")
            return VIOLATED


class _Telling:
    """A story that is told. `failing`: the rules by which it is to fail."""

    def __init__(self, story: "Story", failing: "Rules", folder: Path, port: int) -> None:
        self._story = story
        self._failing = failing
        self._folder = folder
        self._port = port

    def tell(self) -> int:
        """Tell it: first with the rules that fail, then with the others; the exit status."""
        from dataclasses import replace

        from conformance.story.runs import failing_run, same_steps

        story = replace(self._story, failing=self._failing)
        _heading(story.study.title)
        click.echo(f"{story.study.summary} ({story.study.reference})\n")
        run = failing_run(story)
        click.echo(f"The checker found the run: {len(run.trace) - 1} steps that violate {story.invariant}.")
        _heading(f"With {story.fails_with}")
        ended = self._play(run, story.failing, "failing", self._port)
        if ended is None:
            return STOPPED
        wrong = ended.wrong.get(story.invariant)
        click.echo(f"\n{story.invariant} fails: {wrong}." if wrong else f"\n{story.invariant} holds: nothing is lost.")
        _heading(f"With {story.holds_with}")
        repaired = self._play(
            same_steps(run, story.repaired, story.repaired_bounds), story.repaired, "repaired", self._port + APART
        )
        if repaired is None:
            return STOPPED
        lost = [*repaired.wrong.values(), *repaired.wrong_when_settled.values()]
        click.echo(f"\nWrong all the same: {'; '.join(lost)}." if lost else "\nNothing is lost, and the logs agree.")
        return ALL_HOLD if wrong and not lost else VIOLATED

    def _play(self, run: "Run", rules: "Rules", name: str, port: int) -> "Ending | None":
        """Let processes go through a run; `None`, if a signal stopped it."""
        for action in run.left_out:
            click.echo(f"(not possible by these rules: {action.label})")
        return asyncio.run(_until_stopped(run, rules, self._folder / name, port))


async def _until_stopped(run: "Run", rules: "Rules", folder: Path, port: int) -> "Ending | None":
    from conformance.story.play import play
    from impl.cluster.foreground import handled, unless
    from impl.cluster.plan import CONTROLLER
    from impl.cluster.programs import KspecProgram

    nodes = [CONTROLLER, *map(str, range(1, int(run.model.parameters["brokers"]) + 1))]
    program = KspecProgram(PROGRAM, dict.fromkeys(nodes, rules.release), dict.fromkeys(nodes, rules.mutant))
    endings: list[Ending] = []

    async def tell() -> None:
        endings.append(await play(run, program, folder, port, lambda text: print(text, flush=True)))

    stop = asyncio.Event()
    with handled(stop.set):
        await unless(stop, tell())
    return endings[0] if endings else None


def _heading(words: str) -> None:
    click.echo(f"\n{words}\n{'-' * min(len(words), 80)}\n")


def list_stories() -> int:
    """Print all studies, with what processes show of them."""
    from conformance.story.catalogue import page

    click.echo("\n".join(page()))
    return ALL_HOLD
