"""The broker under test, by its options; and work with it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from kspec.cli.common import together, unknown
from kspec.cli.statuses import StoppedError

if TYPE_CHECKING:
    from kspec.conformance.world.environment.target import WorldTarget

T = TypeVar("T")
Command = Callable[..., Any]


def what_is_tested(command: Command) -> Command:
    """Options for the target under test, in the argument `tested`."""
    options = (
        click.option("--kafka", default="4.4.0", show_default=True, metavar="V", help="The release under test."),
        click.option(
            "--target",
            type=click.Choice(["kafka", "kspec"]),
            default="kafka",
            show_default=True,
            help="Apache Kafka, or this project's broker by the rules of that release.",
        ),
        click.option("--weakened", metavar="NAME", help="Target kspec: with this rule weakened, see kspec mutants."),
    )
    return together("tested", TargetOptions._fields, TargetOptions, options)(command)


class TargetOptions(NamedTuple):
    """The options that say what is tested."""

    kafka: str
    target: str
    weakened: str | None

    def found(self) -> "WorldTarget":
        """The broker under test. Raises: bad usage; `StoppedError` if Java or jars are missing."""
        from kspec.conformance.kafka.jars import KafkaMissingError, find_jars, java
        from kspec.conformance.world.environment.target import Own, WorldTarget
        from kspec.conformance.world.runs.run import NoRunError, release_of
        from kspec.spec.releases.broker_mutants import BROKER_MUTANTS

        known = [one.name for one in BROKER_MUTANTS]
        if self.weakened is not None and self.target == "kafka":
            raise click.UsageError("--weakened goes with --target kspec")
        if self.weakened is not None and self.weakened not in known:
            raise unknown(f"there is no mutant {self.weakened!r} of a broker", self.weakened, known, "kspec world score")
        try:
            release = release_of(self.kafka)
            if self.target == "kafka":
                java()
            own = Own(release, self.weakened) if self.target == "kspec" else None
            return WorldTarget(find_jars(self.kafka), own)
        except NoRunError as error:
            raise click.UsageError(str(error)) from error
        except KafkaMissingError as error:
            raise StoppedError(str(error)) from error


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; a broker that dies or does not answer is status 3."""
    from kspec.conformance.world.environment.world import BrokerGoneError
    from kspec.conformance.world.session import ended_by_signals

    try:
        with ended_by_signals():
            return asyncio.run(work)
    except BrokerGoneError as error:
        raise StoppedError(str(error)) from error
