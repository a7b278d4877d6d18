"""The studies of model `kafka`: failures that need messages under way, metadata that arrive late, or brokers that stop.

If a released version has only this fault within the bounds, that release is shown; else `next` with the one rule weakened.
"""

from typing import Any

from kspec.model_check.reports.studies.study import Configuration, Study
from kspec.spec.broker.rules.divergence import count_unless_diverging
from kspec.spec.broker.rules.fencing import check_replica_epoch
from kspec.spec.broker.rules.fetcher import keep_high_watermark, keep_last_epoch_if_empty, take_up_to_epoch, takes_same_epoch
from kspec.spec.broker.rules.followers import knows_followers_if_no_epoch_was_missed
from kspec.spec.broker.rules.high_watermark import advance_at_min_isr
from kspec.spec.broker.rules.isr.announcement import apply_news
from kspec.spec.broker.rules.isr.errors import roll_back_if_ineligible
from kspec.spec.broker.rules.isr.membership import eligible_in_its_broker_epoch
from kspec.spec.broker.rules.isr.proposal import maximal_isr
from kspec.spec.broker.rules.lifecycle import acts_once_registered, opens_ports_once_unfenced
from kspec.spec.broker.rules.offsets import lags_behind_epoch_start
from kspec.spec.broker.rules.truncation import truncation_step
from kspec.spec.controller.rules.brokers import new_incarnation_is_clean_if_it_says_so
from kspec.spec.controller.rules.isr_proposals import (
    active_is_eligible,
    refusal_ends_proposal,
    same_broker_epoch_is_eligible,
)
from kspec.spec.controller.rules.partition_change import with_assigned_eligible_leaders

REPAIRED: dict[str, Any] = {"release": "next"}
TWO_IN_ONE_DELTA: dict[str, Any] = {"elections": 1, "fencings": 1}
THREE_ELECTIONS_LATE: dict[str, Any] = {"elections": 3, "late_fetches": 1}
LATE_ANSWER: dict[str, Any] = {"elections": 2, "values": 2, "late_fetches": 1}
FOUR_VALUES_LATE: dict[str, Any] = {"elections": 1, "values": 4, "late_fetches": 1}
LATE_FETCH_AND_LOSS: dict[str, Any] = {"elections": 0, "unclean_shutdowns": 1, "late_fetches": 1}
ONE_SHRINK: dict[str, Any] = {"elections": 0, "isr_shrinks": 1}
TWO_BROKERS_ONE_SHRINK: dict[str, Any] = {"brokers": 2, "min_isr": 1, **ONE_SHRINK}
TWO_RECORDS: dict[str, Any] = {"values": 2, "elections": 1}
LAST_REPLICA: dict[str, Any] = {"brokers": 2, "elections": 0, "isr_shrinks": 1, "unclean_shutdowns": 1}
FENCED_AND_LOST: dict[str, Any] = {"brokers": 2, "min_isr": 1, "elections": 0, "fencings": 1, "unclean_shutdowns": 1}
FOUR_EPOCHS: dict[str, Any] = {"brokers": 2, "min_isr": 1, "values": 2, "elections": 2, "fencings": 1}
FOLLOWER_LOST_TWICE: dict[str, Any] = {
    **TWO_BROKERS_ONE_SHRINK,
    "unclean_shutdowns": 2,
    "slow_registrations": 1,
    "only_stops": 2,
}
SENT_TWICE: dict[str, Any] = {**TWO_BROKERS_ONE_SHRINK, "fencings": 1, "late_proposals": 1}
ONE_POWER_LOSS: dict[str, Any] = {"brokers": 2, "elections": 0, "unclean_shutdowns": 1}

KAFKA_STUDIES = (
    Study(
        name="latest-offset",
        hazard="Z18",
        title="A consumer is sent back by a new leader",
        summary="a new leader's high watermark is behind, so its latest offset is before records that consumers have read",
        reference="KIP-207",
        setup=(
            "Three replicas, Kafka 2.1. A consumer that asks where the log ends is told the leader's high watermark. A"
            " new leader's high watermark is what it learnt as a follower, one fetch behind."
        ),
        failing=Configuration("kafka", {"release": "2.1", "elections": 1}),
        invariant="LatestOffset",
        outcome=(
            "A record is committed and can be read. The controller elects a follower that has the record and does not"
            " know yet that it is committed. Asked for the latest offset, the new leader answers 0. To a consumer that has"
            " read the record its own position is out of range. No record is lost, but the latest offset goes back."
        ),
        rules=(lags_behind_epoch_start,),
        repair=(
            "All records that an earlier leader can have committed lie below the start of the new leader's epoch. Until"
            " its high watermark has reached that start, a leader answers that the offset is not available yet, and the"
            " consumer asks again."
        ),
        repaired=Configuration("kafka", {"release": "2.2", "elections": 1}),
    ),
    Study(
        name="diverging-fetch",
        hazard="Z22",
        title="A leader counts the end of a log that is about to be truncated",
        summary="a fetch that is answered with a divergence still counts for the high watermark",
        reference="KAFKA-13141",
        setup=(
            "Three replicas, the repaired version with one rule weakened, which Kafka 2.8 had so. Since KIP-595 a fetch"
            " names the epoch of the record before its offset; if the leader's log has another history there, the answer"
            " says where the two diverge, and the follower truncates."
        ),
        failing=Configuration("kafka", {"mutant": "count-diverging-fetch", **TWO_RECORDS}),
        invariant="AcknowledgedOnNextLeader",
        outcome=(
            "The first leader appends a record that nobody fetches. The controller elects another, which leads and"
            " appends a record of its own at the same offset. The first leader follows it and fetches from its own end,"
            " which lies behind a record of the epoch before. The answer tells it to truncate, but the new leader takes"
            " that offset for the end of a common log. With the fetches of the third broker its record is committed and"
            " acknowledged, though the first broker does not have it and is in the ISR."
        ),
        rules=(count_unless_diverging,),
        repair="An offset says something about a follower's log only if the logs agree up to it.",
        repaired=Configuration("kafka", {**REPAIRED, **TWO_RECORDS}),
    ),
    Study(
        name="rolled-back-proposal",
        hazard="Z10",
        title="A leader drops a proposal that the controller has granted",
        summary="an error that proves nothing counts as a refusal, and the leader commits without the new member",
        reference="KIP-497; `Partition.handleAlterPartitionError`",
        setup=(
            "Two replicas, the repaired version with one rule weakened: a leader rolls back a proposal after every error."
            " The answer to AlterPartition may be lost; the leader then asks again with the same partition epoch."
        ),
        failing=Configuration("kafka", {"mutant": "roll-back-on-any-error", **TWO_BROKERS_ONE_SHRINK}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "The follower has been dropped from the ISR. It fetches, and the leader proposes to admit it. The controller"
            " grants that, and its answer is lost. The leader asks again; now the partition epoch is outdated, and the"
            " controller refuses. The leader drops the proposal, is alone in its ISR, and commits a record alone. The"
            " controller may elect the follower, which does not have it."
        ),
        rules=(roll_back_if_ineligible, maximal_isr),
        repair=(
            "A leader rolls back a proposal only after an error which proves that it was not applied. An outdated"
            " partition epoch proves nothing, because the leader's own proposal may have changed it. The leader counts"
            " both outcomes until the metadata show which one is true."
        ),
        repaired=Configuration("kafka", {**REPAIRED, **TWO_BROKERS_ONE_SHRINK}),
    ),
    Study(
        name="fenced-replica",
        hazard="Z12",
        title="A replica that is fenced, and has lost its log, joins the ISR",
        summary="a proposal is granted although the new member is fenced, and has restarted since",
        reference="KIP-841, KAFKA-13916; KIP-903",
        setup=(
            "Two replicas, min.insync.replicas=1, the repaired version with one rule weakened: the controller admits any"
            " broker that a leader proposes, as before Kafka 3.3. A broker's session may expire once, and a broker may"
            " stop once without warning and lose its log."
        ),
        failing=Configuration("kafka", {"mutant": "fenced-replica-admitted", **FENCED_AND_LOST}),
        invariant="UncleanExclusion",
        outcome=(
            "The controller fences a broker, which leaves the ISR, and unfences it. The broker fetches, and the leader"
            " proposes to admit it. While that is under way the broker loses power and its log, and registers again. It is"
            " not in the ISR, so its registration does not change the partition, and the proposal is not outdated. The"
            " controller grants it: a fenced broker with an empty log is in the ISR."
        ),
        rules=(active_is_eligible, same_broker_epoch_is_eligible, eligible_in_its_broker_epoch),
        repair=(
            "The controller admits only unfenced brokers (KIP-841), and only the incarnation that has fetched (KIP-903)."
            " The second condition is needed if the broker is unfenced again before the proposal arrives."
        ),
        repaired=Configuration("kafka", {**REPAIRED, **FENCED_AND_LOST}),
    ),
    Study(
        name="high-watermark-before-truncation",
        hazard="Z21",
        title="A follower takes the high watermark before it truncates",
        summary="a record that the leader does not have counts as committed, if one truncation is not enough",
        reference="KAFKA-14704",
        setup=(
            "Two replicas, min.insync.replicas=1, the repaired version with one rule weakened: a follower that is told to"
            " truncate takes the leader's high watermark first, as in Kafka 2.8 to 3.4. In between, consumers that read"
            " from followers see records that are about to be truncated. Moreover one truncation need not be enough."
        ),
        failing=Configuration("kafka", {"mutant": "high-watermark-before-truncation", **FOUR_EPOCHS}),
        invariant="LogMatching",
        outcome=(
            "Two brokers lead in turn, and neither fetches the other's records: the first in epoch 0, the second in epoch"
            " 1, the first again in epoch 2, in which it appends nothing. It is fenced, and the second leads in epoch 3;"
            " alone in the ISR it commits its record. The first follows it and fetches, naming epoch 2. The answer says"
            " that the leader's log has epoch 1 before that. The first has no epoch 1: it drops epoch 2, and its next"
            " fetch will show that epoch 0 has to be truncated, too. But it has already taken the high watermark, and"
            " counts its own record of epoch 0 as committed."
        ),
        rules=(keep_high_watermark, truncation_step),
        repair=(
            "The high watermark says how much of the *leader's* log is committed. A follower takes it only from an answer"
            " that does not ask it to truncate."
        ),
        repaired=Configuration("kafka", {**REPAIRED, **FOUR_EPOCHS}),
    ),
    Study(
        name="earlier-incarnation",
        hazard="Z11",
        title="A fetch of an earlier incarnation counts for one that has lost the records",
        summary="a fetch from before a loss of power is handled after the broker has come back, and counts",
        reference="KIP-903; KAFKA-14139",
        setup=(
            "Three replicas, min.insync.replicas=2, the repaired version with one rule weakened: a leader does not check"
            " which incarnation of a broker sent a fetch, as up to Kafka 3.4. One broker may stop without warning and lose"
            " its log, and one fetch may be late: a leader handles a received fetch even after fetches of a later"
            " connection."
        ),
        failing=Configuration("kafka", {"mutant": "count-fetch-of-earlier-incarnation", **LATE_FETCH_AND_LOSS}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "A follower has a record and fetches from offset 1; the leader has received that fetch, and not handled it."
            " The follower loses power and its log, registers again, and is unfenced. It fetches from offset 0, and the"
            " leader proposes to admit its new incarnation. Then the leader handles the fetch of the earlier incarnation,"
            " and records that the follower ends at 1. With the third broker's fetches the record is committed, and the"
            " proposal is granted: a member of the ISR has an empty log."
        ),
        rules=(check_replica_epoch, same_broker_epoch_is_eligible),
        repair=(
            "A fetch carries the broker epoch of its incarnation. The leader refuses a fetch of an earlier incarnation"
            " than the one in its metadata, and a proposal names the broker epochs of its members."
        ),
        repaired=Configuration("kafka", {**REPAIRED, **LATE_FETCH_AND_LOSS}),
    ),
    Study(
        name="forgotten-proposal",
        hazard="Z30",
        title="A late announcement makes a leader drop a proposal",
        summary=("metadata that are not new drop a later proposal, and the leader does not wait for the new member"),
        reference="found by this checker; open in Kafka 3.3 to 4.4, see [the finding](../findings/forgotten-proposal.md)",
        setup=(
            "Three replicas, Kafka 4.0, min.insync.replicas=2. There is no election, and no broker stops: one follower"
            " was too slow, and has caught up. A leader learns its ISR twice: from the answer to its proposal, and later"
            " from the metadata."
        ),
        failing=Configuration("kafka", {"release": "4.4", **ONE_SHRINK}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "The leader drops the slow follower, and takes the controller's answer; the metadata with the same change"
            " have not reached it yet. The follower fetches, and the leader proposes to admit it; the controller grants"
            " that. Now the metadata of the *shrink* arrive. They are not older than the leader's own, so it takes them,"
            " and drops the pending proposal. The leader commits and acknowledges a record without the new member, which"
            " the controller may elect."
        ),
        rules=(apply_news,),
        repair=(
            "Metadata of the leader's present partition epoch are not new. The leader keeps a pending proposal that is"
            " based on it."
        ),
        repaired=Configuration("kafka", {**REPAIRED, **ONE_SHRINK}),
    ),
    Study(
        name="missed-epoch",
        hazard="Z19",
        title="A leader that missed an epoch counts records that a follower has truncated",
        summary="two elections reach the old leader at once, and it relies on a fetch made before the follower truncated",
        reference="found by this checker; open in Kafka 0.9 to 4.4, see [the finding](../findings/missed-epoch.md)",
        setup=(
            "Three replicas, Kafka 4.0, min.insync.replicas=2, acks=all, clean elections only, no disk loses anything. A"
            " broker takes all metadata that have arrived as one difference, so it may miss epochs. The controller elects"
            " another leader once, and fences a broker once."
        ),
        failing=Configuration("kafka", {"release": "4.4", **TWO_IN_ONE_DELTA}),
        invariant="AcknowledgedOnNextLeader",
        outcome=(
            "The leader of epoch 0 appends a record; one follower, the witness, fetches it and fetches again, so that the"
            " leader knows. The other broker is correctly elected in epoch 1, without the record; the witness follows it"
            " and truncates. The controller fences that broker: the first one leads again, in epoch 2, with the witness in"
            " the ISR. It reads both epochs as one difference, in which it led before and leads after. So it keeps its"
            " state of the witness, although the witness has truncated since. By this state the record is committed and"
            " acknowledged, but only the leader has it."
        ),
        rules=(knows_followers_if_no_epoch_was_missed,),
        repair=(
            "A leader may keep its state of the followers only if it led in the epoch just before. If it has missed an"
            " epoch, another leader may have made them truncate."
        ),
        repaired=Configuration("kafka", {**REPAIRED, **TWO_IN_ONE_DELTA}),
    ),
    Study(
        name="late-divergence",
        hazard="Z20",
        title="A late answer of an earlier epoch makes a follower truncate committed records",
        summary="an answer counts if leader and offset are the same again, even if other leaders were in between",
        reference="KAFKA-18991",
        setup=(
            "Three replicas, the repaired version with one rule weakened: a follower takes an answer from its present"
            " leader to a fetch from its present offset, in any epoch. One fetch may be late: its sender changes while it"
            " is under way."
        ),
        failing=Configuration("kafka", {"mutant": "take-answer-of-other-epoch", **THREE_ELECTIONS_LATE}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "A broker that has a record follows another in epoch 1, which has none, and fetches from offset 1. The answer"
            " says that the logs diverge at 0, and is late. Meanwhile a third broker, which has the record too, leads in"
            " epoch 2; both others follow it, and the record is committed on all three. Then the second leads again, in"
            " epoch 3, with the record, and the first follows it, at offset 1. Now the answer of epoch 1 arrives: the same"
            " leader, the same offset. The follower truncates the committed record, and it is in the ISR."
        ),
        rules=(takes_same_epoch,),
        repair="An answer counts only in the epoch of its request. Logs are compared again in each epoch.",
        repaired=Configuration("kafka", {**REPAIRED, **THREE_ELECTIONS_LATE}),
    ),
    Study(
        name="forgotten-epoch",
        hazard="Z28",
        title="An answer without records makes a follower clear its last fetched epoch",
        summary="the next fetch names no epoch, so the leader cannot see that the logs diverge, and counts it",
        reference="KAFKA-15510",
        setup=(
            "Three replicas, the repaired version with two rules weakened, as both were in Kafka 3.6.0: the first answer,"
            " if it has no records, clears the epoch that the next fetch names, and an answer counts in any epoch"
            " (KAFKA-18991). The first alone causes no violation within these bounds."
        ),
        failing=Configuration("kafka", {"mutant": "take-answer-of-other-epoch,forget-last-epoch", **LATE_ANSWER}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "A follower has a record of epoch 0 and fetches from that leader at offset 1; the answer has no records, and"
            " is late. The leader learns of epoch 1, follows the leader of that epoch, and replaces its record by another."
            " It leads again in epoch 2, and the follower, which knows nothing of epoch 1, follows it there. Before its"
            " first request in epoch 2 the late answer arrives. It has no records, so the follower clears the epoch of its"
            " last record. Its next fetch, from offset 1, names none; the leader cannot compare, counts the fetch, and"
            " commits its own record at offset 0, where the follower has the other one."
        ),
        rules=(keep_last_epoch_if_empty, takes_same_epoch),
        repair=(
            "An answer without records does not change the follower's log. So the fetcher still names the epoch of its"
            " last record, and the leader compares."
        ),
        repaired=Configuration("kafka", {**REPAIRED, **LATE_ANSWER}),
    ),
    Study(
        name="records-read-late",
        hazard="Z24",
        title="An answer carries records that were written after it was made",
        summary="a follower appends records of an epoch that it has not reached, after one that their leader never had",
        reference="KAFKA-18723",
        setup=(
            "Three replicas, the repaired version with one rule weakened: a follower appends all records of an answer. A"
            " leader gives the network a range of its log file, which is read only when the answer is sent. One fetch may"
            " be late."
        ),
        failing=Configuration("kafka", {"mutant": "take-later-epochs", **FOUR_VALUES_LATE}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "A follower has the leader's first record of epoch 0, and fetches the second. Before the answer is sent, the"
            " leader learns of epoch 1, in which another broker has written two records of its own. It follows, truncates,"
            " and fetches them. The answer's range of the file now holds the second record of epoch 1, and the follower"
            " appends it to the first record of epoch 0. Then it follows the leader of epoch 1: the epoch of its last"
            " record is right, so no divergence is found. It counts as having both records, and they are committed."
        ),
        rules=(take_up_to_epoch,),
        repair=(
            "A follower takes no record of a later epoch than that of its request. The other records were in the leader's"
            " log when that epoch began, or were written by that leader."
        ),
        repaired=Configuration("kafka", {**REPAIRED, **FOUR_VALUES_LATE}),
    ),
    Study(
        name="below-min-isr",
        hazard="Z14",
        title="A leader commits with fewer in-sync replicas than min.insync.replicas",
        summary=(
            "the high watermark moves with a leader alone in its ISR, and a former member is elected without the record"
        ),
        reference="KIP-966; KAFKA-15583",
        setup=(
            "Three replicas, min.insync.replicas=2, the repaired version with one rule weakened: the high watermark moves"
            " with an ISR of any size, as up to Kafka 3.6. A replica that leaves such a small ISR stays eligible, because"
            " no record should be committed without it."
        ),
        failing=Configuration("kafka", {"mutant": "advance-below-min-isr", **ONE_SHRINK}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "The leader drops both followers, and the controller agrees; they stay eligible. The leader alone then"
            " commits a record, and consumers can read it. If the leader stops, one of the others is elected, and the"
            " record is lost."
        ),
        rules=(advance_at_min_isr, with_assigned_eligible_leaders),
        repair="Below min.insync.replicas no record is committed, so the last in-sync replicas have all committed records.",
        repaired=Configuration("kafka", {**REPAIRED, **ONE_SHRINK}),
    ),
    Study(
        name="last-replica-standing",
        hazard="Z13",
        title="The last replica in the ISR comes back without its records, and is elected",
        summary=("the last member stays in the ISR, so a broker that lost committed records leads, and the others truncate"),
        reference="KIP-966",
        setup=(
            "Two replicas, min.insync.replicas=2, the repaired version without eligible leader replicas. The leader may"
            " drop its follower once, and one broker may stop without warning and lose any part of its log that was not"
            " flushed."
        ),
        failing=Configuration("kafka", {**REPAIRED, **LAST_REPLICA, "without_elr": True}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "A record is committed on both; then the follower is dropped from the ISR. The leader loses power and the"
            " record, and starts again. It is the only one in the ISR, so it alone may lead, without the record, which"
            " the follower still has."
        ),
        rules=(with_assigned_eligible_leaders, advance_at_min_isr, new_incarnation_is_clean_if_it_says_so),
        repair=(
            "A replica that leaves an ISR smaller than min.insync.replicas stays eligible, because it has all committed"
            " records. A broker that comes back from an unclean shutdown is neither in sync nor eligible. So a partition"
            " survives min.insync.replicas - 1 brokers that lose records."
        ),
        repaired=Configuration("kafka", {**REPAIRED, **LAST_REPLICA}),
    ),
    Study(
        name="unclean-incarnation-in-isr",
        hazard="Z13",
        title="A broker that lost its records keeps its place in the ISR",
        summary="a broker restarts before the controller has noticed, and its loss of records stays unknown",
        reference="KIP-966; KAFKA-18106",
        setup=(
            "Two replicas, min.insync.replicas=2, the repaired version with one rule weakened: the registration of a new"
            " incarnation does not change partitions, as in Kafka 3.0 to 3.9. One broker may stop without warning."
        ),
        failing=Configuration("kafka", {"mutant": "unclean-replica-keeps-its-place", **ONE_POWER_LOSS}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "A record is committed on both. The follower loses power and the record, and starts again before its session"
            " has timed out. The controller registers the new incarnation and leaves it in the ISR: it may be elected"
            " without the record."
        ),
        rules=(new_incarnation_is_clean_if_it_says_so,),
        repair=(
            "A new incarnation that does not name the broker epoch of a clean shutdown may have lost records that were"
            " not flushed. Its registration removes it from every ISR and from the eligible replicas; it joins again by"
            " fetching."
        ),
        repaired=Configuration("kafka", {**REPAIRED, **ONE_POWER_LOSS}),
    ),
    Study(
        name="answer-before-unfenced",
        hazard="Z31",
        title="A broker leads its old epoch again with a log that has lost records",
        summary="a broker loses power, is back before its session ends, and its follower truncates to it",
        reference="KIP-631; `BrokerServer.startup`",
        setup=(
            "Two replicas, min.insync.replicas=2, Kafka 4.4 with one rule weakened: a starting broker answers requests as"
            " soon as it acts on metadata. Since 3.5 it acts before it is registered. The controller refuses the"
            " registration of a new incarnation while the session of the one before is valid."
        ),
        failing=Configuration(
            "kafka", {"release": "4.4", "mutant": "open-ports-at-once", **ONE_POWER_LOSS, "slow_registrations": 1}
        ),
        invariant="AcknowledgedOnNextLeader",
        outcome=(
            "A record is committed on both and acknowledged. The leader loses power and the record. It starts again at"
            " once, and the metadata still name it as the leader of epoch 0, so it leads epoch 0 again, with an empty log."
            " The follower, in the same epoch, fetches, is told that the logs diverge, and truncates. The record is on no"
            " replica. There was one loss of power and no election."
        ),
        rules=(opens_ports_once_unfenced,),
        repair=(
            "A starting broker opens its ports only after it has been unfenced, and so after it was registered. The"
            " registration takes the leadership away. Up to 3.4 brokers waited for the registration before they acted at"
            " all."
        ),
        repaired=Configuration("kafka", {"release": "4.4", **ONE_POWER_LOSS, "slow_registrations": 1}),
    ),
    Study(
        name="fetch-before-registration",
        hazard="Z32",
        title="A replica joins the ISR by the fetch of an incarnation that was never registered",
        summary="a broker fetches before it is registered, without a broker epoch, and KIP-903's check lets it pass",
        reference="not reported; KIP-903",
        setup=(
            "Two replicas, min.insync.replicas=1, the repaired version with one rule weakened: a starting broker acts on"
            " metadata before it is registered, as in Kafka 3.5 to 4.4. Only the follower stops, twice."
        ),
        failing=Configuration("kafka", {"mutant": "act-before-registration", **FOLLOWER_LOST_TWICE}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "The follower is out of the ISR, and loses power. Its next incarnation fetches before it is registered, so its"
            " fetches carry broker epoch -1. It catches up, and the leader asks to admit it, with broker epoch -1. The"
            " follower loses power again, and its records. The incarnation after that is registered and unfenced. Then the"
            " controller handles the leader's request: a member without a broker epoch is not checked, so the replica is"
            " in the ISR without the record that the leader has committed."
        ),
        rules=(acts_once_registered,),
        repair=(
            "A starting broker does not act on metadata before its registration is acknowledged, as up to 3.4. So every"
            " fetch of a broker since 3.5 names the broker epoch of its incarnation, and a proposal by a fetch of an"
            " earlier incarnation is refused."
        ),
        repaired=Configuration("kafka", {**REPAIRED, **FOLLOWER_LOST_TWICE}),
    ),
    Study(
        name="second-copy-of-a-proposal",
        hazard="Z33",
        title="A proposal that was refused and taken back is granted after all",
        summary="AlterPartition is sent twice, the second copy is refused, the leader rolls back, the first one is granted",
        reference="not reported; KIP-841",
        setup=(
            "Two replicas, min.insync.replicas=1, the repaired version with one rule weakened: a refusal changes nothing,"
            " as in Kafka 3.3 to 4.4. A request to the controller may be sent again on another connection."
        ),
        failing=Configuration("kafka", {"mutant": "refusal-without-trace", **SENT_TWICE}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "The leader asks to admit the follower. The connection is lost while the request is under way, and it is sent"
            " again. The follower is fenced for a moment: the second copy is refused (INELIGIBLE_REPLICA), and the leader"
            " takes its proposal back. The follower is unfenced. Then the first copy is handled. The partition has not"
            " changed since, so it is granted: the follower is in the ISR, and the leader commits without it. No broker"
            " has stopped."
        ),
        rules=(refusal_ends_proposal,),
        repair=(
            "A refusal after which the leader takes its proposal back is written to the partition, as a new partition"
            " epoch. Every other copy of the request is then out of date."
        ),
        repaired=Configuration("kafka", {**REPAIRED, **SENT_TWICE}),
    ),
)
"""The studies in the order in which Kafka met the failures."""
