"""What policies cost short rules: NRMSE on owners with different climates, by number of rows.

The tables are those of examples/make_sites.py, with other random seeds too; one label in a hundred rows. The numbers in
`dsfr.core.scaling.tails` and the number of refusals in growth were chosen on these tables: the columns of policies are
optimistic.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import dsfr

sys.path.append(str(Path(__file__).parent.parent / "examples"))
import make_sites

ROWS, SEEDS = (600, 2000, 5000, 20_000), (20, 1, 2)
POLICIES = (None, dsfr.Policy(), dsfr.Policy(min_label_mass=5.0))
FEATURES = ("temperature", "humidity", "wind", "hour")
RANGES = dsfr.RangeScaling(lower=(-30.0, 0.0, 0.0, 0.0), upper=(60.0, 100.0, 60.0, 23.0), target_range=(0.0, 120.0))


def tables(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, known targets, all targets and owners."""
    make_sites.SEED = seed
    few, every = [], []
    for share, sites in ((make_sites.LABELED, few), (1.0, every)):
        make_sites.LABELED, usual = share, make_sites.LABELED
        sites += [make_sites.make_site(number, n_rows) for number in range(make_sites.N_SITES)]
        make_sites.LABELED = usual
    X = np.concatenate([np.column_stack([site[name].to_numpy() for name in FEATURES]) for site in few])
    known, full = (np.concatenate([site["load"].to_numpy() for site in sites]) for sites in (few, every))
    return X, known, full, np.repeat(np.arange(make_sites.N_SITES), n_rows)


def error(policy: dsfr.Policy | None, n_rows: int, seed: int) -> str:
    """NRMSE over all rows, known or not; noise of the targets included."""
    X, known, full, owners = tables(n_rows, seed)
    sums = {"uncertainty": False, "ensemble": dsfr.Ensemble(max_weights_per_label=1 / 3)}
    teacher = dsfr.AutoSFRRegressor(scaling=RANGES, **({} if policy is None else sums))
    rules = dsfr.RuleRegressor(teacher=teacher, engine=dsfr.InProcess(policy=policy), random_state=0)
    try:
        return f"{dsfr.nrmse(full, rules.fit(X, known, agents=owners).predict(X)):.3f}"
    except dsfr.PolicyError:
        return "refused"


def main() -> None:
    """Print the table; other numbers of rows can be given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=int, nargs="*", default=ROWS, help="rows of every owner")
    print(f"NRMSE of short rules, {make_sites.N_SITES} owners of so many rows, one label in a hundred; by random seed")
    print(f"{'rows':>8}   {'without a policy':<24}   {'default policy':<24}   with min_label_mass = 5")
    for n_rows in parser.parse_args().rows:
        shown = ["".join(f"{error(policy, n_rows, seed):<8}" for seed in SEEDS) for policy in POLICIES]
        print(f"{n_rows:>8,}   {shown[0]}   {shown[1]}   {shown[2].rstrip()}", flush=True)


if __name__ == "__main__":
    main()
