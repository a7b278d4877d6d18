"""All fetchers of this broker: one for each leader that it follows. Kafka: `ReplicaFetcherManager`."""

from kspec.impl.broker.calls import Effect
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.replica import Replica
from kspec.impl.replica.fetching import LeaderFetcher
from kspec.spec.broker.rules.fetcher import is_fetching
from kspec.spec.values import BrokerId, Instant


class Fetchers:
    """The fetcher of each leader, and the leader that each partition follows."""

    def __init__(self, core: BrokerCore) -> None:
        self._core = core
        self._of_leader: dict[BrokerId, LeaderFetcher] = {}
        self._leader_of: dict[Replica, BrokerId] = {}

    def follow(self, replica: Replica, now: Instant) -> list[Effect]:
        """A partition has read new metadata: it is fetched from the leader that it follows now, if it follows one."""
        fetcher = replica.partition.fetcher
        known = self._leader_of.pop(replica, None)
        follows = is_fetching(fetcher) and not replica.offline
        if known is not None and (not follows or known != fetcher.leader):
            self._of_leader[known].remove(replica)
        if not follows:
            return []
        self._leader_of[replica] = fetcher.leader
        if fetcher.leader not in self._of_leader:
            self._of_leader[fetcher.leader] = LeaderFetcher(self._core, fetcher.leader)
        fetching = self._of_leader[fetcher.leader]
        fetching.add(replica)
        return fetching.go(now)
