"""What a simulated cluster is: its size, its settings, its releases, and which disturbances befall it how often."""

from dataclasses import dataclass, replace
from random import Random

from spec.broker.protocol import BrokerProtocol
from spec.controller.protocol import ControllerProtocol
from spec.releases.broker import BROKER_NEXT
from spec.releases.kraft import KRAFT_NEXT

MOVES = {
    "publish": 9.0,
    "ask": 16.0,
    "deliver": 24.0,
    "produce": 7.0,
    "propose": 5.0,
    "communicate": 5.0,
    "pass_time": 3.0,
    "break_connection": 1.5,
    "start": 3.0,
    "expire": 0.5,
    "check_sessions": 0.5,
    "kill": 0.3,
    "lose_power": 0.4,
    "leave": 0.25,
    "stop_cleanly": 0.1,
    "prefer": 0.8,
    "balance": 0.3,
    "reassign": 0.4,
    "fail_over": 0.15,
    "unregister": 0.1,
    "consume": 1.5,
    "list_offsets": 1.0,
    "find_epoch": 0.5,
    "delete_records": 0.3,
    "retain": 0.2,
    "time_out": 0.5,
    "elect_uncleanly": 0.0,
}
"""Every move, and how often it is drawn beside the others."""

RESTLESS = {"expire": 5.0, "communicate": 2.0, "prefer": 2.0, "check_sessions": 0.2, "pass_time": 0.6, "list_offsets": 0.3}
"""How often moves are drawn in a cluster whose brokers lose their sessions again and again."""

BUSY = {
    "reassign": 5.0,
    "delete_records": 5.0,
    "retain": 8.0,
    "kill": 2.0,
    "leave": 3.0,
    "start": 2.0,
    "expire": 4.0,
    "fail_over": 3.0,
    "break_connection": 2.0,
    "communicate": 2.0,
}
"""The same for a cluster that is busy."""

NEEDED = ("publish", "ask", "deliver", "communicate", "propose", "start", "produce", "pass_time")
"""Without these moves nothing happens."""


@dataclass(frozen=True)
class Setup:
    """A cluster, and what may happen to it. Times are in milliseconds."""

    brokers: int = 3
    min_isr: int = 2
    eligible_leader_replicas: bool = True
    max_lag: int = 30_000
    longest_log: int = 14
    only_acks_all: bool = False
    idempotent: bool = True
    power_losses: bool = True
    unlimited_losses: bool = False
    unclean_elections: bool = False
    reassigns: bool = True
    deletes: bool = False
    clean_stops: bool = True
    reordered: int = 20
    """How many of a hundred messages overtake others."""
    newest_image: int = 30
    """How many of a hundred times a broker takes the newest metadata at once, and not some of it."""
    broker: BrokerProtocol = BROKER_NEXT
    controller: ControllerProtocol = KRAFT_NEXT
    weights: tuple[tuple[str, float], ...] = tuple(MOVES.items())
    busy: bool = False
    """Whether what is rare happens often: moves of the partition, deletion of records, brokers that stop and start."""
    oracles: bool = True
    """Whether answers and effects are compared with what the rules' texts ask for, beside the properties of states."""

    def __str__(self) -> str:
        said = [
            f"{self.brokers} brokers",
            f"min.insync.replicas={self.min_isr}",
            "ELR" if self.eligible_leader_replicas else "no ELR",
            f"replica.lag.time.max.ms={self.max_lag}",
        ]
        names = ("power_losses", "unclean_elections", "reassigns", "deletes", "clean_stops")
        return ", ".join([*said, *[name.replace("_", " ") for name in names if getattr(self, name)]])


def setup_of(seed: int, base: Setup | None = None) -> Setup:
    """The cluster of a seed; protocols and oracles are those of `base`."""
    random = Random(f"setup {seed}")
    base = base or Setup()
    brokers = random.choice((2, 3, 3, 3, 4))
    eligible = random.random() < 0.7
    min_isr = random.choice((1, 2, 2, 2, 3)) if brokers > 2 else random.choice((1, 2))
    weights = {
        name: weight * random.choice((0, 0.2, 0.5, 2, 4)) if random.random() < 0.4 else weight
        for name, weight in MOVES.items()
    }
    if random.random() < 0.6:
        for name, often in RESTLESS.items():
            weights[name] *= often
    for name in NEEDED:
        weights[name] = max(weights[name], MOVES[name] / 3)
    if base.busy:
        for name, often in BUSY.items():
            weights[name] = MOVES[name] * often
    unclean = base.unclean_elections
    if unclean:
        weights["elect_uncleanly"] = 1.0
    return replace(
        base,
        brokers=brokers,
        min_isr=min_isr,
        eligible_leader_replicas=eligible,
        power_losses=unclean or base.unlimited_losses or (eligible and min_isr > 1),
        reassigns=random.random() < 0.5 or base.busy,
        max_lag=random.choice((0, 1000, 30_000, 10**8)),
        longest_log=random.choice((8, 20, 20, 40)),
        only_acks_all=random.random() < 0.5,
        idempotent=random.random() < 0.6,
        deletes=random.random() < 0.3 or base.busy,
        clean_stops=random.random() < 0.6,
        reordered=random.choice((0, 20, 60, 100)),
        newest_image=random.choice((0, 30, 80, 100)),
        weights=tuple(weights.items()),
    )
