"""Is a wrong specification caught? Runs of the model with one rule weakened, which real Kafka must depart from.

For each mutant of a broker's rules a shortest run is looked for, at whose end something that can be seen of the broker under
test differs between the weakened model and the model itself. Kafka, which has the rule, departs from it at that step.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from conformance.world.choice.cover import NO_CLOCK, REAL
from conformance.world.choice.stepping import Interned, Packed, Quick
from conformance.world.play.players import Players, Scene, proposed
from conformance.world.play.unplayed import is_played
from conformance.world.play.watching import expected_replica
from conformance.world.runs.run import Run, model_for, trace_of_moves
from model_check.core.exploration import TraceStep
from model_check.core.model import Model
from spec.releases.broker_mutants import BROKER_MUTANTS

MUTANTS = tuple(mutant.name for mutant in BROKER_MUTANTS)
MOST_PAIRS = 2_500
"""Pairs of states, one of each model, that are looked at within one of the bounds."""


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
"""Where runs are looked for, the smallest first."""


class Telling(NamedTuple):
    """A mutant and a run that tells it from the rules of Kafka; none, if no bounds have one that can be seen."""

    mutant: str
    run: Run | None


SHOWN = ("log", "role", "alterPartition", "memory", "process", "metadata")
"""The slots of a broker on which it depends what a state shows."""


class _Side:
    """One of the two models: its quick steps, its handlers, and what its states show."""

    def __init__(self, model: Model, interned: Interned) -> None:
        self.quick = Quick(model, interned)
        self.model = model
        self.players = Players(dict(model.parameters))
        self._places = tuple(slot.position for slot in model.slots if slot.name in SHOWN and slot.key == REAL)
        self._shown: dict[Packed, tuple[Any, ...]] = {}

    def shows(self, packed: Packed) -> tuple[Any, ...]:
        """What a state shows of the broker under test."""
        key = tuple(packed[place] for place in self._places)
        if key not in self._shown:
            scene = Scene(self.model, self.quick.state(packed))
            request = proposed(scene.exchange(REAL))
            asked = None if request is None else (sorted(request.isr), request.leader_epoch, request.partition_epoch)
            waits = frozenset(waiting.request for waiting in scene.memory(REAL).waiting)
            answers = self.players.answers(scene, REAL)
            self._shown[key] = (expected_replica(scene, REAL) if answers else None, asked, waits, answers)
        return self._shown[key]

    def shown_by(self, before: Packed, after: Packed) -> tuple[Any, ...]:
        """What a step shows: of a proposal only that it is new, not that it is still under way."""
        replica, asked, waits, answers = self.shows(after)
        return replica, None if asked == self.shows(before)[1] else asked, waits, answers

    def exchanged(self, number: int, before: Packed) -> tuple[object, object]:
        """What the broker under test gets in a fetch, and what it says: its request or its answer."""
        action = self.model.actions[number]
        if action.name not in ("Fetch", "FetchUnanswered"):
            return None, None
        was, follower, leader = Scene(self.model, self.quick.state(before)), action.args["follower"], action.args["leader"]
        assert isinstance(follower, int)
        assert isinstance(leader, int)
        sent = self.players.next_fetch(was, follower)
        if sent is None or REAL not in (follower, leader) or (leader == REAL and not was.has_replica(REAL)):
            return None, None
        answer = self.players.fetch_answer(was, leader, sent[1])
        return (sent[1], answer) if leader == REAL else (answer, sent[1])


def telling_runs(
    kafka: str, mutants: Iterable[str] = MUTANTS, bounds: Iterable[dict[str, Any]] = SMALL_BOUNDS
) -> Iterator[Telling]:
    """For each mutant a run that tells it, within the first of the bounds that have one."""
    known = [(given, Interned()) for given in bounds]
    sides = [_Side(model_for(kafka, given), interned) for given, interned in known]
    for mutant in mutants:
        ways = (
            _tell(own, _Side(model_for(kafka, {**given, "mutant": mutant}), interned), mutant)
            for own, (given, interned) in zip(sides, known, strict=True)
        )
        yield Telling(mutant, next((run for run in ways if run is not None), None))


def by_the_rules(kafka: str, told: Run) -> Run:
    """The same steps by the rules that are not weakened: a broker that has the mutant departs from this run."""
    given = {name: value for name, value in told.model.parameters.items() if name != "mutant"}
    model = model_for(kafka, given)
    return Run(told.name, model, trace_of_moves(model, told.moves), told.real)


def _tell(own: _Side, weak: _Side, mutant: str) -> Run | None:
    """The shortest run of the weakened model that shows the difference.

    The played brokers have the weakened rule, too. Where they send something else to the broker under test, it is their
    mistake that would be seen: such steps are left out.
    """
    model, weak_model = own.quick.model, weak.quick.model
    played = [number for number, action in enumerate(model.actions) if is_played(action, REAL)]
    start = (own.quick.initial, weak.quick.initial)
    came: _Came = {start: None}
    queue = deque([start])
    while queue and len(came) < MOST_PAIRS:
        pair = queue.popleft()
        for number in played:
            after, weak_after = own.quick.fire(number, pair[0]), weak.quick.fire(number, pair[1])
            if after is None or weak_after is None:
                continue
            following = (after, weak_after)
            (got, said), (weak_got, weakly_said) = own.exchanged(number, pair[0]), weak.exchanged(number, pair[1])
            if said == weakly_said and got != weak_got:
                continue
            if said != weakly_said or own.shown_by(pair[0], after) != weak.shown_by(pair[1], weak_after):
                if got != weak_got and model.actions[number].args.get("leader") == REAL:
                    continue
                last = TraceStep(weak_model.actions[number], weak.quick.state(weak_after))
                return Run(f"mutant {mutant}", weak_model, (*_trace(weak.quick, came, pair), last), REAL)
            if following not in came:
                came[following] = (pair, number)
                queue.append(following)
    return None


_Pair = tuple[Packed, Packed]
_Came = dict[_Pair, tuple[_Pair, int] | None]


def _trace(quick: Quick, came: _Came, last: _Pair) -> tuple[TraceStep, ...]:
    found: list[TraceStep] = []
    pair = last
    while (before := came[pair]) is not None:
        found.insert(0, TraceStep(quick.model.actions[before[1]], quick.state(pair[1])))
        pair = before[0]
    return (TraceStep(None, quick.model.initial), *found)
