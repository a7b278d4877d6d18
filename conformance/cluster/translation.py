"""A run of the model `kafka` as load and faults on a cluster.

In a run a broker takes only the run's steps. A real broker takes every step that it can. So the other steps are prevented: a
follower that does not fetch is cut off from the others, a broker that does not read a decision is cut off from the
controller. A run is divided at its *loud* steps: producers write, a broker is elected, fenced, stopped or started. Between
two of them the links stay as they are.

At the end all brokers but one are killed, the leader too. The one that is left has the least of the committed records. If it
is elected, the records that it lacks are lost.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from kspec.model_check.core.exploration import Trace
from kspec.model_check.core.model import Model, State
from kspec.trials.cluster.plan import CONTROLLER
from kspec.trials.faults.links import CLIENTS, Link
from kspec.trials.faults.plans.steps import ClusterStep, Schedule, StepKind

FETCHES, UNANSWERED = ("Fetch", "AskLeader"), "FetchUnanswered"
QUIET = {
    *FETCHES,
    UNANSWERED,
    "ReplayMetadata",
    "TakeFirstImage",
    "GrantIsr",
    "RefuseIsr",
    "RefuseIsrForGood",
    "TakeIsrAnswer",
    "SendProposalAgain",
    "Unfence",
    "RegisterStarted",
    "FenceDown",
    "BeginShutdown",
    "StopCleanly",
}
"""Actions that brokers and the controller take by themselves, unless prevented."""


STOPS = ("AskToStop", "StopAtOnce", "StopWithoutLeave", "StopUnheard")
STARTS = ("Register", "Start")


class NotTranslatedError(Exception):
    """A step of the run without a counterpart on a cluster: the reason in one line."""


class RunSegment(NamedTuple):
    """A loud step, and the steps up to the next one: `first` and `after` are their places in the run."""

    name: str
    args: dict[str, Any]
    first: int
    after: int


def schedule_of(model: Model, trace: Trace) -> Schedule:
    """The steps on a cluster that a run becomes. Raises: `NotTranslatedError`."""
    return _TranslatedRun(model, trace).schedule()


class _TranslatedRun:
    def __init__(self, model: Model, trace: Trace) -> None:
        self._steps = [(step.action.name, dict(step.action.args)) for step in trace if step.action is not None]
        self._states = [step.state for step in trace]
        self._slots = {(slot.name, slot.key): slot.position for slot in model.slots}
        self._brokers = [int(key) for name, key in self._slots if name == "log" and key is not None]
        self._min_isr = int(model.parameters["min_isr"])
        self._paused: set[int] = set()
        self._translations: dict[str, Callable[[RunSegment], list[ClusterStep]]] = {
            "CreatePartition": lambda segment: [],
            "Produce": self._produce,
            "ProduceAgain": self._produce_again,
            "ProposeShrink": self._shrink,
            "ElectPreferred": self._elect,
            "Fence": self._fence,
            "UncleanShutdown": self._kill,
            **dict.fromkeys(STOPS, self._stop),
            **dict.fromkeys(STARTS, self._start),
        }

    def schedule(self) -> Schedule:
        steps: list[ClusterStep] = []
        for segment in self._segments():
            if segment.name not in self._translations:
                raise NotTranslatedError(f"{segment.name} is not what a driver can bring about")
            steps += self._resumed(segment)
            steps += self._translations[segment.name](segment)
        cut = next((step.links for step in reversed(steps) if step.kind is StepKind.CUT), frozenset())
        steps += self._last_one_left(cut)
        return Schedule(self._preference(), self._min_isr, tuple(_without_repeats(steps)))

    def _segments(self) -> Iterator[RunSegment]:
        loud = [number for number, (name, _) in enumerate(self._steps) if name not in QUIET]
        for first, after in zip(loud, [*loud[1:], len(self._steps)], strict=True):
            yield RunSegment(*self._steps[first], first, after)

    def _slot(self, state: State, name: str, key: int | None = None) -> Any:
        return state[self._slots[name, key]]

    # ---- links

    def _parted(self, segment: RunSegment) -> list[ClusterStep]:
        return [ClusterStep(StepKind.CUT, links=frozenset(self._cut(segment)))]

    def _cut(self, segment: RunSegment) -> set[Link]:
        """The links that could be used up to the next loud step, and are not."""
        inside = self._steps[segment.first : segment.after]
        found: set[Link] = set()
        for follower in self._brokers:
            for leader in self._brokers:
                pair = {"follower": follower, "leader": leader}
                fetches = {name for name, args in inside if pair.items() <= args.items()}
                back = {name for name, args in inside if {"follower": leader, "leader": follower}.items() <= args.items()}
                if follower == leader or (fetches | back) & set(FETCHES):
                    continue
                there, answer = (str(follower), str(leader)), (str(leader), str(follower))
                found |= {answer} if fetches == {UNANSWERED} else set() if back == {UNANSWERED} else {there, answer}
        for broker in self._brokers:
            found |= _from_controller(broker) if self._is_uninformed(broker, segment) else set()
        return found

    def _is_uninformed(self, broker: int, segment: RunSegment) -> bool:
        """Whether a broker acts later by the metadata it had before this segment, or does not reach the controller."""
        unread = len(self._slot(self._states[segment.after], "metadata", broker)) > 1
        if segment.name == "ProposeShrink" and segment.args["leader"] == broker:
            return not self._is_granted(segment)
        return unread and any(self._acts(broker, *step) for step in self._until_it_reads(broker, segment.after))

    def _until_it_reads(self, broker: int, number: int) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, args in self._steps[number:]:
            if name == "ReplayMetadata" and args["broker"] == broker:
                return
            yield name, args

    @staticmethod
    def _acts(broker: int, name: str, args: dict[str, Any]) -> bool:
        return broker in (args.get("leader"), args.get("follower")) and name != "ElectPreferred"

    # ---- loud steps

    def _produce(self, segment: RunSegment) -> list[ClusterStep]:
        """The cuts around a produce. A fetch whose response is lost arrives when the leader has the producers' records.

        Producers do not reach the leader before this fetch is in flight: the fetch before it would return their records.
        """
        cut = self._cut(segment)
        steps = self._steps[segment.first : segment.after]
        pairs = {(str(args["follower"]), str(args["leader"])) for name, args in steps if name == UNANSWERED}
        under_way = {pair for pair in pairs if pair not in cut and pair[::-1] in cut}
        if not under_way:
            return [*self._parted(segment), ClusterStep(StepKind.WRITE)]
        held = (cut - {pair[::-1] for pair in under_way}) | under_way
        before = held | {(CLIENTS, str(segment.args["leader"]))}
        cuts = [ClusterStep(StepKind.CUT, links=frozenset(links)) for links in (before, held)]
        return [
            cuts[0],
            ClusterStep(StepKind.SEND),
            cuts[1],
            ClusterStep(StepKind.SEND),
            *self._parted(segment),
            ClusterStep(StepKind.WRITE),
        ]

    def _produce_again(self, segment: RunSegment) -> list[ClusterStep]:
        return [
            ClusterStep(StepKind.CUT, links=frozenset({(str(segment.args["leader"]), CLIENTS)})),
            ClusterStep(StepKind.WRITE),
            *self._parted(segment),
        ]

    def _is_granted(self, segment: RunSegment) -> bool:
        leader = segment.args["leader"]
        return any(name.startswith("GrantIsr") and args["leader"] == leader for name, args in self._steps[segment.first :])

    def _shrink(self, segment: RunSegment) -> list[ClusterStep]:
        """Cuts around the slow followers until they have left the ISR; the others fetch, or they would leave it, too."""
        leader, slow = str(segment.args["leader"]), [str(one) for one in segment.args["slow"]]
        links = {link for one in slow for link in ((one, leader), (leader, one))}
        if not self._is_granted(segment):
            alone = links | _from_controller(int(leader))
            return [
                ClusterStep(StepKind.CUT, links=frozenset(links)),
                ClusterStep(StepKind.SEND),
                ClusterStep(StepKind.CUT, links=frozenset(alone)),
                ClusterStep(StepKind.WRITE),
            ]
        dropped = [ClusterStep(StepKind.LEAVE_ISR, int(one)) for one in slow]
        return [
            ClusterStep(StepKind.CUT, links=frozenset(links)),
            *dropped,
            ClusterStep(StepKind.WRITE),
            *self._parted(segment),
        ]

    def _elect(self, segment: RunSegment) -> list[ClusterStep]:
        elected = segment.args["leader"]
        return [*self._parted(segment), ClusterStep(StepKind.ELECT, elected), ClusterStep(StepKind.LEAD, elected)]

    def _kill(self, segment: RunSegment) -> list[ClusterStep]:
        return [*self._parted(segment), ClusterStep(StepKind.KILL, segment.args["broker"])]

    def _stop(self, segment: RunSegment) -> list[ClusterStep]:
        return [*self._parted(segment), ClusterStep(StepKind.STOP, segment.args["broker"])]

    def _start(self, segment: RunSegment) -> list[ClusterStep]:
        return [ClusterStep(StepKind.START, segment.args["broker"]), *self._parted(segment)]

    def _fence(self, segment: RunSegment) -> list[ClusterStep]:
        """The end of a broker's session. The broker is paused, if it takes no step of the run before it learns of that."""
        broker = int(segment.args["broker"])
        is_active = any(self._acts(broker, *step) for step in self._until_it_reads(broker, segment.first + 1))
        led = self._slot(self._states[segment.first], "controller").topic.leader == broker
        end = ClusterStep(StepKind.LOSE_LEADERSHIP if led else StepKind.LEAVE_ISR, broker)
        if is_active:
            return [
                ClusterStep(StepKind.CUT, links=frozenset({*self._cut(segment), *_from_controller(broker)})),
                end,
                *self._parted(segment),
            ]
        self._paused.add(broker)
        return [*self._parted(segment), ClusterStep(StepKind.PAUSE, broker), end]

    def _resumed(self, segment: RunSegment) -> list[ClusterStep]:
        """The steps that resume paused brokers before the segment in which they act."""
        steps = self._steps[segment.first : segment.after]
        found = [one for one in sorted(self._paused) if any(one in args.values() for _, args in steps)]
        self._paused -= set(found)
        return [ClusterStep(StepKind.RESUME, one) for one in found]

    # ---- begin and end

    def _preference(self) -> tuple[int, ...]:
        """The replicas, in the order in which they come to lead. A controller elects the first one that it may."""
        leaders = [self._slot(state, "controller").topic.leader for state in self._states]
        return tuple(dict.fromkeys([*(one for one in leaders if one > 0), *self._brokers]))

    def _last_one_left(self, cut: frozenset[Link]) -> list[ClusterStep]:
        """The end of a run. Messages of the dead stay in flight until the last broker leads: their epoch is old then."""
        last = self._last()
        there = [ClusterStep(StepKind.RESUME, last)] if last in self._paused else []
        there += [] if self._slot(self._states[-1], "process", last).up else [ClusterStep(StepKind.START, last)]
        others = [one for one in self._brokers if one != last]
        dead = ClusterStep(StepKind.CUT, links=frozenset(link for link in cut if {str(one) for one in others} & set(link)))
        return [
            ClusterStep(StepKind.WRITE),
            *(ClusterStep(StepKind.KILL, one) for one in others),
            *there,
            dead,
            ClusterStep(StepKind.LEAD, last),
            ClusterStep(StepKind.CUT),
        ]

    def _last(self) -> int:
        """The broker with the shortest log among those that may be elected; of several, the one that fetched longest ago."""
        state = self._states[-1]
        topic = self._slot(state, "controller").topic
        may = (topic.isr | topic.elr | {topic.leader}) & set(self._brokers)
        fetched = {args["follower"]: number for number, (name, args) in enumerate(self._steps) if name in FETCHES}
        slow: list[Any] = [args["slow"] for name, args in self._steps if name == "ProposeShrink"]
        shrunk = {int(broker) for brokers in slow for broker in brokers}

        def what_it_has(broker: int) -> tuple[int, bool, bool, int]:
            end = int(self._slot(state, "log", broker).log.end_offset)
            leads = broker == topic.leader and broker not in shrunk
            return end, leads, broker not in shrunk, fetched.get(broker, -1)

        return min(sorted(may) or self._brokers, key=what_it_has)


def _from_controller(broker: int) -> set[Link]:
    return {(str(broker), CONTROLLER), (CONTROLLER, str(broker))}


def _without_repeats(steps: Sequence[ClusterStep]) -> Iterator[ClusterStep]:
    """The steps without repetitions: of the step just before, and of cuts that are in force."""
    links: frozenset[Link] = frozenset()
    before: ClusterStep | None = None
    for step in steps:
        if step == before or (step.kind is StepKind.CUT and step.links == links):
            continue
        yield step
        before, links = step, step.links if step.kind is StepKind.CUT else links
