"""Which of several Pythons is the fastest: `python3 .ci/fastest.py PYTHON...` prints one of them.

Builds differ more than versions: one without profile-guided optimisation, as tools that build Python from source make it by
default, takes up to 1.4 times as long for what this project does as a distribution's.
"""

import subprocess
import sys

WORK = """
import time

def call(number, other=1):
    return (number, other)[0] + 1

def work():
    found = {}
    for number in range(30_000):
        found[number & 255] = [call(number), (number, str(number & 15))]

times = []
for _ in range(5):
    start = time.process_time()
    work()
    times.append(time.process_time() - start)
print(min(times))
"""
"""Calls, tuples, lists and a dict: what rules of a protocol are made of."""

ROUNDS = 2
ENOUGH = 0.9
"""A later one must take less than this part of the time of an earlier one."""


def seconds(python: str) -> float:
    """How long a Python takes for the work; forever if it cannot do it."""
    done = subprocess.run([python, "-c", WORK], capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else float("inf")


def fastest(pythons: list[str]) -> str:
    """The fastest, or one before it in the list that is about as fast. All take turns."""
    times = dict.fromkeys(pythons, float("inf"))
    for _ in range(ROUNDS):
        for python in pythons:
            times[python] = min(times[python], seconds(python))
    chosen = pythons[0]
    for python in pythons[1:]:
        if times[python] < ENOUGH * times[chosen]:
            chosen = python
    return chosen


if __name__ == "__main__":
    print(fastest(sys.argv[1:]))
