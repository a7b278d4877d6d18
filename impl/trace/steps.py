"""Writing steps while a broker runs, and running them again."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kspec.impl.trace.values import Json, TraceError, decode, encode, name_of, named
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.controller.protocol import ControllerProtocol
from kspec.spec.coordinator.protocol import CoordinatorProtocol
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.releases.names import coordinator_of
from kspec.spec.transactions.protocol import TransactionProtocol

RULES = (BrokerProtocol, ControllerProtocol, CoordinatorProtocol, TransactionProtocol, QuorumProtocol)


class TraceWriter:
    """Writes each step as a line: the handler, who handles, the state that it read, what it was given, what came of it.

    A handler that does not ask who handles has none there.
    """

    def __init__(self, path: Path, release: str, mutant: str | None) -> None:
        self._file = path.open("w", encoding="utf-8", buffering=1 << 16)
        self._write({"release": release, "mutant": mutant})
        self._file.flush()

    def note(
        self, handler: Callable[..., object], party: object, state: object, given: tuple[object, ...], outcome: object
    ) -> None:
        """Write one step."""
        self._write(
            {
                "rule": name_of(handler),
                "self": encode(party, RULES),
                "state": encode(state, RULES),
                "given": encode(given, RULES),
                "outcome": encode(outcome, RULES),
            }
        )

    def _write(self, line: dict[str, Json]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def close(self) -> None:
        """Write what is left, and close the file."""
        self._file.close()


class StepDifference(NamedTuple):
    """A step that comes out differently: its line in the file, its rule, what was recorded, and what comes out now."""

    line: int
    rule: str
    recorded: Json
    outcome: Json


def has_steps(path: Path) -> bool:
    """Whether a trace has its first line: a process may end before it is written."""
    with path.open(encoding="utf-8") as file:
        return file.readline().endswith("\n")


def header_of(path: Path) -> tuple[str, str | None]:
    """The release and the mutant by whose rules a trace was written. Raises: `TraceError`."""
    try:
        with path.open(encoding="utf-8") as file:
            header = json.loads(file.readline())
        return header["release"], header["mutant"]
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{path} is no trace: `kspec broker --trace FILE` writes one") from error


class RecordedStep(NamedTuple):
    """A recorded step: its line in the file, its rule, and what was recorded. `fields`: the line, as it was read."""

    path: Path
    line: int
    rule: str
    recorded: Json
    fields: dict[str, Any]

    def outcome_by(self, broker: BrokerProtocol, controller: ControllerProtocol, quorum: QuorumProtocol) -> Json:
        """The outcome by these rules, written as `recorded` is. Raises: `TraceError`, and what the rule raises."""
        rules: dict[type, object] = {
            BrokerProtocol: broker,
            ControllerProtocol: controller,
            CoordinatorProtocol: coordinator_of(broker.name),
            TransactionProtocol: broker.transactions,
            QuorumProtocol: quorum,
        }
        try:
            handler = named(self.rule)
            party, state, given = (decode(self.fields[name], rules) for name in ("self", "state", "given"))
        except (ValueError, KeyError, TypeError) as error:
            raise TraceError(f"{self.path}:{self.line} is no step: {error}") from error
        return encode(handler(state, *given) if party is None else handler(party, state, *given), RULES)


def steps_of(path: Path) -> Iterator[RecordedStep]:
    """The steps of a trace. A last line that is cut off, as by a kill, is left out. Raises: `TraceError`."""
    with path.open(encoding="utf-8") as file:
        file.readline()
        for number, text in enumerate(file, start=2):
            if not text.endswith("\n"):
                return
            try:
                line = json.loads(text)
                yield RecordedStep(path, number, line["rule"], line["outcome"], line)
            except (ValueError, KeyError, TypeError) as error:
                raise TraceError(f"{path}:{number} is no step: {error}") from error


def replay(
    path: Path, broker: BrokerProtocol, controller: ControllerProtocol, quorum: QuorumProtocol
) -> Iterator[StepDifference | None]:
    """Run each step again: none where it comes out the same. Raises: `TraceError`."""
    for step in steps_of(path):
        try:
            outcome = step.outcome_by(broker, controller, quorum)
        except (ValueError, KeyError, TypeError) as error:
            raise TraceError(f"{path}:{step.line} is no step: {error}") from error
        yield None if outcome == step.recorded else StepDifference(step.line, step.rule, step.recorded, outcome)
