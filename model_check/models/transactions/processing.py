"""Actions of a group whose members are processes: another one becomes the member; a process asks where to read on.

A process reads an input, writes its output, and commits the offset behind the input in the same transaction (KIP-447).
"""

from kspec.model_check.core.model import REFUSED, Note, Slot, when
from kspec.model_check.models.parts import Values, by_slot
from kspec.model_check.models.processes import GROUP, INPUT, group_with
from kspec.model_check.models.transactions.board import NOW, Board
from kspec.model_check.models.transactions.values import Phase, Processor
from kspec.spec.coordinator.group import Group
from kspec.spec.coordinator.offsets import handle_offset_fetch
from kspec.spec.messages.groups.offset_fetch import OffsetFetchPartition, OffsetFetchRequest, OffsetFetchResponse
from kspec.spec.values import Error

AT_EASE = (Phase.NEW, Phase.READY)
"""The phases of a producer in which its process may join, and read committed offsets."""


def add_processing(board: Board) -> None:
    """Add all that the group does, and its members do with it."""
    group = board.slots.group
    if group is None:
        return
    for producer in board.producers:
        _add_fetch(board, producer, group)
        if board.parameters["rebalances"]:
            _add_rebalance(board, producer, group)


def _add_fetch(board: Board, producer: int, group_slot: Slot) -> None:
    """A process asks for the committed offset; it asks until that is stable."""
    own, process_slot = board.slots.producer[producer], board.slots.processor[producer]
    request = OffsetFetchRequest(GROUP, (OffsetFetchPartition(INPUT, 0),), not board.parameters["unstable_reads"])

    def fetch(values: Values) -> object:
        process: Processor = values[process_slot]
        if not process.generation or process.position is not None or values[own].phase not in AT_EASE:
            return REFUSED
        (effect,) = handle_offset_fetch(board.groups, values[group_slot], request, NOW).effects
        answer: OffsetFetchResponse = effect.message  # type: ignore[union-attr,assignment]
        (found,) = answer.partitions
        if found.error != Error.NONE:
            return REFUSED
        return {**values, process_slot: process._replace(position=max(found.offset, 0))}

    slots = [own, process_slot, group_slot]
    board.model.action(
        "FetchOffset",
        {"producer": producer},
        guards=[when(lambda process: process.generation and process.position is None, process_slot)],
        effects=[by_slot(slots, fetch, slots)],
        events=[Note(producer, "asks for the committed offset of the group")],
    )


def _add_rebalance(board: Board, producer: int, group_slot: Slot) -> None:
    """The group is in its next generation, with another process. The one before hears of it when it is next answered."""
    own, process_slot = board.slots.producer[producer], board.slots.processor[producer]
    exchange, left = board.slots.exchange[producer], board.slots.left["rebalances"]

    def rebalance(values: Values) -> object:
        group: Group = values[group_slot]
        process: Processor = values[process_slot]
        is_member = process.generation == group.generation
        if is_member or not values[left] or values[exchange] is not None or values[own].phase not in AT_EASE:
            return REFUSED
        after = group_with(group, producer)
        joined = process._replace(generation=after.generation, position=None)
        return {**values, group_slot: after, process_slot: joined, left: values[left] - 1}

    slots = [own, process_slot, exchange, group_slot, left]
    board.model.action(
        "Rebalance",
        {"producer": producer},
        guards=[when(lambda number: number > 0, left)],
        effects=[by_slot(slots, rebalance, slots)],
        events=[Note(producer, "becomes the member of the group")],
    )
