"""Which mutants the simulated cluster finds, by seed: `python -m impl.sim.mutants [NAME …]`.

All brokers, or the controller, have the weakened rule. Seeds are run until a promise is broken. The page is written with `--write`.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from impl.sim.runs import Outcome, run
from impl.sim.setup import Setup
from spec.broker.protocol import BrokerProtocol
from spec.controller.protocol import Controller
from spec.mutation import Mutant, weaken
from spec.releases.broker import BROKER_NEXT
from spec.releases.broker_mutants import BROKER_MUTANTS
from spec.releases.kraft import KRAFT_NEXT
from spec.releases.kraft_mutants import CONTROLLER_MUTANTS

BROKERS = (1, 2, 3)
SEEDS, STEPS = 40, 4_000
"""How many seeds are tried, with how many steps each."""

MUTANTS: tuple[Mutant, ...] = (*BROKER_MUTANTS, *CONTROLLER_MUTANTS)


def setup_with(seed: int, mutant: Mutant | None) -> Setup:
    """A cluster of `next`, with one rule weakened."""
    broker: BrokerProtocol = BROKER_NEXT
    controller = Controller(KRAFT_NEXT)
    if mutant in BROKER_MUTANTS:
        broker = weaken(broker, mutant)
    elif mutant is not None:
        controller = replace(controller, protocol=weaken(KRAFT_NEXT, mutant))
    return Setup(seed, dict.fromkeys(BROKERS, broker), controller)


@dataclass(frozen=True, slots=True)
class Hunt:
    """A mutant with the run that has found it, if one has; `steps` of all runs up to there."""

    mutant: Mutant
    found: Outcome | None
    steps: int


def hunt(mutant: Mutant, first_seed: int, seeds: int, steps: int) -> Hunt:
    """Run seeds until a promise is broken."""
    total = 0
    for outcome in _outcomes(mutant, range(first_seed, first_seed + seeds), steps):
        total += outcome.steps
        if outcome.broken is not None:
            return Hunt(mutant, outcome, total)
    return Hunt(mutant, None, total)


def _outcomes(mutant: Mutant, seeds: range, steps: int) -> Iterator[Outcome]:
    return (run(setup_with(seed, mutant), steps) for seed in seeds)


def main() -> int:
    """Hunt mutants, and tell of each."""
    parser = argparse.ArgumentParser(prog="python -m impl.sim.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="these mutants only")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--steps", type=int, default=STEPS)
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        parser.error(f"no mutant is called {', '.join(sorted(unknown))}")
    for mutant in MUTANTS:
        if arguments.names and mutant.name not in arguments.names:
            continue
        found = hunt(mutant, arguments.seed, arguments.seeds, arguments.steps)
        if found.found is None or found.found.broken is None:
            print(f"{mutant.name}: survives {arguments.seeds} seeds, {found.steps:,} steps", flush=True)
        else:
            outcome = found.found
            print(f"{mutant.name}: {outcome.broken.name}, seed {outcome.seed}, {found.steps:,} steps", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
