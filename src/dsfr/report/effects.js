// Curves of the effects of single inputs, and the sizes of those of two or three together.
const MOST_CURVES = 12;

function fillEffects() {
  if (!model.effects) return;
  byId("effects-hint").textContent = model.effects.hint;
  byId("effect-groups-list").append(...model.effects.groups.map((text) => element("li", {}, text)));
  byId("effect-groups").hidden = !model.effects.groups.length;
  show("effects", "Effects");
  onWidth(byId("effect-charts"), drawEffects);
  state.listeners.push(drawEffects);
}

// The largest effects are drawn on one scale; the others are sentences.
function drawEffects() {
  if (!byId("effect-charts").clientWidth) return;
  const drawn = model.effects.features.slice(0, MOST_CURVES), others = model.effects.features.slice(MOST_CURVES);
  const range = padded(drawn.flatMap((effect) => effect.points.map(([, value]) => value)));
  const boxes = drawn.map((effect) => element("div", { class: "panel" }, element("h3", {}, effect.title), element("div", { class: "chart" })));
  const list = others.length ? [element("details", {}, element("summary", {}, `${others.length} smaller effects`), ...others.map((effect) => element("p", {}, effect.text)))] : [];
  byId("effect-charts").replaceChildren(...boxes, ...list);
  drawn.forEach((effect, i) => drawEffect(boxes[i].children[1], effect, range));
}

function drawEffect(container, { feature: j, points }, range) {
  const column = model.columns[j];
  const plot = frame(container, { xRange: [column.low, column.high], yRange: range, xLabel: model.features[j], height: 220,
    label: `What ${model.features[j]} adds to ${model.target}` });
  plot.svg.append(shape("line", { x1: plot.left, x2: plot.right, y1: plot.y(0), y2: plot.y(0), stroke: "var(--soft)", "stroke-dasharray": "5 4" }));
  plot.svg.append(shape("path", { d: path(points.map(([x, value]) => [plot.x(x), plot.y(value)])), fill: "none", stroke: "var(--c0)", "stroke-width": 2.4 }));
  const here = clamped(state.row[j], column);
  const value = interpolated(here, points.map((point) => point[0]), points.map((point) => point[1]));
  plot.svg.append(shape("circle", { cx: plot.x(here), cy: plot.y(value), r: 4.5, fill: "var(--c1)", stroke: "var(--panel)", "stroke-width": 1.5 }));
}
