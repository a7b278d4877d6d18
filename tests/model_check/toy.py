"""A model small enough to know by heart: two counters that count up to a limit, the second one never ahead."""

from kspec.model_check.core.model import Model, then, when


def counters(limit: int = 3, cap: int | None = None) -> Model:
    model = Model("counters", {"limit": limit})
    first, second = (model.slot("count", 0, key, key) for key in (1, 2))
    model.action(
        "CountFirst",
        {"broker": 1},
        [when(lambda count: count < limit, first)],
        [then(first, lambda count: count + 1, first)],
    )
    model.action(
        "CountSecond",
        {"broker": 2},
        [when(lambda first, second: second < first, first, second)],
        [then(second, lambda count: count + 1, second)],
    )
    model.always("FirstBelowLimit", [when(lambda count: count < limit, first)], "the first counter is below the limit", None)
    model.always("SecondNotAhead", [when(lambda a, b: b <= a, first, second)], "the second is not ahead", "SecondCounts")
    model.sometimes("SecondCounts", [when(lambda count: count > 0, second)], "the second counter counts")
    model.sometimes("SecondBeyond", [when(lambda count: count > limit, second)], "the second passes the limit")
    if cap is not None:
        model.constraint.append(when(lambda count: count <= cap, first))
    return model
