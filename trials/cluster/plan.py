"""The parts of a cluster: its nodes, their ports, and their settings."""

from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

HOST = "127.0.0.1"
CONTROLLER, CONTROLLER_ID = "controller", 100
MOST_BROKERS = 99
MOST_CONTROLLERS = 9
CLUSTER_ID = "a3NwZWMtY2x1c3Rlci1ub2RlcQ"
"""The cluster's id: 16 bytes in URL-safe base64, as Kafka's."""

VOTERS, BOOTSTRAP = "controller.quorum.voters", "controller.quorum.bootstrap.servers"
DIRECTORY_BYTES = 16

BROKER, CONTROLLER_ROLE, BOTH = "broker", "controller", "broker,controller"


class ClusterError(Exception):
    """A cluster that cannot start or go on: the reason in one line."""


class UsageError(ClusterError):
    """A request for a cluster that is impossible: the reason in one line."""


class Node(NamedTuple):
    """One process of the cluster. `name` is its key among the process ids: a broker's id, `controller`, or `controller-1`
    and so on if there are several.

    `port`: on which it listens; `told`: its advertised port, which may be a proxy's; `first_voters`: the controllers with
    which the metadata log begins, ID@HOST:PORT:DIRECTORY, if they may change (KIP-853).
    """

    name: str
    node_id: int
    roles: str
    folder: Path
    port: int
    told: int
    properties: Mapping[str, str]
    first_voters: str = ""

    @property
    def file(self) -> Path:
        """Its settings."""
        return self.folder / "server.properties"

    @property
    def data(self) -> Path:
        """Its log directory."""
        return self.folder / "data"

    @property
    def is_formatted(self) -> bool:
        """Whether its log directory is formatted."""
        return (self.data / "meta.properties").exists()

    @property
    def clock(self) -> Path:
        """The file with the offset of its wall clock, if the program reads one."""
        return self.folder / "clock"

    @property
    def is_broker(self) -> bool:
        """Whether it serves clients."""
        return self.roles != CONTROLLER_ROLE

    @property
    def address(self) -> str:
        """Its advertised address."""
        return f"{HOST}:{self.told}"

    def __str__(self) -> str:
        if self.is_broker:
            return f"broker {self.name}"
        return "the controller" if self.name == CONTROLLER else self.name.replace("-", " ")


class Program(Protocol):
    """A program that runs as a node: a broker of this project, or another one."""

    ready: str
    """A regular expression for the line of its output by which it serves."""

    def prepare(self, node: Node) -> None:
        """Prepare a node's folder for its start."""

    def command(self, node: Node, start: int) -> Sequence[str]:
        """The command of a node that is started for the `start`-th time."""


class Ports(NamedTuple):
    """Ports of the nodes and their advertised ports, by the nodes' names; `controller` for that side of a combined node."""

    listens: Mapping[str, int]
    told: Mapping[str, int]

    @property
    def controllers(self) -> tuple[str, ...]:
        """The names of the controllers."""
        return tuple(name for name in self.listens if name.startswith(CONTROLLER))


def controller_names(controllers: int) -> tuple[str, ...]:
    """The names of the controllers of a cluster. Raises: `UsageError`."""
    if not 1 <= controllers <= MOST_CONTROLLERS:
        raise UsageError(f"a cluster has 1 to {MOST_CONTROLLERS} controllers, not {controllers}")
    if controllers == 1:
        return (CONTROLLER,)
    return tuple(f"{CONTROLLER}-{number}" for number in range(1, controllers + 1))


def controller_id(name: str) -> int:
    """The id of a controller."""
    return CONTROLLER_ID + int(name.removeprefix(CONTROLLER).removeprefix("-") or 0)


def ports_from(first: int, brokers: int, controllers: int = 1) -> Ports:
    """Broker N on the first port plus N-1, and the controllers behind the last. Raises: `UsageError`."""
    names = [str(number) for number in range(1, brokers + 1)] + [*controller_names(controllers)]
    if not 0 < first <= 65536 - len(names):
        last, whom = 65536 - len(names), "a controller" if controllers == 1 else f"{controllers} controllers"
        raise UsageError(f"the ports of {brokers} brokers and {whom} begin at 1 to {last}, not at {first}")
    ports = dict(zip(names, range(first, first + len(names)), strict=True))
    return Ports(ports, ports)


def ports_behind(first: int, brokers: int, controllers: int = 1) -> Ports:
    """Advertised ports as those of `ports_from`, behind which each node listens on another. Raises: `UsageError`."""
    told = ports_from(first, brokers, controllers)
    return Ports(ports_from(first + len(told.told), brokers, controllers).listens, told.told)


def nodes_of(
    folder: Path,
    brokers: int,
    ports: Ports,
    overrides: Mapping[str, str],
    *,
    combined: bool = False,
    voters_in_log: bool = True,
) -> list[Node]:
    """The controllers and the brokers; or one node that is both.

    `overrides`: settings for all nodes, in place of the cluster's defaults. `voters_in_log`: several controllers vote by
    the log, and may be changed (`kraft.version` 1); a cluster that has begun with those of settings keeps them. Raises:
    `UsageError`.
    """
    if not 1 <= brokers <= MOST_BROKERS:
        raise UsageError(f"a cluster has 1 to {MOST_BROKERS} brokers, not {brokers}")
    if combined and (brokers > 1 or len(ports.controllers) > 1):
        raise UsageError("only a single broker can be the controller as well")
    settings = {**defaults(brokers), **overrides}
    names = [str(number) for number in range(1, brokers + 1)]
    roles = dict.fromkeys(names, BOTH if combined else BROKER)
    if not combined:
        roles = {**dict.fromkeys(ports.controllers, CONTROLLER_ROLE), **roles}
    changing = voters_in_log and len(ports.controllers) > 1 and VOTERS not in overrides and not has_fixed_voters(folder)
    return [_node(folder / name, name, role, ports, settings, changing) for name, role in roles.items()]


def has_fixed_voters(folder: Path) -> bool:
    """Whether the cluster in a folder has several controllers that are named by settings."""
    files = folder.glob(f"{CONTROLLER}-*/server.properties")
    return any(f"{VOTERS}=" in file.read_text(encoding="utf-8") for file in files)


def first_directory(controller: str) -> str:
    """The directory id of a controller's first disk, as Kafka writes ids. A disk that replaces it has another one."""
    return urlsafe_b64encode(controller.encode().ljust(DIRECTORY_BYTES, b"\0")).decode().rstrip("=")


def defaults(brokers: int) -> dict[str, str]:
    """Settings of a cluster of this size that tolerates the loss of one broker."""
    copies, enough = str(min(3, brokers)), str(min(2, brokers))
    return {
        "default.replication.factor": copies,
        "min.insync.replicas": enough,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": enough,
        "group.initial.rebalance.delay.ms": "0",
    }


def _node(folder: Path, name: str, roles: str, ports: Ports, settings: Mapping[str, str], changing: bool) -> Node:
    node_id = controller_id(name) if roles == CONTROLLER_ROLE else int(name)
    controller = f"CONTROLLER://{HOST}"
    listens, told = f"PLAINTEXT://{HOST}:{ports.listens[name]}", f"PLAINTEXT://{HOST}:{ports.told[name]}"
    at = {controller_id(one): ports.told[one] for one in ports.controllers}
    if roles == CONTROLLER_ROLE:
        listens, told = f"{controller}:{ports.listens[name]}", f"{controller}:{ports.told[name]}"
        at[node_id] = ports.listens[name]
    elif roles == BOTH:
        at = {node_id: ports.told[CONTROLLER]}
        listens = f"{listens},{controller}:{ports.listens[CONTROLLER]}"
    voters = {VOTERS: ",".join(f"{voter}@{HOST}:{port}" for voter, port in at.items())}
    if changing:
        voters = {BOOTSTRAP: ",".join(f"{HOST}:{ports.told[one]}" for one in ports.controllers)}
    properties = {
        "process.roles": roles,
        "node.id": str(node_id),
        "cluster.id": CLUSTER_ID,
        **voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": listens,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(folder / "data"),
        **settings,
    }
    if ports.told[name] != ports.listens[name]:
        properties["advertised.listeners"] = told
    if roles != CONTROLLER_ROLE:
        properties["inter.broker.listener.name"] = "PLAINTEXT"
    begins_with = [f"{controller_id(one)}@{HOST}:{ports.told[one]}:{first_directory(one)}" for one in ports.controllers]
    first_voters = ",".join(begins_with) if changing and roles == CONTROLLER_ROLE else ""
    return Node(name, node_id, roles, folder, ports.listens[name], ports.told[name], properties, first_voters)


def by_node(text: str | None, nodes: Sequence[str], *, otherwise: str | None) -> dict[str, str | None]:
    """A choice for all nodes (`3.9`), or one for each (`1=3.9,2=next`). Raises: `UsageError`."""
    if text is None or "=" not in text:
        return dict.fromkeys(nodes, text if text is not None else otherwise)
    found: dict[str, str | None] = dict.fromkeys(nodes, otherwise)
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or not value or name not in found:
            raise UsageError(f"{part!r} is not NODE=VALUE with one of the nodes {', '.join(nodes)}")
        found[name] = value
    return found
