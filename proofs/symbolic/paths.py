"""The evaluation of ordinary Python functions on symbolic values, path by path.

Where Python asks whether a comparison of symbolic values is true, the run forks: the function is run again for the other
answer, until every feasible path has been seen. The paths of a function, each with its condition and its result, are the
exact relation of the function.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, NamedTuple

import z3

from kspec.proofs.effort import Effort
from kspec.proofs.symbolic.terms import conjunction, disjunction, settled

FEASIBILITY = 1_500_000
"""The limit of Z3 to rule a path out, in its own units. A path that is not ruled out is kept, which is always sound."""


class Fork(NamedTuple):
    """The way of a run at a comparison. `forced`: the known facts about the state rule out the other way."""

    term: z3.BoolRef
    answer: bool
    forced: bool

    @property
    def condition(self) -> z3.BoolRef:
        """The decision as a formula."""
        return self.term if self.answer else z3.Not(self.term)


class Path(NamedTuple):
    """One way through a function: taken under its `decisions`, with `value` as the result.

    `learned` is what the laws of the log algebra say about values that came up on the way, each with the number of decisions
    before it.
    """

    forks: tuple[Fork, ...]
    learned: tuple[tuple[int, z3.BoolRef], ...]
    value: Any

    def free(self) -> "Path":
        """The path without its forced decisions: the facts that forced them are known anyway."""
        taken = [0, *accumulate(not fork.forced for fork in self.forks)]
        forks = tuple(fork for fork in self.forks if not fork.forced)
        return Path(forks, tuple((taken[count], fact) for count, fact in self.learned), self.value)

    @property
    def condition(self) -> z3.BoolRef:
        """The condition for this path."""
        return conjunction([fork.condition for fork in self.forks])

    @property
    def facts(self) -> z3.BoolRef:
        """All facts learned on this path."""
        return conjunction([fact for _, fact in self.learned])


def facts_of(paths: Sequence[Path]) -> z3.BoolRef:
    """The statements of the laws about values that came up, under the conditions of their paths; each once."""
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
    """The results of all paths as one value: a choice at each fork, but no choice if both ways have the same result.

    If a fork has only one way left, because the other is refused, that way counts for both.
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
    """The results of all paths as one formula, which is false where there is no path."""

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
    """The way of a run at a comparison, and whether the other way is feasible, too."""

    answer: bool
    forks: bool


class _PathRun:
    """One run of the function under evaluation."""

    def __init__(self, prefix: tuple[Turn, ...], solver: z3.Solver | None) -> None:
        self.prefix, self.solver = prefix, solver
        self.taken: list[Turn] = []
        self.forks: list[Fork] = []
        self.learned: list[tuple[int, z3.BoolRef]] = []
        self.alternatives: list[tuple[Turn, ...]] = []
        self.named = 0
        self.decided: dict[int, tuple[z3.BoolRef, bool]] = {}
        """The conditions that this run has decided, by Z3's number of each, which lasts as long as the condition does."""
        self.known: dict[Any, Any] = {}
        self.example: z3.ModelRef | None = None
        """Values for which a run takes the same way as this run so far, if some are known."""

    def _feasible(self, term: z3.BoolRef) -> tuple[bool, z3.ModelRef | None]:
        """Whether `term` may hold on this run, and values for which it does."""
        if self.solver is None:
            return True, None
        if self.example is not None and z3.is_true(self.example.eval(term, model_completion=True)):
            return True, self.example
        answer = Effort(FEASIBILITY).ask(self.solver, term)
        return answer != z3.unsat, self.solver.model() if answer == z3.sat else None

    def decide(self, term: z3.BoolRef, simpler: z3.BoolRef) -> bool:
        """The way of this run at `term`, which `simpler` is equivalent to. Z3 is not asked what is decided already."""
        positive, asked = (simpler.arg(0), False) if z3.is_not(simpler) else (simpler, True)
        key = positive.get_id()
        if key not in self.decided:
            self.decided[key] = positive, self._turn(term) == asked
        return self.decided[key][1] == asked

    def _turn(self, term: z3.BoolRef) -> bool:
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


class _Explorations:
    """The runs under way, one inside the other, and the number of explorations, which is in the names of fresh values."""

    def __init__(self) -> None:
        self.runs: list[_PathRun] = []
        self.count = 0


_EXPLORATIONS = _Explorations()


def decide(term: z3.BoolRef) -> bool:
    """The way of the run at a condition `term`."""
    simpler = z3.simplify(term)
    known = settled(simpler)
    if known is not None:
        return known
    if not _EXPLORATIONS.runs:
        raise TypeError(f"a condition on symbolic values outside an exploration: {term}")
    return _EXPLORATIONS.runs[-1].decide(term, simpler)


@contextmanager
def numbered_anew() -> Iterator[None]:
    """Number explorations from 1 on, so that exploring the same functions again gives fresh values the same names."""
    before, _EXPLORATIONS.count = _EXPLORATIONS.count, 0
    try:
        yield
    finally:
        _EXPLORATIONS.count = max(before, _EXPLORATIONS.count)


def assume(fact: z3.BoolRef) -> None:
    """Assume a fact that always holds for the values of the current run."""
    run = _EXPLORATIONS.runs[0]
    run.learned.append((len(run.forks), fact))
    if run.solver is not None:
        run.solver.add(fact)
    if run.example is not None and not z3.is_true(run.example.eval(fact, model_completion=True)):
        run.example = None


def fresh(name: str) -> z3.ArithRef:
    """A number of which nothing is known yet. Runs that go the same way get the same number."""
    run = _EXPLORATIONS.runs[0]
    run.named += 1
    return z3.Int(f"{name}!{_EXPLORATIONS.count}!{run.named}")


def fresh_function(name: str) -> z3.FuncDeclRef:
    """A function from numbers to numbers, of which nothing is known yet."""
    run = _EXPLORATIONS.runs[0]
    run.named += 1
    return z3.Function(f"{name}!{_EXPLORATIONS.count}!{run.named}", z3.IntSort(), z3.IntSort())


def remembered(key: Any, make: Callable[[], Any], learn: Callable[[], None] = lambda: None) -> Any:
    """The same value for the same key within the current run. The facts about it are learned when it is made."""
    known = _EXPLORATIONS.runs[0].known
    if key not in known:
        known[key] = make()
        learn()
    return known[key]


def explore(function: Callable[[], Any], assumptions: Sequence[z3.BoolRef] | z3.Solver | None = ()) -> list[Path]:
    """All paths of `function` that are feasible under the assumptions; with `None`, also infeasible ones.

    A solver that holds the assumptions may be given in their place. It is left as it was.
    """
    if not _EXPLORATIONS.runs:
        _EXPLORATIONS.count += 1
    solver: z3.Solver | None = None
    if isinstance(assumptions, z3.Solver):
        solver = assumptions
    elif assumptions is not None:
        solver = z3.Solver()
        solver.add(*assumptions)
    waiting: list[tuple[Turn, ...]] = [()]
    paths = []
    while waiting:
        run = _PathRun(waiting.pop(), solver)
        if solver is not None:
            solver.push()
        _EXPLORATIONS.runs.append(run)
        try:
            value = function()
        except _InfeasibleError:
            pass
        else:
            paths.append(Path(tuple(run.forks), tuple(run.learned), value))
        finally:
            _EXPLORATIONS.runs.pop()
            if solver is not None:
                solver.pop()
        waiting += run.alternatives
    return paths
