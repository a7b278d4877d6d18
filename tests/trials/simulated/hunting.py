"""Hunts in simulated clusters: which seed shows what a weakened rule, a release, or a finding leads to.

The seeds are run by the rules of `next` first, and each weakened rule is asked with every question
(`trials/simulated/causes.py`). Only where it has had another answer does the seed run with the mutant. A finding is hunted
in the same way: the release with this one rule repaired runs first; then, where nothing fails and the release's own rule has
had another answer, the release.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.controller.protocol import Controller, ControllerProtocol
from kspec.spec.messages.produce import ACKS_LEADER
from kspec.spec.mutation import Mutant, differing_fields, weaken
from kspec.spec.releases.broker import BROKER_NEXT, BROKER_RELEASES
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from kspec.spec.releases.mutants.quorum import QUORUM_MUTANTS
from kspec.spec.releases.names import KRAFT_NAMES, kraft_of
from kspec.spec.releases.quorum import QUORUM_4_2, QUORUM_NEXT
from kspec.spec.releases.transactions.mutants import TRANSACTION_MUTANTS
from kspec.trials.simulated.causes import Differences, rules_that_repair, watched_setup
from kspec.trials.simulated.runs import RunOutcome, run
from kspec.trials.simulated.setup import RunSetup

BROKERS = (1, 2, 3)
MUTANTS: tuple[Mutant, ...] = (*BROKER_MUTANTS, *CONTROLLER_MUTANTS)
TRANSACTIONAL = {one.name: one for one in TRANSACTION_MUTANTS}
"""The mutants that are hunted with producers of transactions in the cluster."""

CONTROLLERS = 3
OF_RELEASES: tuple[Mutant, ...] = tuple(
    Mutant(f"repaired:quorum: {field}@4.4", field, getattr(QUORUM_4_2, field), f"`{field}` as in 4.2 to 4.4")
    for field in differing_fields(QUORUM_4_2, QUORUM_NEXT)
)
OF_QUORUM = {one.name: one for one in (*QUORUM_MUTANTS, *OF_RELEASES)}
"""The mutants that are hunted with three controllers: rules of the quorum, and those of Kafka's that `next` repairs."""

RELEASES = {one.name: one for one in BROKER_RELEASES}
ONE_ACK = "acks=1"
OLD = ("0.10", "0.11", "3.9", "4.0")


class Finding(NamedTuple):
    """A defect of a release that the model checker has found: the rule in question."""

    page: str
    release: str
    field: str
    mutant: str
    """The release's own rule, as a mutant of `next`."""


FINDINGS = {
    "missed-epoch in 4.0": Finding("missed-epoch", "4.0", "knows_followers", "keep-followers-over-missed-epochs"),
    "forgotten-proposal in 4.0": Finding("forgotten-proposal", "4.0", "announced_isr", "forget-proposal-on-old-news"),
}


def _setup(seed: int, broker: BrokerProtocol, controller: ControllerProtocol) -> RunSetup:
    return RunSetup(seed, dict.fromkeys(BROKERS, broker), Controller(controller))


def setup_of_next(seed: int) -> RunSetup:
    """The cluster by the rules of `next`."""
    return _setup(seed, BROKER_NEXT, KRAFT_NEXT)


def of_three(seed: int) -> RunSetup:
    """The cluster by the rules of `next`, with three controllers."""
    return replace(setup_of_next(seed), controllers=CONTROLLERS)


def setup_of(name: str, seed: int) -> RunSetup:
    """The cluster of a mutant, a release, acks=1, or a finding."""
    if name in TRANSACTIONAL:
        broker = replace(BROKER_NEXT, transactions=weaken(BROKER_NEXT.transactions, TRANSACTIONAL[name]))
        return replace(_setup(seed, broker, KRAFT_NEXT), transactions=True)
    if name in OF_QUORUM:
        return replace(of_three(seed), quorum=weaken(QUORUM_NEXT, OF_QUORUM[name]))
    if name == ONE_ACK:
        return replace(setup_of_next(seed), acks=ACKS_LEADER)
    if name in FINDINGS:
        return setup_of(f"release {FINDINGS[name].release}", seed)
    if name.startswith("release "):
        release = name.removeprefix("release ")
        return _setup(seed, RELEASES[release], kraft_of(release if release in KRAFT_NAMES else KRAFT_NAMES[0]))
    (mutant,) = [one for one in MUTANTS if one.name == name]
    if mutant in BROKER_MUTANTS:
        return _setup(seed, weaken(BROKER_NEXT, mutant), KRAFT_NEXT)
    return _setup(seed, BROKER_NEXT, weaken(KRAFT_NEXT, mutant))


def repaired(name: str, seed: int) -> RunSetup:
    """The cluster of a finding, with the rule in question as in `next`."""
    finding, released = FINDINGS[name], setup_of(name, seed)
    changed: dict[str, Any] = {finding.field: getattr(BROKER_NEXT, finding.field)}
    return replace(released, protocols={node: replace(one, **changed) for node, one in released.protocols.items()})


def _found(name: str, outcome: RunOutcome, limit: int) -> dict[str, Any]:
    assert outcome.broken is not None
    return {
        "promise": outcome.broken.name,
        "seed": outcome.seed,
        "steps": outcome.steps,
        "limit": limit,
        "rules": _causes(name, outcome),
    }


def _causes(name: str, outcome: RunOutcome) -> list[str]:
    """For a release, the rules with which the run keeps its promises."""
    if not name.startswith("release "):
        return []
    return list(rules_that_repair(setup_of(name, outcome.seed), outcome, BROKER_NEXT, KRAFT_NEXT))


def hunt(name: str, seeds: range, limit: int) -> dict[str, Any]:
    """The first seed in which a release or acks=1 breaks a promise, and its steps."""
    for seed in seeds:
        outcome = run(setup_of(name, seed), limit)
        if outcome.broken is not None:
            return _found(name, outcome, limit)
    return {"seeds": len(seeds), "limit": limit}


def hunt_finding(name: str, seeds: range, limit: int) -> dict[str, Any]:
    """The first seed in which the release breaks a promise, and with the one rule repaired does not."""
    released = [one for one in BROKER_MUTANTS if one.name == FINDINGS[name].mutant]
    tried = 0
    for seed in seeds:
        differences = Differences()
        if run(watched_setup(repaired(name, seed), differences, released, ()), limit).broken or not differences.counts:
            continue
        tried += 1
        outcome = run(setup_of(name, seed), limit)
        if outcome.broken is not None:
            return _found(name, outcome, limit)
    return {"seeds": len(seeds), "runs": tried, "limit": limit}


class BrokenNextError(Exception):
    """A promise is broken with no rule weakened."""


def hunt_mutants(names: list[str], seeds: range, limit: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The first seed in which each mutant breaks a promise, as they are found; in the end, what is not found.

    `seeds` of what is not found: how many ran by the rules of `next`; `runs`: those in which the weakened rule had another
    answer, so that they ran with the mutant, too. Raises: `BrokenNextError`.
    """
    left, runs = dict.fromkeys(names), dict.fromkeys(names, 0)
    for seed in seeds:
        for others in ({}, TRANSACTIONAL, OF_QUORUM):
            known = others or {one.name: one for one in MUTANTS}
            wanted = [one for one in left if one in known]
            if not wanted:
                continue
            differences = Differences()
            next_setup = of_three(seed) if others is OF_QUORUM else setup_of_next(seed)
            watched = watched_setup(
                replace(next_setup, transactions=others is TRANSACTIONAL),
                differences,
                *(BROKER_MUTANTS, CONTROLLER_MUTANTS),
                TRANSACTION_MUTANTS if others is TRANSACTIONAL else (),
                OF_QUORUM.values() if others is OF_QUORUM else (),
            )
            broken = run(watched, limit).broken
            if broken is not None:
                raise BrokenNextError(f"seed {seed}: {broken.name}: {broken.what}")
            for name in [one for one in wanted if one in differences.counts]:
                outcome = run(setup_of(name, seed), limit)
                runs[name] += 1
                if outcome.broken is not None:
                    del left[name]
                    yield name, _found(name, outcome, limit)
    for name in left:
        yield name, {"seeds": len(seeds), "runs": runs[name], "limit": limit}
