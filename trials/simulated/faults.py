"""The faults of a simulated cluster as they happen, and the end of all of them."""

from collections.abc import Iterable, Iterator

from kspec.trials.simulated.kinds.machines import set_right
from kspec.trials.simulated.kinds.site import Fault, FaultSite, FaultyCluster

REVIVED_EVERY_MS = 500
"""The interval in which, after all faults, nodes that are down are started."""

NOTICED_AFTER_MS = 10_000
"""The time after which an operator restarts a broker whose heartbeats the controller refuses."""


class Faults:
    """The faults of a run as they happen."""

    def __init__(self, cluster: FaultyCluster, planned: Iterable[Fault]) -> None:
        self._cluster = cluster
        self._planned: Iterator[Fault] = iter(planned)
        self._site = FaultSite(cluster)
        self.happened: list[Fault] = []
        self._displaced: dict[int, int] = {}
        """The number of looks in a row, after all faults, at which each broker was displaced."""

    def begin(self) -> None:
        """Begin with the faults."""
        self._site.is_active = True
        self._set(self._cluster.clock.now_ms)

    def _set(self, start_ms: int) -> None:
        """Schedule the next fault; each schedules the one after it."""
        fault = next(self._planned, None)
        if fault is None:
            return

        def happen() -> None:
            if self._site.is_active:
                if self._site.happen(fault):
                    self.happened.append(fault)
                    self._cluster.tell(fault.in_words())
                self._set(start_ms)

        self._cluster.clock.at(start_ms + fault.at_ms, happen)

    def end(self) -> None:
        """End all faults: nodes that are down start, paused ones resume, links are mended."""
        cluster = self._cluster
        self._site.is_active = False
        cluster.network.blocked.clear()
        cluster.network.slow_links.clear()
        cluster.network.lost_with_next.clear()
        cluster.network.on_next_request.clear()
        for node in (*cluster.controllers, *cluster.brokers.values()):
            was_full = node.disk.condition.full
            node.disk.condition.full, node.disk.condition.sync_ms = False, 0
            set_right(node)
            node.go_on()
            if was_full and node.up:
                node.kill()
        if cluster.voters is not None:
            cluster.voters.away.clear()
        cluster.tell("all faults are over")
        self._revive()

    def _revive(self) -> None:
        """Start nodes that are down, now and later: a broker may still be in its controlled shutdown.

        A broker that is displaced by an earlier incarnation, whose registration arrived late, is restarted as an operator
        does: the controller refuses each of its heartbeats, and it does not recover by itself.
        """
        cluster = self._cluster
        for node in (*cluster.controllers, *cluster.brokers.values()):
            if not node.up:
                node.start()
        if cluster.voters is not None:
            cluster.voters.mend()
        for broker in cluster.brokers.values():
            looks = self._displaced.get(broker.node_id, 0) + 1 if cluster.is_displaced(broker) else 0
            self._displaced[broker.node_id] = looks
            if looks * REVIVED_EVERY_MS >= NOTICED_AFTER_MS:
                cluster.tell(f"broker {broker.node_id} is restarted: the controller has another registration in its place")
                self._site.kill(broker)
        cluster.clock.after(REVIVED_EVERY_MS, self._revive)
