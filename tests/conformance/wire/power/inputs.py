"""All that a rule is ever given within the bounds of the models, and what it makes of it.

Rules are pure: one that is weakened and gives the same for each of these inputs cannot show itself anywhere.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

MOST_INPUTS = 20_000
"""Inputs of a rule that are kept. One with more is tried in all states instead."""

NOTING = "__note_input__"


class RuleInputs:
    """The inputs of one rule with its results; none if they cannot be kept."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self.sound = copied(function, function.__code__)
        self._lists = inspect.isgeneratorfunction(function)
        self._results: dict[Any, Any] | None = {}

    def noted(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """The result of the rule, which is noted."""
        result = tuple(self.sound(*given, **named)) if self._lists else self.sound(*given, **named)
        if self._results is not None:
            try:
                self._results[given, tuple(named.items())] = result
            except TypeError:
                self._results = None
            else:
                self._results = self._results if len(self._results) <= MOST_INPUTS else None
        return iter(result) if self._lists else result

    def are_alike(self, weak: CodeType) -> bool:
        """Whether the rule with other code gives the same everywhere. It is not, if nobody knows."""
        if self._results is None:
            return False
        weakened = copied(self._function, weak)
        return all(self._gives(weakened, key, result) for key, result in self._results.items())

    def _gives(self, weakened: FunctionType, key: Any, result: Any) -> bool:
        given, named = key
        try:
            found = weakened(*given, **dict(named))
            return bool(result == (tuple(found) if self._lists else found))
        except Exception:
            return False


def copied(function: FunctionType, code: CodeType) -> FunctionType:
    """A function with other code, and all else as it is."""
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def inputs_of(functions: Mapping[str, FunctionType], runs: Iterable[Callable[[], object]]) -> dict[str, RuleInputs]:
    """The inputs of rules in all that is run."""
    found = {path: RuleInputs(function) for path, function in functions.items()}
    with _noting(functions, found):
        for run in runs:
            run()
    return found


@contextmanager
def _noting(functions: Mapping[str, FunctionType], found: Mapping[str, RuleInputs]) -> Iterator[None]:
    sound = {path: function.__code__ for path, function in functions.items()}
    try:
        for number, (path, function) in enumerate(functions.items()):
            function.__globals__[f"{NOTING}{number}"] = found[path].noted
            function.__code__ = _noting_code(f"{NOTING}{number}")
        yield
    finally:
        for number, (path, function) in enumerate(functions.items()):
            function.__code__ = sound[path]
            function.__globals__.pop(f"{NOTING}{number}", None)


def _noting_code(name: str) -> CodeType:
    made: dict[str, Any] = {}
    exec(f"def noting(*given, **named):\n    return {name}(given, named)", made)
    code = made["noting"].__code__
    assert isinstance(code, CodeType)
    return code
