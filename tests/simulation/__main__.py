"""`python -m tests.simulation --moves 10000000 --seed 1`: simulate, and show the shortest part of a run that fails."""

import argparse
import sys
import time
from dataclasses import replace

from spec.releases.broker import BROKER_RELEASES
from spec.releases.kraft import KRAFT_RELEASES
from tests.simulation.mutants import MUTANTS, with_mutant
from tests.simulation.runs import Failure, Tally, cut, number_of, simulate, told
from tests.simulation.setup import Setup, setup_of

EVERY = 10.0
"""Seconds between two lines of progress."""


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--moves", type=int, default=100_000, help="stop after so many moves (100,000)")
    parser.add_argument("--seed", type=int, default=1, help="what all choices are drawn from (1)")
    parser.add_argument("--run", type=int, default=0, help="the first run of the seed (0)")
    parser.add_argument("--mutant", choices=[mutant.name for mutant in MUTANTS], help="weaken one rule")
    parser.add_argument("--release", choices=[release.name for release in BROKER_RELEASES], help="the brokers' (next)")
    parser.add_argument("--without-oracles", action="store_true", help="look at the properties of states only")
    parser.add_argument("--unclean-elections", action="store_true", help="allow them; only the oracles are looked at")
    parser.add_argument("--busy", action="store_true", help="let happen often what is rare")
    return parser


def setup_from(arguments: argparse.Namespace) -> Setup:
    """The setup that the options ask for."""
    setup = Setup(
        oracles=not arguments.without_oracles,
        unclean_elections=arguments.unclean_elections,
        busy=arguments.busy,
    )
    for release in BROKER_RELEASES:
        if release.name == arguments.release:
            setup = replace(setup, broker=release, oracles=False)
    for controller in KRAFT_RELEASES:
        if controller.name == arguments.release:
            setup = replace(setup, controller=controller)
    return with_mutant(setup, arguments.mutant) if arguments.mutant else setup


def show(failure: Failure, setup: Setup) -> None:
    """A failing run, cut to what it needs."""
    drawn = setup_of(number_of(failure.seed, failure.run), setup)
    print(f"seed {failure.seed}, run {failure.run}: {failure.violation}")
    print(f"after {failure.moves} moves of this run, and {failure.all_moves} in all; {drawn}")
    moves = cut(failure, setup)
    print(f"{len(moves)} moves are enough:")
    print("\n".join(told(drawn, moves)))


def main() -> int:
    """0 if nothing fails, 1 if a property does, 2 for bad usage, 3 if interrupted."""
    arguments = _options().parse_args()
    setup = setup_from(arguments)
    began = said = time.monotonic()
    latest = Tally()

    def progress(tally: Tally) -> None:
        nonlocal said, latest
        latest = tally
        now = time.monotonic()
        if now - said >= EVERY:
            said = now
            print(f"{tally.moves:,} moves in {tally.runs:,} runs, {tally.moves / (now - began):,.0f} a second", flush=True)

    try:
        tally = simulate(arguments.seed, arguments.moves, setup, arguments.run, progress)
    except KeyboardInterrupt:
        print(f"stopped after {latest.moves:,} moves in {latest.runs:,} runs, next would be --run {latest.runs}")
        return 3
    spent = time.monotonic() - began
    print(f"{tally.moves:,} moves and {tally.calls:,} calls of handlers in {tally.runs:,} runs, {spent:.0f} s")
    print(", ".join(f"{name} {times:,}" for name, times in tally.reached.items()))
    if tally.failure is None:
        print("nothing is violated")
        return 0
    show(tally.failure, setup)
    return 1


if __name__ == "__main__":
    sys.exit(main())
