// The controls of one panel, and its frequencies: what they show is the panel's state, what they change is reported to it.
"use strict";

(() => {
  const NAMES = { 1: ["coordinate"], 2: ["row", "column"], 4: ["top", "left", "bottom", "right"] };

  class Settings {
    // panel: side, page, state, run, features, edits, canvas, figure, drag(index, w).
    constructor(panel) {
      const root = LFF.clone("settings");
      Object.assign(this, { panel, root, one: (name) => root.querySelector(`.${name}`) });
      root.id = `settings-${panel.side}`;
      root.setAttribute("aria-label", `Settings of the ${panel.side === "a" ? "left" : "right"} map`);
      this.points = new LFF.Frequencies(this.one("frequencies"), {
        moved: (index, w) => panel.drag(index, w),
        chosen: () => this.numbers(),
        put: () => panel.page.changed(panel.side, "put"),
      });
      this.controls();
    }

    controls() {
      const listen = (name, event, set) => this.one(name).addEventListener(event, (e) => set(e.target.value));
      const change = (values) => this.panel.page.changed(this.panel.side, "encoding", { w: "", ...values });
      listen("from", "change", (from) => change({ from, stop: -1 }));
      listen("gamma", "input", (k) => change({ gamma: Number((2 ** (k / 4)).toPrecision(3)) }));
      listen("features", "input", (i) => change({ features: LFF.FEATURES[i] }));
      listen("groups", "change", (groups) => change({ groups: Number(groups) }));
      listen("seed", "input", (seed) => change({ seed: Number(seed) }));
      listen("stop", "input", (stop) => change({ stop: Number(stop) }));
      listen("pair-choice", "change", (pair) => {
        this.points.pair = Number(pair);
        this.points.draw();
      });
      this.one("reset").addEventListener("click", () => change({}));
      this.one("features").max = LFF.FEATURES.length - 1;
    }

    // Controls as the state says, and only those that the encoding has.
    show() {
      const { state, run } = this.panel;
      const coords = LFF.coords(this.panel.page.state);
      const method = run ? {} : LFF.METHODS.get(state.from);
      this.choices(coords);
      const visible = { training: run && run.stops.length > 1, "gamma-field": method.gamma === true, "features-field": !run && method.features !== false, "groups-field": method.groups === "any", "seed-field": method.seed };
      for (const [name, shown] of Object.entries(visible)) this.one(name).hidden = !shown;
      this.one("two").hidden = !visible["groups-field"] && !visible["seed-field"];
      this.one("gamma").value = Math.round(4 * Math.log2(state.gamma));
      this.one("gamma-text").textContent = state.gamma;
      this.one("gamma").setAttribute("aria-valuetext", `${state.gamma}`);
      this.one("gamma-name").textContent = this.panel.page.state.normalize ? "γ, in widths of the grid" : "γ, in cells";
      this.one("features").value = LFF.FEATURES.indexOf(state.features);
      this.one("features").setAttribute("aria-valuetext", `${state.features}`);
      this.one("features-text").textContent = state.features;
      if (document.activeElement !== this.one("seed")) this.one("seed").value = state.seed;
      options(this.one("groups"), [1, 2, 4].filter((g) => coords % g === 0).map((g) => [g, g === 1 ? "1: all at once" : `${g} of ${coords / g}`]), state.groups);
      if (run) this.stops(run);
      this.panel.figure.querySelector("h2").textContent = run ? run.title : state.from;
      this.panel.figure.querySelector(".about").textContent = state.lost || (run ? [run.note, run.stops[state.stop].label, run.normalize && "asked from 0 to 1"].filter(Boolean).join(", ") : method.seed ? `at initialisation, seed ${state.seed}` : "has nothing to learn");
      this.panel.canvas.setAttribute("aria-label", `Similarity map of ${run ? run.title : state.from}. Arrow keys move the place looked from, with Shift by eight cells.`);
      this.spectrum();
    }

    stops(run) {
      const slider = this.one("stop");
      slider.max = run.stops.length - 1;
      slider.value = this.panel.state.stop;
      slider.setAttribute("aria-valuetext", run.stops[this.panel.state.stop].label);
      this.one("stop-text").textContent = run.stops[this.panel.state.stop].label;
    }

    choices(coords) {
      const select = this.one("from");
      const key = `${coords}`;
      if (select.dataset.key !== key) {
        select.dataset.key = key;
        select.replaceChildren();
        const runs = LFF.runs.map((run) => [`run:${run.id}`, [run.title, run.note].filter(Boolean).join(", ")]);
        for (const [label, list] of [["Runs, trained", runs], ["At initialisation", LFF.methodsFor(coords).map((name) => [name, name])]]) {
          if (!list.length) continue;
          const group = Object.assign(document.createElement("optgroup"), { label });
          options(group, list);
          select.append(group);
        }
      }
      select.value = this.panel.state.from;
    }

    spectrum() {
      const has = Boolean(this.panel.features);
      const free = has && this.panel.features.kind === "fourier";
      for (const name of ["frequencies", "numbers", "spectrum-head"]) this.one(name).hidden = !has;
      this.one("reset").hidden = !this.panel.edits.size;
      this.one("hint").textContent = !has ? "This encoding has no frequencies." : free ? "Drag a point: the map follows. Rings: one and two 1/γ." : "Constant: they cannot be dragged.";
      if (!has) return;
      this.one("pair-choice").hidden = this.panel.features.coords !== 4;
      if (this.panel.features.coords !== 4) this.points.pair = 0;
      const kept = free && this.panel.features.gamma ? 1 / this.panel.features.gamma : null;
      this.points.show(LFF.frequencies(this.panel.features), { ring: kept, free });
      const what = free ? "Arrow keys move the chosen one, Page Up and Page Down choose another." : "They are constant.";
      this.one("frequencies").setAttribute("aria-label", `${this.points.count} frequencies as points. ${what}`);
      this.numbers();
    }

    // The chosen frequency as numbers that can be read and typed.
    numbers() {
      const { w, coords, picked, count, free } = this.points;
      const box = this.one("numbers");
      const names = ["number", ...(NAMES[coords] || Array.from({ length: coords }, (_, i) => `axis ${i}`))];
      if (box.dataset.key !== `${coords}`) {
        box.dataset.key = `${coords}`;
        box.replaceChildren(...names.map((name, i) => input(name, (value) => this.typed(i - 1, value))));
      }
      [...box.querySelectorAll("input")].forEach((field, i) => {
        field.disabled = i > 0 && !free;
        Object.assign(field, i ? { step: "any" } : { min: 1, max: count, step: 1 });
        if (document.activeElement !== field) field.value = i ? short(w[picked * coords + i - 1]) : picked + 1;
      });
    }

    typed(axis, value) {
      if (axis < 0) {
        const index = Math.min(Math.max(Math.round(value), 1), this.points.count) - 1;
        this.points.pick(index);
        return;
      }
      const { coords, picked } = this.points;
      const w = Array.from(this.panel.features.w_r.subarray(picked * coords, (picked + 1) * coords), (v) => Number(v.toPrecision(4)));
      w[axis] = value;
      this.panel.drag(picked, w);
      this.panel.page.changed(this.panel.side, "put");
    }
  }

  // Four digits, and no more letters than a narrow field has room for.
  const short = (v) => (v !== 0 && Math.abs(v) < 0.001 ? v.toExponential(2) : String(Number(v.toPrecision(4))));

  function input(name, set) {
    const label = Object.assign(document.createElement("label"), { className: "field" });
    const field = Object.assign(document.createElement("input"), { type: "number" });
    field.setAttribute("aria-label", name === "number" ? "Number of the frequency" : `Frequency, ${name}`);
    field.addEventListener("input", () => field.value !== "" && set(Number(field.value)));
    label.append(Object.assign(document.createElement("span"), { textContent: name }), field);
    return label;
  }

  function options(parent, list, chosen) {
    parent.replaceChildren(...list.map(([value, text]) => Object.assign(document.createElement("option"), { value, textContent: text })));
    if (chosen !== undefined) parent.value = chosen;
  }

  LFF.Settings = Settings;
})();
