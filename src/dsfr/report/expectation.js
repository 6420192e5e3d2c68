// Predictions with unknown inputs: the same formulas as dsfr.core.density and dsfr.core.features.expectation.
// Distribution function of the standard normal distribution.
function normalBelow(z) {
  const x = Math.abs(z) / Math.SQRT2;
  if (x > 27) return z > 0 ? 1 : 0;
  const density = Math.exp(-x * x) / Math.sqrt(Math.PI);
  let tail;
  if (x < 3) { // a series of positive terms
    let term = x, sum = x;
    for (let n = 1; n < 200 && term > 1e-18 * sum; n++) { term *= 2 * x * x / (2 * n + 1); sum += term; }
    tail = 0.5 - density * sum;
  } else { // a continued fraction, from its end
    let rest = x;
    for (let n = 80; n > 0; n--) rest = x + n / 2 / rest;
    tail = density / rest / 2;
  }
  return z > 0 ? 1 - tail : tail;
}

function normalDensity(z) { return Math.exp(-0.5 * z * z) / Math.sqrt(2 * Math.PI); }

function hinge(z) { return z * normalBelow(z) + normalDensity(z); }

// Lengths and distances in deviations, as in dsfr.core.features.expectation.
const STEEP = 1e-4, BEYOND = 12;

function expectedRamp(x, t, [start, end]) {
  if (t === 0) return ramp(x, [start, end]);
  const first = (x - start) / t, last = (x - end) / t, length = (end - start) / t;
  if (last > BEYOND) return 1;
  if (first < -BEYOND) return 0;
  const value = length < STEEP ? normalBelow(first / 2 + last / 2) : (hinge(first) - hinge(last)) / length;
  return Math.min(Math.max(value, 0), 1);
}

// Solution of a system of equations with several right sides, by elimination with pivots.
function solved(matrix, sides) {
  const n = matrix.length, rows = matrix.map((row, i) => [...row, ...sides[i]]);
  for (let j = 0; j < n; j++) {
    let pivot = j;
    for (let i = j + 1; i < n; i++) if (Math.abs(rows[i][j]) > Math.abs(rows[pivot][j])) pivot = i;
    [rows[j], rows[pivot]] = [rows[pivot], rows[j]];
    for (let i = 0; i < n; i++) {
      if (i === j || rows[i][j] === 0) continue;
      const factor = rows[i][j] / rows[j][j];
      for (let k = j; k < rows[i].length; k++) rows[i][k] -= factor * rows[j][k];
    }
  }
  return rows.map((row, j) => row.slice(n).map((value) => value / row[j]));
}

// Means of all inputs and covariances of the unknown ones (null in the row), given the others.
function conditional(density, row) {
  const unknown = row.flatMap((value, j) => value === null ? [j] : []), known = row.flatMap((value, j) => value === null ? [] : [j]);
  const correlated = (i, j) => density.correlation ? density.correlation[i][j] : Number(i === j);
  const within = (value, j) => Math.min(Math.max(value, density.low[j]), density.high[j]);
  const z = known.map((j) => (within(row[j], j) - density.mean[j]) / (density.deviation[j] || 1));
  const gains = solved(known.map((i) => known.map((j) => correlated(i, j))), known.map((i) => unknown.map((j) => correlated(i, j))));
  const means = [...row];
  unknown.forEach((j, u) => {
    const expected = z.reduce((sum, value, i) => sum + value * gains[i][u], 0);
    means[j] = within(density.mean[j] + (density.deviation[j] || 1) * expected + density.shift[j], j);
  });
  const covariance = unknown.map((i) => unknown.map((j, v) => density.deviation[i] * density.deviation[j]
    * known.reduce((sum, o, k) => sum - correlated(o, i) * gains[k][v], correlated(i, j))));
  return { means, unknown, covariance };
}

// What predictions average over: a deviation for every input, 0 where it is known.
function deviationsOf(density, found) {
  const deviations = found.means.map(() => 0);
  found.unknown.forEach((j, u) => { deviations[j] = Math.sqrt(density.spread[j] * Math.max(found.covariance[u][u], 0)); });
  return deviations;
}

// ---- what a row may be: with unknown inputs, their distribution; and one possibility for each level of an unknown category
const MOST_ALTERNATIVES = 64;

// Rows in the place of one whose levels are unknown, as in dsfr.core.prediction.levels.
function alternatives(model, row) {
  const size = (group) => group.length + 2, product = (groups) => groups.reduce((all, group) => all * size(group), 1);
  const gone = model.categories.map(({ features }) => Object.keys(features).map(Number)).filter((group) => group.length && group.every((j) => row[j] === null));
  const groups = gone.sort((a, b) => a.length - b.length).reduce((kept, group) => product([...kept, group]) <= MOST_ALTERNATIVES ? [...kept, group] : kept, []);
  const expected = groups.length ? conditional(model.density, row).means : row;
  return groups.reduce((rows, group) => rows.flatMap((one) => levelsOf(model.density, group, expected).map(({ values, weight, probability }) => {
    const changed = [...one.row];
    group.forEach((j, i) => { changed[j] = values[i]; });
    return { row: changed, weight: one.weight * weight, probability: one.probability * probability };
  })), [{ row, weight: 1, probability: 1 }]);
}

// Indicators of every level with their parts, and the expected ones where the model has seen such rows.
function levelsOf(density, group, row) {
  const expected = group.map((j) => row[j]), spread = group.reduce((sum, j) => sum + density.spread[j], 0) / group.length;
  const first = Math.min(Math.max(expected[0], 0), 1);
  const shares = group.length > 1 ? expected.map((value) => Math.max(value, 0)) : [1 - first, first];
  const total = shares.reduce((a, b) => a + b, 0);
  const levels = shares.map((share, place) => {
    const probability = total > 0 ? share / total : 1 / shares.length;
    return { values: group.length > 1 ? group.map((_, i) => Number(i === place)) : [place], weight: spread * probability, probability };
  });
  return spread === 1 ? levels : [...levels, { values: expected, weight: 1 - spread, probability: 0 }];
}

function possible(model, row) {
  if (!row.includes(null)) return [{ means: row, deviations: null, unknown: [], covariance: [], weight: 1, probability: 1 }];
  return alternatives(model, row).map((one) => {
    const found = conditional(model.density, one.row);
    return { ...found, deviations: deviationsOf(model.density, found), weight: one.weight, probability: one.probability };
  });
}

// Per rule its strength, then its strength times every scaled input; expected ones where inputs are unknown.
function momentsOf({ means, deviations }, member) {
  const z = scaled(means, member);
  if (!deviations) return exactMoments(z, member);
  const t = deviations.map((value, j) => value / member.half[j]);
  if (member.conditions) return expectedTerms(z, t, member);
  return member.membership === "gaussian" ? expectedGaussian(z, t, member) : secondOrder(z, t, member);
}

function exactMoments(z, member) { return firingStrengths(z, member).map((fired) => [fired, ...z.map((value) => fired * value)]); }

function expectedGaussian(z, t, member) {
  const found = member.centers.map((center, k) => {
    let log = 0;
    const inputs = z.map((value, j) => {
      const square = member.widths[k][j] ** 2, spread = square + 2 * t[j] ** 2, away = value - center[j];
      log += 0.5 * Math.log(square / spread) - away * away / spread;
      return center[j] + away * (square / spread);
    });
    return { log, inputs };
  });
  const most = Math.max(...found.map(({ log }) => log)), raw = found.map(({ log }) => Math.exp(log - most));
  const total = raw.reduce((a, b) => a + b, 0);
  return found.map(({ inputs }, k) => [raw[k] / total, ...inputs.map((value) => raw[k] / total * value)]);
}

// Rules over shared terms; the product of a membership and its own input by Stein's lemma.
function expectedTerms(z, t, member) {
  return member.conditions.map((conditions) => {
    const degrees = conditions.map(({ feature: j, above, below }) =>
      (above ? expectedRamp(z[j], t[j], above) : 1) - (below ? expectedRamp(z[j], t[j], below) : 0));
    const product = (without) => degrees.reduce((all, degree, i) => i === without ? all : all * degree, 1);
    const fired = product(-1), inputs = z.map((value) => fired * value);
    conditions.forEach(({ feature: j, above, below }, i) => {
      inputs[j] += product(i) * ((above ? rampSlope(z[j], t[j], above) : 0) - (below ? rampSlope(z[j], t[j], below) : 0));
    });
    return [fired, ...inputs];
  });
}

function rampSlope(x, t, [start, end]) {
  if (t === 0) return 0;
  const first = (start - x) / t, last = (end - x) / t, length = (end - start) / t;
  return t * (length < STEEP ? normalDensity(first / 2 + last / 2) : (normalBelow(last) - normalBelow(first)) / length);
}

function secondOrder(z, t, member) {
  const at = (j, sign) => exactMoments(z.map((value, i) => i === j ? value + sign * t[j] : value), member);
  const middle = exactMoments(z, member), sums = middle.map((rule) => [...rule]);
  z.forEach((_, j) => {
    if (!(t[j] > 0)) return;
    const above = at(j, 1), below = at(j, -1);
    sums.forEach((rule, k) => rule.forEach((_, i) => { rule[i] += 0.5 * (above[k][i] + below[k][i]) - middle[k][i]; }));
  });
  return sums;
}

// Line and curves of every feature, or expected ones.
function termsOfPossible({ means, deviations }, member) {
  if (!deviations) return termsOf(means, member);
  return scaled(means, member).map((value, j) => {
    const t = deviations[j] / member.half[j], knots = member.knots[j];
    if (t === 0) return [Math.min(Math.max(value, -FARTHEST), FARTHEST), ...member.curves[j].map((values) => interpolated(value, knots, values))];
    const rises = knots.slice(1).map((end, i) => expectedRamp(value, t, [knots[i], end > knots[i] ? end : knots[i] + 1]));
    return [(2 * expectedRamp(value, t, [-FARTHEST, FARTHEST]) - 1) * FARTHEST,
      ...member.curves[j].map((values) => rises.reduce((sum, rise, i) => sum + rise * (values[i + 1] - values[i]), values[0]))];
  });
}

// The expected average of all members for a row in which unknown inputs are null.
function learntExpected(model, row) {
  const lines = (one, member) => momentsOf(one, member).reduce((sum, rule, k) => rule.reduce((all, value, i) => all + member.weights[k][i] * value, sum), 0);
  return possible(model, row).reduce((total, one) => {
    const rules = model.members.reduce((sum, member) => sum + member.share * (member.mean + member.scale * lines(one, member)), 0);
    const effects = model.effect_members.reduce((sum, member) => sum + member.share * ofTerms(termsOfPossible(one, member), member), 0);
    return total + one.weight * (rules + effects);
  }, 0);
}

// Deviation of the prediction over unknown inputs: within possibilities, and between them.
function inputDeviation(model, row) {
  if (!row.includes(null)) return 0;
  const found = possible(model, row).map((one) => ({ probability: one.probability, value: learnt(model, one.means), variance: inputVariance(model, one) }));
  const mean = found.reduce((sum, { probability, value }) => sum + probability * value, 0);
  return Math.sqrt(found.reduce((sum, { probability, value, variance }) => sum + probability * (variance + (value - mean) ** 2), 0));
}

// First and second differences along the columns of a Cholesky factor.
function inputVariance(model, { means, unknown, covariance }) {
  const middle = learnt(model, means);
  let variance = 0;
  const rest = covariance.map((line) => [...line]);
  unknown.forEach((_, u) => {
    if (!(rest[u][u] > 1e-12 * covariance[u][u])) return;
    const column = rest.map((line, i) => i < u ? 0 : line[u] / Math.sqrt(rest[u][u]));
    rest.forEach((line, i) => line.forEach((_, j) => { line[j] -= column[i] * column[j]; }));
    const [above, below] = [1, -1].map((sign) => {
      const moved = [...means];
      unknown.forEach((j, i) => { moved[j] += sign * column[i]; });
      return learnt(model, moved);
    });
    variance += ((above - below) / 2) ** 2 + 2 * ((above + below) / 2 - middle) ** 2;
  });
  return variance;
}
