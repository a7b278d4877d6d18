"""The operator of the voters: removes controllers and adds them, by requests to the controller that decides (KIP-853).

An operator does one thing at a time, and knows what quorums need: nobody is removed while a voter's disk is lost, and no
disk is lost while a removal may still come about.
"""

from collections.abc import Sequence

from kspec.impl.broker.calls import Ask, ChannelKey
from kspec.impl.metadata.voters import Endpoint, KnownVoters
from kspec.impl.wire.values import Message
from kspec.spec.messages.quorum.voters import VoterSet
from kspec.spec.quorum.replica import NO_CHANGE, voters_of
from kspec.spec.quorum.rules.votes import majority_of
from kspec.spec.values import BrokerId, DirectoryId, Error, ReplicaKey
from kspec.trials.simulated.clients.client import ClientEndpoint, nothing
from kspec.trials.simulated.clock import VirtualClock
from kspec.trials.simulated.controllers.several import SeveralControllers
from kspec.trials.simulated.history import BrokenPromiseError
from kspec.trials.simulated.ids import VOTERS_ADMIN_ID
from kspec.trials.simulated.network import Network
from kspec.trials.simulated.nodes import CLUSTER_ID, ControllerNode

REQUEST_MS, LATE_MS = 3_000, 12_000
"""The longest wait for an answer, and the time after which a request without one does not arrive any more."""


def first_voters(ids: Sequence[int]) -> KnownVoters:
    """The voters that a cluster begins with."""
    return {ReplicaKey(BrokerId(one), DirectoryId(one.to_bytes(16, "big"))): (_endpoint(one),) for one in ids}


def _endpoint(node: int) -> Endpoint:
    return Endpoint("CONTROLLER", "127.0.0.1", node)


class SimulatedVoterOperator:
    """An operator who changes the voters."""

    def __init__(self, clock: VirtualClock, network: Network, controllers: SeveralControllers) -> None:
        self._clock, self._network, self._controllers = clock, network, controllers
        self._client = ClientEndpoint(VOTERS_ADMIN_ID)
        self.away: set[int] = set()
        """The controllers that are no voters for a while, as the operator wants it."""
        self._is_asking = False
        self._unsure_until = 0
        """The time until which a request may arrive that was not answered (ms)."""
        self.changes = 0
        """The number of changes that were acknowledged."""

    # ---- what is known

    @property
    def _is_sure(self) -> bool:
        """Whether no request is under way."""
        return not self._is_asking and self._clock.now_ms >= self._unsure_until

    def _voters(self) -> VoterSet | None:
        """The voters, by what the controller that decides knows to be committed; none while that is about to change."""
        active = self._controllers.active
        if active is None:
            return None
        state = active.core.voter.state
        is_settled = state.change == NO_CHANGE and state.voter_sets[-1].offset < state.high_watermark
        return voters_of(state) if is_settled else None

    @property
    def _present(self) -> VoterSet:
        """The controllers with the directories that they have."""
        return frozenset(node.key for node in self._controllers.nodes)

    @property
    def is_whole(self) -> bool:
        """Whether all controllers vote, and nobody else."""
        return self._voters() == self._present

    @property
    def is_done(self) -> bool:
        """Whether all vote that should, by what is known, and nobody else."""
        voters, wanted = self._voters(), {node.key for node in self._controllers.nodes if node.node_id not in self.away}
        return voters is not None and wanted <= voters <= self._present

    # ---- what is done

    def may_lose_disk(self) -> bool:
        """Whether a controller may lose its disk: all vote, no change is under way, and the others are a majority."""
        number = len(self._controllers.nodes)
        return self._is_sure and self.is_whole and number - 1 >= majority_of(number)

    def remove(self, node: ControllerNode) -> bool:
        """Ask to remove a voter, if another one is left, and the disks of all voters are there; whether that may be."""
        voters = self._voters()
        may_be = voters is not None and len(voters) > 1 and node.key in voters and voters <= self._present
        if may_be and self._is_sure:
            self.away.add(node.node_id)
            self._ask("RemoveRaftVoter", node.key, is_added=False)
            return True
        return False

    def mend(self) -> None:
        """Take one step to where all vote that should: remove a lost disk, or add a controller."""
        voters = self._voters()
        if voters is None or not self._is_sure:
            return
        lost = sorted(voters - self._present)
        missing = [node for node in self._controllers.nodes if node.key not in voters and node.node_id not in self.away]
        if lost and len(voters) > 1:
            self._ask("RemoveRaftVoter", lost[0], is_added=False)
        elif missing and not lost:
            key = missing[0].key
            listeners = [Message(name=at.listener, host=at.host, port=at.port) for at in (_endpoint(key.id),)]
            self._ask("AddRaftVoter", key, is_added=True, timeout_ms=REQUEST_MS, listeners=listeners)

    def _ask(self, api: str, voter: ReplicaKey, *, is_added: bool, **fields: object) -> None:
        active = self._controllers.node_id
        before = max(self._controllers.checks.voter_sets, default=-1)
        named = {"cluster_id": CLUSTER_ID, "voter_id": voter.id, "voter_directory_id": voter.directory}

        def take(answer: Message | None) -> None:
            self._is_asking = False
            if answer is None:
                self._unsure_until = self._clock.now_ms + LATE_MS
            elif answer.error_code == Error.NONE.value:
                self._acknowledged(voter, is_added, before)

        self._is_asking = True
        asked = Ask(ChannelKey(active, "voters"), api, Message(**named, **fields), nothing, REQUEST_MS)
        self._network.ask(self._client, asked, take)

    def _acknowledged(self, voter: ReplicaKey, is_added: bool, before: int) -> None:
        """A change is acknowledged: it must be committed. Raises: `BrokenPromiseError`."""
        self.changes += 1
        later = [voters for offset, voters in self._controllers.checks.voter_sets.items() if offset > before]
        if not any((voter in voters) == is_added for voters in later):
            what = f"{'adding' if is_added else 'removing'} voter {voter.id} is acknowledged, and not committed"
            raise BrokenPromiseError("AcknowledgedIsCommitted", what)
