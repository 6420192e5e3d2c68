"""Bundles: what goes in comes out, and nothing else gets in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from dsfr.storage import bundles
from dsfr.storage.bundles import BundleError, check_bundle, from_bytes, payload_bytes, read_metadata, to_bytes

names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
numbers = st.floats(-1e300, 1e300)
floats = arrays(np.float64, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4), elements=numbers)
integers = arrays(np.int64, array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4))
any_bundle = st.dictionaries(names, st.one_of(floats, integers), max_size=5)


@given(any_bundle)
def test_serialising_keeps_every_bit(bundle):
    back = from_bytes(to_bytes(bundle))
    assert back.keys() == bundle.keys()
    for name, array in bundle.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array)
        assert back[name].shape == array.shape


def test_transposed_and_strided_arrays_keep_their_values():
    array = np.arange(12.0).reshape(3, 4)
    back = from_bytes(to_bytes({"t": array.T, "s": array[::2, 1::2]}))
    np.testing.assert_array_equal(back["t"], array.T)
    np.testing.assert_array_equal(back["s"], array[::2, 1::2])


@given(any_bundle, st.data())
def test_a_cut_message_is_an_error(bundle, data):
    message = to_bytes(bundle)
    cut = data.draw(st.integers(0, len(message) - 1))
    with pytest.raises(BundleError):
        from_bytes(message[:cut])


@given(st.binary(max_size=200))
def test_foreign_bytes_are_an_error_or_an_empty_bundle(data):
    try:
        bundle = from_bytes(data)
    except BundleError:
        return
    check_bundle(bundle)


@pytest.mark.parametrize(
    ("bundle", "message"),
    [
        ({"x": [1.0]}, "only numpy arrays"),
        ({"x": np.array([np.inf])}, "NaN or infinity"),
        ({"x": np.array([np.nan])}, "NaN or infinity"),
        ({"x": np.ones(2, dtype=np.float32)}, "dtype float32"),
        ({"x": np.array([object()])}, "dtype object"),
        ({"../x": np.ones(1)}, "lower-case"),
        ({1: np.ones(1)}, "lower-case"),
        ({f"x{i}": np.ones(1) for i in range(300)}, "at most 256"),
    ],
)
def test_what_must_not_be_sent_is_refused(bundle, message):
    with pytest.raises(BundleError, match=message):
        to_bytes(bundle)


def test_size_is_limited(monkeypatch):
    monkeypatch.setattr(bundles, "MAX_BYTES", 100)
    with pytest.raises(BundleError, match="exceeds the limit of 100"):
        check_bundle({"x": np.ones(13)})


def test_metadata_travels_in_the_header():
    data = to_bytes({"x": np.ones(2)}, {"note": 'ü " \\ \n'})
    assert read_metadata(data) == {"note": 'ü " \\ \n'}
    assert payload_bytes(from_bytes(data)) == 16
