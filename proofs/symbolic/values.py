"""Symbolic values, and the evaluation of ordinary Python functions on them.

A symbolic number stands for any number. A comparison of symbolic values is a `SymbolicBool`; when Python asks whether it
is true (`if`, `and`, `min`, `in`), the run forks: the function is run again for the other answer, until every feasible
path has been seen. The paths of a function, each with its condition and its result, are its exact relation.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, permutations
from typing import Any, NamedTuple

import z3

from proofs.effort import Effort

FEASIBILITY = 1_500_000
"""How much Z3 may do to rule a path out, in its own units. What it does not rule out is kept: that is always sound."""


class SymbolicBool:
    """A truth that depends on symbolic values. As a condition it forks the run; `&`, `|`, `~` and `==` do not."""

    __slots__ = ("term",)

    def __init__(self, term: z3.BoolRef) -> None:
        self.term = term

    def __bool__(self) -> bool:
        return decide(self.term)

    def __and__(self, other: "SymbolicBool | bool") -> "SymbolicBool":
        return SymbolicBool(z3.And(self.term, truth(other)))

    def __or__(self, other: "SymbolicBool | bool") -> "SymbolicBool":
        return SymbolicBool(z3.Or(self.term, truth(other)))

    def __invert__(self) -> "SymbolicBool":
        return SymbolicBool(z3.Not(self.term))

    def __eq__(self, other: object) -> "SymbolicBool":  # type: ignore[override]
        return SymbolicBool(self.term == truth(other))

    __rand__, __ror__ = __and__, __or__
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return str(self.term)


class SymbolicInt:
    """Any whole number: an offset, an epoch, a broker id, a record's value.

    Compared with a float it answers at once, without a fork: bounds of a model that are lifted are infinite.
    """

    __slots__ = ("term",)

    def __init__(self, term: z3.ArithRef) -> None:
        self.term = term

    def __add__(self, other: Any) -> "SymbolicInt":
        return SymbolicInt(self.term + number(other))

    def __sub__(self, other: Any) -> "SymbolicInt":
        return SymbolicInt(self.term - number(other))

    def __rsub__(self, other: Any) -> "SymbolicInt":
        return SymbolicInt(number(other) - self.term)

    def __lt__(self, other: Any) -> "SymbolicBool | bool":
        return other > 0 if isinstance(other, float) else SymbolicBool(self.term < number(other))

    def __le__(self, other: Any) -> "SymbolicBool | bool":
        return other > 0 if isinstance(other, float) else SymbolicBool(self.term <= number(other))

    def __gt__(self, other: Any) -> "SymbolicBool | bool":
        return other < 0 if isinstance(other, float) else SymbolicBool(self.term > number(other))

    def __ge__(self, other: Any) -> "SymbolicBool | bool":
        return other < 0 if isinstance(other, float) else SymbolicBool(self.term >= number(other))

    def __eq__(self, other: object) -> Any:
        return SymbolicBool(self.term == number(other)) if isinstance(other, SymbolicInt | int) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return SymbolicBool(self.term != number(other)) if isinstance(other, SymbolicInt | int) else NotImplemented

    __radd__ = __add__

    def __hash__(self) -> int:
        raise TypeError("a rule must not hash a number: it may stand for many (no dict or set keyed by an offset or epoch)")

    def __index__(self) -> int:
        raise TypeError("a rule must not turn a number into an int: it may stand for many (no range over offsets)")

    def __repr__(self) -> str:
        return str(self.term)


Kind = Any
"""What a number is about, as its type says: an `Offset`, an `Epoch`, a `PartitionEpoch` or another `NewType` of numbers."""


class Name(SymbolicInt):
    """A number that a model's builder may use as an argument and a key: one arbitrary, but fixed, broker or epoch.

    Two names of brokers are two different brokers; whoever makes them asserts it (`z3.Distinct`).
    """

    __slots__ = ("kind",)

    def __init__(self, name: str, kind: Kind) -> None:
        super().__init__(z3.Int(name))
        self.kind = kind

    def __eq__(self, other: object) -> Any:
        return self is other if isinstance(other, Name) else super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        return self is not other if isinstance(other, Name) else super().__ne__(other)

    def __hash__(self) -> int:
        return id(self)


class SymbolicEnum:
    """Some member of an enumeration, by its position in it."""

    __slots__ = ("kind", "position")

    def __init__(self, kind: type, position: z3.ArithRef) -> None:
        self.kind, self.position = kind, position


class SymbolicOptional:
    """A value that may be absent."""

    __slots__ = ("present", "value")

    def __init__(self, present: z3.BoolRef, value: Any) -> None:
        self.present, self.value = present, value


IS_BROKER = z3.Function("is a broker", z3.IntSort(), z3.BoolSort())
"""Which numbers are brokers' ids, where there is any number of brokers: nothing is known of it."""


class Brokers:
    """All brokers of a model: the ids 1 to N, or any number of them. Of any number, some have names."""

    def __init__(self, ids: Sequence[int] | None, names: Sequence[Name] = ()) -> None:
        self.ids, self.names = ids, names
        self._claims = 0

    def exists(self, broker: Any) -> z3.BoolRef:
        """That there is a broker with this id."""
        if self.ids is None:
            return IS_BROKER(number(broker))
        if isinstance(broker, int):
            return z3.BoolVal(broker in self.ids)
        return z3.And(broker >= self.ids[0], broker <= self.ids[-1])

    def pairs(self) -> Sequence[tuple[Any, Any]]:
        """Every broker with every other one; of any number, two that stand for all pairs."""
        return [(self.names[0], self.names[1])] if self.ids is None else list(permutations(self.ids, 2))

    def is_everyone(self, members: Collection[Any]) -> bool:
        """Whether a set made by a model's builder is that of all brokers."""
        everyone = self.names if self.ids is None else self.ids
        return len(everyone) > 0 and set(everyone) == set(members)

    def every(self, claim: Callable[[Any], z3.BoolRef]) -> z3.BoolRef:
        """That the claim holds of every broker."""
        if self.ids is not None:
            return conjunction([claim(broker) for broker in self.ids])
        anyone, claimed = self._claimed(claim)
        return z3.ForAll([anyone], z3.Implies(self.exists(anyone), claimed))

    def some(self, claim: Callable[[Any], z3.BoolRef]) -> z3.BoolRef:
        """That the claim holds of some broker."""
        if self.ids is not None:
            return disjunction([claim(broker) for broker in self.ids])
        anyone, claimed = self._claimed(claim)
        parts = claimed.children() if z3.is_and(claimed) else [claimed]
        for known, others in ((part, [other for other in parts if other is not part]) for part in parts):
            named = _equated(anyone, known)
            if named is not None:  # some broker that is this one: this one
                return z3.substitute(conjunction([self.exists(anyone), *others]), (anyone, named))
        return z3.Exists([anyone], conjunction([self.exists(anyone), *parts]))

    def _claimed(self, claim: Callable[[Any], z3.BoolRef]) -> tuple[z3.ArithRef, z3.BoolRef]:
        """A broker of which nothing is known, and the claim about it. The same claim gives the same formula."""
        self._claims += 1
        anyone = z3.Int(f"some broker {self._claims}")
        claimed = claim(anyone)
        self._claims -= 1
        return anyone, claimed


class SymbolicSet:
    """A set of brokers: for each broker, whether it is in."""

    __slots__ = ("brokers", "holds")

    def __init__(self, brokers: Brokers, holds: Callable[[Any], z3.BoolRef]) -> None:
        self.brokers, self.holds = brokers, holds

    @classmethod
    def of(cls, value: Any, brokers: Brokers) -> "SymbolicSet":
        """A set as a symbolic one."""
        if isinstance(value, SymbolicSet):
            return value
        members = list(value)
        if brokers.is_everyone(value):
            return cls(brokers, lambda broker: brokers.exists(broker) if brokers.ids is None else z3.BoolVal(True))
        return cls(brokers, lambda broker: disjunction([number(broker) == number(member) for member in members]))

    def has(self, broker: Any) -> z3.BoolRef:
        """That `broker` is in the set, as a formula."""
        return self.holds(broker.term if isinstance(broker, SymbolicInt) else broker)

    def __contains__(self, broker: Any) -> bool:
        return decide(self.has(broker))

    def __iter__(self) -> Iterator[int]:
        """The members: forks at every broker."""
        if self.brokers.ids is None:
            raise TypeError("a set of any number of brokers cannot be walked through")
        return (broker for broker in self.brokers.ids if decide(self.has(broker)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return decide(self.brokers.some(self.has))

    def __or__(self, other: Any) -> "SymbolicSet":
        right = SymbolicSet.of(other, self.brokers)
        return SymbolicSet(self.brokers, lambda broker: disjunction([self.has(broker), right.has(broker)]))

    def __and__(self, other: Any) -> "SymbolicSet":
        right = SymbolicSet.of(other, self.brokers)
        return SymbolicSet(self.brokers, lambda broker: conjunction([self.has(broker), right.has(broker)]))

    def __sub__(self, other: Any) -> "SymbolicSet":
        right = SymbolicSet.of(other, self.brokers)
        return SymbolicSet(self.brokers, lambda broker: conjunction([self.has(broker), negation(right.has(broker))]))

    def __rsub__(self, other: Any) -> "SymbolicSet":
        return SymbolicSet.of(other, self.brokers) - self

    def __le__(self, other: Any) -> SymbolicBool:
        right = SymbolicSet.of(other, self.brokers)
        return SymbolicBool(self.brokers.every(lambda broker: z3.Implies(self.has(broker), right.has(broker))))

    def __ge__(self, other: Any) -> SymbolicBool:
        return SymbolicSet.of(other, self.brokers) <= self

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, SymbolicSet | frozenset | set):
            return NotImplemented
        right = SymbolicSet.of(other, self.brokers)
        return SymbolicBool(self.brokers.every(lambda broker: self.has(broker) == right.has(broker)))

    __ror__, __rand__ = __or__, __and__

    def __hash__(self) -> int:
        """One for all, so that Python compares symbolic sets that meet in a set of sets; comparing forks."""
        return 0


# ---- terms


def parts_of(term: z3.ExprRef) -> Iterator[z3.ExprRef]:
    """All terms in a term or formula, each once."""
    seen: set[int] = set()
    waiting = [term]
    while waiting:
        part = waiting.pop()
        if part.get_id() not in seen:
            seen.add(part.get_id())
            yield part
            waiting += [part.body()] if z3.is_quantifier(part) else part.children()


def _equated(variable: z3.ArithRef, formula: z3.BoolRef) -> z3.ExprRef | None:
    """What an equation says that a variable is."""
    if not z3.is_eq(formula):
        return None
    left, right = formula.children()
    found = right if left.eq(variable) else left if right.eq(variable) else None
    return found if found is not None and not any(part.eq(variable) for part in parts_of(found)) else None


def number(value: Any) -> Any:
    """A number as a term."""
    if isinstance(value, SymbolicInt):
        return value.term
    return z3.IntVal(value) if isinstance(value, int) else value


def truth(value: Any) -> z3.BoolRef:
    """A truth as a formula."""
    if isinstance(value, SymbolicBool):
        return value.term
    return z3.BoolVal(value) if isinstance(value, bool) else value


def _settled(term: z3.BoolRef) -> bool | None:
    if z3.is_true(term):
        return True
    return False if z3.is_false(term) else None


def conjunction(terms: Sequence[z3.BoolRef]) -> z3.BoolRef:
    """And, without what is trivially true."""
    kept = [term for term in terms if not z3.is_true(term)]
    if any(z3.is_false(term) for term in kept):
        return z3.BoolVal(False)
    return z3.BoolVal(True) if not kept else kept[0] if len(kept) == 1 else z3.And(*kept)


def disjunction(terms: Sequence[z3.BoolRef]) -> z3.BoolRef:
    """Or, without what is trivially false."""
    kept = [term for term in terms if not z3.is_false(term)]
    if any(z3.is_true(term) for term in kept):
        return z3.BoolVal(True)
    return z3.BoolVal(False) if not kept else kept[0] if len(kept) == 1 else z3.Or(*kept)


def negation(term: z3.BoolRef) -> z3.BoolRef:
    """Not."""
    settled = _settled(term)
    return z3.Not(term) if settled is None else z3.BoolVal(not settled)


def choice(condition: z3.BoolRef, then: Any, otherwise: Any) -> Any:
    """If-then-else, without a choice where there is none."""
    settled = _settled(condition)
    if settled is not None:
        return then if settled else otherwise
    return then if then.eq(otherwise) else z3.If(condition, then, otherwise)


# ---- paths


class Fork(NamedTuple):
    """Which way a run went at a comparison; `forced`: by what is known of the state, it could not go the other way."""

    term: z3.BoolRef
    answer: bool
    forced: bool

    @property
    def condition(self) -> z3.BoolRef:
        """The way taken as a formula."""
        return self.term if self.answer else z3.Not(self.term)


class Path(NamedTuple):
    """One way through a function: taken under its `forks`, with `value` as the result.

    `learned` are what the laws of the log algebra say about values that came up on the way, each with how many forks
    lay behind by then.
    """

    forks: tuple[Fork, ...]
    learned: tuple[tuple[int, z3.BoolRef], ...]
    value: Any

    def free(self) -> "Path":
        """The path without forks that were forced: what forced them is known anyway."""
        taken = [0, *accumulate(not fork.forced for fork in self.forks)]
        forks = tuple(fork for fork in self.forks if not fork.forced)
        return Path(forks, tuple((taken[count], fact) for count, fact in self.learned), self.value)

    @property
    def condition(self) -> z3.BoolRef:
        """Under which this path is taken."""
        return conjunction([fork.condition for fork in self.forks])

    @property
    def facts(self) -> z3.BoolRef:
        """All that is learned on it."""
        return conjunction([fact for _, fact in self.learned])


def facts_of(paths: Sequence[Path]) -> z3.BoolRef:
    """What the laws say of values that came up, on the paths on which they did; each once."""
    told: dict[tuple[int, ...], z3.BoolRef] = {}
    for path in paths:
        for count, fact in path.learned:
            if z3.is_true(fact):
                continue
            conditions = [fork.condition for fork in path.forks[:count]]
            key = (fact.get_id(), *(condition.get_id() for condition in conditions))
            told.setdefault(key, z3.Implies(conjunction(conditions), fact) if conditions else fact)
    return conjunction(list(told.values()))


def joined(paths: Sequence[Path], of_one: Callable[[Path], Any], either: Callable[[z3.BoolRef, Any, Any], Any]) -> Any:
    """What all paths come to, as one value: a choice at each fork, and none where both ways come to the same.

    Where a fork has but one way left, because the other is refused, that counts for both.
    """

    def join(some: Sequence[Path], depth: int) -> Any:
        if len(some) == 1:
            return of_one(some[0])
        term = some[0].forks[depth].term
        yes = [path for path in some if path.forks[depth].answer]
        otherwise = [path for path in some if not path.forks[depth].answer]
        if not yes or not otherwise:
            return join(some, depth + 1)
        return either(term, join(yes, depth + 1), join(otherwise, depth + 1))

    return join(paths, 0)


def joined_truth(paths: Sequence[Path], of_one: Callable[[Path], z3.BoolRef]) -> z3.BoolRef:
    """What all paths say, as one formula; it is false where no path goes."""

    def join(some: Sequence[Path], depth: int) -> z3.BoolRef:
        if not some:
            return z3.BoolVal(False)
        if len(some) == 1 and len(some[0].forks) == depth:
            return of_one(some[0])
        term = some[0].forks[depth].term
        yes = [path for path in some if path.forks[depth].answer]
        otherwise = [path for path in some if not path.forks[depth].answer]
        return _either_truth(term, join(yes, depth + 1), join(otherwise, depth + 1))

    return join(paths, 0)


def _either_truth(term: z3.BoolRef, then: z3.BoolRef, otherwise: z3.BoolRef) -> z3.BoolRef:
    if then.eq(otherwise):
        return then
    if z3.is_false(otherwise):
        return conjunction([term, then])
    if z3.is_false(then):
        return conjunction([z3.Not(term), otherwise])
    if z3.is_true(then):
        return disjunction([term, otherwise])
    if z3.is_true(otherwise):
        return disjunction([z3.Not(term), then])
    return z3.If(term, then, otherwise)


class _InfeasibleError(Exception):
    """The path's conditions contradict each other."""


class Turn(NamedTuple):
    """Which way a run goes at a comparison, and whether it might as well go the other way."""

    answer: bool
    forks: bool


class _Run:
    """One run of the function under evaluation."""

    def __init__(self, prefix: tuple[Turn, ...], solver: z3.Solver | None) -> None:
        self.prefix, self.solver = prefix, solver
        self.taken: list[Turn] = []
        self.forks: list[Fork] = []
        self.learned: list[tuple[int, z3.BoolRef]] = []
        self.alternatives: list[tuple[Turn, ...]] = []
        self.named = 0
        self.known: dict[Any, Any] = {}
        self.example: z3.ModelRef | None = None
        """Values with which a run goes the way that this one has gone so far, if some are known."""

    def _feasible(self, term: z3.BoolRef) -> tuple[bool, z3.ModelRef | None]:
        """Whether the run may go where `term` holds, and values with which it does."""
        if self.solver is None:
            return True, None
        if self.example is not None and z3.is_true(self.example.eval(term, model_completion=True)):
            return True, self.example
        answer = Effort(FEASIBILITY).ask(self.solver, term)
        return answer != z3.unsat, self.solver.model() if answer == z3.sat else None

    def decide(self, term: z3.BoolRef) -> bool:
        if len(self.taken) < len(self.prefix):
            turn = self.prefix[len(self.taken)]
        else:
            answer, example = self._feasible(term)
            opposite, other_example = self._feasible(z3.Not(term))
            self.example = example if answer else other_example
            if not answer and not opposite:
                raise _InfeasibleError
            turn = Turn(answer, answer and opposite)
            if turn.forks:
                self.alternatives.append((*self.taken, Turn(False, forks=True)))
        self.taken.append(turn)
        fork = Fork(term, turn.answer, not turn.forks)
        self.forks.append(fork)
        if self.solver is not None:
            self.solver.add(fork.condition)
        return turn.answer


_runs: list[_Run] = []
_explorations = 0


def decide(term: z3.BoolRef) -> bool:
    """Which way the present run goes where `term` is asked."""
    settled = _settled(z3.simplify(term))
    if settled is not None:
        return settled
    if not _runs:
        raise TypeError(f"a condition on symbolic values outside an exploration: {term}")
    return _runs[-1].decide(term)


@contextmanager
def numbered_anew() -> Iterator[None]:
    """Fresh values are numbered from 1 on, so that the same functions, explored again, have the same names for theirs."""
    global _explorations  # noqa: PLW0603
    before, _explorations = _explorations, 0
    try:
        yield
    finally:
        _explorations = max(before, _explorations)


def assume(fact: z3.BoolRef) -> None:
    """What holds of the values of the present run whatever else does."""
    run = _runs[0]
    run.learned.append((len(run.forks), fact))
    if run.solver is not None:
        run.solver.add(fact)
    if run.example is not None and not z3.is_true(run.example.eval(fact, model_completion=True)):
        run.example = None


def fresh(name: str) -> z3.ArithRef:
    """A number of which nothing is known yet. Runs that go the same way get the same one."""
    run = _runs[0]
    run.named += 1
    return z3.Int(f"{name}!{_explorations}!{run.named}")


def fresh_function(name: str) -> z3.FuncDeclRef:
    """A number for each number, of which nothing is known yet."""
    run = _runs[0]
    run.named += 1
    return z3.Function(f"{name}!{_explorations}!{run.named}", z3.IntSort(), z3.IntSort())


def remembered(key: Any, make: Callable[[], Any], learn: Callable[[], None] = lambda: None) -> Any:
    """The same value for the same key, within the present run; what is known of it is learned when it is made."""
    known = _runs[0].known
    if key not in known:
        known[key] = make()
        learn()
    return known[key]


def explore(function: Callable[[], Any], assumptions: Sequence[z3.BoolRef] | z3.Solver | None = ()) -> list[Path]:
    """All paths of `function` that are feasible under the assumptions; with `None`, also infeasible ones.

    A solver may be given in place of assumptions: it holds them, and is left as it was.
    """
    global _explorations  # noqa: PLW0603
    if not _runs:
        _explorations += 1
    solver: z3.Solver | None = None
    if isinstance(assumptions, z3.Solver):
        solver = assumptions
    elif assumptions is not None:
        solver = z3.Solver()
        solver.add(*assumptions)
    waiting: list[tuple[Turn, ...]] = [()]
    paths = []
    while waiting:
        run = _Run(waiting.pop(), solver)
        if solver is not None:
            solver.push()
        _runs.append(run)
        try:
            value = function()
        except _InfeasibleError:
            pass
        else:
            paths.append(Path(tuple(run.forks), tuple(run.learned), value))
        finally:
            _runs.pop()
            if solver is not None:
                solver.pop()
        waiting += run.alternatives
    return paths


def formula(function: Callable[[], Any]) -> z3.BoolRef:
    """A function that answers yes or no, as one formula."""
    value = None
    paths = explore(function, None)
    if len(paths) == 1:
        value = truth(_as_truth(paths[0].value))
        return z3.Implies(paths[0].facts, value) if not z3.is_true(paths[0].facts) else value
    return conjunction(
        [
            z3.Implies(conjunction([path.condition, path.facts]), truth(_as_truth(path.value)))
            for path in paths
            if not (_settled(truth(_as_truth(path.value))))
        ]
    )


def _as_truth(value: Any) -> Any:
    return value if isinstance(value, SymbolicBool | bool) else bool(value)
