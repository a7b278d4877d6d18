"""Invariants: conjuncts with names and reasons, and the theorems that they prove."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from itertools import combinations, product
from typing import Any, NamedTuple

import z3

from kspec.model_check.core.model import Model
from kspec.proofs.settings import Replicas
from kspec.proofs.symbolic.brokers import Brokers, SymbolicSet
from kspec.proofs.symbolic.logic import any_of
from kspec.proofs.symbolic.terms import conjunction
from kspec.proofs.symbolic.values import Kind, SymbolicBool, SymbolicInt, truth
from kspec.spec.mutation import Mutant, RulesT
from kspec.spec.values import BrokerId, Offset


class StateView:
    """A symbolic or explored state as conjuncts read it. `at` gives the value of a slot, by name and key."""

    def __init__(self, at: Callable[[str, Any], Any], brokers: Brokers) -> None:
        self.at, self.brokers = at, brokers

    def some(self, claim: Callable[[Any], Any]) -> Any:
        """States that the claim holds for some broker."""
        if self.brokers.ids is not None:
            return any_of(*(claim(broker) for broker in self.brokers.ids))
        return SymbolicBool(self.brokers.some(lambda broker: truth(claim(SymbolicInt(broker)))))


class ReplicaView(StateView):
    """A state of replicas that have a log, a high watermark and a role."""

    def log(self, replica: Any) -> Any:
        """The replica's log."""
        return self.at("log", replica)

    def high_watermark(self, replica: Any) -> Any:
        """The replica's high watermark (an offset)."""
        return self.at("highWatermark", replica)

    def role(self, replica: Any) -> Any:
        """The announcement that the replica accepted last: the leader that it believes in, and the epoch."""
        return self.at("role", replica)

    def epoch(self, replica: Any) -> Any:
        """The leader epoch that the replica is in."""
        return self.role(replica).leader_epoch

    def leads(self, replica: Any) -> Any:
        """Whether the replica presumes to lead."""
        return self.role(replica).leader == replica


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One claim about every reachable state.

    It speaks of all brokers, offsets, epochs and sets of brokers that `claim` has as parameters.
    `because` says in a sentence why the protocol makes it so, or needs it.
    """

    name: str
    because: str
    claim: Callable[..., Any]
    brokers: tuple[str, ...]
    numbers: tuple[str, ...]
    sets: tuple[str, ...]
    order: tuple[str, ...]

    @property
    def kinds(self) -> tuple[Any, ...]:
        """For each of its numbers: whether it is an offset or an epoch."""
        return tuple(signature(self.claim).parameters[name].annotation for name in self.numbers)

    @property
    def variables(self) -> tuple[tuple[z3.ArithRef, ...], tuple[z3.ArithRef, ...]]:
        """The variables for its brokers, if there is any number of them, and for its offsets and epochs.

        Their names differ from any `Name` that is an action's argument. Otherwise they would be about that argument alone.
        """
        brokers, numbers = ([z3.Int(f"{name} of {self.name}") for name in names] for names in (self.brokers, self.numbers))
        return tuple(brokers), tuple(numbers)


BROKER_SET = frozenset[BrokerId]


def _is_number(kind: Any) -> bool:
    """Whether the values of a type are numbers from 0 on: offsets, epochs, numbers of messages, but not brokers."""
    return kind is not BrokerId and getattr(kind, "__supertype__", None) is int


class Instance(NamedTuple):
    """A conjunct for certain brokers: `body` holds for all `variables`."""

    brokers: tuple[Any, ...]
    variables: tuple[z3.ExprRef, ...]
    body: z3.BoolRef

    def closed(self) -> z3.BoolRef:
        """The instance for all offsets and epochs, as one formula."""
        return z3.ForAll(list(self.variables), self.body) if self.variables else self.body


def conjunct(name: str, because: str) -> Callable[[Callable[..., Any]], Conjunct]:
    """Make a conjunct of a function of a view, brokers (`BrokerId`), offsets and epochs, in any number."""

    def make(claim: Callable[..., Any]) -> Conjunct:
        kinds = {parameter.name: parameter.annotation for parameter in list(signature(claim).parameters.values())[1:]}
        numbers = tuple(parameter for parameter, kind in kinds.items() if _is_number(kind))
        unknown = [kind for name, kind in kinds.items() if kind not in (BrokerId, BROKER_SET) and name not in numbers]
        assert not unknown, f"{name} speaks of {unknown}: a conjunct speaks of brokers, offsets, epochs and sets of brokers"

        def named(wanted: Any) -> tuple[str, ...]:
            return tuple(parameter for parameter, kind in kinds.items() if kind == wanted)

        return Conjunct(name, because, claim, named(BrokerId), numbers, named(BROKER_SET), tuple(kinds))

    return make


def instances(conjunct: Conjunct, view: Any, brokers: Brokers) -> Iterator[Instance]:
    """The conjunct for each choice of brokers; for all brokers at once, if there is any number of them."""
    anyone, variables = conjunct.variables
    domain = [variable >= 0 for variable in variables]
    ids = brokers.ids or ()
    flags = {name: {broker: z3.Bool(f"{broker} in {name} of {conjunct.name}") for broker in ids} for name in conjunct.sets}
    bound = (*variables, *(flag for of_set in flags.values() for flag in of_set.values()))
    if brokers.ids is None:
        bound, domain = (*anyone, *bound), [*map(brokers.exists, anyone), *domain]
    for chosen in [()] if brokers.ids is None else product(brokers.ids, repeat=len(conjunct.brokers)):
        brokers_chosen = chosen if brokers.ids is not None else tuple(map(SymbolicInt, anyone))
        values: dict[str, Any] = dict(zip(conjunct.brokers, brokers_chosen, strict=True))
        values |= {name: SymbolicInt(variable) for name, variable in zip(conjunct.numbers, variables, strict=True)}
        values |= {name: SymbolicSet(brokers, of_set.__getitem__) for name, of_set in flags.items()}
        body = truth(conjunct.claim(view, *(values[name] for name in conjunct.order)))
        yield Instance(chosen, bound, z3.Implies(conjunction(domain), body) if domain else body)


def holds_in(conjunct: Conjunct, view: Any, brokers: Sequence[int], offsets: int, epochs: int) -> bool:
    """Whether the conjunct holds in an explored state, in which offsets and epochs go up to these bounds."""
    return next(violations(conjunct, view, brokers, offsets, epochs), None) is None


def violations(conjunct: Conjunct, view: Any, brokers: Sequence[int], offsets: int, epochs: int) -> Iterator[dict[str, Any]]:
    """The brokers, offsets, epochs and sets, by name, for which the conjunct does not hold in an explored state."""
    hints = signature(conjunct.claim).parameters
    subsets = [frozenset(chosen) for size in range(len(brokers) + 1) for chosen in combinations(brokers, size)]

    def domain(name: str) -> Sequence[Any]:
        if name in conjunct.brokers:
            return brokers
        return subsets if name in conjunct.sets else range((offsets if hints[name].annotation is Offset else epochs) + 1)

    for values in product(*map(domain, conjunct.order)):
        if not conjunct.claim(view, *values):
            yield dict(zip(conjunct.order, values, strict=True))


class Witness(NamedTuple):
    """Shows that a theorem is not vacuous: a reachable state for which `holds` is true, within these bounds of a model.

    `reads` names the slots that `holds` reads, if not all. Then the compiled engine can search for the state.
    """

    holds: Callable[[Any], bool]
    bounds: tuple[int, int]
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Theorem:
    """The claims about a model, and the invariant that proves them.

    - `model`: builds the checker's model for a number of replicas (or any) and a mutant, with all bounds lifted;
    - `bounded`: builds it with bounds, for exploration;
    - `view`: how conjuncts read a state;
    - `properties`: the model's own properties that follow from the invariant;
    - `witness`: a reachable state which shows that the theorem is not vacuous;
    - `realistic`: conjuncts that the proof does not need, but that make counterexamples look like runs of a cluster;
    - `mutants`: the mutants that it can be tried against, by name, each with the rule that it weakens, unweakened;
    - `premises`: what holds of the arguments of actions;
    - `in_bounds`: for a number of replicas, what the bounded model assumes of arguments of actions that it does not name;
    - `consequences`: further claims about every state that follow from the invariant;
    - `landmarks`: the epochs and partition epochs of a state that proofs by instances begin with, each with its kind;
    - `lemmas`: further tasks, by name, with the obligations that they make of `Obligations`;
    - `any_number`: whether it can be proved for any number of replicas at once;
    - `by_outcome`: whether it is proved one outcome of an action at a time, because there are many ways through the rules;
    - `replicas`: the number that it is proved for by default;
    - `holds`: whether it is true; a theorem that is not true shows where the induction fails.
    """

    name: str
    summary: str
    model: Callable[[Replicas, str | None], Model]
    bounded: Callable[..., Model]
    view: type[StateView]
    conjuncts: tuple[Conjunct, ...]
    properties: tuple[str, ...]
    witness: Witness
    realistic: tuple[Conjunct, ...] = ()
    mutants: Mapping[str, Any] = field(default_factory=dict)
    premises: tuple[SymbolicBool, ...] = ()
    in_bounds: Callable[[int], tuple[SymbolicBool, ...]] = lambda replicas: ()
    landmarks: Callable[[Any], tuple[tuple[Kind, Any], ...]] = lambda view: ()
    lemmas: tuple[tuple[str, Callable[[Any], Iterator[Any]]], ...] = ()
    consequences: tuple[Conjunct, ...] = ()
    any_number: bool = False
    by_outcome: bool = False
    replicas: int = 3
    holds: bool = True


def weakened_rules(protocol: RulesT, mutants: Iterable[Mutant]) -> dict[str, Any]:
    """The rule that each mutant weakens, as the protocol has it."""
    return {mutant.name: getattr(protocol, mutant.field) for mutant in mutants}
