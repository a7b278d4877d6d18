"""The weakened rules that some case tells, by name: to find them takes seconds, so a test asks whether these are all."""

TOLD_MUTANTS = (
    "diverging-before-start",
    "epoch-lookup-as-designed",
    "epoch-lookup-by-end",
    "no-divergence-check",
    "no-epoch-entry",
    "no-sequence-check",
    "unfenced-requests",
)
"""The mutants that some case tells."""

TOLD_CHECKS = (
    "spec.broker.clients.batches:check_framing",
    "spec.broker.clients.batches:check_received_batch",
    "spec.broker.clients.batches:check_request_records",
    "spec.broker.clients.fetch_sessions:check_session",
    "spec.broker.clients.fetch_sessions:check_session_epoch",
    "spec.broker.clients.metadata_requests:check_cursor",
    "spec.broker.clients.metadata_requests:check_missing_topic",
    "spec.broker.clients.metadata_requests:check_named_topics",
    "spec.broker.clients.named_partitions:check_deletion_from",
    "spec.broker.clients.named_partitions:check_isolation_level",
    "spec.broker.clients.named_partitions:check_named_once",
    "spec.broker.clients.named_partitions:check_named_partition",
    "spec.broker.clients.records:check_reading",
    "spec.broker.clients.records:check_rewriting",
    "spec.broker.clients.records:error_of_faults",
    "spec.broker.rules.fencing:check_leader_epoch",
    "spec.broker.rules.produce:check_required_acks",
    "spec.coordinator.administration:check_coordinator_key",
    "spec.coordinator.group:check_member",
    "spec.coordinator.joining:check_join_request",
    "spec.coordinator.members:check_leaving",
    "spec.coordinator.members:check_sync",
    "spec.coordinator.modern.commits:check_commit_of_consumer",
    "spec.coordinator.modern.commits:check_fetch_of_consumer",
    "spec.coordinator.modern.commits:commits_partition",
    "spec.coordinator.modern.conversion:check_upgrade",
    "spec.coordinator.modern.heartbeat:check_consumer_heartbeat",
    "spec.coordinator.offsets:check_commit",
    "spec.coordinator.offsets:check_txn_commit",
    "spec.coordinator.refusals:answer_for_append",
    "spec.coordinator.refusals:answer_for_verification",
    "spec.log.local_log:check_fetch_offset",
    "spec.log.producers:check_producer_epoch",
    "spec.log.producers:check_sequence",
    "spec.messages.groups.leave_group:single_error",
    "spec.transactions.adding:check_adds",
    "spec.transactions.adding:check_producer",
    "spec.transactions.log.partition:check_marked_partition",
    "spec.transactions.log.partition:check_marker",
    "spec.transactions.log.partition:error_after_verification",
    "spec.transactions.producers:check_init_producer_id",
)
"""The checks without which a broker fails some case."""

ASKED_BEFORE = (
    "spec.broker.clients.batches:check_batch_of_request",
    "spec.broker.clients.batches:check_transactional",
    "spec.broker.rules.produce:check_produce",
)
"""A broker looks at acks and batches of a whole request before it looks at a partition, where it asks again: the second time
alone is not seen.
"""
