"""The settings of a controller that is a process of its own. Kafka: `KafkaConfig`, `QuorumConfig`."""

from collections.abc import Mapping
from pathlib import Path

from kspec.impl.config.broker import SETTINGS
from kspec.impl.config.folders import name_of_log_dir, only_folder
from kspec.impl.config.listeners import Listener, check_listeners, listener_of
from kspec.impl.config.promises import check_promises, ignored
from kspec.impl.config.properties import ConfigError
from kspec.impl.config.settings import Setting, SettingValues
from kspec.impl.config.voters import BOOTSTRAP, VOTERS, Place, bootstrap_of, places_of

METADATA_LOG_DIR = "metadata.log.dir"

CONTROLLER_SETTINGS: dict[str, Setting] = SETTINGS | {
    setting.name: setting
    for setting in (
        Setting("process.roles", "list", "controller", "This process is a controller.", choices=("controller",)),
        Setting(VOTERS, "list", None, "The controllers, this one among them, for ever: ID@HOST:PORT."),
        Setting(BOOTSTRAP, "list", None, "Where controllers are asked who leads, if the voters are in the log: HOST:PORT."),
        Setting("controller.listener.names", "list", "CONTROLLER", "The name of the controller's listener."),
        Setting("listeners", "list", None, "Where brokers connect: CONTROLLER://HOST:PORT."),
        Setting("advertised.listeners", "list", None, "What others are told instead of listeners."),
        Setting(METADATA_LOG_DIR, "string", None, "The folder of the metadata log, if not that of log.dirs."),
    )
}
"""The settings that a controller understands. Any other name is a warning, or ends the start (`impl.config.promises`)."""

SILENT = (
    "broker.heartbeat.interval.ms",
    "inter.broker.listener.name",
    "leader.imbalance.per.broker.percentage",
    "listener.security.protocol.map",
    "metadata.max.idle.interval.ms",
    "num.network.threads",
    "num.io.threads",
    "controller.quorum.append.linger.ms",
)
"""Names that stand in Kafka's own files for controllers and mean nothing here: no warning."""


class ControllerConfig(SettingValues):
    """The settings of this controller: those given, and the defaults of the others. Raises: `ConfigError`."""

    known = CONTROLLER_SETTINGS

    def __init__(self, given: Mapping[str, str]) -> None:
        check_promises(given, CONTROLLER_SETTINGS)
        self.ignored = ignored(given, CONTROLLER_SETTINGS, SILENT)
        super().__init__(given)
        self.listener = self._own_listener()
        self.advertised = self._advertised()
        """The address that others are told, which is that of the listener unless settings say otherwise."""
        check_listeners({"controller.listener.names": "CONTROLLER", **given})
        self.bootstrap = bootstrap_of(self.words(BOOTSTRAP))
        """The servers by which this controller finds the others, by ids of no server."""
        self.places = self._places()
        """The voters, and where each is reached, if the settings name them; then they never change."""

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

    def _advertised(self) -> Listener:
        listed = [listener_of("advertised.listeners", one) for one in self.words("advertised.listeners")]
        unknown = next((one.name for one in listed if one.name != self.listener.name), None)
        if unknown is not None or len(listed) > 1:
            told = self.given["advertised.listeners"]
            raise ConfigError(f"advertised.listeners must be {self.listener.name}://HOST:PORT, as listeners, not {told}")
        return listed[0] if listed else self.listener

    def _places(self) -> dict[int, Place]:
        listed = self.words(VOTERS)
        if not listed and self.bootstrap:
            return {}
        if not listed:
            raise ConfigError(f"{VOTERS} must name the controllers, ID@HOST:PORT, not nothing")
        places = places_of(listed)
        own = places.get(self.node_id)
        if own is None:
            known = " or ".join(map(str, places))
            raise ConfigError(f"node.id must be {known}, of the controllers of {VOTERS}, not {self.node_id}")
        if own.port != self.listener.port:
            raise ConfigError(f"listeners must have port {own.port} of {VOTERS}, not {self.listener.port}")
        return places


def is_controller_alone(given: Mapping[str, str]) -> bool:
    """Whether settings ask for a controller that is no broker."""
    return [one.strip() for one in given.get("process.roles", "").split(",")] == ["controller"]
