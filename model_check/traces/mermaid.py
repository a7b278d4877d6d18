"""Traces as Mermaid sequence diagrams, which GitHub and most documentation tools draw."""

from model_check.core.exploration import Trace
from model_check.core.model import Message, Model
from model_check.traces.render import action_in_words, parties, party_name, steps, told


def sequence_diagram(model: Model, trace: Trace) -> str:
    """The text of a Mermaid `sequenceDiagram`: messages as arrows, changes as notes, one group for each step."""
    lines = ["sequenceDiagram"]
    for party in parties(model, trace):
        lines.append(f"    participant {_identifier(party)} as {party_name(party)}")
    for number, before, after in steps(trace):
        assert after.action is not None
        lines.append(f"    %% {number}: {action_in_words(after.action)}")
        for event in told(model, before, after):
            if isinstance(event, Message):
                lines.append(f"    {_identifier(event.source)}->>{_identifier(event.target)}: {_text(event.text)}")
            else:
                lines.append(f"    Note over {_identifier(event.party)}: {_text(event.text)}")
    return "\n".join(lines) + "\n"


def _identifier(party: int | str) -> str:
    return f"b{party}" if isinstance(party, int) else party


def _text(text: str) -> str:
    """Mermaid ends a statement at `;` and `#` opens an entity."""
    return text.replace("#", "#35;").replace(";", ",")
