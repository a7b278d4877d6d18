"""Confirmation by another solver: cvc5 reads the obligations that `kspec prove --export DIR` wrote.

`python -m kspec.proofs.commands.confirm DIR [STEPS]` prints a line for each. An obligation is proved if cvc5 also finds it
unsatisfiable. Exit status: 0 all are proved, 1 some obligation is satisfiable, so that Z3 or cvc5 is wrong, 3 cvc5 has no
answer to some within so many steps, or the clock stopped it.
"""

import sys
from collections import Counter
from pathlib import Path
from time import monotonic

import cvc5

STEPS = 10_000_000
"""The limit of cvc5 for an obligation, in its own steps. It takes some 400,000 of them in a second."""

EMERGENCY_S = 600.0
"""After so many seconds the clock stops cvc5: many times as long as any obligation takes."""


def answer(path: Path, steps: int) -> str:
    """cvc5's answer to an obligation: `unsat`, `sat` or `unknown`; or that the clock stopped it."""
    solver = cvc5.Solver()
    solver.setOption("fresh-binders", "true")
    solver.setOption("rlimit-per", str(steps))
    solver.setOption("tlimit-per", str(int(EMERGENCY_S * 1000)))
    parser = cvc5.InputParser(solver)
    parser.setFileInput(cvc5.InputLanguage.SMT_LIB_2_6, str(path))
    said, started = "", monotonic()
    while not (order := parser.nextCommand()).isNull():
        said = order.invoke(solver, parser.getSymbolManager()).strip() or said
    found = said.split()[0] if said else "unknown"
    return "stopped by the clock" if found == "unknown" and monotonic() - started >= EMERGENCY_S else found


def main() -> int:
    """Read all obligations in a folder."""
    folder, steps = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else STEPS
    found: Counter[str] = Counter()
    for path in sorted(folder.glob("*.smt2")):
        said = answer(path, steps)
        found[said] += 1
        print(f"{said:<8} {path.name}", flush=True)
    print(", ".join(f"{number} {said}" for said, number in found.most_common()) or f"no .smt2 file in {folder}")
    return 1 if found["sat"] else 0 if found and set(found) == {"unsat"} else 3


if __name__ == "__main__":
    sys.exit(main())
