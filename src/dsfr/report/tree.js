// Short rules: the tree of their conditions, and the shared words over histograms.
function fillTree() {
  if (!model.tree) return;
  byId("tree").hidden = false;
  byId("tree-root").append(element("ul", {}, branchOf(model.tree, null)));
}

// A list item: the word on the edge to it, then an input with two branches, or a rule.
function branchOf(node, edge) {
  const item = element("li", {}, edge ? element("span", { class: "edge" }, edge) : null, node.rule ? leafOf(model.rules[node.rule - 1]) : inputNode(node));
  item.style.setProperty("--leaves", node.leaves);
  if (node.parts) item.append(element("ul", {}, ...node.parts.map((part, i) => branchOf(part, node.edges[i]))));
  return item;
}

function inputNode(node) {
  return element("div", { class: "node" }, element("b", {}, node.name), node.between ? element("small", {}, node.between) : null);
}

function leafOf(rule) {
  const leaf = element("a", { class: "node leaf", href: "#rules" }, element("b", {}, `Rule ${rule.number}`), element("small", {}, `${rule.share_text}, about ${readable(rule.mean)}`));
  leaf.addEventListener("click", (event) => { event.preventDefault(); document.querySelector(`[data-rule="${rule.number}"]`)?.scrollIntoView({ block: "center" }); });
  leaf.style.setProperty("--rule", ruleColor(rule.number - 1));
  return leaf;
}

// ---- the terms of every input with conditions, as curves over its histogram
function fillWords() {
  const isLevel = (j) => model.categories.some((category) => j in category.features); // it has no words: a row has it or not
  const used = model.terms ? model.order.filter((j) => model.terms[j].ramps.length && !isLevel(j)) : [];
  if (!used.length) return;
  byId("words").hidden = false;
  const boxes = used.map((j) => element("div", { class: "panel" }, element("h3", {}, `What the words on ${model.features[j]} mean`), element("div", { class: "chart" })));
  byId("words").append(...boxes);
  onWidth(byId("words"), () => used.forEach((j, i) => drawWords(boxes[i].children[1], j)));
}

function drawWords(container, j) {
  const { names, ramps } = model.terms[j], column = model.columns[j];
  const plot = frame(container, { xRange: [column.low, column.high], yRange: [0, 1.25], xLabel: model.features[j], height: 190, noY: true,
    label: `Words on ${model.features[j]}` });
  drawHistogram(plot, column.histogram);
  const at = (own, i) => (own[i] === undefined ? null : own[i]);
  names.forEach((name, i) => {
    const above = at(ramps, i - 1), below = at(ramps, i);
    const corners = [[above ? above[0] : column.low, above ? 0 : 1], ...(above ? [[above[1], 1]] : []), ...(below ? [[below[0], 1], [below[1], 0]] : [[column.high, 1]])];
    plot.svg.append(shape("path", { d: path(corners.map(([x, y]) => [plot.x(x), plot.y(y)])), fill: "none", stroke: ruleColor(i), "stroke-width": 2.4 }));
    const middle = ((above ? above[1] : column.low) + (below ? below[0] : column.high)) / 2;
    const end = i === 0 ? "start" : i === names.length - 1 ? "end" : "middle";
    const place = i === 0 ? plot.left : i === names.length - 1 ? plot.right : plot.x(middle);
    plot.svg.append(shape("text", { x: place, y: plot.y(1) - 6 - (end === "middle" && i % 2 ? 0 : 0), "text-anchor": end, style: `fill:${ruleColor(i)};font-weight:600` }, name));
  });
}

// ---- many rules: where each set has its center and how wide it is, one line per rule, instead of crossing curves
const INTERVAL_HEIGHT = 15;

function drawIntervals(j, column) {
  const rules = [...rulesOfMember()].sort((a, b) => a.center[j] - b.center[j]);
  const plot = frame(byId("set-chart"), { xRange: [column.low, column.high], yRange: [0, rules.length + 1], xLabel: model.features[j], noY: true,
    height: 70 + INTERVAL_HEIGHT * rules.length, label: `Center and width of the sets of ${model.features[j]}` });
  rules.forEach((rule, i) => {
    const y = plot.y(rules.length - i), ends = [-1, 1].map((sign) => plot.x(clamped(rule.center[j] + sign * rule.width[j], column)));
    const matters = rule.conditions.some((c) => c.feature === j), color = ruleColor(rule.number - 1);
    plot.svg.append(shape("line", { x1: ends[0], x2: ends[1], y1: y, y2: y, stroke: color, "stroke-width": matters ? 4 : 1.5, opacity: matters ? 0.8 : 0.5 }));
    plot.svg.append(shape("circle", { cx: plot.x(clamped(rule.center[j], column)), cy: y, r: 4, fill: color }));
    plot.svg.append(shape("text", { x: ends[0] - plot.left > 30 ? ends[0] - 5 : ends[1] + 5, y: y + 4, "text-anchor": ends[0] - plot.left > 30 ? "end" : "start", style: `fill:${color}` }, String(rule.number)));
  });
  byId("set-readout").textContent = "Each line is a rule's set: its center, and one width to both sides. Thin lines: the rule hardly depends on this input.";
}
