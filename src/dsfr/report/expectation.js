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

function expectedMember(means, deviations, member) {
  const z = scaled(means, member), t = deviations.map((value, j) => value / member.half[j]);
  if (member.conditions) return expectedTerms(z, t, member);
  if (member.membership !== "gaussian") return secondOrder(z, t, member);
  const lines = member.centers.map((center, k) => {
    let log = 0, line = member.weights[k][0];
    z.forEach((value, j) => {
      const square = member.widths[k][j] ** 2, spread = square + 2 * t[j] ** 2, away = value - center[j];
      log += 0.5 * Math.log(square / spread) - away * away / spread;
      line += member.weights[k][j + 1] * (center[j] + away * (square / spread));
    });
    return { log, line };
  });
  const most = Math.max(...lines.map(({ log }) => log)), raw = lines.map(({ log }) => Math.exp(log - most));
  return lines.reduce((sum, { line }, k) => sum + raw[k] * line, 0) / raw.reduce((a, b) => a + b, 0);
}

function expectedDegrees(conditions, z, t) {
  return conditions.map(({ feature: j, above, below }) =>
    (above ? expectedRamp(z[j], t[j], above) : 1) - (below ? expectedRamp(z[j], t[j], below) : 0));
}

// Rules over shared terms; the product of a membership and its own input by Stein's lemma.
function expectedTerms(z, t, member) {
  return member.conditions.reduce((total, conditions, k) => {
    const degrees = expectedDegrees(conditions, z, t);
    const product = (without) => degrees.reduce((all, degree, i) => i === without ? all : all * degree, 1);
    let line = member.weights[k][0];
    z.forEach((value, j) => { line += member.weights[k][j + 1] * value; });
    let sum = product(-1) * line;
    conditions.forEach(({ feature: j, above, below }, i) => {
      const slope = (above ? rampSlope(z[j], t[j], above) : 0) - (below ? rampSlope(z[j], t[j], below) : 0);
      sum += product(i) * slope * member.weights[k][j + 1];
    });
    return total + sum;
  }, 0);
}

function rampSlope(x, t, [start, end]) {
  if (t === 0) return 0;
  const first = (start - x) / t, last = (end - x) / t, length = (end - start) / t;
  return t * (length < STEEP ? normalDensity(first / 2 + last / 2) : (normalBelow(last) - normalBelow(first)) / length);
}

function secondOrder(z, t, member) {
  const at = (j, sign) => linesAt(z.map((value, i) => i === j ? value + sign * t[j] : value), member);
  const middle = linesAt(z, member);
  return z.reduce((sum, _, j) => t[j] > 0 ? sum + 0.5 * (at(j, 1) + at(j, -1)) - middle : sum, middle);
}

function expectedEffects(means, deviations, member) {
  const z = scaled(means, member);
  const terms = z.map((value, j) => {
    const t = deviations[j] / member.half[j], knots = member.knots[j];
    if (t === 0) return [Math.min(Math.max(value, -FARTHEST), FARTHEST), ...member.curves[j].map((values) => interpolated(value, knots, values))];
    const rises = knots.slice(1).map((end, i) => expectedRamp(value, t, [knots[i], end > knots[i] ? end : knots[i] + 1]));
    return [(2 * expectedRamp(value, t, [-FARTHEST, FARTHEST]) - 1) * FARTHEST,
      ...member.curves[j].map((values) => rises.reduce((sum, rise, i) => sum + rise * (values[i + 1] - values[i]), values[0]))];
  });
  return ofTerms(terms, member);
}

// The expected average of all members for a row in which unknown inputs are null.
function learntExpected(model, row) {
  const found = conditional(model.density, row), deviations = deviationsOf(model.density, found);
  const rules = model.members.reduce((sum, member) =>
    sum + member.share * (member.mean + member.scale * expectedMember(found.means, deviations, member)), 0);
  return rules + model.effect_members.reduce((sum, member) => sum + member.share * expectedEffects(found.means, deviations, member), 0);
}

// Deviation of the prediction over unknown inputs: first and second differences along the columns of a Cholesky factor.
function inputDeviation(model, row) {
  if (!row.includes(null)) return 0;
  const { means, unknown, covariance } = conditional(model.density, row), middle = learnt(model, means);
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
  return Math.sqrt(variance);
}
