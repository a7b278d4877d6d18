"""Another solver's opinion: cvc5 reads the obligations that `kspec prove --export DIR` wrote.

`python -m proofs.commands.confirm DIR [SECONDS]` prints a line for each, which is proved if cvc5 finds it unsatisfiable too.
Exit status: 0 all are, 1 some is satisfiable, so that Z3 or cvc5 is wrong, 3 cvc5 does not know of some in so many seconds.
"""

import sys
from collections import Counter
from pathlib import Path

import cvc5

SECONDS = 20.0


def answer(path: Path, seconds: float) -> str:
    """What cvc5 says of an obligation: `unsat`, `sat` or `unknown`."""
    solver = cvc5.Solver()
    solver.setOption("fresh-binders", "true")
    solver.setOption("tlimit-per", str(int(seconds * 1000)))
    parser = cvc5.InputParser(solver)
    parser.setFileInput(cvc5.InputLanguage.SMT_LIB_2_6, str(path))
    said = ""
    while not (order := parser.nextCommand()).isNull():
        said = order.invoke(solver, parser.getSymbolManager()).strip() or said
    return said.split()[0] if said else "unknown"


def main() -> int:
    """Read all obligations in a folder."""
    folder, seconds = Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else SECONDS
    found: Counter[str] = Counter()
    for path in sorted(folder.glob("*.smt2")):
        said = answer(path, seconds)
        found[said] += 1
        print(f"{said:<8} {path.name}", flush=True)
    print(", ".join(f"{number} {said}" for said, number in found.most_common()) or f"no .smt2 file in {folder}")
    return 1 if found["sat"] else 0 if found and set(found) == {"unsat"} else 3


if __name__ == "__main__":
    sys.exit(main())
