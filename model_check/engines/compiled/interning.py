"""Values as small numbers: each domain numbers its values in the order in which they are first met."""

from collections.abc import Iterable, Sequence
from typing import Any

from model_check.core.model import Model


class Domain:
    """The values that some slots take, numbered from 0."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        """The number of a value, a new one if it is met for the first time."""
        number = self.numbers.get(value)
        if number is None:
            number = self.numbers[value] = len(self.values)
            self.values.append(value)
        return number

    def number_all(self, values: Iterable[Any]) -> list[int]:
        number = self.number
        return [number(value) for value in values]

    def renumber(self, first: Sequence[Any]) -> list[int] | None:
        """Give these values the first numbers, in order. Returns new numbers by old ones, `None` if no number changes."""
        before, shared = self.values, min(len(first), len(self.values))
        if before[:shared] == first[:shared]:
            self.number_all(first[shared:])
            return None
        those = set(first)
        self.values = [*first, *(value for value in before if value not in those)]
        self.numbers = {value: number for number, value in enumerate(self.values)}
        return self.number_all(before)

    def __len__(self) -> int:
        return len(self.values)


def domains_of(model: Model) -> list[Domain]:
    """A domain for each slot, then for each view. Slots of a family share one if they are of or about brokers."""
    shared: dict[str, Domain] = {}
    alone = [slot.broker is None and slot.about is None for slot in model.slots]
    slots = [
        Domain() if by_itself else shared.setdefault(slot.family, Domain())
        for slot, by_itself in zip(model.slots, alone, strict=True)
    ]
    return [*slots, *(Domain() for _ in model.views)]


def distinct(domains: Sequence[Domain]) -> list[Domain]:
    """The domains; a domain that several slots share is listed once."""
    return list({id(domain): domain for domain in domains}.values())
