// Plots in SVG, as wide as their container. Text from data is inserted as text, never as markup.
const SVG = "http://www.w3.org/2000/svg";
const DASHES = ["", "7 4", "2 3", "9 3 2 3"];

function ruleColor(k) { return `var(--c${k % 8})`; }
function ruleDash(k) { return DASHES[Math.floor(k / 8) % DASHES.length]; }

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

function shape(tag, attributes = {}, text = null) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== "") node.setAttribute(name, value);
  if (text !== null) node.textContent = text;
  return node;
}

// A number with four significant digits and no trailing zeros, as dsfr prints it.
function readable(value) {
  if (!Number.isFinite(value)) return String(value);
  const rounded = Number(value.toPrecision(4)) + 0;
  const size = Math.abs(rounded);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return rounded.toExponential().replace("e+", "e");
  return String(rounded);
}

function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw);
  const marks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * span; i++) marks.push(i * step);
  return marks;
}

function logTicks(low, high) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first) / 6));
  const marks = [];
  for (let power = first; power <= last; power += step) marks.push(10 ** power);
  return marks;
}

function powerOfTen(value) { return value >= 1e4 || value < 1e-3 ? `1e${Math.round(Math.log10(value))}` : readable(value); }

// A text shortened in its middle, because names often differ at their ends; a letter takes about seven pixels.
function shortened(text, room) {
  const letters = [...text], most = Math.max(8, Math.floor(room / 7));
  if (letters.length <= most) return text;
  const head = Math.ceil((most - 1) / 2);
  return `${letters.slice(0, head).join("")}…${letters.slice(letters.length - (most - 1 - head)).join("")}`;
}

// Axes of a plot: `x` and `y` map values to pixels. Options: xRange, yRange, xLabel, yLabel, height, logY, label.
function frame(container, options) {
  const width = Math.max(container.clientWidth || 600, 260), height = options.height || 300;
  const left = options.noY ? 16 : 62, right = width - 14, top = 18, bottom = height - 42;
  const [x0, x1] = options.xRange, [y0, y1] = options.yRange;
  const place = options.logY ? Math.log10 : (value) => value;
  const x = (value) => left + (right - left) * (x1 > x0 ? (value - x0) / (x1 - x0) : 0.5);
  const y = (value) => bottom - (bottom - top) * (y1 > y0 ? (place(value) - place(y0)) / (place(y1) - place(y0)) : 0.5);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": options.label });
  svg.append(shape("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" }));
  for (const mark of ticks(x0, x1, Math.max(2, Math.floor((right - left) / 85))).filter((value) => !options.wholeX || Number.isInteger(value))) {
    svg.append(shape("line", { x1: x(mark), x2: x(mark), y1: bottom, y2: bottom + 5, class: "axis" }));
    svg.append(shape("text", { x: x(mark), y: bottom + 18, "text-anchor": "middle" }, readable(mark)));
  }
  if (!options.noY) for (const mark of options.logY ? logTicks(y0, y1) : ticks(y0, y1, 5)) {
    svg.append(shape("line", { x1: left, x2: right, y1: y(mark), y2: y(mark), class: "grid" }));
    svg.append(shape("text", { x: left - 8, y: y(mark) + 4, "text-anchor": "end" }, options.logY ? powerOfTen(mark) : readable(mark)));
  }
  svg.append(shape("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle", class: "strong" }, shortened(options.xLabel, right - left)));
  if (options.yLabel) svg.append(shape("text", { x: left, y: 11, class: "strong" }, shortened(options.yLabel, right - left)));
  container.replaceChildren(svg);
  return { svg, x, y, left, right, top, bottom, width };
}

function path(points) {
  return points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`).join("");
}

// A vertical cursor that follows the pointer, or the arrow keys once the plot has the focus.
function cursor(plot, [low, high], readout, describe, initial) {
  const line = shape("line", { y1: plot.top, y2: plot.bottom, stroke: "var(--soft)", "stroke-dasharray": "3 3" });
  plot.svg.append(line);
  plot.svg.setAttribute("tabindex", "0");
  let at = initial;
  const show = (value) => {
    at = Math.min(Math.max(value, low), high);
    line.setAttribute("x1", plot.x(at));
    line.setAttribute("x2", plot.x(at));
    readout.textContent = describe(at);
  };
  plot.svg.addEventListener("pointermove", (event) => {
    const box = plot.svg.getBoundingClientRect();
    const place = (event.clientX - box.left) * (plot.width / box.width);
    show(low + (high - low) * (place - plot.left) / (plot.right - plot.left));
  });
  plot.svg.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 };
    if (!(event.key in steps)) return;
    event.preventDefault();
    show(at + steps[event.key] * (high - low) / 100);
  });
  show(initial);
}

function grid(low, high, count) {
  return Array.from({ length: count + 1 }, (_, i) => low + (high - low) * i / count);
}

function padded(values) {
  const low = Math.min(...values), high = Math.max(...values);
  const room = (high - low) * 0.06 || Math.abs(low) * 0.05 || 1;
  return [low - room, high + room];
}

// Bars on a common scale; `signed` ones start at a zero line.
function meters(container, rows, { signed = false } = {}) {
  const most = Math.max(...rows.map((row) => Math.abs(row.value)), 1e-300);
  container.replaceChildren(...rows.map((row) => {
    const size = Math.abs(row.value) / most;
    const from = signed ? (row.value < 0 ? 50 - 50 * size : 50) : 0;
    const fill = element("span", { class: "fill" });
    fill.style.cssText = `left:${from}%;width:${(signed ? 50 : 100) * size}%;background:${row.color}`;
    return element("div", { class: "meter" },
      element("span", { class: "name", title: row.name }, row.name),
      element("span", { class: "track", "aria-hidden": "true" }, fill, signed ? zeroLine() : null),
      element("span", { class: "value" }, row.text));
  }));
}

function zeroLine() {
  const line = element("span", { class: "zero" });
  line.style.left = "50%";
  return line;
}

// Sorts texts by the numbers in them: agent 9 before agent 10.
function naturally(a, b) { return String(a).localeCompare(String(b), "en", { numeric: true }); }

function sortableTable(header, rows) {
  const body = element("tbody");
  const fill = (order) => body.replaceChildren(...order.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, typeof cell === "number" ? cell.toLocaleString("en-US", { maximumFractionDigits: 1 }) : String(cell))))));
  let last = null, sign = 1;
  const heads = header.map((name, j) => element("th", { scope: "col" }, element("button", { type: "button", onclick: () => {
    sign = last === j ? -sign : (typeof rows[0]?.[j] === "number" ? -1 : 1);
    last = j;
    heads.forEach((head, i) => head.setAttribute("aria-sort", i === j ? (sign > 0 ? "ascending" : "descending") : "none"));
    fill([...rows].sort((a, b) => sign * (typeof a[j] === "number" ? a[j] - b[j] : naturally(a[j], b[j]))));
  } }, name)));
  fill(rows);
  return element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body);
}
