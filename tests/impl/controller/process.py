"""A controller as a process, and a client that speaks to it as a broker does."""

from typing import Any

from kspec.impl.wire.values import Message
from tests.impl.broker.process import BrokerClient, BrokerProcess
from tests.impl.controller.requests import CLUSTER_ID, KEYS, Moves

NODE = 100


class ControllerProcess(BrokerProcess):
    """`kspec broker` with `process.roles=controller`."""

    def settings(self) -> list[str]:
        """Its settings; a port is chosen at the first start, and kept."""
        return [
            "process.roles=controller",
            f"node.id={NODE}",
            f"cluster.id={CLUSTER_ID}",
            f"controller.quorum.voters={NODE}@127.0.0.1:{self.port}",
            "controller.listener.names=CONTROLLER",
            f"listeners=CONTROLLER://127.0.0.1:{self.port}",
            *self.overrides,
        ]


class MemberProcess(Moves, BrokerClient):
    """A connection to the controller, as a broker has it: requests as fields, answers as fields."""

    apis = KEYS

    def call(self, name: str, version: int, **fields: Any) -> Message:
        return BrokerClient.call(self, name, version, **fields)
