"""A run of the model `kafka` as load and faults on a cluster.

In a run a broker does only what the run says. A real broker does all that it can. So what the run leaves out is prevented: a
follower that does not fetch is cut off from the others, a broker that does not hear of a decision is cut off from the
controller. A run is divided at its *loud* steps: producers write, somebody is elected, fenced, stopped or started. Between
two of them these links stay as they are.

At the end the leader and all others but one are killed: the one that has least of what should be there. If it is elected, it
had to have all; what it lacks is lost.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from conformance.cluster.acts import Act, Do, Schedule
from conformance.cluster.driver import CLIENTS, CONTROLLER, Link
from model_check.core.exploration import Trace
from model_check.core.model import Model, State

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
"""What brokers and the controller do by themselves, unless they are prevented."""


STOPS = ("AskToStop", "StopAtOnce", "StopWithoutLeave", "StopUnheard")
STARTS = ("Register", "Start")


class NotPlayedError(Exception):
    """A step of the run has no counterpart: the reason in one line."""


class Segment(NamedTuple):
    """A loud step, and the steps up to the next one: `first` and `after` are their places in the run."""

    name: str
    args: dict[str, Any]
    first: int
    after: int


def schedule_of(model: Model, trace: Trace) -> Schedule:
    """The acts of a run. Raises: `NotPlayedError`."""
    return _Run(model, trace).schedule()


class _Run:
    def __init__(self, model: Model, trace: Trace) -> None:
        self._steps = [(step.action.name, dict(step.action.args)) for step in trace if step.action is not None]
        self._states = [step.state for step in trace]
        self._slots = {(slot.name, slot.key): slot.position for slot in model.slots}
        self._brokers = [int(key) for name, key in self._slots if name == "log" and key is not None]
        self._min_isr = int(model.parameters["min_isr"])
        self._paused: set[int] = set()
        self._translated: dict[str, Callable[[Segment], list[Act]]] = {
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
        acts: list[Act] = []
        for segment in self._segments():
            if segment.name not in self._translated:
                raise NotPlayedError(f"{segment.name} is not what a driver can bring about")
            acts += self._awoken(segment)
            acts += self._translated[segment.name](segment)
        acts += self._last_one_left(next((act.links for act in reversed(acts) if act.do is Do.PART), frozenset()))
        return Schedule(self._preference(), self._min_isr, tuple(_without_repeats(acts)))

    def _segments(self) -> Iterator[Segment]:
        loud = [number for number, (name, _) in enumerate(self._steps) if name not in QUIET]
        for first, after in zip(loud, [*loud[1:], len(self._steps)], strict=True):
            yield Segment(*self._steps[first], first, after)

    def _slot(self, state: State, name: str, key: int | None = None) -> Any:
        return state[self._slots[name, key]]

    # ---- who reaches whom

    def _parted(self, segment: Segment) -> list[Act]:
        return [Act(Do.PART, links=frozenset(self._cut(segment)))]

    def _cut(self, segment: Segment) -> set[Link]:
        """The links that are not used up to the next loud step, and could be."""
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

    def _is_uninformed(self, broker: int, segment: Segment) -> bool:
        """Whether a broker acts later by what it knew before this segment, or asks the controller in vain."""
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

    def _produce(self, segment: Segment) -> list[Act]:
        """A fetch that is not answered is on its way while producers send: it arrives when the leader has their records.

        Producers do not reach the leader before it is on its way: the fetch before it would bring their records.
        """
        cut = self._cut(segment)
        steps = self._steps[segment.first : segment.after]
        pairs = {(str(args["follower"]), str(args["leader"])) for name, args in steps if name == UNANSWERED}
        under_way = {pair for pair in pairs if pair not in cut and pair[::-1] in cut}
        if not under_way:
            return [*self._parted(segment), Act(Do.WRITE)]
        held = (cut - {pair[::-1] for pair in under_way}) | under_way
        before = held | {(CLIENTS, str(segment.args["leader"]))}
        cuts = [Act(Do.PART, links=frozenset(links)) for links in (before, held)]
        return [cuts[0], Act(Do.SEND), cuts[1], Act(Do.SEND), *self._parted(segment), Act(Do.WRITE)]

    def _produce_again(self, segment: Segment) -> list[Act]:
        return [
            Act(Do.PART, links=frozenset({(str(segment.args["leader"]), CLIENTS)})),
            Act(Do.WRITE),
            *self._parted(segment),
        ]

    def _is_granted(self, segment: Segment) -> bool:
        leader = segment.args["leader"]
        return any(name.startswith("GrantIsr") and args["leader"] == leader for name, args in self._steps[segment.first :])

    def _shrink(self, segment: Segment) -> list[Act]:
        """The slow followers are cut off until they have left the ISR; the others fetch, or they would leave it, too."""
        leader, slow = str(segment.args["leader"]), [str(one) for one in segment.args["slow"]]
        links = {link for one in slow for link in ((one, leader), (leader, one))}
        if not self._is_granted(segment):
            alone = links | _from_controller(int(leader))
            return [Act(Do.PART, links=frozenset(links)), Act(Do.SEND), Act(Do.PART, links=frozenset(alone)), Act(Do.WRITE)]
        dropped = [Act(Do.DROP, int(one)) for one in slow]
        return [Act(Do.PART, links=frozenset(links)), *dropped, Act(Do.WRITE), *self._parted(segment)]

    def _elect(self, segment: Segment) -> list[Act]:
        elected = segment.args["leader"]
        return [*self._parted(segment), Act(Do.ELECT, elected), Act(Do.LEAD, elected)]

    def _kill(self, segment: Segment) -> list[Act]:
        return [*self._parted(segment), Act(Do.KILL, segment.args["broker"])]

    def _stop(self, segment: Segment) -> list[Act]:
        return [*self._parted(segment), Act(Do.STOP, segment.args["broker"])]

    def _start(self, segment: Segment) -> list[Act]:
        return [Act(Do.START, segment.args["broker"]), *self._parted(segment)]

    def _fence(self, segment: Segment) -> list[Act]:
        """A broker's session ends. It stands still, if the run lets it do nothing before it hears of that."""
        broker = int(segment.args["broker"])
        acts = any(self._acts(broker, *step) for step in self._until_it_reads(broker, segment.first + 1))
        led = self._slot(self._states[segment.first], "controller").topic.leader == broker
        end = Act(Do.LOSE if led else Do.DROP, broker)
        if acts:
            return [
                Act(Do.PART, links=frozenset({*self._cut(segment), *_from_controller(broker)})),
                end,
                *self._parted(segment),
            ]
        self._paused.add(broker)
        return [*self._parted(segment), Act(Do.PAUSE, broker), end]

    def _awoken(self, segment: Segment) -> list[Act]:
        """Those who stood still go on before the segment in which they do something."""
        steps = self._steps[segment.first : segment.after]
        found = [one for one in sorted(self._paused) if any(one in args.values() for _, args in steps)]
        self._paused -= set(found)
        return [Act(Do.RESUME, one) for one in found]

    # ---- begin and end

    def _preference(self) -> tuple[int, ...]:
        """The replicas: first those that come to lead, in that order. A controller elects the first one that it may."""
        leaders = [self._slot(state, "controller").topic.leader for state in self._states]
        return tuple(dict.fromkeys([*(one for one in leaders if one > 0), *self._brokers]))

    def _last_one_left(self, cut: frozenset[Link]) -> list[Act]:
        """What is on its way from the dead stays there until the last one leads: by then it is of an older epoch."""
        last = self._last()
        there = [Act(Do.RESUME, last)] if last in self._paused else []
        there += [] if self._slot(self._states[-1], "process", last).up else [Act(Do.START, last)]
        others = [one for one in self._brokers if one != last]
        dead = Act(Do.PART, links=frozenset(link for link in cut if {str(one) for one in others} & set(link)))
        return [Act(Do.WRITE), *(Act(Do.KILL, one) for one in others), *there, dead, Act(Do.LEAD, last), Act(Do.PART)]

    def _last(self) -> int:
        """Of those that may be elected the one with the shortest log; of several, the one that fetched longest ago."""
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


def _without_repeats(acts: Sequence[Act]) -> Iterator[Act]:
    """The acts, but nothing is done or waited for again that has just been; links that are already so are not cut again."""
    links: frozenset[Link] = frozenset()
    before: Act | None = None
    for act in acts:
        if act == before or (act.do is Do.PART and act.links == links):
            continue
        yield act
        before, links = act, act.links if act.do is Do.PART else links
