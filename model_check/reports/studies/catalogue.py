"""The studies of the published models, and all studies together.

No run is stored here. The bounds are the smallest in which the failure shows; the repaired protocol is explored completely
within the same bounds. The texts speak of roles, not of broker ids, because another engine may find another shortest run.
"""

from typing import Any

from kspec.model_check.reports.studies.group import GROUP_STUDIES
from kspec.model_check.reports.studies.kafka import KAFKA_STUDIES
from kspec.model_check.reports.studies.quorum import QUORUM_STUDIES
from kspec.model_check.reports.studies.study import Configuration, Study
from kspec.model_check.reports.studies.transactions import TRANSACTION_STUDIES
from kspec.spec.broker.rules.epoch_lookup import look_up_as_designed
from kspec.spec.broker.rules.fencing import check_serves
from kspec.spec.broker.rules.isr.proposal import maximal_isr, propose
from kspec.spec.broker.rules.leadership import start_leading_with_epoch_entry
from kspec.spec.broker.rules.produce import check_produce
from kspec.spec.published.election import may_elect_cleanly, may_lead_next
from kspec.spec.published.fetch import fetch_fenced_by_leader_epoch
from kspec.spec.published.high_watermark import replicated_by_leader_epoch
from kspec.spec.published.isr import join_after_epoch_start
from kspec.spec.published.produce import acknowledged_on_commit
from kspec.spec.published.truncation import truncate_to_common_epoch, truncate_to_epoch_end


def _bounds(replicas: int, log_size: int, max_records: int, max_epoch: int) -> dict[str, Any]:
    return {"replicas": replicas, "log_size": log_size, "max_records": max_records, "max_epoch": max_epoch}


LOSS_AFTER_RESTART = {**_bounds(2, 1, 1, 1), "restarts": 1, "acks": "all"}
DIVERGENCE = {**_bounds(2, 1, 2, 1), "power_losses": 2}
AS_KAFKA_ANSWERS = ("clamp-truncation", "truncate-against-leader", "own-epoch-entry")
FAST_LEADER_CHANGES = _bounds(2, 2, 3, 2)
OWN_EPOCH = {**_bounds(2, 2, 2, 2), "repair": ("kafka-epoch-lookup",)}
OUT_OF_ORDER = _bounds(2, 2, 2, 2)
THREE_ELECTIONS = _bounds(3, 1, 1, 2)
TWO_RECORDS = _bounds(3, 1, 2, 2)
TWO_ELECTIONS = _bounds(3, 1, 1, 1)
UNCLEAN = _bounds(2, 1, 2, 2)
ACKS = _bounds(2, 1, 1, 1)
MIN_ISR = {**_bounds(2, 1, 1, 2), "acks": "all", "unclean": True}

PUBLISHED_STUDIES = (
    Study(
        name="kip-101-loss",
        hazard="Z1",
        title="A restarted follower throws away a committed record",
        summary="truncation to the high watermark loses an acknowledged record when the follower is elected next",
        reference="KIP-101, scenario 1; KAFKA-1211",
        setup=(
            "Two replicas, Kafka up to 0.10, acks=all. A follower learns of the leader's high watermark one fetch"
            " late: a record that it has just fetched may be committed on the leader while the follower's own high"
            " watermark is still below it. Whenever it starts to follow, it truncates its log to its own high"
            " watermark. It may restart once, with its log and its high watermark intact."
        ),
        failing=Configuration("truncate-to-hw", LOSS_AFTER_RESTART),
        invariant="AcknowledgedOnLeader",
        outcome=(
            "The leader writes a record, the follower fetches it, the record is committed and acknowledged. The follower"
            " restarts; it is still in sync. While the controller elects it leader, it first handles the older"
            " announcement, follows once more, and truncates the record away. Then it leads. The acknowledged record is"
            " not in the new leader's log. The old leader still has it, which is worse, as the next study shows."
        ),
        rules=(truncate_to_epoch_end,),
        repair=(
            "The high watermark says which records a follower knows to be committed, not which records it shares with the"
            " leader. If it asks the leader where its last epoch ends, it keeps all common records, committed or not."
        ),
        repaired=Configuration("kip-101", LOSS_AFTER_RESTART),
    ),
    Study(
        name="kip-101-divergence",
        hazard="Z2",
        title="Two replicas hold different committed records at one offset",
        summary="truncation to the high watermark keeps a record that another leader has replaced",
        reference="KIP-101, scenario 2; KAFKA-1211",
        setup=(
            "Two replicas, Kafka up to 0.10. Brokers may lose power and come back without the last records of their"
            " log, which were still in the page cache. KIP-101 tells this scenario with both brokers losing power; the"
            " bounds allow for that, and the shortest run needs it of one only, since the other truncates in the same"
            " way when it becomes a follower. That the record is gone from an in-sync replica is not the point here: no"
            " truncation rule brings it back. The point is that the two logs must not go on disagreeing."
        ),
        failing=Configuration("truncate-to-hw", DIVERGENCE),
        invariant="FollowersMatchLeader",
        outcome=(
            "A record is committed on both. The follower loses power and with it the record; it is still in sync, is"
            " elected, and writes another record at the same offset. The old leader becomes its follower. Its own high"
            " watermark lies above its record, so it keeps it, and the new leader counts its log end as a copy of the"
            " new record. Both take the offset for committed, with different records, and replication never compares"
            " them again."
        ),
        rules=(truncate_to_epoch_end, start_leading_with_epoch_entry),
        repair=(
            "The old leader asks the new one where its last epoch ends, learns that it ended before the record, and"
            " drops its copy. For that the new leader must lead already, and must be able to place the epoch although"
            " its log is empty: it notes where its own epoch starts (KAFKA-7415). Kafka 0.11 lacked that entry, and"
            " with it missing the run is still possible."
        ),
        repaired=Configuration("kip-101", {**DIVERGENCE, "repair": AS_KAFKA_ANSWERS}),
    ),
    Study(
        name="kip-279-fast-leader-changes",
        hazard="Z3",
        title="Two leader changes in quick succession defeat KIP-101",
        summary="a follower asks about an epoch that its leader has never seen, and keeps a record of it",
        reference="KIP-279; KAFKA-6361",
        setup=(
            "Two replicas, Kafka 0.11. The leadership goes to one broker, to the other, and back, and both learn of"
            " it late: each leads for a while without having followed the other. A follower asks where the epoch of"
            " its last record ends in the leader's log; the answer is an offset alone."
        ),
        failing=Configuration("kip-101", FAST_LEADER_CHANGES),
        invariant="LogMatching",
        outcome=(
            "The first broker writes a record in epoch 0 and, leading again, another in epoch 2. The second broker"
            " writes a record in epoch 1 at offset 0. It then follows and asks where epoch 1 ends. The leader has no"
            " record of epoch 1 and names the start of the next epoch it knows, offset 1. So the follower keeps its"
            " record at offset 0 and fetches the next one. At offset 0, below both high watermarks, the two logs"
            " differ for good."
        ),
        rules=(truncate_to_common_epoch, look_up_as_designed),
        repair=(
            "The leader's answer also names the epoch it is about: the largest one it has up to the epoch asked. A"
            " follower that does not have that epoch knows that its own is not shared, drops it and asks about the one"
            " before."
        ),
        repaired=Configuration("kip-279", FAST_LEADER_CHANGES),
    ),
    Study(
        name="kafka-7415-own-epoch",
        hazard="Z4",
        title="A leader without a record of its own epoch cannot say where the last one ended",
        summary="an undefined answer sends the follower back to its high watermark, below a committed record",
        reference="KAFKA-7415",
        setup=(
            "Two replicas, all rules of Kafka 2.1 except one: a new leader notes its epoch only with its first"
            " record. As released, a leader that is asked about an epoch above all it knows answers `undefined`, and"
            " the follower truncates to its high watermark, as before KIP-101."
        ),
        failing=Configuration("kip-320", OWN_EPOCH),
        invariant="StrongIsr",
        outcome=(
            "A record is committed in epoch 0, and the follower does not know that yet: its high watermark is 0. It"
            " leads in epoch 1 and writes a record of its own. The first broker leads in epoch 2 and has written"
            " nothing in it, so the latest epoch in its log is 0. Asked about epoch 1, it answers `undefined`. The"
            " follower truncates to its high watermark and with that drops the committed record, while it is in the"
            " ISR."
        ),
        rules=(start_leading_with_epoch_entry,),
        repair=(
            "A new leader notes where its epoch starts before it writes or answers anything. Then every epoch that a"
            " follower in the same epoch can ask about is at most the latest one known, and the answer is defined."
        ),
        repaired=Configuration("kip-320", {**OWN_EPOCH, "repair": ("kafka-epoch-lookup", "own-epoch-entry")}),
    ),
    Study(
        name="epochs-out-of-order",
        hazard="Z3",
        title="Unfenced fetches put a log's epochs out of order, and KIP-279's questions then find nothing",
        summary="a follower in an older epoch fetches a record of a later one, then leads in an epoch in between",
        reference="found by this checker; KIP-320 repairs it",
        setup=(
            "Two replicas, Kafka 2.0. The published model of KIP-279 finds the common end of two logs by comparing"
            " them, and holds within these bounds. Here the follower finds it as a broker must: it sends"
            " OffsetForLeaderEpoch for the last epoch of its log, and again until an epoch is shared. That works if"
            " epochs never go down within a log. A fetch does not carry an epoch, though, so a follower still in epoch"
            " 0 may be served by the same broker that already leads in epoch 2."
        ),
        failing=Configuration("kip-279", {**OUT_OF_ORDER, "truncation": "exchange"}),
        invariant="StrongIsr",
        outcome=(
            "The follower, in epoch 0, fetches a record of epoch 2, and it is committed. Only then does the follower"
            " hear that it leads in epoch 1, and writes a record: its log now runs from epoch 2 to epoch 1. Following"
            " again in epoch 2, it asks where epoch 1 ends. The leader knows only epoch 2 and answers: nothing up to"
            " epoch 1, which ends at offset 0. The follower truncates to 0 and drops the committed record, which both"
            " logs shared."
        ),
        rules=(fetch_fenced_by_leader_epoch,),
        repair=(
            "With the follower's epoch in every fetch, a leader serves only followers of its own epoch. No log gets a"
            " record from a later epoch than its owner is in, so epochs never go down in any log, and asking"
            " backwards by epoch meets every shared record. Of KIP-320's rules this one alone is enough within these"
            " bounds; the fence on OffsetForLeaderEpoch alone is not."
        ),
        repaired=Configuration("kip-320", OUT_OF_ORDER),
    ),
    Study(
        name="kip-320-zombie",
        hazard="Z5",
        title="A follower truncates by the answer of a deposed leader",
        summary="a follower does not know that its leader is deposed, and truncates what the true leader has committed",
        reference="KIP-320; KAFKA-6880",
        setup=(
            "Three replicas, Kafka 2.0. Three elections follow each other: one broker, another, the first again. A"
            " third broker hears of them late and in order. Neither fetches nor OffsetForLeaderEpoch carry the epoch"
            " in which the sender follows, and a replica answers OffsetForLeaderEpoch in whatever role it is."
        ),
        failing=Configuration("kip-279", THREE_ELECTIONS),
        invariant="CommittedOnNextLeader",
        outcome=(
            "The first broker leads in epoch 2, writes a record and drops the second from the ISR. The third, still"
            " following the first in epoch 0, fetches the record, and it is committed: both members of the ISR have"
            " it. Then the third hears of epoch 1, follows the second broker, which has an empty log, and truncates to"
            " nothing. It is still in the ISR and may be elected, without the committed record."
        ),
        rules=(check_serves, fetch_fenced_by_leader_epoch, replicated_by_leader_epoch),
        repair=(
            "Every request of a follower carries its epoch. A broker of another epoch does not answer, a fetch of another"
            " epoch is neither served nor counted, and so a follower that has yet to pass through an older epoch cannot"
            " help to commit anything in the new one."
        ),
        repaired=Configuration("kip-320", THREE_ELECTIONS),
    ),
    Study(
        name="kip-320-first-try",
        hazard="Z6",
        title="The first draft of KIP-320: compare the last record's epoch, truncate when refused",
        summary="the epoch of the last record shows that logs agree now, not that the follower will keep its log",
        reference="the first draft of KIP-320; refuted by the authors of its TLA+ model",
        setup=(
            "Three replicas. In this draft a follower does not truncate when it starts to follow. Each fetch carries"
            " the epoch of the follower's last record; a leader whose log has another epoch there refuses, and only"
            " then does the follower truncate. The high watermark counts a follower whose last record has the right"
            " epoch."
        ),
        failing=Configuration("kip-320-first-try", THREE_ELECTIONS),
        invariant="CommittedOnNextLeader",
        outcome=(
            "A follower that is still in epoch 0 fetches a record from the leader of epoch 2, and its last record now"
            " has the leader's epoch: it counts, and the record is committed. Then it hears of epoch 1 and fetches"
            " from the leader of the past. That one has an empty log, refuses, and the follower truncates what it has"
            " acknowledged, while it is in the ISR."
        ),
        rules=(check_serves, fetch_fenced_by_leader_epoch, replicated_by_leader_epoch),
        repair=(
            "What counts is the epoch in which the follower follows, not the epoch of what it holds. In the released"
            " KIP-320 a request carries that epoch, and a leader of any other one refuses it."
        ),
        repaired=Configuration("kip-320", THREE_ELECTIONS),
    ),
    Study(
        name="unfenced-truncation",
        hazard="Z7",
        title="Without a fence on OffsetForLeaderEpoch: a comparison that is out of date when it counts",
        summary="a follower compares its log with that of a broker that does not lead yet, and that changes before it does",
        reference="KIP-320; `Kip320.tla`",
        setup=(
            "Three replicas, Kafka 2.1 with one rule weakened: a replica answers OffsetForLeaderEpoch in whatever"
            " epoch it is. The leadership goes to one broker, to a second, and back to the first."
        ),
        failing=Configuration("kip-320", {**TWO_RECORDS, "mutant": "unfenced-truncation"}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "The third broker fetches a record of epoch 0 from the first. It then hears of epoch 2 and compares its"
            " log with the first broker's, which is still in epoch 0: they agree, nothing is truncated. Now the first"
            " broker hears of epoch 1, follows the second and truncates to nothing; it hears of epoch 2, leads, and"
            " writes another record at the same offset, and drops the second from the ISR. The third is in epoch 2 and"
            " has a record there, so it counts. The new record is committed without being on the third broker, an ISR"
            " member."
        ),
        rules=(check_serves,),
        repair=(
            "A follower may compare only with a leader of its own epoch. From then on that leader's log does not"
            " shrink while the epoch lasts, so the comparison stays true."
        ),
        repaired=Configuration("kip-320", TWO_RECORDS),
    ),
    Study(
        name="unfenced-fetch",
        hazard="Z5",
        title="Without a fence on fetches: a deposed leader knows of a commit that its ISR does not share",
        summary="no committed record is lost, but a deposed leader counts a record of a later epoch as committed",
        reference="KIP-320; one of its rules weakened",
        setup=(
            "Three replicas, Kafka 2.1 with one rule weakened: a leader serves fetches of any epoch, though it counts"
            " only those of its own for the high watermark and the ISR."
        ),
        failing=Configuration("kip-320", {**THREE_ELECTIONS, "mutant": "unfenced-fetch"}),
        invariant="WeakIsr",
        outcome=(
            "The leader of epoch 2 has dropped both followers from the ISR and commits a record alone. A follower"
            " still in epoch 0 fetches the record together with the high watermark. Then it hears that it leads in"
            " epoch 1: a deposed leader that takes the record for committed, with an ISR of three in mind of which one"
            " has never seen it. Nothing is lost, because every possible next leader has the record:"
            " CommittedOnNextLeader and StrongIsr hold in this weakened protocol, over its complete state space within"
            " the same bounds. What breaks is what a leader may assume of its own ISR."
        ),
        rules=(fetch_fenced_by_leader_epoch,),
        repair=(
            "A leader that serves only followers of its own epoch hands out neither records nor a high watermark of"
            " an epoch that the follower has not reached."
        ),
        repaired=Configuration("kip-320", THREE_ELECTIONS),
    ),
    Study(
        name="high-watermark-without-epoch",
        hazard="Z8",
        title="A leader counts what a follower acknowledged in another epoch",
        summary="the follower has yet to follow the leader of an epoch in between, and truncates what was counted",
        reference="KIP-320; `Kip320.tla`",
        setup=(
            "Three replicas, Kafka 2.1 with one rule weakened: for the high watermark and the ISR a leader uses the"
            " offset of a follower's last fetch, not its epoch. The leadership goes to one broker, to a second, and back"
            " to the first."
        ),
        failing=Configuration("kip-320", {**THREE_ELECTIONS, "mutant": "high-watermark-without-epoch"}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "The third broker fetches a record from the first in epoch 0. The first goes on to lead in epoch 2, drops"
            " the second from the ISR, and commits the record, counting the fetch of epoch 0. Then the third hears of"
            " epoch 1, follows the second broker, whose log is empty, and truncates the committed record while it is"
            " in the ISR."
        ),
        rules=(replicated_by_leader_epoch,),
        repair=(
            "A fetch counts in the epoch in which it was made. A follower in the leader's own epoch has done all the"
            " truncation of earlier ones."
        ),
        repaired=Configuration("kip-320", THREE_ELECTIONS),
    ),
    Study(
        name="join-before-epoch-start",
        hazard="Z9",
        title="A follower joins the ISR of a leader that does not know yet what is committed",
        summary="a new leader's high watermark is behind, so reaching it is not enough to be in sync",
        reference="KAFKA-7128; KIP-320",
        setup=(
            "Three replicas, Kafka 2.1 with one rule weakened: a follower joins the ISR as soon as it has reached the"
            " leader's high watermark. A new leader's high watermark is what it learnt as a follower, which may be"
            " less than what its predecessor has committed."
        ),
        failing=Configuration("kip-320", {**TWO_ELECTIONS, "mutant": "join-before-epoch-start"}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "The first leader writes a record and drops the third broker from the ISR; the second broker fetches the"
            " record, and it is committed. The second broker, elected meanwhile, starts to lead with a high watermark"
            " of 0. The third follows it with an empty log: it has reached offset 0 and joins the ISR. It may be"
            " elected without the committed record."
        ),
        rules=(join_after_epoch_start,),
        repair=(
            "All records that an earlier leader can have committed lie before the start of the new leader's epoch, so a"
            " follower joins only when it has reached that start."
        ),
        repaired=Configuration("kip-320", TWO_ELECTIONS),
    ),
    Study(
        name="async-isr-committed-only",
        hazard="Z10",
        title="The high watermark does not wait for a replica whose admission is under way",
        summary="the controller has admitted a follower; the leader does not know that yet, and commits without it",
        reference="KIP-497",
        setup=(
            "Two replicas; one leads throughout. Since KIP-497 the leader asks the controller to change the ISR and"
            " hears of the result later. One rule is weakened: the high watermark waits only for the ISR that the"
            " leader knows to be confirmed."
        ),
        failing=Configuration(
            "async-isr",
            {"replicas": 2, "max_offset": 1, "max_partition_epoch": 2, "mutant": "high-watermark-over-committed-isr"},
        ),
        invariant="CommittedOnNextLeader",
        outcome=(
            "The controller takes the follower out of the ISR, and the leader learns of it. The leader proposes to"
            " admit the follower again, and the controller agrees; its answer is under way. The leader writes a record"
            " and, alone in the ISR it knows of, commits it. The controller may elect the follower, which does not"
            " have it."
        ),
        rules=(maximal_isr,),
        repair=(
            "Until the controller has answered, the leader counts every replica that is in the ISR under either"
            " outcome: the confirmed ISR and the proposed one."
        ),
        repaired=Configuration("async-isr", {"replicas": 2, "max_offset": 1, "max_partition_epoch": 2}),
    ),
    Study(
        name="async-isr-shrink-early",
        hazard="Z10",
        title="A leader drops a follower before the controller has agreed",
        summary="the controller still counts a follower as in sync that the leader no longer waits for",
        reference="KIP-497",
        setup=(
            "Two replicas; one leads throughout. One rule is weakened: a leader behaves as if its proposal to the"
            " controller had been granted at once."
        ),
        failing=Configuration(
            "async-isr", {"replicas": 2, "max_offset": 1, "max_partition_epoch": 1, "mutant": "shrink-before-confirmation"}
        ),
        invariant="CommittedOnNextLeader",
        outcome=(
            "The leader proposes to drop the follower and stops waiting for it. It writes a record, which is"
            " committed at once. The controller has not even seen the proposal: to it the follower is in the ISR and"
            " may be elected, without the record."
        ),
        rules=(propose, maximal_isr),
        repair=(
            "A proposal changes what the leader may have to wait for, never what it may stop waiting for. A shrink"
            " takes effect when it is confirmed."
        ),
        repaired=Configuration("async-isr", {"replicas": 2, "max_offset": 1, "max_partition_epoch": 1}),
    ),
    Study(
        name="unclean-election",
        hazard="Z15",
        title="Unclean election: two brokers commit different records at one offset",
        summary="an out-of-sync replica leads without the committed records, and writes others at their offsets",
        reference="KIP-106; `unclean.leader.election.enable`",
        setup=(
            "Two replicas, Kafka 2.1, unclean election allowed. The ISR has shrunk to the leader alone, so every"
            " record is committed as soon as the leader has it."
        ),
        failing=Configuration("kip-320", {**UNCLEAN, "unclean": True}),
        invariant="LogMatching",
        outcome=(
            "The leader writes a record and drops the follower from the ISR. The controller counts the leader as failed."
            " No in-sync replica is left, so it elects the other one. The old leader, which does not know that, commits"
            " its record alone. The new leader writes and commits another at the same offset. Consumers of the one have"
            " read what consumers of the other never see."
        ),
        rules=(may_elect_cleanly, may_lead_next),
        repair=(
            "Only an in-sync replica is elected. While none is available the partition has no leader: the setting"
            " chooses between availability and the records."
        ),
        repaired=Configuration("kip-320", UNCLEAN),
    ),
    Study(
        name="acks-1",
        hazard="Z16",
        title="acks=1: an acknowledged record that was never committed",
        summary="an acknowledgement by the leader alone is void once another broker leads",
        reference="the producer setting `acks`",
        setup=(
            "Two replicas, Kafka 2.1, clean elections only, a producer with acks=1: the leader acknowledges as soon"
            " as it has the record itself. Replication is correct here, and no committed record is lost."
        ),
        failing=Configuration("kip-320", {**ACKS, "acks": "1"}),
        invariant="AcknowledgedOnLeader",
        outcome=(
            "The controller has moved the leadership to the other in-sync replica, which leads already. The old leader"
            " has not heard of it, takes a record and acknowledges it. The true leader does not have it, and the old"
            " leader will truncate it when it follows. The record is also lost if a leader acknowledges it and fails"
            " before a follower has fetched it."
        ),
        rules=(acknowledged_on_commit,),
        repair=(
            "With acks=all the producer is told when the record is committed. That takes every in-sync replica, the"
            " one that has been elected among them, and it fetches no more from the old leader."
        ),
        repaired=Configuration("kip-320", {**ACKS, "acks": "all"}),
    ),
    Study(
        name="min-isr-1",
        hazard="Z17",
        title="acks=all with min.insync.replicas=1: one replica is enough",
        summary="the producer gets its acknowledgement when the only in-sync replica has the record",
        reference="the topic setting `min.insync.replicas`",
        setup=(
            "Two replicas, Kafka 2.1, acks=all, min.insync.replicas=1, unclean election allowed: the second replica"
            " stands for whatever is left when the only in-sync one is gone."
        ),
        failing=Configuration("kip-320", {**MIN_ISR, "min_isr": 1}),
        invariant="AcknowledgedOnLeader",
        outcome=(
            "The leader writes a record and drops the follower from the ISR. The controller takes the leader for"
            " failed and elects the other replica uncleanly, which leads without the record. The old leader, which has"
            " not heard of that, is alone in its ISR: it commits the record and acknowledges it, although no other"
            " replica has it."
        ),
        rules=(check_produce, acknowledged_on_commit),
        repair=(
            "With min.insync.replicas=2 a leader alone refuses the write, and does not acknowledge what it has"
            " appended before the ISR shrank. What is acknowledged is then on both replicas, and either may lead."
        ),
        repaired=Configuration("kip-320", {**MIN_ISR, "min_isr": 2}),
    ),
)
"""The studies in the order of Kafka's history, settings last."""

STUDIES = (*PUBLISHED_STUDIES, *KAFKA_STUDIES, *GROUP_STUDIES, *TRANSACTION_STUDIES, *QUORUM_STUDIES)
