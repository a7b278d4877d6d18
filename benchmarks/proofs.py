"""The duration of `kspec prove`, start included: wall time, and the slowest obligation.

Run it as `python -m benchmarks.proofs [--replicas N ...] [--seeds N] [--workers W]`.
"""

import argparse
import json
import resource
import subprocess
import sys
import time


def main() -> None:
    """Prove kip-320 for each number of replicas and each seed of Z3, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--theorem", default="kip-320")
    parser.add_argument("--replicas", nargs="+", default=["3"], help="numbers, or any")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    print("replicas, seed, status, obligations, slowest, wall time, CPU time")
    for replicas in asked.replicas:
        for seed in range(asked.seeds):
            print(replicas, seed, *measured(asked.theorem, replicas, seed, asked.workers), sep=", ", flush=True)


def measured(theorem: str, replicas: str, seed: int, workers: int) -> list[str]:
    """One run of the command: its status, how many obligations, the slowest, wall time and CPU time in seconds."""
    options = ["--replicas", replicas, "--seed", seed, "--workers", workers, "--json", "--quiet"]
    command = [sys.executable, "-c", "from kspec.cli.main import main; main()", "prove", theorem, *map(str, options)]
    started, used = time.perf_counter(), _cpu()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall, cpu = time.perf_counter() - started, _cpu() - used
    (told,) = json.loads(done.stdout)["theorems"]
    slowest = max(obligation["seconds"] for obligation in told["obligations"])
    return [told["status"], str(len(told["obligations"])), f"{slowest:.2f} s", f"{wall:.1f} s", f"{cpu:.1f} s"]


def _cpu() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


if __name__ == "__main__":
    main()
