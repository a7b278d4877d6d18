"""All kinds of faults in simulated clusters. Seeds draw in this order: another one makes other runs of them."""

from kspec.trials.simulated.kinds import connections, machines, operators, quorum, sequences, stops
from kspec.trials.simulated.kinds.site import SimulatedFault

KINDS: tuple[type[SimulatedFault], ...] = (
    stops.BrokerKill,
    stops.PowerLoss,
    stops.BrokerPause,
    stops.BrokerRestart,
    connections.Separation,
    connections.LoneBroker,
    connections.ControllerOutOfReach,
    stops.ControllerKill,
    stops.ControllerPause,
    connections.BrokenConnections,
    connections.LateMessages,
    machines.SlowSyncs,
    machines.FullDisk,
    machines.WrongClock,
    connections.RequestCopy,
    connections.Interruption,
    connections.SlowLinks,
    operators.PartitionMove,
    operators.PreferredElection,
    operators.LeaderMove,
    stops.RollingRestart,
    sequences.HandOver,
    sequences.DelayedFetch,
    sequences.DelayedNews,
    sequences.SecondRegistration,
    sequences.DelayedHeartbeats,
    stops.BrokerRemoval,
)

VOTER_KINDS: tuple[type[quorum.VoterFault], ...] = (
    quorum.VoterRemoval,
    quorum.VoterStop,
    quorum.VoterPause,
    quorum.VoterSeparation,
    quorum.LateVoterMessages,
    quorum.LostVoterDisk,
)
"""Kinds of faults in clusters with several controllers alone."""
