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

function memberPrediction(row, member) {
  const z = scaled(row, member);
  let sum = 0;
  firingStrengths(z, member).forEach((strength, k) => {
    const weights = member.weights[k];
    let line = weights[0];
    for (let j = 0; j < z.length; j++) line += weights[j + 1] * z[j];
    sum += strength * line;
  });
  return member.mean + member.scale * sum;
}

function predict(model, row) {
  return model.members.reduce((sum, member) => sum + member.share * memberPrediction(row, member), 0);
}

// Strengths of the rules of all members, concatenated; they sum to 1.
function strengths(model, row) {
  return model.members.flatMap((member) => firingStrengths(scaled(row, member), member).map((s) => member.share * s));
}

// prediction = start + sum of contributions: per rule one for its firing, then one per feature.
function contributions(model, row) {
  const parts = model.members.flatMap((member) => {
    const z = scaled(row, member);
    const reference = scaled(model.reference, member);
    return firingStrengths(z, member).map((fired, k) => {
      const weights = member.weights[k];
      let line = weights[0];
      for (let j = 0; j < z.length; j++) line += weights[j + 1] * reference[j];
      const features = z.map((value, j) => weights[j + 1] * (value - reference[j]));
      const strength = member.share * fired;
      return [
        strength * (member.mean + member.scale * line - model.start),
        ...features.map((part) => strength * member.scale * part),
      ];
    });
  });
  const column = (j) => parts.reduce((sum, part) => sum + part[j], 0);
  return { start: model.start, firing: column(0), features: row.map((_, j) => column(j + 1)) };
}

// Half the width of the jackknife interval of the chosen nominal coverage; null for a model without uncertainty.
function halfWidth(model, coverage) { return model.interval ? model.interval.half_widths[coverage] : null; }
