"""Work that a node divides, so that others are served in between: gradual work, and requests that name many things."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol

from kspec.impl.broker.calls import Call, Effect, GradualWork, InTurns
from kspec.impl.server.network.connection import ROUND_SECONDS, Connection

LOG = logging.getLogger("kspec.broker")


@dataclass(slots=True)
class PostponedEffects:
    """Gradual work, and the effects that wait for its end: the innermost list first, as each caller adds its own rest."""

    work: GradualWork
    rest: list[list[Effect]] = field(default_factory=list)
    held: list[Connection] = field(default_factory=list)
    """The connections that handle no request meanwhile."""


class CarryingShell(Protocol):
    """A shell, as far as divided work knows it: it carries out what each step asks for."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop, once there is one; without it nothing is divided."""

    @property
    def failure(self) -> Exception | None:
        """The reason why the node ends, if it does."""

    def carry_out(self, effects: list[Effect]) -> PostponedEffects | None:
        """Carry out effects."""

    def carry_out_for(self, connection: Connection, effects: list[Effect]) -> PostponedEffects | None:
        """Carry out what a request on a connection asks for."""

    def refuse(self, effects: list[Effect]) -> None:
        """Answer those who wait for what was not stored."""

    def connection_of(self, call: Call) -> Connection:
        """The connection that a request came on."""

    def remember_waiting(self, call: Call) -> None:
        """Forget a request that waits when its client goes."""

    def set_timer(self) -> None:
        """Wake when the next timer is due."""

    def fail(self, error: Exception, what: str, /) -> None:
        """The node cannot go on."""


class GradualWorks:
    """The gradual work of a node, one after the other."""

    def __init__(self, shell: CarryingShell) -> None:
        self._shell = shell
        self._works: deque[PostponedEffects] = deque()
        """The work that is not finished; the first is at it."""

    def begin(self, work: GradualWork) -> PostponedEffects | None:
        """Begin gradual work; without an event loop it is done at once."""
        loop = self._shell.loop
        if loop is None:
            return self._do_all(work)
        postponed = PostponedEffects(work)
        self._works.append(postponed)
        if len(self._works) == 1:
            loop.call_soon(self._go_on)
        return postponed

    def _do_all(self, work: GradualWork) -> PostponedEffects | None:
        for effects in _steps_of(work):
            self._shell.carry_out(effects)
        return None

    def _go_on(self) -> None:
        """Take steps of gradual work for a while. At its end what has waited for it is carried out."""
        loop = self._shell.loop
        assert loop is not None
        end = perf_counter() + ROUND_SECONDS
        while self._works and self._shell.failure is None:
            postponed = self._works[0]
            is_over = False
            try:
                self._shell.carry_out(next(postponed.work.steps))
            except StopIteration as done:
                is_over = True
                postponed.rest.insert(0, done.value)
            except Exception as error:
                self._works.popleft()
                self._failed(error)
                self._release(postponed, None)
                continue
            if is_over:
                self._works.popleft()
                self._end(postponed)
            if perf_counter() >= end:
                break
        if self._works and self._shell.failure is None:
            loop.call_soon(self._go_on)
        self._shell.set_timer()

    def _end(self, postponed: PostponedEffects) -> None:
        """Carry out what has waited, which may have to wait for more work."""
        again: PostponedEffects | None = None
        for number, effects in enumerate(postponed.rest):
            try:
                again = self._shell.carry_out(effects)
            except Exception as error:
                self._failed(error)
            if again is not None:
                again.rest += postponed.rest[number + 1 :]
                break
        self._release(postponed, again)

    def _release(self, postponed: PostponedEffects, again: PostponedEffects | None) -> None:
        """Let connections go on, unless there is more that they have to wait for."""
        if again is not None:
            again.held += postponed.held
            return
        for connection in postponed.held:
            connection.release()

    def _failed(self, error: Exception) -> None:
        """Gradual work cannot go on, so the metadata are taken in part: the node ends, and takes them anew at its start."""
        LOG.error("gradual work failed", exc_info=error)
        self._shell.fail(error, "a partition cannot be opened or written")


class RequestTurns:
    """The requests that name many things, each handled in steps that take turns."""

    def __init__(self, shell: CarryingShell) -> None:
        self._shell = shell
        self._requests: deque[InTurns] = deque()
        """Those that are not finished."""

    def begin(self, effect: InTurns) -> None:
        """Take the first step of a request, and the others in later rounds of the event loop; without one all at once."""
        has_more = self._take_step(effect)
        if self._shell.loop is None:
            while has_more:
                has_more = self._take_step(effect)
        elif has_more:
            self._shell.connection_of(effect.call).hold()
            self._requests.append(effect)
            if len(self._requests) == 1:
                self._shell.loop.call_soon(self._take_turns)

    def _take_step(self, effect: InTurns) -> bool:
        """Take one step: whether there are more. If what it asks for is postponed, the request goes on after that."""
        try:
            effects = next(effect.steps)
        except StopIteration as end:
            if self._shell.failure is None:
                self._shell.carry_out_for(self._shell.connection_of(effect.call), end.value)
            else:  # what an earlier step has decided may not be stored
                self._shell.refuse(end.value)
            return False
        postponed = self._shell.carry_out_for(self._shell.connection_of(effect.call), effects)
        if postponed is not None:
            postponed.rest.append([effect])
        return postponed is None

    def _take_turns(self) -> None:
        """Take a step of a request, and of others while there is time; what has come on connections is handled then."""
        assert self._shell.loop is not None
        end = perf_counter() + ROUND_SECONDS
        while self._requests:
            effect = self._requests[0]
            connection, has_more = self._shell.connection_of(effect.call), False
            try:
                has_more = not connection.closed and self._take_step(effect)
            except Exception:
                LOG.exception("closing %s:%d: a request in many steps failed", connection.host, connection.port)
                connection.close()
            self._shell.remember_waiting(effect.call)
            self._requests.rotate(-1)
            if not has_more:
                self._requests.pop()
                connection.release()
            if perf_counter() >= end:
                break
        if self._requests:
            self._shell.loop.call_soon(self._take_turns)
        self._shell.set_timer()


def _steps_of(work: GradualWork) -> Iterator[list[Effect]]:
    """The effects of each step, and those of its end."""
    yield (yield from work.steps)
