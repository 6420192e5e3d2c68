"""Seconds and bytes of federated fits: masks on and off, five and twenty owners in one process, five over NVFlare.

The model is that of ``dsfr federation fit`` by default: short rules, under the default policy.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np

import dsfr
from dsfr.federation.journal import AuditJournal
from dsfr.federation.loopback import LEAD, Loopback

N_ROWS, N_LABELS = 500, 60
"""Of every owner."""
LOW, HIGH, TARGETS = (0.0, 0.0, 0.0, 0.0), (10.0, 10.0, 10.0, 10.0), (-50.0, 100.0)
NAMES = ("a", "b", "c", "d")


def table(n_owners: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, targets of which some are known, and owners."""
    rng = np.random.default_rng(0)
    n = N_ROWS * n_owners
    X = rng.uniform(0.0, 10.0, (n, 4))
    y = 3.0 * X[:, 0] + np.where(X[:, 1] < 4.0, 2.0 * X[:, 1], 8.0) + X[:, 2] + rng.standard_normal(n)
    y[rng.permutation(n)[N_LABELS * n_owners :]] = np.nan
    return X, y, np.arange(n) % n_owners


def in_process(n_owners: int, *, masks: bool) -> None:
    """One line of the table."""
    X, y, owners = table(n_owners)
    scaling = dsfr.RangeScaling(lower=LOW, upper=HIGH, target_range=TARGETS)
    ensemble = dsfr.Ensemble(max_weights_per_label=1 / 3)
    teacher = dsfr.AutoSFRRegressor(scaling=scaling, uncertainty=False, ensemble=ensemble)
    where = dsfr.InProcess(policy=dsfr.Policy(), masks=masks)
    begun, used = time.perf_counter(), time.process_time()
    model = dsfr.RuleRegressor(teacher=teacher, engine=where, random_state=0).fit(X, y, agents=owners)
    show(
        "in-process",
        n_owners,
        masks,
        time.perf_counter() - begun,
        model.ledger_.rounds,
        sum(entry.bytes_up for entry in model.ledger_.entries.values()),
        cpu=time.process_time() - used,
    )


def over_nvflare(n_owners: int) -> None:
    """The same over NVFlare on loopback, from the command to the model file."""
    X, y, owners = table(n_owners)
    with tempfile.TemporaryDirectory() as folder:
        sites = Loopback(Path(folder), [f"site-{owner}" for owner in range(n_owners)], "y")
        sites.provision()
        for owner, name in enumerate(sites.names):
            rows = np.column_stack([X, y])[owners == owner]
            lines = [",".join("" if np.isnan(value) else repr(float(value)) for value in row) for row in rows]
            (sites.folder / f"{name}.csv").write_text(",".join((*NAMES, "y")) + "\n" + "\n".join(lines) + "\n")
        ends = {**dict(zip(NAMES, zip(LOW, HIGH, strict=True), strict=True)), "y": TARGETS}
        text = "".join(f"{name} = [{low}, {high}]\n" for name, (low, high) in ends.items())
        (sites.folder / "ranges.toml").write_text(text)
        with sites:
            columns = ["--target", "y", "--features", ",".join(NAMES), "--ranges", "ranges.toml"]
            begun = time.perf_counter()
            done = sites.command(
                "fit", "--kit", LEAD, "--roster", "roster.toml", *columns, "-o", "model.dsfr", seconds=600
            )
            seconds = time.perf_counter() - begun
        if done.returncode:
            raise SystemExit(done.stderr)
        entries = AuditJournal(sites.folder / sites.names[0] / "local" / "journal.jsonl").entries()
        rounds, sent, each = rounds_of(entries)
        show("NVFlare", n_owners, True, seconds, rounds, n_owners * sent, each)


def rounds_of(entries: list[dict[str, object]]) -> tuple[int, int, float]:
    """Rounds, bytes that the owner sent, and median seconds from one round to the next, from its journal."""
    sent = [entry for entry in entries if entry["event"] == "sent"]
    gaps = np.diff([float(str(entry["time"])) for entry in sent])
    return len(sent), sum(int(str(entry["bytes"])) for entry in sent), float(np.median(gaps))


def show(
    engine: str,
    n_owners: int,
    masks: bool,
    seconds: float,
    rounds: int,
    n_bytes: int,
    each: float = 0.0,
    cpu: float | None = None,
) -> None:
    """Print one line."""
    each, used = each or seconds / rounds, "-" if cpu is None else f"{cpu:.2f}"
    print(
        f"{engine:<11} {n_owners:>6}  {'on' if masks else 'off':<5} {seconds:>8.2f} {used:>7} {rounds:>7} "
        f"{1e3 * each:>9.1f} {n_bytes / 1e6:>9.2f}",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    print(f"{N_ROWS} rows and {N_LABELS} labels of each owner, 4 features; short rules under the default policy")
    print("engine      owners  masks  seconds   CPU s  rounds  ms/round  MB sent")
    for n_owners in (5, 20):
        for masks in (False, True):
            in_process(n_owners, masks=masks)
    over_nvflare(5)
    print(f"{os.getloadavg()[0]:.0f} processes were running on {os.cpu_count()} cores at the end: compare CPU seconds")
    print("CPU s: of all owners and the coordinator in one process. MB sent: by all owners. Over NVFlare: seconds from")
    print("the command to the model, with the start and end of the job; ms from one answer of an owner to its next")


if __name__ == "__main__":
    main()
