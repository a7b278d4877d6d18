"""Actions of the processes that read: they ask for the offset, work, commit, end, and take over from one another."""

from typing import Any

from kspec.model_check.core.model import REFUSED, Note, Slot, when
from kspec.model_check.models.delivery.board import NOW, Board
from kspec.model_check.models.delivery.settings import BEFORE
from kspec.model_check.models.delivery.values import DeliveredLog, LateCommit, ReadingProcess, Stage
from kspec.model_check.models.parts import Values, by_slot
from kspec.model_check.models.processes import GROUP, INPUT, group_with, member_name
from kspec.spec.coordinator.offsets import handle_offset_commit, handle_offset_fetch
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetToCommit
from kspec.spec.messages.groups.offset_fetch import OffsetFetchPartition, OffsetFetchRequest, OffsetFetchResponse
from kspec.spec.values import Error, Generation, Offset

MOST_COUNTED = 2
"""A record that was processed twice need not be counted on."""


def add_processes(board: Board, group: Slot) -> None:
    """Add all that processes do, and the group with them."""
    slots = board.slots
    for process in board.processes:
        _add_fetch(board, process, group)
        _add_work(board, process)
        _add_commit(board, process, group, is_delayed=False)
        if slots.late_commit is not None:
            _add_commit(board, process, group, is_delayed=True)
        if board.parameters["crashes"]:
            _add_crash(board, process)
        if board.parameters["rebalances"] and process > 1:
            _add_rebalance(board, process, group)
    if slots.late_commit is not None:
        _add_late_commit(board, slots.late_commit, group)


def _act(board: Board, name: str, process: int, slots: list[Slot], change: Any, what: str) -> None:
    own = board.slots.process[process]
    guards = [when(lambda state: state.stage != Stage.GONE, own)]
    board.model.action(name, {"process": process}, guards, [by_slot(slots, change, slots)], [Note(process, what)])


def _add_fetch(board: Board, process: int, group: Slot) -> None:
    own = board.slots.process[process]
    request = OffsetFetchRequest(GROUP, (OffsetFetchPartition(INPUT, 0),), require_stable=True)

    def fetch(values: Values) -> object:
        state: ReadingProcess = values[own]
        if not state.generation or state.position is not None or state.stage == Stage.GONE:
            return REFUSED
        (effect,) = handle_offset_fetch(board.coordinator, values[group], request, NOW).effects
        answer: OffsetFetchResponse = effect.message  # type: ignore[union-attr,assignment]
        return {**values, own: state._replace(position=max(answer.partitions[0].offset, 0))}

    _act(board, "FetchOffset", process, [own, group], fetch, "asks for the committed offset of the group")


def _add_work(board: Board, process: int) -> None:
    """A process does its work with a record that is committed in the log."""
    own, log_slot, done = board.slots.process[process], board.slots.log, board.slots.done
    assert done is not None
    commits_first = board.parameters["commits"] == BEFORE

    def work(values: Values) -> object:
        state: ReadingProcess = values[own]
        log: DeliveredLog = values[log_slot]
        is_ready = state.stage == (Stage.TO_WORK if commits_first else Stage.IDLE)
        if not is_ready or state.position is None or state.position >= log.committed:
            return REFUSED
        record = log.records[state.position]
        counts = tuple(min(one + (place == record), MOST_COUNTED) for place, one in enumerate(values[done]))
        if commits_first:
            after = state._replace(position=state.position + 1, stage=Stage.IDLE)
        else:
            after = state._replace(stage=Stage.TO_COMMIT)
        return {**values, own: after, done: counts}

    _act(board, "Work", process, [own, log_slot, done], work, "processes the record")


def _add_commit(board: Board, process: int, group: Slot, is_delayed: bool) -> None:
    """A process commits the offset behind its record, before its work or after. If it is refused it is in no group."""
    own, log_slot = board.slots.process[process], board.slots.log
    late, left = board.slots.late_commit, board.slots.left.get("late_commits")
    commits_first = board.parameters["commits"] == BEFORE
    slots = [own, log_slot, group, *([late, left] if is_delayed and late is not None and left is not None else [])]

    def commit(values: Values) -> object:
        state: ReadingProcess = values[own]
        is_ready = state.stage == (Stage.IDLE if commits_first else Stage.TO_COMMIT)
        if not is_ready or state.position is None or state.position >= values[log_slot].committed:
            return REFUSED
        offsets = (OffsetToCommit(INPUT, 0, Offset(state.position + 1)),)
        request = OffsetCommitRequest(GROUP, offsets, Generation(state.generation), member_name(process))
        after = dict(values)
        if is_delayed:
            assert late is not None
            assert left is not None
            if values[late] is not None or not values[left]:
                return REFUSED
            after |= {late: LateCommit(request), left: values[left] - 1}
        step = handle_offset_commit(board.coordinator, values[group], request, NOW)
        error = step.effects[-1].message.partitions[0].error  # type: ignore[union-attr]
        if error != Error.NONE:
            return after | {own: ReadingProcess(stage=Stage.GONE)}
        if commits_first:
            committed = state._replace(stage=Stage.TO_WORK)
        else:
            committed = state._replace(position=state.position + 1, stage=Stage.IDLE)
        return after | {own: committed, group: step.state}

    name = "CommitTwice" if is_delayed else "CommitOffset"
    what = "commits its offset, and once more on another connection" if is_delayed else "commits its offset"
    _act(board, name, process, slots, commit, what)


def _add_late_commit(board: Board, late: Slot, group: Slot) -> None:
    def arrive(values: Values) -> object:
        found: LateCommit | None = values[late]
        if found is None:
            return REFUSED
        step = handle_offset_commit(board.coordinator, values[group], found.request, NOW)
        return {late: None, group: step.state}

    guards = [when(lambda found: found is not None, late)]
    event = Note(board.leader, "the late commit arrives")
    board.model.action("CommitLate", {}, guards, [by_slot([late, group], arrive, [late, group])], [event])


def _add_crash(board: Board, process: int) -> None:
    own, left = board.slots.process[process], board.slots.left["crashes"]

    def crash(values: Values) -> object:
        state: ReadingProcess = values[own]
        if not state.generation or state.stage == Stage.GONE or not values[left]:
            return REFUSED
        return {own: ReadingProcess(stage=Stage.GONE), left: values[left] - 1}

    _act(board, "Crash", process, [own, left], crash, "ends")


def _add_rebalance(board: Board, process: int, group: Slot) -> None:
    """The session of the member before has ended, whether it lives or not, and another process takes over."""
    own, before, left = board.slots.process[process], board.slots.process[process - 1], board.slots.left["rebalances"]

    def rebalance(values: Values) -> object:
        state: ReadingProcess = values[own]
        previous: ReadingProcess = values[before]
        has_begun = previous.generation or previous.stage == Stage.GONE
        if state.generation or state.stage == Stage.GONE or not values[left] or not has_begun:
            return REFUSED
        after = group_with(values[group], process)
        return {**values, own: ReadingProcess(after.generation), group: after, left: values[left] - 1}

    _act(board, "TakeOver", process, [own, before, group, left], rebalance, "takes over")
