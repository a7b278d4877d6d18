"""The files with which the page runs live from any web server: the worker, Pyodide, and the rooms."""

import gzip
import io
import json
import shutil
import zipfile
from pathlib import Path

from kspec.cli.explorer.npm import PYODIDE, PYODIDE_FILES, PYODIDE_PROGRAM
from kspec.cli.explorer.page import PAGE
from kspec.cli.explorer.rooms import rooms_zip

NOT_NEEDED = frozenset(
    (
        *("_markupbase", "_pydatetime", "_pyio", "_pyrepl", "antigravity", "argparse", "bdb", "cProfile", "cmd", "code"),
        *("configparser", "csv", "ctypes", "doctest", "email", "fileinput", "ftplib", "getopt", "getpass", "gettext"),
        *("html", "http", "imaplib", "mailbox", "mimetypes", "multiprocessing", "netrc", "optparse", "pdb", "pickletools"),
        *("plistlib", "poplib", "profile", "pstats", "pty", "py_compile", "pyclbr", "pydoc", "rlcompleter", "smtplib"),
        *("socketserver", "sqlite3", "tarfile", "this", "timeit", "trace", "tracemalloc", "tty", "unittest", "wave"),
        *("webbrowser", "wsgiref", "xml", "xmlrpc", "zipapp"),
    )
)
"""Modules and packages of Python's library that the worker does without: mail, markup, other processes, consoles, what looks
for errors, and Python's own copies of what is compiled in.
"""

NEED_THESE = frozenset(
    (
        *("asyncio/proactor_events", "asyncio/windows_events", "asyncio/windows_utils", "concurrent/futures/process"),
        *("logging/config", "logging/handlers", "urllib/error", "urllib/request", "urllib/robotparser"),
    )
)
"""Modules that need these, or another system."""

ENCODINGS = frozenset(
    ("__init__", "aliases", "ascii", "cp437", "idna", "latin_1", "punycode", "raw_unicode_escape", "unicode_escape")
)
"""The encodings that the worker has; besides them all whose name begins with `utf`."""


def write_worker(folder: Path) -> list[Path]:
    """Put `worker.js`, `rooms.zip` and `pyodide/` into a folder, and return them. `PackageError` if there is no Pyodide."""
    python = PYODIDE.folder()
    (folder / "pyodide").mkdir(parents=True, exist_ok=True)
    written = [folder / "worker.js", folder / "rooms.zip"]
    shutil.copyfile(PAGE / "worker.js", written[0])
    written[1].write_bytes(rooms_zip())
    for name in PYODIDE_FILES:
        content = (python / name).read_bytes()
        if name == PYODIDE_PROGRAM:
            written.append(folder / "pyodide" / f"{name}.packed")
            written[-1].write_bytes(gzip.compress(content, mtime=0))
        else:
            written.append(folder / "pyodide" / name)
            written[-1].write_bytes(LIGHTER[name](content) if name in LIGHTER else content)
    return written


def is_needed(name: str) -> bool:
    """Whether the worker has this file of Python's library: `json/decoder.py`."""
    top, _, rest = name.partition("/")
    if top == "encodings" and rest:
        encoding = rest.removesuffix(".py")
        return encoding in ENCODINGS or encoding.startswith("utf")
    return top.removesuffix(".py") not in NOT_NEEDED and name.removesuffix(".py") not in NEED_THESE


def lighter_library(archive: bytes) -> bytes:
    """Python's library without what the worker does not need. Its files are as they were."""
    written = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(archive)) as whole,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as kept,
    ):
        for entry in whole.infolist():
            if is_needed(entry.filename):
                kept.writestr(entry, whole.read(entry), entry.compress_type)
    return written.getvalue()


def lighter_list(lock: bytes) -> bytes:
    """Pyodide's list of packages without the packages: nothing asks for one."""
    return json.dumps({**json.loads(lock), "packages": {}}).encode()


LIGHTER = {"python_stdlib.zip": lighter_library, "pyodide-lock.json": lighter_list}
"""Files of Pyodide that are made smaller."""
