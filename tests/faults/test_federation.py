"""Owners and coordinator that are killed, cut off, slow, or whose messages are damaged, at random rounds.

Every attempt ends in the same model or in an error that names the owner; the next attempt resumes to the same model.
`benchmarks/torture.py` runs more cases. Over NVFlare, `tests/federation/test_five_sites.py` does the same once.
"""

import os
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest

from dsfr.engines import EngineError
from dsfr.federation.fit import federated_fit, fit_plan
from dsfr.federation.owner_site import OwnerSite
from dsfr.pipeline.options import FitOptions
from tests.disclosure.crypto import needs_cryptography
from tests.faults.cases import n_cases, random_of, record
from tests.federation.owners import FEATURES, RANGES, asking, make_owners, table

needs_cryptography()
KINDS = ("killed", "cut before", "cut after", "slow", "damaged question", "damaged answer", "replayed", "coordinator")


class Killed(Exception):  # noqa: N818
    """The coordinator is killed."""


def faulty(owners, folder, kind, victim, at, rng):
    """Carries messages as `asking` does, with one fault at a question."""
    count, seen = 0, []

    def ask(data):
        nonlocal count
        count += 1
        seen.append(data)
        if count != at:
            return asking(owners)(data)
        if kind == "coordinator":
            raise Killed
        if kind == "killed":
            owners[victim] = OwnerSite(folder / f"kit-{victim}")  # restarted, and knows nothing of the run
            return asking(owners)(data)
        if kind in ("replayed", "damaged question"):  # and then the right one
            with suppress(EngineError):
                owners[victim].answer(seen[0] if kind == "replayed" else damaged(data, rng))
        silent = (victim,) if kind == "cut before" else ()
        answers = asking({name: owner for name, owner in owners.items() if name not in silent})(data)
        if kind in ("cut after", "slow"):
            del answers[victim]
        if kind == "damaged answer":
            answers[victim] = damaged(answers[victim], rng)
        return answers

    return ask


def damaged(data, rng):
    place = int(rng.integers(len(data)))
    return data[:place] + bytes([data[place] ^ int(rng.integers(1, 256))]) + data[place + 1 :]


@pytest.mark.parametrize("method", ["sfr-icr", "rules"])
def test_every_fault_ends_in_the_same_model_or_names_the_owner(tmp_path, method, record_property, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no kill here is one of the machine
    rng, outcomes = random_of(f"federation {method}"), Counter()
    options = {"rules": 3, "solver": "sums"} if method == "sfr-icr" else {}
    plan = fit_plan(FitOptions(target="y", method=method, **options), FEATURES, RANGES)
    X, y = table(n_rows=300)
    owners, roster = make_owners(tmp_path, X=X, y=y, policy=None)
    asked = []

    def counting(data):
        asked.append(data)
        return asking(owners)(data)

    expected = federated_fit(plan, roster, counting, "whole", tmp_path / "whole").predict(X)
    for case in range(n_cases(3)):
        kind, victim = str(rng.choice(KINDS)), str(rng.choice(list(owners)))
        at = int(rng.integers(1, len(asked)))
        for name in owners:  # a budget of 20 fits is not what is tried here
            (tmp_path / f"kit-{name}" / "local" / "journal.jsonl").unlink()
        attempt = faulty(owners, tmp_path, kind, victim, at, rng)
        try:
            model = federated_fit(plan, roster, attempt, f"first {case}", tmp_path / f"checkpoint {case}")
        except (EngineError, Killed) as error:
            outcomes[f"{kind}: stopped"] += 1
            message = str(error)
            again = {name: OwnerSite(tmp_path / f"kit-{name}") for name in owners}
            model = federated_fit(plan, roster, asking(again), f"second {case}", tmp_path / f"checkpoint {case}")
        else:
            outcomes[f"{kind}: same model"] += 1
            message = victim
        assert kind == "coordinator" or victim in message, (kind, at, message)
        np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-9)
        owners = {name: OwnerSite(tmp_path / f"kit-{name}") for name in owners}
    record(record_property, outcomes)
