"""Bugs that no operator makes: a step is taken before another, a condition holds besides, two values go wrong at once.

By the function's path, each a text of it, and what stands there instead.
"""

BY_HAND: dict[str, tuple[tuple[str, str], ...]] = {
    "broker.leader.produce:handle_produce": (
        (
            "return _acknowledge(broker, partition, request, checked.duplicate, ())",
            "return Step(partition, (_refusal(request, Error.OUT_OF_ORDER_SEQUENCE_NUMBER),))",
        ),
    ),
    "broker.leader.fetch:read_partition": (
        ("if error != Error.NONE:", "if error != Error.NONE and not is_diverging(_read(broker, partition, request)):"),
    ),
    "broker.leader.fetch:after_noted_fetch": (
        (
            "consider_joining(broker, partition, replica, now)",
            "consider_joining(broker, advance(broker, partition, now), replica, now)",
        ),
    ),
    "broker.rules.followers:after_fetch_at_its_end": (
        ("end_offset=fetch.end_offset,", "end_offset=max(fetch.end_offset, follower.end_offset),"),
    ),
    "broker.rules.isr.request:ask_for_isr_by_broker_epoch": (
        ("SendToController(request)", "SendToController(_without_broker_epochs(request))"),
    ),
    "broker.rules.isr.proposal:maximal_isr": (("leader.isr | leader.pending_isr", "leader.pending_isr or leader.isr"),),
    "broker.rules.isr.announcement:apply_partition": (
        ("frozenset(), NO_PARTITION_EPOCH)", "leader.pending_isr, leader.pending_epoch)"),
    ),
    "broker.rules.isr.announcement:apply_news": (
        (
            "apply_partition(leader, announced) if",
            "LeaderIsr(announced.isr, announced.partition_epoch, leader.pending_isr, leader.pending_epoch) if",
        ),
    ),
    "broker.rules.fetcher:keep_high_watermark": (
        ("return high_watermark", "return follower_high_watermark(log, leaders_high_watermark)"),
    ),
    "broker.follower:process_records": (
        (
            "set_high_watermark(appended.local, answer.high_watermark)",
            "appended.local._replace(high_watermark=set_high_watermark(before, answer.high_watermark).high_watermark)",
        ),
    ),
    "broker.rules.fetcher:restarts_with_epoch": (("epoch > epoch_before", "leader != leader_before"),),
    "controller.state:decide": (
        ("() if answer is None else (Reply(answer),)", "() if answer is None or records else (Reply(answer),)"),
    ),
    "controller.brokers:handle_broker_registration": (
        (
            "new_registration(request, broker_epoch)",
            "new_registration(request, broker_epoch if existing is None else existing.broker_epoch)",
        ),
    ),
    "controller.rules.brokers:register_again_as_is": (("return existing", "return existing._replace(fenced=True)"),),
    "metadata:merge": (
        (
            "next_epoch(partition.leader_epoch) if named",
            "next_epoch(partition.leader_epoch) if named and record.leader != partition.leader",
        ),
    ),
    "metadata:change_broker": (
        ("broker.fenced if record.fenced is None else record.fenced", "broker.fenced or record.fenced is True"),
    ),
    "metadata:local_change": (("if after.leader == broker:", "if after.leader == broker and before is None:"),),
    "controller.rules.partition_change:last_known_leader_up_or_down": (
        ("target.elr == NOBODY and target.isr == NOBODY and ", ""),
    ),
    "controller.decisions:records_of_departure": (("unclean_shutdown=gone", "leaving=gone"),),
    "broker.leader.isr:handle_alter_partition_response": (("request_in_flight=False", "isr=partition.isr"),),
    "broker.rules.followers:assign": (("known.get(replica, Follower(replica))", "Follower(replica)"),),
    "log.producers:check_sequence": (
        (
            "if entry.producer_epoch == NO_PRODUCER_EPOCH:",
            "if entry.producer_epoch == NO_PRODUCER_EPOCH and batch.first_sequence == 0:",
        ),
    ),
    "log.producers:check_producer_epoch": (
        (
            "batch.producer_epoch < entry.producer_epoch",
            "batch.producer_epoch != entry.producer_epoch and entry.producer_epoch >= 0",
        ),
    ),
}
