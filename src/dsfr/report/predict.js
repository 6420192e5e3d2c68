"use strict";
// The model itself: the same formulas as dsfr.core, in double precision.
// Largest scaled value, as in dsfr.core.scaling.
const MAX_SCALED = 1e100;

function scaled(row, member) {
  return row.map((value, j) => {
    const seen = member.limits ? Math.min(Math.max(value, member.limits[0][j]), member.limits[1][j]) : value;
    const z = (seen - member.middle[j]) / member.half[j];
    return Math.min(Math.max(z, -MAX_SCALED), MAX_SCALED);
  });
}

// Softmax of log-memberships: the plain product underflows to 0/0 far from all centers.
function firingStrengths(z, member) {
  if (member.conditions) return member.conditions.map((conditions) =>
    conditions.reduce((product, condition) => product * conditionDegree(condition, z[condition.feature]), 1));
  const logMembership = LOG_MEMBERSHIPS[member.membership];
  const logs = member.centers.map((center, k) =>
    z.reduce((sum, value, j) => sum + logMembership((value - center[j]) / member.widths[k][j]), 0));
  const most = Math.max(...logs);
  const raw = logs.map((value) => Math.exp(value - most));
  const total = raw.reduce((a, b) => a + b, 0);
  return raw.map((value) => value / total);
}

function ramp(x, [start, end]) { return Math.min(Math.max((x - start) / (end - start), 0), 1); }

// Degree to which the condition of a rule over shared terms holds: above one ramp and below another.
function conditionDegree({ above, below }, x) { return (above ? ramp(x, above) : 1) - (below ? ramp(x, below) : 0); }

function memberPrediction(row, member) { return member.mean + member.scale * linesAt(scaled(row, member), member); }

// Lines of the rules at scaled inputs, weighted by the rules' strengths.
function linesAt(z, member) {
  let sum = 0;
  firingStrengths(z, member).forEach((strength, k) => {
    const weights = member.weights[k];
    let line = weights[0];
    for (let j = 0; j < z.length; j++) line += weights[j + 1] * z[j];
    sum += strength * line;
  });
  return sum;
}

// Largest size of a line of effects, as in dsfr.core.features.effects.
const FARTHEST = 30;

// Piecewise linear between ascending knots, constant beyond.
function interpolated(z, knots, values) {
  const last = knots.length - 1;
  if (z >= knots[last]) return values[last];
  if (z < knots[0]) return values[0];
  let low = 0, high = last;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (knots[middle] <= z) low = middle; else high = middle;
  }
  return values[low] + (values[high] - values[low]) * ((z - knots[low]) / (knots[high] - knots[low]));
}

// Line and curves of every feature.
function termsOf(row, member) {
  return scaled(row, member).map((z, j) => [Math.min(Math.max(z, -FARTHEST), FARTHEST),
    ...member.curves[j].map((values) => interpolated(z, member.knots[j], values))]);
}

function effectPrediction(row, member) { return ofTerms(termsOf(row, member), member); }

function ofTerms(terms, member) {
  let sum = member.weights[0];
  member.effects.forEach((effect, i) => {
    sum += factorsOf(effect).reduce((product, [j, a]) => product * terms[j][a], member.weights[1 + i]);
  });
  return member.mean + member.scale * sum;
}

// Feature and term of every factor.
function factorsOf(effect) {
  return effect.length > 2 ? [effect.slice(0, 2), ...factorsOf(effect.slice(2))] : [effect];
}

// A product as a sum of products of terms less their origins: the weight of each, and which factors are moved.
function aboutOrigin(factors, origin, weight) {
  if (!factors.length) return [{ weight, moved: [] }];
  const [[j, a], ...others] = factors;
  const rest = aboutOrigin(others, origin, weight);
  return [...rest.map((part) => ({ ...part, weight: part.weight * origin[j][a] })),
    ...rest.map((part) => ({ ...part, moved: [[j, a], ...part.moved] }))];
}

// Effects relative to the typical row, from the terms of every member: of every feature, and of every group beyond fewer of its features, by "first,second".
function effectsOf(model, termsOfMembers) {
  const features = model.features.map(() => 0), together = {};
  for (const group of model.groups) together[group] = 0;
  model.effect_members.forEach((member, number) => {
    const origin = termsOf(model.reference, member), terms = termsOfMembers[number];
    member.effects.forEach((effect, i) => {
      for (const { weight, moved } of aboutOrigin(factorsOf(effect), origin, member.share * member.scale * member.weights[1 + i])) {
        const value = moved.reduce((product, [j, a]) => product * (terms[j][a] - origin[j][a]), weight);
        if (moved.length === 1) features[moved[0][0]] += value;
        if (moved.length > 1) together[moved.map(([j]) => j).sort((j, k) => j - k)] += value;
      }
    });
  });
  return { features, together };
}

// Average of all members, on the scale on which they are learnt; the expected one where unknown inputs are null.
function learnt(model, row) {
  if (row.includes(null)) return learntExpected(model, row);
  const rules = model.members.reduce((sum, member) => sum + member.share * memberPrediction(row, member), 0);
  return rules + model.effect_members.reduce((sum, member) => sum + member.share * effectPrediction(row, member), 0);
}

function held(link, value) { return Math.min(Math.max(value, link.low), link.high); }

function predict(model, row) {
  const link = model.link, value = learnt(model, row);
  if (!link) return value;
  return link.is_log ? link.factor * Math.exp(held(link, value)) : held(link, value);
}

// Ends of the jackknife interval of the chosen nominal coverage; null for a model without uncertainty.
function interval(model, row, coverage) {
  if (!model.interval) return null;
  const half = halfWidth(model, row, coverage), link = model.link, value = learnt(model, row);
  if (!link) return [value - half, value + half];
  const center = held(link, value), predicted = predict(model, row);
  const ends = [center - half, center + half].map((end) => link.is_log ? Math.exp(end) : end);
  return [Math.min(ends[0], predicted), Math.max(ends[1], predicted)].map((end) => Math.min(Math.max(end, link.floor), link.ceiling));
}

// Strengths of the rules of all members, concatenated, or expected ones; they sum to the share of the rules.
function strengths(model, row) { return contributions(model, row).strengths; }

// prediction = start + sum of contributions: of which rules fire, of every feature and of every pair and triple of features.
// Where inputs are unknown, these are contributions to the expected prediction.
function contributions(model, row) {
  const found = possible(model, row).map((one) => ({ weight: one.weight, ...contributionsOf(model, one) }));
  const mean = (name) => found[0][name].map((_, i) => found.reduce((sum, one) => sum + one.weight * one[name][i], 0));
  return { start: model.start, firing: found.reduce((sum, one) => sum + one.weight * one.firing, 0),
    strengths: mean("strengths"), features: mean("features"), together: mean("together") };
}

function contributionsOf(model, one) {
  let firing = 0;
  const strengths = [], features = model.features.map(() => 0);
  for (const member of model.members) {
    const reference = scaled(model.reference, member);
    momentsOf(one, member).forEach(([fired, ...moved], k) => {
      const weights = member.weights[k], strength = member.share * fired;
      const line = reference.reduce((sum, value, j) => sum + weights[j + 1] * value, weights[0]);
      strengths.push(strength);
      firing += strength * (member.mean + member.scale * line - model.rules_start);
      moved.forEach((value, j) => { features[j] += member.share * member.scale * weights[j + 1] * (value - fired * reference[j]); });
    });
  }
  const effects = effectsOf(model, model.effect_members.map((member) => termsOfPossible(one, member)));
  return { firing, strengths, features: features.map((part, j) => part + effects.features[j]),
    together: model.groups.map((group) => effects.together[group]) };
}

