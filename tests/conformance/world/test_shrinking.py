"""A run made short is a run of the model, still departs at its end, and no step of it can be left out."""

import asyncio
from collections.abc import Callable
from itertools import islice

import pytest

from kspec.conformance.world.choice.shrinking import shrink
from kspec.conformance.world.runs.run import Move, WorldRun, model_for, trace_of_moves, walk

MODEL = model_for("4.4.0", {"elections": 1, "values": 2, "brokers": 2, "endless_lag": True})
DEPTH = 40


def is_acknowledged(run: WorldRun) -> int | None:
    """Made up: the broker departs where a record is acknowledged. That needs both brokers, a record and its fetches."""
    for number, step in enumerate(run.trace):
        if step.state[MODEL.slot_named("clients").position].told:
            return number
    return None


def second_decision_read(run: WorldRun) -> int | None:
    """Made up: the broker departs where broker 2 has read metadata for the second time."""
    names = [(name, args.get("broker")) for name, args in run.moves]
    found = [number for number, name in enumerate(names, start=1) if name == ("ReplayMetadata", 2)]
    return found[1] if len(found) > 1 else None


def shrunk_with(
    run: WorldRun, departs: Callable[[WorldRun], int | None], most: int = 1000
) -> tuple[WorldRun, list[WorldRun]]:
    tried: list[WorldRun] = []

    async def tell(one: WorldRun) -> int | None:
        tried.append(one)
        return departs(one)

    step = departs(run)
    assert step is not None, "the run departs"
    return asyncio.run(shrink(run, step, tell, most)), tried


def departing(departs: Callable[[WorldRun], int | None], count: int) -> list[WorldRun]:
    runs = (walk(MODEL, 1, number, DEPTH, f"walk {number}") for number in range(200))
    return list(islice((run for run in runs if departs(run) is not None), count))


def without(moves: list[Move], place: int) -> WorldRun:
    trace = trace_of_moves(MODEL, [*moves[:place], *moves[place + 1 :]], skip=True)
    return WorldRun("one less", MODEL, trace, 1)


@pytest.mark.parametrize("departs", [is_acknowledged, second_decision_read])
def test_what_is_left_is_a_run_departs_and_needs_each_step(departs: Callable[[WorldRun], int | None]) -> None:
    runs = departing(departs, 5)
    assert len(runs) == 5
    shorter = 0
    for run in runs:
        found, tried = shrunk_with(run, departs)
        assert trace_of_moves(MODEL, found.moves) == found.trace
        assert all(trace_of_moves(MODEL, one.moves) == one.trace for one in tried)
        assert departs(found) == len(found.moves), "the departure is its last step"
        assert [departs(without(found.moves, place)) for place in range(len(found.moves))] == [None] * len(found.moves)
        assert (found.name, found.real, found.model) == (run.name, run.real, run.model)
        shorter += len(found.moves) < (departs(run) or 0)
    assert shorter


def test_a_departure_at_any_first_step_leaves_one() -> None:
    found, _ = shrunk_with(departing(is_acknowledged, 1)[0], lambda run: len(run.moves) or None)
    assert [name for name, _ in found.moves] == ["CreatePartition"]


def test_no_more_is_tried_than_may_be() -> None:
    (run,) = departing(is_acknowledged, 1)
    found, tried = shrunk_with(run, is_acknowledged, most=3)
    assert len(tried) == 3
    assert is_acknowledged(found) == len(found.moves)
