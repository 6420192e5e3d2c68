"""A model file that was changed in any way is refused with one error, or it is a model with finite predictions."""

import json
from collections import Counter

import numpy as np
import pytest

import dsfr
from dsfr import AutoSFRRegressor, Ensemble, ModelFileError, RuleRegressor, SFRRegressor
from dsfr.storage.bundles import BundleError, check_bundle, from_bytes, to_bytes
from tests.faults.cases import n_cases, random_of, record
from tests.tables import make_table

X, _, y = make_table(0)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Bytes of a model, of an average of models, and of short rules."""
    folder = tmp_path_factory.mktemp("models")
    single = SFRRegressor(n_rules=3, random_state=0).fit(X, y)
    average = AutoSFRRegressor(ensemble=Ensemble(n_models=2), random_state=0).fit(X, y)
    short = RuleRegressor(teacher=SFRRegressor(n_rules=3), random_state=0).fit(X, y)
    return [model.save(folder / "model.dsfr").read_bytes() for model in (single, average, short)]


def flipped(data, rng):
    """One to eight bytes changed."""
    changed = bytearray(data)
    for place in rng.integers(len(data), size=rng.integers(1, 9)):
        changed[place] ^= int(rng.integers(1, 256))
    return bytes(changed)


def cut(data, rng):
    return data[: rng.integers(len(data))]


def lengthened(data, rng):
    return data + rng.bytes(int(rng.integers(1, 200)))


def moved(data, rng):
    """A piece of the file copied over another place of it."""
    start, place, length = rng.integers(len(data), size=3)
    piece = data[start : start + length % 300]
    return data[:place] + piece + data[place + len(piece) :]


def removed(data, rng):
    start = int(rng.integers(len(data)))
    return data[:start] + data[start + int(rng.integers(1, 100)) :]


def with_odd_number(data, rng):
    """A number in the header replaced by another."""
    length = int.from_bytes(data[:8], "little")
    header = data[8 : 8 + length].decode()
    digits = [place for place, letter in enumerate(header) if letter.isdigit()]
    place = digits[rng.integers(len(digits))]
    number = str(rng.choice(["-1", "0", "9" * 20, "1e400", "NaN", "null", '"x"', "[]", "{}"]))
    return framed(header[:place] + number + header[place + 1 :], data[8 + length :])


def with_odd_entry(data, rng):
    """An entry of the header removed, repeated under another name, or replaced."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    name = str(rng.choice(sorted(header)))
    entry = header[name] if rng.random() < 0.5 else header.pop(name)
    header[str(rng.choice(sorted(header)))] = [entry, None, {}, [], "x"][rng.integers(5)]
    return framed(json.dumps(header), data[8 + length :])


def framed(header, body):
    text = header.encode()
    return len(text).to_bytes(8, "little") + text + body


MUTATIONS = (flipped, cut, lengthened, moved, removed, with_odd_number, with_odd_entry)


def test_a_changed_model_file_is_refused_or_predicts_finite_numbers(files, tmp_path, record_property):
    rng, outcomes, path = random_of("model files"), Counter(), tmp_path / "changed.dsfr"
    for number in range(n_cases(1000)):
        changed = MUTATIONS[number % len(MUTATIONS)](files[number % len(files)], rng)
        path.write_bytes(changed)
        try:
            loaded = dsfr.load(path)
            assert np.isfinite(loaded.predict(X)).all()
            assert "nan" not in str(loaded.explain())
            outcomes["loaded, predictions finite"] += 1
        except ModelFileError:
            outcomes["refused"] += 1
    assert outcomes["refused"] > 0.8 * outcomes.total()
    record(record_property, outcomes)


def test_changed_bytes_of_a_bundle_are_refused_or_a_checked_bundle(record_property):
    rng, outcomes = random_of("bundles"), Counter()
    data = to_bytes({"weights": np.arange(12.0), "counts": np.arange(3), "empty": np.zeros((0, 2))}, {"note": "text"})
    for number in range(n_cases(1000)):
        try:
            check_bundle(from_bytes(MUTATIONS[number % len(MUTATIONS)](data, rng)))
            outcomes["a bundle that can be used"] += 1
        except BundleError:
            outcomes["refused"] += 1
    assert outcomes["refused"] > 0.5 * outcomes.total()
    record(record_property, outcomes)
