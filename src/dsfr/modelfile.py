"""The model file: one safetensors file of arrays with JSON metadata, described in docs/model-file.md."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from dsfr import __version__
from dsfr.bundles import Bundle, BundleError, from_bytes, read_metadata, to_bytes
from dsfr.core.model import Predictor
from dsfr.core.rules import Rules
from dsfr.core.scaling import Ranges
from dsfr.core.wavelets import Wavelets

FORMAT = 1
_KEY = "dsfr"


class ModelFileError(ValueError):
    """A file that cannot be used as a model."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write that takes the place of ``path`` once all is written, and leaves no trace if anything fails."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist: create it, or write elsewhere")
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: give the name of a file in it")
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
        temporary = Path(file.name)
        try:
            yield file  # type: ignore[misc]
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    os.chmod(temporary, 0o666 & ~_umask())
    os.replace(temporary, target)


def write_model_file(path: str | os.PathLike[str], predictor: Predictor, metadata: Mapping[str, Any]) -> Path:
    """Write a predictor and its metadata."""
    arrays = _to_arrays(predictor)
    text = json.dumps({"format": FORMAT, "version": __version__, **metadata}, sort_keys=True)
    data = to_bytes(arrays, {_KEY: text, "sha256": _digest(arrays, text)})
    with replacing(path) as file:
        file.write(data)
    return Path(path)


def read_model_file(path: str | os.PathLike[str]) -> tuple[Predictor, dict[str, Any]]:
    """Read a predictor and its metadata, checking everything.

    Raises
    ------
    ModelFileError
        If the file is no model, damaged, altered, or of a newer format.
    """
    data = Path(path).read_bytes()
    try:
        arrays = from_bytes(data)
    except BundleError as error:
        raise ModelFileError(f"{path} is not a dsfr model file, or it is damaged: {error}") from None
    header = read_metadata(data)
    if _KEY not in header:
        raise ModelFileError(f"{path} is not a dsfr model file: its header does not say so")
    if header.get("sha256") != _digest(arrays, header[_KEY]):
        raise ModelFileError(f"{path} has been altered or damaged since it was written: its checksum differs")
    metadata = _checked_metadata(path, header[_KEY])
    return _checked_predictor(path, arrays, metadata), metadata


def _to_arrays(predictor: Predictor) -> Bundle:
    if isinstance(predictor.basis, Rules):
        basis: Bundle = {"centers": predictor.basis.centers, "widths": predictor.basis.widths}
    else:
        basis = {"dilations": predictor.basis.dilations, "translations": predictor.basis.translations}
    return {
        **basis,
        "low": predictor.ranges.low,
        "high": predictor.ranges.high,
        "weights": predictor.weights,
        "shares": predictor.shares,
        "target": np.array([predictor.target_mean, predictor.target_scale]),
    }


def _digest(arrays: Bundle, text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _checked_metadata(path: str | os.PathLike[str], text: str) -> dict[str, Any]:
    try:
        metadata = json.loads(text)
        known = metadata["format"]
        names_ok = all(isinstance(name, str) for name in [*metadata["feature_names"], metadata["target_name"]])
        complete = isinstance(metadata["settings"], dict) and isinstance(metadata["training"], dict)
    except (ValueError, TypeError, KeyError) as error:
        raise ModelFileError(f"{path} has unreadable metadata: {error!r}") from None
    if known != FORMAT:
        raise ModelFileError(
            f"{path} has model format {known}; this version of dsfr ({__version__}) reads format {FORMAT}: "
            "upgrade dsfr, or train again"
        )
    if not (names_ok and complete):
        raise ModelFileError(f"{path} has unreadable metadata: names, settings or training are of the wrong kind")
    checked: dict[str, Any] = metadata
    return checked


def _checked_predictor(
    path: str | os.PathLike[str], arrays: Bundle, metadata: Mapping[str, Any]
) -> Predictor:
    d = len(metadata["feature_names"])
    kind = ("centers", "widths") if "centers" in arrays else ("dilations", "translations")
    try:
        k = len(arrays[kind[0]])
        n_weights, n_shares = (k * (d + 1), k) if kind[0] == "centers" else (k, 0)
        shapes = {kind[0]: (k, d), kind[1]: (k, d), "low": (d,), "high": (d,)}
        shapes |= {"weights": (n_weights,), "shares": (n_shares,), "target": (2,)}
        found = {name: array.shape for name, array in arrays.items()}
        sound = found == shapes and all(array.dtype == np.float64 for array in arrays.values())
        sound = sound and k > 0 and d > 0 and bool((arrays["low"] <= arrays["high"]).all())
        divisors = arrays["widths" if kind[0] == "centers" else "dilations"]
        sound = sound and bool((divisors > 0).all() and arrays["target"][1] > 0)
    except (KeyError, TypeError):
        sound = False
    if not sound:
        raise ModelFileError(f"{path} holds arrays that do not fit together: it is not a usable model")
    first, second = arrays[kind[0]], arrays[kind[1]]
    basis = Rules(first, second) if kind[0] == "centers" else Wavelets(first, second)
    mean, scale = (float(value) for value in arrays["target"])
    ranges = Ranges(arrays["low"], arrays["high"])
    return Predictor(ranges, basis, arrays["weights"], mean, scale, arrays["shares"])


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
