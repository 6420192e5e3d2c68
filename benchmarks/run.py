"""Run benchmarks, keep what they print in ``benchmarks/results``, and put it into the README. Run by ``make bench``."""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
NAMES = ("paper_numbers", "fit_time", "rounds")


def with_results(readme: str) -> str:
    """The README's text with every marked block replaced by the stored output of its benchmark."""
    for name in NAMES:
        text = (HERE / "results" / f"{name}.txt").read_text().strip()
        block = f"<!-- benchmarks/results/{name}.txt -->\n```\n{text}\n```\n<!-- end -->"
        pattern = rf"<!-- benchmarks/results/{name}\.txt -->.*?<!-- end -->"
        readme = re.sub(pattern, lambda _, block=block: block, readme, flags=re.DOTALL)
    return readme


def main() -> None:
    failed = False
    for name in NAMES:
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}"], stdout=subprocess.PIPE, text=True, check=False
        )
        print(done.stdout)
        failed |= done.returncode != 0
        if done.stdout.strip():
            (HERE / "results").mkdir(exist_ok=True)
            (HERE / "results" / f"{name}.txt").write_text(done.stdout)
    README.write_text(with_results(README.read_text()))
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
