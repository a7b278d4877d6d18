"""Traces as Mermaid sequence diagrams, which GitHub and most documentation tools draw."""

from collections.abc import Sequence

from kspec.model_check.core.exploration import Trace
from kspec.model_check.core.model import Arrow, Model
from kspec.model_check.traces.render import (
    Remarks,
    action_in_words,
    first_failures,
    parties,
    party_name,
    steps,
    told_with_remarks,
)

FAILURE = "rect rgba(200, 60, 20, 0.15)"
"""The ground of the step that violates: it is seen on light pages and on dark ones."""


def sequence_diagram(model: Model, trace: Trace, remarks: Remarks | None = None, asked: Sequence[str] = ()) -> str:
    """The text of a Mermaid `sequenceDiagram`: messages as arrows, changes as notes, one group for each step.

    `remarks` tell what became of records. The step after which an invariant that is `asked` fails is marked.
    """
    columns = parties(model, trace)
    lines = ["sequenceDiagram"]
    for party in columns:
        lines.append(f"    participant {_identifier(party)} as {party_name(party)}")
    everybody = ",".join(dict.fromkeys((_identifier(columns[0]), _identifier(columns[-1]))))
    failures = first_failures(model, trace, asked)
    for number, before, after in steps(trace):
        assert after.action is not None
        told = [f"    %% {number}: {action_in_words(after.action)}"]
        for event in told_with_remarks(model, before, after, remarks):
            if isinstance(event, Arrow):
                told.append(f"    {_identifier(event.source)}->>{_identifier(event.target)}: {_text(event.text)}")
            else:
                told.append(f"    Note over {_identifier(event.party)}: {_text(event.text)}")
        if number in failures:
            told.append(f"    Note over {everybody}: ✕ {' and '.join(failures[number])} fails here")
            told = [f"    {FAILURE}", *told, "    end"]
        lines += told
    return "\n".join(lines) + "\n"


def _identifier(party: int | str) -> str:
    return f"b{party}" if isinstance(party, int) else party


def _text(text: str) -> str:
    """Mermaid ends a statement at `;` and `#` opens an entity."""
    return text.replace("#", "#35;").replace(";", ",")
