"""Symmetry in the compiled engine: each successor is replaced by the one state that stands for its orbit.

Trying every renaming of brokers on every successor would cost more than symmetry saves. So brokers are sorted first, by a
signature that renaming does not change: the values of a broker's own slots, and its role in the slots that name brokers.
Only renamings that put the signatures in order are tried. Nearly always there is only one.
"""
# ruff: noqa: PLR0915 (a kernel is one loop nest: see `kernels.expand`)

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kspec.model_check.core.symmetry import Rename, Renaming, Symmetry
from kspec.model_check.engines.compiled.compilation import kernel
from kspec.model_check.engines.compiled.interning import Domain
from kspec.model_check.engines.compiled.intrinsics import load_word
from kspec.model_check.engines.compiled.kernels import HASH_MASK, Bytes, Integers, Layout, Words, finish_hash
from kspec.model_check.engines.compiled.layout import hash_weights

_ACTION_MASK = ~HASH_MASK
_ZERO = np.uint64(0)
_UNKNOWN = -1


class Orbits(NamedTuple):
    """Renamings of brokers as the kernel reads them; brokers and renamings are numbered from 0.

    `own` are the slots of each broker, in the same order for all; `shared` the other slots that name brokers; slots about a
    broker are in neither. `order` lists the brokers by their new names for each renaming, and `renaming_of` finds a renaming
    by that list. `moves` says where a renaming puts each slot. `renamed` maps a slot's value numbers to renamed ones: the
    slot's entries begin at `renamed_from` (-1: values stay), with `room` entries for each renaming. `classes` has the same
    form: for each broker and value it tells what remains of the value when all names except that broker's are removed.
    """

    own: Integers
    shared: Integers
    order: Integers
    renaming_of: Integers
    moves: Integers
    renamed_from: Integers
    room: Integers
    renamed: NDArray[np.int32]
    classes_from: Integers
    classes: NDArray[np.int32]
    weight: Words


class OrbitBook:
    """Learns what renamings do to value numbers."""

    def __init__(self, symmetry: Symmetry, domains: list[Domain]) -> None:
        self.symmetry = symmetry
        self.brokers = list(symmetry.model.interchangeable)
        slots = symmetry.model.slots
        self._tables: dict[int, _DomainTable] = {}
        self.table_of: list[_DomainTable | None] = []
        for slot, rule in zip(slots, symmetry.rules, strict=True):
            domain = domains[slot.position]
            self.table_of.append(
                None if rule is None else self._tables.setdefault(id(domain), _DomainTable(self, domain, rule))
            )
        by_broker: dict[int, list[int]] = {broker: [] for broker in self.brokers}
        for slot in slots:
            if slot.broker in by_broker and slot.key == slot.broker and slot.about is None:
                by_broker[slot.broker].append(slot.position)
        owned = {position for positions in by_broker.values() for position in positions}
        self.own = np.array(list(by_broker.values()), np.int64).reshape(len(self.brokers), -1)
        self.shared = np.array(
            [
                slot.position
                for slot in slots
                if self.table_of[slot.position] and slot.position not in owned and slot.about is None
            ],
            np.int64,
        )
        renamings = symmetry.renamings
        places = {broker: place for place, broker in enumerate(self.brokers)}
        count = len(self.brokers)
        self.order = np.zeros((len(renamings), count), np.int64)
        self.renaming_of = np.zeros(count**count, np.int64)
        for number, renaming in enumerate(renamings):
            for broker, name in renaming.items():
                self.order[number, places[name]] = places[broker]
            self.renaming_of[int((self.order[number] * count ** np.arange(count)).sum())] = number
        self.composed = np.array([[renamings.index(_after(one, first)) for first in renamings] for one in renamings])
        """The number of the renaming that applies the second index's renaming, then the first's."""
        self.weight = np.array(hash_weights(self.own.shape[1] + self.shared.size), np.uint64)

    def extend(self) -> bool:
        """Rename new values; returns whether there were any. Renaming may itself create new values."""
        changed = False
        for table in self._tables.values():
            changed |= table.extend()
        return changed

    def arrays(self) -> Orbits:
        """The renamings known so far, as arrays for the kernel."""
        renamed_from, classes_from, room = [], [], []
        starts: dict[int, tuple[int, int]] = {}
        at, classes_at = 0, 0
        for key, table in self._tables.items():
            starts[key] = at, classes_at
            at, classes_at = at + table.renamed.size, classes_at + table.classes.size
        for table_or_none in self.table_of:
            start = (-1, -1) if table_or_none is None else starts[id(table_or_none.domain)]
            renamed_from.append(start[0])
            classes_from.append(start[1])
            room.append(0 if table_or_none is None else table_or_none.renamed.shape[1])
        tables = list(self._tables.values())
        nothing = np.zeros(1, np.int32)
        return Orbits(
            self.own.ravel(),
            self.shared,
            self.order.ravel(),
            self.renaming_of,
            np.array(self.symmetry.moves, np.int64).ravel(),
            np.array(renamed_from, np.int64),
            np.array(room, np.int64),
            np.concatenate([nothing[:0], *(table.renamed.ravel() for table in tables)]) if tables else nothing,
            np.array(classes_from, np.int64),
            np.concatenate([nothing[:0], *(table.classes.ravel() for table in tables)]) if tables else nothing,
            self.weight,
        )


def _after(second: Renaming, first: Renaming) -> dict[int, int]:
    return {broker: second[name] for broker, name in first.items()}


class _DomainTable:
    """The renamings of one domain's values."""

    def __init__(self, book: OrbitBook, domain: Domain, rule: Rename) -> None:
        self.book, self.domain, self.rule = book, domain, rule
        self.done = 0
        self.renamed = np.full((len(book.symmetry.renamings), 64), _UNKNOWN, np.int32)
        self.classes = np.full((len(book.brokers), 64), _UNKNOWN, np.int32)
        first = book.brokers[0]
        self._fixing = [
            [number for number, renaming in enumerate(book.symmetry.renamings) if renaming[broker] == first]
            for broker in book.brokers
        ]

    def extend(self) -> bool:
        """Rename new values, a whole orbit at a time: the images of an image are images of the value itself."""
        domain, renamings = self.domain, self.book.symmetry.renamings
        before = self.done
        while self.done < len(domain):
            if self.done >= self.renamed.shape[1] or self.renamed[0, self.done] == _UNKNOWN:
                value = domain.values[self.done]
                images = np.array([domain.number(self.rule(value, renaming)) for renaming in renamings], np.int32)
                while len(domain) > self.renamed.shape[1]:
                    self.renamed, self.classes = _wider(self.renamed), _wider(self.classes)
                for first, image in enumerate(images):
                    of_image = images[self.book.composed[:, first]]
                    self.renamed[:, image] = of_image
                    self.classes[:, image] = [of_image[fixing].min() for fixing in self._fixing]
            self.done += 1
        return self.done != before


def _wider(array: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.concatenate([array, np.full_like(array, _UNKNOWN)], axis=1)


@kernel
def canonicalize(layout: Layout, orbits: Orbits, words: int, linear: Words, count: int) -> None:
    """Replace each of `count` successors, as `expand` leaves them, by the state that stands for its orbit."""
    field_word, field_shift, field_mask, weight = layout.word, layout.shift, layout.mask, layout.weight
    own, shared, order, renaming_of = orbits.own, orbits.shared, orbits.order, orbits.renaming_of
    moves, renamed_from, room, renamed = orbits.moves, orbits.renamed_from, orbits.room, orbits.renamed
    classes_from, classes, signature_weight = orbits.classes_from, orbits.classes, orbits.weight
    slots = field_word.size
    brokers = 0
    renamings = moves.size // slots
    while brokers * renamings < order.size:
        brokers += 1
    own_slots = own.size // brokers
    ids = np.empty(slots, np.int64)
    image, best = np.empty(slots, np.int64), np.empty(slots, np.int64)
    signature = np.empty(brokers, np.uint64)
    ranked = np.empty(brokers, np.int64)
    stride = words + 1
    for entry in range(count):
        at = entry * stride
        for slot in range(slots):
            ids[slot] = np.int64((linear[at + np.int64(field_word[slot])] >> field_shift[slot]) & field_mask[slot])
        for broker in range(brokers):
            total = _ZERO
            for place in range(own_slots):
                slot = own[broker * own_slots + place]
                start = classes_from[slot]
                seen = ids[slot] if start < 0 else np.int64(classes[start + broker * room[slot] + ids[slot]])
                total += np.uint64(seen) * signature_weight[place]
            for place in range(shared.size):
                slot = shared[place]
                seen = np.int64(classes[classes_from[slot] + broker * room[slot] + ids[slot]])
                total += np.uint64(seen) * signature_weight[own_slots + place]
            signature[broker] = total
            # Insertion sort.
            rank = broker
            while rank > 0 and signature[ranked[rank - 1]] > total:
                ranked[rank] = ranked[rank - 1]
                rank -= 1
            ranked[rank] = broker
        tied, code, power = False, 0, 1
        for rank in range(brokers):
            code += ranked[rank] * power
            power *= brokers
            if rank > 0 and signature[ranked[rank]] == signature[ranked[rank - 1]]:
                tied = True
        if not tied:
            chosen = renaming_of[code]
            if chosen == 0:
                continue
            for slot in range(slots):
                start = renamed_from[slot]
                number = ids[slot]
                if start >= 0:
                    number = np.int64(renamed[start + chosen * room[slot] + number])
                best[moves[chosen * slots + slot]] = number
        else:
            first = True
            for chosen in range(renamings):
                ordered = True
                for rank in range(1, brokers):
                    if signature[order[chosen * brokers + rank]] < signature[order[chosen * brokers + rank - 1]]:
                        ordered = False
                        break
                if not ordered:
                    continue
                for slot in range(slots):
                    start = renamed_from[slot]
                    number = ids[slot]
                    if start >= 0:
                        number = np.int64(renamed[start + chosen * room[slot] + number])
                    image[moves[chosen * slots + slot]] = number
                smaller = first
                if not first:
                    for slot in range(slots):
                        if image[slot] != best[slot]:
                            smaller = image[slot] < best[slot]
                            break
                if smaller:
                    best[:] = image
                    first = False
        action = linear[at + words] & _ACTION_MASK
        for k in range(words):
            linear[at + k] = _ZERO
        total = _ZERO
        for slot in range(slots):
            number_bits = np.uint64(best[slot])
            linear[at + np.int64(field_word[slot])] |= number_bits << field_shift[slot]
            total += number_bits * weight[slot]
        linear[at + words] = (finish_hash(total) & HASH_MASK) | action


@kernel
def represented(layout: Layout, orbits: Orbits, store: Bytes, base: int, count: int) -> int:
    """The number of states that some states of the store, one of each orbit, stand for.

    The size of an orbit is the number of renamings divided by the number of those that leave a state unchanged.
    """
    moves, renamed_from, room, renamed = orbits.moves, orbits.renamed_from, orbits.room, orbits.renamed
    slots = layout.word.size
    renamings = moves.size // slots
    ids = np.empty(slots, np.int64)
    total = 0
    for number in range(base, base + count):
        for slot in range(slots):
            word = load_word(store, number * layout.size + 8 * np.int64(layout.word[slot]))
            ids[slot] = np.int64((word >> layout.shift[slot]) & layout.mask[slot])
        unchanged = 0
        for renaming in range(renamings):
            same = True
            for slot in range(slots):
                start = renamed_from[slot]
                seen = ids[slot]
                if start >= 0:
                    seen = np.int64(renamed[start + renaming * room[slot] + seen])
                if ids[moves[renaming * slots + slot]] != seen:
                    same = False
                    break
            if same:
                unchanged += 1
        total += renamings // unchanged
    return total


def canonical_numbers(orbits: Orbits, layout: Layout, words: int, numbers: list[int]) -> list[int]:
    """The value numbers of the state that stands for the orbit of this one."""
    packed: Any = np.zeros(words + 1, np.uint64)
    for slot, number in enumerate(numbers):
        packed[layout.word[slot]] |= np.uint64(number) << layout.shift[slot]
    canonicalize(layout, orbits, words, packed, 1)
    found: list[int] = ((packed[layout.word] >> layout.shift) & layout.mask).tolist()
    return found
