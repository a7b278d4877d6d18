"""Values as small numbers: each domain numbers its values in the order in which they are first met.

A number stands for one value of one type. Values that are equal though their types differ, such as `1` and `True`, are
refused in slots, as by every engine (`core.values`). In views they have numbers of their own: rules may tell them apart.
"""

from collections.abc import Sequence
from typing import Any

from kspec.model_check.core.model import Model
from kspec.model_check.core.values import alike, check_value, groups_of_slots, not_hashable, unlike


class CaughtError:
    """The result of a function that raised an error. It is true, and equal to that of a like error.

    Functions are evaluated in advance, also for values that another guard rules out, and need not be defined there. So an
    error counts only where a search finds that it is asked for. A view can have this value, too.
    """

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CaughtError) and self._as_text == other._as_text

    def __hash__(self) -> int:
        return hash(self._as_text)

    @property
    def _as_text(self) -> tuple[type[Exception], str]:
        return type(self.error), str(self.error)


class Domain:
    """The values that some slots take, numbered from 0. `name` says whose values they are."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: list[Any] = []
        self.numbers: dict[Any, int] = {}
        self.raised = False
        """Whether one of the values is `CaughtError`."""

    def number(self, value: Any) -> int:
        """The number of a value, a new one if it is met for the first time; `ModelError` for one that cannot be a slot's."""
        try:
            number = self.numbers.get(value)
        except TypeError as error:
            raise not_hashable(self.name, value) from error
        if number is None:
            check_value(self.name, value)
            number = self.numbers[value] = len(self.values)
            self.values.append(value)
            self.raised = self.raised or type(value) is CaughtError
        elif not alike(self.values[number], value):
            return self.number_unlike(number, value)
        return number

    def number_unlike(self, number: int, value: Any) -> int:
        """The number of a value that is equal to the value of this number, though its type differs."""
        raise unlike(self.name, self.values[number], value)

    def number_all(self, values: Sequence[Any]) -> list[int]:
        # The same object comes up again and again, and to find it by its identity costs less than by its value.
        known: dict[int, int] = {}
        numbers = []
        for value in values:
            number = known.get(id(value))
            if number is None:
                number = known[id(value)] = self.number(value)
            numbers.append(number)
        return numbers

    def renumber(self, first: Sequence[Any]) -> list[int] | None:
        """Give these values the first numbers, in order. Returns new numbers by old ones, `None` if no number changes."""
        before, shared = self.values, min(len(first), len(self.values))
        for value in first:
            if value in self.numbers and not alike(before[self.numbers[value]], value):
                raise unlike(self.name, before[self.numbers[value]], value)
        if before[:shared] == first[:shared]:
            self.number_all(first[shared:])
            return None
        those = set(first)
        self.values = [*first, *(value for value in before if value not in those)]
        self.numbers = {value: number for number, value in enumerate(self.values)}
        return self.number_all(before)

    def __len__(self) -> int:
        return len(self.values)


class ViewDomain(Domain):
    """The values of a view: those that are equal though their types differ have different numbers."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._unlike: dict[Any, list[int]] = {}

    def number_unlike(self, number: int, value: Any) -> int:
        others = self._unlike.setdefault(value, [])
        for other in others:
            if alike(self.values[other], value):
                return other
        others.append(len(self.values))
        self.values.append(value)
        return others[-1]


def domains_of(model: Model) -> list[Domain]:
    """A domain for each slot, then for each view. Slots of a family share one if they are of or about brokers."""
    shared: dict[str, Domain] = {}
    slots = [shared.setdefault(name, Domain(f"model {model.name}: slot {name}")) for name in groups_of_slots(model)]
    return [*slots, *(ViewDomain(f"model {model.name}: view {view.name}") for view in model.views)]


def distinct(domains: Sequence[Domain]) -> list[Domain]:
    """The domains; a domain that several slots share is listed once."""
    return list({id(domain): domain for domain in domains}.values())
