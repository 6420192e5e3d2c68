"""Seconds to import the package and to show the help, compared with scikit-learn and with Python itself.

python -m benchmarks.startup
"""

import subprocess
import sys
import time

import numpy as np

import dsfr
from benchmarks import MISSED

REPEATS = 15
IMPORT_RATIO, HELP_SECONDS = 1.3, 0.5
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import dsfr": ["-c", "import dsfr"],
    "from dsfr import SFRRegressor": ["-c", "from dsfr import SFRRegressor"],
    "import sklearn.linear_model": ["-c", "import sklearn.linear_model"],
    "dsfr --help": ["-m", "dsfr", "--help"],
}


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(REPEATS + 1):  # in turns; the first of each fills the file cache
        for name, arguments in COMMANDS.items():
            times[name].append(seconds(arguments))
    median = {name: float(np.median(values[1:])) for name, values in times.items()}
    print(f"dsfr {dsfr.__version__}, seconds of a new process, medians of {REPEATS} in turns\n")
    for name, value in median.items():
        print(f"{name:<32} {value:>7.3f}")
    base = median["python -c pass"]
    theirs = median["import sklearn.linear_model"] - base
    checks = {
        f"import dsfr within {IMPORT_RATIO}x of scikit-learn's linear models": (median["import dsfr"] - base) / theirs
        <= IMPORT_RATIO,
        f"import of the estimator within {IMPORT_RATIO}x, too": (median["from dsfr import SFRRegressor"] - base)
        / theirs
        <= IMPORT_RATIO,
        f"help under {HELP_SECONDS} s more than python": median["dsfr --help"] - base < HELP_SECONDS,
    }
    print()
    for what, reached in checks.items():
        print(f"{what}: {'yes' if reached else 'NO'}")
    raise SystemExit(0 if all(checks.values()) else MISSED)


if __name__ == "__main__":
    main()
