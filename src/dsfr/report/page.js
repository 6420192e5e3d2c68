// The remaining sections, and the start of the page. A section without data is hidden.
function fillSummary() {
  byId("lead").textContent = model.lead;
  byId("tiles").append(...model.tiles.map((tile) => element("div", {}, element("dt", {}, tile.name),
    element("dd", {}, tile.value, tile.note ? element("small", {}, tile.note) : null))));
  byId("caveats").append(...model.caveats.map((text) => element("li", { class: "warning" }, element("b", {}, "⚠"), text)));
  show("summary", "Summary");
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

// ---- price of readability: error expected with one rule, two and so on
function fillPrice() {
  if (!model.price) return;
  byId("price-notes").append(...model.price.notes.map((text) => element("p", { class: "hint" }, text)));
  show("price", "Price");
  if (model.price.curve.length > 1) onWidth(byId("price-chart"), drawPrice);
}

function drawPrice() {
  const points = model.price.curve, most = Math.max(...points.map(([, price]) => price));
  const plot = frame(byId("price-chart"), { xRange: [1, points.length], wholeX: true, yRange: [0, 1.1 * most || 1], xLabel: "rules", yLabel: "more error, %", height: 280,
    label: "Price of readability by number of rules" });
  plot.svg.append(shape("path", { d: path(points.map(([n, price]) => [plot.x(n), plot.y(price)])), fill: "none", stroke: "var(--c0)", "stroke-width": 2.4 }));
  for (const [n, price] of points) plot.svg.append(shape("circle", { cx: plot.x(n), cy: plot.y(price), r: n === model.rules.length ? 6 : 3.5, fill: n === model.rules.length ? "var(--c1)" : "var(--c0)" }));
}

useTheme("auto");
fillSummary();
if (model.price) { byId("summary").after(byId("rules"), byId("price")); fillRules(); fillPrice(); }
fillInputs();
if (!model.price) { fillEffects(); fillRules(); }
fillSets();
fillResponse();
fillFit();
fillTraining();
fillNotes();
fillSettings();
