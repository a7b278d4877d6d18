"""The studies of model `kafka`: what shows only with messages under way, metadata that arrive late, and brokers that stop.

Where a released version has the fault alone within the bounds, the release is shown; else `next` with the one rule weakened.
"""

from typing import Any

from model_check.studies.study import Configuration, Study
from spec.alter_partition import apply_news, maximal_isr, roll_back_if_ineligible
from spec.broker_control import new_run_is_clean_if_it_says_so
from spec.fetcher import keep_high_watermark, keep_last_epoch_if_empty, takes_same_epoch
from spec.followers import eligible_in_its_broker_epoch, knows_followers_if_no_epoch_was_missed
from spec.high_watermark import advance_at_min_isr
from spec.isr_proposals import active_is_eligible, same_run_is_eligible
from spec.leader_fetch import count_unless_diverging
from spec.list_offsets import lags_behind_epoch_start
from spec.partition_change import with_assigned_eligible_leaders
from spec.truncation import truncation_step

TWO_IN_ONE_DELTA: dict[str, Any] = {"elections": 1, "fencings": 1}
ONE_SHRINK: dict[str, Any] = {"elections": 0, "isr_shrinks": 1}
TWO_BROKERS_ONE_SHRINK: dict[str, Any] = {"brokers": 2, "min_isr": 1, **ONE_SHRINK}
TWO_RECORDS: dict[str, Any] = {"values": 2, "elections": 1}
LAST_REPLICA: dict[str, Any] = {"brokers": 2, "elections": 0, "isr_shrinks": 1, "unclean_shutdowns": 1}
FENCED_AND_LOST: dict[str, Any] = {"brokers": 2, "min_isr": 1, "elections": 0, "fencings": 1, "unclean_shutdowns": 1}
TWO_BROKERS_ONE_ELECTION: dict[str, Any] = {"brokers": 2, "elections": 1}
FOUR_EPOCHS: dict[str, Any] = {"brokers": 2, "min_isr": 1, "values": 2, "elections": 2, "fencings": 1}
LATE_ANSWER: dict[str, Any] = {"values": 2, "elections": 2, "late_fetches": 1}
THREE_ELECTIONS_AND_A_LATE_ANSWER: dict[str, Any] = {"brokers": 2, "elections": 3, "late_fetches": 1}
ONE_POWER_LOSS: dict[str, Any] = {"brokers": 2, "elections": 0, "unclean_shutdowns": 1}

MESSAGE_STUDIES = (
    Study(
        name="latest-offset-goes-back",
        title="A new leader shows consumers a latest offset that goes back",
        summary="a consumer that has read a record is told that the log ends before it",
        reference="KIP-207",
        setup=(
            "Two replicas, Kafka 2.1, min.insync.replicas=2. A follower learns the high watermark from the answer to its"
            " next fetch, so a follower that is elected may know of less than its leader has shown."
        ),
        failing=Configuration("kafka", {"version": "2.1", **TWO_BROKERS_ONE_ELECTION}),
        invariant="LatestOffset",
        outcome=(
            "The follower fetches a record, and fetches again: the leader commits the record, and consumers read it. The"
            " answer was given before that, so the follower does not know yet. It is elected, and until somebody has"
            " fetched from it, it says that the log ends before that record. Nothing is lost, but a consumer that asks"
            " where to go on is sent back."
        ),
        rules=(lags_behind_epoch_start,),
        repair=(
            "All that an earlier leader can have shown lies before the start of the new leader's epoch. Until the high"
            " watermark has reached that, a consumer is told to ask again."
        ),
        repaired=Configuration("kafka", {"version": "2.2", **TWO_BROKERS_ONE_ELECTION}),
    ),
    Study(
        name="diverging-fetch",
        title="A leader counts the end of a log that it has just told to be cut",
        summary="a fetch that is answered with where the logs part still counts for the high watermark",
        reference="KAFKA-13141",
        setup=(
            "Three replicas, Kafka 2.8. Since KIP-595 a fetch names the epoch of the record before its offset; if the"
            " leader's log has another history there, the answer says where the two part, and the follower truncates."
        ),
        failing=Configuration("kafka", {"version": "2.8", **TWO_RECORDS}),
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
        repaired=Configuration("kafka", {"version": "3.0", **TWO_RECORDS}),
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
            "The controller loses sight of a broker, which leaves the ISR, and sees it again. The broker fetches, and the"
            " leader proposes to admit it. While that is under way the broker loses power and its log, and registers"
            " anew. It is not in the ISR, so its registration changes nothing about the partition, and the proposal is"
            " not out of date. The controller grants it: a fenced broker with an empty log is in the ISR."
        ),
        rules=(active_is_eligible, same_run_is_eligible, eligible_in_its_broker_epoch),
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
        name="forgotten-last-epoch",
        title="A late answer without records makes a follower hide that its log differs",
        summary="the next fetch names no epoch, so the leader cannot tell that logs part, and counts records that differ",
        reference="KAFKA-15510; KAFKA-18991",
        setup=(
            "Three replicas, min.insync.replicas=2, the repaired version with two rules weakened, as in Kafka 3.6.0: a first"
            " answer without records clears the last fetched epoch, and an answer counts in whichever epoch it was asked"
            " for. A fetch may take long. In its own epoch the first rule does no harm: such an answer comes only after"
            " the leader has compared the logs."
        ),
        failing=Configuration("kafka", {"mutant": "take-answer-of-other-epoch,forget-last-epoch", **LATE_ANSWER}),
        invariant="AcknowledgedOnNextLeader",
        outcome=(
            "A follower has the leader's one record, of epoch 0, and fetches on; the answer has no records, and takes"
            " long. Another broker leads in epoch 1, without that record, and appends its own. The first leader follows"
            " it, truncates, takes the new record, and leads again in epoch 2. The follower, which has missed epoch 1,"
            " follows it with the old record. The answer of epoch 0 arrives: it has no records, and the follower forgets"
            " in which epoch its log ends. Its next fetch names no epoch. The leader takes its offset for the end of a"
            " common log, and the record of epoch 1 is committed and acknowledged; the follower, in the ISR, has another"
            " in its place."
        ),
        rules=(keep_last_epoch_if_empty, takes_same_epoch),
        repair=(
            "An answer without records changes nothing about where the follower's log ends, nor in which epoch. Either"
            " repair is enough here: below, answers of other epochs still count."
        ),
        repaired=Configuration("kafka", {"mutant": "take-answer-of-other-epoch", **LATE_ANSWER}),
    ),
    Study(
        name="late-answer",
        title="A follower truncates by an answer of an earlier epoch",
        summary="a member of the ISR cuts off a committed record, because the leader's log once was shorter",
        reference="KAFKA-18991",
        setup=(
            "Two replicas, min.insync.replicas=2, the repaired version with one rule weakened: an answer to a fetch counts"
            " if the follower still is at the offset that it asked for, as in Kafka 1.1 to 4.0. A fetch may take long: the"
            " thread that fetches from a broker waits for its answer, and other partitions keep it alive while this one"
            " follows somebody else, or leads."
        ),
        failing=Configuration("kafka", {"mutant": "take-answer-of-other-epoch", **THREE_ELECTIONS_AND_A_LATE_ANSWER}),
        invariant="CommittedOnNextLeader",
        outcome=(
            "The leader of epoch 0 appends a record that nobody fetches. The other broker is elected, rightly without it."
            " The first follows and fetches; the answer, to truncate to the beginning, takes long. Meanwhile the first"
            " leads again, and its record is committed: the other one has fetched it now. The other leads once more. The"
            " first follows it, from the same offset as the first time. Now the old answer arrives, and the offset is the"
            " one that it was asked for. The first cuts the committed record off, and stays in the ISR."
        ),
        rules=(takes_same_epoch,),
        repair="An answer counts only in the epoch in which it was asked for.",
        repaired=Configuration("kafka", THREE_ELECTIONS_AND_A_LATE_ANSWER),
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
        failing=Configuration("kafka", {"version": "4.0", **ONE_SHRINK}),
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
        failing=Configuration("kafka", {"version": "4.0", **TWO_IN_ONE_DELTA}),
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
        rules=(with_assigned_eligible_leaders, advance_at_min_isr, new_run_is_clean_if_it_says_so),
        repair=(
            "Whoever leaves the ISR while it is smaller than min.insync.replicas stays eligible, for it holds all that"
            " is committed. A broker that comes back from an unclean shutdown is neither in sync nor eligible. So a"
            " partition survives min.insync.replicas - 1 brokers that lose records."
        ),
        repaired=Configuration("kafka", LAST_REPLICA),
    ),
    Study(
        name="unclean-run-in-isr",
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
        rules=(new_run_is_clean_if_it_says_so,),
        repair=(
            "A new run that does not name the broker epoch of a run that stopped in order has lost what was not"
            " flushed. Its registration takes it out of every ISR and off the list of eligible replicas; it joins again"
            " by fetching."
        ),
        repaired=Configuration("kafka", ONE_POWER_LOSS),
    ),
)
"""In the order in which Kafka met them."""
