"""The result of a handler: the party's new state, and its effects in order.

A handler is a pure function of one party's state and one message, or of the state and the time. It does nothing itself. The
effects that it returns are values. The caller carries them out **in the order given, each complete before the next begins**.
So a handler puts a change that must be durable before the send that depends on it.

All handlers are called alike. `handle_NAME(self, state, request, now)` handles a request of that name.
`handle_NAME_response(self, state, asked, response, now)` handles a response, together with the request that it answers.
`on_NAME(self, state, ...)` handles an event that is no message. `self` is the party that handles: the rules of its release,
its settings, and its own ids and epochs. `now` is the time in milliseconds; every handler takes it, so that all can be
called from one table. Brokers and controllers take it by the clock that never jumps (`MonotonicMs`). The group coordinator
writes timestamps as well, so its handlers take an `Instant`, which has the time by both clocks.

A party's own kinds of effect stand beside its handlers. The kinds that every party has are here. Effects are not tuples: a
tuple equals any other with the same fields, so a reply would equal a request.
"""

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from kspec.spec.values import BrokerId

StateT = TypeVar("StateT")
EffectT = TypeVar("EffectT")
MessageT = TypeVar("MessageT")


class Step(NamedTuple, Generic[StateT, EffectT]):
    """The outcome of a handler. A handler that changes nothing returns the same state object that it was given."""

    state: StateT
    effects: tuple[EffectT, ...] = ()


@dataclass(frozen=True, slots=True)
class Send(Generic[MessageT]):
    """Send a request to a broker. It may arrive late, twice or never, but in order with others to the same broker."""

    to: BrokerId
    message: MessageT


@dataclass(frozen=True, slots=True)
class SendToController(Generic[MessageT]):
    """Send a request to the active controller. Kafka: `NodeToControllerChannelManager`."""

    message: MessageT


@dataclass(frozen=True, slots=True)
class Reply(Generic[MessageT]):
    """Answer the request that the handler was given, on the connection that it came on."""

    message: MessageT
