"""No rule of the protocol hides in `impl`: comparisons of offsets, epochs and sequences there are about files or frames.

The list below has them all. A new one needs a reason, or a function in `spec`.
"""

import ast
import re
from collections.abc import Iterator

from tests.places import REPOSITORY

IMPL = REPOSITORY / "impl"
ABOUT = re.compile(r"(^|_)(offset|offsets|epoch|sequence|watermark)($|_)")
FILES = ("impl/storage/", "impl/records/", "impl/dump/")
"""Files themselves: where a batch lies, and where a segment ends."""

ONLOOKERS = ("impl/cluster/", "impl/faults/", "impl/history/", "impl/sim/")
"""They run clusters, play clients, and judge what these have seen: no broker or controller does what is decided there."""

KNOWN = {
    "impl/broker/fetch_sessions.py finish": "what `spec` has said of the session's epoch",
    "impl/metadata/files.py __init__": "files that end before the snapshot beside them begin again at it",
    "impl/metadata/files.py take_snapshot": "that the image has all of the log",
    "impl/server/shell.py take_snapshot": "that the image has all of the log",
    "impl/metadata/files.py batches": "reads the log's files to their end",
    "impl/replica/fetch_messages.py fetched": "which batches of an answer lie side by side, and which fields are there",
    "impl/replica/fetching.py _ask_records": "what `spec` has said of the session's epoch",
    "impl/replica/metadata_follower.py _cut": "what is read ahead and not committed goes: KRaft is not in `spec`",
    "impl/replica/metadata_follower.py _replay": "what the controller calls committed is taken: KRaft is not in `spec`",
    "impl/replica/metadata_follower.py _take": "the newest controller epoch heard of: KRaft is not in `spec`",
    "impl/metadata/files.py replay_into": "batches that are not replayed (control records) have offsets, too",
    "impl/metadata/image.py go_to": "records that are not replayed have offsets, too",
    "impl/requests/group_log.py resign": "whether a partition was read in the epoch in which it is led",
    "impl/requests/group_log.py _records": "reads the log's files to their end",
    "impl/requests/offsets.py _list_one": "which fields of the answer are filled in",
    "impl/server/housekeeping.py _retain": "whether files can be deleted; `spec` decides how far",
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
        if name.startswith((*FILES, *ONLOOKERS)):
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
