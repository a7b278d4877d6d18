"""All parties but the broker under test, by the handlers of `spec`: their requests, their responses, their decisions.

A run of model `kafka` gives the order of steps. Its states hold each party's own state, on which the very functions are
called that the checker explores.
"""

from typing import Any

from kspec.conformance.world.replay.model_state import ModelState
from kspec.model_check.models.kafka.cluster import NOW
from kspec.model_check.models.kafka.kraft.state import answer_of, controller_state
from kspec.model_check.models.kafka.party import PartyRules, broker, is_asking, leading, next_request, reply
from kspec.model_check.models.kafka.settings import controller_of, releases_of, rules_of
from kspec.model_check.models.kafka.values import AlterPartitionExchange, ModelController, RequestState
from kspec.model_check.models.parts import LATE
from kspec.spec.broker.leader.fetch import handle_fetch
from kspec.spec.controller.partitions import handle_alter_partition
from kspec.spec.controller.protocol import Controller
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kspec.spec.messages.fetch import FetchRequest, FetchResponse
from kspec.spec.values import BrokerId


class SpecParties:
    """The specification's parties of a run, by the rules of the releases in its parameters."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        releases = releases_of(parameters)
        control = controller_of(releases, parameters)
        assert isinstance(control, Controller), "the world has a KRaft controller"
        self.control = control
        self.rules: dict[int, PartyRules] = rules_of(releases, parameters)

    def answers(self, state: ModelState, one: int) -> bool:
        """Whether a broker is up, and has opened its ports."""
        process = state.process(one)
        return process.up and self.rules[one].protocol.opens_ports(process.life)

    def next_fetch(self, state: ModelState, follower: int) -> tuple[int, FetchRequest] | None:
        """The leader that a follower fetches from next, and its request; `None` if it sends none."""
        log, fetcher = state.log(follower), state.fetcher(follower)
        sent = next_request(self.rules[follower], BrokerId(follower), log, fetcher, state.process(follower))
        if sent is None or not isinstance(sent.message, FetchRequest):
            return None
        return sent.to, sent.message

    def fetch_answer(self, state: ModelState, leader: int, request: FetchRequest) -> FetchResponse:
        """A leader's answer to a fetch."""
        role, process, exchange = state.role(leader), state.process(leader), state.exchange(leader)
        reading = state.reading(leader)
        known = reading[0].brokers if reading and role.leader == leader else frozenset()
        own = broker(self.rules[leader], BrokerId(leader), process, known)
        before = leading(state.log(leader), role, state.memory(leader), asking=is_asking(exchange, process))
        answer = reply(handle_fetch(own, before, request, LATE))
        assert isinstance(answer, FetchResponse)
        return answer

    def isr_answer(self, cluster: ModelController, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """The controller's answer to a proposed ISR."""
        answer = answer_of(handle_alter_partition(self.control, controller_state(cluster), request, NOW))
        assert isinstance(answer, AlterPartitionResponse)
        return answer


def proposed(exchange: AlterPartitionExchange) -> AlterPartitionRequest | None:
    """The request of an exchange in flight."""
    return exchange.request if exchange.state == RequestState.SENT else None
