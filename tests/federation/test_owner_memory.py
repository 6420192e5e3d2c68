"""What owners have answered stays answered, whichever memory a coordinator lets them load."""

from dataclasses import replace

import numpy as np
import pytest

from dsfr.core.features.takagi_sugeno import Rules
from dsfr.disclosure import protect
from dsfr.engines import EngineError, RefusedError
from dsfr.federation.engine import FederationEngine
from dsfr.federation.fit import fit_plan
from dsfr.federation.owner_site import OwnerSite, SiteConfiguration
from dsfr.pipeline.options import FitOptions
from dsfr.training.tasks.messages import scalar
from tests.disclosure.crypto import needs_cryptography
from tests.federation.owners import FEATURES, RANGES, asking, make_owners

needs_cryptography()

DECLARED = {"low": np.array(RANGES.lower), "high": np.array(RANGES.upper)}
PLAN = fit_plan(FitOptions(target="y", method="sfr-icr", rules=3, solver="sums"), FEATURES, RANGES)


@pytest.fixture
def owners(tmp_path):
    """Three owners of 800 rows; one row of all has a first feature from 3.2 to 3.45."""
    rng = np.random.default_rng(0)
    scaled = rng.uniform(-1.0, 1.0, (2400, 3))
    inside = (scaled[:, 0] > 0.2) & (scaled[:, 0] < 0.45)
    scaled[inside, 0] -= 0.3
    scaled[0, 0] = 0.35
    X = DECLARED["low"] + (scaled + 1.0) / 2.0 * (DECLARED["high"] - DECLARED["low"])
    return make_owners(tmp_path, X=X, y=np.where(np.arange(2400) % 4 < 2, 50.0 + scaled[:, 1], np.nan))[0]


def begun(owners, run):
    transport = FederationEngine(list(owners), asking(owners), run, PLAN)
    return transport, protect(transport, policy=True, masked=True)


def ask(engine, middle):
    """Statistics of two steep rules on both sides of a value; of two such questions, the difference is a lone row."""
    rules = Rules(np.array([[middle - 0.02, 0.0, 0.0], [middle + 0.02, 0.0, 0.0]]), np.array([[0.004, 50.0, 50.0]] * 2))
    return engine.sum("statistics", {**rules.arrays(), "target_mean": scalar(0.0), "target_scale": scalar(1.0)})


def asked_after_saving(owners, folder):
    _, engine = begun(owners, "first")
    engine.sum("row_moments", {"seed": np.asarray(0), **DECLARED})
    engine.save_memories(lambda name: folder / name / "00000001")
    ask(engine, 0.25)
    return engine


def test_a_memory_that_is_loaded_within_a_run_takes_no_answer_away(owners, tmp_path):
    engine = asked_after_saving(owners, tmp_path)
    engine.load_memories(lambda name: tmp_path / name / "00000001")
    with pytest.raises(RefusedError, match=r"'differences': rules that differ .* by 1 of the own rows"):
        ask(engine, 0.42)


def test_an_owner_that_is_restarted_and_resumes_remembers_answers_after_the_last_memory(owners, tmp_path):
    asked_after_saving(owners, tmp_path)
    for run in ("second", "third"):
        again = {name: OwnerSite(tmp_path / f"kit-{name}") for name in owners}
        _, engine = begun(again, run)
        engine.load_memories(lambda name: tmp_path / name / "00000001")
        with pytest.raises(RefusedError, match=r"'differences': rules that differ .* by 1 of the own rows"):
            ask(engine, 0.42)


def test_what_a_killed_process_had_not_written_to_its_end_is_no_memory(owners, tmp_path):
    """Files are written under a temporary name; a process that is killed while it writes leaves that."""
    asked_after_saving(owners, tmp_path)
    for name in owners:
        (folder,) = (tmp_path / f"kit-{name}" / "local" / "memories").iterdir()
        (folder / ".dsfr-0123456789abcdef").write_bytes(b"half")
    again = {name: OwnerSite(tmp_path / f"kit-{name}") for name in owners}
    _, engine = begun(again, "second")
    engine.load_memories(lambda name: tmp_path / name / "00000001")
    engine.save_memories(lambda name: tmp_path / name / "00000002")
    engine.load_memories(lambda name: tmp_path / name / "00000002")


def test_a_fit_that_is_begun_anew_remembers_nothing_and_counts(owners, tmp_path):
    asked_after_saving(owners, tmp_path)
    _, engine = begun(owners, "second")
    engine.sum("row_moments", {"seed": np.asarray(0), **DECLARED})
    ask(engine, 0.42)
    assert owners["a"].journal.count("fit") == 2


def test_after_a_memory_is_loaded_owners_agree_on_new_keys(owners, tmp_path):
    """With the keys of then, a round of the same number would have the same masks."""
    asked_after_saving(owners, tmp_path)
    transport, engine = begun(owners, "second")
    engine.sum("row_moments", {"seed": np.asarray(0), **DECLARED})
    engine.save_memories(lambda name: tmp_path / name / "00000002")
    transport.load_memories(lambda name: tmp_path / name / "00000002")
    with pytest.raises(EngineError, match="owners have not admitted each other"):
        ask(engine, 0.25)


def test_rounds_of_a_fit_are_counted_whatever_a_coordinator_lets_owners_load(owners, tmp_path):
    """Within a run, and after owners were restarted."""
    (tmp_path / "tight.toml").write_text("max_rounds = 3\n")
    for name in owners:
        kit = tmp_path / f"kit-{name}"
        replace(SiteConfiguration.read(kit), policy=str(tmp_path / "tight.toml")).write(kit)
    asked, moments = {"seed": np.asarray(0), **DECLARED}, "row_moments"
    again = {name: OwnerSite(tmp_path / f"kit-{name}") for name in owners}
    _, engine = begun(again, "first")
    engine.save_memories(lambda name: tmp_path / name / "00000001")
    for _ in range(3):
        engine.sum(moments, asked)
        engine.load_memories(lambda name: tmp_path / name / "00000001")
    with pytest.raises(EngineError, match="'rounds': this is round 4 of the fit, and max_rounds is 3"):
        engine.sum(moments, asked)
    again = {name: OwnerSite(tmp_path / f"kit-{name}") for name in owners}
    _, engine = begun(again, "second")
    engine.load_memories(lambda name: tmp_path / name / "00000001")
    with pytest.raises(EngineError, match="'rounds': this is round 4 of the fit, and max_rounds is 3"):
        engine.sum(moments, asked)
