"""A forged model file is refused, or everything that is done with a model is finite and silent."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dsfr
from dsfr import AutoSFRRegressor, Ensemble, LapWNNRegressor, ModelFileError, RuleRegressor, SFRRegressor
from dsfr.core.features.linguistic import LinguisticRules
from dsfr.core.features.wavelets import Wavelets
from dsfr.core.prediction.bounds import MAX_SCALED, MAX_UNIT, MAX_WEIGHT, MIN_DIVISOR
from dsfr.export.fml import to_fml
from dsfr.export.onnx import to_onnx
from dsfr.model import file
from dsfr.report import write_report
from tests.tables import make_table
from tests.test_modelfile import forge

X, _, y = make_table(0)
FAR = np.sign(X) * 1e300
BOUNDS = [MAX_SCALED, MAX_UNIT, MAX_WEIGHT, MIN_DIVISOR]
sizes = st.one_of(
    st.sampled_from([*BOUNDS, 1e300, 1e160, 1e-300, 0.0]), st.integers(-320, 308).map(lambda n: float(f"1e{n}"))
)
values = st.tuples(sizes, st.sampled_from([1.0, -1.0])).map(np.prod)
ways = st.sampled_from(["one", "all", "times"])


@pytest.fixture(scope="module")
def models():
    return {
        "rules": SFRRegressor(n_rules=3, random_state=0).fit(X, y).model_,
        "average": AutoSFRRegressor(ensemble=Ensemble(n_models=2, effects=None), random_state=0).fit(X, y).model_,
        "effects": AutoSFRRegressor(ensemble=Ensemble(n_models=2, effects="pairs"), random_state=0).fit(X, y).model_,
        "sure": AutoSFRRegressor(ensemble=Ensemble(n_models=1), random_state=0).fit(X, y).model_,
        "short": RuleRegressor(teacher=SFRRegressor(n_rules=3, uncertainty=True), random_state=0).fit(X, y).model_,
        "wavelets": LapWNNRegressor(n_nodes=5, random_state=0).fit(X, y).model_,
    }


def altered(array, value, way, place):
    if way == "all":
        return np.full_like(array, value)
    if way == "times":
        with np.errstate(over="ignore", under="ignore"):
            return np.nan_to_num(array * value)
    changed = array.copy()
    changed.flat[place % array.size] = value
    return changed


def use(model, tmp_path):
    """Everything that is done with a model; every number must be finite."""
    numbers = [model.predict(X), model.predict(FAR), *model.half_widths([0.5, 0.9]).values()]
    if model.members[0].posterior is not None:
        numbers += [model.deviations(X), model.deviations(FAR)]
    assert all(np.isfinite(number).all() for number in numbers)
    dsfr.load(model.save(tmp_path / "again.dsfr"))
    to_onnx(model)
    if isinstance(model.predictor.basis, Wavelets):
        return
    assert "inf" not in str(model.explain(X, all_models=True)) + str(model.explain())
    for row in (X[0], FAR[0]):
        parts = model.explain_prediction(row).parts
        assert all(np.isfinite(found).all() for found in (parts.parts, parts.effects, parts.together))
    if isinstance(model.predictor.basis, LinguisticRules):
        with pytest.raises(ValueError, match="these rules are as simple as asked for"):
            model.simplify(X, y)
    else:
        model.simplify(X, y)
    write_report(model, tmp_path / "report.html")
    if len(model.members) == 1:
        to_fml(model)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data(), kind=st.sampled_from(["rules", "average", "effects", "sure", "short", "wavelets"]))
def test_a_forged_model_is_refused_or_can_be_used(models, tmp_path, data, kind):
    model = models[kind]
    arrays = file._to_arrays(model.mixture)
    names = sorted(name for name, array in arrays.items() if array.size)
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    forged = {
        name: altered(arrays[name], data.draw(values), data.draw(ways), data.draw(st.integers(0, 999)))
        for name in chosen
    }
    try:
        loaded = dsfr.load(forge(tmp_path, model, **forged))
    except ModelFileError:
        return
    use(loaded, tmp_path)


def at_the_bound(predictor):
    """Arrays as large, and sets as narrow, as a file may have them."""
    is_rules = predictor.basis.n_rules > 0
    divisors = "widths" if is_rules else "dilations"
    return {
        "weights": np.full_like(predictor.weights, MAX_WEIGHT),
        "target": np.array([-MAX_UNIT, MAX_UNIT]),
        "centers" if is_rules else "translations": np.full_like(predictor.basis.arrays()[divisors], MAX_SCALED),
        divisors: np.full_like(predictor.basis.arrays()[divisors], MIN_DIVISOR if is_rules else 1e-30),
        "low": np.full(predictor.n_features, -MAX_UNIT),
        "high": np.full(predictor.n_features, MAX_UNIT),
    }


@pytest.mark.parametrize("kind", ["rules", "wavelets"])
@pytest.mark.parametrize("without", ["nothing", "weights", "target", "centers", "widths", "low", "high"])
def test_a_model_at_the_bounds_can_be_used(models, tmp_path, kind, without):
    arrays = at_the_bound(models[kind].predictor)
    arrays.pop(without, None)
    named = {f"member0_{name}": array for name, array in arrays.items()}
    use(dsfr.load(forge(tmp_path, models[kind], **named)), tmp_path)
