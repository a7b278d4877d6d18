"""What must hold: committed records are on every later leader, and on every member of the ISR."""

from collections.abc import Callable

from model_check.core.model import when
from model_check.models.messages.board import Board, Log
from model_check.models.messages.values import Decision, Term
from spec.values import NO_BROKER_EPOCH, BrokerEpoch, Offset


def add_properties(board: Board) -> None:
    """Add the properties; within bounds only, for they compare all epochs with one another."""
    slots, epochs = board.slots, board.numbers.epochs
    later = [(epoch, later) for epoch in epochs for later in epochs if epoch < later]
    board.model.always(
        "LeaderCompleteness",
        [
            when(_is_complete, slots.term[epoch], slots.ledger[epoch], slots.term[later], slots.ledger[later])
            for epoch, later in later
        ],
        "what the leader of an epoch committed is in the log of the leader of every later epoch",
        twin="SomeEpochCommits",
    )
    board.model.sometimes(
        "SomeEpochCommits",
        [
            when(lambda lived, next_lived: lived.committed > 0 and next_lived.begun, slots.term[epoch], slots.term[later])
            for epoch, later in later
        ],
        "an epoch commits something, and a later one begins",
    )

    def candidate(broker: int) -> Callable[[Decision, BrokerEpoch, Log, Term, Log], bool]:
        def holds(partition: Decision, run: BrokerEpoch, log: Log, lived: Term, book: Log) -> bool:
            may_have_lost = board.loses and run == NO_BROKER_EPOCH
            listed = broker in partition.isr or broker in partition.elr
            return may_have_lost or not listed or log.agrees_below(book, lived.committed)

        return holds

    board.model.always(
        "LeaderCandidateCompleteness",
        [
            when(
                candidate(broker),
                slots.partition,
                slots.run[broker],
                slots.log[broker],
                slots.term[epoch],
                slots.ledger[epoch],
            )
            for broker in board.brokers
            for epoch in epochs
        ],
        "what was ever committed is on every member of the controller's ISR or ELR, so on every possible next leader",
        twin="SomeEpochCommits",
    )
    board.model.always(
        "ConsistentRead",
        [
            when(_reads_alike, slots.log[one], slots.high_watermark[one], slots.log[other], slots.high_watermark[other])
            for one, other in board.pairs()
            if one < other
        ],
        "what can be read from two replicas is the same",
        twin="SomeEpochCommits",
    )


def _reads_alike(log: Log, high_watermark: Offset, other: Log, its_high_watermark: Offset) -> bool:
    return log.agrees_below(other, min(high_watermark, its_high_watermark))


def _is_complete(lived: Term, book: Log, later: Term, later_book: Log) -> bool:
    return not later.begun or later_book.agrees_below(book, lived.committed)
