"""An explorer as a page sees it: messages and answers go through JSON text."""

import json
from typing import Any

from kspec.model_check.explorer import Explorer


class JsonExplorer:
    """An explorer behind JSON text."""

    def __init__(self, explorer: Explorer | None = None) -> None:
        self.explorer = explorer or Explorer()

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """The answer to a message."""
        answer: dict[str, Any] = json.loads(json.dumps(self.explorer.answer(json.loads(json.dumps({"do": do, **fields})))))
        return answer

    def view(self, do: str, **fields: Any) -> dict[str, Any]:
        """The answer to a message that must be a view."""
        answer = self.ask(do, **fields)
        assert answer["answer"] == "view", answer
        return answer

    def error(self, do: str, **fields: Any) -> tuple[str, str]:
        """The kind and words of an answer that must be an error: one line."""
        answer = self.ask(do, **fields)
        assert answer["answer"] == "error", answer
        assert "\n" not in answer["words"]
        return answer["kind"], answer["words"]
