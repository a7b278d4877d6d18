"""The settings of a controller that is a process of its own. Kafka: `KafkaConfig`, `QuorumConfig`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from impl.config.broker import SETTINGS, Listener, listener_of
from impl.config.properties import ConfigError
from impl.config.settings import Setting

CONTROLLER_SETTINGS: dict[str, Setting] = SETTINGS | {
    setting.name: setting
    for setting in (
        Setting("process.roles", "list", "controller", "This process is a controller.", choices=("controller",)),
        Setting("controller.quorum.voters", "list", None, "The controllers: ID@HOST:PORT. There is one."),
        Setting("controller.listener.names", "list", "CONTROLLER", "The name of the controller's listener."),
        Setting("listeners", "list", None, "Where brokers connect: CONTROLLER://HOST:PORT."),
        Setting("metadata.log.dir", "string", None, "The folder of the metadata log, if not that of log.dirs."),
        Setting("auto.leader.rebalance.enable", "boolean", "true", "Whether preferred replicas are elected."),
        Setting("leader.imbalance.check.interval.seconds", "long", "300", "How often that is looked at (s).", lowest=1),
        Setting(
            "unclean.leader.election.interval.ms",
            "long",
            "300000",
            "How often that is looked at.",
            lowest=1,
        ),
    )
}
"""What a controller understands. Any other name is a warning."""

SILENT = (
    "broker.heartbeat.interval.ms",
    "controller.quorum.bootstrap.servers",
    "inter.broker.listener.name",
    "leader.imbalance.per.broker.percentage",
    "listener.security.protocol.map",
    "metadata.max.idle.interval.ms",
    "num.network.threads",
    "num.io.threads",
    "controller.quorum.append.linger.ms",
)
"""Names that stand in Kafka's own files for controllers and mean nothing here: no warning."""


class Voter(NamedTuple):
    """A controller of the quorum, and where it is reached. Kafka: `QuorumConfig.parseVoterConnections`."""

    node: int
    host: str
    port: int


class ControllerConfig:
    """The settings of this controller: those given, and the defaults of the others. Raises: `ConfigError`."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = {name: value for name, value in given.items() if name in CONTROLLER_SETTINGS}
        self.unknown = {name: given[name] for name in sorted(given.keys() - CONTROLLER_SETTINGS.keys() - set(SILENT))}
        self._values: dict[str, Any] = {}
        for name, setting in CONTROLLER_SETTINGS.items():
            text = self.given.get(name, setting.default)
            self._values[name] = None if text is None else setting.parse(text)
        self.listener = self._own_listener()
        self.voter = self._own_voter()

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    @property
    def node_id(self) -> int:
        """The id of this controller."""
        return int(self["node.id"])

    @property
    def log_dir(self) -> Path:
        """The folder of the metadata log."""
        if self["metadata.log.dir"] is not None:
            return Path(self["metadata.log.dir"])
        listed = self["log.dirs"] or self["log.dir"]
        if len(listed) > 1:
            raise ConfigError(f"log.dirs must name one folder, not {','.join(listed)}")
        return Path(listed[0])

    def _own_listener(self) -> Listener:
        names = self["controller.listener.names"]
        if len(names) != 1:
            raise ConfigError(f"controller.listener.names must be one name, not {','.join(names) or 'nothing'}")
        name = names[0]
        listed = [listener_of("listeners", one) for one in self["listeners"] or ()]
        if [one.name for one in listed] != [name]:
            told = self.given.get("listeners", "nothing")
            raise ConfigError(f"listeners must be {name}://HOST:PORT for a process that is a controller only, not {told}")
        return listed[0]

    def _own_voter(self) -> Voter:
        listed: tuple[str, ...] = self["controller.quorum.voters"] or ()
        if len(listed) != 1:
            told = ",".join(listed) or "nothing"
            raise ConfigError(
                f"controller.quorum.voters must name one controller, ID@HOST:PORT, not {told}: it is a quorum of one"
            )
        node, at, address = listed[0].partition("@")
        host, colon, port = address.rpartition(":")
        if not at or not colon or not node.isdecimal() or not port.isdecimal():
            raise ConfigError(f"controller.quorum.voters must have the form ID@HOST:PORT, not {listed[0]!r}")
        voter = Voter(int(node), host.strip("[]"), int(port))
        if voter.node != self.node_id:
            raise ConfigError(
                f"node.id must be {voter.node}, the one controller of controller.quorum.voters, not {self.node_id}"
            )
        if voter.port != self.listener.port:
            raise ConfigError(f"listeners must have port {voter.port} of controller.quorum.voters, not {self.listener.port}")
        return voter


def is_controller_alone(given: Mapping[str, str]) -> bool:
    """Whether settings ask for a controller that is no broker."""
    return [one.strip() for one in given.get("process.roles", "").split(",")] == ["controller"]
