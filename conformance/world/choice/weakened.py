"""Runs of the model with one rule weakened, from which real Kafka must depart: a wrong specification is caught by them.

For each mutant of a broker's rules there is a shortest run at whose end the visible state of the broker under test differs
between the weakened model and the model itself. Kafka, which has the rule, departs from it at that step.
"""

from collections.abc import Iterable, Iterator
from itertools import starmap
from typing import Any, NamedTuple

from kspec.conformance.world.choice.cover import NO_CLOCK, REAL
from kspec.conformance.world.choice.stepping import Packed, Quick, ValueNumbers
from kspec.conformance.world.replay.model_state import ModelState
from kspec.conformance.world.replay.not_replayed import is_replayed
from kspec.conformance.world.replay.observed_replica import expected_replica
from kspec.conformance.world.replay.spec_parties import SpecParties, proposed
from kspec.conformance.world.runs.run import WorldRun, model_for, trace_of_moves
from kspec.model_check.core.exploration import TraceStep
from kspec.model_check.core.model import Model
from kspec.model_check.search.ways import Ways
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS

MUTANTS = tuple(mutant.name for mutant in BROKER_MUTANTS)
MOST_PAIRS = 2_500
"""The limit of pairs of states, one of each model, within one of the bounds."""


SMALL_BOUNDS: tuple[dict[str, Any], ...] = (
    {"elections": 1, "values": 2, "brokers": 2, **NO_CLOCK},
    {"elections": 1, "fencings": 1, "brokers": 2, "min_isr": 1, **NO_CLOCK},
    {"elections": 2, "values": 2, "brokers": 2, "min_isr": 1, **NO_CLOCK},
    {"elections": 1, "late_fetches": 1, "brokers": 2, **NO_CLOCK},
    {"elections": 1, "isr_shrinks": 1, "brokers": 2, "min_isr": 1},
    {"elections": 1, "retries": 1, "brokers": 2, **NO_CLOCK},
    {"elections": 0, "unclean_shutdowns": 1, "only_stops": 2, "brokers": 2, "min_isr": 1, **NO_CLOCK},
    {"elections": 2, **NO_CLOCK},
    {"elections": 1, "isr_shrinks": 1},
    {"elections": 0, "unclean_shutdowns": 1, "slow_registrations": 1, "brokers": 2, "min_isr": 1, **NO_CLOCK},
)
"""Graphs that are searched for runs, the smallest first."""


class MutantWitness(NamedTuple):
    """A mutant and a run that distinguishes it from the rules of Kafka; none, if no bounds have a visible difference."""

    mutant: str
    run: WorldRun | None


SHOWN = ("log", "role", "alterPartition", "memory", "process", "metadata")
"""The slots of a broker on which the visible part of a state depends."""


class _Side:
    """One of the two models: its quick steps, its handlers, and the visible part of its states."""

    def __init__(self, model: Model, interned: ValueNumbers) -> None:
        self.quick = Quick(model, interned)
        self.model = model
        self.spec_parties = SpecParties(dict(model.parameters))
        self._places = tuple(slot.position for slot in model.slots if slot.name in SHOWN and slot.key == REAL)
        self._shown: dict[Packed, tuple[Any, ...]] = {}

    def shows(self, packed: Packed) -> tuple[Any, ...]:
        """The visible part of a state of the broker under test."""
        key = tuple(packed[place] for place in self._places)
        if key not in self._shown:
            state = ModelState(self.model, self.quick.state(packed))
            request = proposed(state.exchange(REAL))
            asked = None if request is None else (sorted(request.isr), request.leader_epoch, request.partition_epoch)
            waits = frozenset(waiting.request for waiting in state.memory(REAL).waiting)
            answers = self.spec_parties.answers(state, REAL)
            self._shown[key] = (expected_replica(state, REAL) if answers else None, asked, waits, answers)
        return self._shown[key]

    def shown_by(self, before: Packed, after: Packed) -> tuple[Any, ...]:
        """The visible part of a step: of a proposal only that it is new, not that it is still in flight."""
        replica, asked, waits, answers = self.shows(after)
        return replica, None if asked == self.shows(before)[1] else asked, waits, answers

    def exchanged(self, number: int, before: Packed) -> tuple[object, object]:
        """Messages of the broker under test in a fetch: its request or its response."""
        action = self.model.actions[number]
        if action.name not in ("Fetch", "FetchUnanswered"):
            return None, None
        was, follower, leader = (
            ModelState(self.model, self.quick.state(before)),
            action.args["follower"],
            action.args["leader"],
        )
        assert isinstance(follower, int)
        assert isinstance(leader, int)
        sent = self.spec_parties.next_fetch(was, follower)
        if sent is None or REAL not in (follower, leader) or (leader == REAL and not was.has_replica(REAL)):
            return None, None
        answer = self.spec_parties.fetch_answer(was, leader, sent[1])
        return (sent[1], answer) if leader == REAL else (answer, sent[1])


def telling_runs(
    kafka: str, mutants: Iterable[str] = MUTANTS, bounds: Iterable[dict[str, Any]] = SMALL_BOUNDS
) -> Iterator[MutantWitness]:
    """For each mutant a run that distinguishes it, within the first of the bounds that have one."""
    known = [(given, ValueNumbers()) for given in bounds]
    sides = [_Side(model_for(kafka, given), interned) for given, interned in known]
    for mutant in mutants:
        ways = (
            _tell(own, _Side(model_for(kafka, {**given, "mutant": mutant}), interned), mutant)
            for own, (given, interned) in zip(sides, known, strict=True)
        )
        yield MutantWitness(mutant, next((run for run in ways if run is not None), None))


def by_the_rules(kafka: str, told: WorldRun) -> WorldRun:
    """The same steps by the rules that are not weakened: a broker that has the mutant departs from this run."""
    given = {name: value for name, value in told.model.parameters.items() if name != "mutant"}
    model = model_for(kafka, given)
    return WorldRun(told.name, model, trace_of_moves(model, told.moves), told.real)


def _tell(own: _Side, weak: _Side, mutant: str) -> WorldRun | None:
    """The shortest run of the weakened model that shows the difference.

    The stand-ins have the weakened rule, too. Where they send another message to the broker under test, their mistake would
    be seen and not its own: such steps are left out.
    """
    model, weak_model = own.quick.model, weak.quick.model
    replayed = [number for number, action in enumerate(model.actions) if is_replayed(action, REAL)]

    def weak_step(number: int, after: Packed) -> TraceStep:
        return TraceStep(weak_model.actions[number], weak.quick.state(after))

    ways = Ways[tuple[Packed, Packed], tuple[int, Packed]]((own.quick.initial, weak.quick.initial))
    for pair in ways.places():
        if len(ways) >= MOST_PAIRS:
            break
        for number in replayed:
            after, weak_after = own.quick.fire(number, pair[0]), weak.quick.fire(number, pair[1])
            if after is None or weak_after is None:
                continue
            (got, said), (weak_got, weakly_said) = own.exchanged(number, pair[0]), weak.exchanged(number, pair[1])
            if said == weakly_said and got != weak_got:
                continue
            if said != weakly_said or own.shown_by(pair[0], after) != weak.shown_by(pair[1], weak_after):
                if got != weak_got and model.actions[number].args.get("leader") == REAL:
                    continue
                trace = [TraceStep(None, weak_model.initial), *starmap(weak_step, [*ways.to(pair), (number, weak_after)])]
                return WorldRun(f"mutant {mutant}", weak_model, tuple(trace), REAL)
            ways.reach(pair, (number, weak_after), (after, weak_after))
    return None
