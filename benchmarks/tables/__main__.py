"""Write tables of packages as arrays (``export``), or add new tables to the stored split (``split``).

python -m benchmarks.tables export|split
"""

import sys

from benchmarks.tables import bundled, split

COMMANDS = {"export": bundled.export_all, "split": split.extend}

if __name__ == "__main__":
    if sys.argv[1:2] == [] or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]]()
