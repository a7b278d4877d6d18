"""The quorum of controllers, as tools with Kafka's flags reach it."""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from kspec.cli.broker.asking import PAUSE_S, ClusterAdmin, Place, check_plaintext, error_name
from kspec.cli.broker.client import command_config as given_config
from kspec.cli.statuses import RefusedError
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.metadata_requests import OF_BROKERS, OF_CONTROLLERS
from kspec.spec.controller.topics.names import CLUSTER_METADATA
from kspec.spec.values import Error

CONFIG = "command config"
"""The name by which a group of commands passes `--command-config` on."""


class QuorumAdmin(ClusterAdmin):
    """Requests about the quorum: to brokers, which hand them on, or to controllers, of which the leader answers.

    Raises: `RefusedError`.
    """

    def __init__(self, servers: str, are_controllers: bool, seconds: float) -> None:
        super().__init__(servers, seconds)
        self._are_controllers = are_controllers

    def cluster_id(self) -> str:
        """The id of the cluster."""
        kind = OF_CONTROLLERS if self._are_controllers else OF_BROKERS
        found: str = self.somewhere("DescribeCluster", 1, endpoint_type=kind).cluster_id
        return found

    def described(self) -> tuple[Message, dict[int, list[str]]]:
        """The quorum as its leader tells it, and the addresses of its nodes."""
        end = time.monotonic() + self.seconds
        while True:
            for place in self.servers:
                answer, error = self._asked_for_quorum(place)
                if answer is not None:
                    (part,) = answer.topics[0].partitions
                    return part, {node.node_id: [endpoint_text(one) for one in node.listeners] for node in answer.nodes}
            if time.monotonic() > end:
                raise RefusedError(f"the quorum: {error}")
            time.sleep(PAUSE_S)

    def _asked_for_quorum(self, place: Place) -> tuple[Message | None, str]:
        asked = [Message(topic_name=CLUSTER_METADATA, partitions=[Message(partition_index=0)])]
        try:
            answer = self.asked(place, "DescribeQuorum", 2, topics=asked)
        except RefusedError as error:
            return None, str(error)
        code = answer.error_code or answer.topics[0].partitions[0].error_code
        return (None, error_name(code)) if code else (answer, "")

    def change(self, what: str, api: str, newest: int, **fields: Any) -> None:
        """Ask the leader for a change of the voters, whichever of the servers that is or hands it on."""
        end = time.monotonic() + self.seconds
        while True:
            said = ""
            for place in self.servers:
                try:
                    answer = self.asked(place, api, newest, **fields)
                except RefusedError as error:
                    said = str(error)
                    continue
                if answer.error_code not in LOOK_ON:
                    if answer.error_code:
                        more = f": {answer.error_message}" if answer.error_message else ""
                        raise RefusedError(f"{what}: {error_name(answer.error_code)}{more}")
                    return
                said = error_name(answer.error_code)
            if time.monotonic() > end:
                raise RefusedError(f"{what}: {said}")
            time.sleep(PAUSE_S)


LOOK_ON = (Error.NOT_LEADER_OR_FOLLOWER.value, Error.NOT_CONTROLLER.value)
"""Errors of a server that does not lead: another one does, or will."""


def endpoint_text(listener: Message) -> str:
    """A listener, as Kafka's tool prints it."""
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    return f"{listener.name}://{host}:{listener.port}"


def asks_quorum(group: Callable[[], None]) -> Callable[..., None]:
    """Give a group of commands the options of Kafka's tools that say where the quorum is reached, and the `QuorumAdmin`."""

    @click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Where the cluster is reached.")
    @click.option("--bootstrap-controller", metavar="HOST:PORT,...", help="Where its controllers are reached.")
    @given_config
    @click.option("--timeout", type=click.IntRange(1), default=30_000, metavar="MS", help="How long to wait for an answer.")
    @click.pass_context
    @wraps(group)
    def with_admin(
        ctx: click.Context,
        bootstrap_server: str | None,
        bootstrap_controller: str | None,
        command_config: str | None,
        timeout: int,
    ) -> None:
        check_plaintext(command_config)
        servers = [one for one in (bootstrap_server, bootstrap_controller) if one is not None]
        if len(servers) != 1:
            raise click.UsageError("give one of --bootstrap-server and --bootstrap-controller")
        ctx.meta[CONFIG] = command_config
        ctx.obj = QuorumAdmin(servers[0], bootstrap_controller is not None, timeout / 1000)

    return with_admin
