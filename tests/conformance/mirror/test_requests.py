"""The graph of what may be sent, and the runs that cover it."""

from functools import cache

from kspec.conformance.mirror.moves import CreatePartition, Heartbeat, Move, ProposalFault, Propose, Register
from kspec.conformance.mirror.named import NAMED
from kspec.conformance.mirror.outcomes import action_of
from kspec.conformance.mirror.requests import RequestGraph, covering, explore, pairs_of, set_up, state_of, tells_apart
from kspec.conformance.mirror.runs import MirrorRun, rules_of
from kspec.conformance.mirror.session import RunSelection, choose, settings_of, telling_apart
from kspec.conformance.mirror.taking import request_of, taken
from kspec.spec.controller.protocol import ControllerProtocol
from kspec.spec.mutation import weaken
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from kspec.spec.values import BrokerId

RULES = rules_of("4.4.0")
TEMPLATE = MirrorRun("ELR", ())


@cache
def explored() -> RequestGraph:
    return explore(TEMPLATE, RULES, 40)


def test_covering_runs_cover_every_pair() -> None:
    runs = list(covering(explored().found, TEMPLATE, RULES))
    assert {pair for run in runs for pair in pairs_of(run, RULES)} >= explored().found.keys()
    assert len(runs) < len(explored().found)


def test_every_run_ends_with_its_pair() -> None:
    for pair, moves in explored().found.items():
        run = next(covering({pair: moves}, TEMPLATE, RULES))
        assert pairs_of(run, RULES)[-1] == pair


def test_every_kind_of_move_and_every_fault_is_in_the_graph() -> None:
    actions = {action for action, _ in explored().found}
    assert {action_of(Propose((BrokerId(1),), fault)) for fault in ProposalFault} <= actions
    assert {action_of(Heartbeat(BrokerId(1), behind=True)), action_of(Register(BrokerId(1), again=True))} <= actions


def test_errors_of_alter_partition_are_in_the_graph() -> None:
    errors = {outcome.partition(",")[0] for action, outcome in explored().found if action.startswith("Propose")}
    assert errors >= {
        "NONE",
        "FENCED_LEADER_EPOCH",
        "INELIGIBLE_REPLICA",
        "INVALID_REQUEST",
        "INVALID_UPDATE_VERSION",
        "NOT_CONTROLLER",
        "STALE_BROKER_EPOCH",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


def reached(*moves: Move) -> object:
    controller = TEMPLATE.controller(RULES)
    known = set_up(TEMPLATE, controller)
    for move in moves:
        known = taken(controller, known, request_of(known, move)).known
    return state_of(known)


def test_states_forget_epochs_and_which_broker_is_which() -> None:
    one, two, three = map(BrokerId, (1, 2, 3))
    create, back = CreatePartition((one, two, three)), CreatePartition((three, two, one))
    assert reached(create) == reached(back) == reached(create, Propose((two,)), Propose((two,)))
    assert reached(create, Propose((two,))) != reached(create, Propose((three,))), "the order of preference counts"
    assert reached(Heartbeat(one, want_fence=True)) == reached(Heartbeat(two, want_fence=True)) != reached()


def test_a_mutant_is_told_apart_by_some_run() -> None:
    runs = (made() for made in NAMED.values())
    chosen = RunSelection((*runs, *covering(explored().found, TEMPLATE, RULES)), 0, 0, frozenset())
    told = {task.name: task.run for task in telling_apart(chosen, RULES, CONTROLLER_MUTANTS)}
    assert len(told) == 10, "those that change one of the release's rules"
    assert sum(run is not None for run in told.values()) >= 8


def test_rules_are_not_told_apart_from_themselves() -> None:
    assert not any(tells_apart(made(), RULES, RULES) for made in NAMED.values())


def test_releases_before_4_0_have_no_eligible_leader_replicas() -> None:
    assert not any(run.eligible_leader_replicas for run in settings_of("3.9.2"))
    assert {run.eligible_leader_replicas for run in settings_of("4.4.0")} == {True, False}
    chosen = choose("3.9.2", rules_of("3.9.2"), 5)
    assert not any(run.eligible_leader_replicas for run in chosen.runs)
    assert {made().name for made in NAMED.values()} <= {run.name for run in chosen.runs}


def weakened(name: str) -> ControllerProtocol:
    (mutant,) = [one for one in CONTROLLER_MUTANTS if one.name == name]
    return weaken(RULES, mutant)


def test_the_second_copy_tells_a_repaired_controller_apart() -> None:
    run = NAMED["second-copy-of-a-proposal"]()
    assert tells_apart(run, RULES, rules_of("4.4.0")) is False
    assert tells_apart(run, weakened("fenced-replica-admitted"), RULES)
