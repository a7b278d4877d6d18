"""Three controllers in virtual time, on disks that lose what was not synced, and brokers that ask them."""

from collections.abc import Callable
from random import Random
from typing import Any, TypeVarTuple

from kspec.cli.broker.serve import rules_of
from kspec.impl.broker.calls import Ask, ChannelKey
from kspec.impl.wire.values import Message
from kspec.spec.values import Offset
from kspec.trials.simulated.clock import VirtualClock
from kspec.trials.simulated.network import Network
from kspec.trials.simulated.nodes import CLUSTER_ID, ControllerNode
from tests.impl.controller.requests import Moves
from tests.limits.turns import Turns

VOTERS = (101, 102, 103)
NEVER_MS = 60_000

Given = TypeVarTuple("Given")


class ThreeControllers:
    """The controllers, and the network between them."""

    def __init__(self, seed: int = 1, release: str = "next", stragglers: float = 0.0, **settings: str) -> None:
        self.clock = VirtualClock()
        self.random = Random(seed)
        self.network = Network(self.clock, self.random, stragglers=stragglers, coded=True)
        given = {name.replace("_", "."): value for name, value in settings.items()}
        rules = rules_of(release, None).controller
        self.nodes = {
            one: ControllerNode(one, self.clock, self.network, self.random, rules, given, VOTERS) for one in VOTERS
        }
        self.leaders: dict[int, int] = {}
        """The leader of each epoch."""
        self.committed: dict[int, int] = {}
        """The epoch of the last record below each offset up to which somebody has known the log to be committed."""
        for node in self.nodes.values():
            node.start()

    def _look(self) -> None:
        """Look at what must hold of any quorum: one leader in an epoch, and one log below what is committed."""
        for node in self.nodes.values():
            if not node.up:
                continue
            voter, log = node.core.voter, node.core.log.log
            if voter.leads:
                assert self.leaders.setdefault(voter.epoch, node.node_id) == node.node_id, "two lead in one epoch"
            end = voter.committed
            if end > log.start_offset:
                epoch = log.epoch_at(Offset(end - 1))
                assert self.committed.setdefault(end, epoch) == epoch, "two logs are committed"

    def active(self) -> ControllerNode | None:
        """The active controller of the last epoch, if there is one."""
        found = [one for one in self.nodes.values() if one.up and one.core.is_active]
        return max(found, key=lambda one: one.core.voter.epoch, default=None)

    def until(self, holds: Callable[[], object], most_ms: int = NEVER_MS) -> int:
        """Let time pass until something holds; how long that took (ms)."""
        begin = self.clock.now_ms
        turns = Turns(1_000_000)
        while not holds():
            turns.go()
            assert self.clock.now_ms < begin + most_ms, "it does not come to hold"
            assert self.clock.next_event()
            self._look()
        return self.clock.now_ms - begin

    def until_another_than(self, before: ControllerNode) -> int:
        """Wait for another active controller; how long that took (ms)."""
        return self.until(lambda: self.active() not in (None, before))

    def elect(self) -> ControllerNode:
        """Wait for an active controller."""
        self.until(self.active)
        found = self.active()
        assert found is not None
        return found

    def pass_time(self, ms: int) -> None:
        """Let time pass."""
        end = self.clock.now_ms + ms
        self.until(lambda: self.clock.now_ms >= end)

    def others(self, than: ControllerNode) -> list[ControllerNode]:
        """The other controllers."""
        return [node for node in self.nodes.values() if node is not than]

    def cut_off(self, node: ControllerNode) -> None:
        """Part a controller from the others; clients reach all."""
        self.network.blocked |= {frozenset((node.node_id, other.node_id)) for other in self.others(node)}

    def mend(self) -> None:
        """Let all reach each other again."""
        self.network.blocked.clear()

    def same_logs(self) -> bool:
        """Whether all have one log, all of it committed, and one image."""
        cores = [node.core for node in self.nodes.values() if node.up]
        first = cores[0]
        ends = {(one.log.end_offset, one.log.last_epoch) for one in cores}
        return len(ends) == 1 and all(
            one.all_committed and sorted(map(str, one.image.records())) == sorted(map(str, first.image.records()))
            for one in cores
        )


class SimulatedPeer(Moves):
    """A broker that asks one controller, as its own node in the network."""

    def __init__(self, cluster: ThreeControllers, controller: ControllerNode, node_id: int = 1) -> None:
        self.cluster, self.controller = cluster, controller
        self.node_id, self.incarnation, self.busy_until = node_id, 1, 0

    def run(self, action: Callable[[*Given], None], *given: *Given) -> None:
        """Take an answer."""
        action(*given)

    def send(self, name: str, **fields: Any) -> list[Message | None]:
        """Send a request; the list gets its answer."""
        answers: list[Message | None] = []
        asked = Ask(ChannelKey(self.controller.node_id, "test"), name, Message(**fields), lambda answer, now: [])
        self.cluster.network.ask(self, asked, answers.append)
        return answers

    def call(self, name: str, version: int, **fields: Any) -> Message:
        if "cluster_id" in fields:
            fields["cluster_id"] = CLUSTER_ID
        answers = self.send(name, **fields)
        self.cluster.until(lambda: answers)
        assert answers[0] is not None, f"{name} is not answered"
        return answers[0]
