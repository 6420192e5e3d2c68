"""Federations of owners whose tables have gaps and categories: the model of plain sums, or the rule that refuses."""

import numpy as np
import pandas as pd
import pytest

from dsfr import SFRRegressor
from dsfr.engines import EngineError
from dsfr.federation.fit import federated_fit, fit_plan
from dsfr.io.agent_files import Columns
from dsfr.model.frames import encode_frame
from dsfr.pipeline.options import FitOptions
from dsfr.training import TASKS, RangeScaling, make_shards
from tests.disclosure.crypto import needs_cryptography
from tests.federation.owners import asking, make_owners, table
from tests.tables import SumsAlone

needs_cryptography()
NAMES = ("a", "b", "c")
LEVELS = ["east", "north", "south"]


def tables(seed=0, share=0.15):
    """Numbers with gaps, and a category with gaps."""
    X, y = table()
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(np.where(rng.random(X.shape) < share, np.nan, X), columns=["a", "b", "c"])
    region = rng.choice(LEVELS, len(y))
    rows["region"] = np.where(rng.random(len(y)) < share, None, region)
    return rows, y + 20.0 * (region == "north")


def plan_of(**options):
    told = {
        "target": "y",
        "method": "sfr-icr",
        "rules": 3,
        "solver": "sums",
        "category": ("region=" + ",".join(LEVELS),),
    }
    ranges = RangeScaling(
        lower=(2.0, -7.0, -97.0, 0.0, 0.0, 0.0), upper=(4.0, 13.0, 103.0, 1.0, 1.0, 1.0), target_range=(0.0, 120.0)
    )
    return fit_plan(FitOptions(**told | options), ("a", "b", "c", "region"), ranges), ranges


def owners_of(tmp_path, rows, y):
    owners, roster = make_owners(tmp_path)
    for number, name in enumerate(NAMES):
        rows.assign(y=y)[number :: len(NAMES)].to_csv(tmp_path / f"{name}.csv", index=False)
    return owners, roster


def test_a_federation_with_gaps_and_categories_gives_the_model_of_plain_sums(tmp_path):
    rows, y = tables()
    plan, ranges = plan_of()
    owners, roster = owners_of(tmp_path, rows, y)
    model = federated_fit(plan, roster, asking(owners), "run", tmp_path / "checkpoints")
    schema = Columns.from_json(plan["columns"]).schema
    shards = make_shards(encode_frame(rows, schema), y, np.array(NAMES)[np.arange(len(y)) % 3])
    here = SFRRegressor(3, solver="sums", scaling=ranges, random_state=0)
    expected = here.fit_over(lambda settings: SumsAlone(shards, TASKS), schema, "y").model_
    assert model.columns == expected.columns
    np.testing.assert_allclose(model.mixture.density.mean, expected.mixture.density.mean, rtol=1e-6, atol=1e-6)
    assert np.abs(model.predict(rows) - expected.predict(rows)).max() <= 1e-7 * np.nanstd(y)
    whole = rows.fillna({"a": 3.0, "b": 0.0, "c": 1.0, "region": "east"})
    assert np.abs(model.predict(whole) - expected.predict(whole)).max() <= 1e-7 * np.nanstd(y)
    assert not model.mixture.density.shift.any()  # labels do not tell owners' gaps


def test_a_column_of_which_an_owner_has_few_values_is_refused_with_its_rule(tmp_path):
    rows, y = tables()
    rows.loc[np.arange(len(y)) % 3 == 1, "b"] = np.nan
    rows.loc[1, "b"] = 0.5
    owners, roster = owners_of(tmp_path, rows, y)
    with pytest.raises(EngineError, match=r"b refuses: .*policy rule 'values': 1 values in column 1"):
        federated_fit(plan_of()[0], roster, asking(owners), "run", tmp_path / "checkpoints")


def test_an_owner_without_any_value_of_a_column_takes_part(tmp_path):
    """It has nothing of the column to reveal, and completes it by what the others know."""
    rows, y = tables()
    rows.loc[np.arange(len(y)) % 3 == 1, "b"] = np.nan
    owners, roster = owners_of(tmp_path, rows, y)
    model = federated_fit(plan_of()[0], roster, asking(owners), "run", tmp_path / "checkpoints")
    assert np.isfinite(model.predict(rows)).all()
