"""An operator who takes the vote of a controller, and gives it back (KIP-853), while other faults go on."""

import asyncio
import time
from base64 import urlsafe_b64decode
from typing import Any

from kspec.impl.storage import RealDisk, StorageError
from kspec.impl.storage.small_files import read_meta
from kspec.impl.wire.values import Message
from kspec.spec.controller.topics.names import CLUSTER_METADATA
from kspec.spec.values import Error
from kspec.trials.cluster.asking import NOT_REACHED, ask_once
from kspec.trials.cluster.plan import HOST, Node
from kspec.trials.cluster.supervisor import ClusterSupervisor

ASK_S, PAUSE_S, LONGEST_S = 5.0, 0.3, 60.0
"""The longest wait for an answer, the pause before the next try, and the longest time of a change (s)."""

FEWEST = 3
"""The voters of which one may be removed, so that others still tolerate the loss of one request or process."""

LISTENER = "CONTROLLER"


class VoterOperator:
    """An operator of the controllers of a cluster. He asks all of them, since only the active one answers."""

    def __init__(self, cluster: ClusterSupervisor) -> None:
        self._cluster = cluster
        self._controllers = [one.node for one in cluster.processes.values() if not one.node.is_broker]

    async def take_vote(self, name: str) -> bool:
        """Remove a controller from the voters, if enough others vote; whether it is removed."""
        node = self._cluster.processes[name].node
        voters = await self._voters()
        own = directory_of(node)
        if own is None or len(voters) < FEWEST or voters.get(node.node_id) != own:
            return False
        named = {"cluster_id": None, "voter_id": node.node_id, "voter_directory_id": own}
        gone = (Error.NONE.value, Error.VOTER_NOT_FOUND.value)  # the answer to a try before may have been lost
        return await self._until(gone, "RemoveRaftVoter", 0, **named)

    async def give_back(self, name: str) -> bool:
        """Let a controller vote again, once it has caught up; whether it does."""
        node = self._cluster.processes[name].node
        own = directory_of(node)
        at = Message(name=LISTENER, host=HOST, port=node.told)
        named = {"voter_id": node.node_id, "voter_directory_id": own, "listeners": [at]}
        more = {"cluster_id": None, "timeout_ms": int(ASK_S * 1000), "ack_when_committed": True}
        there = (Error.NONE.value, Error.DUPLICATE_VOTER.value)
        return await self._until(there, "AddRaftVoter", 1, **named, **more)

    async def _until(self, ends: tuple[int, ...], api: str, version: int, **fields: Any) -> bool:
        """Ask again and again until an answer has one of these errors; whether one has in time."""
        end = time.monotonic() + LONGEST_S
        while time.monotonic() < end:
            for one in self._controllers:
                try:
                    answer = await ask_once((HOST, one.port), api, version, ASK_S, **fields)
                except NOT_REACHED:
                    continue
                if answer.error_code in ends:
                    return True
            await asyncio.sleep(PAUSE_S)
        return False

    async def _voters(self) -> dict[int, bytes]:
        """The voters with their directories, as the active controller tells them; none, if no one does."""
        asked = [Message(topic_name=CLUSTER_METADATA, partitions=[Message(partition_index=0)])]
        for one in self._controllers:
            try:
                answer = await ask_once((HOST, one.port), "DescribeQuorum", 2, ASK_S, topics=asked)
            except NOT_REACHED:
                continue
            part = answer.topics[0].partitions[0] if answer.topics else None
            if part is not None and not answer.error_code and not part.error_code:
                return {one.replica_id: bytes(one.replica_directory_id) for one in part.current_voters}
        return {}


def directory_of(node: Node) -> bytes | None:
    """The directory id of a node, if its folder is formatted."""
    try:
        text = read_meta(RealDisk(), str(node.data)).get("directory.id")
    except (StorageError, OSError):
        return None
    return None if text is None else urlsafe_b64decode(f"{text}==")
