"""No rule of the protocol hides in `impl`: comparisons of offsets, epochs and sequences there are about files or frames.

The list below has them all. A new one needs a reason, or a function in `spec`.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.places import REPOSITORY

IMPL = REPOSITORY / "impl"
ABOUT = re.compile(r"(^|_)(offset|offsets|epoch|sequence|watermark)($|_)")
FILES = ("impl/storage/", "impl/records/", "impl/dump/")
"""Files themselves: where a batch lies, and where a segment ends."""

KNOWN = {
    "impl/broker/fetch_sessions.py finish": "what `spec` has said of the session's epoch",
    "impl/controller/core.py _replay": "whether the image begins before the files do, and so with their snapshot",
    "impl/controller/quorum/messages.py _batches": "whether the batches of an answer lie side by side",
    "impl/controller/quorum/messages.py _fetch_answer": "which fields are there",
    "impl/wire/quorum.py diverging_in": "whether the field is there",
    "impl/controller/quorum/voting.py _follow_up": "whether somebody is to be told of a change that `spec` has decided",
    "impl/server/controller.py _decides_in": "an answer that was decided in an epoch in which another controller decides",
    "impl/controller/votes.py _is_present": "whether a leader's address is heard of, which is told with its request",
    "impl/metadata/active.py pass_over": "that all that was decided is stored",
    "impl/metadata/log.py voters_found": "reads the log's files to their end",
    "impl/metadata/log.py _open_epoch_of_snapshot": "a log without records has the epoch of its snapshot",
    "impl/metadata/files.py __init__": "files that end before the snapshot beside them begin again at it",
    "impl/metadata/files.py take_snapshot": "that the image has all of the log",
    "impl/server/shell.py take_snapshot": "that the image has all of the log",
    "impl/metadata/files.py batches": "reads the log's files to their end",
    "impl/replica/fetch_messages.py fetched": "which batches of an answer lie side by side, and which fields are there",
    "impl/replica/fetching.py _ask_records": "what `spec` has said of the session's epoch",
    "impl/replica/metadata_follower.py _cut": "what is read ahead and not committed goes, from where `spec` cuts",
    "impl/replica/metadata_follower.py _look_for_leader": "the newest controller epoch heard of",
    "impl/replica/metadata_follower.py _replay": "what the controller calls committed is taken",
    "impl/replica/metadata_follower.py _take": "which fields of the answer are there",
    "impl/metadata/files.py replay_into": "batches that are not replayed (control records) have offsets, too",
    "impl/metadata/image.py go_to": "records that are not replayed have offsets, too",
    "impl/broker/core.py take": "whether somebody is to be told that more is committed",
    "impl/requests/coordinator_log.py next_piece": "reads the log's files to their end",
    "impl/requests/offsets.py _list_one": "which fields of the answer are filled in",
    "impl/server/housekeeping.py apply_retention_to": "whether files can be deleted; `spec` decides how far",
}


def names_in(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute):
            yield inner.attr
        elif isinstance(inner, ast.Name):
            yield inner.id


def comparisons() -> set[str]:
    found = set()
    for path in sorted(IMPL.rglob("*.py")):
        name = str(path.relative_to(REPOSITORY))
        if name.startswith(FILES):
            continue
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            for node in ast.walk(function):
                sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
                if any(ABOUT.search(one) for side in sides for one in names_in(side)):
                    found.add(f"{name} {function.name}")
    return found


def test_every_comparison_of_an_offset_or_an_epoch_is_about_files_or_frames() -> None:
    assert comparisons() == set(KNOWN)


WORDS_OF_CHANGES = (
    *("NOT_LEADER_OR_FOLLOWER", "INCONSISTENT_CLUSTER_ID", "INVALID_REQUEST", "UNSUPPORTED_VERSION", "DUPLICATE_VOTER"),
    "VOTER_NOT_FOUND",
)

CHOSEN = {
    "impl/broker/pending.py fail KAFKA_STORAGE_ERROR": "the files could not be written: no rule sees them",
    "impl/wire/quorum.py error_of UNKNOWN_SERVER_ERROR": "an error that `spec` has no name for",
    "impl/controller/quorum/voter_changes.py _error_in NETWORK_EXCEPTION": "a connection that was lost has no answer",
    "impl/controller/quorum/voting.py _follow_up NOT_LEADER_OR_FOLLOWER": "who waits at one that leads no more",
    **{f"impl/controller/voter_changes.py _said {error}": "its words" for error in WORDS_OF_CHANGES},
    "impl/controller/quorum/messages.py answer_taken UNSUPPORTED_VERSION": "what a channel says of an older release",
    "impl/server/network/channels.py _next UNSUPPORTED_VERSION": "no version of the other side can say what is asked",
    "impl/broker/core.py take UNKNOWN_SERVER_ERROR": "the rule has closed the connection; nobody reads this answer",
    "impl/requests/produce.py  UNKNOWN_TOPIC_ID": "which errors of `spec` say that there is no such partition",
    "impl/requests/produce.py  UNKNOWN_TOPIC_OR_PARTITION": "which errors of `spec` say that there is no such partition",
    "impl/broker/verification.py _ask COORDINATOR_NOT_AVAILABLE": "nobody leads the partition that keeps the transaction",
    "impl/broker/verification.py _ask INVALID_PRODUCER_EPOCH": "`spec` lets the question stay that waits for a later epoch",
    "impl/broker/verification.py _verdict NETWORK_EXCEPTION": "no answer came",
    "impl/requests/produce.py _end_verification NETWORK_EXCEPTION": "no answer came about this partition",
    "impl/requests/produce.py _produce UNKNOWN_SERVER_ERROR": "what `spec` says fails as a whole",
}
"""Errors that are named in `impl` and not only compared with: each is chosen there, with a reason."""

OF_THIS_SIDE = {"self", "core", "lifecycle", "fetcher", "partition"}

FILLED_IN = {
    "impl/replica/fetching.py _look_at PendingFetch": "what is asked, noted when it is asked",
}
"""Answers and questions that are made with what this side knows, each with the reason why no rule is made vacuous by it."""


def functions_in(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """The statements of a file, each with the name of the innermost function that it stands in."""

    def walk(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            name = child.name if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else inside
            yield name, child
            yield from walk(child, name)

    yield from walk(ast.parse(path.read_text(encoding="utf-8")), "")


def sources() -> Iterator[tuple[str, Path]]:
    for path in sorted(IMPL.rglob("*.py")):
        yield str(path.relative_to(REPOSITORY)), path


def chosen_errors() -> set[str]:
    """Errors of Kafka that are named outside of a comparison, but for the absence of one."""
    found = set()
    for name, path in sources():
        nodes = list(functions_in(path))
        compared = {
            id(inner)
            for _, node in nodes
            if isinstance(node, ast.Compare)
            for side in (node.left, *node.comparators)
            for inner in ast.walk(side)
        }
        for function, node in nodes:
            is_error = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Error"
            if is_error and isinstance(node, ast.Attribute) and node.attr != "NONE" and id(node) not in compared:
                found.add(f"{name} {function} {node.attr}")
    return found


def filled_in_answers() -> set[str]:
    """Answers and questions in the words of `spec` that are made with what this side knows itself.

    A rule that compares an answer with its own state says nothing if the answer was made from that state.
    """
    found = set()
    for name, path in sources():
        if not name.startswith("impl/replica/"):
            continue
        for function, node in functions_in(path):
            made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if not made or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if not node.func.id.endswith(("Response", "PendingFetch")):
                continue
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if any(one in OF_THIS_SIDE for value in given for one in names_in(value)):
                found.add(f"{name} {function} {node.func.id}")
    return found


def test_every_error_that_impl_chooses_has_a_reason() -> None:
    assert chosen_errors() == set(CHOSEN)


def test_every_answer_that_impl_fills_in_has_a_reason() -> None:
    assert filled_in_answers() == set(FILLED_IN)
