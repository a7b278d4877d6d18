"""The transitions of an explored model: every state is expanded once more, and its successors are looked up in the store."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kspec.model_check.core.exploration import Limits, uninterrupted
from kspec.model_check.core.model import Model
from kspec.model_check.engines.compiled import search
from kspec.model_check.engines.compiled.compilation import kernel
from kspec.model_check.engines.compiled.intrinsics import load_word, prefetch
from kspec.model_check.engines.compiled.kernels import (
    ACTION_MASK,
    INDEX_MASK,
    SHARD_SHIFT,
    SHARDS,
    Bytes,
    Codes,
    Integers,
    Words,
    slot_of,
    tag_of,
)
from kspec.model_check.engines.compiled.search import Search, Workspace
from kspec.model_check.engines.compiled.store import available_memory
from kspec.model_check.graphs.graph import GraphError, StateGraph, Transitions, Values

MOST_STATES = (1 << 31) - 1
BYTES_PER_TRANSITION = 14
"""Target and action, held twice while they are sorted, and a little more."""

BYTES_PER_STATE = 28
"""In addition to the state itself: its id, its first transition, its number of successors."""

_Numbers = NDArray[np.int64]


@kernel
def look_up(
    words: int,
    size: int,
    last: Any,
    store: Bytes,
    shard_base: Integers,
    prefix: Integers,
    index: Codes,
    index_base: Integers,
    index_size: Integers,
    linear: Words,
    count: int,
    positions: Integers,
    actions: NDArray[np.uint16],
) -> int:
    """Find where the store holds each of `count` successors, counted through all shards, and the action that led to it.

    Returns how many were found: all of them if the exploration was complete.
    """
    stride = words + 1
    ahead = 16
    for i in range(count):
        if i + ahead < count:
            hashed = linear[(i + ahead) * stride + words]
            shard = np.int64(hashed >> SHARD_SHIFT)
            prefetch(index, index_base[shard] + np.int64(slot_of(hashed, index_size[shard])))
        at = i * stride
        hashed = linear[at + words]
        shard = np.int64(hashed >> SHARD_SHIFT)
        base, index_at, places = shard_base[shard], index_base[shard], index_size[shard]
        tag, place = tag_of(hashed), np.int64(slot_of(hashed, places))
        while True:
            entry = index[index_at + place]
            if entry == np.uint32(0):
                return i
            if (entry & ~INDEX_MASK) == tag:
                number = np.int64(entry & INDEX_MASK) - 1
                known = (base + number) * size
                same = load_word(store, known + 8 * (words - 1)) & last == linear[at + words - 1]
                for k in range(words - 1):
                    same = same and load_word(store, known + 8 * k) == linear[at + k]
                if same:
                    positions[i] = prefix[shard] + number
                    actions[i] = np.uint16(hashed & ACTION_MASK)
                    break
            place += 1
            if place == places:
                place = np.int64(0)
    return count


@kernel
def put_in_order(
    ids: NDArray[np.int32],
    degrees: Integers,
    targets: NDArray[np.int32],
    actions: NDArray[np.uint16],
    first: Integers,
    all_targets: NDArray[np.int32],
    all_actions: NDArray[np.uint16],
) -> None:
    """Copy the transitions of some states to their places among all transitions."""
    source = 0
    for i in range(ids.size):
        to = first[ids[i]]
        for _ in range(degrees[i]):
            all_targets[to] = targets[source]
            all_actions[to] = actions[source]
            to += 1
            source += 1


@kernel
def unpack(content: Bytes, size: int, word: int, shift: Any, mask: Any, numbers: NDArray[np.uint32]) -> None:
    """The value numbers of one slot in all states."""
    for i in range(numbers.size):
        numbers[i] = np.uint32((load_word(content, i * size + 8 * word) >> shift) & mask)


class _EdgePiece(NamedTuple):
    """The transitions of some states, whose positions are counted through all shards; `missing` are entries to learn."""

    positions: _Numbers
    degrees: _Numbers
    targets: NDArray[np.int32]
    actions: NDArray[np.uint16]
    postponed: _Numbers
    missing: NDArray[np.uint64]


class _GraphSearch(Search):
    """A search that keeps what is needed to find the transitions afterwards. It rebuilds no traces."""

    def conclude(self) -> None:
        self.add_up()

    def graph(self) -> StateGraph:
        """The graph of the explored states."""
        self._make_sure_of_memory()
        prefix = np.concatenate([[0], np.cumsum(self.store.count)]).astype(np.int64)
        ids = self._ids(prefix)
        transitions = self._transitions(prefix, ids)
        return StateGraph(self.model, self.result.levels, transitions, self._unpacker(prefix, ids))

    def _make_sure_of_memory(self) -> None:
        states, transitions = self.store.states, self.result.transitions
        needed = states * (BYTES_PER_STATE + self.fields.size) + transitions * BYTES_PER_TRANSITION
        if states > MOST_STATES:
            raise GraphError(f"{states:,} states are too many for a graph; at most {MOST_STATES:,} can be numbered")
        if needed > (free := available_memory() if self.memory is None else self.memory):
            raise GraphError(
                f"the graph of {states:,} states and {transitions:,} transitions takes {needed / 1e6:,.0f} MB,"
                f" {free / 1e6:,.0f} MB are left: choose smaller bounds"
            )

    def _ids(self, prefix: _Numbers) -> NDArray[np.int32]:
        """Each state's id by its position. Ids are in order of levels and, within a level, of shards."""
        ids = np.empty(int(prefix[-1]), np.int32)
        following = 0
        for begin, end in pairwise(self.levels):
            for shard in range(SHARDS):
                low, high = int(prefix[shard] + begin[shard]), int(prefix[shard] + end[shard])
                ids[low:high] = np.arange(following, following + high - low)
                following += high - low
        return ids

    def _transitions(self, prefix: _Numbers, ids: NDArray[np.int32]) -> Transitions:
        pieces = self._pieces(prefix)
        degrees = np.zeros(ids.size, np.int64)
        for piece in pieces:
            degrees[ids[piece.positions]] = piece.degrees
        first = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
        targets, actions = np.empty(int(first[-1]), np.int32), np.empty(int(first[-1]), np.uint16)
        while pieces:
            piece = pieces.pop()
            put_in_order(ids[piece.positions], piece.degrees, ids[piece.targets], piece.actions, first, targets, actions)
        assert targets.size == self.result.transitions, "the second expansion found other transitions than the first"
        return Transitions(first, targets, actions)

    def _pieces(self, prefix: _Numbers) -> list[_EdgePiece]:
        """The transitions of all states, some at a time; states that must wait for a rule's result come in later rounds."""
        pieces: list[_EdgePiece] = []
        listed, use_list, end = np.empty(0, np.int64), False, int(prefix[-1])
        while end:
            chunks = [(low, min(end, low + search.CHUNK)) for low in range(0, end, search.CHUNK)]
            found = self.do_all([partial(self._piece, prefix, low, high, listed, use_list) for low, high in chunks])
            self.learn(np.concatenate([piece.missing for piece in found]))
            listed, use_list = np.concatenate([piece.postponed for piece in found]), True
            end = listed.size
            pieces += found
        return pieces

    def _piece(self, prefix: _Numbers, begin: int, end: int, listed: _Numbers, use_list: bool) -> _EdgePiece:
        workspace: Workspace = self.workspace()
        degrees = np.full(end - begin, -1, np.int64)
        start = np.zeros(SHARDS, np.int64)
        missing, postponed, outcome = self.successors(workspace, start, prefix, begin, end, listed, use_list, degrees)
        count = int(outcome[0])
        places, actions = np.empty(count, np.int64), np.empty(count, np.uint16)
        store, layout = self.store, self.fields.arrays
        found = look_up(
            self.fields.words,
            layout.size,
            layout.last,
            store.content,
            store.base,
            prefix,
            store.index,
            store.index_base,
            store.index_size,
            workspace.linear,
            count,
            places,
            actions,
        )
        assert found == count, "a successor is not among the states explored"
        self.give_back(workspace)
        expanded = degrees >= 0
        positions = (listed[begin:end] if use_list else np.arange(begin, end))[expanded]
        return _EdgePiece(positions, degrees[expanded], places.astype(np.int32), actions, postponed.copy(), missing.copy())

    def _unpacker(self, prefix: _Numbers, ids: NDArray[np.int32]) -> Callable[[int], Values]:
        """A function that reads a slot's values from the packed states, which are put in the order of ids."""
        fields, domains = self.fields, self.slot_domains
        content = np.zeros((ids.size + 8, fields.size), np.uint8)  # whole words are read, so padding must follow
        for shard in range(SHARDS):
            low, high = int(prefix[shard]), int(prefix[shard + 1])
            content[ids[low:high]] = self.store.bytes_at(shard, 0, high - low).reshape(-1, fields.size)
        packed, layout = content.reshape(-1), fields.arrays

        def values_of(slot: int) -> Values:
            numbers = np.empty(ids.size, np.uint32)
            unpack(packed, fields.size, int(layout.word[slot]), layout.shift[slot], layout.mask[slot], numbers)
            return Values(numbers, domains[slot].values)

        return values_of


def state_graph(
    model: Model,
    workers: int | None = None,
    max_states: int | None = None,
    report: Callable[[Any], None] | None = None,
    memory: int | None = None,
) -> StateGraph:
    """Explore a model and return its graph. `memory` is the number of bytes that the search, and then the graph, may take.

    `report` gets the progress of the exploration, which stops at about `max_states` states. Raises `GraphError` if the
    exploration does not come to an end, or if the graph does not fit into memory.
    """
    workers = workers or os.cpu_count() or 1
    search = _GraphSearch(model, [], Limits(max_states=max_states, report=report), workers, memory)
    result = uninterrupted(search.run())
    if not result.complete:
        raise GraphError(f"there is no whole graph: the exploration stopped early, {result.stopped_because}")
    if workers == 1:
        return search.graph()
    with ThreadPoolExecutor(workers) as pool:
        search.pool = pool
        return search.graph()
