"""ONNX: the model as a graph that onnxruntime and others run, any number of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr import __version__
from dsfr.core.features.effects import FARTHEST, Effects
from dsfr.core.features.linguistic import LinguisticRules
from dsfr.core.features.membership import membership_of
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.features.wavelets import MAX_ARGUMENT, Wavelets
from dsfr.core.prediction.link import Link
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.scaling.affine import MAX_SCALED
from dsfr.model.model import Model

OPSET = 17
"""Oldest operator set with all operators used here; runtimes support it since 2022."""
IR_VERSION = 8


@dataclass(slots=True)
class _Graph:
    """Nodes and constants in the order of their creation; every value has a unique name."""

    helper: Any
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def constant(self, value: npt.ArrayLike, dtype: npt.DTypeLike = np.float64) -> str:
        """The name of a constant."""
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(value, dtype=dtype, order="C"), name))
        return name

    def do(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """The name of a node's output."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def sum_over(self, values: str, axis: int) -> str:
        """Sum over one axis, which is removed."""
        return self.do("ReduceSum", values, self.constant([axis], np.int64), keepdims=0)


def to_onnx(model: Model, *, double: bool = False) -> bytes:
    """The model as an ONNX file: input ``X`` of shape (rows, features), output ``prediction`` of shape (rows,).

    Input and output are float32, or float64 if ``double``. In between everything is float64 either way: rules far from
    a row differ in the last digits of large exponents, which float32 does not have. The graph is that of complete rows:
    a row with a missing value (NaN) gives NaN, so complete rows first (`Model.completed`).

    Raises
    ------
    ImportError
        If the onnx package is missing, saying how to install it.
    """
    try:
        import onnx
        from onnx import helper
    except ImportError as error:
        raise ImportError("exporting to ONNX needs the onnx package: pip install 'dsfr[onnx]'") from error
    kind = onnx.TensorProto.DOUBLE if double else onnx.TensorProto.FLOAT
    graph = _Graph(helper)
    rows = graph.do("Cast", "X", to=onnx.TensorProto.DOUBLE)
    total = _weighted_sum(
        graph, [(member.share, _predictor(graph, rows, member.predictor)) for member in model.members]
    )
    total = _linked(graph, total, model.mixture.link)
    graph.nodes.append(helper.make_node("Cast", [total], ["prediction"], to=kind))
    made = helper.make_graph(
        graph.nodes,
        "dsfr",
        [helper.make_tensor_value_info("X", kind, ["rows", len(model.feature_names)])],
        [helper.make_tensor_value_info("prediction", kind, ["rows"])],
        graph.constants,
        doc_string=f"{model.target_name} from {', '.join(model.feature_names)}",
    )
    proto = helper.make_model(
        made,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="dsfr",
        producer_version=__version__,
    )
    helper.set_model_props(proto, {"feature_names": "\n".join(model.feature_names), "target_name": model.target_name})
    onnx.checker.check_model(proto, full_check=True)
    data: bytes = proto.SerializeToString(deterministic=True)
    return data


def _linked(graph: _Graph, values: str, link: Link) -> str:
    """Predictions from the average of the members."""
    if link.is_identity:
        return values
    held = graph.do("Clip", values, graph.constant(link.low), graph.constant(link.high))
    return graph.do("Mul", graph.do("Exp", held), graph.constant(link.factor)) if link.is_log else held


def _weighted_sum(graph: _Graph, parts: Sequence[tuple[float, str]]) -> str:
    weighted = [graph.do("Mul", value, graph.constant(share)) for share, value in parts]
    return graph.do("Sum", *weighted)


def _predictor(graph: _Graph, rows: str, predictor: Predictor) -> str:
    """``target_mean + target_scale * H(scaled x) w``."""
    if predictor.limits is not None:
        rows = graph.do("Max", rows, graph.constant(predictor.limits.low))
        rows = graph.do("Min", rows, graph.constant(predictor.limits.high))
    centered = graph.do("Sub", rows, graph.constant(predictor.ranges.midpoints))
    scaled = graph.do("Div", centered, graph.constant(predictor.ranges.half_widths))
    Z = graph.do("Clip", scaled, graph.constant(-MAX_SCALED), graph.constant(MAX_SCALED))
    output = _OUTPUTS[type(predictor.basis)](graph, Z, predictor.basis, predictor.weights)
    scaled_back = graph.do("Mul", output, graph.constant(predictor.target_scale))
    return graph.do("Add", scaled_back, graph.constant(predictor.target_mean))


def _rules(graph: _Graph, Z: str, rules: Rules, weights: npt.NDArray[np.float64]) -> str:
    """Lines of the rules, weighted by a softmax of log-memberships."""
    consequents = weights.reshape(len(rules.centers), -1)
    apart = graph.do("Sub", _with_unit_axis(graph, Z), graph.constant(rules.centers))
    t = graph.do("Div", apart, graph.constant(rules.widths))
    logs = graph.sum_over(membership_of(rules.membership).onnx(graph, t), axis=2)
    strengths = graph.do("Softmax", logs, axis=1)
    slopes = graph.do("MatMul", Z, graph.constant(consequents[:, 1:].T))
    lines = graph.do("Add", slopes, graph.constant(consequents[:, 0]))
    return graph.sum_over(graph.do("Mul", strengths, lines), axis=1)


def _wavelets(graph: _Graph, Z: str, wavelets: Wavelets, weights: npt.NDArray[np.float64]) -> str:
    """Products of wavelets, feature by feature, because runtimes lack a product over an axis in double precision."""
    apart = graph.do("Sub", _with_unit_axis(graph, Z), graph.constant(wavelets.translations))
    far = graph.do("Div", apart, graph.constant(wavelets.dilations))
    t = graph.do("Clip", far, graph.constant(-MAX_ARGUMENT), graph.constant(MAX_ARGUMENT))
    bell = graph.do("Exp", graph.do("Mul", graph.do("Mul", t, t), graph.constant(-0.5)))
    height = graph.constant(-1.0 / np.sqrt(wavelets.dilations))
    psi = graph.do("Mul", graph.do("Mul", t, bell), height)
    parts = [graph.do("Gather", psi, graph.constant(j, np.int64), axis=2) for j in range(wavelets.dilations.shape[1])]
    product = parts[0]
    for part in parts[1:]:
        product = graph.do("Mul", product, part)
    return graph.sum_over(graph.do("Mul", product, graph.constant(weights)), axis=1)


def _linguistic(graph: _Graph, Z: str, rules: LinguisticRules, weights: npt.NDArray[np.float64]) -> str:
    """Lines of the rules, weighted by products of differences of ramps."""
    lines = weights.reshape(rules.n_rules, -1)
    parts = []
    for k in range(rules.n_rules):
        slopes = graph.sum_over(graph.do("Mul", Z, graph.constant(lines[k, 1:])), axis=1)
        part = graph.do("Add", slopes, graph.constant(lines[k, 0]))
        for j, (first, last) in rules.conditions(k).items():
            part = graph.do("Mul", part, _degree(graph, Z, j, rules.ramps_of(j), first, last))
        parts.append(part)
    return graph.do("Sum", *parts)


def _degree(graph: _Graph, Z: str, j: int, ramps: Sequence[tuple[float, float]], first: int, last: int) -> str:
    """Degree to which the condition of a rule on feature ``j`` holds, by row."""
    column = graph.do("Gather", Z, graph.constant(j, np.int64), axis=1)

    def rising(start: float, end: float) -> str:
        far = graph.do("Div", graph.do("Sub", column, graph.constant(start)), graph.constant(end - start))
        return graph.do("Clip", far, graph.constant(0.0), graph.constant(1.0))

    low = rising(*ramps[first - 1]) if first else graph.constant(1.0)
    return graph.do("Sub", low, rising(*ramps[last])) if last < len(ramps) else low


def _effects(graph: _Graph, Z: str, effects: Effects, weights: npt.NDArray[np.float64]) -> str:
    """Weighted sum of a constant, terms of single features and products of two or three terms."""
    effects, weights = effects.summed(weights)
    terms, (_, d, r) = _terms(graph, Z, effects), effects.curves.shape
    rows = graph.do("Reshape", terms, graph.constant([d * (1 + r), -1], np.int64))

    def chosen(places: npt.NDArray[np.int64]) -> str:
        return graph.do("Gather", rows, graph.constant(places[:, 0] * (1 + r) + places[:, 1], np.int64), axis=0)

    def product(places: npt.NDArray[np.int64]) -> str:
        factors = [chosen(places[:, at : at + 2]) for at in range(0, places.shape[1], 2)]
        return reduce(lambda one, other: graph.do("Mul", one, other), factors)

    every = graph.do("Concat", *map(product, effects.by_factors), axis=0)
    total = graph.do("MatMul", graph.constant(weights[1:]), every)
    return graph.do("Add", total, graph.constant(weights[0]))


def _terms(graph: _Graph, Z: str, effects: Effects) -> str:
    """Line and curves of every feature; shape (d, 1 + r, rows).

    A curve is its first value plus, for every step between knots, the change over the part of it that is passed.
    """
    columns = graph.do("Unsqueeze", graph.do("Transpose", Z, perm=[1, 0]), graph.constant([1], np.int64))
    line = graph.do("Clip", columns, graph.constant(-FARTHEST), graph.constant(FARTHEST))
    steps = np.diff(effects.knots, axis=0).T[:, :, None]
    past = graph.do("Sub", columns, graph.constant(effects.knots[:-1].T[:, :, None]))
    part = graph.do("Div", past, graph.constant(np.where(steps > 0, steps, 1.0)))
    passed = graph.do("Clip", part, graph.constant(0.0), graph.constant(1.0))
    changes = graph.constant(np.diff(effects.curves, axis=0).transpose(1, 2, 0))
    curves = graph.do("Add", graph.do("MatMul", changes, passed), graph.constant(effects.curves[0][:, :, None]))
    return graph.do("Concat", line, curves, axis=1)


_OUTPUTS: dict[type, Callable[[_Graph, str, Any, npt.NDArray[np.float64]], str]] = {
    Rules: _rules,
    Wavelets: _wavelets,
    LinguisticRules: _linguistic,
    Effects: _effects,
}
"""By kind of basis, how to compute ``H(Z) w``."""


def _with_unit_axis(graph: _Graph, Z: str) -> str:
    """Shape (rows, features) as (rows, 1, features)."""
    return graph.do("Unsqueeze", Z, graph.constant([1], np.int64))
