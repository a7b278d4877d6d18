"""Time the compiled engine beside other model checkers on one model: `python -m benchmarks.engines`.

The model is `kip-320`, three replicas, checked for `StrongIsr`, in the Murphi and Promela versions under `peers/`. Engines
take turns, so that all see the same machine; the table has medians of whole-process wall time and peak resident memory.
Peers are built before and not timed building; ours has its compiled kernels cached, as theirs are. Peers that are not
installed are named. TLC runs the published TLA+ module if the environment says where they are: `TLC_CLASSPATH` for Java,
`KAFKA_TLA` the folder with `Kip320.tla`.
"""

import argparse
import json
import os
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
REPOSITORY = HERE.parent
LOG_SIZE = RECORDS = 3
SPIN_FLAGS = [
    "-O3",
    "-march=native",
    "-DSAFETY",
    "-DNOREDUCE",
    "-DNOBOUNDCHECK",
    "-DNOFAIR",
    "-DVECTORSZ=96",
    "-DMEMLIM=18000",
]


@dataclass(slots=True)
class Engine:
    """A command to time, a pattern that finds its number of distinct states, and what was measured."""

    name: str
    command: list[str]
    states: str
    seconds: list[float] = field(default_factory=list)
    peak_bytes: list[int] = field(default_factory=list)
    distinct: int | None = None
    orbits: bool = False
    """Whether it visits one state of each orbit, so that its number of states is another."""

    def run(self) -> str:
        """Run it once more; what it printed."""
        before = time.perf_counter()
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(self.command, stdout=output, stderr=subprocess.STDOUT, cwd=REPOSITORY)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds.append(time.perf_counter() - before)
            output.seek(0)
            text = output.read().decode(errors="replace")
        self.peak_bytes.append(usage.ru_maxrss * 1024)
        found = re.findall(self.states, text)
        if not found:
            raise SystemExit(f"{self.name} gave no number of states:\n{text[-2000:]}")
        self.distinct = int(found[-1].replace(",", ""))  # the last: before it, progress is told
        return text


def built_in(folder: Path, epochs: int) -> tuple[list[Engine], list[str]]:
    """The peers that can be built on this machine, in `folder`, and the names of those that cannot."""
    engines, missing = [], []
    compiler = shutil.which("gcc")
    if shutil.which("spin") and compiler:
        spin = ["spin", f"-DL={LOG_SIZE}", f"-DR={RECORDS}", f"-DE={epochs}", "-a", str(HERE / "peers" / "kip320.pml")]
        subprocess.run(spin, cwd=folder, check=True, capture_output=True)
        for name, flags in (("SPIN, depth first", []), ("SPIN, depth first, 2 cores", ["-DNCORE=2"])):
            program = folder / f"pan{len(flags)}"
            subprocess.run(
                [compiler, *SPIN_FLAGS, *flags, "-o", str(program), "pan.c"], cwd=folder, check=True, capture_output=True
            )
            search = [str(program), "-E", "-m10000", "-w24" if epochs < 3 else "-w27"]
            engines.append(Engine(name, search, r"([\d,]+) states, stored"))
    else:
        missing.append("SPIN (needs `spin` and `gcc`)")
    if shutil.which("rumur") and compiler:
        text = (HERE / "peers" / "kip320.m").read_text()
        for constant, value in (("LOGSIZE", LOG_SIZE), ("MAXREC", RECORDS), ("MAXEP", epochs)):
            text = text.replace(constant, str(value))
        (folder / "kip320.m").write_text(text)
        rumur = ["rumur", "--deadlock-detection", "off", "--threads", "2", "--output", "rumur.c", "kip320.m"]
        subprocess.run(rumur, cwd=folder, check=True, capture_output=True)
        build = [compiler, "-std=c11", "-O3", "-march=native", "-o", "rumur", "rumur.c", "-lpthread", "-mcx16"]
        subprocess.run(build, cwd=folder, check=True, capture_output=True)
        engines.append(Engine("Rumur, 2 threads", [str(folder / "rumur")], r"([\d,]+) states"))
    else:
        missing.append("Rumur (needs `rumur` and `gcc`)")
    if "TLC_CLASSPATH" in os.environ and "KAFKA_TLA" in os.environ and shutil.which("java"):
        engines.append(tlc_in(folder, epochs))
    else:
        missing.append("TLC (needs `java`, and `TLC_CLASSPATH` and `KAFKA_TLA` in the environment)")
    return engines, missing


def tlc_in(folder: Path, epochs: int) -> Engine:
    """TLC on the published module, with two workers."""
    for module in Path(os.environ["KAFKA_TLA"]).glob("*.tla"):
        shutil.copy(module, folder)
    (folder / "Kip320.cfg").write_text(
        "CONSTANTS\n  Replicas = {r1, r2, r3}\n"
        f"  LogSize = {LOG_SIZE}\n  MaxRecords = {RECORDS}\n  MaxLeaderEpoch = {epochs}\n"
        "INIT Init\nNEXT Next\nINVARIANTS StrongIsr\nCHECK_DEADLOCK FALSE\n"
    )
    java = ["java", "-XX:+UseParallelGC", "-Xmx12g", "-cp", os.environ["TLC_CLASSPATH"], "tlc2.TLC", "-workers", "2"]
    states = ["-metadir", str(folder / "states"), "-config", str(folder / "Kip320.cfg"), str(folder / "Kip320.tla")]
    return Engine("TLC, 2 workers", [*java, *states], r"([\d,]+) distinct states found, 0 states left")


def table(engines: Sequence[Engine]) -> str:
    """The measurements as a Markdown table; ratios are to the compiled engine with all cores."""
    ours = statistics.median(engines[0].seconds)
    lines = [
        "| engine | distinct states | seconds | states/s | peak memory | bytes/state | times ours |",
        "|---|---|---|---|---|---|---|",
    ]
    for engine in engines:
        seconds, peak, distinct = (
            statistics.median(engine.seconds),
            statistics.median(engine.peak_bytes),
            engine.distinct or 0,
        )
        lines.append(
            f"| {engine.name} | {distinct:,} | {seconds:.2f} | {distinct / seconds:,.0f} | {peak / 1e6:,.0f} MB |"
            f" {peak / distinct:.1f} | {seconds / ours:.2f}x |"
        )
    return "\n".join(lines)


def main() -> None:
    """Build the peers, let everyone take turns, print the table and put it on the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=__doc__)
    parser.add_argument("--epochs", type=int, default=2, help="highest leader epoch (2: 4.1 M states, 3: 64.7 M)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each engine")
    parser.add_argument("--only", default="", help="regular expression: run only peers whose name matches")
    arguments = parser.parse_args()
    model = ["kip-320", f"log_size={LOG_SIZE}", f"max_records={RECORDS}", f"max_epoch={arguments.epochs}"]
    command = [sys.executable, "-m", "benchmarks.compiled_run", *model, "properties=StrongIsr"]
    ours = r'"distinct": (\d+)'
    cores = os.cpu_count() or 1
    engines = [
        Engine(f"compiled, {cores} workers", command, ours),
        Engine("compiled, 1 worker", [*command, "workers=1"], ours),
        Engine(f"compiled, {cores} workers, symmetry", [*command, "symmetry=1"], ours, orbits=True),
    ]
    small = [sys.executable, "-m", "benchmarks.compiled_run", "kip-320", "replicas=2", "max_epoch=2"]
    start = Engine("compiled, 5,973 states, start to finish", small, ours)
    for engine in (start, engines[2]):  # they compile the kernels, if these are not cached
        engine.run()
        engine.seconds.clear()
        engine.peak_bytes.clear()
    with tempfile.TemporaryDirectory() as folder:
        peers, missing = built_in(Path(folder), arguments.epochs)
        engines += [peer for peer in peers if re.search(arguments.only, peer.name)]
        for _ in range(arguments.repeat):
            start.run()
            for engine in engines:
                engine.run()
                print(f"{engine.name}: {engine.seconds[-1]:.2f} s", flush=True)
    if len({engine.distinct for engine in engines if not engine.orbits}) > 1:
        raise SystemExit("the engines disagree: " + json.dumps({engine.name: engine.distinct for engine in engines}))
    section = (
        f"`kip-320`, 3 replicas, log {LOG_SIZE}, records {RECORDS}, epochs 0 to {arguments.epochs}, `StrongIsr` checked"
    )
    text = (
        f"{section}; medians of {arguments.repeat} runs that took turns, {cores} cores ({platform.machine()}),"
        f" Python {platform.python_version()}.\n\n{table(engines)}\n\n"
        f"A small model ({start.distinct:,} states) from interpreter start to finish:"
        f" {statistics.median(start.seconds):.2f} s.\n\n"
        + (f"Not measured here: {'; '.join(missing)}.\n" if missing else "")
    )
    print("\n" + text)
    title = f"epochs {arguments.epochs}" + (f", {arguments.only}" if arguments.only else "")
    write_readme(title, text)


def command_line() -> str:
    """The command that this process was started with, with all its arguments."""
    module = sys.modules["__main__"].__spec__
    assert module is not None, "benchmarks are started with `python -m`"
    return shlex.join(["python", "-m", module.name, *sys.argv[1:]])


def write_readme(name: str, text: str) -> None:
    """Replace one section of the page, which begins with the command given, and keep the others."""
    page = HERE / "README.md"
    head = (
        "# Benchmarks\n\nEach section is written by the command that it begins with."
        " Times are of whole processes; compiled code is cached.\n"
    )
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page.read_text(), re.M | re.S)) if page.exists() else {}
    sections[name] = f"`{command_line()}`\n\n{text}"
    page.write_text("\n".join([head, *(f"## {title}\n\n{sections[title].strip()}\n" for title in sorted(sections))]))


if __name__ == "__main__":
    main()
