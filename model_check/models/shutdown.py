"""Controlled shutdown at the KRaft controller, on a metadata log that is written to all the time: whether it ever ends.

Brokers replay the log record by record, and say in heartbeats how far they are. One that shuts down says so in each of its
heartbeats, until the controller lets it go. The log grows for ever, so offsets are counted back from its last record, and
records about something else are written only while no broker has told of `--lag` records that it lacks: there are finitely
many states.
"""

from typing import Any, NamedTuple

from kspec.model_check.core.model import CONTROLLER, REFUSED, Arrow, LivenessProperty, Model, Note, PropertyCase, then, when
from kspec.model_check.core.parameters import Parameter, ParameterError
from kspec.model_check.core.temporal import weak
from kspec.model_check.models.kafka import words  # noqa: F401 (makes traces know the words of the controller's state)
from kspec.model_check.models.kafka.cluster import NOW, registered
from kspec.model_check.models.kafka.kraft.state import END, cluster_of, controller_state, topic_of
from kspec.model_check.models.kafka.values import ModelController
from kspec.spec.claims import claim
from kspec.spec.controller.brokers import handle_broker_heartbeat
from kspec.spec.controller.protocol import Controller, ControllerSettings
from kspec.spec.controller.rules.brokers import BrokerSession
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest
from kspec.spec.metadata import BrokerRegistration, PartitionRegistration
from kspec.spec.releases.names import KRAFT_NAMES, default_release, kraft_of
from kspec.spec.values import NO_LEADER, UNKNOWN_OFFSET, BrokerEpoch, BrokerId, Epoch, Incarnation, Offset, PartitionEpoch

PARAMETERS = (
    Parameter("release", default_release(), "Kafka's release", choices=KRAFT_NAMES),
    Parameter("brokers", 3, "brokers, ids 1 to N; all have a replica of the partition, and 1 leads it", minimum=2),
    Parameter("shutdowns", 1, "the brokers 1 to N may shut down", minimum=1),
    Parameter("lag", 2, "how many records an active broker may be behind when others write", minimum=1),
    Parameter("late_heartbeats", 0, "how many heartbeats of before a shutdown may arrive after it has begun", minimum=0),
)

LAST = Offset(END - 1)
"""The last record of the metadata log in every state, see the top."""

NOTHING = -1
"""No record that others must have replayed."""


class BrokerLag(NamedTuple):
    """The number of records that a broker has yet to replay, and the one by its last heartbeat (`told`).

    `awaited`: how many records ago the record is that others must have replayed before this broker stops, `NOTHING` without.
    """

    replayed: int = 0
    told: int = 0
    awaited: int = NOTHING

    def after(self, records: int, most: int) -> "BrokerLag":
        """The same once the log has grown; a record that was written more than `most` ago everybody has replayed."""
        ago = NOTHING if self.awaited == NOTHING else min(self.awaited + records, most)
        return BrokerLag(self.replayed + records, self.told + records, ago)


GONE = BrokerLag()
"""Of a broker that has stopped; nobody asks any more what it lacks."""


def in_words(lag: BrokerLag) -> str:
    """A broker's lag, as traces show it."""
    awaits = "" if lag.awaited == NOTHING else f", waits until others lack {lag.awaited}"
    return f"lacks {lag.replayed}, by its heartbeat {lag.told}{awaits}"


def build(name: str, parameters: dict[str, Any]) -> Model:
    """The model within the bounds of `parameters`; `ParameterError` if they do not go together."""
    if parameters["shutdowns"] > parameters["brokers"]:
        raise ParameterError(
            f"--shutdowns {parameters['shutdowns']}: must be {parameters['brokers']} or less, as brokers are"
        )
    return _Board(name, parameters).model


class _Board:
    """The model under construction."""

    def __init__(self, name: str, parameters: dict[str, Any]) -> None:
        self.model = Model(name, parameters)
        self.brokers = [BrokerId(number) for number in range(1, parameters["brokers"] + 1)]
        self.stopping = self.brokers[: parameters["shutdowns"]]
        self.most_told = parameters["lag"]
        self.most = self.most_told + 2 * len(self.stopping)
        self.control = Controller(kraft_of(parameters["release"]), ControllerSettings())
        registrations = frozenset(
            BrokerRegistration(broker, BrokerEpoch(1), Incarnation(1), fenced=False, registered_at=Offset(0))
            for broker in self.brokers
        )
        everybody = tuple(self.brokers)
        partition = PartitionRegistration(everybody, frozenset(everybody), self.brokers[0], Epoch(0), PartitionEpoch(0))
        self.cluster = self.model.slot("controller", ModelController(topic_of(partition), registrations))
        self.lags = {broker: self.model.slot("lag", BrokerLag(), broker, broker, words=in_words) for broker in self.brokers}
        self._add_writes()
        for broker in self.brokers:
            self._add_replay(broker)
            self._add_heartbeat("Heartbeat", broker, begins=False)
        late = parameters["late_heartbeats"]
        self.late_left = self.model.slot("late_heartbeats_left", late, bookkeeping=True) if late else None
        for broker in self.stopping:
            self._add_heartbeat("BeginShutdown", broker, begins=True)
            if late:
                self._add_late_heartbeat(broker)
        self._add_properties()

    def _add_writes(self) -> None:
        def write(cluster: ModelController, *lags: BrokerLag) -> object:
            up = [not registered(cluster, broker).fenced for broker in self.brokers]
            if any(here and lag.told >= self.most_told for here, lag in zip(up, lags, strict=True)):
                return REFUSED
            return tuple(one.after(1, self.most) if here else one for here, one in zip(up, lags, strict=True))

        slots = tuple(self.lags.values())
        what = Note(CONTROLLER, "writes a record about something else")
        self.model.action("WriteRecord", {}, (), [then(slots, write, self.cluster, *slots)], [what])

    def _add_replay(self, broker: BrokerId) -> None:
        def replay(lag: BrokerLag) -> object:
            return lag._replace(replayed=lag.replayed - 1) if lag.replayed else REFUSED

        slot = self.lags[broker]
        self.model.action(
            "Replay", {"broker": broker}, (), [then(slot, replay, slot)], [Note(broker, "replays the next record")]
        )

    def _add_heartbeat(self, name: str, broker: BrokerId, *, begins: bool) -> None:
        """A heartbeat and its answer; one that `begins` a shutdown, and all after it, ask for that."""

        def heartbeat(cluster: ModelController, *lags: BrokerLag) -> object:
            wants = begins or self._asks(cluster, broker)
            if registered(cluster, broker).fenced or (begins and self._asks(cluster, broker)):
                return REFUSED
            return self._handled(broker, wants, cluster, lags)

        slots = (self.cluster, *self.lags.values())
        asks = Arrow(broker, CONTROLLER, "a heartbeat that asks to shut down" if begins else "a heartbeat")
        answers = Arrow(CONTROLLER, broker, "the answer")
        self.model.action(name, {"broker": broker}, (), [then(slots, heartbeat, *slots)], [asks, answers])

    @staticmethod
    def _asks(cluster: ModelController, broker: BrokerId) -> bool:
        """Whether a broker has begun to ask for a shutdown; whoever has goes on with it."""
        return broker in cluster.leaving or registered(cluster, broker).in_controlled_shutdown

    def _handled(self, broker: BrokerId, wants: bool, cluster: ModelController, lags: tuple[BrokerLag, ...]) -> object:
        """The controller and all brokers once it has handled a heartbeat."""
        own = lags[self.brokers.index(broker)]
        request = BrokerHeartbeatRequest(broker, BrokerEpoch(1), Offset(LAST - own.replayed), want_shutdown=wants)
        state = controller_state(cluster)._replace(sessions=tuple(map(_session, self.brokers, lags)))
        step = handle_broker_heartbeat(self.control, state, request, NOW)
        last = Offset(step.state.image.end_offset - 1)
        after = cluster_of(step.state)
        told = {session.broker: session for session in step.state.sessions}
        return after, *(
            GONE if registered(after, one).fenced else _lag_of(lag.replayed + last - LAST, told[one], last, self.most)
            for one, lag in zip(self.brokers, lags, strict=True)
        )

    def _add_late_heartbeat(self, broker: BrokerId) -> None:
        """A heartbeat of before the shutdown arrives on a connection that is closed: nobody hears its answer."""

        def arrive(cluster: ModelController, *lags: BrokerLag) -> object:
            return self._handled(broker, False, cluster, lags) if self._asks(cluster, broker) else REFUSED

        slots = (self.cluster, *self.lags.values())
        assert self.late_left is not None
        spent = then(self.late_left, lambda number: number - 1 if number else REFUSED, self.late_left)
        late = Arrow(broker, CONTROLLER, "a heartbeat, sent before it asked to shut down")
        self.model.action("LateHeartbeat", {"broker": broker}, (), [then(slots, arrive, *slots), spent], [late])

    def _add_properties(self) -> None:
        model, cluster = self.model, self.cluster
        model.always(
            "StoppedLeadsNothing",
            [
                when(
                    lambda state: state.topic.leader == NO_LEADER or not registered(state, state.topic.leader).fenced,
                    cluster,
                )
            ],
            claim("StoppedLeadsNothing", "shutdown"),
            "ShutdownIsOver",
        )
        model.always(
            "LeaderIsActive",
            [when(_leader_is_active, cluster)],
            claim("LeaderIsActive", "shutdown"),
            "ShutdownIsOver",
        )
        model.sometimes(
            "ShutdownIsOver",
            [when(lambda state: any(entry.fenced for entry in state.brokers), cluster)],
            claim("ShutdownIsOver", "shutdown"),
        )
        model.fairness += [weak("Replay", of=("broker",)), weak("Heartbeat", of=("broker",))]
        model.liveness.append(
            LivenessProperty(
                "ShutdownEnds",
                "leads-to",
                tuple(self._ends(broker) for broker in self.stopping),
                claim("ShutdownEnds", "shutdown"),
            )
        )

    def _ends(self, broker: BrokerId) -> PropertyCase:
        begun = when(lambda state: broker in state.leaving, self.cluster)
        over = when(lambda state: registered(state, broker).fenced, self.cluster)
        return PropertyCase(f"broker {broker}", ((begun,),), ((over,),))


def _leader_is_active(state: ModelController) -> bool:
    """Whether nobody leads, or somebody who is neither fenced nor shutting down."""
    if state.topic.leader == NO_LEADER:
        return True
    entry = registered(state, state.topic.leader)
    return not entry.fenced and not entry.in_controlled_shutdown


def _session(broker: BrokerId, lag: BrokerLag) -> BrokerSession:
    """The controller's session of a broker, with offsets counted from the beginning."""
    awaited = UNKNOWN_OFFSET if lag.awaited == NOTHING else Offset(LAST - lag.awaited)
    return BrokerSession(broker, NOW, Offset(LAST - lag.told), awaited)


def _lag_of(replayed: int, session: BrokerSession, last: Offset, most: int) -> BrokerLag:
    """The lag of a broker by its session, where `last` is the last record."""
    awaited = session.controlled_shutdown_offset
    ago = NOTHING if awaited == UNKNOWN_OFFSET else min(last - awaited, most)
    return BrokerLag(replayed, last - session.metadata_offset, ago)
