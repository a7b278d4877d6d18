"""The studies of model `group`: consumers and their coordinator."""

from typing import Any

from kspec.model_check.reports.studies.study import Configuration, Study
from kspec.spec.consumer.modern.rules import own_id, what_is_reconciled_or_to_come
from kspec.spec.coordinator.modern.replaying import owners_after
from kspec.spec.coordinator.rules.consumers import if_owned_since, is_known_epoch_or_joins
from kspec.spec.coordinator.rules.runtime import newest

TWO_PARTITIONS: dict[str, Any] = {"topic_partitions": 2}
ONE_DISCONNECT: dict[str, Any] = {"records": 0, "disconnects": 1}
TWO_DISCONNECTS: dict[str, Any] = {"records": 0, "disconnects": 2}
GIVEN_BACK: dict[str, Any] = {"records": 0, "leaves": 1, "generations": 4}
ONE_CONSUMER: dict[str, Any] = {"protocol": "consumer-next", "consumers": 1, "generations": 3, **ONE_DISCONNECT}

GROUP_STUDIES = (
    Study(
        name="lost-update",
        title="A commit undoes another one that was acknowledged",
        summary="a step is computed on a state of the group that another step has left behind while it was being stored",
        reference="found in the broker of this project, on three brokers: of 200 concurrent commits one was lost",
        setup=(
            "Two consumers, two partitions, the classic protocol, one rule of the coordinator weakened: a step is taken on"
            " the offsets that are committed when it begins, and takes the place of what others have written meanwhile."
        ),
        failing=Configuration("group", {"mutant": "lost-update", **TWO_PARTITIONS}),
        invariant="AcknowledgedCommitsKept",
        outcome=(
            "A consumer commits. Before the log has that on all replicas, the other one joins, and its step is computed on"
            " the offsets without the commit. The commit is acknowledged when the log has it. But the state of the later"
            " step does not, and whoever reads the offset gets the one before. A commit of another partition does the same."
        ),
        rules=(newest,),
        repair=(
            "A step is taken on the newest state, whatever of it is still on its way to the followers; answers wait until"
            " the log is committed up to their step."
        ),
        repaired=Configuration("group", TWO_PARTITIONS),
    ),
    Study(
        name="assignment-that-was-taken-back",
        title="A consumer begins to read what it has just been deprived of",
        summary="a full heartbeat of a consumer that reconciles leaves out what it is about to read, and another gets it",
        reference="not reported; KIP-848, `AbstractMembershipManager.revokeAndAssign`; by reading, not executed",
        setup=(
            "Two consumers, one partition, KIP-848. A consumer acknowledges an assignment once it has come to it; a"
            " heartbeat that follows a lost answer tells all, and names what the consumer had come to before. An"
            " assignment that arrives while it reconciles is taken up afterwards."
        ),
        failing=Configuration("group", {"protocol": "consumer", **ONE_DISCONNECT}),
        invariant="ExclusiveOwnership",
        outcome=(
            "A consumer is assigned the partition and is about to read it. The target changes, and the connection is lost."
            " Its full heartbeat owns nothing, so the coordinator takes the partition as given up already, without waiting"
            " for an acknowledgement, and gives it to the other consumer. Both begin to read. No session has ended, and"
            " no request was late. The first finds out by its next answer; its commits are refused until then."
        ),
        rules=(what_is_reconciled_or_to_come,),
        repair=(
            "A consumer names also what it is about to read, or has been assigned and not yet begun with. The coordinator"
            " then asks for it, and waits."
        ),
        repaired=Configuration("group", {"protocol": "consumer-next", **ONE_DISCONNECT}),
    ),
    Study(
        name="commit-of-an-earlier-epoch",
        title="A former owner commits a partition that another consumer reads",
        summary="a commit of an earlier epoch counts, though its partition has gone to another member",
        reference="KIP-1251, KAFKA-20066; its rule weakened",
        setup=(
            "Two consumers, one partition, KIP-848. A commit on its way while the epoch moves was refused up to 4.2, though"
            " the consumer kept the partition. Here it counts whenever its member is in the group."
        ),
        failing=Configuration("group", {"protocol": "consumer-next", "mutant": "commits-of-any-epoch"}),
        invariant="OnlyMembersCommit",
        outcome=(
            "A consumer sends a commit, gives the partition up and acknowledges that. The other consumer has the partition"
            " when the commit arrives, and it counts all the same: the offset is no longer in the owner's hands."
        ),
        rules=(if_owned_since,),
        repair="Each partition has the epoch in which it was assigned; an older commit counts if that is not later.",
        repaired=Configuration("group", {"protocol": "consumer-next"}),
    ),
    Study(
        name="partition-given-back",
        title="A partition is given back, and its owner is forgotten",
        summary="a partition that a member was to give up, and is assigned again, counts as nobody's",
        reference="KAFKA-16147; repaired before 3.8 (January 2024); its rule weakened",
        setup=(
            "Two consumers, one partition, KIP-848. The coordinator keeps who owns each partition. When a member has other"
            " partitions it noted those that it is assigned, and then took away those that it had to give up before."
        ),
        failing=Configuration("group", {"protocol": "consumer-next", "mutant": "given-back-forgotten", **GIVEN_BACK}),
        invariant="ExclusiveOwnership",
        outcome=(
            "A consumer is to give the partition up, and before it has, the target changes and it gets it back. The"
            " partition goes from what it has to give up to what it is assigned, and its entry is written and then"
            " removed. With the next target the partition is free, so the other consumer is given it at once, and both read."
        ),
        rules=(owners_after,),
        repair="All that a member had is taken away first; then all that it has is noted.",
        repaired=Configuration("group", {"protocol": "consumer-next", **GIVEN_BACK}),
    ),
    Study(
        name="fenced-while-joining",
        title="A consumer that joins again is fenced until its session ends",
        summary="a member that joins again by its id is compared with the epoch that it does not know",
        reference="KAFKA-19233; 4.0 and 4.1",
        setup=(
            "Two consumers, one partition, KIP-848, the coordinator of 4.0 and 4.1 (the record `3.4`, whose rules of"
            " consumer groups they have). A heartbeat of epoch 0 joins. It is let in if the member's epoch, or the one"
            " before, is that."
        ),
        failing=Configuration("group", {"protocol": "consumer-next", "release": "3.4", **TWO_DISCONNECTS}),
        invariant="WhoJoinsIsLetIn",
        outcome=(
            "Answers to a consumer are lost, and it is fenced, so it is to join again. The coordinator knows it in a later"
            " epoch, and fences it: it joins again, and is fenced again, and nobody has its partition until its session"
            " ends."
        ),
        rules=(is_known_epoch_or_joins,),
        repair="A member may always join again; what it owned it has given up by then.",
        repaired=Configuration("group", {"protocol": "consumer-next", "release": "4.2", **TWO_DISCONNECTS}),
    ),
    Study(
        name="member-without-a-client",
        title="A member that no client knows of",
        summary="the coordinator makes up the id of a consumer, which is another member if the first answer is lost",
        reference="KAFKA-17116, KIP-1082; the early versions of KIP-848 up to 3.9; its rule weakened",
        setup=(
            "One consumer, KIP-848. It joins without an id, and the answer tells it the one that the coordinator has made"
            " up."
        ),
        failing=Configuration("group", {"mutant": "told-its-id", "lives": 2, **ONE_CONSUMER}),
        invariant="OneMemberEach",
        outcome=(
            "The consumer has joined, and the answer is lost. It joins again, without an id, since it knows none, and is a"
            " second member. The first one has no client: nobody can let it leave, and what it is assigned nobody reads"
            " until its session ends."
        ),
        rules=(own_id,),
        repair="A consumer makes up its id before it joins, and so can repeat the request, and leave, whatever is lost.",
        repaired=Configuration("group", ONE_CONSUMER),
    ),
)
