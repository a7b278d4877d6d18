"""Properties of every state of the model `kafka`: what replication rests on, and what its users rely on."""

from collections.abc import Callable
from functools import partial
from itertools import combinations, pairwise

from kspec.model_check.core.model import Local, View, when
from kspec.model_check.models.carriers import LOG, ModelLog, empty_log, follows_from_its_records
from kspec.model_check.models.kafka.board import Board
from kspec.model_check.models.kafka.cluster import registered
from kspec.model_check.models.kafka.party import Log, latest_offset
from kspec.model_check.models.kafka.values import (
    NO_TOPIC,
    AnyCluster,
    ClientKnowledge,
    ModelController,
    Process,
    TopicRegistration,
)
from kspec.model_check.models.parts import Role
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.isr.proposal import maximal_isr
from kspec.spec.claims import claim
from kspec.spec.log.epoch_history import describes_any
from kspec.spec.log.local_log import truncate_if_longer
from kspec.spec.messages.list_offsets import ListOffsetsResponse
from kspec.spec.metadata import NOBODY
from kspec.spec.values import NO_BROKER_EPOCH, NO_LEADER, BrokerId, Error
from kspec.spec.zookeeper.protocol import LiveBroker


def add_properties(board: Board) -> None:
    """Add every `always` with the `sometimes` that shows its premise met."""
    _types(board)
    _leadership(board)
    _candidates(board)
    _isr(board)
    _logs(board)
    _histories(board)
    in_office = _in_office(board)
    _acknowledged(board, in_office)
    _reads(board)
    _latest_offset(board, in_office)
    _once(board)
    _unclean(board)


def _types(board: Board) -> None:
    def log_ok(log: Log) -> bool:
        history = log.log.epoch_history.entries
        ordered = all(
            one.leader_epoch < other.leader_epoch and one.start_offset < other.start_offset
            for one, other in pairwise(history)
        )
        return 0 <= log.log.start_offset <= log.high_watermark <= log.log.end_offset and ordered

    board.model.always(
        "TypeOk",
        [when(log_ok, board.slots.log[broker]) for broker in board.brokers],
        claim("TypeOk", "kafka"),
        None,
    )


def _leadership(board: Board) -> None:
    model, current = board.model, board.views.current
    model.always(
        "LeaderInIsr",
        [when(lambda topic: topic.leader == NO_LEADER or topic.leader in topic.isr, current)],
        claim("LeaderInIsr", "kafka"),
        "SomebodyLeads",
    )
    model.sometimes(
        "SomebodyLeads", [when(lambda topic: topic.leader != NO_LEADER, current)], claim("SomebodyLeads", "kafka")
    )


def _eligible_view(board: Board, broker: BrokerId) -> View:
    """The log of a broker that may be elected cleanly, sooner or later: it is up as registered, and ISR or ELR list it."""
    slots = board.slots

    def log_of_candidate(cluster: AnyCluster, process: Process, log: Log) -> ModelLog | None:
        is_up = process.up and process.life.broker_epoch == registered(cluster, broker).broker_epoch
        return log.log if is_up and _is_listed(board, cluster, broker) else None

    return board.model.view(
        "possible next leader", log_of_candidate, slots.cluster, slots.process[broker], slots.log[broker], key=broker
    )


def _is_listed(board: Board, cluster: AnyCluster, broker: BrokerId) -> bool:
    """Whether ISR or ELR list a broker in the broker epoch with which it is registered.

    A session that a controller on ZooKeeper has not noticed is listed in the place of an earlier one, and leaves the ISR
    when it is noticed; not so the last in-sync replica, nor where the controller cannot tell sessions apart.
    """
    topic = cluster.topic
    if broker not in topic.replicas & (topic.isr | topic.elr):
        return False
    if isinstance(cluster, ModelController) or topic.isr == {broker}:
        return True
    session = LiveBroker(broker, registered(cluster, broker).broker_epoch)
    return session._replace(broker_epoch=board.zookeeper.protocol.epoch_of(session)) in cluster.live


def _candidates(board: Board) -> None:
    model, views, slots = board.model, board.views, board.slots
    candidate = {broker: _eligible_view(board, broker) for broker in board.brokers}

    def has_committed(mine: ModelLog, log: ModelLog | None) -> bool:
        return log is None or mine.agrees_below(log, mine.end_offset)

    model.always(
        "CommittedOnNextLeader",
        [when(has_committed, views.committed[one], candidate[other]) for one, other in board.pairs()],
        claim("CommittedOnNextLeader", "kafka"),
        "LeaderHasCommitted",
    )

    def has_acknowledged(clients: ClientKnowledge, log: ModelLog | None) -> bool:
        return log is None or all(log.read(one.offset, 1) == (one.record,) for one in clients.told)

    model.always(
        "AcknowledgedOnNextLeader",
        [when(has_acknowledged, slots.clients, candidate[broker]) for broker in board.brokers],
        claim("AcknowledgedOnNextLeader", "kafka"),
        "Acknowledged",
    )
    model.sometimes(
        "Acknowledged",
        [when(lambda clients: len(clients.told) > 0, slots.clients)],
        claim("Acknowledged", "kafka"),
    )
    model.sometimes(
        "LeaderHasCommitted",
        [
            when(lambda role, known, broker=broker: role.leader == broker and known.end_offset > 0, slots.role[broker], view)
            for broker, view in views.committed.items()
        ],
        claim("LeaderHasCommitted", "kafka"),
    )


def _isr(board: Board) -> None:
    model, slots, views = board.model, board.slots, board.views

    nothing = empty_log(board.parameters)

    def known_to_leader(broker: BrokerId) -> Callable[[Role, Log], ModelLog]:
        return lambda role, log: log.log.truncate_to(log.high_watermark) if role.leader == broker else nothing

    presumed = {
        broker: model.view(
            "committed by a presumed leader", known_to_leader(broker), slots.role[broker], slots.log[broker], key=broker
        )
        for broker in board.brokers
    }
    own_isr = {
        broker: model.view(
            "ISR of a presumed leader",
            lambda role, broker=broker: role.isr.isr if role.leader == broker else NOBODY,
            slots.role[broker],
            key=broker,
        )
        for broker in board.brokers
    }
    true_isr = model.view("true ISR", lambda cluster: cluster.topic.isr, slots.cluster)

    def member_agrees(member: BrokerId) -> Callable[[ModelLog, frozenset[BrokerId], Log], bool]:
        return lambda known, isr, log: member not in isr or known.agrees_below(log.log, known.end_offset)

    by_default = not board.parameters["unclean_shutdowns"]
    model.always(
        "WeakIsr",
        [when(member_agrees(other), presumed[one], own_isr[one], slots.log[other]) for one, other in board.pairs()],
        claim("WeakIsr", "kafka"),
        "LeaderHasCommitted",
        by_default=by_default and not board.parameters["reassignments"],
    )
    model.always(
        "StrongIsr",
        [when(member_agrees(other), presumed[one], true_isr, slots.log[other]) for one, other in board.pairs()],
        claim("StrongIsr", "kafka"),
        "LeaderHasCommitted",
        by_default=by_default,
    )

    def covers(broker: BrokerId) -> Callable[[Role, TopicRegistration, Process], bool]:
        def holds(role: Role, topic: TopicRegistration, process: Process) -> bool:
            in_office = topic.leader == broker and role.leader == broker and role.leader_epoch == topic.leader_epoch
            return not (in_office and board.answers(broker, process)) or topic.isr <= maximal_isr(role.isr)

        return holds

    model.always(
        "QuorumSuperset",
        [when(covers(broker), slots.role[broker], views.current, slots.process[broker]) for broker in board.brokers],
        claim("QuorumSuperset", "kafka"),
        "SomebodyLeads",
    )


def _logs(board: Board) -> None:
    model, views, slots = board.model, board.views, board.slots
    model.always(
        "LogMatching",
        [
            when(
                lambda mine, theirs: mine.agrees_below(theirs, min(mine.end_offset, theirs.end_offset)),
                views.committed[one],
                views.committed[other],
            )
            for one, other in combinations(board.brokers, 2)
        ],
        claim("LogMatching", "kafka"),
        "TwoReplicasKnowOfCommit",
    )
    model.sometimes(
        "TwoReplicasKnowOfCommit",
        [
            when(lambda log, other: min(log.high_watermark, other.high_watermark) > 0, slots.log[one], slots.log[other])
            for one, other in combinations(board.brokers, 2)
        ],
        claim("TwoReplicasKnowOfCommit", "kafka"),
    )


def _histories(board: Board) -> None:
    """The assumption of `EpochLog`: it keeps no records, and the history that it keeps is theirs.

    Only a model whose logs are such can fail it. Up to 2.6 it fails, as in Kafka: a follower keeps an epoch that it had
    opened as a leader and that has no record (KAFKA-10706), and records of an earlier epoch then erase the entries of both.
    """
    if board.parameters[LOG.name] != "epochs":
        return
    model, slots = board.model, board.slots
    model.always(
        "HistoryFollowsRecords",
        [when(lambda log: follows_from_its_records(log.log), slots.log[broker]) for broker in board.brokers],
        claim("HistoryFollowsRecords", "kafka"),
        "TwoEpochsInHistory",
        by_default=all(_keeps_history(board, rules.protocol) for rules in board.rules.values()),
    )
    model.sometimes(
        "TwoEpochsInHistory",
        [when(lambda log: len(log.log.epoch_history.entries) > 1, slots.log[broker]) for broker in board.brokers],
        claim("TwoEpochsInHistory", "kafka"),
    )


def _keeps_history(board: Board, protocol: BrokerProtocol) -> bool:
    """Whether a release keeps the epoch history that its records have."""
    is_misled = board.parameters["epoch_file_losses"] and protocol.believes_epochs is describes_any
    return protocol.truncate is not truncate_if_longer and not is_misled


def _in_office(board: Board) -> dict[BrokerId, View]:
    """Whether a broker leads and answers, and the controller says so too."""
    slots = board.slots

    def in_office(cluster: AnyCluster, role: Role, process: Process, broker: BrokerId) -> bool:
        topic = cluster.topic
        own = role.leader == broker and role.leader_epoch == topic.leader_epoch
        return topic != NO_TOPIC and topic.leader == broker and own and board.answers(broker, process)

    return {
        broker: board.model.view(
            "leader in office",
            partial(in_office, broker=broker),
            slots.cluster,
            slots.role[broker],
            slots.process[broker],
            key=broker,
        )
        for broker in board.brokers
    }


def _acknowledged(board: Board, in_office: dict[BrokerId, View]) -> None:
    model, slots, views = board.model, board.slots, board.views

    def holds_all(leads: bool, log: Log, clients: ClientKnowledge) -> bool:
        return not leads or all(log.log.read(one.offset, 1) == (one.record,) for one in clients.told)

    def holds_committed(leads: bool, log: Log, known: ModelLog) -> bool:
        return not leads or known.agrees_below(log.log, known.end_offset)

    terms: list[Local] = [when(holds_all, in_office[broker], slots.log[broker], slots.clients) for broker in board.brokers]
    model.always(
        "AcknowledgedOnLeader",
        terms,
        claim("AcknowledgedOnLeader", "kafka"),
        "AcknowledgedAcrossLeaders",
    )
    model.sometimes(
        "AcknowledgedAcrossLeaders",
        [
            when(
                lambda leads, role, clients: (
                    leads and any(one.record.leader_epoch < role.leader_epoch for one in clients.told)
                ),
                in_office[broker],
                slots.role[broker],
                slots.clients,
            )
            for broker in board.brokers
        ],
        claim("AcknowledgedAcrossLeaders", "kafka"),
    )
    model.always(
        "LeaderCompleteness",
        [when(holds_committed, in_office[one], slots.log[one], views.committed[other]) for one, other in board.pairs()],
        claim("LeaderCompleteness", "kafka"),
        "LeaderHasCommitted",
    )


def _reads(board: Board) -> None:
    """Consumers can read the records below a presumed leader's high watermark."""
    model, slots = board.model, board.slots
    model.always(
        "ConsistentRead",
        [when(lambda clients: len({one.offset for one in clients.read}) == len(clients.read), slots.clients)],
        claim("ConsistentRead", "kafka"),
        "Read",
    )
    model.sometimes("Read", [when(lambda clients: len(clients.read) > 0, slots.clients)], claim("Read", "kafka"))


def _promises_latest_offset(board: Board) -> bool:
    """Whether all brokers promise it; releases before 2.2 fail so soon that no other violation would be found."""
    return all(rules.protocol.promises_latest_offset for rules in board.rules.values())


def _latest_offset(board: Board, in_office: dict[BrokerId, View]) -> None:
    """KIP-207: the latest offset that a consumer gets is not before a record that a consumer can have read."""
    model, slots = board.model, board.slots

    def answer(leader: BrokerId) -> Callable[[Role, Log], ListOffsetsResponse]:
        return lambda role, log: latest_offset(board.rules[leader], leader, log, role)

    told = {
        leader: model.view("latest offset", answer(leader), slots.role[leader], slots.log[leader], key=leader)
        for leader in board.brokers
    }
    read_up_to = model.view(
        "read up to", lambda clients: max((one.offset + 1 for one in clients.read), default=0), slots.clients
    )
    model.always(
        "LatestOffset",
        [
            when(
                lambda leads, latest, read: not leads or latest.error != Error.NONE or read <= latest.offset,
                in_office[broker],
                told[broker],
                read_up_to,
            )
            for broker in board.brokers
        ],
        claim("LatestOffset", "kafka"),
        "Read",
        by_default=_promises_latest_offset(board),
    )


def _once(board: Board) -> None:
    """The purpose of an idempotent producer's sequence numbers (KIP-98)."""
    if not board.parameters["retries"]:
        return
    model, slots = board.model, board.slots
    model.always(
        "OnceAndInOrder",
        [
            when(
                lambda log: all(one.value < other.value for one, other in pairwise(log.log.records)),
                slots.log[broker],
            )
            for broker in board.brokers
        ],
        claim("OnceAndInOrder", "kafka"),
        "SentAgain",
    )
    left = board.budget("retries")
    assert left is not None
    most = board.parameters["retries"]
    model.sometimes("SentAgain", [when(lambda number: number < most, left)], claim("SentAgain", "kafka"))


def _unclean(board: Board) -> None:
    """A broker that has stopped without warning is trusted with nothing when it is back, until it has fetched."""
    if not board.stops_uncleanly:
        return
    model, slots = board.model, board.slots

    def is_new(cluster: AnyCluster, process: Process, broker: BrokerId) -> bool:
        life = process.life
        registers = process.up and not process.published and life.previous_broker_epoch == NO_BROKER_EPOCH
        return registers and life.broker_epoch == registered(cluster, broker).broker_epoch

    def is_trusted(cluster: AnyCluster, process: Process, broker: BrokerId) -> bool:
        return is_new(cluster, process, broker) and _is_listed(board, cluster, broker)

    model.always(
        "UncleanExclusion",
        [
            when(
                lambda cluster, process, broker=broker: not is_trusted(cluster, process, broker),
                slots.cluster,
                slots.process[broker],
            )
            for broker in board.brokers
        ],
        claim("UncleanExclusion", "kafka"),
        "ComesBack",
    )
    model.sometimes(
        "ComesBack",
        [
            when(
                lambda cluster, process, broker=broker: is_new(cluster, process, broker),
                slots.cluster,
                slots.process[broker],
            )
            for broker in board.brokers
        ],
        claim("ComesBack", "kafka"),
    )
