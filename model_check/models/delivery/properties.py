"""The claims about delivery, as properties of the model."""

from typing import Any

from kspec.model_check.core.model import when
from kspec.model_check.models.delivery.board import Board
from kspec.model_check.models.delivery.values import DeliveredLog, ReadingProcess, SendingProducer, SentRecord, Stage
from kspec.spec.claims import claim
from kspec.spec.coordinator.group import Group


def add_properties(board: Board) -> None:
    """Add both guarantees, and what shows that something is delivered at all."""
    model, slots = board.model, board.slots
    under_way = [slot for slot in (slots.sent, slots.late) if slot is not None]

    def is_in_log(log: DeliveredLog, state: SendingProducer, *sent: SentRecord | None) -> bool:
        on_its_way = {one.record for one in sent if one is not None and one.until is None}
        return all(record in log.records or record in on_its_way for record in range(state.following))

    if slots.group is None or slots.done is None:
        model.always(
            "AtMostOnce",
            [when(lambda log: len(set(log.records)) == len(log.records), slots.log)],
            claim("AtMostOnce", "delivery"),
            "IsDelivered",
        )
        model.always(
            "AtLeastOnce",
            [when(is_in_log, slots.log, slots.producer, *under_way)],
            claim("AtLeastOnce", "delivery"),
            "IsDelivered",
        )
        model.sometimes("IsDelivered", [when(lambda log: log.committed > 0, slots.log)], claim("IsDelivered", "delivery"))
        return
    model.always(
        "AtMostOnce",
        [when(lambda counts: max(counts) <= 1, slots.done)],
        claim("AtMostOnce", "delivery"),
        "IsDelivered",
    )

    def is_kept(log: DeliveredLog, counts: tuple[int, ...], state: SendingProducer, *sent: SentRecord | None) -> bool:
        on_its_way = {one.record for one in sent if one is not None and one.until is None}
        delivered = {record for record, count in enumerate(counts) if count}
        return all(record in {*log.records, *on_its_way, *delivered} for record in range(state.following))

    def is_processed(log: DeliveredLog, counts: tuple[int, ...], group: Group, *states: Any) -> bool:
        at_work = {state.position for state in states if is_at_work(state)}
        passed = max((one.offset for one in group.offsets), default=0)
        return all(counts[record] or offset in at_work for offset, record in enumerate(log.records[:passed]))

    model.always(
        "AtLeastOnce",
        [
            when(is_kept, slots.log, slots.done, slots.producer, *under_way),
            when(is_processed, slots.log, slots.done, slots.group, *slots.process.values()),
        ],
        claim("AtLeastOnce", "delivery"),
        "IsDelivered",
    )
    model.sometimes("IsDelivered", [when(lambda counts: max(counts) > 0, slots.done)], claim("IsDelivered", "delivery"))


def is_at_work(state: ReadingProcess) -> bool:
    """Whether a process has committed an offset, and is about to do the work that belongs to it."""
    return state.stage == Stage.TO_WORK
