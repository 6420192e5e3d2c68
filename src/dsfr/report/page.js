// The page: every section is filled from the model's numbers; sections without numbers stay hidden.
const model = JSON.parse(document.getElementById("model").textContent);
const byId = (id) => document.getElementById(id);
const state = { row: [...model.reference], listeners: [], coverage: model.interval?.first };

function show(id, title) {
  byId(id).hidden = false;
  byId("nav").append(element("a", { href: `#${id}` }, title));
}

function changed() { state.listeners.forEach((listener) => listener()); }

function onWidth(container, draw) {
  let width = 0;
  new ResizeObserver(() => {
    if (Math.abs(container.clientWidth - width) < 2) return;
    width = container.clientWidth;
    draw();
  }).observe(container);
}

function featureOptions(select, chosen = 0) {
  select.replaceChildren(...model.features.map((name, j) => element("option", { value: j }, name)));
  select.value = String(chosen);
}

function word(j, value) {
  const { quantiles, low, high } = model.columns[j];
  const near = 0.005 * (high - low); // the center of a cluster of equal values is only nearly one of them
  const under = quantiles.filter((q) => q < value - near).length, upTo = quantiles.filter((q) => q <= value + near).length;
  const place = (under + upTo) / (2 * quantiles.length);
  return model.words[model.word_edges.filter((edge) => place >= edge).length];
}

// ---- summary
function fillSummary() {
  byId("lead").textContent = model.lead;
  byId("tiles").append(...model.tiles.map((tile) => element("div", {}, element("dt", {}, tile.name),
    element("dd", {}, tile.value, tile.note ? element("small", {}, tile.note) : null))));
  show("summary", "Summary");
}

// ---- what if
function fillInputs() {
  byId("what-target").textContent = model.target;
  byId("inputs").append(...model.features.map((name, j) => inputOf(name, j)));
  byId("reset").addEventListener("click", () => useRow(model.reference));
  fillCoverages();
  state.listeners.push(drawPrediction);
  show("what-if", "What if");
  useRow(model.first_row);
}

function fillCoverages() {
  if (!model.interval) return;
  byId("interval").hidden = false;
  byId("coverage").append(...Object.keys(model.interval.half_widths).sort().map((text) => element("option", { value: text }, text)));
  byId("coverage").value = state.coverage;
  byId("coverage").addEventListener("input", () => { state.coverage = byId("coverage").value; changed(); });
}

function inputOf(name, j) {
  const column = model.columns[j];
  const range = element("input", { type: "range", id: `range-${j}`, min: column.low, max: column.high, step: "any", "aria-label": name });
  const number = element("input", { type: "number", id: `number-${j}`, step: "any", "aria-label": `${name}, number` });
  const says = element("span", { class: "word", id: `word-${j}` });
  range.addEventListener("input", () => setValue(j, Number(range.value), range));
  number.addEventListener("input", () => { if (number.value !== "" && Number.isFinite(Number(number.value))) setValue(j, Number(number.value), number); });
  return element("div", { class: "input" }, element("label", { for: `range-${j}` }, name, " ", says), number, range);
}

function setValue(j, value, source) {
  state.row[j] = value;
  const range = byId(`range-${j}`), number = byId(`number-${j}`);
  if (source !== range) range.value = String(value);
  if (source !== number) number.value = source === range ? String(Number(value.toPrecision(6))) : String(value);
  if (source === range) state.row[j] = Number(number.value);
  byId(`word-${j}`).textContent = word(j, state.row[j]);
  changed();
}

function useRow(row) {
  row.forEach((value, j) => {
    state.row[j] = value;
    byId(`range-${j}`).value = String(value);
    byId(`number-${j}`).value = String(Number(value.toPrecision(6)));
    byId(`word-${j}`).textContent = word(j, value);
  });
  changed();
}

function drawPrediction() {
  const value = predict(model, state.row), half = halfWidth(model, state.coverage);
  byId("prediction").textContent = readable(value);
  byId("prediction").dataset.value = value;
  byId("interval-text").textContent = half === null ? "" : `of targets lie between ${readable(value - half)} and ${readable(value + half)}`;
  const fired = strengths(model, state.row).map((strength, k) => ({ strength, k })).sort((a, b) => b.strength - a.strength).slice(0, 6);
  meters(byId("firing"), fired.filter(({ strength }) => strength >= 0.0005).map(({ strength, k }) => ({
    name: `Rule ${k + 1}`, value: strength, text: `${(100 * strength).toFixed(1)} %`, color: ruleColor(k) })));
  drawContributions(value);
}

function drawContributions(value) {
  const parts = contributions(model, state.row);
  const least = 1e-9 * (Math.abs(parts.start) + Math.abs(value));
  const signed = (part) => Math.abs(part) <= least ? "0" : (part < 0 ? "−" : "+") + readable(Math.abs(part));
  const features = parts.features.map((part, j) => ({ name: model.features[j], value: part })).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const shown = features.slice(0, 10), rest = features.slice(10).reduce((sum, part) => sum + part.value, 0);
  const rows = [{ name: "which rules fire", value: parts.firing }, ...shown];
  if (features.length > 10) rows.push({ name: `${features.length - 10} others`, value: rest });
  const bars = element("div");
  meters(bars, rows.map((row) => ({ ...row, text: signed(row.value), color: row.value < 0 ? "var(--down)" : "var(--up)" })), { signed: true });
  byId("contributions").replaceChildren(plainRow("mean output", readable(parts.start), ""), bars, plainRow(`= ${model.target}`, readable(value), "total"));
}

function plainRow(name, text, extra) {
  return element("div", { class: `meter ${extra}` }, element("span", { class: "name", title: name }, name), element("span"), element("span", { class: "value" }, text));
}

// ---- rules
function fillRules() {
  byId("rules-hint").textContent = model.rules_hint;
  byId("rule-feature").append(element("option", { value: "" }, "any"), ...model.features.map((name, j) => element("option", { value: j }, name)));
  byId("rule-label").append(element("option", { value: "" }, "anything"), ...model.words.map((text) => element("option", { value: text }, text)));
  fillMembers();
  for (const id of ["rule-search", "rule-feature", "rule-label", "rule-sort", "rule-member"]) byId(id).addEventListener("input", drawCards);
  byId("rule-member").addEventListener("input", () => { if (byId("set-chart").clientWidth) drawSets(); });
  drawCards();
  show("rules", "Rules");
}

// An average of several models shows the rules of the strongest, until others are asked for.
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
  const fits = (c) => (feature === "" || c.feature === Number(feature)) && (labelled === "" || c.label === labelled);
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
    element("p", { class: "then" }, element("b", {}, "THEN "), rule.then.constant, ...rule.then.terms.flatMap((term) => [" ", element("span", {}, term)])),
    typicalOf(rule),
    element("div", { class: "actions" }, element("button", { type: "button", onclick: () => tryRow(rule.center) }, "Try its center")));
  card.style.setProperty("--rule", ruleColor(rule.number - 1));
  return card;
}

const MOST_CONDITIONS = 8;

// All conditions in order; of many, the most important ones, and the others on demand.
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
    element("span", {}, `${model.features[c.feature]} is `, element("b", {}, c.label), " ", element("em", {}, c.about)));
}

function typicalOf(rule) {
  if (!rule.typical.length) return null;
  const header = ["", ...rule.typical.map((row) => `row ${row.number}`)];
  const lines = model.features.map((name, j) => [name, ...rule.typical.map((row) => readable(row.values[j]))]);
  return element("details", {}, element("summary", {}, "Most typical rows"), element("div", { class: "scroll" }, sortableTable(header, lines)));
}

function tryRow(row) {
  useRow(row);
  byId("what-if").scrollIntoView();
  byId("range-0").focus({ preventScroll: true });
}

// ---- sets
function fillSets() {
  featureOptions(byId("set-feature"), model.first_feature);
  byId("set-feature").addEventListener("input", drawSets);
  show("sets", "Sets");
  onWidth(byId("set-chart"), drawSets);
}

function membership(rule, j, value) { return Math.exp(-(((value - rule.center[j]) / rule.width[j]) ** 2)); }

function drawSets() {
  const j = Number(byId("set-feature").value), column = model.columns[j];
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
    const top = clamped(rule.center[j], column);
    plot.svg.append(shape("text", { x: plot.x(top), y: plot.y(1) - 6 - 13 * levels[i], "text-anchor": "middle", style: `fill:${ruleColor(k)};font-weight:600` }, String(rule.number)));
  });
  cursor(plot, [column.low, column.high], byId("set-readout"), (value) => `${model.features[j]} ${readable(value)} (${word(j, value)}): ` +
    [...rules].sort((a, b) => membership(b, j, value) - membership(a, j, value)).slice(0, 4)
      .map((rule) => `rule ${rule.number} ${membership(rule, j, value).toFixed(2)}`).join(", "), state.row[j]);
}

function clamped(value, column) { return Math.min(Math.max(value, column.low), column.high); }

// Numbers of rules whose sets peak at nearly the same place stand above each other.
function labelLevels(places) {
  const last = [], levels = [];
  places.map((place, k) => ({ place, k })).sort((a, b) => a.place - b.place).forEach(({ place, k }) => {
    let level = last.findIndex((end) => place - end > 16);
    if (level < 0) level = last.length < 4 ? last.length : 0;
    last[level] = place;
    levels[k] = level;
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

// ---- response
function fillResponse() {
  featureOptions(byId("response-feature"), model.first_feature);
  byId("response-feature").addEventListener("input", drawResponse);
  show("response", "Response");
  onWidth(byId("response-chart"), drawResponse);
  state.listeners.push(drawResponse);
}

function drawResponse() {
  if (!byId("response-chart").clientWidth) return;
  const j = Number(byId("response-feature").value), column = model.columns[j];
  const at = (value) => { const row = [...state.row]; row[j] = value; return row; };
  const points = grid(column.low, column.high, 200).map((v) => ({ v, y: predict(model, at(v)), half: halfWidth(model, state.coverage) || 0 }));
  const range = padded([...points.map((p) => p.y - p.half), ...points.map((p) => p.y + p.half)]);
  const plot = frame(byId("response-chart"), { xRange: [column.low, column.high], yRange: range, xLabel: model.features[j], yLabel: model.target, height: 320,
    label: `${model.target} along ${model.features[j]}` });
  if (model.interval) {
    const up = points.map((p) => [plot.x(p.v), plot.y(p.y + p.half)]), down = points.map((p) => [plot.x(p.v), plot.y(p.y - p.half)]).reverse();
    plot.svg.append(shape("path", { d: `${path([...up, ...down])}Z`, fill: "var(--c0)", opacity: 0.16 }));
  }
  plot.svg.append(shape("path", { d: path(points.map((p) => [plot.x(p.v), plot.y(p.y)])), fill: "none", stroke: "var(--c0)", "stroke-width": 2.6 }));
  const here = clamped(state.row[j], column);
  plot.svg.append(shape("circle", { cx: plot.x(here), cy: plot.y(predict(model, at(here))), r: 5, fill: "var(--c1)", stroke: "var(--panel)", "stroke-width": 1.5 }));
  cursor(plot, [column.low, column.high], byId("response-readout"), (value) => {
    const y = predict(model, at(value)), half = halfWidth(model, state.coverage);
    return `${model.features[j]} ${readable(value)}: ${model.target} ${readable(y)}${half === null ? "" : ` ± ${readable(half)}`}`;
  }, here);
}

// ---- fit to the data
function fillFit() {
  if (!model.fit) return;
  byId("fit-hint").textContent = model.fit.hint;
  show("fit", "Fit");
  onWidth(byId("fit-chart"), drawFit);
}

function drawFit() {
  const points = model.fit.points, range = padded(points.flat());
  const width = byId("fit-chart").clientWidth;
  const plot = frame(byId("fit-chart"), { xRange: range, yRange: range, xLabel: `true ${model.target}`, yLabel: `predicted ${model.target}`, height: Math.min(460, Math.max(280, width * 0.6)),
    label: "Predicted against true values" });
  plot.svg.append(shape("line", { x1: plot.x(range[0]), y1: plot.y(range[0]), x2: plot.x(range[1]), y2: plot.y(range[1]), stroke: "var(--soft)", "stroke-dasharray": "5 4" }));
  if (model.fit.half_width !== null) drawBand(plot, range, model.fit.half_width);
  for (const [truth, guess] of points) plot.svg.append(shape("circle", { cx: plot.x(truth), cy: plot.y(guess), r: 2.6, fill: "var(--c0)", opacity: 0.55 }));
}

// Where predictions may lie for the interval to hold the true value.
function drawBand(plot, [low, high], half) {
  const end = (x, y) => [plot.x(x), plot.y(Math.min(Math.max(y, low), high))];
  const xs = grid(low, high, 100);
  const outline = [...xs.map((x) => end(x, x + half)), ...xs.reverse().map((x) => end(x, x - half))];
  plot.svg.append(shape("path", { d: `${path(outline)}Z`, fill: "var(--c2)", opacity: 0.14 }));
}

// ---- training
function fillTraining() {
  const { history, ledger, agents } = model.record;
  if (!history.length && !ledger.length) return;
  show("training", "Training");
  if (history.length) { byId("convergence").hidden = false; onWidth(byId("convergence-charts"), drawConvergence); }
  if (ledger.length) fillTable("ledger", ["task", "rounds", "messages", "kB to agents", "kB from agents"],
    ledger.map((e) => [e.task + (["gather", "neighbor_sum"].includes(e.verb) ? " *" : ""), e.rounds, e.messages, e.bytes_down / 1e3, e.bytes_up / 1e3]),
    "* one agent's own contribution is seen by the coordinator or a neighbor, not only a sum");
  if (agents.length) fillTable("agents", ["agent", "rounds", "messages", "kB received", "kB sent"],
    [...agents].sort((a, b) => naturally(a.agent, b.agent)).map((e) => [e.agent, e.rounds, e.messages, e.bytes_received / 1e3, e.bytes_sent / 1e3]));
}

function fillTable(id, header, rows, note = null) {
  byId(id).hidden = false;
  byId(`${id}-table`).replaceChildren(sortableTable(header, rows), note && rows.some((row) => String(row[0]).endsWith("*")) ? element("p", { class: "hint" }, note) : "");
}

function drawConvergence() {
  const stages = [...new Set(model.record.history.map((info) => info.stage))];
  const boxes = stages.map((stage) => element("div", {}, element("h4", {}, stage === "weights" ? "Weights" : stage === "clusters" ? "Clusters" : stage), element("div", { class: "chart" }), element("div", { class: "legend" })));
  byId("convergence-charts").replaceChildren(...boxes);
  stages.forEach((stage, i) => drawStage(boxes[i].children[1], boxes[i].children[2], model.record.history.filter((info) => info.stage === stage)));
}

const CURVES = [["error_bound", "error bound"], ["primal_residual", "primal residual"], ["dual_residual", "dual residual"]];

function drawStage(container, legend, rounds) {
  const positive = (key) => rounds.filter((info) => info[key] > 0 && info[key] < 1e299);
  const values = CURVES.flatMap(([key]) => positive(key).map((info) => info[key]));
  if (!values.length || rounds.length < 2) { container.replaceChildren(element("p", { class: "hint" }, "Solved in one round, from sums.")); return; }
  const low = Math.min(...values), high = Math.max(...values);
  const plot = frame(container, { xRange: [rounds[0].round, rounds[rounds.length - 1].round], yRange: [low / 1.5, high * 1.5], logY: true, height: 240, xLabel: "round", label: "Residuals by round" });
  CURVES.forEach(([key, name], k) => {
    const told = positive(key);
    if (!told.length) return;
    const style = { fill: "none", stroke: `var(--c${k})`, "stroke-width": 2, "stroke-dasharray": DASHES[k] };
    plot.svg.append(shape("path", { d: path(told.map((info) => [plot.x(info.round), plot.y(info[key])])), ...style }));
    if (told.length === 1) plot.svg.append(shape("circle", { cx: plot.x(told[0].round), cy: plot.y(told[0][key]), r: 3, fill: `var(--c${k})` }));
    const mark = shape("svg", { viewBox: "0 0 32 12" });
    mark.append(shape("path", { d: "M1 6L31 6", ...style }));
    legend.append(element("span", {}, mark, name));
  });
}

// ---- notes, settings, colours
function fillNotes() {
  if (!model.notes.length) return;
  byId("notes-list").append(...model.notes.map((note) => element("li", { class: note.level }, element("b", {}, note.level === "warning" ? "⚠" : "ℹ"), note.text)));
  show("notes", "Notes");
}

function fillSettings() {
  byId("reproduce-hint").textContent = model.reproduce.hint;
  byId("reproduce").textContent = model.reproduce.code;
  byId("settings-table").append(sortableTable(["setting", "value"], model.settings));
  show("settings", "Reproduce");
}

const THEMES = { auto: ["◐ Auto", "as the system has them"], light: ["☀ Light", "light"], dark: ["☾ Dark", "dark"] };

function useTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  byId("theme").textContent = THEMES[name][0];
  byId("theme").setAttribute("aria-label", `Colours: ${THEMES[name][1]}`);
  byId("theme").dataset.name = name;
}

byId("theme").addEventListener("click", () => {
  const names = Object.keys(THEMES);
  useTheme(names[(names.indexOf(byId("theme").dataset.name) + 1) % names.length]);
});

useTheme("auto");
fillSummary();
fillInputs();
fillRules();
fillSets();
fillResponse();
fillFit();
fillTraining();
fillNotes();
fillSettings();
