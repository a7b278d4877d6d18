"""Runs of transactions with a name: each is a shortest run that the checker finds, and that one broker can show."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from kspec.conformance.kafka.run_files import NoRunInFileError, run_in
from kspec.conformance.transactions.prompt import (
    BY_ITSELF,
    DELAY_MARKER,
    FENCED_BY_ITSELF,
    FENCED_BY_NOBODY,
    MODEL,
    BrokerStep,
    NoTransactionsRunError,
    prompt_model,
    settled,
    slots_of,
)
from kspec.model_check.core.exploration import Limits
from kspec.model_check.core.model import Local, Model, State, when
from kspec.model_check.core.parameters import ParameterError
from kspec.model_check.engines.compiled.search import explore
from kspec.model_check.engines.simulation.walks import trace_of, walks
from kspec.model_check.models.transactions.values import SentMarker, TransactionalProducer, TransactionExchange
from kspec.model_check.traces.encode import as_json
from kspec.spec.messages.transactions.end_txn import EndTxnRequest

Move = tuple[str, Mapping[str, Any]]
"""An action's name and its arguments."""


Rules = Mapping[str, Any]
"""The release whose rules are expected, and the mutant by which one of them is weakened, if any: parameters of the model."""


class TransactionRun(NamedTuple):
    """A run of the model that one broker is to follow, and what is claimed of its end.

    - `invariant`: the property that fails in the end, if the claim is true;
    - `levels`: the transaction versions of cluster and producers in which the run is looked for;
    - `late_commits`: the end that is late is a commit, or an abort; `None` if nothing is late;
    - `goes_on`: what follows where the late request changes nothing, in a release or version that is not concerned.
    """

    name: str
    words: str
    claim: str
    parameters: Mapping[str, Any]
    invariant: str
    levels: tuple[int, ...] = (0, 1, 2)
    late_commits: bool | None = None
    goes_on: tuple[Move, ...] = ()


ONE: Mapping[str, Any] = {"producer": 1}
COMMITS: tuple[Move, ...] = (("Commit", ONE), ("Deliver", ONE), ("Receive", ONE))
OFFSETS: tuple[Move, ...] = (("CommitOffsets", ONE), ("Verify", {**ONE, "partition": 1}), ("Receive", ONE))
ARRIVES: Move = ("DeliverLate", ONE)
MARKER_ARRIVES: Move = ("WriteLateMarker", {"partition": 0})
LATE = {"late_requests": 1}
LATE_MARKER = {"late_markers": 1}

CANDIDATES = (
    TransactionRun(
        "late-commit",
        "A request to commit is sent twice. Its second copy arrives in the next transaction (KAFKA-17754).",
        "a record is read as committed that its producer has not asked to commit",
        LATE,
        "OnlyCommittedIsRead",
        late_commits=True,
        goes_on=(ARRIVES,),
    ),
    TransactionRun(
        "late-abort",
        "A request to abort is sent twice. Its second copy arrives in the next transaction, which goes on and commits.",
        "a record is aborted of a transaction whose producer is told that it is committed",
        {**LATE, "topic_partitions": 2},
        "CommittedIsKept",
        late_commits=False,
        goes_on=(ARRIVES, *COMMITS),
    ),
    TransactionRun(
        "late-offset",
        "A process reads, writes and commits its offset in one transaction. A late request to abort arrives in between.",
        "the offset of an input is committed whose output is aborted",
        {**LATE, "inputs": 2},
        "NoInputSkipped",
        late_commits=False,
        goes_on=(ARRIVES, *OFFSETS, *COMMITS),
    ),
    TransactionRun(
        "late-marker",
        "A marker is sent twice. Its second copy arrives in the next transaction (KIP-1228).",
        "a record is read as committed that its producer has not asked to commit",
        LATE_MARKER,
        "OnlyCommittedIsRead",
        late_commits=True,
        goes_on=(MARKER_ARRIVES,),
    ),
    TransactionRun(
        "late-abort-marker",
        "A marker to abort is sent twice. Its second copy arrives in the next transaction, which is committed.",
        "a record is aborted of a transaction whose producer is told that it is committed",
        LATE_MARKER,
        "CommittedIsKept",
        late_commits=False,
        goes_on=(MARKER_ARRIVES, *COMMITS),
    ),
    TransactionRun(
        "torn-transaction",
        "A marker is sent twice. Its second copy arrives in the next transaction, which has two partitions.",
        "a transaction is committed in one partition and aborted in the other",
        {**LATE_MARKER, "topic_partitions": 2},
        "OneEnd",
        late_commits=False,
        goes_on=(MARKER_ARRIVES, *COMMITS),
    ),
    TransactionRun(
        "overtaken-commit",
        "A transaction takes too long and is aborted; then its producer asks to commit it (KAFKA-20785).",
        "the producer is told of an invalid state, and not that it is fenced",
        {"timeouts": 1},
        "FailsIfFenced",
        (2,),
    ),
    TransactionRun(
        "late-start",
        "A producer asks for its id twice. The second copy arrives when its transaction is open.",
        "the producer is fenced by itself",
        {**LATE, "transactions": 1},
        FENCED_BY_ITSELF,
    ),
    TransactionRun(
        "fenced-retry",
        "A producer asks for its next epoch (KIP-360), gets no answer, and asks again after the coordinator has started.",
        "the producer is told that it is fenced, and nobody has fenced it",
        {**LATE, "disconnects": 1, "moves": 1, "transactions": 1},
        FENCED_BY_NOBODY,
        (0, 1),
    ),
)
"""Runs of one producer, with one thing that is late."""

NAMED = {run.name: run for run in CANDIDATES}


class FoundRun(NamedTuple):
    """A run that was found: the model by the rules of the broker, the actions, and whether the claim is true of it."""

    run: TransactionRun
    model: Model
    steps: tuple[BrokerStep, ...]
    is_shown: bool


def found_run(run: TransactionRun, rules: Rules, level: int) -> FoundRun:
    """The shortest run in which the property fails, or one in which the same thing is late and changes nothing.

    Raises: `NoTransactionsRunError`.
    """
    if level not in run.levels:
        versions = " or ".join(map(str, run.levels))
        raise NoTransactionsRunError(f"{run.name} is a run of transaction.version {versions}, and not {level}")
    model = prompt_model({**run.parameters, **rules, "transaction_version": str(level)})
    moves = shortest(model, run.invariant)
    if moves is None and run.late_commits is not None:
        model.always(LATE_IN_NEXT, [_late_in_next(model, run.late_commits)], "nothing is late")
        begun = shortest(model, LATE_IN_NEXT)
        moves = None if begun is None else [*begun, *run.goes_on]
    if moves is None:
        raise NoTransactionsRunError(f"{run.name}: no run within the bounds by the rules of {rules['release']}")
    steps = steps_of(model, moves)
    return FoundRun(run, model, tuple(steps), fails(model, run.invariant, [one.after for one in steps]))


def run_in_file(path: Path, rules: Rules) -> FoundRun:
    """The run in a file by the rules of a release, as far as one broker can show it. Raises: `NoRunInFileError`."""
    found = run_in(path, MODEL)
    known = {**found.parameters, **rules}
    try:
        return _without_claim(path.name, f"a run of model {MODEL}", known, found.actions)
    except (ParameterError, KeyError) as error:
        raise NoRunInFileError(f"{path}: {error}") from error


def walk(seed: int, rules: Rules, level: int) -> FoundRun:
    """A random walk of what one broker can show."""
    parameters = {**WALK_BOUNDS, **rules, "transaction_version": str(level)}
    model = prompt_model(parameters)
    (found,) = walks(model, [], seed, [0], WALK_STEPS, {name: WALK_WEIGHTS.get(name, WEIGHT) for name in model.action_names})
    taken = [step.action for step in trace_of(model, found.actions) if step.action is not None]
    moves = [(action.name, action.args) for action in taken]
    return _without_claim(f"seed:{seed}", f"a walk of model {MODEL}", parameters, moves)


def _without_claim(name: str, words: str, parameters: Mapping[str, Any], moves: Sequence[Move]) -> FoundRun:
    model = prompt_model(parameters)
    level = int(parameters["transaction_version"])
    run = TransactionRun(name, words, "", parameters, "", (level,))
    return FoundRun(run, model, tuple(steps_of(model, moves)), is_shown=False)


WALK_STEPS = 60
WALK_BOUNDS: Mapping[str, Any] = {
    "late_requests": 1,
    "disconnects": 2,
    "late_markers": 1,
    "topic_partitions": 2,
    "transactions": 3,
    "records": 2,
    "producers": 2,
}
"""The bounds of random walks."""

WALK_WEIGHTS = {"Abort": 2, "Initialise": 2, "Disconnect": 2}
WEIGHT = 8
"""Of every other action."""

LATE_IN_NEXT = "NothingIsLate"


def _late_in_next(model: Model, commits: bool) -> Local:
    """No end of the first transaction is late while the second one is open and has a record."""
    (producer,) = slots_of(model, "producer")
    late = [slot for slot in model.slots if slot.name in ("late", "lateMarker 0")]

    def nothing_late(state: TransactionalProducer, *ends: TransactionExchange | SentMarker | None) -> bool:
        return len(state.wishes) < 2 or not all(state.written[:1]) or not any(_is_end(one, commits) for one in ends)

    return when(nothing_late, producer, *late)


def _is_end(late: TransactionExchange | SentMarker | None, commits: bool) -> bool:
    match late:
        case SentMarker(marker):
            return marker.committed == commits
        case TransactionExchange(EndTxnRequest(committed=committed)):
            return committed == commits
        case _:
            return False


def shortest(model: Model, invariant: str) -> list[Move] | None:
    """A shortest run that ends where a property fails."""
    (prop,) = (one for one in model.properties if one.name == invariant)
    (verdict,) = explore(model, [prop], Limits()).verdicts
    if not verdict.violated or verdict.trace is None:
        return None
    return [(step.action.name, step.action.args) for step in verdict.trace if step.action is not None]


def steps_of(model: Model, moves: Sequence[Move]) -> list[BrokerStep]:
    """The steps of a run: after each one the broker does what it does by itself.

    A step that is not possible is left out: the broker has done it already.
    """
    by_move = {(action.name, _key(action.args)): action for action in model.actions}
    state, found = model.initial, list[BrokerStep]()
    for place, (name, args) in enumerate(moves):
        action = by_move.get((name, _key(args)))
        after = None if action is None else action.bind()(state)
        if action is not None and after is not None:
            found.append(BrokerStep(action, state, settled(model, after, _delayed(moves[place + 1 :]))))
            state = found[-1].after
    return found


def _delayed(moves: Sequence[Move]) -> frozenset[int]:
    """The partitions whose marker is delayed before anything else happens."""
    following = takewhile(lambda move: move[0] in (*BY_ITSELF, DELAY_MARKER), moves)
    return frozenset(args["partition"] for name, args in following if name == DELAY_MARKER)


def fails(model: Model, invariant: str, states: Sequence[State]) -> bool:
    """Whether a property fails in one of the states."""
    (prop,) = (one for one in model.properties if one.name == invariant)
    holds_in = prop.bind()
    return not all(holds_in(state) for state in states)


def _key(args: Mapping[str, Any]) -> str:
    return str(sorted(as_json(args).items()))
