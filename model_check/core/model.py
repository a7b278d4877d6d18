"""The definition of a model: slots, views of them, actions on them, properties of states and of infinite runs.

A state is a tuple of immutable values, one for each slot (a replica's log, a replica's role, the controller's view, …).
An action has guards and effects; each is a function of the few slots that it *reads*. So an engine knows
what a step depends on and what it changes. All protocol logic in those functions comes from `spec`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from operator import itemgetter
from typing import Any, Literal, NamedTuple, Self

from kspec.model_check.core.display import NotebookValue
from kspec.model_check.core.preparation import at_work

MOST_ACTIONS = (1 << 16) - 1
"""The most actions, each with its arguments, that a model may have: no engine explores more."""


class ModelSizeError(ValueError):
    """Bounds so large that the model has too many actions."""


State = tuple[Any, ...]
"""One value for each slot, in the order of the slots. Values are hashable and compare by content."""

Kind = Literal["always", "sometimes"]

Argument = int | tuple[int, ...]
"""An action's argument: a broker id, an epoch, an offset, or a set of broker ids in growing order."""

CONTROLLER, COORDINATOR, PRODUCER = "controller", "coordinator", "producer"
Party = int | str
"""A participant in an action: a broker (by its id), a client (`Client`), the controller, a coordinator or a producer."""


class Client(int):
    """A numbered party that is no broker: a member of a group."""

    kind = "consumer"


class TransactionalClient(Client):
    """A producer of transactions, of several with one transactional id."""

    kind = "producer"


class Arrow(NamedTuple):
    """An arrow of a sequence diagram."""

    source: Party
    target: Party
    text: str


class Note(NamedTuple):
    """A remark at one party of a sequence diagram."""

    party: Party
    text: str


Event = Arrow | Note


class ModelError(ValueError):
    """A model that no engine can explore: what a rule gives is not what a model may hold. The message is one line."""


class Refusal(Enum):
    """The reason why an effect is not taken although all guards hold."""

    REFUSED = "a party of the exchange refuses"


REFUSED = Refusal.REFUSED
"""Returned by an effect in place of new values: the action is not enabled."""


class Slot(NamedTuple):
    """A place that holds one value: the `key`-th of all slots called `name`, at `position` in the state.

    `broker` is the broker that owns the slot, `None` for slots of the controller and of the model itself; `party` is then
    the owner. A `bookkeeping` slot is not shown to readers of a trace: it belongs to the model, or repeats what another
    slot shows. `holds` is the type of the values. `words` describes a value to readers of a trace where the type alone
    does not. `about` is set if the name ends with a broker's id: the slot holds what one broker knows of that broker.
    """

    position: int
    name: str
    key: int | None
    broker: int | None
    bookkeeping: bool
    holds: Any = int
    party: Party = CONTROLLER
    words: Callable[[Any], str] | None = None
    about: int | None = None

    @property
    def label(self) -> str:
        return self.name if self.key is None else f"{self.name}[{self.key}]"

    @property
    def family(self) -> str:
        """The slot's name without the broker that it is about."""
        return self.name if self.about is None else self.name.removesuffix(f" {self.about}")


class View(NamedTuple):
    """A value that is computed from some slots and read by several rules: what a broker would say now, and to whom.

    A rule that reads a view depends on those slots only through the view. This is more precise than reading them all: an
    engine evaluates the rule less often, once for each value of the view.
    """

    name: str
    key: int | None
    function: Callable[..., Any]
    reads: tuple[Slot, ...]

    def bind(self) -> Callable[[State], Any]:
        """The same as a function of the whole state."""
        return _bound_view(self)


@lru_cache(maxsize=256)
def _bound_view(view: View) -> Callable[[State], Any]:
    """A view as a function that computes its value once for each state, however many rules read it."""
    compute = Local(view.function, view.reads).bind()
    seen: State | None = None
    result: Any = None

    def look(state: State) -> Any:
        nonlocal seen, result
        if state is not seen:
            result = _whole(view, compute(state))
            seen = state
        return result

    return look


def _whole(view: View, result: Any) -> Any:
    """The view's value, which all its readers must find the same."""
    if hasattr(result, "__next__"):
        raise ModelError(
            f"view {view.name} gives a {type(result).__qualname__}, which only its first reader would find whole"
        )
    return result


class Local(NamedTuple):
    """A function of some slots and views: `function(*values of reads)`."""

    function: Callable[..., Any]
    reads: tuple[Slot | View, ...]

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots that are read, directly or through views; each once."""
        behind = ((read,) if isinstance(read, Slot) else read.reads for read in self.reads)
        return tuple(dict.fromkeys(slot for slots in behind for slot in slots))

    def bind(self) -> Callable[[State], Any]:
        """The same as a function of the whole state."""
        function = self.function
        if any(isinstance(read, View) for read in self.reads):
            getters = [read.bind() if isinstance(read, View) else itemgetter(read.position) for read in self.reads]
            if len(getters) == 1:
                return lambda state: function(getters[0](state))
            if len(getters) == 2:
                get_first, get_second = getters
                return lambda state: function(get_first(state), get_second(state))
            return lambda state: function(*[get(state) for get in getters])
        indices = [read.position for read in self.reads if isinstance(read, Slot)]
        if not indices:
            return lambda state: function()
        if len(indices) == 1:
            (index,) = indices
            return lambda state: function(state[index])
        if len(indices) == 2:
            first, second = indices
            return lambda state: function(state[first], state[second])
        values = itemgetter(*indices)
        return lambda state: function(*values(state))


BUILDING = "building the model"

ALWAYS = Local(lambda: True, ())
"""The guard of an action that is always possible."""


class Effect(NamedTuple):
    """New values for the slots in `writes`: the value itself for one slot, else a tuple; or `REFUSED`."""

    local: Local
    writes: tuple[Slot, ...]

    def fits(self, values: Any) -> bool:
        """Whether these are values for the slots, as far as that can be seen from their number."""
        return len(self.writes) == 1 or (isinstance(values, tuple) and len(values) == len(self.writes))


def when(function: Callable[..., bool], *reads: Slot | View) -> Local:
    """A guard, or a term of a property: `function` must hold for these slots and views."""
    at_work(BUILDING)
    return Local(function, reads)


def then(writes: Slot | Sequence[Slot], function: Callable[..., Any], *reads: Slot | View) -> Effect:
    """An effect: these slots get the values that `function` computes from slots and views as they are before the action."""
    return Effect(Local(function, reads), (writes,) if isinstance(writes, Slot) else tuple(writes))


@dataclass(frozen=True, slots=True)
class Action:
    """One step that the system may take, with its arguments fixed.

    It is enabled when all guards hold and no effect refuses. A guard or effect need not be defined where another one rules
    the action out: an error that it raises there does not count, in whatever order they are listed. All effects read the
    state before the action, and no two write the same slot. `events` describe which party sends what to which. `answer` is
    the error (`spec.values.Error`) in the response, `NONE` if the receiver does what it is asked; an action without a
    response has no `answer`.
    """

    name: str
    args: Mapping[str, Argument]
    guards: tuple[Local, ...]
    effects: tuple[Effect, ...]
    events: tuple[Event, ...] = ()
    answer: Local | None = None

    @property
    def reads(self) -> frozenset[Slot]:
        locals_ = [*self.guards, *(effect.local for effect in self.effects)]
        return frozenset(slot for local in locals_ for slot in local.slots)

    @property
    def writes(self) -> frozenset[Slot]:
        return frozenset(slot for effect in self.effects for slot in effect.writes)

    @property
    def label(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.args.items())})"

    def ruled_out(self, state: State) -> bool:
        """Whether some guard does not hold in this state, or some effect refuses, whatever errors the others raise."""
        for guard in self.guards:
            with suppress(Exception):
                if not guard.bind()(state):
                    return True
        for effect in self.effects:
            with suppress(Exception):
                if effect.local.bind()(state) is REFUSED:
                    return True
        return False

    def misfit(self, effect: Effect, values: Any) -> ModelError:
        """Says that an effect gives something else than a tuple with a value for each of its slots."""
        got = f"a tuple of {len(values)}" if isinstance(values, tuple) else f"a {type(values).__qualname__}"
        slots = ", ".join(slot.label for slot in effect.writes)
        wanted = f"a tuple of {len(effect.writes)} values, one for each slot"
        return ModelError(f"action {self.label}: its effect on {slots} gives {got}; it must give {wanted}")

    def bind(self, skip: int = 0) -> Callable[[State], State | None]:
        """The action as a function from a state to its successor, `None` where it is not enabled.

        The first `skip` guards are not evaluated: the caller knows that they hold.
        """
        guards = [guard.bind() for guard in self.guards[skip:]]
        effects = [(effect.local.bind(), [slot.position for slot in effect.writes], effect) for effect in self.effects]

        def fire(state: State) -> State | None:
            try:
                for guard in guards:
                    if not guard(state):
                        return None
                successor = list(state)
                for compute, writes, effect in effects:
                    values = compute(state)
                    if values is REFUSED:
                        return None
                    if len(writes) == 1:
                        successor[writes[0]] = values
                    else:
                        if not effect.fits(values):
                            raise self.misfit(effect, values)
                        for index, value in zip(writes, values, strict=True):
                            successor[index] = value
            except Exception:
                if self.ruled_out(state):
                    return None
                raise
            return tuple(successor)

        return fire


@dataclass(frozen=True, slots=True)
class Property:
    """A claim about states.

    `always`: all terms hold in every reachable state. `sometimes`: some term holds in some reachable state, which shows
    that the premise of an `always` (its `twin`) can be met at all.
    """

    name: str
    kind: Kind
    terms: tuple[Local, ...]
    meaning: str
    twin: str | None = None
    by_default: bool = True

    def bind(self, written: frozenset[Slot] | None = None) -> Callable[[State], bool]:
        """The property as a function of the whole state.

        With `written`, it evaluates only the terms that read one of these slots. That is enough for the successor of a
        state that has not decided the property, if no other slot has changed.
        """
        terms = [term.bind() for term in self.terms if written is None or not written.isdisjoint(term.slots)]
        always = self.kind == "always"

        def holds_in(state: State) -> bool:
            for term in terms:
                if bool(term(state)) != always:
                    return not always
            return always

        return holds_in


TemporalKind = Literal["eventually", "leads-to"]

Condition = tuple[tuple[Local, ...], ...]
"""A claim about one state: all terms of at least one of these groups hold."""


class Fairness(NamedTuple):
    """An action that is not postponed for ever.

    Weak fairness: if the action stays possible from some moment on, it is taken again and again. Strong fairness: if it is
    possible again and again, it is taken again and again. With `each`, this applies to each of the action's arguments
    separately; without it, serving some arguments is enough, as in TLA+ when the action quantifies over them. With `of`, it
    applies to each value of these arguments separately, whatever the others are: each broker is served, by any leader.
    """

    action: str
    strong: bool
    each: bool = False
    of: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """As TLA+ writes it: `WF(BecomeLeader)`, `WF(Fetch for each follower)`, `SF(LeaderExpandIsr for each of …)`."""
        whose = " for each of its arguments" if self.each else ""
        if self.of:
            whose = f" for each {' and '.join(self.of)}"
        return f"{'SF' if self.strong else 'WF'}({self.action}{whose})"


class PropertyCase(NamedTuple):
    """One instance of a property: whenever `premise` holds, `goal` holds then or later."""

    label: str
    premise: Condition
    goal: Condition


@dataclass(frozen=True, slots=True)
class LivenessProperty:
    """A claim about all fair runs.

    `leads-to`: in every case, whenever the premise holds, the goal holds then or later. `eventually`: the goal holds at some
    time; the premise is that the run has begun. `assuming` is fairness that the property needs beyond what its model
    declares.
    """

    name: str
    kind: TemporalKind
    cases: tuple[PropertyCase, ...]
    meaning: str
    assuming: tuple[Fairness, ...] = ()


@dataclass(slots=True)
class Model(NotebookValue):
    """A named model with its parameters; `slots`, `actions` and `properties` are added by the functions below."""

    name: str
    parameters: Mapping[str, Any]
    slots: list[Slot] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    properties: list[Property] = field(default_factory=list)
    constraint: list[Local] = field(default_factory=list)
    """States in which one of these fails lie outside the model: they are neither counted nor expanded (as in TLC)."""
    fairness: list[Fairness] = field(default_factory=list)
    """The actions that the model declares not to be postponed for ever; used for liveness only."""
    liveness: list[LivenessProperty] = field(default_factory=list)
    interchangeable: tuple[int, ...] = ()
    """Brokers that differ only in their ids."""
    views: list[View] = field(default_factory=list)
    known_as: Mapping[str, str] = field(default_factory=dict)
    """The common name of an action in a family of models, by its name in this model; other actions have one name in all."""
    silent: dict[Party, Local] = field(default_factory=dict)
    """Silent states of parties: a broker that is down. What arrives from it then was sent before; diagrams say so."""
    files: tuple[str, ...] = ()
    """Files outside of the packages that the rules are in: a checkpoint is of this content, and other processes get them."""
    _initial: list[Any] = field(default_factory=list)

    @property
    def initial(self) -> State:
        return NotebookState(self, self._initial)

    def starting_at(self, state: State) -> "Model":
        """The same model with another initial state: a search then goes on from there."""
        return replace(self, _initial=list(state))

    def slot(
        self,
        name: str,
        initial: Any,
        key: int | None = None,
        broker: int | None = None,
        bookkeeping: bool = False,
        holds: Any = None,
        party: Party = CONTROLLER,
        words: Callable[[Any], str] | None = None,
        about: int | None = None,
    ) -> Slot:
        """A new slot; `holds` is the type of its values, needed where the initial value does not show it (sets)."""
        full = name if about is None else f"{name} {about}"
        slot = Slot(len(self.slots), full, key, broker, bookkeeping, holds or type(initial), party, words, about)
        self.slots.append(slot)
        self._initial.append(initial)
        return slot

    def view(self, name: str, function: Callable[..., Any], *reads: Slot, key: int | None = None) -> View:
        """A new view: the value that `function` computes from these slots."""
        view = View(name, key, function, reads)
        self.views.append(view)
        return view

    def broker_slots(self, name: str, brokers: Sequence[int], initial: Any, about: int | None = None) -> dict[int, Slot]:
        """One slot for each broker."""
        return {broker: self.slot(name, initial, broker, broker, about=about) for broker in brokers}

    def numbered_slots(
        self, name: str, keys: Sequence[int], initial: Any, holds: Any = None, about: int | None = None
    ) -> dict[int, Slot]:
        """One bookkeeping slot of the model for each key."""
        return {key: self.slot(name, initial, key, bookkeeping=True, holds=holds, about=about) for key in keys}

    def action(
        self,
        name: str,
        args: Mapping[str, Argument],
        guards: Sequence[Local],
        effects: Sequence[Effect],
        events: Sequence[Event] = (),
        answer: Local | None = None,
    ) -> None:
        action = Action(name, dict(args), tuple(guards), tuple(effects), tuple(events), answer)
        written = [slot for effect in effects for slot in effect.writes]
        assert len(written) == len(set(written)), f"{action.label} writes a slot twice"
        if len(self.actions) == MOST_ACTIONS:
            raise ModelSizeError(f"model {self.name} has more than {MOST_ACTIONS:,} actions within these bounds")
        self.actions.append(action)

    def always(
        self, name: str, terms: Sequence[Local], meaning: str, twin: str | None = None, by_default: bool = True
    ) -> None:
        """A claim about every state. `twin` names a `sometimes` of this model.

        The twin shows that the claim's premise can be met: "the leader holds every acknowledged record" says nothing where
        no record is ever acknowledged. If the twin is never reached, a report says so. A claim without a premise needs none.
        """
        self.properties.append(Property(name, "always", tuple(terms), meaning, twin, by_default))

    def sometimes(self, name: str, terms: Sequence[Local], meaning: str) -> None:
        """A claim that some state is possible: the twin of an `always`, or of interest by itself."""
        self.properties.append(Property(name, "sometimes", tuple(terms), meaning))

    def check_properties(self) -> None:
        """Refuse, with `ModelError`, two properties of one name, and a twin that is no `sometimes` of this model."""
        names = [prop.name for prop in self.properties]
        again = next((name for number, name in enumerate(names) if name in names[:number]), None)
        if again is not None:
            raise ModelError(f"model {self.name} has two properties called {again}; give one of them another name")
        possible = [prop.name for prop in self.properties if prop.kind == "sometimes"]
        for prop in self.properties:
            if prop.twin is None or prop.twin in possible:
                continue
            what = f"a {type(prop.twin).__qualname__}" if not isinstance(prop.twin, str) else f"{prop.twin!r}"
            why = "is an always itself" if prop.twin in names else "is no property of this model"
            has = f"it has {', '.join(possible)}" if possible else "it has none"
            raise ModelError(
                f"model {self.name}: the twin of {prop.name}, {what}, {why}; a twin is the name of a sometimes that shows"
                f" the premise of an always met: {has}; leave twin out if there is no premise"
            )

    @property
    def action_names(self) -> list[str]:
        return list(dict.fromkeys(action.name for action in self.actions))

    def slot_named(self, label: str) -> Slot:
        """The slot with this label, such as `log[1]`; `KeyError` names those that there are."""
        labels = {slot.label: slot for slot in self.slots}
        if label not in labels:
            raise KeyError(f"model {self.name} has no slot {label!r}; it has {', '.join(labels)}")
        return labels[label]

    def property_named(self, name: str) -> Property | None:
        return next((prop for prop in self.properties if prop.name == name), None)


class NotebookState(NotebookValue, State):
    """A state that knows its model, so that it can be shown. It is equal to the plain tuple, and is pickled as that."""

    model: Model

    def __new__(cls, model: Model, values: Iterable[Any]) -> Self:
        """The state of these values."""
        made = super().__new__(cls, values)
        made.model = model
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)
