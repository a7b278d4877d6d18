"""`python -m kspec.trials.history FILE...`: the anomalies of histories, as JSON.

Exit status: 0 if there are none, 1 if there are, 2 if a file is no history.
"""

import json
import sys
from pathlib import Path

from kspec.trials.history.anomalies import anomalies_in, count_by_name
from kspec.trials.history.events import HistoryError, read_history


def main(files: list[str]) -> int:
    """Print what is found in each file."""
    status = 0
    for file in files:
        try:
            found = anomalies_in(read_history(Path(file)))
        except HistoryError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        report = {"file": file, "counts": count_by_name(found), "anomalies": [one.as_json() for one in found]}
        sys.stdout.write(json.dumps(report, indent=1) + "\n")
        status |= bool(found)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
