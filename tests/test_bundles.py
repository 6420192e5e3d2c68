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
        ({f"x{i}": np.ones(1) for i in range(600)}, "at most 512"),
    ],
)
def test_what_must_not_be_sent_is_refused(bundle, message):
    with pytest.raises(BundleError, match=message):
        to_bytes(bundle)


def header_only(header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header


def entry(name: str, start: int = 0, length: int = 0) -> str:
    place = f"[{start},{start + 8 * length}]"
    return f'"{name}":{{"dtype":"F64","shape":[{length}],"data_offsets":{place}}}'


@pytest.mark.parametrize(
    "header",
    [
        f"{{{entry('x', 0, 1)},{entry('x', 8, 1)}}}",
        f'{{"__metadata__":{{"a":"1"}},"__metadata__":{{"a":"2"}},{entry("x", 0, 2)}}}',
        f'{{"__metadata__":{{"a":"1","a":"2"}},{entry("x", 0, 2)}}}',
        f"{{{entry('x', 0, 1)},{entry(chr(92) + 'u0078', 8, 1)}}}",
    ],
    ids=["tensor", "metadata", "key", "escaped"],
)
def test_a_header_that_names_something_twice_is_refused(header):
    with pytest.raises(BundleError, match="names something twice"):
        from_bytes(header_only(header.encode()) + bytes(16))


def test_a_header_of_many_arrays_is_refused_before_safetensors_sees_it(monkeypatch):
    monkeypatch.setattr(bundles, "_load", lambda data: pytest.fail("safetensors needs seconds for so many"))
    some = "{" + ",".join(entry(f"x{i}") for i in range(600)) + "}"
    with pytest.raises(BundleError, match="at most 512 arrays"):
        from_bytes(header_only(some.encode()))
    many = "{" + ",".join(entry(f"x{i}") for i in range(20_000)) + "}"
    with pytest.raises(BundleError, match="more than the 512 arrays"):
        from_bytes(header_only(many.encode()))
    with pytest.raises(BundleError, match="more than the 512 arrays"):
        from_bytes(header_only(many.replace("data_offsets", "data\\u005foffsets").encode()))


def test_a_long_header_is_refused_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr(bundles.json, "loads", lambda *_, **__: pytest.fail("a header of any length is parsed"))
    with pytest.raises(BundleError, match="a header of 8388609 bytes exceeds"):
        from_bytes(header_only(b" " * (bundles.MAX_HEADER_BYTES + 1)))


@pytest.mark.parametrize("header", [b"[" * 100_000, b"[]", b"{", b"\xff\xfe", b"1"])
def test_a_header_that_is_no_json_object_is_refused(header):
    with pytest.raises(BundleError):
        from_bytes(header_only(header))


def test_what_could_not_be_read_is_not_written():
    with pytest.raises(BundleError, match="names and metadata take"):
        to_bytes({"x": np.ones(1)}, {"note": "x" * (bundles.MAX_HEADER_BYTES + 1)})


def test_size_is_limited(monkeypatch):
    monkeypatch.setattr(bundles, "MAX_BYTES", 100)
    with pytest.raises(BundleError, match="exceeds the limit of 100"):
        check_bundle({"x": np.ones(13)})


def test_metadata_travels_in_the_header():
    data = to_bytes({"x": np.ones(2)}, {"note": 'ü " \\ \n'})
    assert read_metadata(data) == {"note": 'ü " \\ \n'}
    assert payload_bytes(from_bytes(data)) == 16
