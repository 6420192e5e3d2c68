// Sliders, the live prediction, and its contributions.
const MOST_INPUTS = 12;

function fillInputs() {
  byId("what-target").textContent = model.target;
  const made = inputColumns().map(({ name, features, category }) => category ? levelOf(category) : inputOf(name, features[0])), others = made.slice(MOST_INPUTS);
  byId("inputs").append(...made.slice(0, MOST_INPUTS));
  if (others.length) byId("inputs").append(element("details", {}, element("summary", {}, `${others.length} inputs that matter less`), ...others));
  byId("reset").addEventListener("click", () => useRow(model.reference));
  state.listeners.push(completeRow);
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
  const range = element("input", { type: "range", id: `range-${j}`, min: column.low, max: column.high, step: column.step, "aria-label": name });
  const number = element("input", { type: "number", id: `number-${j}`, step: "any", "aria-label": `${name}, number` });
  const says = element("span", { class: "word", id: `word-${j}` });
  range.addEventListener("input", () => setValue(j, Number(range.value), range));
  number.addEventListener("input", () => { if (number.value !== "" && Number.isFinite(Number(number.value))) setValue(j, Number(number.value), number); });
  return element("div", { class: "input" }, element("label", { for: `range-${j}` }, name, " ", says), number, range, ...switchOf(name, j, [j]));
}

// A switch that makes an input unknown, with all of its features, if the model knows how its inputs are distributed.
function switchOf(name, id, features) {
  if (!model.density) return [];
  const box = element("input", { type: "checkbox", id: `unknown-${id}`, "aria-label": `${name} is unknown` });
  box.addEventListener("input", () => {
    features.forEach((j) => { state.unknown[j] = box.checked; });
    const category = model.categories.find((entry) => features[0] in entry.features);
    if (category && !box.checked) setLevel(category, likeliest(category, state.row));
    changed();
  });
  return [element("label", { class: "unknown", for: `unknown-${id}` }, box, " unknown")];
}

// Unknown inputs are shown at what is expected of them, given the others.
function completeRow() {
  const row = knownRow();
  if (row.includes(null)) conditional(model.density, row).means.forEach((value, j) => { if (state.unknown[j]) showValue(j, value); });
  model.categories.forEach((category, number) => {
    const unknown = Object.keys(category.features).some((j) => state.unknown[j]), select = byId(`level-${number}`);
    select.disabled = unknown;
    if (unknown) select.value = String(likeliest(category, state.row));
    byId(`level-word-${number}`).textContent = unknown ? "unknown, likeliest is" : "";
  });
  state.unknown.forEach((unknown, j) => {
    if (!byId(`range-${j}`)) return;
    for (const id of ["range", "number"]) byId(`${id}-${j}`).disabled = unknown;
    if (unknown) byId(`word-${j}`).textContent = "unknown, expected here";
    else if (byId(`word-${j}`).textContent.startsWith("unknown")) byId(`word-${j}`).textContent = word(j, state.row[j]);
  });
}

function showValue(j, value) {
  state.row[j] = value;
  if (!byId(`range-${j}`)) return;
  byId(`range-${j}`).value = String(value);
  byId(`number-${j}`).value = String(Number(value.toPrecision(6)));
  byId(`word-${j}`).textContent = word(j, value);
}

// A category: one choice sets the indicators of all of its levels.
function levelOf(category) {
  const number = model.categories.indexOf(category), id = `level-${number}`, features = Object.keys(category.features).map(Number);
  const select = element("select", { id, "aria-label": category.name }, ...category.levels.map((text, place) => element("option", { value: place }, text)));
  select.addEventListener("input", () => { setLevel(category, Number(select.value)); changed(); });
  const says = element("span", { class: "word", id: `level-word-${number}` });
  return element("div", { class: "input" }, element("label", { for: id }, category.name, " ", says), select, ...switchOf(category.name, id, features));
}

function setLevel(category, chosen) {
  for (const [j, place] of Object.entries(category.features)) state.row[j] = place === chosen ? 1 : 0;
  byId(`level-${model.categories.indexOf(category)}`).value = String(chosen);
}

// The level of a row, or the likeliest one of a typical row, whose indicators are shares.
function likeliest(category, row) {
  const shares = category.levels.map(() => null);
  for (const [j, place] of Object.entries(category.features)) shares[place] = row[j];
  const rest = 1 - shares.reduce((sum, share) => sum + (share ?? 0), 0);
  return shares.map((share) => share ?? rest).reduce((best, share, place, all) => (share > all[best] ? place : best), 0);
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
    state.unknown[j] = false;
    if (!byId(`range-${j}`)) return;
    if (model.density) byId(`unknown-${j}`).checked = false;
    showValue(j, value);
  });
  model.categories.forEach((category, number) => {
    if (model.density) byId(`unknown-level-${number}`).checked = false;
    setLevel(category, likeliest(category, row));
  });
  changed();
}

function drawPrediction() {
  const row = knownRow(), value = predict(model, row), ends = interval(model, row, state.coverage);
  byId("prediction").textContent = readable(value);
  byId("prediction").dataset.value = value;
  byId("brief").textContent = `= ${readable(value)}`;
  byId("interval-text").textContent = ends === null ? "" : `interval (jackknife): ${readable(ends[0])} to ${readable(ends[1])}`;
  byId("fires").hidden = !model.members.length;
  const fired = strengths(model, row).map((strength, k) => ({ strength, k })).sort((a, b) => b.strength - a.strength).slice(0, 6);
  meters(byId("firing"), fired.filter(({ strength }) => strength >= 0.0005).map(({ strength, k }) => ({
    name: `Rule ${k + 1}`, value: strength, text: `${(100 * strength).toFixed(1)} %`, color: ruleColor(k) })));
  drawContributions(row, learnt(model, row), value);
}

function drawContributions(row, value, prediction) {
  const parts = contributions(model, row);
  const least = 1e-9 * (Math.abs(parts.start) + Math.abs(value));
  const unrounded = (part) => Math.abs(part) <= least ? 0 : part;
  const signed = (part) => part === 0 ? "0" : (part < 0 ? "−" : "+") + readable(Math.abs(part));
  const features = columnParts(parts.features).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const shown = features.slice(0, 10), rest = features.slice(10).reduce((sum, part) => sum + part.value, 0);
  const rows = [...(model.members.length ? [{ name: "which rules fire", value: parts.firing }] : []), ...shown];
  if (features.length > 10) rows.push({ name: `${features.length - 10} others`, value: rest });
  rows.push(...groupRows(parts.together));
  const bars = element("div");
  const told = rows.map((row) => ({ ...row, value: unrounded(row.value) }));
  meters(bars, told.map((row) => ({ ...row, text: signed(row.value), color: row.value < 0 ? "var(--down)" : "var(--up)" })), { signed: true });
  byId("contributions").replaceChildren(plainRow("mean output", readable(parts.start), ""), bars, plainRow(`= ${model.learnt}`, readable(value), "total"),
    ...(prediction === value ? [] : [plainRow(`${model.target}, ${model.link.is_log ? `${readable(model.link.factor)} exp(${model.learnt})` : "held at its limit"}`, readable(prediction), "total")]));
}

// Contributions of columns: those of the levels of a category are one.
function columnParts(features) {
  const named = new Map();
  features.forEach((part, j) => {
    const name = model.categories.find((category) => j in category.features)?.name ?? model.features[j];
    const shown = state.unknown[j] ? `${name} (unknown)` : name;
    named.set(shown, (named.get(shown) ?? 0) + part);
  });
  return [...named].map(([name, value]) => ({ name, value }));
}

const MOST_GROUPS = 5;

function listed(names) { return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`; }

// The pairs and triples of inputs with the largest contributions, and all others together.
function groupRows(together) {
  const named = model.groups.map((group, i) => ({ name: `${listed(group.map((j) => model.features[j]))} together`, value: together[i] }));
  named.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const rest = named.slice(MOST_GROUPS);
  if (!rest.length) return named;
  return [...named.slice(0, MOST_GROUPS), { name: `${rest.length} others`, value: rest.reduce((sum, part) => sum + part.value, 0) }];
}

function plainRow(name, text, extra) {
  return element("div", { class: `meter ${extra}` }, element("span", { class: "name", title: name }, name), element("span"), element("span", { class: "value" }, text));
}
