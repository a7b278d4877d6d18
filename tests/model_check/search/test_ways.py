"""Breadth-first search finds shortest ways, and of several ways those are chosen that meet a goal no other has met."""

from kspec.model_check.search.ways import Ways, covering

EDGES = {"a": "bc", "b": "d", "c": "de", "d": "a", "e": "f", "f": ""}


def searched() -> tuple[Ways[str, str], list[str]]:
    ways, order = Ways[str, str]("a"), []
    for place in ways.places():
        order.append(place)
        for after in EDGES[place]:
            ways.reach(place, place + after, after)
    return ways, order


def test_places_come_by_their_distance_each_once() -> None:
    ways, order = searched()
    assert order == list("abcdef")
    assert len(ways) == len(EDGES)


def test_a_way_is_a_shortest_one_by_the_step_that_came_first() -> None:
    ways, _ = searched()
    assert ways.to("a") == []
    assert ways.to("d") == ["ab", "bd"]
    assert ways.to("f") == ["ac", "ce", "ef"]


def test_levels_are_the_places_of_one_distance() -> None:
    ways, levels = Ways[str, str]("a"), []
    for level in ways.levels():
        levels.append(level)
        for place in level:
            for after in EDGES[place]:
                ways.reach(place, "", after)
    assert levels == [["a"], ["b", "c"], ["d", "e"], ["f"]]


def test_a_goal_that_is_met_on_the_way_needs_no_way_of_its_own() -> None:
    ways = [("z", "xyz"), ("y", "y"), ("w", "yw"), ("x", "x")]
    assert list(covering(ways, set)) == [("xyz", ["x", "y", "z"]), ("yw", ["w"])]


def test_a_way_meets_the_goal_that_it_is_there_for() -> None:
    assert list(covering([("goal", "way")], lambda way: set())) == [("way", ["goal"])]
