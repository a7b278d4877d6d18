"""The wheel of this repository, built and installed into an environment of its own."""

import subprocess
import sys
import venv
from pathlib import Path

from tests.places import REPOSITORY

EMERGENCY_S = 300.0
"""Nothing here takes that long."""


def built_wheel(folder: Path) -> Path | str:
    """The wheel, or why there is none: the tools that build it come from the package index, unless pip has kept them."""
    command = [sys.executable, "-m", "pip", "wheel", str(REPOSITORY), "--no-deps", "--quiet", "--wheel-dir", str(folder)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=EMERGENCY_S, check=False)
    if made.returncode != 0:
        return made.stderr.strip().splitlines()[-1]
    (found,) = folder.glob("kafka_replication_spec-*.whl")
    return found


def installed(place: Path, *wheels: Path) -> str:
    """The Python of a new environment with these wheels, in this order, beside the libraries that these tests use."""
    venv.create(place, symlinks=True)
    python = str(place / "bin" / "python")
    for wheel in wheels:
        install = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "--no-deps",
            "--no-index",
            "--quiet",
            str(wheel),
        ]
        subprocess.run(install, check=True, timeout=EMERGENCY_S)
    (libraries,) = place.glob("lib/*/site-packages")
    others = [entry for entry in sys.path if Path(entry).is_dir() and not (Path(entry) / "kspec").is_dir()]
    (libraries / "libraries.pth").write_text("\n".join(others) + "\n", encoding="utf-8")
    return python
