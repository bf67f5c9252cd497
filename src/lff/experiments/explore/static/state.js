// What the page shows, as the part of its address after the #: a link restores it.
"use strict";

(() => {
  LFF.FEATURES = [8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048];
  LFF.MOST = 64; // cells along an axis

  const shared = { positions: "points", rows: 64, cols: 64, normalize: 0, at: "", view: "moved", height: 9, width: 17, low: "0" };
  const panel = { from: "", gamma: 8, features: 384, groups: 1, seed: 0, stop: -1, w: "" };
  const first = { a: "Sine-2D", b: "Learnable-Fourier" };

  const GIVEN = ["positions", "rows", "cols"]; // by a run, where an address does not say

  LFF.runOf = (from) => LFF.runs.find(({ id }) => `run:${id}` === from);

  // A run is looked at as it was made, on its own grid.
  LFF.adopt = (state, run) => {
    if (!run) return;
    Object.assign(state, { positions: run.coords === 4 ? "boxes" : "points" });
    if (run.grid?.every((n) => n <= LFF.MOST)) Object.assign(state, { rows: run.grid[0], cols: run.grid[1], at: "" });
  };

  LFF.initialState = () => ({ ...shared, a: { ...panel, from: first.a }, b: { ...panel, from: first.b } });

  // Only what is not as at the start, so that links stay short.
  LFF.toHash = (state) => {
    const start = LFF.initialState();
    const words = new URLSearchParams();
    const ran = ["a", "b"].some((side) => LFF.runOf(state[side].from)); // then what is not said is what the run was made on
    for (const key of Object.keys(shared)) {
      if ((ran && GIVEN.includes(key)) || String(state[key]) !== String(start[key])) words.set(key, state[key]);
    }
    for (const side of ["a", "b"]) {
      for (const key of Object.keys(panel)) if (String(state[side][key]) !== String(start[side][key])) words.set(`${side}.${key}`, state[side][key]);
    }
    return words.toString();
  };

  LFF.fromHash = (text) => {
    const state = LFF.initialState();
    const words = new URLSearchParams(text.replace(/^#/, ""));
    if (!GIVEN.some((key) => words.has(key))) for (const side of ["b", "a"]) LFF.adopt(state, LFF.runOf(words.get(`${side}.from`)));
    for (const [name, value] of words) {
      const [side, key] = name.includes(".") ? name.split(".") : ["", name];
      const [into, like] = side ? [state[side], panel] : [state, shared];
      if (!into || !(key in like)) continue;
      into[key] = typeof like[key] === "number" ? number(value, into[key]) : value;
    }
    return LFF.tidy(state);
  };

  const number = (text, otherwise) => (text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : otherwise);
  const within = (value, low, high) => Math.min(Math.max(Math.round(value), low), high);
  const oneOf = (value, choices) => (choices.includes(value) ? value : choices[0]);

  // Whatever an address or a control says becomes something that can be shown.
  LFF.tidy = (state) => {
    state.positions = oneOf(state.positions, ["points", "boxes"]);
    state.view = oneOf(state.view, ["moved", "resized"]);
    state.low = oneOf(state.low, ["0", "fit"]);
    state.normalize = state.normalize ? 1 : 0;
    state.rows = within(state.rows, 2, LFF.MOST);
    state.cols = within(state.cols, 2, LFF.MOST);
    state.height = within(state.height, 1, LFF.MOST);
    state.width = within(state.width, 1, LFF.MOST);
    const cell = /^(\d+),(\d+)$/.exec(state.at);
    state.at = cell ? `${within(cell[1], 0, state.rows - 1)},${within(cell[2], 0, state.cols - 1)}` : "";
    for (const side of ["a", "b"]) tidyPanel(state[side], LFF.coords(state));
    return state;
  };

  LFF.coords = (state) => (state.positions === "boxes" ? 4 : 2);

  function tidyPanel(panel, coords) {
    panel.lost = "";
    if (panel.from.startsWith("run:")) {
      const run = LFF.runOf(panel.from);
      if (!run) panel.lost = `This page has no run ${panel.from.slice(4)}.`;
      if (!run || run.coords !== coords) panel.from = "Learnable-Fourier";
      else panel.stop = panel.stop < 0 ? run.stops.length - 1 : within(panel.stop, 0, run.stops.length - 1);
    }
    if (!panel.from.startsWith("run:")) panel.from = counterpart(panel.from, coords);
    panel.gamma = Number(Math.min(Math.max(panel.gamma, 0.001), 1000).toPrecision(4));
    panel.features = LFF.FEATURES.reduce((best, f) => (Math.abs(f - panel.features) < Math.abs(best - panel.features) ? f : best));
    panel.groups = [1, 2, 4].filter((g) => coords % g === 0).includes(panel.groups) ? panel.groups : 1;
    panel.seed = within(panel.seed, 0, 2 ** 32 - 1);
  }

  // The method itself, or for other coordinates what comes nearest: Sine-4D for Sine-2D.
  function counterpart(name, coords) {
    const names = LFF.methodsFor(coords);
    const tries = [name, name.replace(/[124]D/, `${coords}D`), name.replace(/-\d\/\d$/, ""), name.replace(/4D(.*)-\d\/\d$/, "2D$1"), `${name.replace("2D", "4D")}-2/2`];
    return tries.find((candidate) => names.includes(candidate)) || "Learnable-Fourier";
  }

  // The cell at which the page looks: the middle, until one is chosen.
  LFF.cell = (state) => (state.at ? state.at.split(",").map(Number) : [(state.rows - 1) >> 1, (state.cols - 1) >> 1]);

  // Frequencies that were dragged: "3:0.1,-0.2;7:0,0.5".
  LFF.edits = (text, coords, count) => {
    const found = new Map();
    for (const part of text.split(";")) {
      const [index, numbers = ""] = part.split(":");
      const w = numbers.split(",").map(Number);
      if (/^\d+$/.test(index) && Number(index) < count && w.length === coords && w.every(Number.isFinite)) found.set(Number(index), w);
    }
    return found;
  };
  LFF.editsText = (edits) => [...edits].map(([index, w]) => `${index}:${w.join(",")}`).join(";");
})();
