"""Claims about replication: the name and the sentence of each, once for models, theorems, simulated clusters and pages.

A claim is about a subject: a family of models, or simulated clusters. What a subject looks at to check a claim is its own
matter. Where the sentence differs for a subject, the claim stands once more, with that subject.
"""

from typing import Literal, NamedTuple

Subject = Literal[
    "kafka",
    "published",
    "async-isr",
    "messages",
    "controller",
    "shutdown",
    "group",
    "transactions",
    "delivery",
    "quorum",
    "clusters",
]
"""The models by family, and simulated clusters."""


class StatedClaim(NamedTuple):
    """A claim by its name, in a sentence; `subject` is empty where all subjects have the same sentence."""

    name: str
    sentence: str
    subject: Subject | Literal[""] = ""


CLAIMS = (
    StatedClaim("LeaderHoldsLog", "the leader has not been removed from the partition since it was last in the ISR"),
    StatedClaim("EligibleIsAssigned", "every eligible leader replica is a replica of the partition"),
    StatedClaim("LeaderInIsr", "the controller's leader is in its ISR, or there is none"),
    StatedClaim(
        "LeaderInIsr",
        "the partition's leader is in the ISR (as published: false at the start, without a leader)",
        "published",
    ),
    StatedClaim("SomebodyLeads", "the partition has a leader"),
    StatedClaim("StoppedLeadsNothing", "a broker whose shutdown has ended leads no partition"),
    StatedClaim("ShutdownIsOver", "some controlled shutdown has ended"),
    StatedClaim("ShutdownEnds", "a controlled shutdown that has begun comes to its end"),
    StatedClaim("ReadsAreOfNow", "who asks for an offset gets none from before one that was acknowledged by then"),
    StatedClaim("OneMemberEach", "no consumer is in its group as two members"),
    StatedClaim("WhoJoinsIsLetIn", "no consumer that joins is fenced"),
    StatedClaim("ExclusiveOwnership", "no partition is read by two members of the group at a time"),
    StatedClaim("AcknowledgedCommitsKept", "an offset that a member knows to be committed stays, until a later one is"),
    StatedClaim("OnlyMembersCommit", "nobody commits who is not a member of the present generation"),
    StatedClaim("StateIsThatOfLog", "the coordinator's offsets are those that a load of its log would give"),
    StatedClaim("OwnsWhatIsAssigned", "a member of a stable generation reads what it is assigned, and nothing else"),
    StatedClaim(
        "ExclusiveAssignment", "no partition of a consumer group is assigned to, or still to be given up by, two members"
    ),
    StatedClaim("EpochsInOrder", "no member's epoch is ahead of the targets', and that not ahead of the group's"),
    StatedClaim("OwnsOnlyWhatIsAssigned", "a consumer reads nothing but what its coordinator has for it in its epoch"),
    StatedClaim("RebalanceEnds", "a group comes to a stable generation that all its consumers are in"),
    StatedClaim("SomebodyOwns", "a member reads a partition"),
    StatedClaim("CommitIsAcknowledged", "a member knows that an offset is committed"),
    StatedClaim(
        "OnlyCommittedIsRead",
        "who reads what is committed gets records of transactions alone whose producer has asked to commit them",
    ),
    StatedClaim("CommittedIsKept", "no record is aborted of a transaction whose producer knows that it is committed"),
    StatedClaim("OneEnd", "no transaction is committed in one place and aborted in another"),
    StatedClaim("TransactionsApart", "what one marker ends in a log are records of one transaction of one producer"),
    StatedClaim("OpenIsKnown", "the coordinator knows of every transaction that is open in a log"),
    StatedClaim("StableIsDecided", "below the last stable offset every record has the end of its transaction after it"),
    StatedClaim(
        "FailsIfFenced", "a producer fails if another one, a late request of its own, or the end of its time has fenced it"
    ),
    StatedClaim("EpochWithinBounds", "no producer epoch is larger than the largest one that 16 bits can say"),
    StatedClaim("TransactionEnds", "a transaction whose end is decided comes to it"),
    StatedClaim("EachInputOnce", "who reads what is committed gets the output of no input twice"),
    StatedClaim("NoInputSkipped", "every input below the group's committed offset has its output, which is not aborted"),
    StatedClaim("OffsetIsCommitted", "an offset is committed in a transaction"),
    StatedClaim("AtMostOnce", "no record is delivered twice"),
    StatedClaim("AtLeastOnce", "no record is lost that its producer is done with, or the committed offset is past"),
    StatedClaim("IsDelivered", "a record is delivered"),
    StatedClaim("RecordIsRead", "a record is read that is committed"),
    StatedClaim("CommitIsKnown", "a producer knows that its transaction is committed"),
    StatedClaim("ElectionSafety", "each epoch has one leader at most"),
    StatedClaim("VotesOnce", "no replica votes for two candidates in an epoch"),
    StatedClaim("CommittedOnNewestLeader", "the newest leader holds every record that was ever committed"),
    StatedClaim("CommittedIsFinal", "no two replicas ever take different records at an offset for committed"),
    StatedClaim(
        "HighWatermarkGrows",
        "the newest leader's high watermark is unknown, or not below what was ever committed",
        "quorum",
    ),
    StatedClaim("NoIllegalState", "no replica meets what its protocol excludes, and so stops for good"),
    StatedClaim("TwoEpochsHaveLeaders", "leaders have been elected in two epochs"),
    StatedClaim("RemovedLeaderResigns", "nobody leads who knows that his removal from the voters is committed"),
    StatedClaim("NoNeedlessElection", "nobody stands for election in a later epoch while a majority fetches from a leader"),
    StatedClaim(
        "StrangerUnseatsNobody",
        "no request of one who is no voter leads a leader away, or its followers, while a majority fetches",
    ),
    StatedClaim("LeaderIsElected", "some server leads, or the last epoch has begun, if a majority is connected"),
    StatedClaim("LeaderCommits", "a leader that reaches a majority commits its log, or leads no more"),
    StatedClaim("VoterFollows", "a server that a leader reaches follows it, or that leader leads no more"),
    StatedClaim("CutOffLeaderResigns", "a leader that reaches no majority leads no more"),
    StatedClaim("VotersHaveChanged", "a change of the voters is committed"),
    StatedClaim("RecordIsCommitted", "a record is committed that a leader was asked to append"),
    StatedClaim("TypeOk", "every value is of its type and within its bounds"),
    StatedClaim(
        "TypeOk",
        "a log starts at or before its high watermark, which is at or before its end; its epochs grow with its offsets",
        "kafka",
    ),
    StatedClaim("TypeOk", "log start, high watermark and log end are in this order", "clusters"),
    StatedClaim("LeaderNoneOrInIsr", "the partition has no leader, or its leader is in the ISR"),
    StatedClaim(
        "WeakIsr",
        "every record below a presumed leader's high watermark is on every member of this leader's own ISR "
        "(not so once a member has lost records)",
    ),
    StatedClaim(
        "WeakIsr",
        "every record below a presumed leader's high watermark is on every member of this leader's own ISR",
        "published",
    ),
    StatedClaim(
        "StrongIsr",
        "every record below a presumed leader's high watermark is on every member of the controller's ISR "
        "(not so once a member has lost records)",
    ),
    StatedClaim(
        "StrongIsr",
        "every record below a presumed leader's high watermark is on every member of the controller's ISR",
        "published",
    ),
    StatedClaim(
        "StrongIsr",
        "every record below the leader's high watermark is on every member of the controller's ISR",
        "clusters",
    ),
    StatedClaim(
        "LeaderHasCommittedWithOthers",
        "a presumed leader has committed a record, and the controller's ISR has another member",
    ),
    StatedClaim(
        "CommittedOnNextLeader",
        "a committed record (below any replica's high watermark) is on every possible next leader",
    ),
    StatedClaim(
        "CommittedOnNextLeader",
        "a committed record is on every possible next leader: on every member of the controller's ISR",
        "async-isr",
    ),
    StatedClaim("CommittedOnNextLeader", "a committed record is on every possible next leader", "messages"),
    StatedClaim(
        "CommittedOnNextLeader",
        "a record below any leader's high watermark is on every possible next leader",
        "clusters",
    ),
    StatedClaim("LogMatching", "two replicas hold the same records below both their high watermarks"),
    StatedClaim(
        "LogMatching",
        "a follower's log below its high watermark is that of the leaders which committed it, epoch by epoch",
        "clusters",
    ),
    StatedClaim(
        "FollowersMatchLeader",
        "a follower in its leader's epoch holds the leader's records below both their high watermarks",
    ),
    StatedClaim("TwoReplicasKnowOfCommit", "two replicas know of a committed record"),
    StatedClaim("AcknowledgedOnLeader", "the true leader holds every acknowledged record"),
    StatedClaim("AcknowledgedAcrossLeaders", "there is a true leader after a record was acknowledged in an earlier epoch"),
    StatedClaim(
        "ValidHighWatermark",
        "every member of the controller's ISR has replicated up to the leader's high watermark (as published)",
    ),
    StatedClaim("CommitsWhilePending", "the high watermark has passed a record while the admission of a replica is pending"),
    StatedClaim(
        "ProposalIsAnswered",
        "a pending change of the ISR is granted or superseded, below the highest partition epoch",
    ),
    StatedClaim("WriteIsCommitted", "a record in the leader's log is committed"),
    StatedClaim(
        "AnnouncedEpochIsApplied",
        "a replica applies each announcement with a leader, or the controller has made a newer one",
    ),
    StatedClaim(
        "DeposedLeaderStepsDown",
        "a deposed leader stops leading in its epoch, unless the partition loses its leader",
    ),
    StatedClaim(
        "RecordIsDecided",
        "a record in any log is committed, or truncated from every log, unless the partition loses its leader",
    ),
    StatedClaim(
        "FollowerCatchesUp",
        "a follower in the epoch of the true leader gets every record of this leader's log, or the leader changes",
    ),
    StatedClaim(
        "FollowerJoinsIsr",
        "a follower in the epoch of the true leader is in the ISR at some time, or the leader changes",
    ),
    StatedClaim("LeaderTakesOffice", "a partition without a true leader gets one, or no broker is up"),
    StatedClaim(
        "LeaderTakesOffice",
        "some replica leads in the controller's epoch, or the controller has no epochs or no in-sync replicas left",
        "published",
    ),
    StatedClaim("BrokerComesBack", "a broker that is down, fenced or in controlled shutdown is up and unfenced again"),
    StatedClaim("IsrChangeCompletes", "a pending ISR change is granted, refused or superseded, or its leader is deposed"),
    StatedClaim(
        "WriteIsAnswered",
        "a write with acks=all is acknowledged or refused, or its leader stops (requests never time out here)",
    ),
    StatedClaim("AcknowledgedIsReplicated", "an acknowledged record is in the log of every replica"),
    StatedClaim(
        "ActiveReplicaJoinsIsr",
        "a replica whose broker is up and unfenced is in the ISR at some time, or the broker is not up and unfenced",
    ),
    StatedClaim("ReassignmentEnds", "a reassignment that has begun ends: no replica is being added or removed"),
    StatedClaim("IsrIsWholeAgain", "an ISR that lacks a replica is at some time the whole set of replicas"),
    StatedClaim("AcknowledgedOnNextLeader", "an acknowledged record is on every possible next leader"),
    StatedClaim(
        "AcknowledgedOnNextLeader",
        "an acknowledged record is on each leader that is elected, and on every possible next one",
        "clusters",
    ),
    StatedClaim("Acknowledged", "a record is acknowledged"),
    StatedClaim("LeaderHasCommitted", "a presumed leader has committed a record"),
    StatedClaim("QuorumSuperset", "the true leader's maximal ISR contains the controller's ISR"),
    StatedClaim("HistoryFollowsRecords", "a log ends after its last record, and its epoch history is that of its records"),
    StatedClaim("TwoEpochsInHistory", "a log's epoch history has two epochs"),
    StatedClaim("LeaderCompleteness", "the true leader holds every record that another replica knows to be committed"),
    StatedClaim("LeaderCompleteness", "the true leader holds every record below any leader's high watermark", "clusters"),
    StatedClaim("ConsistentRead", "no two leaders ever show different records at the same offset to consumers"),
    StatedClaim(
        "ConsistentRead",
        "no two leaders, and no two consumers, ever see different records at the same offset",
        "clusters",
    ),
    StatedClaim("Read", "a consumer can read a record"),
    StatedClaim("LatestOffset", "the true leader's latest offset is not before a record that consumers can have read"),
    StatedClaim(
        "LatestOffset",
        "the latest offset that a leader tells is not before what consumers have read from it or earlier ones",
        "clusters",
    ),
    StatedClaim(
        "OnceAndInOrder",
        "a log holds each record of an idempotent producer once, and in the order in which it was sent",
    ),
    StatedClaim("SentAgain", "a producer's request arrives again"),
    StatedClaim(
        "UncleanExclusion",
        "a broker that comes back from an unclean shutdown is neither in the ISR nor eligible before it has fetched",
    ),
    StatedClaim(
        "UncleanExclusion",
        "a broker that lost records is neither in the ISR nor eligible when it has registered again",
        "clusters",
    ),
    StatedClaim("ComesBack", "a broker comes back from an unclean shutdown"),
    StatedClaim("SomeEpochCommits", "an epoch commits something, and a later one begins"),
    StatedClaim(
        "CommittedOnLaterLeaders",
        "a record that an epoch's leader committed is in the log of the leader of every later epoch",
    ),
    StatedClaim("SameEpochSameRecords", "two logs with records of one epoch are equal up to the earlier of these records"),
    StatedClaim("ReadableIsFinal", "a readable record is committed, and no epoch ever commits another record at its offset"),
    StatedClaim("HighWatermarkGrows", "the high watermark of a leader never goes back"),
    StatedClaim(
        "LeaderEpochGrows",
        "a running replica never goes back to an earlier leader epoch, nor a leader to an earlier ISR",
    ),
    StatedClaim("ProposalAsksForChange", "a leader asks for another ISR than it has: for a new member, or without one"),
    StatedClaim("FencedIsNotStopping", "a fenced broker is in no controlled shutdown: it may stop at once"),
    StatedClaim("HighWatermarkFromLeader", "a follower's high watermark is not above every leader's"),
    StatedClaim("EpochsOfLog", "a replica that has just been opened knows the epochs of all its batches, and no others"),
    StatedClaim("AcknowledgedIsCommitted", "a record that is acknowledged is below some leader's high watermark"),
    StatedClaim("AcknowledgedByEnough", "a record that is acknowledged is on min.insync.replicas brokers"),
    StatedClaim("IsrIsAssigned", "ISR and eligible leader replicas are replicas, and none is both"),
    StatedClaim("LeaderIsActive", "a new leader is neither fenced nor shutting down"),
    StatedClaim(
        "PartitionEpochGrows",
        "each change of a partition has a later partition epoch, a new leader a later leader epoch",
    ),
    StatedClaim(
        "PersistRebuildsLog",
        "what a replica has stored is the log that it has in memory: its start, its end and its epochs",
    ),
    StatedClaim("PersistBeforeSend", "no change of the log is stored after an answer or request of the same step"),
    StatedClaim("WaitingIsAnswered", "a producer waits for records above the high watermark alone"),
    StatedClaim("OfflineIsIdle", "only a leader has followers and waiting producers, and it has no fetcher"),
    StatedClaim("MetadataLogIsState", "the state of the controller is the fold of the records that it has appended"),
    StatedClaim("AnswerAfterAppend", "the controller answers only after its records are in the metadata log"),
    StatedClaim("StoppingLeadsNothing", "a broker that is allowed to stop leads no partition by the metadata"),
    StatedClaim(
        "OthersKnowOfStop",
        "a controlled shutdown ends when all active brokers have replayed the metadata up to its beginning",
    ),
    StatedClaim("UnfencedByRequest", "a broker is unfenced when it asks to be, and has replayed its registration"),
    StatedClaim("LowWatermark", "no live replica has records that a leader in office calls deleted"),
    StatedClaim("NoTruncation", "a consumer that asks is never told that what it has read is not in the log any more"),
    StatedClaim("LostWrite", "a record that was acknowledged is in the log in the end, where the answer said"),
    StatedClaim("Duplicate", "a record of an idempotent producer is in the log once"),
    StatedClaim("Reordered", "the records of an idempotent producer are in the log in the order in which they were sent"),
    StatedClaim("LostCommit", "a committed offset that was acknowledged, or read, is read until a later one is stored"),
    StatedClaim("FencedCommit", "a member of an earlier generation, or whose place another has taken, commits nothing"),
    StatedClaim("OneAssignment", "all members of a generation have the assignment of one leader"),
    StatedClaim("Diverged", "in the end all replicas of a partition hold the same records"),
    StatedClaim("NeverReady", "without faults all replicas are in sync again, writes go through, and groups settle"),
)
"""All claims."""


def claim(name: str, subject: Subject) -> str:
    """The sentence of a claim about a subject. `KeyError` for a name that no claim has."""
    known = {one.subject: one.sentence for one in CLAIMS if one.name == name}
    return known[subject if subject in known else ""]
