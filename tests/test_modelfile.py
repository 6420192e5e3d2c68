"""Model files: the same bits back, and a clear answer to anything that is not a model."""

import json
import os
import stat
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dsfr
from dsfr import AutoSFRRegressor, Ensemble, LapWNNRegressor, ModelFileError, SFRRegressor
from dsfr.core.consensus.admm import RoundInfo
from dsfr.core.prediction.mixture import Mixture
from dsfr.engines import Ledger
from dsfr.engines.ledger import Traffic
from dsfr.model import file
from dsfr.model.record import record
from dsfr.storage.bundles import to_bytes
from tests.tables import make_table

seeds = st.integers(0, 10_000)
quick = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture(scope="module")
def model():
    X, _, y = make_table(0)
    return SFRRegressor(n_rules=3, random_state=0).fit(X, y).model_


@quick
@given(
    seed=seeds,
    n_rules=st.integers(1, 5),
    ridge=st.floats(1e-3, 10),
    kind=st.sampled_from(["wavelets", "rules", "limits", "uncertain", "average", "effects"]),
)
def test_a_loaded_model_predicts_the_same_bits(tmp_path, seed, n_rules, ridge, kind):
    X, _, y = make_table(seed)
    fitted = kind_of_model(kind, n_rules, ridge).fit(X, y)
    loaded = dsfr.load(fitted.save(tmp_path / "model.dsfr"))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(loaded.predict(X[:1]), fitted.predict(X)[:1])
    n_rules = [[member.predictor.basis.n_rules for member in model.members] for model in (loaded, fitted.model_)]
    assert n_rules[0] == n_rules[1]
    assert (0 in n_rules[0]) == (kind in ("effects", "wavelets"))
    if kind != "effects":
        assert len(n_rules[0]) == (2 if kind == "average" else 1)
    assert loaded.settings == json.loads(json.dumps(dict(fitted.model_.settings)))
    if kind == "uncertain":
        np.testing.assert_array_equal(loaded.deviations(X), fitted.model_.deviations(X))
        assert loaded.half_width(0.5) == fitted.model_.half_width(0.5)


def kind_of_model(kind, n_rules, ridge):
    """An estimator of every kind of model that a file can hold."""
    if kind == "wavelets":
        return LapWNNRegressor(n_nodes=n_rules, ridge=ridge)
    if kind in ("average", "effects"):
        effects = "pairs" if kind == "effects" else None
        return AutoSFRRegressor(ensemble=Ensemble(n_models=2, effects=effects), n_rules=n_rules, uncertainty=False)
    told = {
        "rules": {},
        "limits": {"scaling": "robust"},
        "uncertain": {"uncertainty": True, "solver": "sums"},
    }
    return SFRRegressor(n_rules=n_rules, ridge=ridge, **told[kind])


def test_names_settings_and_training_come_back(tmp_path, model):
    named = model.renamed(["a", "ü", "<script>"], "price €")
    loaded = dsfr.load(named.save(tmp_path / "m.dsfr"))
    assert loaded.feature_names == ("a", "ü", "<script>")
    assert loaded.target_name == "price €"
    assert loaded.training["n_labeled"] == 30
    assert list(map(str, loaded.explain())) == list(map(str, named.explain()))


@quick
@given(seed=seeds, n_agents=st.integers(1, 4), solver=st.sampled_from(["conjugate", "sums"]))
def test_a_file_keeps_rounds_tasks_and_agents(tmp_path, seed, n_agents, solver):
    X, _, y = make_table(seed)
    fitted = SFRRegressor(n_agents=n_agents, solver=solver, random_state=0).fit(X, y)
    training = dsfr.load(fitted.save(tmp_path / "m.dsfr")).training
    rounds = [(info.stage, info.round) for info in fitted.history_]
    kept = [(entry["stage"], entry["round"]) for entry in training["history"]]
    assert kept == rounds if len(rounds) <= 100 else set(kept) <= set(rounds)
    assert training["history"][-1]["error_bound"] == pytest.approx(fitted.history_[-1].error_bound, rel=1e-5)
    assert sum(entry["bytes_down"] + entry["bytes_up"] for entry in training["ledger"]) == fitted.ledger_.bytes
    assert {entry["agent"]: entry["bytes_sent"] for entry in training["agents"]} == {
        name: traffic.bytes_sent for name, traffic in fitted.ledger_.agents.items()
    }


def test_a_long_history_is_thinned_and_keeps_its_ends():
    rounds = [RoundInfo("weights", i, float("nan"), 1.0, 1.0, 1 / i) for i in range(1, 5001)]
    kept = record(rounds, Ledger())["history"]
    assert len(kept) == 100
    assert (kept[0]["round"], kept[-1]["round"]) == (1, 5000)
    assert kept[0]["objective"] is None


def test_of_many_agents_those_with_most_to_carry_are_kept(monkeypatch):
    traffic = {f"agent-{i:03}": Traffic(1, 2, i if i % 2 else 0, 0 if i % 2 else i) for i in range(250)}
    monkeypatch.setattr(Ledger, "agents", traffic)
    kept = [entry["agent"] for entry in record([], Ledger())["agents"]]
    assert kept == [f"agent-{i:03}" for i in range(50, 250)]


def test_saving_twice_gives_the_same_file(tmp_path, model):
    first, second = (model.save(tmp_path / name).read_bytes() for name in ("a", "b"))
    assert first == second


@quick
@given(data=st.data())
def test_a_truncated_file_is_refused(tmp_path, model, data):
    whole = model.save(tmp_path / "m.dsfr").read_bytes()
    cut = tmp_path / "cut.dsfr"
    cut.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(ModelFileError, match=r"cut\.dsfr"):
        dsfr.load(cut)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_altered_byte_is_noticed_or_harmless(tmp_path, model, data):
    whole = bytearray(model.save(tmp_path / "m.dsfr").read_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    altered = tmp_path / "altered.dsfr"
    altered.write_bytes(bytes(whole))
    X, *_ = make_table(0)
    try:
        loaded = dsfr.load(altered)
    except ModelFileError:
        return
    # A space of the header's padding, say: nothing the model is made of.
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert (loaded.feature_names, loaded.target_name) == (model.feature_names, model.target_name)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a dsfr model file, or it is damaged"),
        (b"PK\x03\x04 a zip", "not a dsfr model file"),
        (b"a,b\n1,2\n" * 50, "not a dsfr model file"),
        (to_bytes({"x": np.ones(2)}), "its header does not say so"),
        (to_bytes({"x": np.ones(2)}, {"dsfr": "{}"}), "checksum differs"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path, content, message):
    path = tmp_path / "foreign.dsfr"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message):
        dsfr.load(path)


def forge(tmp_path, model, metadata=None, **arrays):
    """A file with a right checksum and wrong contents, as an adversary would write it."""
    contents = {**file._to_arrays(model.mixture), **arrays}
    text = json.dumps(
        {
            "format": file.FORMAT,
            "feature_names": list(model.feature_names),
            "target_name": "y",
            "settings": {},
            "training": {},
            **(metadata or {}),
        }
    )
    path = tmp_path / "forged.dsfr"
    path.write_bytes(to_bytes({**contents, "sha256": file._digest(contents, text)}, {"dsfr": text}))
    return path


DESCRIBED = {"share": 1.0, "agreement": 1.0, "n_rules": 3, "near_pairs": 0.0, "width_scale": 1.0}


@pytest.mark.parametrize(
    ("metadata", "arrays", "message"),
    [
        ({"format": 4}, {}, "model format 4.*upgrade dsfr"),
        ({"format": 1}, {}, "model format 1.*train again"),
        ({"format": None}, {}, "model format None"),
        ({"feature_names": ["a"]}, {}, "wrong names or shapes"),
        ({"feature_names": []}, {}, "wrong names or shapes"),
        ({"feature_names": [1, 2, 3]}, {}, "not all text"),
        ({"target_name": 3}, {}, "lacks 'target_name'"),
        ({"settings": []}, {}, "lacks 'settings'"),
        ({"training": {"history": {}}}, {}, "record of 'history' is no list"),
        ({"training": {"ledger": [{"task": "<b>"}]}}, {}, "record of 'ledger' has entries of the wrong kind"),
        ({"training": {"agents": [[]] * 10_001}}, {}, "record of 'agents' is no list, or too long"),
        ({}, {"weights": np.ones(3)}, "wrong names or shapes"),
        ({}, {"extra": np.ones(3)}, "wrong names or shapes"),
        ({}, {"widths": np.zeros((3, 3))}, "not positive"),
        ({}, {"target": np.array([0.0, -1.0])}, "not positive"),
        ({}, {"low": np.full(3, 1e9)}, "not positive"),
        ({}, {"shares": np.ones(3, dtype=np.int64)}, "not all of the type"),
        ({}, {"centers": np.array(1.0)}, "wrong names or shapes"),
        ({}, {"shares": np.zeros(3)}, "shares do not add up"),
        ({}, {"shares": np.full(3, 1e308)}, "shares do not add up"),
        ({}, {"weights": np.full(12, 1e308)}, "too large or too small to compute with"),
        ({}, {"centers": np.full((3, 3), 1e308)}, "too large or too small to compute with"),
        ({}, {"widths": np.full((3, 3), 1e-320)}, "too large or too small to compute with"),
        ({}, {"target": np.array([0.0, 1.7e308])}, "too large or too small to compute with"),
        ({}, {"weights": np.full(12, 1e50)}, "too large or too small to compute with"),
        ({}, {"widths": np.full((3, 3), 1e120)}, "too large or too small to compute with"),
        ({}, {"target": np.array([1e300, 1.0])}, "too large or too small to compute with"),
        ({}, {"high": np.full(3, 1e300)}, "too large or too small to compute with"),
        ({}, {"shares": np.full(3, 0.5)}, "shares do not add up"),
        ({"training": {"bytes": 10**400}}, {}, "has more than 64 bits"),
        ({"training": {"rounds": -(2**64)}}, {}, "has more than 64 bits"),
        ({"settings": {"rules": {"width_scale": None}}}, {}, "setting 'width_scale' is no number > 0"),
        ({"settings": {"rules": {"width_scale": 0}}}, {}, "setting 'width_scale' is no number > 0"),
        ({"settings": {"rules": {"width_scale": float("inf")}}}, {}, "setting 'width_scale' is no number > 0"),
        ({"training": {"cluster_scales": [1.0, 0.0]}}, {}, "record of 'cluster_scales' is no list of numbers > 0"),
        ({"training": {"cluster_scales": 1.0}}, {}, "record of 'cluster_scales' is no list of numbers > 0"),
        ({"training": {"models": None}}, {}, "record of 'models' is no list"),
        ({"training": {"models": ["x"]}}, {}, "record of 'models' has entries of the wrong kind"),
        ({"training": {"federation": []}}, {}, "record of 'federation' has no 'roster'"),
        ({"training": {"federation": {"roster": {"a": 1}}}}, {}, "record of 'roster' has entries of the wrong kind"),
        ({"training": {"federation": {"loosest_policy": {"a": "x"}}}}, {}, "'loosest_policy' has entries of the wrong"),
        ({"training": {"models": [{"share": 1.0}]}}, {}, "record of 'models' has entries of the wrong kind"),
        (
            {"training": {"models": [DESCRIBED | {"width_scale": 0.0}]}},
            {},
            "width scale that is no number > 0",
        ),
        ({"training": {"models": [DESCRIBED | {"share": None}]}}, {}, "has entries of the wrong kind"),
        ({"training": {"n_samples": "\x1b[2J"}}, {}, "record of 'n_samples' is of the wrong kind"),
        ({"training": {"termination": 3}}, {}, "record of 'termination' is of the wrong kind"),
    ],
)
def test_a_forged_file_is_refused(tmp_path, model, metadata, arrays, message):
    with pytest.raises(ModelFileError, match=message):
        dsfr.load(forge(tmp_path, model, metadata, **{f"member0_{name}": array for name, array in arrays.items()}))


@pytest.fixture(scope="module")
def averaged():
    X, _, y = make_table(0)
    return AutoSFRRegressor(ensemble=Ensemble(n_models=2, effects=None), random_state=0).fit(X, y).model_


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"mixture_shares": np.array([0.5, 0.7])}, "shares are not numbers >= 0 that sum to 1"),
        ({"mixture_shares": np.array([1.5, -0.5])}, "shares are not numbers >= 0 that sum to 1"),
        ({"mixture_shares": np.array([0.5, 0.25, 0.25])}, "wrong names or shapes"),
        ({"mixture_shares": np.array([1.0])}, "wrong names or shapes"),
        ({"member0_factor": np.ones(3)}, "wrong names or shapes"),
        ({"member0_noise": np.array([-1.0])}, "too large or too small to compute with"),
        ({"member0_noise": np.ones(1, dtype=np.int64)}, "not all of the type"),
        ({"mixture_shares": np.empty(0)}, "wrong names or shapes"),
        ({"mixture_shares": np.array(1.0)}, "wrong names or shapes"),
        ({"member1_limit_low": np.full(3, 1e9)}, "limits are not in order"),
        ({"member1_limit_low": np.full(3, -1e9)}, "members have different targets or limits"),
        ({"member1_target": np.array([0.0, 1.0])}, "members have different targets or limits"),
        ({"member0_noise": np.array([1e300])}, "too large or too small to compute with"),
        ({"score_thresholds": np.array([1e300]), "score_counts": np.ones(1)}, "counts of errors are not counts"),
        ({"score_counts": np.ones(2)}, "wrong names or shapes"),
        ({"score_counts": -np.arange(400.0)}, "counts of errors are not counts"),
        ({"extra": np.ones(1)}, "wrong names or shapes"),
    ],
)
def test_a_forged_average_is_refused(tmp_path, averaged, arrays, message):
    with pytest.raises(ModelFileError, match=message):
        dsfr.load(forge(tmp_path, averaged, **arrays))


def test_numbers_beyond_double_precision_in_the_metadata_are_refused(tmp_path, model):
    arrays = file._to_arrays(model.mixture)
    known = {"format": file.FORMAT, "feature_names": list(model.feature_names), "target_name": "y", "training": {}}
    text = json.dumps(known)
    text = f'{text[:-1]}, "settings": {{"ridge": 1e999}}}}'
    forged = tmp_path / "forged.dsfr"
    forged.write_bytes(to_bytes({**arrays, "sha256": file._digest(arrays, text)}, {"dsfr": text}))
    with pytest.raises(ModelFileError, match="1e999 is beyond double precision"):
        dsfr.load(forged)


def test_a_factor_that_cannot_be_divided_by_is_refused(tmp_path, averaged):
    name = "member0_factor"
    factor = file._to_arrays(averaged.mixture)[name]
    with pytest.raises(ModelFileError, match="too large or too small"):
        dsfr.load(forge(tmp_path, averaged, **{name: np.where(np.arange(len(factor)) == 0, 1e-300, factor)}))


def test_a_model_that_could_not_be_read_is_not_written(tmp_path, model):
    broken = replace(model, mixture=Mixture.of(replace(model.predictor, target_scale=1e300)))
    with pytest.raises(ModelFileError, match="too large or too small"):
        broken.save(tmp_path / "m.dsfr")
    assert not (tmp_path / "m.dsfr").exists()


def test_a_forged_file_with_right_contents_loads(tmp_path, model):
    assert dsfr.load(forge(tmp_path, model)).feature_names == model.feature_names


def test_a_failed_save_leaves_the_old_file_and_no_trace(tmp_path, model, monkeypatch):
    path = model.save(tmp_path / "m.dsfr")
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        model.renamed(["a", "b", "c"], "z").save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.dsfr"]


def test_permissions_are_those_of_a_plain_file_and_stay(tmp_path, model):
    path = model.save(tmp_path / "m.dsfr")
    (tmp_path / "plain").write_bytes(b"")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    path.chmod(0o600)
    assert stat.S_IMODE(model.save(path).stat().st_mode) == 0o600


def test_a_folder_that_is_not_there_is_named(tmp_path, model):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        model.save(tmp_path / "nowhere" / "m.dsfr")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        model.save(tmp_path)


def test_a_loaded_model_checks_what_it_is_given(model):
    with pytest.raises(ValueError, match=r"needs two dimensions and 3 columns: x0, x1, x2"):
        model.predict(np.ones((2, 2)))
    with pytest.raises(ValueError, match="infinite values in x1"):
        model.predict(np.array([[0.0, np.inf, 0.0]]))


def test_wavelets_cannot_be_explained(tmp_path):
    X, _, y = make_table(0)
    with pytest.raises(ValueError, match="wavelets, not rules"):
        LapWNNRegressor(random_state=0).fit(X, y).model_.explain()
