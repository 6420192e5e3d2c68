"""Run benchmarks, store their output in ``benchmarks/results`` and insert it into documents. Run by ``make bench``.

python -m benchmarks.run [NAME ...] [--render]
"""

import re
import subprocess
import sys
from pathlib import Path

from benchmarks import MISSED
from benchmarks.brief import TABLES
from dsfr.paper.experiments.provenance import describe_machine
from dsfr.storage.atomic import replacing

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCUMENTS = (
    README,
    *(
        ROOT / "docs" / name
        for name in ("benchmarks.md", "clusters.md", "federation.md", "privacy.md", "reliability.md")
    ),
)
"""Documents with marked blocks."""
RESULTS = ROOT / "benchmarks" / "results"
NAMES = (
    "fit_time",
    "rounds",
    "reductions",
    "clustering",
    "few_rounds",
    "tuning",
    "accuracy",
    "readable",
    "missing",
    "speed",
    "scaling",
    "memory",
    "startup",
    "engines",
    "traffic",
    "kills",
    "clusters",
    "federation",
    "privacy",
    "policies",
    "torture",
)
SUMMARIES = (
    "accuracy_design",
    "accuracy_judged",
    "readable_design",
    "readable_judged",
    "trade_off",
    "conformal",
    "package",
)
"""Written from the scores of the benchmark of accuracy: `readable_*` with `python -m benchmarks.readable`, and by
`python -m benchmarks.trade_off` and `benchmarks.conformal`; `package` by ``make package``."""
TABLE = "docs/reproduction/summary.md"
"""Written by ``make reproduce``."""


def with_results(readme: str) -> str:
    """The text of a document with every marked block replaced by the stored output of its benchmark or experiment."""
    blocks = {f"benchmarks/results/{name}.txt": "```\n{}\n```" for name in (*NAMES, *SUMMARIES)} | {TABLE: "{}"}
    for path, form in blocks.items():
        if f"<!-- {path} -->" in readme and (ROOT / path).exists():
            readme = _replaced(readme, path, form.format((ROOT / path).read_text().strip()))
    for name, table in TABLES.items():
        if f"<!-- {name} -->" in readme:
            readme = _replaced(readme, name, table())
    return readme


def _replaced(text: str, name: str, content: str) -> str:
    """The text with the block of this name replaced."""
    pattern = rf"<!-- {re.escape(name)} -->.*?<!-- end -->"
    return re.sub(pattern, lambda _: f"<!-- {name} -->\n{content}\n<!-- end -->", text, flags=re.DOTALL)


def machine() -> str:
    """Processor and number of cores, without the name of the host."""
    found = describe_machine()
    return f"measured on {found['processor']}, {found['cores']} cores"


def run(name: str) -> int:
    """Run one benchmark, store its output if it ran to its end, and return its exit code."""
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout)
    if done.returncode in (0, MISSED):
        RESULTS.mkdir(exist_ok=True)
        with replacing(RESULTS / f"{name}.txt") as file:
            file.write(f"{done.stdout.rstrip()}\n\n{machine()}\n".encode())
    else:
        print(f"{name} ended with exit code {done.returncode}: its stored results stay as they were", file=sys.stderr)
    return done.returncode


def main() -> None:
    unknown = [name for name in sys.argv[1:] if name not in (*NAMES, "--render")]
    if unknown:
        raise SystemExit(f"{unknown[0]!r} is no benchmark: give --render, or some of {', '.join(NAMES)}")
    chosen = [name for name in sys.argv[1:] if name in NAMES] or [name for name in NAMES if name != "torture"]
    codes = [run(name) for name in (chosen if "--render" not in sys.argv else ())]
    for document in DOCUMENTS:
        document.write_text(with_results(document.read_text()))
    raise SystemExit(any(codes))


if __name__ == "__main__":
    main()
