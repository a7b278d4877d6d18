"""Large exhaustive runs: `python -m benchmarks.large`. Each is a process of its own, and needs up to 3 GB of memory."""

import json
import os
import sys

from benchmarks.engines import Engine, write_readme

CASES = (
    ("4 replicas, log 2, records 2, epochs to 2", "replicas=4 log_size=2 max_records=2 max_epoch=2"),
    ("4 replicas, log 2, records 2, epochs to 3", "replicas=4 log_size=2 max_records=2 max_epoch=3 symmetry=1"),
    ("3 replicas, log 3, records 3, epochs to 4", "replicas=3 log_size=3 max_records=3 max_epoch=4 symmetry=1"),
)


def main() -> None:
    """Run them one after another; print the table and put it on the page."""
    lines = [
        "| configuration | distinct states | visited | transitions | depth | violated | seconds | peak | bytes each |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for description, settings in CASES:
        command = [sys.executable, "-m", "benchmarks.compiled_run", "kip-320", *settings.split(), "properties=StrongIsr"]
        engine = Engine(description, command, r'"distinct": (\d+)')
        found = json.loads(engine.run().splitlines()[-1])
        peak, distinct = engine.peak_bytes[0], found["distinct"]
        stopped = f" (stopped: {found['stopped_because']})" if found["stopped_because"] else ""
        lines.append(
            f"| {description}{', symmetry' if 'symmetry' in settings else ''} | {found['represented']:,} | {distinct:,} |"
            f" {found['transitions']:,} | {found['depth']} | {', '.join(found['violated']) or 'nothing'}{stopped} |"
            f" {engine.seconds[0]:,.0f} | {peak / 1e6:,.0f} MB | {peak / distinct:.1f} |"
        )
        print(lines[-1], flush=True)
    text = (
        f"`kip-320`, `StrongIsr` checked, single runs on {os.cpu_count()} cores. With symmetry, one state of each orbit is"
        " visited, and the number of distinct states is the exact sum of the orbits' sizes.\n\n" + "\n".join(lines) + "\n"
    )
    write_readme("large", text)


if __name__ == "__main__":
    main()
