"""Brokers restart, with or without what they had not flushed."""

from kspec.model_check.core.model import Note, then, when
from kspec.model_check.models.published.board import Board
from kspec.model_check.models.published.exchange import truncated
from kspec.spec.broker.rules.leadership import is_leader
from kspec.spec.published.replica import NO_ROLE, role_after_restart
from kspec.spec.values import Offset


def add_disturbances(board: Board) -> None:
    """Add restarts and losses of power of brokers that do not lead, as often as the parameters allow."""
    slots = board.slots
    for replica in board.replicas:
        role, log, high_watermark = slots.role[replica], slots.log[replica], slots.high_watermark[replica]
        guards = [
            when(lambda role: role != NO_ROLE, role),
            when(lambda partition, replica=replica: not is_leader(replica, partition), slots.partition),
        ]
        if slots.restarts_left:
            board.model.action(
                "Restart",
                {"replica": replica},
                events=[Note(replica, "restarts, with its log and its checkpointed high watermark")],
                guards=[when(bool, slots.restarts_left), *guards],
                effects=[
                    then(role, role_after_restart, slots.partition),
                    then(slots.restarts_left, lambda left: left - 1, slots.restarts_left),
                ],
            )
        if slots.power_losses_left:
            for end in range(board.parameters["log_size"]):
                board.model.action(
                    "PowerLoss",
                    {"replica": replica, "end": end},
                    events=[Note(replica, f"loses power, and every record from offset {end} on: not yet flushed")],
                    guards=[
                        when(bool, slots.power_losses_left),
                        *guards,
                        when(lambda log, end=end: end < log.end_offset, log),
                    ],
                    effects=[
                        then(role, role_after_restart, slots.partition),
                        then(
                            (log, high_watermark),
                            lambda log, offset, end=end: truncated(log, offset, Offset(end)),
                            log,
                            high_watermark,
                        ),
                        then(slots.power_losses_left, lambda left: left - 1, slots.power_losses_left),
                    ],
                )
