"""The studies of model `transactions`: producers, their coordinator, and leaders."""

from typing import Any

from kspec.model_check.reports.studies.study import Configuration, Study
from kspec.spec.coordinator.offsets import check_before_verification, check_txn_commit
from kspec.spec.transactions.adding import check_adds
from kspec.spec.transactions.ending import is_repeated_end
from kspec.spec.transactions.rules.coordination import (
    bumps_from_epoch,
    coordinates_what_is_committed,
    is_fenced_by_abort,
    rotates_always,
)
from kspec.spec.transactions.rules.partitions import (
    ends_earlier,
    is_this_guard,
    keeps_guard_of_later,
    verified_at_first,
)

MODEL = "transactions"
LATE: dict[str, Any] = {"late_requests": 1}
PLAIN: dict[str, Any] = {"transaction_version": "0"}
VERSION_1: dict[str, Any] = {"transaction_version": "1"}
VERSION_2: dict[str, Any] = {"transaction_version": "2"}
ABA: dict[str, Any] = {**PLAIN, **LATE, "disconnects": 1}
TWO_PARTITIONS: dict[str, Any] = {"topic_partitions": 2}
LAST_EPOCH: dict[str, Any] = {"first_epoch": 32766}
UNSURE: dict[str, Any] = {"uncommitted_loads": 1, "moves": 1, "transactions": 1, "timeouts": 1}
FENCE: dict[str, Any] = {"producers": 2, "late_markers": 1, "transactions": 1}
PROCESSES: dict[str, Any] = {"inputs": 1, "producers": 2, "own_ids": True, "rebalances": 1, "transactions": 1}

TRANSACTION_STUDIES = (
    Study(
        name="late-end-of-transaction",
        title="A late request to commit ends a later transaction",
        summary="a copy of an EndTxn that arrives late commits records that their producer has not asked to commit",
        reference="KAFKA-17754; Jepsen's report on Bufstream 0.1.0 (2024)",
        setup=(
            "One producer, one partition, transaction version 1. All transactions of a producer have one epoch. A"
            " request may"
            " be sent again on another connection while the first copy is still under way. So it is with all clients"
            " that do"
            " not know version 2, also on the newest brokers."
        ),
        failing=Configuration(MODEL, {**VERSION_1, **LATE}),
        invariant="OnlyCommittedIsRead",
        outcome=(
            "The producer commits its first transaction. It has sent EndTxn twice, as it got no answer. It begins a second"
            " transaction, and then the other copy arrives. Nothing in the request says which transaction is meant: the"
            " coordinator commits the second one. Its record is read though its producer has not asked for that, and may be"
            " about to abort; what it writes afterwards, in its own view in the same transaction, is not part of it."
        ),
        rules=(is_repeated_end,),
        repair=(
            "In version 2 the end of a transaction raises the producer's epoch (KIP-890). A copy of the request names"
            " the epoch"
            " before. It is known as such while nothing else has begun, and is refused afterwards."
        ),
        repaired=Configuration(MODEL, {**VERSION_2, **LATE}),
    ),
    Study(
        name="hanging-transaction",
        title="A late record begins a transaction that nobody ends",
        summary="a record that arrives after the abort of its transaction holds the last stable offset for ever",
        reference="KIP-890, part 1; KAFKA-14561",
        setup=(
            "One producer, one partition, before version 2, Kafka up to 3.5. A producer gives a record up after its"
            " delivery"
            " time-out and aborts; the request may still be under way."
        ),
        failing=Configuration(MODEL, {"release": "2.6", **PLAIN, **LATE, "transactions": 1}),
        invariant="OpenIsKnown",
        outcome=(
            "The transaction is aborted, and its marker is in the log. Then the record arrives. Its epoch is right and its"
            " sequence number is the next one, so the leader appends it, and a transaction is open in the log. The"
            " coordinator"
            " knows of none, so nobody will write a marker. Whoever reads what is committed stops here."
        ),
        rules=(verified_at_first,),
        repair=("A leader asks the coordinator before it appends a record that would begin a transaction in its log."),
        repaired=Configuration(MODEL, {"release": "3.6", **PLAIN, **LATE, "transactions": 1}),
    ),
    Study(
        name="verified-too-early",
        title="A verification is used in another transaction",
        summary="a record is verified in one transaction and appended in the next",
        reference="KAFKA-14884; its rule weakened",
        setup=(
            "One producer, one partition, before version 2. A leader asks the coordinator whether a partition is in the"
            " transaction; meanwhile the transaction may end and another one begin. Here it is remembered of a producer"
            " only"
            " that it is to be verified, and of a record that it was."
        ),
        failing=Configuration(MODEL, {"mutant": "any-guard", **ABA}),
        invariant="TransactionsApart",
        outcome=(
            "A record is verified and held up, its producer gives it up and aborts. It begins its next transaction,"
            " whose first"
            " record is to be verified, too. The held-up record is appended now: it was verified, and its producer is"
            " to be."
            " So a record of the aborted transaction is in the next one."
        ),
        rules=(is_this_guard,),
        repair="A verification has a guard of its own, which the marker of a transaction removes; another one does not fit.",
        repaired=Configuration(MODEL, ABA),
    ),
    Study(
        name="second-marker-of-a-fence",
        title="The second marker of a fence ends the verification of who has fenced",
        summary="the first record of a producer is refused with a fatal error, though nobody has fenced it",
        reference="Kafka 4.4; our repair",
        setup=(
            "Two producers with one transactional id, version 2. The second one fences the first: the marker has the epoch"
            " after that of the first, and the second producer gets the one behind that. A coordinator that loses the"
            " connection to a leader sends its marker again."
        ),
        failing=Configuration(MODEL, {"mutant": "guard-of-equal-epoch", **FENCE}),
        invariant="FailsIfFenced",
        outcome=(
            "The second producer has its epoch and writes its first record, whose verification begins. The copy of the"
            " marker arrives. Its epoch is that of the log, and no transaction is open, so the leader takes it for a"
            " repetition and appends it. It also takes it for the end of what is being verified, since the epochs differ:"
            " the record is refused with `INVALID_TXN_STATE`, and the producer fails."
        ),
        rules=(keeps_guard_of_later,),
        repair="The marker of any earlier epoch leaves a verification, as it ends another transaction.",
        repaired=Configuration(MODEL, FENCE),
    ),
    Study(
        name="late-marker",
        title="A late marker ends the next transaction in one partition",
        summary="a marker is written twice, and its second copy ends what has begun since",
        reference="KIP-1228, KAFKA-19999",
        setup=(
            "One producer, one partition, version 2, Kafka 4.0 and 4.1. A coordinator that loses the connection to a leader"
            " sends its marker again; the first copy may still be under way."
        ),
        failing=Configuration(MODEL, {"release": "4.1", "late_markers": 1}),
        invariant="OnlyCommittedIsRead",
        outcome=(
            "The transaction ends, and the producer writes a record in the next one, with the epoch that the marker"
            " has, since"
            " the end has raised it. Then the other copy of the marker arrives. Its epoch is not smaller than the"
            " producer's,"
            " so the leader takes it, and the open transaction is committed in this partition."
        ),
        rules=(ends_earlier,),
        repair=(
            "A marker of version 2 must have a later epoch than the transaction that it ends. One with the same epoch"
            " is taken"
            " only where none is open, since then it is repeated."
        ),
        repaired=Configuration(MODEL, {"release": "4.2", "late_markers": 1}),
    ),
    Study(
        name="torn-transaction",
        title="A transaction is committed in one partition and aborted in another",
        summary="a late marker commits one partition of the next transaction, which is aborted",
        reference="KIP-890, KIP-1228",
        setup=(
            "One producer, two partitions, transaction version 1. All transactions of a producer have one epoch, and so have"
            " their markers. A coordinator that loses the connection to a leader sends its marker again."
        ),
        failing=Configuration(MODEL, {**VERSION_1, **TWO_PARTITIONS, "late_markers": 1}),
        invariant="OneEnd",
        outcome=(
            "The first transaction is committed. In the second one the producer writes to both partitions. A copy of the"
            " first marker arrives at one of them, and commits what is there. The producer aborts, and the other partition"
            " has the marker of that. Of one transaction half is read, and half is not."
        ),
        rules=(ends_earlier,),
        repair=(
            "In version 2 each transaction has an epoch of its own, and a leader takes no marker whose epoch is that of the"
            " transaction which is open."
        ),
        repaired=Configuration(MODEL, {**VERSION_2, **TWO_PARTITIONS, "late_markers": 1}),
    ),
    Study(
        name="coordinator-ahead-of-its-log",
        title="A coordinator acts on a record that is lost",
        summary="a transaction is aborted in its partitions, and afterwards its producer is told that it is committed",
        reference="Kafka 4.4; our repair",
        setup=(
            "One producer, one partition, version 2, Kafka 4.4. The log of the coordinator has replicas. A record that is"
            " not committed is on some of those that are in sync, and so on some of those that may lead next."
        ),
        failing=Configuration(MODEL, {"release": "4.3", **UNSURE}),
        invariant="CommittedIsKept",
        outcome=(
            "The transaction has taken too long, and its abort is written. Before that is committed the coordinator stops."
            " The next one has the record, loads its log to the end, and sends the markers at once. It is lost, too, before"
            " anybody else has the record. The third one knows of an open transaction. Its producer commits, and is told"
            " that it is committed; the marker of the abort is in the partition since long."
        ),
        rules=(coordinates_what_is_committed,),
        repair="A coordinator that has loaded its log waits until all of that is committed, before it acts or answers.",
        repaired=Configuration(MODEL, {"release": "next", **UNSURE}),
    ),
    Study(
        name="overtaken-commit",
        title="A producer fails since its transaction has taken too long",
        summary="a commit that the coordinator's abort has overtaken is told of an invalid state, which is a defect's error",
        reference="KAFKA-20785",
        setup=(
            "One producer, one partition, version 2, Kafka up to 4.4. The coordinator aborts a transaction that has"
            " been open"
            " for too long."
        ),
        failing=Configuration(MODEL, {"release": "4.3", "timeouts": 1}),
        invariant="FailsIfFenced",
        outcome=(
            "The request to commit is on its way when the coordinator aborts. It names the epoch before, and another"
            " end than"
            " the one that has come: `INVALID_TXN_STATE`. A producer can do nothing about that error, and an"
            " application takes"
            " it for a defect. It was fenced, and could start again."
        ),
        rules=(is_fenced_by_abort,),
        repair="The answer is `PRODUCER_FENCED`.",
        repaired=Configuration(MODEL, {"release": "next", "timeouts": 1}),
    ),
    Study(
        name="self-fencing-over-rotation",
        title="A producer fences itself when its epochs are used up",
        summary="a request with the new id meets the old one, since the step to the new one is still being written",
        reference="KAFKA-18660; its rule weakened",
        setup=(
            "One producer, version 2, whose first epoch is the last one. The end of its transaction gives it another"
            " id; that"
            " is told before the step is complete. Here the producer's id is looked at before the step that is being"
            " written."
        ),
        failing=Configuration(MODEL, {"mutant": "pending-last", **LAST_EPOCH}),
        invariant="FailsIfFenced",
        outcome=(
            "The producer is told its new id and writes a record with it. The coordinator has yet to complete the"
            " transaction,"
            " and has the old id: `INVALID_PRODUCER_ID_MAPPING`. The producer fails."
        ),
        rules=(check_adds,),
        repair="A step that is being written is looked at first: the producer asks again, and then the id is new.",
        repaired=Configuration(MODEL, LAST_EPOCH),
    ),
    Study(
        name="fence-raises-epoch-twice",
        title="A fence uses up more epochs than there are",
        summary="the coordinator raises the epoch for a fence and again for the abort, beyond the largest one",
        reference="KAFKA-19367",
        setup="One producer in its last epoch, version 2, Kafka 4.0. A transaction takes too long.",
        failing=Configuration(MODEL, {"release": "4.0", **LAST_EPOCH, "timeouts": 1}),
        invariant="EpochWithinBounds",
        outcome=(
            "One epoch is left above those that producers get: the coordinator's own. The fence takes it, and the abort"
            " raises"
            " the epoch again, as the end of every transaction does. In 16 bits that is a negative number."
        ),
        rules=(bumps_from_epoch,),
        repair="The abort raises the epoch, and that is the fence.",
        repaired=Configuration(MODEL, {"release": "4.3", **LAST_EPOCH, "timeouts": 1}),
    ),
    Study(
        name="fence-of-last-epoch",
        title="A producer is left in the epoch that is kept for fences",
        summary="the coordinator fences with the largest epoch and leaves the producer its id, so it cannot fence again",
        reference="KAFKA-20090",
        setup="One producer in its last epoch, version 2, Kafka 4.2. Two transactions take too long.",
        failing=Configuration(MODEL, {"release": "4.2", **LAST_EPOCH, "timeouts": 2}),
        invariant="EpochWithinBounds",
        outcome=(
            "The fence has the largest epoch there is, and no other id is chosen, as it is when a producer ends its"
            " transaction itself. The producer asks to end its transaction, is told that it has been done, and goes on"
            " in that"
            " epoch. When its next transaction takes too long there is no epoch to fence it with. Kafka's coordinator"
            " throws"
            " an exception then, each time, and the transaction stays open."
        ),
        rules=(rotates_always,),
        repair="A fence of the last epoch brings another id as well.",
        repaired=Configuration(MODEL, {"release": "4.3", **LAST_EPOCH, "timeouts": 2}),
    ),
    Study(
        name="offset-of-a-former-member",
        title="A process that is no member any more commits its offset",
        summary="two processes of a group read the same input, and the output of both is committed",
        reference="KIP-447",
        setup=(
            "Two processes of a group, each a consumer and a producer with a transactional id of its own. They read an"
            " input, write its output, and commit the offset in the same transaction. A producer before 2.5 does not say of"
            " which member it commits."
        ),
        failing=Configuration(MODEL, {**PROCESSES, "unnamed_members": True}),
        invariant="EachInputOnce",
        outcome=(
            "The group gives the input to the second process while the first one is about to commit. Nothing is open in the"
            " partition of the group yet, so the second process reads on from the offset before. Then the first one commits"
            " its offset. It has an id of its own, which nobody has fenced, and the group coordinator does not know that it"
            " has been a member: both transactions are committed. Before 2.5 there had to be one producer for each"
            " partition of the input, so that the next owner fenced the one before."
        ),
        rules=(check_txn_commit,),
        repair=(
            "A TxnOffsetCommit names the member and its generation, and is refused in another generation. Who takes over"
            " waits until no transaction is open that is to commit an offset."
        ),
        repaired=Configuration(MODEL, PROCESSES),
    ),
    Study(
        name="offsets-checked-too-early",
        title="Offsets are checked, then their transaction is verified, and then they are written",
        summary="a rebalance comes between the check of a commit and its record",
        reference="KAFKA-15784; its rule weakened",
        setup=(
            "The same two processes, and both say of which member they commit. The coordinator of the group looks at that"
            " when the request comes. Since 3.6 it has the transaction verified before it writes, which another broker has"
            " to answer. (In 3.6 it has noted the offset as open by then, so whoever waits for stable offsets is held back;"
            " without that note nobody is.)"
        ),
        failing=Configuration(MODEL, {**PROCESSES, "mutant": "offsets-checked-early"}),
        invariant="EachInputOnce",
        outcome=(
            "The first process commits its offset, as the member that it is. While its transaction is verified the group"
            " gives the input to the second process, which finds no open offset and reads on from the one before. The"
            " answer comes, and the offset of the first process is written. Both transactions are committed."
        ),
        rules=(check_before_verification,),
        repair="The group is looked at when the offsets are written, in one step with that.",
        repaired=Configuration(MODEL, PROCESSES),
    ),
)
