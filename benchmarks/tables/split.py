"""Which tables may be looked at while designing, and which are only for judging a release; drawn once, then stored.

``split.toml`` holds the lists. ``python -m benchmarks.tables split`` adds tables that are in neither list: each kind
(real, generated) is shuffled with a fixed seed and dealt in turn, judged first. Tables whose results were looked at
before the lists existed are design tables. No result of any method takes part in the draw.

Before that, parts of the automatic mode were chosen on tables of R packages, a list of which is not kept
(docs/adr/0012). Judged tables of these packages may have been among them; `UNSEEN` are the judged tables of other
origin.
"""

import random
import tomllib
from pathlib import Path

from benchmarks.tables import bundled
from benchmarks.tables.catalog import GENERATED, PAPER, REAL

STORED = Path(__file__).parent / "split.toml"
SEEN = (*PAPER, "diabetes", "friedman1")
SEED = 20261116


def read_split() -> dict[str, list[str]]:
    return tomllib.loads(STORED.read_text()) if STORED.exists() else {"design": [], "judged": []}


def draw_split(split: dict[str, list[str]]) -> dict[str, list[str]]:
    """The lists with every table that they lack."""
    design, judged = list(split["design"]), list(split["judged"])
    for kind in (REAL, GENERATED):
        new = sorted(set(kind) - {*design, *judged})
        design += [name for name in new if name in SEEN]
        rest = [name for name in new if name not in SEEN]
        random.Random(SEED).shuffle(rest)
        judged += rest[::2]
        design += rest[1::2]
    return {"design": sorted(design), "judged": sorted(judged)}


def write_split(split: dict[str, list[str]]) -> None:
    parts = ["# Drawn by `python -m benchmarks.tables split`, which says how; tables are added, never moved."]
    for key, names in split.items():
        parts.append(f"{key} = [\n" + "".join(f'    "{name}",\n' for name in names) + "]")
    STORED.write_text("\n".join(parts) + "\n")


def extend() -> None:
    """Draw the tables that the stored lists lack."""
    write_split(draw_split(read_split()))


USED_BEFORE = ("ISLR", "AER", "MASS", "modeldata", "ggplot2")
"""Packages with tables on which parts of the automatic mode were chosen before the lists existed."""
DESIGN, JUDGED = (tuple(read_split()[key]) for key in ("design", "judged"))
UNSEEN = tuple(name for name in JUDGED if bundled.TABLES.get(name, {}).get("package") not in USED_BEFORE)
