"""Small models drawn at random, and an independent search of them: a few lines that use no engine and no `bind`.

A rule is a table: a checksum of the arguments' `repr`, which tells `1`, `True` and `1.0` apart, chooses among its outcomes.
It may also raise an error, or give what no effect may give.
"""

from binascii import crc32
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hypothesis import strategies as st

from kspec.model_check.core.model import REFUSED, Effect, Local, Model, Property, Slot, State, then, when
from tests.limits.turns import Turns


class Like(NamedTuple):
    """A named tuple that is equal to others with the same fields."""

    number: int


class Alike(NamedTuple):
    """Another one."""

    number: int


class UndefinedError(Exception):
    """A rule is not defined for its arguments."""


class PlainRefusedError(Exception):
    """A model is not one: an engine must say so."""


UNDEFINED, GENERATOR, LIST, TOO_MANY = "undefined", "generator", "list", "too many"
PURE: tuple[Any, ...] = (0, 1, 2)
MIXED: tuple[Any, ...] = (0, 1, True, 1.0, (1,), (True,), Like(1), Alike(1), frozenset({1}), frozenset({True}))


def rule(seed: int, outcomes: list[Any]) -> Callable[..., Any]:
    """A function with these outcomes."""

    def function(*arguments: Any) -> Any:
        outcome = outcomes[crc32(repr((seed, arguments)).encode()) % len(outcomes)]
        if outcome == UNDEFINED:
            raise UndefinedError
        if isinstance(outcome, tuple) and outcome[:1] == (GENERATOR,):
            return (value for value in outcome[1:])
        if isinstance(outcome, tuple) and outcome[:1] == (LIST,):
            return list(outcome[1:])
        return outcome

    return function


@st.composite
def models(draw: st.DrawFn) -> Model:
    """A model with some slots, views, actions, properties and bounds."""
    mixed = draw(st.booleans())
    value = st.sampled_from(MIXED if mixed else PURE)
    model = Model("drawn", {"mixed": mixed})
    family = draw(st.booleans())
    for key in range(draw(st.integers(1, 3))):
        model.slot("x", draw(value), key, key if family else None)

    def function(outcomes: st.SearchStrategy[Any], most: int) -> Callable[..., Any]:
        return rule(draw(st.integers(0, 99)), draw(st.lists(outcomes, min_size=1, max_size=most)))

    def reads(known: list[Any], most: int) -> list[Any]:
        return draw(st.lists(st.sampled_from(known), min_size=1, max_size=most))

    undefined = st.just(UNDEFINED)
    for number in range(draw(st.integers(0, 2))):
        model.view(f"view {number}", function(value | value | undefined, 4), *reads(model.slots, 2))
    known = [*model.slots, *model.views]
    answer = st.booleans() | st.booleans() | undefined

    def terms(most: int) -> list[Local]:
        return [when(function(answer, 3), *reads(known, 3)) for _ in range(draw(st.integers(0, most)))]

    for number in range(draw(st.integers(1, 3))):
        written = draw(st.lists(st.sampled_from(model.slots), min_size=1, max_size=2, unique=True))
        apart = len(written) == 2 and draw(st.booleans())
        effects: list[Effect] = []
        for writes in [[slot] for slot in written] if apart else [written]:
            values: Any = st.tuples(*[value] * len(writes)) if len(writes) > 1 else value
            odd = st.sampled_from([REFUSED, UNDEFINED])
            if len(writes) > 1:
                odd |= st.tuples(st.sampled_from([GENERATOR, LIST]), value, value) | st.tuples(value, value, value)
            effects.append(then(writes, function(values | values | values | odd, 5), *reads(known, 3)))
        model.action(f"Act{number}", {}, terms(3), effects)
    for number in range(draw(st.integers(0, 2))):
        kind = model.always if draw(st.booleans()) else model.sometimes
        more: dict[str, Any] = {"twin": None} if kind == model.always else {}
        kind(f"Property{number}", terms(2), "…", **more)
    model.constraint += terms(1)
    return model


class Plain(NamedTuple):
    """Findings of the search, which an engine must find, too.

    `open` says that an engine may also end with an error: a term raises in a state as near as one that decides its
    property, so it depends on the order of the states of a level whether it is asked.
    """

    levels: list[int]
    actions: dict[str, int]
    deadlocks: int
    verdicts: dict[str, tuple[bool, int | None]]
    open: bool


def value_of(local: Local, state: State) -> Any:
    """The value of a function in a state: its views are evaluated when they are read, in order."""
    return local.function(
        *[
            state[read.position] if isinstance(read, Slot) else read.function(*[state[slot.position] for slot in read.reads])
            for read in local.reads
        ]
    )


def after(model: Model, state: State) -> Iterator[tuple[str, State]]:
    """The successors of a state, by the actions' names. What rules an action out counts more than another rule's error."""
    for action in model.actions:
        guards = [_given(guard, state) for guard in action.guards]
        effects = [_given(effect.local, state) for effect in action.effects]
        if False in guards or any(given is REFUSED for given in effects):
            continue
        if UNDEFINED in guards or any(given == UNDEFINED for given in effects):
            raise UndefinedError
        successor = list(state)
        for effect, given in zip(action.effects, effects, strict=True):
            if len(effect.writes) > 1 and not (isinstance(given, tuple) and len(given) == len(effect.writes)):
                raise PlainRefusedError
            for slot, value in zip(effect.writes, given if len(effect.writes) > 1 else [given], strict=True):
                successor[slot.position] = value
        yield action.name, tuple(successor)


def _given(local: Local, state: State) -> Any:
    try:
        return value_of(local, state)
    except UndefinedError:
        return UNDEFINED


def search(model: Model) -> Plain:
    """Visit every state, distinct by `repr`. `UndefinedError`: a rule raises. `PlainRefusedError`: the model is refused."""
    known, level = {repr(model.initial)}, [model.initial]
    kinds: dict[Any, str] = {}
    levels, fired, deadlocks, either = list[int](), Counter[str](), 0, False
    verdicts: dict[str, tuple[bool, int | None]] = {}
    turns = Turns()
    while level:
        turns.go()
        depth = len(levels)
        levels.append(len(level))
        for prop in model.properties:
            if prop.name not in verdicts:
                answers = [_decides(prop, state) for state in level]
                if any(answers):
                    verdicts[prop.name] = prop.kind == "sometimes", depth + 1
                    either = either or None in answers
                elif None in answers:
                    raise UndefinedError
        following = []
        for state in level:
            for slot, value in zip(model.slots, state, strict=True):
                if kinds.setdefault((slot.family if slot.broker is not None else slot.key, value), repr(value)) != repr(
                    value
                ):
                    raise PlainRefusedError
            successors = list(after(model, state))
            deadlocks += not successors
            for name, successor in successors:
                if not all(value_of(bound, successor) for bound in model.constraint):
                    continue
                fired[name] += 1
                if repr(successor) not in known:
                    known.add(repr(successor))
                    following.append(successor)
        level = following
    for prop in model.properties:
        verdicts.setdefault(prop.name, (prop.kind == "always", None))
    return Plain(levels, {action.name: fired[action.name] for action in model.actions}, deadlocks, verdicts, either)


def _decides(prop: Property, state: State) -> bool | None:
    """Whether a state decides a property; `None` where a term that is asked raises."""
    try:
        return any(bool(value_of(term, state)) != (prop.kind == "always") for term in prop.terms)
    except UndefinedError:
        return None
