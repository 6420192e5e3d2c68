// State shared by all sections: the model, the current row, and the listeners to its changes.
const model = JSON.parse(document.getElementById("model").textContent);
const byId = (id) => document.getElementById(id);
const state = { row: [...model.reference], unknown: model.features.map(() => false), listeners: [], coverage: model.interval?.first };

// The current row with null for unknown inputs.
function knownRow() { return state.row.map((value, j) => state.unknown[j] ? null : value); }

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

// Inputs by relevance: a feature each, or a category with the features of all of its levels, in the place of the most relevant one.
function inputColumns() {
  return model.order.flatMap((j) => {
    const category = model.categories.find((entry) => j in entry.features);
    if (!category) return [{ name: model.features[j], features: [j], category: null }];
    const features = Object.keys(category.features).map(Number);
    return model.order.find((other) => features.includes(other)) === j ? [{ name: category.name, features, category }] : [];
  });
}

// Features by relevance: the first is chosen.
function featureOptions(select) {
  select.replaceChildren(...model.order.map((j) => element("option", { value: j }, model.features[j])));
  select.value = String(model.order[0]);
}

function word(j, value) {
  if (model.terms) {
    const ramps = model.terms[j].ramps;
    return ramps.length ? model.terms[j].names[ramps.filter((own) => ramp(value, own) > 0.5).length] : "";
  }
  const { quantiles, low, high } = model.columns[j];
  const near = 0.005 * (high - low); // a cluster of equal values has a center that equals them only up to rounding
  const under = quantiles.filter((q) => q < value - near).length, upTo = quantiles.filter((q) => q <= value + near).length;
  const place = (under + upTo) / (2 * quantiles.length);
  return model.words[model.word_edges.filter((edge) => place >= edge).length];
}
