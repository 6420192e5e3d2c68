"""Run benchmarks, keep what they print in ``benchmarks/results``, and put it into the README. Run by ``make bench``."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
NAMES = ("fit_time", "rounds")
TABLE = "docs/reproduction/summary.md"
"""Written by ``make reproduce``."""


def with_results(readme: str) -> str:
    """The README's text with every marked block replaced by the stored output of its benchmark or experiment."""
    blocks = {f"benchmarks/results/{name}.txt": "```\n{}\n```" for name in NAMES} | {TABLE: "{}"}
    for path, form in blocks.items():
        block = f"<!-- {path} -->\n{form.format((ROOT / path).read_text().strip())}\n<!-- end -->"
        pattern = rf"<!-- {re.escape(path)} -->.*?<!-- end -->"
        readme = re.sub(pattern, lambda _, block=block: block, readme, flags=re.DOTALL)
    return readme


def main() -> None:
    failed = False
    for name in NAMES if "--render" not in sys.argv else ():
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}"], stdout=subprocess.PIPE, text=True, check=False
        )
        print(done.stdout)
        failed |= done.returncode != 0
        if done.stdout.strip():
            (ROOT / "benchmarks" / "results" / f"{name}.txt").write_text(done.stdout)
    README.write_text(with_results(README.read_text()))
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
