"""The compiled loops: everything that is done once per state or once per transition.

They know no particular model. The slots of a state, the actions that a slot's value rules out and the effects of an
action all come in arrays (`Layout`, `Tables`, `Programs`). So each kernel is compiled once for all models and kept on
disk between runs. All of them release Python's global lock.

A state is `words` unsigned 64-bit words with each slot's value number in a field of its own. The store keeps only as
many bytes as the fields need, one state right after another. So writing a state's last word overwrites the bytes behind
it, which must still be unused. A state's hash is a sum over slots: value number times the slot's odd weight. So the cost
of a successor's hash depends only on what changed, and the hash does not depend on where the fields lie.
"""
# ruff: noqa: PLR0915 (a kernel is one loop nest, for the reason given in `expand`)

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kspec.model_check.engines.compiled.compilation import kernel
from kspec.model_check.engines.compiled.intrinsics import load_word, lowest_bit, prefetch, store_word

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]
Codes = NDArray[np.uint32]
Bytes = NDArray[np.uint8]

SHARD_BITS = 6
SHARDS = 1 << SHARD_BITS
"""The visited set is split by hash into this many shards for any number of workers, so results do not depend on workers."""

INDEX_BITS = 26
"""A shard's hash table holds (tag, 1 + index in the shard) in 32 bits; the index takes this many."""

CODE_BITS = 24
"""A learned entry in a hashed table is (key, code) in 64 bits; the code takes this many."""

MISSING, DISABLED, HOLDS, RAISED, FIRST_ROW = 0, 1, 2, 3, 4
"""The meaning of an entry: not learned yet; no; yes, and nothing more; the rule raised an error; row number `code - 4`."""

BATCH = 32
"""Number of states whose table entries are prefetched at a time, well before they are needed."""

SHARD_SHIFT = np.uint64(64 - SHARD_BITS)
ACTION_MASK = np.uint64(0xFFFF)
HASH_MASK = np.uint64(0xFFFFFFFFFFFF0000)
_LOW_32 = np.uint64(0xFFFFFFFF)
_TAG_MASK = np.uint64(0x3F)
INDEX_MASK = np.uint32((1 << INDEX_BITS) - 1)
_TAG_SHIFT = np.uint32(INDEX_BITS)
_CODE_MASK = np.uint64((1 << CODE_BITS) - 1)
_CODE_SHIFT = np.uint64(CODE_BITS)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xD6E8FEB86659FD93)
_ZERO, _ONE, _TWO, _SIX, _EIGHT = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(6), np.uint64(8)
_MISSING, _DISABLED, _HOLDS, _RAISED = np.uint64(MISSING), np.uint64(DISABLED), np.uint64(HOLDS), np.uint64(RAISED)
_FIRST_ROW = np.uint64(FIRST_ROW)
ASK = np.uint64(1 << 63)
"""Stands for a property in a decision: a term raised an error, so the properties must be evaluated in order."""

NO_TARGET = np.uint64(0xFFFFFFFFFFFFFFFF)
"""Used in place of a column for a table that does not number one."""
_NUMBER_SHIFT = np.uint64(22)
_SLOT_SHIFT, _TAG_FROM, _HALF, _KEY_SHIFT, _RECENT_SHIFT = (np.uint64(bits) for bits in (26, 16, 32, 40, 52))


class Layout(NamedTuple):
    """The place of each slot's field in a packed state, and its weight in the hash.

    A stored state has `size` bytes; `last` are the bits of the last word that belong to it.
    """

    word: Words
    shift: Words
    mask: Words
    weight: Words
    size: int
    last: Any


class Tables(NamedTuple):
    """The learned tables. A key is made of the value numbers that the table reads, each shifted into its place.

    Every table has at least two reads, so that most keys need no loop; a table of one slot reads it twice.

    `size_mask` is 0 for a dense table, whose entries are `dense[offset + key]`; otherwise the table is an open-addressing
    one of `size_mask + 1` entries in `hashed`. A table with a `target` numbers a combination of slots (a key would not fit
    otherwise): its row number becomes the value of that virtual slot.
    """

    first_read: Words
    read_slot: Words
    read_shift: Words
    offset: Words
    size_mask: Words
    target: Words
    dense: Codes
    hashed: Words
    row_words: Words
    row_hash: Words
    decisions: Words


class Programs(NamedTuple):
    """The tables to look up for an action in addition to the masks: `table[first[a]:first[a + 1]]`.

    `far` are the hashed ones among them. `keep` has zeros in the fields that the action writes. `first_check` and `check`
    are the tables of property terms that the action's successor must be tested with, `bounds` those of the constraint,
    `views` those that give the values of a state's views, for the actions.
    """

    first: Words
    table: Words
    keep: Words
    first_far: Words
    far: Words
    first_write: Words
    write_slot: Words
    first_check: Words
    check: Words
    bounds: Words
    views: Words


class Masks(NamedTuple):
    """The actions that the guards of one slot, and of two, do not rule out, as bit sets of an even number of words.

    For one slot, `bits` has a set for each value of the slot, from `offset` on. For two, `guard_table` is looked up if any
    of its `guard_actions` is still possible; the row says which actions are `ruled_out`. Row 0 rules out none.
    """

    slot: Words
    offset: Words
    bits: Words
    all_actions: Words
    guard_table: Words
    guard_actions: Words
    ruled_out: Words


@njit(inline="always")
def finish_hash(total: Any) -> Any:
    """The hash of a state from the weighted sum of its value numbers."""
    mixed = (total ^ (total >> _HALF)) * _MIX_2
    return mixed ^ (mixed >> _HALF)


@njit
def _note_miss(table: Any, key: Any, misses: Words, recent: Words, count: Any) -> Any:
    """Remember that an entry is missing, unless it was noted just before; return the new number of misses."""
    record = ((table + _ONE) << _KEY_SHIFT) | key
    place = (record * _MIX) >> _RECENT_SHIFT
    if recent[place] == record or count >= misses.size:
        return count
    recent[place] = record
    misses[count] = record
    return count + 1


@kernel
def expand(
    layout: Layout,
    tables: Tables,
    programs: Programs,
    masks: Masks,
    words: int,
    store: Bytes,
    shard_base: Integers,
    segment_start: Integers,
    segment_prefix: Integers,
    listed: Integers,
    use_list: bool,
    begin: int,
    end: int,
    ids: Words,
    linear: Words,
    fired: Integers,
    misses: Words,
    recent: Words,
    postponed: Integers,
    degrees: Integers,
    outcome: Integers,
) -> None:
    """All successors of the frontier's states `begin` to `end` (or of those listed), each with a word of hash and action.

    A state for which some entry is missing gives only the list of missing entries, and is `postponed`. A state whose
    successors may not fit is postponed too. `outcome` is: successors, misses, postponed states, deadlocks, position of
    the first deadlock, position and action of a rule that raised an error. `degrees`, unless it is empty, receives the
    number of successors of each state that is not postponed.
    """
    # Arrays are taken out of their tuples here, and the loops call no function with array arguments: either would
    # count references, with an atomic instruction each time.
    field_word, field_shift, field_mask, weight = layout.word, layout.shift, layout.mask, layout.weight
    first_read, read_slot, read_shift = tables.first_read, tables.read_slot, tables.read_shift
    offset, size_mask, target = tables.offset, tables.size_mask, tables.target
    dense, hashed, row_words, row_hash = tables.dense, tables.hashed, tables.row_words, tables.row_hash
    program, program_table, keep = programs.first, programs.table, programs.keep
    first_write, write_slot, bounds, views = programs.first_write, programs.write_slot, programs.bounds, programs.views
    mask_slot, mask_offset, mask_bits, all_actions = masks.slot, masks.offset, masks.bits, masks.all_actions
    first_far, far_table = programs.first_far, programs.far
    guard_table, guard_actions, ruled_out = masks.guard_table, masks.guard_actions, masks.ruled_out
    # Indices are unsigned: a signed one costs a comparison with zero each time.
    slots, masked_slots, mask_words = np.uint64(field_word.size), np.uint64(mask_slot.size), np.uint64(all_actions.size)
    view_steps, guard_steps, bound_steps = np.uint64(views.size), np.uint64(guard_table.size), np.uint64(bounds.size)
    state_words, stride = np.uint64(words), np.uint64(words + 1)
    last_part = state_words - _ONE
    actions, size = program.size - 1, layout.size
    capacity = linear.size // (words + 1)
    columns = np.uint64(ids.size // BATCH)
    successor_ids = np.empty(columns, np.uint64)
    candidates = np.empty(BATCH * mask_words, np.uint64)
    totals = np.empty(BATCH, np.uint64)
    places = np.empty(BATCH, np.int64)
    positions = np.empty(BATCH, np.int64)
    incomplete = np.empty(BATCH, np.bool_)
    recent[:] = _ZERO
    missing, later, deadlocks, first_deadlock = 0, 0, 0, -1
    count = _ZERO
    error_at, error_action = np.int64(-1), np.int64(-1)
    shard = 0
    for batch_begin in range(begin, end, BATCH):
        batch = min(BATCH, end - batch_begin)
        # First, for all states of a batch: find the actions that the masks leave, and prefetch the cache lines that the
        # look-ups in these actions' tables need. A table's entries are far apart in memory, and waiting for each costs
        # more than everything else.
        for member in range(batch):
            position = listed[batch_begin + member] if use_list else batch_begin + member
            while position >= segment_prefix[shard + 1]:
                shard += 1
            at = (shard_base[shard] + segment_start[shard] + position - segment_prefix[shard]) * size
            first_id, first_part = np.uint64(member) * columns, np.uint64(member) * mask_words
            total = _ZERO
            for slot in range(slots):
                number = (load_word(store, np.uint64(at) + _EIGHT * field_word[slot]) >> field_shift[slot]) & field_mask[
                    slot
                ]
                ids[first_id + slot] = number
                total += number * weight[slot]
            totals[member], places[member], positions[member] = total, at, position
            missed = False
            for step in range(view_steps):
                table = views[step]
                read = first_read[table]
                key = ids[first_id + read_slot[read]] << read_shift[read]
                key |= ids[first_id + read_slot[read + _ONE]] << read_shift[read + _ONE]
                for more in range(read + _TWO, first_read[table + _ONE]):
                    key |= ids[first_id + read_slot[more]] << read_shift[more]
                base = offset[table]
                entry_mask = size_mask[table]
                if entry_mask == _ZERO:
                    code = np.uint64(dense[base + key])
                else:
                    probe = ((key * _MIX) >> _HALF) & entry_mask
                    while True:
                        entry = hashed[base + probe]
                        if entry == _ZERO or entry >> _CODE_SHIFT == key:
                            code = entry & _CODE_MASK
                            break
                        probe = (probe + _ONE) & entry_mask
                if code == _MISSING:
                    missing = _note_miss(table, key, misses, recent, missing)
                    missed = True
                    break
                ids[first_id + target[table]] = code - _FIRST_ROW
            incomplete[member] = missed
            if missed:
                candidates[first_part : first_part + mask_words] = _ZERO
                continue
            for block in range(_ZERO, mask_words, _TWO):
                low, high = all_actions[block], all_actions[block + _ONE]
                for i in range(masked_slots):
                    base = mask_offset[i] + ids[first_id + mask_slot[i]] * mask_words + block
                    low &= mask_bits[base]
                    high &= mask_bits[base + _ONE]
                for i in range(guard_steps):
                    concerned_low = low & guard_actions[i * mask_words + block]
                    concerned_high = high & guard_actions[i * mask_words + block + _ONE]
                    table = guard_table[i]
                    read = first_read[table]
                    key = ids[first_id + read_slot[read]] << read_shift[read]
                    key |= ids[first_id + read_slot[read + _ONE]] << read_shift[read + _ONE]
                    base = offset[table]
                    entry_mask = size_mask[table]
                    # Whether an action is concerned cannot be predicted, so a dense table is read in any case. An entry
                    # that concerns no action, or is missing, rules out nothing.
                    if entry_mask == _ZERO:
                        code = np.uint64(dense[base + key])
                    elif concerned_low | concerned_high == _ZERO:
                        continue
                    else:
                        probe = ((key * _MIX) >> _HALF) & entry_mask
                        while True:
                            entry = hashed[base + probe]
                            if entry == _ZERO or entry >> _CODE_SHIFT == key:
                                code = entry & _CODE_MASK
                                break
                            probe = (probe + _ONE) & entry_mask
                    if code == _MISSING and concerned_low | concerned_high != _ZERO:
                        missing = _note_miss(table, key, misses, recent, missing)
                        missed = True
                        low &= ~concerned_low
                        high &= ~concerned_high
                    row = (code - _FIRST_ROW if code >= _FIRST_ROW else _ZERO) * mask_words + block
                    low &= ~ruled_out[row]
                    high &= ~ruled_out[row + _ONE]
                candidates[first_part + block] = low
                candidates[first_part + block + _ONE] = high
            incomplete[member] = missed
            for part in range(mask_words):
                pending = candidates[first_part + part]
                while pending != _ZERO:
                    action = (part << _SIX) + lowest_bit(pending)
                    pending &= pending - _ONE
                    for step in range(first_far[action], first_far[action + _ONE]):
                        table = far_table[step]
                        read = first_read[table]
                        key = ids[first_id + read_slot[read]] << read_shift[read]
                        key |= ids[first_id + read_slot[read + _ONE]] << read_shift[read + _ONE]
                        for more in range(read + _TWO, first_read[table + _ONE]):
                            key |= ids[first_id + read_slot[more]] << read_shift[more]
                        prefetch(hashed, offset[table] + (((key * _MIX) >> _HALF) & size_mask[table]))
        for member in range(batch):
            position, at, total = positions[member], np.uint64(places[member]), totals[member]
            first_id, first_part = np.uint64(member) * columns, np.uint64(member) * mask_words
            if np.int64(count) + actions > capacity:
                postponed[later] = position
                later += 1
                continue
            first_of_state = count
            missed, stuck = incomplete[member], True
            for part in range(mask_words):
                pending = candidates[first_part + part]
                while pending != _ZERO:
                    action = (part << _SIX) + lowest_bit(pending)
                    pending &= pending - _ONE
                    out = count * stride
                    # In nearly every model a state is one or two words: these are kept out of memory until complete.
                    kept = action * state_words
                    first_word = load_word(store, at) & keep[kept]
                    last_word = load_word(store, at + _EIGHT * last_part) & keep[kept + last_part]
                    for k in range(_ONE, last_part):
                        linear[out + k] = load_word(store, at + _EIGHT * k) & keep[kept + k]
                    successor_total = total
                    enabled, raised = True, False
                    for step in range(program[action], program[action + _ONE]):
                        table = program_table[step]
                        read = first_read[table]
                        key = ids[first_id + read_slot[read]] << read_shift[read]
                        key |= ids[first_id + read_slot[read + _ONE]] << read_shift[read + _ONE]
                        for more in range(read + _TWO, first_read[table + _ONE]):
                            key |= ids[first_id + read_slot[more]] << read_shift[more]
                        base = offset[table]
                        entry_mask = size_mask[table]
                        if entry_mask == _ZERO:
                            code = np.uint64(dense[base + key])
                        else:
                            probe = ((key * _MIX) >> _HALF) & entry_mask
                            while True:
                                entry = hashed[base + probe]
                                if entry == _ZERO or entry >> _CODE_SHIFT == key:
                                    code = entry & _CODE_MASK
                                    break
                                probe = (probe + _ONE) & entry_mask
                        if code >= _FIRST_ROW:
                            row = code - _FIRST_ROW
                            if target[table] != NO_TARGET:
                                ids[first_id + target[table]] = row
                            else:
                                outcome_at = row * state_words
                                first_word |= row_words[outcome_at]
                                last_word |= row_words[outcome_at + last_part]
                                for k in range(_ONE, last_part):
                                    linear[out + k] |= row_words[outcome_at + k]
                                successor_total += row_hash[row]
                        elif code == _HOLDS:
                            continue
                        elif code == _RAISED:
                            raised = True
                        else:
                            enabled = False
                            if code == _MISSING:
                                missing = _note_miss(table, key, misses, recent, missing)
                                missed = True
                            break
                    if not enabled:
                        continue
                    if raised:
                        error_at, error_action = position, np.int64(action)
                        continue
                    stuck = False
                    linear[out] = first_word
                    linear[out + last_part] = last_word
                    if bound_steps > _ZERO:
                        for slot in range(slots):
                            successor_ids[slot] = (linear[out + field_word[slot]] >> field_shift[slot]) & field_mask[slot]
                        inside = True
                        for step in range(bound_steps):
                            table = bounds[step]
                            read = first_read[table]
                            key = successor_ids[read_slot[read]] << read_shift[read]
                            key |= successor_ids[read_slot[read + _ONE]] << read_shift[read + _ONE]
                            for more in range(read + _TWO, first_read[table + _ONE]):
                                key |= successor_ids[read_slot[more]] << read_shift[more]
                            base = offset[table]
                            entry_mask = size_mask[table]
                            if entry_mask == _ZERO:
                                code = np.uint64(dense[base + key])
                            else:
                                probe = ((key * _MIX) >> _HALF) & entry_mask
                                while True:
                                    entry = hashed[base + probe]
                                    if entry == _ZERO or entry >> _CODE_SHIFT == key:
                                        code = entry & _CODE_MASK
                                        break
                                    probe = (probe + _ONE) & entry_mask
                            if code == _MISSING:
                                missing = _note_miss(table, key, misses, recent, missing)
                                missed = True
                                inside = False
                                break
                            if target[table] != NO_TARGET:
                                successor_ids[target[table]] = code - _FIRST_ROW
                            elif code != _HOLDS:
                                inside = False
                                if code == _RAISED:
                                    error_at, error_action = position, np.int64(action)
                                break
                        if not inside:
                            continue
                    for write in range(first_write[action], first_write[action + _ONE]):
                        slot = write_slot[write]
                        successor_total -= ids[first_id + slot] * weight[slot]
                    linear[out + state_words] = (finish_hash(successor_total) & HASH_MASK) | action
                    count += _ONE
            if missed:
                count = first_of_state
                postponed[later] = position
                later += 1
                continue
            if stuck:
                deadlocks += 1
                if first_deadlock < 0:
                    first_deadlock = position
            if degrees.size > 0:
                degrees[batch_begin + member - begin] = np.int64(count - first_of_state)
            for i in range(first_of_state, count):
                fired[linear[i * stride + state_words] & ACTION_MASK] += 1
    outcome[0], outcome[1], outcome[2], outcome[3], outcome[4] = np.int64(count), missing, later, deadlocks, first_deadlock
    outcome[5], outcome[6] = error_at, error_action


@kernel
def distribute(words: int, linear: Words, count: int, sorted_out: Words, sorted_first: Integers) -> None:
    """Sort `count` successors by shard; `sorted_first` receives where each shard's begin."""
    stride, hash_at, total = np.uint64(words + 1), np.uint64(words), np.uint64(count)
    # A counting sort. Stable, so that the order within a shard is the order of generation.
    sorted_first[:] = 0
    for i in range(total):
        sorted_first[(linear[i * stride + hash_at] >> SHARD_SHIFT) + _ONE] += 1
    for i in range(SHARDS):
        sorted_first[i + 1] += sorted_first[i]
    cursor = np.empty(SHARDS, np.uint64)
    for i in range(SHARDS):
        cursor[i] = np.uint64(sorted_first[i]) * stride
    for i in range(total):
        source = i * stride
        target_shard = linear[source + hash_at] >> SHARD_SHIFT
        to = cursor[target_shard]
        cursor[target_shard] = to + stride
        for k in range(stride):
            sorted_out[to + k] = linear[source + k]


@njit(inline="always")
def slot_of(hashed: Any, size: Any) -> Any:
    """The place in a hash table of any size where the search for a state begins."""
    return (((hashed >> _SLOT_SHIFT) & _LOW_32) * np.uint64(size)) >> _HALF


@njit(inline="always")
def tag_of(hashed: Any) -> Any:
    """The part of a hash that a hash table keeps beside a state's index."""
    return np.uint32((hashed >> _TAG_FROM) & _TAG_MASK) << _TAG_SHIFT


@kernel
def fill_index(layout: Layout, store: Bytes, base: int, count: Any, index: Codes, index_at: int, size: Any) -> None:
    """Make the hash table of one shard, of `size` places from `index_at` on, from its states."""
    field_word, field_shift, field_mask, weight = layout.word, layout.shift, layout.mask, layout.weight
    slots, first, places = np.uint64(field_word.size), np.uint64(index_at), np.uint64(size)
    index[index_at : index_at + size] = np.uint32(0)
    at = np.uint64(base) * np.uint64(layout.size)
    for number in range(count):
        total = _ZERO
        for slot in range(slots):
            total += ((load_word(store, at + _EIGHT * field_word[slot]) >> field_shift[slot]) & field_mask[slot]) * weight[
                slot
            ]
        hashed = finish_hash(total)
        place = slot_of(hashed, places)
        while index[first + place] != np.uint32(0):
            place += _ONE
            if place == places:
                place = _ZERO
        index[first + place] = tag_of(hashed) | np.uint32(number + 1)
        at += np.uint64(layout.size)


@kernel
def merge(
    layout: Layout,
    words: int,
    store: Bytes,
    shard_base: Integers,
    shard_count: Integers,
    shard_capacity: int,
    index: Codes,
    index_base: Integers,
    index_size: Integers,
    growth: float,
    first_shard: int,
    last_shard: int,
    chunks: int,
    sorted_all: Words,
    sorted_capacity: int,
    sorted_first: Integers,
    fresh: Integers,
) -> Any:
    """Add what is new among the successors to the shards `first_shard` to `last_shard`.

    `fresh` receives the new states, as `check` reads them; the result is their number, or -1 if a shard is full.
    """
    last, state_size = layout.last, np.uint64(layout.size)
    state_words, last_word = np.uint64(words), np.uint64(words - 1)
    stride = state_words + _ONE
    table_ahead, store_ahead = np.uint64(24), np.uint64(12)
    found = _ZERO
    for shard in range(first_shard, last_shard):
        base, index_at = np.uint64(shard_base[shard]), np.uint64(index_base[shard])
        count = np.uint64(shard_count[shard])
        size = np.uint64(index_size[shard])
        for chunk in range(chunks):
            begin, end = np.uint64(sorted_first[chunk, shard]), np.uint64(sorted_first[chunk, shard + 1])
            if begin == end:
                continue
            most = np.int64(count + (end - begin))
            if most > shard_capacity:
                return -1
            if most > size * 0.8:
                # A bigger hash table in the same place, filled from the states.
                size = np.uint64(max(np.int64(size * growth), np.int64(most / 0.8) + 16))
                index_size[shard] = size
                fill_index(layout, store, shard_base[shard], np.int64(count), index, index_base[shard], np.int64(size))
            source = np.uint64(chunk * sorted_capacity) + begin * stride
            for i in range(begin, end):
                # Both memory accesses of a probe are prefetched well before they are needed.
                if i + table_ahead < end:
                    prefetch(index, index_at + slot_of(sorted_all[source + table_ahead * stride + state_words], size))
                if i + store_ahead < end:
                    hashed = sorted_all[source + store_ahead * stride + state_words]
                    entry = index[index_at + slot_of(hashed, size)]
                    if entry != np.uint32(0):
                        prefetch(store, (base + np.uint64(entry & INDEX_MASK) - _ONE) * state_size)
                hashed = sorted_all[source + state_words]
                tag = tag_of(hashed)
                place = slot_of(hashed, size)
                known = False
                while True:
                    entry = index[index_at + place]
                    if entry == np.uint32(0):
                        break
                    if (entry & ~INDEX_MASK) == tag:
                        candidate = (base + np.uint64(entry & INDEX_MASK) - _ONE) * state_size
                        known = load_word(store, candidate + _EIGHT * last_word) & last == sorted_all[source + last_word]
                        for k in range(last_word):
                            known = known and load_word(store, candidate + _EIGHT * k) == sorted_all[source + k]
                        if known:
                            break
                    place += _ONE
                    if place == size:
                        place = _ZERO
                if not known:
                    index[index_at + place] = tag | np.uint32(count + _ONE)
                    to = (base + count) * state_size
                    for k in range(state_words):
                        store_word(store, to + _EIGHT * k, sorted_all[source + k])
                    fresh[found] = np.int64((count << _NUMBER_SHIFT) | np.uint64(shard << 16) | (hashed & ACTION_MASK))
                    found += _ONE
                    count += _ONE
                source += stride
        shard_count[shard] = np.int64(count)
    return np.int64(found)


@kernel
def check(
    layout: Layout,
    tables: Tables,
    programs: Programs,
    store: Bytes,
    shard_base: Integers,
    listed: Integers,
    ids: Words,
    undecided: Words,
    each_state: bool,
    misses: Words,
    recent: Words,
    again: Integers,
    decided: Integers,
    counts: Integers,
) -> None:
    """Test states for the properties that the actions leading to them may have decided.

    A listed state is its number in its shard, the shard and the action in one integer. `counts` receives the numbers of
    misses, states to test again, and decisions. A decision is a set of properties, a shard and a number. Once a state
    decides a property, the other states are not tested for it, unless `each_state` is set. Where a term raised an error, the
    decision has the bit `ASK`.
    """
    field_word, field_shift, field_mask = layout.word, layout.shift, layout.mask
    first_read, read_slot, read_shift = tables.first_read, tables.read_slot, tables.read_shift
    offset, size_mask, target = tables.offset, tables.size_mask, tables.target
    dense, hashed, decisions = tables.dense, tables.hashed, tables.decisions
    first_check, check_table = programs.first_check, programs.check
    slots, size = np.uint64(field_word.size), layout.size
    recent[:] = _ZERO
    missing, repeated, decided_count = 0, 0, 0
    columns = np.uint64(ids.size // BATCH)
    for batch_begin in range(0, listed.size, BATCH):
        batch = min(BATCH, listed.size - batch_begin)
        # Prefetch the entries of a whole batch first, as in `expand`.
        for member in range(batch):
            listing = listed[batch_begin + member]
            action, shard, number = np.uint64(listing & 0xFFFF), (listing >> 16) & (SHARDS - 1), listing >> 22
            if first_check[action] == first_check[action + _ONE]:
                continue
            at = np.uint64((shard_base[shard] + number) * size)
            first_id = np.uint64(member) * columns
            for slot in range(slots):
                word = load_word(store, at + _EIGHT * field_word[slot])
                ids[first_id + slot] = (word >> field_shift[slot]) & field_mask[slot]
            for step in range(first_check[action], first_check[action + _ONE]):
                table = check_table[step]
                if size_mask[table] != _ZERO:
                    read = first_read[table]
                    key = ids[first_id + read_slot[read]] << read_shift[read]
                    key |= ids[first_id + read_slot[read + _ONE]] << read_shift[read + _ONE]
                    for more in range(read + _TWO, first_read[table + _ONE]):
                        key |= ids[first_id + read_slot[more]] << read_shift[more]
                    prefetch(hashed, offset[table] + (((key * _MIX) >> _HALF) & size_mask[table]))
        for member in range(batch):
            listing = listed[batch_begin + member]
            action, shard, number = np.uint64(listing & 0xFFFF), (listing >> 16) & (SHARDS - 1), listing >> 22
            first, last = first_check[action], first_check[action + _ONE]
            first_id = np.uint64(member) * columns
            missed, decided_here = False, _ZERO
            for step in range(first, last):
                table = check_table[step]
                read = first_read[table]
                key = ids[first_id + read_slot[read]] << read_shift[read]
                key |= ids[first_id + read_slot[read + _ONE]] << read_shift[read + _ONE]
                for more in range(read + _TWO, first_read[table + _ONE]):
                    key |= ids[first_id + read_slot[more]] << read_shift[more]
                base = offset[table]
                entry_mask = size_mask[table]
                if entry_mask == _ZERO:
                    code = np.uint64(dense[base + key])
                else:
                    probe = ((key * _MIX) >> _HALF) & entry_mask
                    while True:
                        entry = hashed[base + probe]
                        if entry == _ZERO or entry >> _CODE_SHIFT == key:
                            code = entry & _CODE_MASK
                            break
                        probe = (probe + _ONE) & entry_mask
                if code == _HOLDS:
                    continue
                if code == _MISSING:
                    missing = _note_miss(table, key, misses, recent, missing)
                    missed = True
                    if target[table] != NO_TARGET:
                        break
                elif target[table] != NO_TARGET:
                    ids[first_id + target[table]] = code - _FIRST_ROW
                else:
                    news = decisions[code - _FIRST_ROW] & undecided[0]
                    decided_here |= news
                    if not each_state:
                        undecided[0] &= ~news | ASK
            if decided_here != _ZERO:
                decided[decided_count * 3] = np.int64(decided_here)
                decided[decided_count * 3 + 1] = shard
                decided[decided_count * 3 + 2] = number
                decided_count += 1
            if missed:
                again[repeated] = listing
                repeated += 1
    counts[0], counts[1], counts[2] = missing, repeated, decided_count


@kernel
def repack(old: Layout, new: Layout, source: Bytes, source_base: int, target: Bytes, target_base: int, count: int) -> None:
    """Copy a shard's states from one layout to another."""
    words = -(-new.size // 8)
    buffer = np.empty(words, np.uint64)
    for number in range(count):
        at, to = (source_base + number) * old.size, (target_base + number) * new.size
        buffer[:] = _ZERO
        for slot in range(old.word.size):
            value = (load_word(source, np.uint64(at) + _EIGHT * old.word[slot]) >> old.shift[slot]) & old.mask[slot]
            buffer[new.word[slot]] |= value << new.shift[slot]
        for k in range(words):
            store_word(target, to + 8 * k, buffer[k])


@kernel
def insert_entries(hashed: Words, offset: int, size_mask: Any, keys: Words, codes: Words) -> None:
    """Put learned entries into a hashed table that has room for them and holds none of the keys."""
    for i in range(keys.size):
        probe = ((keys[i] * _MIX) >> _HALF) & size_mask
        while hashed[offset + np.int64(probe)] != _ZERO:
            probe = (probe + _ONE) & size_mask
        hashed[offset + np.int64(probe)] = (keys[i] << _CODE_SHIFT) | codes[i]


def hash_of(ids: list[int], weights: Words) -> int:
    """The hash of one state, as the kernels compute it."""
    total = sum(number * int(weight) for number, weight in zip(ids, weights, strict=True)) & 0xFFFFFFFFFFFFFFFF
    mixed = ((total ^ (total >> 32)) * int(_MIX_2)) & 0xFFFFFFFFFFFFFFFF
    return mixed ^ (mixed >> 32)
