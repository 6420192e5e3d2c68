// The remaining sections, and the start of the page. A section without data is hidden.
function fillSummary() {
  byId("lead").textContent = model.lead;
  byId("tiles").append(...model.tiles.map((tile) => element("div", {}, element("dt", {}, tile.name),
    element("dd", {}, tile.value, tile.note ? element("small", {}, tile.note) : null))));
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

useTheme("auto");
fillSummary();
fillInputs();
fillEffects();
fillRules();
fillSets();
fillResponse();
fillFit();
fillTraining();
fillNotes();
fillSettings();
