// Responses, predictions against true values, and the history of the training.
// ---- response
function fillResponse() {
  byId("response-feature").replaceChildren(...inputColumns().map((input, place) => element("option", { value: place }, input.name)));
  byId("response-feature").addEventListener("input", drawResponse);
  show("response", "Response");
  onWidth(byId("response-chart"), drawResponse);
  state.listeners.push(drawResponse);
}

function drawResponse() {
  if (!byId("response-chart").clientWidth) return;
  const { features: [j], category } = inputColumns()[Number(byId("response-feature").value)], column = model.columns[j];
  if (category) { drawLevels(category); return; }
  const at = (value) => { const row = knownRow(); row[j] = value; return row; };
  // What is expected of unknown inputs takes a system of equations for every point.
  const points = grid(column.low, column.high, state.unknown.includes(true) ? 60 : 200).map((v) => ({ v, y: predict(model, at(v)), ends: interval(model, at(v), state.coverage) }));
  const range = padded(points.flatMap((p) => [p.y, ...(p.ends || [])]));
  const plot = frame(byId("response-chart"), { xRange: [column.low, column.high], yRange: range, xLabel: model.features[j], yLabel: model.target, height: 320,
    label: `${model.target} along ${model.features[j]}` });
  if (model.interval) {
    const up = points.map((p) => [plot.x(p.v), plot.y(p.ends[1])]), down = points.map((p) => [plot.x(p.v), plot.y(p.ends[0])]).reverse();
    plot.svg.append(shape("path", { d: `${path([...up, ...down])}Z`, fill: "var(--c0)", opacity: 0.16 }));
  }
  plot.svg.append(shape("path", { d: path(points.map((p) => [plot.x(p.v), plot.y(p.y)])), fill: "none", stroke: "var(--c0)", "stroke-width": 2.6 }));
  const here = clamped(state.row[j], column);
  plot.svg.append(shape("circle", { cx: plot.x(here), cy: plot.y(predict(model, at(here))), r: 5, fill: "var(--c1)", stroke: "var(--panel)", "stroke-width": 1.5 }));
  cursor(plot, [column.low, column.high], byId("response-readout"), (value) => {
    const y = predict(model, at(value)), ends = interval(model, at(value), state.coverage);
    return `${model.features[j]} ${readable(value)}: ${model.target} ${readable(y)}${ends === null ? "" : ` (${readable(ends[0])} to ${readable(ends[1])})`}`;
  }, here);
}

// The prediction at every level of a category, from the mean over the levels.
function drawLevels(category) {
  const found = category.levels.map((name, place) => {
    const row = knownRow();
    for (const [j, own] of Object.entries(category.features)) row[j] = Number(own === place);
    return { name, y: predict(model, row), ends: interval(model, row, state.coverage) };
  });
  const mean = found.reduce((sum, { y }) => sum + y, 0) / found.length;
  const rows = found.map(({ name, y, ends }) => ({ name, value: y - mean, color: y < mean ? "var(--down)" : "var(--up)",
    text: ends === null ? readable(y) : `${readable(y)} (${readable(ends[0])} to ${readable(ends[1])})` }));
  meters(byId("response-chart"), rows, { signed: true });
  byId("response-readout").textContent = `${model.target} at every level of ${category.name}; bars start at the mean over the levels, ${readable(mean)}.`;
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

// Band of predictions whose interval contains the true value.
function drawBand(plot, [low, high], half) {
  const end = (x, y) => [plot.x(x), plot.y(Math.min(Math.max(y, low), high))];
  const xs = grid(low, high, 100);
  const moved = (x, by) => model.link && model.link.is_log ? model.link.factor * x * Math.exp(by) : x + by;
  const outline = [...xs.map((x) => end(x, moved(x, half))), ...xs.reverse().map((x) => end(x, moved(x, -half)))];
  plot.svg.append(shape("path", { d: `${path(outline)}Z`, fill: "var(--c2)", opacity: 0.14 }));
}

// ---- training
function fillTraining() {
  const { history, ledger, agents } = model.record;
  if (!history.length && !ledger.length) return;
  show("training", "Training");
  if (history.length) { byId("convergence").hidden = false; onWidth(byId("convergence-charts"), drawConvergence); }
  if (ledger.length) fillTable("ledger", ["task", "rounds", "messages", "kB to agents", "kB from agents"],
    ledger.map((e) => [e.task + (e.verb === "gather" ? " *" : ""), e.rounds, e.messages, e.bytes_down / 1e3, e.bytes_up / 1e3]),
    "* one agent's own contribution is seen by others, not only a sum");
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

// Rounds numbered consecutively: every member of a mixture counts its own from one.
function runningRounds(rounds) {
  let before = 0, last = 0;
  return rounds.map((info) => {
    if (info.round <= last) before += last;
    last = info.round;
    return { ...info, round: before + info.round };
  });
}

function drawStage(container, legend, history) {
  const rounds = runningRounds(history);
  const positive = (key) => rounds.filter((info) => info[key] > 0 && info[key] < 1e299);
  const values = CURVES.flatMap(([key]) => positive(key).map((info) => info[key]));
  if (!values.length || history.every((info) => info.round === history[0].round)) { container.replaceChildren(element("p", { class: "hint" }, "Solved in one round, from sums.")); return; }
  const low = Math.min(...values), high = Math.max(...values);
  const plot = frame(container, { xRange: [rounds[0].round, rounds[rounds.length - 1].round], yRange: [low / 1.5, high * 1.5], logY: true, height: 240, xLabel: "round", label: "Residuals by round" });
  CURVES.forEach(([key, name], k) => {
    const points = positive(key);
    if (!points.length) return;
    const style = { fill: "none", stroke: `var(--c${k})`, "stroke-width": 2, "stroke-dasharray": DASHES[k] };
    plot.svg.append(shape("path", { d: path(points.map((info) => [plot.x(info.round), plot.y(info[key])])), ...style }));
    if (points.length === 1) plot.svg.append(shape("circle", { cx: plot.x(points[0].round), cy: plot.y(points[0][key]), r: 3, fill: `var(--c${k})` }));
    const mark = shape("svg", { viewBox: "0 0 32 12" });
    mark.append(shape("path", { d: "M1 6L31 6", ...style }));
    legend.append(element("span", {}, mark, name));
  });
}
