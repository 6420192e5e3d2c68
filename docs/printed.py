"""Write what the Python blocks of the README print into the text blocks after them. Run by ``make printed``."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.documents import blocks_of, run_python  # noqa: E402  (the tests compare what this script writes)


def main() -> None:
    """Run the blocks in order and replace the texts."""
    path, namespace = ROOT / "README.md", {}
    text = path.read_text()
    for block in blocks_of(text):
        if block.kind != "python":
            continue
        printed = run_python(block, namespace, path.name)
        if block.printed is not None:
            kept = "\n".join(line.rstrip() for line in printed.rstrip().splitlines())
            text = re.sub(re.escape(block.printed), lambda _, kept=kept: f"{kept}\n", text, count=1)
    path.write_text(text)


if __name__ == "__main__":
    main()
