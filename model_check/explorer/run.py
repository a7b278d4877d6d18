"""A run of a model: its states and steps, and the place in it where one is."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from kspec.model_check.core.exploration import NotebookTrace, Trace, TraceStep
from kspec.model_check.core.model import Action, Argument, Arrow, Event, Model, State
from kspec.model_check.core.nearest import instead_of
from kspec.model_check.explorer.address import Address, AddressStep, digest_of, parameters_to_write
from kspec.model_check.explorer.errors import RefusedMessageError
from kspec.model_check.explorer.marks import marks_of
from kspec.model_check.explorer.moves import (
    MoveEntry,
    Moves,
    MoveTable,
    beyond,
    bound_as_json,
    forbidden_by,
    key_of,
    moves_of,
    party_of,
    rules_that_forbid,
)
from kspec.model_check.explorer.rules import rule_as_json
from kspec.model_check.explorer.verdicts import PropertyWatch
from kspec.model_check.models import ModelEntry
from kspec.model_check.traces.encode import as_json
from kspec.model_check.traces.parameters import option_name
from kspec.model_check.traces.render import action_in_words, party_name, told

MOST_MOVES = 2_000
"""The moves that a model may have here: each view has all of them, with what forbids them."""


class RunStep(NamedTuple):
    """A step of a run: the way to name it, the action that it took, the state after it, and the step for readers."""

    named: AddressStep
    action: Action
    state: State
    described: dict[str, Any]


class Run:
    """A run, and a position in it. Positions are the numbers of states, as in traces: the initial state is 1.

    Steps behind the position are kept until another step is taken in their place.
    """

    def __init__(self, entry: ModelEntry, given: Mapping[str, Any]) -> None:
        self.entry = entry
        self.model: Model = entry.build(given)
        self.moves: Moves = moves_of(self.model)
        if len(self.moves) > MOST_MOVES:
            raise RefusedMessageError(
                "bad-model",
                f"within these bounds model {self.model.name} has {len(self.moves):,} moves, and a view shows"
                f" {MOST_MOVES:,} at most; choose smaller bounds (kspec check takes these)",
            )
        self.table = MoveTable(self.model, self.moves)
        self.watch = PropertyWatch(self.model)
        self.steps: list[RunStep] = []
        self.position = 1

    @property
    def states(self) -> list[State]:
        """The states up to the position."""
        return [self.model.initial, *(step.state for step in self.steps[: self.position - 1])]

    @property
    def state(self) -> State:
        """The present state."""
        return self.steps[self.position - 2].state if self.position > 1 else self.model.initial

    @property
    def trace(self) -> Trace:
        """The run up to the position."""
        steps = self.steps[: self.position - 1]
        taken = (TraceStep(step.action, step.state) for step in steps)
        return NotebookTrace(self.model, (TraceStep(None, self.model.initial), *taken))

    def address(self, steps: Sequence[AddressStep] | None = None, end: State | None = None) -> str:
        """The address of the run up to the position, or of another run of the model."""
        if steps is None:
            steps = [step.named for step in self.steps[: self.position - 1]]
        written = parameters_to_write(self.entry, self.model.parameters)
        digest = digest_of(self.model, self.state if end is None else end)
        return Address(self.entry.name, written, tuple(steps), digest).text()

    def whole_address(self) -> str:
        """The address of all steps that are kept, those behind the position among them."""
        end = self.steps[-1].state if self.steps else self.model.initial
        return self.address([step.named for step in self.steps], end)

    def move(self, action: str, args: Mapping[str, Argument]) -> MoveEntry:
        """The move with this name and these arguments; `RefusedMessageError` if the model has none."""
        found = self.moves.get(key_of(action, args))
        if found is not None:
            return found
        if action not in self.model.action_names:
            others = instead_of(action, self.model.action_names, "the view lists all of them")
            raise RefusedMessageError("unknown-action", f"model {self.model.name} has no action {action!r}; {others}")
        step = AddressStep(action, tuple(args.items())).label
        takes = next(move.args for move in self.moves.values() if move.name == action)
        if set(args) != set(takes):
            has = ", ".join(takes) or "nothing"
            raise RefusedMessageError("bad-argument", f"{step}: the arguments of {action} are {has}")
        values = {name: sorted({str(move.args[name]) for move in self._called(action)}) for name in takes}
        wrong = next((name for name in takes if str(args[name]) not in values[name]), None)
        if wrong is None:
            raise RefusedMessageError(
                "bad-argument", f"{step}: within these bounds no {action} has these arguments together"
            )
        raise RefusedMessageError(
            "bad-argument", f"{step}: {wrong} is {', '.join(values[wrong])} within these bounds, not {args[wrong]}"
        )

    def _called(self, action: str) -> list[MoveEntry]:
        return [move for move in self.moves.values() if move.name == action]

    def ways(self, move: MoveEntry, state: State) -> list[tuple[Action, State]]:
        """The ways to take a move in a state, within the model's bounds."""
        return [(action, after) for action, after in move.successors(state) if beyond(self.model, after) is None]

    def take(self, move: MoveEntry, choice: int = 1) -> None:
        """Take a move at the position. `RefusedMessageError` with the guard that forbids it if it is not possible."""
        before = self.state
        ways = self.ways(move, before)
        if not 1 <= choice <= max(len(ways), 1):
            many = f"{len(ways)} ways" if len(ways) > 1 else "one way"
            raise RefusedMessageError("bad-choice", f"{move.variants[0].label} can be taken in {many} here, not {choice}")
        if not ways:
            raise self._not_enabled(move, before)
        action, after = ways[choice - 1]
        named = AddressStep(move.name, tuple(move.args.items()), choice)
        kept = self.steps[self.position - 1 :]
        if not kept or kept[0].named != named:
            described = self._describe(named, before, action, after)
            self.steps[self.position - 1 :] = [RunStep(named, action, after, described)]
        self.position += 1

    def _not_enabled(self, move: MoveEntry, state: State) -> RefusedMessageError:
        reason = self.obstacle(move, state)
        words = f"{move.variants[0].label} is not possible here: its {reason['kind']} forbids it, {reason['words']}"
        return RefusedMessageError("not-enabled", words, forbidden_by=reason)

    def obstacle(self, move: MoveEntry, state: State) -> dict[str, Any]:
        """The obstacle to a move that is not possible, with the rules that it calls."""
        for _, after in move.successors(state):
            bound = beyond(self.model, after)
            if bound is not None:
                return {**bound_as_json((bound, after)), "rules": []}
        rules = [rule_as_json(rule, self.entry) for rule in rules_that_forbid(move, state)]
        return {**forbidden_by(move, state), "rules": rules}

    def named(self, trace: Trace) -> list[AddressStep]:
        """The steps of a run of the model, by names."""
        found = []
        for before, step in pairwise(trace):
            assert step.action is not None
            move = self.move(step.action.name, step.action.args)
            states = [after for _, after in self.ways(move, before.state)]
            found.append(AddressStep(move.name, tuple(move.args.items()), states.index(step.state) + 1))
        return found

    def _describe(self, named: AddressStep, before: State, action: Action, after: State) -> dict[str, Any]:
        taken = TraceStep(action, after)
        return {
            "number": self.position + 1,
            **step_as_json(named),
            "words": action_in_words(action),
            "party": party_name(party_of(action)),
            "events": [event_as_json(event) for event in told(self.model, TraceStep(None, before), taken)],
            "violates": self.watch.violated_at(after),
            "marks": marks_of(self.model, before, after),
        }


def address_of(entry: ModelEntry, parameters: Mapping[str, Any], trace: Trace) -> str:
    """The address of a run of a model."""
    run = Run(entry, parameters)
    return run.address(run.named(trace), trace[-1].state)


def step_as_json(step: AddressStep) -> dict[str, Any]:
    """A step as messages name it."""
    return {"action": step.action, "args": as_json(dict(step.args)), "choice": step.choice}


def event_as_json(event: Event) -> dict[str, Any]:
    """An arrow or a note of a diagram."""
    if isinstance(event, Arrow):
        return {"from": party_name(event.source), "to": party_name(event.target), "words": event.text}
    return {"at": party_name(event.party), "words": event.text}


def present_parameters(run: Run, entry: ModelEntry) -> dict[str, Any]:
    """The parameters of a run that another model has, too."""
    known = {parameter.name for parameter in entry.parameters}
    return {name: value for name, value in run.model.parameters.items() if name in known}


def parameter_names(entry: ModelEntry) -> dict[str, str]:
    """A model's parameters by the names that messages have: `log-size` is `log_size`."""
    return {option_name(parameter.name): parameter.name for parameter in entry.parameters}
