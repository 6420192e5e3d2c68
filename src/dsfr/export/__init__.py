"""Models for other programs: ONNX for runtimes, IEEE 1855 (FML) for the fuzzy community."""

from __future__ import annotations

import os
from pathlib import Path

from dsfr.export.fml import to_fml
from dsfr.export.onnx import to_onnx
from dsfr.model.model import Model
from dsfr.storage.atomic import replacing

__all__ = ["export", "to_fml", "to_onnx"]

ENDINGS = (".onnx", ".fml", ".xml")


def check_ending(path: str | os.PathLike[str]) -> str:
    """The ending of a path, if an exporter has it.

    Raises
    ------
    ValueError
        If it does not.
    """
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"cannot export to {Path(path).name}: its ending must be .onnx, or .fml or .xml for IEEE 1855")
    return ending


def export(model: Model, path: str | os.PathLike[str], *, double: bool = False) -> Path:
    """Write a model for other programs in the format of the path's ending: ``.onnx``, or ``.fml`` or ``.xml``.

    ``double`` makes an ONNX model take and give double precision numbers.
    """
    data = to_onnx(model, double=double) if check_ending(path) == ".onnx" else to_fml(model)
    with replacing(path) as file:
        file.write(data)
    return Path(path)
