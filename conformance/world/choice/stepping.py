"""Quick steps of a model in plain Python: each rule is evaluated once for each distinct input, as the compiled engine does.

A state is a tuple of small numbers, one for the value of each slot. Two models with the same slots may share the numbers, so
that their states can be compared.
"""

from typing import Any

from kspec.model_check.core.model import REFUSED, Action, Effect, Local, Model, State

Packed = tuple[int, ...]
"""A state: the number of each slot's value."""


class ValueNumbers:
    """Numbers for values."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._values: list[Any] = []

    def number(self, value: Any) -> int:
        """The number of a value."""
        key = (type(value), value)
        if key not in self._numbers:
            self._numbers[key] = len(self._values)
            self._values.append(value)
        return self._numbers[key]

    def value(self, number: int) -> Any:
        """The value with this number."""
        return self._values[number]


class _CachedFunction:
    """A function of some slots, evaluated once for each combination of their values."""

    def __init__(self, local: Local) -> None:
        self.places = tuple(slot.position for slot in local.slots)
        self.compute = local.bind()
        self.known: dict[Packed, Any] = {}


class _CachedAction:
    """An action with its guards and effects."""

    def __init__(self, action: Action) -> None:
        self.guards = [_CachedFunction(guard) for guard in action.guards]
        self.effects = [(_CachedFunction(effect.local), effect) for effect in action.effects]
        self.bound = action.bind()


class Quick:
    """A model whose actions are taken on packed states."""

    def __init__(self, model: Model, interned: ValueNumbers) -> None:
        self.model = model
        self._interned = interned
        self._steps = [_CachedAction(action) for action in model.actions]
        self.initial = tuple(interned.number(value) for value in model.initial)

    def state(self, packed: Packed) -> State:
        """The state itself."""
        return tuple(map(self._interned.value, packed))

    def fire(self, number: int, packed: Packed) -> Packed | None:
        """The successor by an action, `None` where it is not enabled."""
        step = self._steps[number]
        try:
            for guard in step.guards:
                if not self._look(guard, packed):
                    return None
            after = list(packed)
            for cached, effect in step.effects:
                written = self._written(cached, effect, packed)
                if written is None:
                    return None
                for slot, value in zip(effect.writes, written, strict=True):
                    after[slot.position] = value
        except (AssertionError, LookupError, TypeError, ValueError, AttributeError):
            # An error does not count where another guard or effect rules the action out: `Action.bind` knows.
            found = step.bound(self.state(packed))
            return None if found is None else tuple(map(self._interned.number, found))
        return tuple(after)

    def _look(self, cached: _CachedFunction, packed: Packed) -> Any:
        key = tuple(packed[place] for place in cached.places)
        if key not in cached.known:
            cached.known[key] = cached.compute(self.state(packed))
        return cached.known[key]

    def _written(self, cached: _CachedFunction, effect: Effect, packed: Packed) -> Packed | None:
        key = tuple(packed[place] for place in cached.places)
        if key not in cached.known:
            values = cached.compute(self.state(packed))
            if values is REFUSED:
                cached.known[key] = None
            else:
                values = (values,) if len(effect.writes) == 1 else values
                cached.known[key] = tuple(map(self._interned.number, values))
        written: Packed | None = cached.known[key]
        return written
