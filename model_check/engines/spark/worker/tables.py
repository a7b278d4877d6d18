"""The explored state graph as tables, written by the exploration itself. `docs/spark.md` has the schema.

A state's key depends only on its content: on a digest of each slot's value. So it is the same in every process, and in
every exploration of the model, whatever numbers values have there.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from kspec.model_check.core.exploration import Exploration
from kspec.model_check.core.model import Local, Model, Property
from kspec.model_check.engines.compiled.compilation import kernel
from kspec.model_check.engines.compiled.interning import Domain
from kspec.model_check.engines.compiled.intrinsics import load_word
from kspec.model_check.engines.compiled.kernels import ACTION_MASK, Bytes, Integers, Layout, Words, finish_hash
from kspec.model_check.engines.compiled.layout import Fields
from kspec.model_check.engines.spark.worker.runs import Folder
from kspec.model_check.traces.columns import arrow_type, column_name, model_as_metadata, slot_type
from kspec.model_check.traces.encode import as_json
from kspec.spec.values import Error

KEY_BYTES = 16
ERRORS = list(Error)
_NO_ANSWER = -1
_WORD = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
_EIGHT, _ZERO = np.uint64(8), np.uint64(0)

Keys = NDArray[np.uint64]
"""Two words for each state."""


@kernel
def keys_of(layout: Layout, source: Bytes, stride: int, count: int, first: Integers, digests: Words, keys: Words) -> None:
    """The keys of `count` packed states, `stride` bytes from one to the next.

    `digests` has two words for each value of each slot; a slot's words begin at `first`. A key is their sum, mixed.
    """
    for i in range(count):
        low, high = _ZERO, _ZERO
        for slot in range(layout.word.size):
            word = load_word(source, np.uint64(i * stride) + _EIGHT * layout.word[slot])
            at = first[slot] + 2 * np.int64((word >> layout.shift[slot]) & layout.mask[slot])
            low += digests[at]
            high += digests[at + 1]
        keys[2 * i] = finish_hash(low)
        keys[2 * i + 1] = finish_hash(high)


class WorkerTables:
    """Writes rows of the tables to a folder, for states whose values are numbered in these domains."""

    def __init__(self, model: Model, properties: Sequence[Property], domains: Sequence[Domain], url: str) -> None:
        self.model, self.properties, self.domains = model, properties, domains[: len(model.slots)]
        self.folder = Folder(url)
        self.written: list[str] = []
        self._digest_of: list[dict[Any, bytes]] = [{} for _ in self.domains]
        self._first, self._digests = np.zeros(0, np.int64), np.zeros(0, np.uint64)
        self._described = model_as_metadata(model)
        self._actions = [action.name for action in model.actions]
        self._arguments = [json.dumps(as_json(action.args)) for action in model.actions]
        self._answered: dict[tuple[Any, ...], int] = {}

    def agree(self) -> None:
        """Adopt the numbers that values have now."""
        parts, first, at = [], [], 0
        for slot, domain, known in zip(self.model.slots, self.domains, self._digest_of, strict=True):
            for value in domain.values:
                if value not in known:
                    text = f"{slot.label} {json.dumps(as_json(value), sort_keys=True)}"
                    known[value] = hashlib.blake2b(text.encode(), digest_size=KEY_BYTES).digest()
            parts.append(b"".join(known[value] for value in domain.values))
            first.append(at)
            at += 2 * len(domain)
        self._first, self._digests = np.array(first, np.int64), np.frombuffer(b"".join(parts), np.uint64)

    def keys(self, fields: Fields, source: Bytes, stride: int, count: int) -> Keys:
        """The keys of some states."""
        keys = np.empty(2 * count, np.uint64)
        keys_of(fields.arrays, source, stride, count, self._first, self._digests, keys)
        return keys.reshape(-1, 2)

    def write_states(
        self, fields: Fields, packed: Bytes, count: int, depth: int, decided: Sequence[tuple[int, int]], partition: int
    ) -> None:
        """Write states of one depth; `decided` are sets of properties, as bits, and the states that decide them."""
        everything = numbers_of(fields, packed, np.arange(count), range(len(self.domains)))
        bits = np.zeros(count, np.uint64)
        for properties, number in decided:
            bits[number] |= np.uint64(properties)
        columns: dict[str, Any] = {
            "state": _binary(self.keys(fields, packed, fields.size, count)),
            "depth": pyarrow.array(np.full(count, depth, np.int32)),
            "violated": self._names(bits, "always"),
            "reached": self._names(bits, "sometimes"),
        }
        for slot, domain in zip(self.model.slots, self.domains, strict=True):
            encoded = [as_json(value) for value in domain.values]
            as_text = arrow_type(slot.holds) is None
            known = pyarrow.array([json.dumps(value) for value in encoded] if as_text else encoded, slot_type(slot))
            columns[column_name(slot)] = known.take(pyarrow.array(everything[:, slot.position]))
        self._write("states", partition, pyarrow.table(columns))

    def answers(self, fields: Fields, packed: Bytes, positions: Integers, words: Words) -> NDArray[np.int32]:
        """The errors, by place, that answer actions (given by their words) in the states at these positions."""
        actions, errors = (words & ACTION_MASK).astype(np.int64), np.full(words.size, _NO_ANSWER, np.int32)
        for action in np.unique(actions).tolist():
            answer = self.model.actions[action].answer
            if answer is not None:
                own = np.flatnonzero(actions == action)
                slots = [slot.position for slot in answer.slots]
                numbers = numbers_of(fields, packed, positions[own], slots)
                distinct, places = np.unique(numbers, axis=0, return_inverse=True)
                asked = [self._answer(action, answer, slots, row) for row in distinct.tolist()]
                errors[own] = np.array(asked, np.int32)[places.reshape(-1)]
        return errors

    def _answer(self, action: int, answer: Local, slots: list[int], numbers: list[int]) -> int:
        """The place of the error that answers an action when these slots hold the values with these numbers."""
        values = [self.domains[slot].values[number] for slot, number in zip(slots, numbers, strict=True)]
        key = (action, *values)
        if key not in self._answered:
            state: list[Any] = [None] * len(self.domains)
            for slot, value in zip(slots, values, strict=True):
                state[slot] = value
            self._answered[key] = ERRORS.index(answer.bind()(tuple(state)))
        return self._answered[key]

    def write_transitions(
        self, sources: Keys, targets: Keys, words: Words, errors: NDArray[np.int32], depth: int, partition: int
    ) -> None:
        """Write transitions from one depth, given the keys of their states, the words of hash and action, and answers."""
        actions = (words & ACTION_MASK).astype(np.int32)
        table = pyarrow.table(
            {
                "source": _binary(sources),
                "depth": pyarrow.array(np.full(len(actions), depth, np.int32)),
                "action": _dictionary(actions, self._actions),
                "arguments": _dictionary(actions, self._arguments),
                "error": pyarrow.DictionaryArray.from_arrays(
                    pyarrow.array(errors, mask=errors == _NO_ANSWER), [error.name for error in ERRORS]
                ).cast(_WORD),
                "target": _binary(targets),
            }
        )
        self._write("transitions", partition, table)

    def write_verdicts(self, result: Exploration) -> None:
        """Write the final verdicts of the properties."""
        rows = [
            {
                "property": verdict.prop.name,
                "kind": verdict.prop.kind,
                "meaning": verdict.prop.meaning,
                "holds": verdict.holds,
                "trace_length": len(verdict.trace) if verdict.trace else None,
            }
            for verdict in result.verdicts
        ]
        names = [("property", pyarrow.string()), ("kind", pyarrow.string()), ("meaning", pyarrow.string())]
        schema = pyarrow.schema([*names, ("holds", pyarrow.bool_()), ("trace_length", pyarrow.int32())])
        self._write("verdicts", 0, pyarrow.Table.from_pylist(rows, schema))

    def _names(self, bits: NDArray[np.uint64], kind: str) -> pyarrow.Array:
        """For each state the names of the properties of one kind that it decides."""
        chosen = sorted(set(bits.tolist()))
        lists = [
            [prop.name for number, prop in enumerate(self.properties) if prop.kind == kind and some >> number & 1]
            for some in chosen
        ]
        return pyarrow.array(lists, pyarrow.list_(pyarrow.string())).take(
            pyarrow.array(np.searchsorted(np.array(chosen, np.uint64), bits))
        )

    def _write(self, kind: str, partition: int, table: pyarrow.Table) -> None:
        self.written.append(self.folder.write_table(kind, partition, table.replace_schema_metadata(self._described)))


def numbers_of(fields: Fields, packed: Bytes, positions: Integers, slots: Sequence[int]) -> NDArray[np.int64]:
    """The numbers of the values that these slots hold in packed states, a state in each row."""
    whole = np.zeros((positions.size, 8 * fields.words), np.uint8)
    count = packed.size // fields.size
    whole[:, : fields.size] = packed[: count * fields.size].reshape(count, fields.size)[positions]
    content, layout = whole.view(np.uint64), fields.arrays
    columns = [(content[:, int(layout.word[slot])] >> layout.shift[slot]) & layout.mask[slot] for slot in slots]
    return np.stack(columns, axis=1).astype(np.int64) if columns else np.zeros((positions.size, 0), np.int64)


def _binary(keys: Keys) -> pyarrow.Array:
    content = np.ascontiguousarray(keys)
    return pyarrow.FixedSizeBinaryArray.from_buffers(
        pyarrow.binary(KEY_BYTES), len(content), [None, pyarrow.py_buffer(content)]
    )


def _dictionary(numbers: NDArray[np.int32], words: list[str]) -> pyarrow.Array:
    known = list(dict.fromkeys(words))
    places = np.array([known.index(word) for word in words], np.int32)
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(places[numbers]), known).cast(_WORD)
