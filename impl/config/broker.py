"""The settings of a broker. Kafka: `KafkaConfig` and the classes that it is put together from."""

from collections.abc import Mapping
from pathlib import Path

from kspec.impl.config.folders import name_of_log_dir, only_folder
from kspec.impl.config.listeners import check_listeners, listed, listener_of
from kspec.impl.config.promises import check_promises, ignored
from kspec.impl.config.properties import ConfigError
from kspec.impl.config.settings import Setting, SettingValues
from kspec.impl.config.voters import BOOTSTRAP, QUORUM_SETTINGS, VOTERS, Place, bootstrap_of, places_of

DAY_MS = 86_400_000

SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("node.id", "int", "1", "The id of this broker.", lowest=0),
        Setting("broker.id", "int", None, "As node.id.", lowest=0),
        Setting("cluster.id", "string", None, "The cluster that a new folder is formatted for; made up if not given."),
        Setting("listeners", "list", "PLAINTEXT://127.0.0.1:9092", "Where clients connect: NAME://HOST:PORT."),
        Setting("advertised.listeners", "list", None, "What clients are told instead of listeners."),
        Setting("log.dirs", "list", None, "The folder for logs."),
        Setting("log.dir", "list", "kspec-broker", "The folder for logs, if log.dirs is not given."),
        Setting("broker.rack", "string", None, "The rack that clients are told."),
        Setting("num.partitions", "int", "1", "Partitions of a topic that does not say.", lowest=1),
        Setting("default.replication.factor", "int", "1", "Replicas of a topic that does not say.", lowest=1),
        Setting("min.insync.replicas", "int", "1", "In-sync replicas that acks=all requires.", lowest=1),
        Setting("auto.create.topics.enable", "boolean", "true", "Whether asking for a topic creates it."),
        Setting("delete.topic.enable", "boolean", "true", "Whether topics may be deleted."),
        Setting("unclean.leader.election.enable", "boolean", "false", "Whether a replica out of sync may lead."),
        Setting("process.roles", "list", None, "broker, controller, or both.", choices=("broker", "controller")),
        Setting(VOTERS, "list", None, "The controllers: ID@HOST:PORT."),
        Setting(BOOTSTRAP, "list", None, "Where controllers are asked who leads, if no list of them is given: HOST:PORT."),
        *QUORUM_SETTINGS,
        Setting("controller.listener.names", "list", None, "The name of the controller's listener."),
        Setting("broker.session.timeout.ms", "int", "9000", "When a silent broker is fenced (ms).", lowest=1),
        Setting("broker.heartbeat.interval.ms", "int", "2000", "How often a broker says that it is alive (ms).", lowest=1),
        Setting(
            "initial.broker.registration.timeout.ms",
            "int",
            "60000",
            "When a broker that starts gives up because no controller registers it (ms).",
        ),
        Setting("controlled.shutdown.enable", "boolean", "true", "Whether leaders move away before a broker stops."),
        Setting("replica.lag.time.max.ms", "long", "30000", "When a follower falls out of the ISR (ms).", lowest=1),
        Setting("replica.fetch.wait.max.ms", "int", "500", "How long a follower's fetch waits for records (ms).", lowest=0),
        Setting("replica.fetch.min.bytes", "int", "1", "How many bytes it waits for.", lowest=0),
        Setting("replica.fetch.max.bytes", "int", "1048576", "The most of one partition that it fetches (bytes).", lowest=0),
        Setting("replica.fetch.response.max.bytes", "int", "10485760", "The most that it fetches (bytes).", lowest=0),
        Setting("replica.fetch.backoff.ms", "int", "1000", "When it asks again after an error (ms).", lowest=0),
        Setting(
            "leader.replication.throttled.rate",
            "long",
            str(2**63 - 1),
            "The most that a leader sends to throttled replicas (bytes/s).",
            lowest=0,
        ),
        Setting(
            "follower.replication.throttled.rate",
            "long",
            str(2**63 - 1),
            "The most that a follower fetches of throttled replicas (bytes/s).",
            lowest=0,
        ),
        Setting(
            "replica.alter.log.dirs.io.max.bytes.per.second",
            "long",
            str(2**63 - 1),
            "The most that moves between log directories take (bytes/s): there is one, so there are none.",
            lowest=0,
        ),
        Setting("replication.quota.window.num", "int", "11", "Over how many windows a throttle measures.", lowest=1),
        Setting("replication.quota.window.size.seconds", "int", "1", "How long such a window is (s).", lowest=1),
        Setting("message.max.bytes", "int", "1048588", "The largest batch (bytes).", lowest=0),
        Setting("compression.type", "string", "producer", "Compression of stored batches."),
        Setting("socket.request.max.bytes", "int", "104857600", "The largest request (bytes).", lowest=1),
        Setting("socket.send.buffer.bytes", "int", "102400", "SO_SNDBUF; -1: the system's.", lowest=-1),
        Setting("socket.receive.buffer.bytes", "int", "102400", "SO_RCVBUF; -1: the system's.", lowest=-1),
        Setting("socket.listen.backlog.size", "int", "50", "Connections that wait to be accepted.", lowest=1),
        Setting("max.connections", "int", "2147483647", "Connections at a time.", lowest=0),
        Setting("max.connections.per.ip", "int", "2147483647", "Connections at a time from one address.", lowest=0),
        Setting("connections.max.idle.ms", "long", "600000", "When idle connections are closed (ms).", lowest=-1),
        Setting(
            "queued.max.requests", "int", "500", "Requests that are read and not yet looked at: here at most one.", lowest=1
        ),
        Setting("queued.max.request.bytes", "long", "268435456", "Bytes of requests in memory; -1: no limit.", lowest=-1),
        Setting("max.request.partition.size.limit", "int", "2000", "Partitions in DescribeTopicPartitions.", lowest=1),
        Setting("fetch.max.bytes", "int", "57671680", "The largest answer to a fetch (bytes).", lowest=1024),
        Setting("max.incremental.fetch.session.cache.slots", "int", "1000", "Fetch sessions at a time.", lowest=0),
        Setting("log.segment.bytes", "int", str(1 << 30), "When a segment is full.", lowest=14),
        Setting("log.roll.ms", "long", None, "When a segment is old enough to roll (ms).", lowest=1),
        Setting("log.roll.hours", "int", "168", "As log.roll.ms, in hours.", lowest=1),
        Setting("log.retention.ms", "long", None, "How long records are kept (ms); -1: for ever.", lowest=-1),
        Setting("log.retention.minutes", "int", None, "As log.retention.ms, in minutes.", lowest=-1),
        Setting("log.retention.hours", "int", "168", "As log.retention.ms, in hours.", lowest=-1),
        Setting("log.retention.bytes", "long", "-1", "How many bytes of a partition are kept; -1: all.", lowest=-1),
        Setting("log.retention.check.interval.ms", "long", "300000", "How often retention is applied (ms).", lowest=1),
        Setting("log.cleanup.policy", "list", "delete", "What becomes of old records.", choices=("delete", "compact")),
        Setting("log.cleaner.enable", "boolean", "true", "Whether logs are compacted."),
        Setting("log.cleaner.backoff.ms", "long", "15000", "How often compaction looks for work (ms).", lowest=0),
        Setting("log.cleaner.min.cleanable.ratio", "double", "0.5", "How dirty a log is compacted.", lowest=0, highest=1),
        Setting("log.cleaner.delete.retention.ms", "long", str(DAY_MS), "How long tombstones are kept (ms).", lowest=0),
        Setting("log.cleaner.min.compaction.lag.ms", "long", "0", "How long a record is left alone (ms).", lowest=0),
        Setting("log.cleaner.max.compaction.lag.ms", "long", str(2**63 - 1), "When a record must be compacted.", lowest=1),
        Setting("log.index.interval.bytes", "int", "4096", "Bytes between two entries of an index.", lowest=0),
        Setting("log.index.size.max.bytes", "int", "10485760", "The largest index (bytes).", lowest=4),
        Setting("log.flush.interval.messages", "long", str(2**63 - 1), "Records between two flushes.", lowest=1),
        Setting("log.flush.interval.ms", "long", None, "Time between two flushes (ms).", lowest=0),
        Setting("log.flush.scheduler.interval.ms", "long", str(2**63 - 1), "How often that is looked at (ms).", lowest=1),
        Setting("log.flush.offset.checkpoint.interval.ms", "int", "60000", "How often recovery points are noted.", lowest=0),
        Setting("log.segment.delete.delay.ms", "long", "60000", "How long deleted files stay (ms).", lowest=0),
        Setting("log.message.timestamp.type", "string", "CreateTime", "Time.", choices=("CreateTime", "LogAppendTime")),
        Setting("log.message.timestamp.before.max.ms", "long", str(2**63 - 1), "How old a record may be (ms).", lowest=0),
        Setting("log.message.timestamp.after.max.ms", "long", "3600000", "How far ahead a record may be (ms).", lowest=0),
        Setting("replica.high.watermark.checkpoint.interval.ms", "long", "5000", "How often high watermarks are written."),
        Setting("producer.id.expiration.ms", "int", str(DAY_MS), "When a silent producer is forgotten (ms).", lowest=1),
        Setting("producer.id.expiration.check.interval.ms", "int", "600000", "How often that is looked at (ms).", lowest=1),
        Setting(
            "transaction.partition.verification.enable",
            "boolean",
            "true",
            "Whether a leader asks the coordinator before it begins a transaction in a log.",
        ),
        Setting("request.timeout.ms", "int", "30000", "How long a marker waits to be committed (ms).", lowest=0),
        Setting("add.partitions.to.txn.retry.backoff.ms", "int", "20", "How soon a leader asks again (ms).", lowest=1),
        Setting("add.partitions.to.txn.retry.backoff.max.ms", "int", "100", "How long it asks (ms).", lowest=0),
        Setting(
            "metadata.log.max.record.bytes.between.snapshots",
            "long",
            "20971520",
            "Bytes of metadata after which a snapshot is taken.",
            lowest=1,
        ),
        Setting("offsets.topic.num.partitions", "int", "50", "Partitions of __consumer_offsets.", lowest=1),
        Setting("offsets.topic.replication.factor", "short", "1", "Replicas of __consumer_offsets.", lowest=1),
        Setting("offsets.topic.segment.bytes", "int", "104857600", "Segment size of __consumer_offsets.", lowest=1),
        Setting("offsets.commit.timeout.ms", "int", "5000", "How long an answer waits for its records (ms).", lowest=1),
        Setting("offsets.retention.minutes", "int", "10080", "How long offsets of an empty group are kept.", lowest=1),
        Setting("offsets.retention.check.interval.ms", "long", "600000", "How often that is looked at (ms).", lowest=1),
        Setting("transaction.state.log.num.partitions", "int", "50", "Partitions of __transaction_state.", lowest=1),
        Setting("transaction.state.log.replication.factor", "short", "1", "Replicas of __transaction_state.", lowest=1),
        Setting("transaction.state.log.min.isr", "int", "1", "In-sync replicas that its records require.", lowest=1),
        Setting("transaction.state.log.segment.bytes", "int", "104857600", "Segment size of __transaction_state.", lowest=1),
        Setting("transaction.max.timeout.ms", "int", "900000", "The longest transaction allowed (ms).", lowest=1),
        Setting("transactional.id.expiration.ms", "int", "604800000", "When an unused transactional id goes.", lowest=1),
        Setting(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms",
            "int",
            "10000",
            "How often transactions that take too long are looked for (ms).",
            lowest=1,
        ),
        Setting(
            "transaction.remove.expired.transaction.cleanup.interval.ms",
            "int",
            "3600000",
            "How often unused transactional ids are looked for (ms).",
            lowest=1,
        ),
        Setting("offset.metadata.max.bytes", "int", "4096", "The largest metadata of a committed offset.", lowest=0),
        Setting("group.initial.rebalance.delay.ms", "int", "3000", "How long a new group waits for members (ms).", lowest=0),
        Setting("group.min.session.timeout.ms", "int", "6000", "The shortest session of a member (ms).", lowest=1),
        Setting("group.max.session.timeout.ms", "int", "1800000", "The longest session of a member (ms).", lowest=1),
        Setting("group.max.size", "int", str(2**31 - 1), "Members of a classic group at most.", lowest=1),
        Setting("group.consumer.session.timeout.ms", "int", "45000", "The session of a consumer (KIP-848; ms).", lowest=1),
        Setting("group.consumer.heartbeat.interval.ms", "int", "5000", "Its time between heartbeats (ms).", lowest=1),
        Setting("group.consumer.max.size", "int", str(2**31 - 1), "Members of a consumer group at most.", lowest=1),
        Setting(
            "group.consumer.assignors",
            "list",
            "uniform,range",
            "Assignors for consumer groups; the first is the default.",
            choices=("uniform", "range"),
        ),
        Setting(
            "group.consumer.assignment.interval.ms",
            "int",
            "1000",
            "How long after a target of a consumer group the next one is computed (ms).",
            lowest=0,
        ),
        Setting(
            "group.consumer.migration.policy",
            "string",
            "bidirectional",
            "Which groups with members may change to the other protocol.",
            choices=("bidirectional", "upgrade", "downgrade", "disabled"),
        ),
        Setting("auto.leader.rebalance.enable", "boolean", "true", "Whether preferred replicas are elected."),
        Setting("leader.imbalance.check.interval.seconds", "long", "300", "How often that is looked at (s).", lowest=1),
        Setting(
            "unclean.leader.election.interval.ms",
            "long",
            "300000",
            "How often that is looked at.",
            lowest=1,
        ),
        Setting("metrics.listener", "string", None, "HOST:PORT for Prometheus; nothing listens if not given."),
        Setting("process.roles", "list", "broker,controller", "This process is both.", choices=("broker", "controller")),
    )
}
"""The settings that a broker understands. Any other name is a warning, or ends the start (`impl.config.promises`)."""

SILENT = (
    "inter.broker.listener.name",
    "listener.security.protocol.map",
    "num.network.threads",
    "num.io.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
)
"""Names that stand in Kafka's own example files and mean nothing to one broker: no warning."""


class BrokerConfig(SettingValues):
    """The settings of this broker: those given, and the defaults of the others."""

    known = SETTINGS

    def __init__(self, given: Mapping[str, str]) -> None:
        check_promises(given, SETTINGS)
        check_listeners(given)
        self.ignored = ignored(given, SETTINGS, SILENT)
        super().__init__(given)
        self.listener = listener_of("listeners", self._first("listeners"))
        advertised = self._first("advertised.listeners")
        self.advertised = listener_of("advertised.listeners", advertised) if advertised else None
        if self.number("group.min.session.timeout.ms") > self.number("group.max.session.timeout.ms"):
            raise ConfigError("group.min.session.timeout.ms must not be above group.max.session.timeout.ms")

    def _first(self, name: str) -> str:
        found = self.words(name)
        controllers = {one.upper() for one in listed(self.given.get("controller.listener.names")) or ("CONTROLLER",)}
        clients = [one for one in found if one.partition("://")[0].strip().upper() not in controllers]
        if len(clients) > 1:
            raise ConfigError(f"{name} must name one listener for clients, not {','.join(clients)}")
        if found and not clients:
            raise ConfigError(f"{name} must name a listener for clients, such as PLAINTEXT://127.0.0.1:9092")
        return clients[0] if clients else ""

    @property
    def places(self) -> dict[int, Place]:
        """The controllers, and where each is reached: this process, if it has the only one."""
        if not self.has_controller_elsewhere:
            return {self.node_id: Place(self.listener.host, self.listener.port)}
        found = places_of(self.words(VOTERS)) or bootstrap_of(self.words(BOOTSTRAP))
        if not found:
            raise ConfigError(f"{VOTERS} must name the controllers as ID@HOST:PORT, such as 100@127.0.0.1:9093")
        return found

    @property
    def bootstrap(self) -> dict[int, Place]:
        """Nobody: a broker that has the controller in its process asks no other one who leads."""
        return {}

    @property
    def has_controller_elsewhere(self) -> bool:
        """Whether this broker is a member of a cluster whose controller is another process."""
        return self.words("process.roles") == ("broker",)

    @property
    def node_id(self) -> int:
        """The id of this broker."""
        return self.number("broker.id" if "broker.id" in self.given and "node.id" not in self.given else "node.id")

    @property
    def log_dir(self) -> Path:
        """The folder for logs. Kafka takes several; one is used here."""
        return only_folder(self.words(self.log_dir_name), self.log_dir_name)

    @property
    def log_dir_name(self) -> str:
        """The setting that names the folder for logs."""
        return name_of_log_dir(self.given)

    def text(self, name: str) -> str | None:
        """A setting as it was given, or its default."""
        return self.given.get(name, SETTINGS[name].default)
