"""The settings of a controller that is a process of its own. Kafka: `KafkaConfig`, `QuorumConfig`."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kspec.impl.config.broker import SETTINGS
from kspec.impl.config.folders import name_of_log_dir, only_folder
from kspec.impl.config.listeners import Listener, check_listeners, listener_of
from kspec.impl.config.promises import check_promises, ignored
from kspec.impl.config.properties import ConfigError
from kspec.impl.config.settings import Setting, SettingValues

METADATA_LOG_DIR = "metadata.log.dir"

CONTROLLER_SETTINGS: dict[str, Setting] = SETTINGS | {
    setting.name: setting
    for setting in (
        Setting("process.roles", "list", "controller", "This process is a controller.", choices=("controller",)),
        Setting("controller.quorum.voters", "list", None, "The controllers: ID@HOST:PORT. There is one."),
        Setting("controller.listener.names", "list", "CONTROLLER", "The name of the controller's listener."),
        Setting("listeners", "list", None, "Where brokers connect: CONTROLLER://HOST:PORT."),
        Setting(METADATA_LOG_DIR, "string", None, "The folder of the metadata log, if not that of log.dirs."),
    )
}
"""The settings that a controller understands. Any other name is a warning, or ends the start (`impl.config.promises`)."""

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


class ControllerConfig(SettingValues):
    """The settings of this controller: those given, and the defaults of the others. Raises: `ConfigError`."""

    known = CONTROLLER_SETTINGS

    def __init__(self, given: Mapping[str, str]) -> None:
        check_promises(given, CONTROLLER_SETTINGS)
        self.ignored = ignored(given, CONTROLLER_SETTINGS, SILENT)
        super().__init__(given)
        self.listener = self._own_listener()
        check_listeners({"controller.listener.names": "CONTROLLER", **given})
        self.voter = self._own_voter()

    @property
    def node_id(self) -> int:
        """The id of this controller."""
        return self.number("node.id")

    @property
    def log_dir(self) -> Path:
        """The folder of the metadata log."""
        name = self.log_dir_name
        given = self.word(name) if name == METADATA_LOG_DIR else None
        return only_folder(self.words(name) if given is None else (given,), name)

    @property
    def log_dir_name(self) -> str:
        """The setting that names the folder."""
        return name_of_log_dir(self.given, METADATA_LOG_DIR)

    def _own_listener(self) -> Listener:
        names = self.words("controller.listener.names")
        if len(names) != 1:
            raise ConfigError(f"controller.listener.names must be one name, not {','.join(names) or 'nothing'}")
        name = names[0].upper()
        listed = [listener_of("listeners", one) for one in self.words("listeners")]
        if [one.name for one in listed] != [name]:
            told = self.given.get("listeners", "nothing")
            raise ConfigError(f"listeners must be {name}://HOST:PORT for a process that is a controller only, not {told}")
        return listed[0]

    def _own_voter(self) -> Voter:
        listed = self.words("controller.quorum.voters")
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
