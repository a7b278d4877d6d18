"""Random walks over messages, and what is to be equal in all back ends: state, enabled moves, verdicts, and the whole view.

This file runs in Pyodide, too, so it imports nothing but Python's own.
"""

import hashlib
import json
import random
from collections.abc import Callable
from typing import Any

Ask = Callable[[dict[str, Any]], dict[str, Any]]

BOUNDS: dict[str, dict[str, Any]] = {
    "truncate-to-hw": {"replicas": 2},
    "kip-101": {"replicas": 2},
    "kip-279": {"replicas": 2},
    "kip-320-first-try": {"replicas": 2},
    "kip-320": {"replicas": 2},
    "async-isr": {},
    "kafka": {"release": "4.4", "elections": 1},
    "messages": {"fetches": 2},
    "controller": {"brokers": 4, "reassignments": 1, "fencings": 1},
    "shutdown": {},
    "group": {},
    "transactions": {"transaction-version": "0"},
    "delivery": {"commits": "before", "rebalances": 1},
    "quorum": {"servers": 2},
}
"""The models, each within bounds that let its whole graph be explored."""

LONGEST = 40
"""Steps after which a walk begins again."""


def walk(ask: Ask, model: str, parameters: dict[str, Any], steps: int, seed: int = 1) -> list[dict[str, Any]]:
    """The views after each of so many random steps, in short; at the end of a run another one begins."""
    chance = random.Random(seed)
    start = {"do": "start", "model": model, "parameters": parameters}
    view = ask(start)
    seen = [what_is_seen(view)]
    for _ in range(steps):
        enabled = [move for move in view["moves"] if move["enabled"]]
        if not enabled or view["position"] > LONGEST:
            view = ask(start)
        else:
            move = enabled[int(chance.random() * len(enabled))]
            choice = 1 + int(chance.random() * move.get("choices", 1))
            view = ask({"do": "step", "index": move["index"], "choice": choice})
        seen.append(what_is_seen(view))
    return seen


def what_is_seen(view: dict[str, Any]) -> dict[str, Any]:
    """The last step, the state in words, the enabled moves, the verdicts, the address, and a digest of all of the view."""
    parts = [*view["state"]["brokers"], view["state"]["controller"], view["state"]["clients"]]
    step = view["step"]
    return {
        "step": step and [step["action"], step["args"]],
        "state": {slot["slot"]: slot["words"] for part in parts for slot in part["slots"]},
        "enabled": [[move["action"], move["args"]] for move in view["moves"] if move["enabled"]],
        "verdicts": {prop["property"]: prop["verdict"] for prop in view["properties"]},
        "address": view["address"],
        "view": hashlib.sha256(json.dumps(view, sort_keys=True).encode()).hexdigest(),
    }
