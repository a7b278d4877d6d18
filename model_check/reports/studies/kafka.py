"""The studies of model `kafka`: what shows only with messages under way, metadata that arrive late, and brokers that stop.

Where a released version has the fault alone within the bounds, the release is shown; else `next` with the one rule weakened.
"""

from typing import Any

from model_check.reports.studies.study import Configuration, Study
from spec.broker.rules.divergence import count_unless_diverging
from spec.broker.rules.fencing import check_replica_epoch
from spec.broker.rules.fetcher import keep_high_watermark, keep_last_epoch_if_empty, take_up_to_epoch, takes_same_epoch
from spec.broker.rules.followers import knows_followers_if_no_epoch_was_missed
from spec.broker.rules.high_watermark import advance_at_min_isr
from spec.broker.rules.isr.announcement import apply_news
from spec.broker.rules.isr.errors import roll_back_if_ineligible
from spec.broker.rules.isr.membership import eligible_in_its_broker_epoch
from spec.broker.rules.isr.proposal import maximal_isr
from spec.broker.rules.offsets import lags_behind_epoch_start
from spec.broker.rules.truncation import truncation_step
from spec.controller.rules.brokers import new_incarnation_is_clean_if_it_says_so
from spec.controller.rules.isr_proposals import active_is_eligible, same_broker_epoch_is_eligible
from spec.controller.rules.partition_change import with_assigned_eligible_leaders

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
ONE_POWER_LOSS: dict[str, Any] = {"brokers": 2, "elections": 0, "unclean_shutdowns": 1}

KAFKA_STUDIES = (
    Study(
        name="latest-offset",
        title="A consumer is sent back by a new leader",
        summary="a new leader does not know yet how much is committed, and names an end that consumers have read past",
        reference="KIP-207",
        setup=(
            "Three replicas, Kafka 2.1. A consumer that asks where the log ends is told the leader's high watermark. A"
            " new leader's high watermark is what it learnt as a follower, one fetch behind."
        ),
        failing=Configuration("kafka", {"release": "2.1", "elections": 1}),
        invariant="LatestOffset",
        outcome=(
            "A record is committed and can be read. The controller elects a follower that has the record and does not"
            " know yet that it is committed. Asked where the log ends, the new leader says: at 0. A consumer that has"
            " read the record takes its own position for out of range, or believes that there is nothing where it has"
            " been. Nothing is lost; what a consumer was told goes back."
        ),
        rules=(lags_behind_epoch_start,),
        repair=(
            "Until its high watermark has reached the start of its epoch, below which lies all that an earlier leader"
            " can have committed, a leader says that the offset is not available yet, and the consumer asks again."
        ),
        repaired=Configuration("kafka", {"release": "2.2", "elections": 1}),
    ),
    Study(
        name="diverging-fetch",
        title="A leader counts the end of a log that it has just told to be cut",
        summary="a fetch that is answered with where the logs part still counts for the high watermark",
        reference="KAFKA-13141",
        setup=(
            "Three replicas, the repaired version with one rule weakened, which Kafka 2.8 had so. Since KIP-595 a fetch"
            " names the epoch of the record before its offset; if the leader's log has another history there, the answer"
            " says where the two part, and the follower truncates."
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
        repaired=Configuration("kafka", TWO_RECORDS),
    ),
    Study(
        name="rolled-back-proposal",
        title="A leader forgets a proposal that the controller has granted",
        summary="an error that proves nothing is taken for a refusal, and the leader commits without the new member",
        reference="KIP-497; `Partition.handleAlterPartitionError`",
        setup=(
            "Two replicas, the repaired version with one rule weakened: a leader takes back a proposal after every"
            " error. The answer to AlterPartition may be lost; the leader then asks again with the same partition epoch."
        ),
        failing=Configuration("kafka", {"mutant": "roll-back-on-any-error", **TWO_BROKERS_ONE_SHRINK}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "The follower has been dropped from the ISR. It fetches, and the leader proposes to admit it. The"
            " controller grants that, and its answer is lost. The leader asks again; now the partition epoch is out of"
            " date, and the controller says so. The leader forgets the proposal, is alone in the ISR that it knows of,"
            " and commits a record alone. The controller may elect the follower, which does not have it."
        ),
        rules=(roll_back_if_ineligible, maximal_isr),
        repair=(
            "Only an error that proves that the proposal was not applied takes it back. That a partition epoch is out"
            " of date proves nothing: the leader's own proposal may have made it so. It goes on counting both outcomes"
            " until the metadata tell which it was."
        ),
        repaired=Configuration("kafka", TWO_BROKERS_ONE_SHRINK),
    ),
    Study(
        name="fenced-replica",
        title="A replica that is fenced, and has lost its log, joins the ISR",
        summary="a proposal is granted although the broker that it admits takes no part, and has started again since",
        reference="KIP-841, KAFKA-13916; KIP-903",
        setup=(
            "Two replicas, min.insync.replicas=1, the repaired version with one rule weakened: the controller admits"
            " whomever a leader proposes, as before Kafka 3.3. The controller once loses sight of a broker, and a broker"
            " once stops without warning and loses its log."
        ),
        failing=Configuration("kafka", {"mutant": "fenced-replica-admitted", **FENCED_AND_LOST}),
        invariant="UncleanExclusion",
        outcome=(
            "The controller loses sight of a broker, which leaves the ISR, and sees it again. The broker fetches, and"
            " the leader proposes to admit it. While that is under way the broker loses power and its log, and registers"
            " anew. It is not in the ISR, so its registration changes nothing about the partition, and the proposal is"
            " not out of date. The controller grants it: a fenced broker with an empty log is in the ISR."
        ),
        rules=(active_is_eligible, same_broker_epoch_is_eligible, eligible_in_its_broker_epoch),
        repair=(
            "The controller admits only brokers that take part (KIP-841), in the very run that has fetched (KIP-903)."
            " The second matters once the broker is unfenced again before the proposal arrives."
        ),
        repaired=Configuration("kafka", FENCED_AND_LOST),
    ),
    Study(
        name="high-watermark-before-truncation",
        title="A follower takes the high watermark before it truncates",
        summary="a record that the leader does not have counts as committed, if one answer does not tell all that has to go",
        reference="KAFKA-14704",
        setup=(
            "Two replicas, min.insync.replicas=1, the repaired version with one rule weakened: a follower that is told to"
            " truncate takes the leader's high watermark first, as in Kafka 2.8 to 3.4. Between the two, consumers that"
            " read from followers see records which are about to go. Worse is that one truncation need not be enough."
        ),
        failing=Configuration("kafka", {"mutant": "high-watermark-before-truncation", **FOUR_EPOCHS}),
        invariant="LogMatching",
        outcome=(
            "Two brokers lead in turn, and neither hears of what the other appends: the first in epoch 0, the second in"
            " epoch 1, the first again in epoch 2, in which it appends nothing. It is fenced, and the second leads in"
            " epoch 3; alone in the ISR it commits its record. The first follows it and fetches, naming epoch 2. The"
            " answer says that the leader's log has epoch 1 before that. The first has no epoch 1: it gives up epoch 2,"
            " and will learn by its next fetch that epoch 0 has to go too. But it has taken the high watermark by then,"
            " and counts its own record of epoch 0 as committed."
        ),
        rules=(keep_high_watermark, truncation_step),
        repair=(
            "The high watermark says how much of the *leader's* log is committed. A follower takes it only from an answer"
            " that does not tell it to truncate."
        ),
        repaired=Configuration("kafka", FOUR_EPOCHS),
    ),
    Study(
        name="earlier-incarnation",
        title="A fetch of a run that is over speaks for one that has lost the records",
        summary="a fetch from before a loss of power is handled after the broker has come back, and counts",
        reference="KIP-903; KAFKA-14139",
        setup=(
            "Three replicas, min.insync.replicas=2, the repaired version with one rule weakened: a leader does not ask"
            " which run of a broker a fetch comes from, as up to Kafka 3.4. One broker may stop without warning and lose"
            " its log, and one fetch may take long: what a leader has received it handles, be it after fetches of a"
            " later connection."
        ),
        failing=Configuration("kafka", {"mutant": "count-fetch-of-earlier-incarnation", **LATE_FETCH_AND_LOSS}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "A follower has a record and asks from offset 1; the leader has received that, and not handled it. The"
            " follower loses power and its log, registers anew, and is unfenced. It fetches, from offset 0, and the"
            " leader proposes to admit it, in its new run. Then the leader handles the fetch of the run before: the"
            " follower, it notes, ends at 1. With the third broker's fetches the record is committed, and the proposal"
            " is granted: a member of the ISR has an empty log."
        ),
        rules=(check_replica_epoch, same_broker_epoch_is_eligible),
        repair=(
            "A fetch carries the broker epoch of its run. One of an earlier run than the leader's metadata tell is"
            " refused, and a proposal names the runs that it is about."
        ),
        repaired=Configuration("kafka", LATE_FETCH_AND_LOSS),
    ),
    Study(
        name="forgotten-proposal",
        title="A late announcement makes a leader forget a proposal",
        summary=(
            "metadata that tell nothing new drop what the leader has proposed since, and the new member is not waited for"
        ),
        reference="found by this checker; open in Kafka 3.3 to 4.0, see [the finding](../findings/forgotten-proposal.md)",
        setup=(
            "Three replicas, Kafka 4.0, min.insync.replicas=2. No election, and nobody stops: one follower was too"
            " slow, and is back. A leader hears of its ISR twice: from the answer to its proposal, and later from the"
            " metadata."
        ),
        failing=Configuration("kafka", {"release": "4.0", **ONE_SHRINK}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "The leader drops the slow follower, and takes the controller's answer; the metadata that say the same have"
            " not reached it yet. The follower fetches, and the leader proposes to admit it; the controller grants that."
            " Now the metadata of the *shrink* arrive. They are not older than what the leader knows, so it takes them,"
            " and with that the pending proposal is gone. Without the new member the leader commits and acknowledges a"
            " record that the new member, whom the controller may elect, does not have."
        ),
        rules=(apply_news,),
        repair=(
            "Metadata of the partition epoch that the leader knows already tell it nothing. It leaves what it has"
            " proposed on top of that pending."
        ),
        repaired=Configuration("kafka", ONE_SHRINK),
    ),
    Study(
        name="missed-epoch",
        title="A leader that missed an epoch counts what a follower has thrown away",
        summary="two elections reach the old leader at once, and it relies on a fetch made before the follower truncated",
        reference="found by this checker; open in Kafka 0.9 to 4.0, see [the finding](../findings/missed-epoch.md)",
        setup=(
            "Three replicas, Kafka 4.0, min.insync.replicas=2, acks=all, clean elections only, no disk loses anything."
            " A broker takes all metadata that have arrived as one difference, so it may miss epochs. The controller"
            " elects another leader once, and once loses sight of a broker."
        ),
        failing=Configuration("kafka", {"release": "4.0", **TWO_IN_ONE_DELTA}),
        invariant="AcknowledgedOnNextLeader",
        outcome=(
            "The leader of epoch 0 appends a record; one follower, the witness, fetches it and fetches again, so that"
            " the leader knows. The other broker is elected in epoch 1, without the record, rightly so; the witness"
            " follows it and truncates. The controller loses sight of that broker: the first one leads again, in epoch"
            " 2, with the witness in the ISR. It reads both epochs as one difference, in which it led before and leads"
            " after. So it keeps what it knew of the witness, an end that was cut off since. By that the record is"
            " committed and acknowledged, and it is on the leader alone."
        ),
        rules=(knows_followers_if_no_epoch_was_missed,),
        repair=(
            "What a leader knows of its followers is worth keeping only into the very next epoch. If it has missed one,"
            " somebody else may have led, and made them truncate."
        ),
        repaired=Configuration("kafka", TWO_IN_ONE_DELTA),
    ),
    Study(
        name="late-divergence",
        title="A late answer of an earlier epoch makes a follower cut committed records",
        summary="an answer counts if leader and offset are the same again, whatever has happened in between",
        reference="KAFKA-18991",
        setup=(
            "Three replicas, the repaired version with one rule weakened: a follower takes an answer that comes from"
            " the leader which it follows, and to the offset at which it is, in whatever epoch it asked. One fetch may"
            " take so long that its sender changes meanwhile."
        ),
        failing=Configuration("kafka", {"mutant": "take-answer-of-other-epoch", **THREE_ELECTIONS_LATE}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "A broker that has a record follows another in epoch 1, which has none, and asks from offset 1. The answer"
            " says that the logs part at 0, and takes long. Meanwhile a third broker, which has the record too, leads in"
            " epoch 2; both others follow it, and the record is committed on all three. Then the second leads again, in"
            " epoch 3, with the record, and the first follows it, at offset 1. Now the answer of epoch 1 arrives: the"
            " same leader, the same offset. The follower cuts the committed record, and it is in the ISR."
        ),
        rules=(takes_same_epoch,),
        repair="An answer counts only in the epoch in which it was asked for. Logs are compared anew in each epoch.",
        repaired=Configuration("kafka", THREE_ELECTIONS_LATE),
    ),
    Study(
        name="forgotten-epoch",
        title="An answer without records makes a follower forget where its log comes from",
        summary="the next fetch names no epoch, so the leader cannot tell that the logs part, and counts it",
        reference="KAFKA-15510",
        setup=(
            "Three replicas, the repaired version with two rules weakened, as both were in Kafka 3.6.0: the first"
            " answer, if it has no records, clears the epoch that the next fetch names, and an answer counts in whatever"
            " epoch it was asked for (KAFKA-18991). The first alone does no harm within these bounds."
        ),
        failing=Configuration("kafka", {"mutant": "take-answer-of-other-epoch,forget-last-epoch", **LATE_ANSWER}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "A follower has a record of epoch 0 and asks that leader from offset 1; the answer has no records, and"
            " takes long. The leader hears of epoch 1, follows the leader of that epoch, and replaces its record by"
            " another. It leads again in epoch 2, and the follower, which knows nothing of epoch 1, follows it there."
            " Before it has asked anything in epoch 2, the late answer arrives: no records, so the follower forgets the"
            " epoch of its last record. Its next fetch, from offset 1, names none; the leader has nothing to compare,"
            " counts it, and commits its own record at offset 0, where the follower has the other one."
        ),
        rules=(keep_last_epoch_if_empty, takes_same_epoch),
        repair=(
            "An answer without records says nothing new about the follower's log: the fetcher goes on naming the epoch"
            " of its last record, and the leader compares."
        ),
        repaired=Configuration("kafka", LATE_ANSWER),
    ),
    Study(
        name="records-read-late",
        title="An answer carries records that were not there when it was made",
        summary="a follower appends records of an epoch that it has not reached, after one that their leader never had",
        reference="KAFKA-18723",
        setup=(
            "Three replicas, the repaired version with one rule weakened: a follower appends whatever an answer"
            " carries. A leader hands the network a stretch of its log file, which is read only when the answer leaves."
            " One fetch may take long."
        ),
        failing=Configuration("kafka", {"mutant": "take-later-epochs", **FOUR_VALUES_LATE}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "A follower has the leader's first record of epoch 0, and asks for the second. Before the answer leaves,"
            " the leader hears of epoch 1, in which another broker has written two records of its own. It follows,"
            " truncates, and fetches them. The stretch of file that the answer stands for now holds the second record of"
            " epoch 1, and the follower appends it to the first record of epoch 0. Then it follows the leader of epoch"
            " 1: the epoch of its last record is right, nothing parts. It counts as having both records, and they are"
            " committed."
        ),
        rules=(take_up_to_epoch,),
        repair=(
            "A follower takes no record of a later epoch than the one in which it asked. What is left was in the"
            " leader's log when that epoch began, or was written by it."
        ),
        repaired=Configuration("kafka", FOUR_VALUES_LATE),
    ),
    Study(
        name="below-min-isr",
        title="A leader commits while fewer replicas are in sync than the topic asks for",
        summary=(
            "the high watermark moves with a leader alone in its ISR, and those who left it are elected without the record"
        ),
        reference="KIP-966; KAFKA-15583",
        setup=(
            "Three replicas, min.insync.replicas=2, the repaired version with one rule weakened: the high watermark"
            " moves whatever the size of the ISR, as it did up to Kafka 3.6. Who leaves the ISR while it is that small"
            " stays eligible, because nothing can be committed without it."
        ),
        failing=Configuration("kafka", {"mutant": "advance-below-min-isr", **ONE_SHRINK}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "The leader drops both followers, and the controller agrees; they stay eligible. A record that the leader"
            " takes meanwhile is committed by it alone as soon as it hears of that: consumers can read it. Should the"
            " leader stop, one of the others is elected, and the record is gone."
        ),
        rules=(advance_at_min_isr, with_assigned_eligible_leaders),
        repair="Below min.insync.replicas nothing is committed, so whoever was in sync last has all that is.",
        repaired=Configuration("kafka", ONE_SHRINK),
    ),
    Study(
        name="last-replica-standing",
        title="The last replica in the ISR comes back without its records, and is elected",
        summary=(
            "an ISR of one is never given up, so a broker that lost committed records leads, and the others truncate to it"
        ),
        reference="KIP-966",
        setup=(
            "Two replicas, min.insync.replicas=2, the repaired version without eligible leader replicas. The leader may"
            " drop its follower once, and one broker may stop without warning and lose any part of its log that was not"
            " flushed."
        ),
        failing=Configuration("kafka", {**LAST_REPLICA, "without_elr": True}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "A record is committed on both; then the follower is dropped from the ISR. The leader loses power and the"
            " record, and starts again. It is the only one in the ISR, so it alone may lead, without the record, which"
            " the follower still has."
        ),
        rules=(with_assigned_eligible_leaders, advance_at_min_isr, new_incarnation_is_clean_if_it_says_so),
        repair=(
            "Whoever leaves the ISR while it is smaller than min.insync.replicas stays eligible, for it holds all that"
            " is committed. A broker that comes back from an unclean shutdown is neither in sync nor eligible. So a"
            " partition survives min.insync.replicas - 1 brokers that lose records."
        ),
        repaired=Configuration("kafka", LAST_REPLICA),
    ),
    Study(
        name="unclean-incarnation-in-isr",
        title="A broker that lost its records keeps its place in the ISR",
        summary="a broker restarts before the controller has missed it, and nothing tells what it has lost",
        reference="KIP-966; KAFKA-18106",
        setup=(
            "Two replicas, min.insync.replicas=2, the repaired version with one rule weakened: the registration of a"
            " new run changes nothing about partitions, as in Kafka 3.0 to 3.9. One broker may stop without warning."
        ),
        failing=Configuration("kafka", {"mutant": "unclean-replica-keeps-its-place", **ONE_POWER_LOSS}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "A record is committed on both. The follower loses power and the record, and starts again before its"
            " session has timed out. The controller registers the new run and leaves it in the ISR: it may be elected"
            " without the record."
        ),
        rules=(new_incarnation_is_clean_if_it_says_so,),
        repair=(
            "A new run that does not name the broker epoch of a run that stopped in order has lost what was not"
            " flushed. Its registration takes it out of every ISR and off the list of eligible replicas; it joins again"
            " by fetching."
        ),
        repaired=Configuration("kafka", ONE_POWER_LOSS),
    ),
)
"""In the order in which Kafka met them."""
