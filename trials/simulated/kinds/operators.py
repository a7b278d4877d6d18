"""Requests of operators, which come between everything else."""

from kspec.spec.values import BrokerId
from kspec.trials.simulated.kinds.site import SimulatedFault


class PartitionMove(SimulatedFault):
    """A partition is moved to other replicas, or its move is cancelled; half of the moves are taken back."""

    words, weight = "an operator moves a partition", 2.5

    def act(self) -> bool:
        """Request the move."""
        random, cluster = self.random, self.cluster
        brokers = list(cluster.brokers)
        count = random.randint(cluster.least_replicas, len(brokers))
        replicas = random.sample(brokers, count) if random.random() < 0.9 else None
        self._index = random.randrange(cluster.partitions)
        self._before = cluster.replicas_of(self._index)
        cluster.operator.reassign(self._index, replicas)
        self.is_undone = random.random() >= 0.5
        return True

    def undo(self) -> None:
        """Request the replicas of before."""
        self.cluster.operator.reassign(self._index, self._before)


class PreferredElection(SimulatedFault):
    """Preferred leaders are elected."""

    words, weight, is_undone = "an operator asks for preferred leaders", 2.0, False

    def act(self) -> bool:
        """Request the elections."""
        self.cluster.operator.prefer(range(self.cluster.partitions))
        return True


class LeaderMove(SimulatedFault):
    """A replica is made the preferred leader, and preferred leaders are elected; later the order of before is restored."""

    words, weight = "an operator makes broker {node} the preferred leader of partitions, and takes that back", 4.0

    def act(self) -> bool:
        """Request the order and the elections."""
        random, node, cluster = self.random, self.fault.node, self.cluster
        moved = [index for index in range(cluster.partitions) if random.random() < 0.8]
        before = {index: cluster.replicas_of(index) for index in moved}
        self._before = {index: replicas for index, replicas in before.items() if node in replicas}
        if not self._before:
            return False
        for index, replicas in self._before.items():
            others = [replica for replica in replicas if replica != node]
            random.shuffle(others)
            cluster.operator.reassign(index, [BrokerId(node), *others])
        cluster.operator.prefer(list(self._before))
        self.is_undone = random.random() >= 0.3
        return True

    def undo(self) -> None:
        """Request the order of before, where the replicas are the same, and the elections."""
        there = {index: self.cluster.replicas_of(index) for index in self._before}
        for index, replicas in self._before.items():
            if set(there[index]) == set(replicas):
                self.cluster.operator.reassign(index, replicas)
        self.cluster.operator.prefer(list(self._before))
