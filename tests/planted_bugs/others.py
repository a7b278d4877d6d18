"""Bugs of what stands around replication: the group coordinator, topics, the files of a log, the controller on ZooKeeper.

The simulation calls none of these rules, so unit tests are all that is there to notice.
"""

from tests.planted_bugs.planting import PlantedBug as Bug

OTHER_BUGS = (
    # ---- the group coordinator
    Bug(
        "group-answers-before-it-stores",
        "coordinator.rebalance:then",
        "(PersistRecords(records), *others)",
        "(*others, PersistRecords(records))",
    ),
    Bug(
        "generation-stays",
        "coordinator.rebalance:complete_join",
        "Generation(group.generation + 1)",
        "Generation(group.generation)",
    ),
    Bug(
        "static-members-must-join-in-time",
        "coordinator.rebalance:complete_join",
        " and member.instance_id is None",
        "",
    ),
    Bug(
        "joined-wait-for-no-assignment",
        "coordinator.rebalance:_begin_generation",
        "pending_sync=frozenset(member.member_id for member in group.members)",
        "pending_sync=frozenset()",
    ),
    Bug(
        "first-rebalance-is-too-long",
        "coordinator.deadlines:_end_joining",
        "max(initial.remaining_ms - initial.delay_ms, 0)",
        "initial.remaining_ms",
    ),
    Bug(
        "session-ends-while-it-waits",
        "coordinator.deadlines:_end_session",
        "if waits and not member.is_new:",
        "if False:",
    ),
    Bug(
        "group-is-stored-without-its-assignments",
        "coordinator.members:_stabilize",
        "(PersistRecords((group_record(complete),)), *answered.effects)",
        "(PersistRecords((group_record(group),)), *answered.effects)",
    ),
    Bug(
        "assignment-of-another-generation",
        "coordinator.members:check_sync",
        "request.generation != group.generation",
        "request.generation > group.generation",
    ),
    Bug(
        "offsets-expire-one-ms-late",
        "coordinator.offsets:_is_expired",
        ">= coordinator.settings.offsets_retention_ms",
        "> coordinator.settings.offsets_retention_ms",
    ),
    Bug(
        "offsets-of-a-deleted-topic-stay",
        "coordinator.offsets:on_topic_deleted",
        "in (NO_TOPIC_ID, topic_id)",
        "in (topic_id,)",
    ),
    Bug(
        "open-transaction-hides-nothing",
        "coordinator.offsets:handle_offset_fetch",
        "request.require_stable and (asked.topic, asked.partition) in unstable",
        "False",
    ),
    Bug(
        "loaded-group-forgets-its-offsets",
        "coordinator.loading:_with_metadata",
        "offsets=group.offsets,",
        "offsets=(),",
    ),
    # ---- topics
    Bug(
        "producer-ids-overlap",
        "controller.topics.producer_ids:handle_allocate_producer_ids",
        "ProducerId(first + BLOCK_SIZE)",
        "ProducerId(first + BLOCK_SIZE - 1)",
    ),
    Bug(
        "last-producer-id-is-not-given",
        "controller.topics.producer_ids:handle_init_producer_id",
        "ids.following >= ids.end",
        "ids.following >= ids.end - 1",
    ),
    Bug(
        "turns-begin-at-the-same-broker",
        "controller.topics.placement:_next",
        "offset=(striped.offset + 1) % size",
        "offset=striped.offset",
    ),
    Bug(
        "validated-only-is-created",
        "controller.topics.creation:handle_create_topics",
        "() if request.validate_only else tuple(records)",
        "tuple(records)",
    ),
    Bug(
        "added-partitions-begin-at-zero",
        "controller.topics.creation:_added",
        "_partition_records(before.topic_id, before.partitions, partitions)",
        "_partition_records(before.topic_id, 0, partitions)",
    ),
    # ---- the files of a log
    Bug(
        "tombstone-stays-for-ever",
        "log.compaction:new_delete_horizon",
        "delete_horizon < 0 and has_tombstone",
        "has_tombstone",
    ),
    Bug(
        "only-later-records-of-a-key-stay",
        "log.compaction:keeps_record",
        "offset >= latest_of_key",
        "offset > latest_of_key",
    ),
    Bug("uncommitted-is-retained-away", "log.segments:deletable_segments", "high_watermark >= ends[number]", "True"),
    Bug(
        "one-segment-too-few-by-size",
        "log.segments:deletable_segments",
        "excess >= segments[gone].size",
        "excess > segments[gone].size",
    ),
    Bug(
        "index-one-offset-too-far",
        "log.segments:must_roll",
        "incoming.last_offset - segment.base_offset > LARGEST_RELATIVE_OFFSET",
        "incoming.last_offset - segment.base_offset > LARGEST_RELATIVE_OFFSET + 1",
    ),
    Bug(
        "epoch-that-starts-at-the-cut-stays",
        "log.epoch_history:EpochHistory.truncate_from_end",
        "if entry.start_offset < end_offset))",
        "if entry.start_offset <= end_offset))",
    ),
    Bug(
        "epoch-in-force-keeps-its-start",
        "log.epoch_history:EpochHistory.truncate_from_start",
        "EpochEntry(dropped[-1].leader_epoch, start_offset)",
        "dropped[-1]",
    ),
    Bug(
        "checkpoint-with-a-line-too-few",
        "log.checkpoint_files:from_text",
        "len(entries) == int(lines[1]) and ",
        "len(entries) <= int(lines[1]) and ",
    ),
    # ---- the controller on ZooKeeper
    Bug(
        "announced-before-written",
        "zookeeper.controller:_decide",
        "(write, *_announce(controller, after, partition_id, to))",
        "(*_announce(controller, after, partition_id, to), write)",
    ),
    Bug(
        "deposed-controller-decides",
        "zookeeper.controller:_decide",
        " or entry.node.controller_epoch > state.controller_epoch",
        "",
    ),
    Bug(
        "offline-stays-in-isr",
        "zookeeper.rules:elect_offline",
        "state._replace(isr=state.isr & online)",
        "state",
    ),
    Bug(
        "leader-that-stops-stays-in-isr",
        "zookeeper.rules:elect_for_shutdown",
        "state._replace(isr=state.isr - shutting_down)",
        "state",
    ),
    Bug("restart-at-the-same-epoch", "zookeeper.rules:bounced", "now.broker_epoch > before", "now.broker_epoch >= before"),
    # ---- fetch sessions
    Bug(
        "session-epoch-wraps-to-zero",
        "broker.clients.fetch_sessions:next_session_epoch",
        "1 if session_epoch == GREATEST_EPOCH",
        "0 if session_epoch == GREATEST_EPOCH",
    ),
    Bug(
        "error-is-told-once",
        "broker.clients.fetch_sessions:after_sending",
        "UNKNOWN_OFFSET if error != Error.NONE else high_watermark",
        "high_watermark",
    ),
)
"""One bug each; a name says what goes wrong with it."""
