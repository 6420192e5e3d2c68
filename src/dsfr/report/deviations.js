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

// Deviation of a new observation of short rules: by rule, and larger far from the rows.
function rowDeviation(model, row) {
  const { by_rule: byRule, n_labels: n } = model.interval, most = Math.max(...byRule), member = model.members[0];
  if (!(most > 0)) return 0;
  const variance = possible(model, row).reduce((total, one) => {
    const usual = momentsOf(one, member).reduce((sum, [fired], k) => sum + fired * (byRule[k] / most) ** 2, 0);
    return total + one.weight * Math.max(usual, 0) * (1 + squaredDistance(model.density, one.means) / n);
  }, 0);
  return most * Math.sqrt(Math.max(variance, 0));
}

// Half the width of the jackknife interval of the chosen nominal coverage. Unknown inputs widen it by their deviation.
function halfWidth(model, row, coverage) {
  const { half_widths: halves, input_factors: factors, deviation, by_rule: byRule } = model.interval;
  const half = byRule ? halves[coverage] / deviation * rowDeviation(model, row) : halves[coverage];
  return Math.hypot(half, factors[coverage] * inputDeviation(model, row));
}
