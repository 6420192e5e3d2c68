"use strict";
// How far observations lie from a row's prediction, as in dsfr.core.prediction.rule_deviations.
// Deviations from the mean beyond which distances grow no further.
const FARTHEST_ROW = 1e6;

// Squared distance of a row from the mean of all rows, in deviations, correlations taken into account.
function squaredDistance(density, row) {
  if (!density) return 0;
  const z = row.map((value, j) => density.deviation[j] > 0
    ? Math.min(Math.max((value - density.mean[j]) / density.deviation[j], -FARTHEST_ROW), FARTHEST_ROW) : 0);
  if (!density.correlation) return z.reduce((sum, value) => sum + value * value, 0);
  density.precision ??= solved(density.correlation, z.map((_, i) => z.map((_, j) => Number(i === j))));
  return z.reduce((sum, value, i) => sum + value * z.reduce((part, other, j) => part + density.precision[i][j] * other, 0), 0);
}

// Deviation of a new observation: of short rules by rule, and larger far from the rows; else that of a typical row.
function rowDeviation(model, row) {
  const { by_rule: byRule, deviation, n_labels: n } = model.interval, most = byRule ? Math.max(...byRule) : 0;
  if (!(most > 0)) return deviation;
  const found = row.includes(null) ? conditional(model.density, row) : { means: row };
  const member = model.members[0], z = scaled(found.means, member);
  const t = found.unknown ? deviationsOf(model.density, found) : row.map(() => 0);
  const variance = member.conditions.reduce((sum, conditions, k) =>
    sum + expectedDegrees(conditions, z, t).reduce((product, degree) => product * degree, 1) * (byRule[k] / most) ** 2, 0);
  return most * Math.sqrt(Math.max(variance, 0) * (1 + squaredDistance(model.density, found.means) / n));
}

// Half the width of the jackknife interval of the chosen nominal coverage. Unknown inputs widen it by their deviation, as if it were that of an error.
function halfWidth(model, row, coverage) {
  const half = model.interval.half_widths[coverage], typical = model.interval.deviation, inputs = inputDeviation(model, row);
  return typical > 0 ? half / typical * Math.hypot(rowDeviation(model, row), inputs) : Math.hypot(half, inputs);
}
