"""Controllers in virtual time whose voters change: three that vote at first, and one more that only reads."""

from base64 import urlsafe_b64decode
from random import Random

from kspec.cli.broker.serve import rules_of
from kspec.impl.metadata.bootstrap import format_controller
from kspec.impl.metadata.voters import Endpoint
from kspec.impl.wire.values import Message
from kspec.spec.values import BrokerId, DirectoryId, ReplicaKey
from kspec.trials.simulated.clock import VirtualClock
from kspec.trials.simulated.network import Network
from kspec.trials.simulated.nodes import CLUSTER_ID, ControllerNode
from tests.impl.controller.three import SimulatedPeer, ThreeControllers

FIRST, LATE = (101, 102, 103), 104
CLIENT = 900


def endpoint_of(node: int) -> Endpoint:
    """The listener of a controller: its port is its id."""
    return Endpoint("CONTROLLER", "127.0.0.1", node)


def key_of(node: ControllerNode) -> ReplicaKey:
    """A controller with its directory, once it has started."""
    return ReplicaKey(BrokerId(node.node_id), DirectoryId(urlsafe_b64decode(f"{node.directory.directory_id}==")))


class ChangingControllers(ThreeControllers):
    """Controllers with `kraft.version` 1."""

    def __init__(self, seed: int = 1, release: str = "next", first: tuple[int, ...] = FIRST, **settings: str) -> None:
        self.clock = VirtualClock()
        self.random = Random(seed)
        self.network = Network(self.clock, self.random, coded=True)
        given = {name.replace("_", "."): value for name, value in settings.items()}
        rules = rules_of(release, None)
        self.nodes = {
            one: ControllerNode(
                one, self.clock, self.network, self.random, rules.controller, given, bootstrap=FIRST, quorum=rules.quorum
            )
            for one in (*FIRST, LATE)
        }
        self.leaders, self.committed = {}, {}
        voters = {ReplicaKey(BrokerId(one), DirectoryId(one.to_bytes(16, "big"))): (endpoint_of(one),) for one in first}
        for node in self.nodes.values():
            if node.node_id in first:
                now = node.now()
                format_controller(node.disk, f"/sim/{node.node_id}", CLUSTER_ID, node.node_id, voters, now)
            node.start()

    def peer(self, node: ControllerNode, number: int = CLIENT) -> SimulatedPeer:
        """A client of one controller."""
        return SimulatedPeer(self, node, number)

    def ask_to_add(
        self, leader: ControllerNode, voter: ReplicaKey, cluster_id: str | None = CLUSTER_ID, listener: str = "CONTROLLER"
    ) -> list[Message | None]:
        """Ask to add a voter; the list gets the answer."""
        at = endpoint_of(voter.id)
        listeners = [Message(name=listener, host=at.host, port=at.port)]
        asked = {"cluster_id": cluster_id, "timeout_ms": 1_000, "listeners": listeners}
        named = {"voter_id": voter.id, "voter_directory_id": voter.directory}
        return self.peer(leader).send("AddRaftVoter", **asked, **named)

    def ask_to_remove(
        self, leader: ControllerNode, voter: ReplicaKey, cluster_id: str | None = CLUSTER_ID
    ) -> list[Message | None]:
        """Ask to remove a voter; the list gets the answer."""
        named = {"voter_id": voter.id, "voter_directory_id": voter.directory}
        return self.peer(leader).send("RemoveRaftVoter", cluster_id=cluster_id, **named)

    def told(self, answers: list[Message | None]) -> int:
        """The error of an answer, when it comes."""
        self.until(lambda: answers)
        assert answers[0] is not None, "no answer"
        code: int = answers[0].error_code
        return code

    def add(self, leader: ControllerNode, voter: ReplicaKey) -> int:
        """Add a voter; the error."""
        return self.told(self.ask_to_add(leader, voter))

    def remove(self, leader: ControllerNode, voter: ReplicaKey) -> int:
        """Remove a voter; the error."""
        return self.told(self.ask_to_remove(leader, voter))

    def voters(self, node: ControllerNode) -> list[int]:
        """The voters by a controller's log."""
        return sorted(voter.id for voter in node.core.voter.voters)

    def all_know(self, *voters: int) -> bool:
        """Whether all controllers that run know these voters, and the same log."""
        running = [node for node in self.nodes.values() if node.up]
        return self.same_logs() and all(self.voters(node) == sorted(voters) for node in running)
