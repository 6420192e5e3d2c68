// Rules as cards, and plots of their fuzzy sets.
function fillRules() {
  if (!model.members.length) return;
  byId("rules-hint").textContent = model.rules_hint;
  byId("rule-feature").append(element("option", { value: "" }, "any"), ...[...inputColumns()].sort((a, b) => a.features[0] - b.features[0]).map((input) => element("option", { value: input.features.join(" ") }, input.name)));
  byId("rule-label").append(element("option", { value: "" }, "anything"), ...model.words.map((text) => element("option", { value: text }, text)));
  fillMembers();
  for (const id of ["rule-search", "rule-feature", "rule-label", "rule-sort", "rule-member"]) byId(id).addEventListener("input", drawCards);
  byId("rule-member").addEventListener("input", () => { if (byId("set-chart").clientWidth) drawSets(); });
  byId("rule-tools").hidden = Boolean(model.terms) && model.rules.length <= FEW_RULES;
  drawCards();
  show("rules", "Rules");
  fillShared();
  fillLimits();
  fillTree();
  fillWords();
}

const FEW_RULES = 6;

// Of several members, the rules of the one with the largest share are shown first; the others on demand.
function fillMembers() {
  const names = model.members.map((member, m) => `${m + 1} (${(100 * member.share).toFixed(0)} %)`);
  byId("rule-member").append(...names.map((name, m) => element("option", { value: m + 1 }, name)), element("option", { value: "" }, "all"));
  byId("rule-member").parentElement.hidden = model.members.length < 2;
}

function rulesOfMember() {
  const member = byId("rule-member").value;
  return model.rules.filter((rule) => member === "" || rule.member === Number(member));
}

const SORTS = { number: (r) => r.number, share: (r) => -r.share, mean: (r) => -r.mean, conditions: (r) => r.conditions.length };

function chosenRules() {
  const text = byId("rule-search").value.trim().toLowerCase();
  const feature = byId("rule-feature").value, labelled = byId("rule-label").value;
  const fits = (c) => (feature === "" || feature.split(" ").includes(String(c.feature))) && (labelled === "" || c.label === labelled);
  const key = SORTS[byId("rule-sort").value];
  return rulesOfMember()
    .filter((rule) => (feature === "" && labelled === "") || rule.conditions.some(fits))
    .filter((rule) => text === "" || rule.search.includes(text))
    .sort((a, b) => key(a) - key(b) || a.number - b.number);
}

function drawCards() {
  const rules = chosenRules();
  byId("cards").replaceChildren(...rules.map(cardOf));
  byId("rule-count").textContent = `${rules.length} of ${rulesOfMember().length} rules`;
}

function cardOf(rule) {
  const bar = element("span");
  bar.style.width = `${Math.min(100, 100 * rule.share)}%`;
  const card = element("article", { class: "card panel", "data-rule": rule.number, "aria-label": `Rule ${rule.number}` },
    element("header", {}, element("h3", {}, `Rule ${rule.number}`), element("span", { class: "mean" }, rule.mean_text)),
    element("div", { class: "share", title: rule.share_text }, bar),
    ...conditionsOf(rule),
    ...lineOf(rule),
    typicalOf(rule),
    element("div", { class: "actions" }, element("button", { type: "button", onclick: () => tryRow(rule.center) }, "Try its center")));
  card.style.setProperty("--rule", ruleColor(rule.number - 1));
  return card;
}

const MOST_CONDITIONS = 8, MOST_TERMS = 12;

// The line of a rule; of many terms, those of the most relevant inputs first, the others on demand.
function lineOf(rule) {
  const { terms, features, constant } = rule.then;
  const own = features.filter((feature) => feature !== null); // the name of the part that all rules share has none
  const relevant = new Set([null, ...own.sort((a, b) => model.order.indexOf(a) - model.order.indexOf(b)).slice(0, MOST_TERMS)]);
  const spans = (isShown) => terms.flatMap((term, i) => (relevant.has(features[i]) === isShown ? [" ", termOf(term, features[i])] : []));
  const line = element("p", { class: "then" }, element("b", {}, "THEN "), constant, ...spans(true));
  const others = spans(false);
  if (!others.length) return [line];
  return [line, element("details", {}, element("summary", {}, `and ${others.length / 2} terms that matter less`), element("p", {}, ...others))];
}

function termOf(term, feature) {
  if (feature !== null) return element("span", {}, term);
  return element("a", { class: "named", href: "#shared" }, term);
}

// Terms that are the same in every rule stand above the cards, once.
function fillShared() {
  if (!model.shared) return;
  byId("shared").hidden = false;
  byId("shared-title").textContent = model.shared.title;
  byId("shared-terms").append(...model.shared.terms.flatMap((term) => [" ", element("span", {}, term)]));
}

// The rest of what the printed text says: where inputs and results are cut off, and how far observations deviate.
function fillLimits() {
  if (!model.limits || !model.limits.length) return;
  byId("limits").hidden = false;
  byId("limits-list").append(...model.limits.map((text) => element("li", {}, text)));
}

// All conditions in order; if there are many, the most important ones first, the others on demand.
function conditionsOf(rule) {
  const list = (items) => element("ul", { class: "conditions" }, ...items);
  if (!rule.conditions.length) return [list([element("li", {}, element("span", { class: "and" }, "IF"), element("span", {}, "always"))])];
  const important = [...rule.conditions].sort((a, b) => b.importance - a.importance).slice(0, MOST_CONDITIONS);
  const first = rule.conditions.filter((c) => important.includes(c)), others = rule.conditions.filter((c) => !important.includes(c));
  const shown = [list(first.map((c, i) => conditionOf(c, i ? "AND" : "IF")))];
  if (others.length) shown.push(element("details", {}, element("summary", {}, `and ${others.length} conditions that matter less`), list(others.map((c) => conditionOf(c, "AND")))));
  return shown;
}

function conditionOf(c, joint) {
  return element("li", {}, element("span", { class: "and" }, joint),
    element("span", {}, `${c.name} is `, element("b", {}, c.label), " ", element("em", {}, c.about)));
}

function typicalOf(rule) {
  if (!rule.typical.length) return null;
  const header = ["", ...rule.typical.map((row) => `row ${row.number}`)];
  const valueOf = ({ features, category }, row) => category ? category.levels[likeliest(category, row)] : readable(row[features[0]]);
  const lineOf = (input) => [input.name, ...rule.typical.map((row) => valueOf(input, row.values))];
  const shown = inputColumns().slice(0, MOST_INPUTS), others = inputColumns().length - shown.length;
  const note = others > 0 ? element("p", { class: "hint" }, `and ${others} inputs that matter less`) : null;
  return element("details", {}, element("summary", {}, "Most typical rows"), element("div", { class: "scroll" }, sortableTable(header, shown.map(lineOf))), note);
}

function tryRow(row) {
  useRow(row);
  byId("what-if").scrollIntoView();
  document.querySelector("#inputs input, #inputs select").focus({ preventScroll: true });
}

// ---- sets
function fillSets() {
  if (!model.members.length) return;
  if (model.terms) return; // shared words have plots of their own
  featureOptions(byId("set-feature"));
  byId("set-feature").addEventListener("input", drawSets);
  show("sets", "Sets");
  onWidth(byId("set-chart"), drawSets);
}

function membership(rule, j, value) {
  const { conditions } = model.members[rule.member - 1];
  if (conditions) {
    const own = conditions[rule.number - 1].find((condition) => condition.feature === j);
    return own ? conditionDegree(own, value) : 1;
  }
  const logMembership = LOG_MEMBERSHIPS[model.members[rule.member - 1].membership];
  return Math.exp(logMembership((value - rule.center[j]) / rule.width[j]));
}

const MOST_CURVED = 10;

function drawSets() {
  const j = Number(byId("set-feature").value), column = model.columns[j];
  if (rulesOfMember().length > MOST_CURVED) { drawIntervals(j, column); return; }
  const plot = frame(byId("set-chart"), { xRange: [column.low, column.high], yRange: [0, 1.3], xLabel: model.features[j], height: 320, noY: true,
    label: `Sets of ${model.features[j]} in every rule` });
  drawHistogram(plot, column.histogram);
  const points = grid(column.low, column.high, 300);
  const rules = rulesOfMember();
  const levels = labelLevels(rules.map((rule) => plot.x(clamped(rule.center[j], column))));
  rules.forEach((rule, i) => {
    const k = rule.number - 1;
    const matters = rule.conditions.some((c) => c.feature === j);
    plot.svg.append(shape("path", { d: path(points.map((v) => [plot.x(v), plot.y(membership(rule, j, v))])), fill: "none", stroke: ruleColor(k),
      "stroke-width": matters ? 2.4 : 1.2, "stroke-dasharray": matters ? ruleDash(k) : "2 4", opacity: matters ? 1 : 0.7 }));
    if (levels[i] === null) return;
    const top = clamped(rule.center[j], column);
    plot.svg.append(shape("text", { x: plot.x(top), y: plot.y(1) - 6 - 13 * levels[i], "text-anchor": "middle", style: `fill:${ruleColor(k)};font-weight:600` }, String(rule.number)));
  });
  cursor(plot, [column.low, column.high], byId("set-readout"), (value) => `${model.features[j]} ${readable(value)} (${word(j, value)}): ` +
    [...rules].sort((a, b) => membership(b, j, value) - membership(a, j, value)).slice(0, 4)
      .map((rule) => `rule ${rule.number} ${membership(rule, j, value).toFixed(2)}`).join(", "), state.row[j]);
}

function clamped(value, column) { return Math.min(Math.max(value, column.low), column.high); }

// Labels of rules whose sets peak at nearly the same value are stacked, as far as there is room.
function labelLevels(places) {
  const last = [], levels = [];
  places.map((place, k) => ({ place, k })).sort((a, b) => a.place - b.place).forEach(({ place, k }) => {
    const free = last.findIndex((end) => place - end > 18);
    levels[k] = free >= 0 ? free : last.length < 4 ? last.length : null;
    if (levels[k] !== null) last[levels[k]] = place;
  });
  return levels;
}

function drawHistogram(plot, histogram) {
  if (!histogram) return;
  const most = Math.max(...histogram.counts, 1);
  histogram.counts.forEach((count, i) => {
    const left = plot.x(histogram.edges[i]), right = plot.x(histogram.edges[i + 1]), top = plot.y(0.55 * count / most);
    plot.svg.append(shape("rect", { x: left + 0.5, width: Math.max(right - left - 1, 0.5), y: top, height: plot.bottom - top, fill: "var(--bar)", opacity: 0.55 }));
  });
}
