"""The model file: one safetensors file of arrays with JSON metadata, described in docs/model-file.md."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr import __version__
from dsfr.bundles import MAX_BYTES, Bundle, BundleError, from_bytes, read_metadata, to_bytes
from dsfr.core.model import Predictor
from dsfr.core.rules import Rules
from dsfr.core.scaling import Ranges
from dsfr.core.wavelets import Wavelets
from dsfr.files import replacing
from dsfr.record import check_record

FORMAT = 1
_METADATA = "dsfr"
_CHECKSUM = "sha256"
_KINDS = {"feature_names": list, "target_name": str, "settings": dict, "training": dict}


class ModelFileError(ValueError):
    """A file that cannot be used as a model."""


def write_model_file(path: str | os.PathLike[str], predictor: Predictor, metadata: Mapping[str, Any]) -> Path:
    """Write a predictor and its metadata."""
    arrays = _to_arrays(predictor)
    text = json.dumps({"format": FORMAT, "version": __version__, **metadata}, sort_keys=True)
    data = to_bytes({**arrays, _CHECKSUM: _digest(arrays, text)}, {_METADATA: text})
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
    if Path(path).stat().st_size > MAX_BYTES:
        raise ModelFileError(f"{path} is larger than {MAX_BYTES} bytes: it is not a dsfr model file")
    data = Path(path).read_bytes()
    try:
        arrays = from_bytes(data)
    except BundleError as error:
        raise ModelFileError(f"{path} is not a dsfr model file, or it is damaged: {error}") from None
    header = read_metadata(data)
    if _METADATA not in header:
        raise ModelFileError(f"{path} is not a dsfr model file: its header does not say so")
    checksum = arrays.pop(_CHECKSUM, np.empty(0))
    if not np.array_equal(checksum, _digest(arrays, header[_METADATA])):
        raise ModelFileError(f"{path} has been altered or damaged since it was written: its checksum differs")
    try:
        metadata = _checked_metadata(header[_METADATA])
        return _to_predictor(arrays, len(metadata["feature_names"])), metadata
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


def _to_arrays(predictor: Predictor) -> Bundle:
    return {
        **predictor.basis.arrays(),
        "low": predictor.ranges.low,
        "high": predictor.ranges.high,
        "weights": predictor.weights,
        "shares": predictor.shares,
        "target": np.array([predictor.target_mean, predictor.target_scale]),
    }


def _to_predictor(arrays: Bundle, n_features: int) -> Predictor:
    is_rules = "centers" in arrays
    basis_names = ("centers", "widths") if is_rules else ("dilations", "translations")
    n_units = len(arrays.get(basis_names[0], np.empty(0)))
    shapes = dict.fromkeys(basis_names, (n_units, n_features)) | {
        "low": (n_features,),
        "high": (n_features,),
        "weights": (n_units * (n_features + 1) if is_rules else n_units,),
        "shares": (n_units if is_rules else 0,),
        "target": (2,),
    }
    if {name: array.shape for name, array in arrays.items()} != shapes or 0 in (n_units, n_features):
        raise ModelFileError("its arrays have the wrong names or shapes for a model")
    if any(array.dtype != np.float64 for array in arrays.values()):
        raise ModelFileError("its arrays are not all float64")
    divisors = arrays["widths" if is_rules else "dilations"]
    mean, scale = (float(value) for value in arrays["target"])
    positive = (divisors > 0).all() and scale > 0 and (arrays["shares"] >= 0).all()
    if not (positive and (arrays["low"] <= arrays["high"]).all()):
        raise ModelFileError("its widths, scales, shares or ranges are not positive")
    first, second = (arrays[name] for name in basis_names)
    return Predictor(
        ranges=Ranges(arrays["low"], arrays["high"]),
        basis=Rules(first, second) if is_rules else Wavelets(first, second),
        weights=arrays["weights"],
        target_mean=mean,
        target_scale=scale,
        shares=arrays["shares"],
    )


def _checked_metadata(text: str) -> dict[str, Any]:
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its metadata is not JSON: {error}") from None
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        found = metadata.get("format") if isinstance(metadata, dict) else None
        raise ModelFileError(
            f"it has model format {found}, this version of dsfr ({__version__}) reads format {FORMAT}: "
            "upgrade dsfr, or train again"
        )
    for name, kind in _KINDS.items():
        if not isinstance(metadata.get(name), kind):
            raise ModelFileError(f"its metadata lacks {name!r}, or has it of the wrong kind")
    if not all(isinstance(name, str) for name in metadata["feature_names"]):
        raise ModelFileError("its feature names are not all text")
    try:
        check_record(metadata["training"])
    except ValueError as error:
        raise ModelFileError(str(error)) from None
    return metadata


def _digest(arrays: Bundle, text: str) -> npt.NDArray[np.uint8]:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)
