"""Results of conformance cases (`kspec conformance run --json`) as a run: the exchanges of the first case that fails."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kspec.model_check.explorer.errors import RefusedMessageError
from kspec.model_check.explorer.files.told import ToldRun, ToldStep, a_broker, a_slot, a_state

EXPECTED = "AnswersAreExpected"
BROKER = "broker 1"
LONGEST = 600
"""Letters of a message at most; the results have all of them."""


def is_results(document: Any) -> bool:
    """Whether a document is results of cases."""
    return isinstance(document, dict) and isinstance(document.get("cases"), list) and "counts" in document


def run_of_case(document: Mapping[str, Any]) -> ToldRun:
    """The first case that fails, as a run. `RefusedMessageError` if none does, or the document is not whole."""
    try:
        failed = next((one for one in document["cases"] if one["status"] == "fail"), None)
        if failed is None:
            raise RefusedMessageError(
                "bad-trace", "every case of these results passed or was not run: there is no failure to show"
            )
        steps = list(_steps(failed))
        rule = str(failed["rule"])
        return ToldRun(
            str(failed["name"]),
            f"case {failed['name']}",
            f"{failed['title']} Run against {document['target']}; again: {failed['replay']}",
            a_state([a_broker(1, BROKER)]),
            steps,
            {EXPECTED: f"each answer is what {rule} gives"},
        )
    except (KeyError, TypeError, AttributeError) as error:
        what = f"{type(error).__name__} {error}"
        raise RefusedMessageError("bad-trace", f"these results of conformance cases are not whole: {what}") from error


def _steps(case: Mapping[str, Any]) -> Iterator[ToldStep]:
    for exchange in case["exchanges"]:
        client, wrong = f"client {exchange['client']}", list(exchange["differences"])
        api, version, expected = str(exchange["api"]), exchange["version"], str(exchange["expected"])
        asked, answered = _short(exchange["request"]), _short(exchange["answer"])
        events = (
            []
            if exchange["request"] == ""
            else [{"from": client, "to": BROKER, "words": exchange["words"] or f"{api} v{version}"}]
        )
        if exchange["answer"] is not None:
            words = f"not as expected: {'; '.join(wrong)}" if wrong else expected or "the answer"
            events.append({"from": BROKER, "to": client, "words": words})
        elif wrong:
            events.append({"at": client, "words": "; ".join(wrong)})
        seen = [a_slot("expected", expected), a_slot("answered", answered)]
        if wrong:
            seen.append(a_slot("wrong", "; ".join(wrong)))
        state = a_state(
            [a_broker(1, BROKER, seen)], clients={"slots": [a_slot(f"sent by {client}", f"{api} v{version} {asked}")]}
        )
        rules = [_rule(str(case["rule"]))] if wrong else []
        yield ToldStep(
            api,
            f"v{version} {exchange['words']}".strip(),
            client,
            events,
            state,
            {EXPECTED: "; ".join(wrong)} if wrong else {},
            rules,
        )


def _rule(function: str) -> dict[str, Any]:
    module, _, name = function.partition(":")
    told = {"rule": f"{module}.{name}", "place": f"{module.replace('.', '/')}.py", "kafka": "", "docstring": ""}
    return {**told, "meaning": "The rule whose answer was expected.", "changes": [], "weakened_by": {}, "mutant_of": {}}


def _short(message: Any) -> str:
    text = "none" if message is None or message == "" else json.dumps(message, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
