// The page: two panels, one place looked from, and an address that holds it all.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const sides = ["a", "b"];

  // Weights travel as base64 of float32.
  LFF.decoded = (tree) => {
    if (Array.isArray(tree)) return tree.map(LFF.decoded);
    if (tree === null || typeof tree !== "object") return tree;
    if ("float32" in tree) return new Float32Array(Uint8Array.from(atob(tree.float32), (c) => c.charCodeAt(0)).buffer);
    return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, LFF.decoded(value)]));
  };

  class Page {
    constructor() {
      this.state = LFF.fromHash(location.hash);
      this.over = null; // the cell under a pointer that only passes
      this.dirty = new Set(sides);
      this.waiting = false;
      this.drawn = 0; // frames
      this.hover = (cell) => this.look(() => (this.over = cell));
      this.choose = (cell) => this.look(() => {
        this.over = null;
        this.state.at = cell.join();
      });
      this.cell = () => this.over || LFF.cell(this.state);
      this.panels = Object.fromEntries(sides.map((side) => [side, new LFF.Panel(side, this)]));
      byId("stage").append(...sides.map((side) => this.panels[side].figure), ...sides.map((side) => this.panels[side].settings.root));
      LFF.drawScale(byId("scale"));
      this.controls();
      this.frame();
    }

    controls() {
      for (const id of ["positions", "normalize", "low", "view"]) byId(id).addEventListener("change", (event) => this.set(id, event.target.value));
      for (const id of ["rows", "cols", "height", "width"]) byId(id).addEventListener("change", (event) => this.set(id, Number(event.target.value)));
      addEventListener("hashchange", () => {
        if (location.hash.slice(1) === LFF.toHash(this.state)) return;
        this.state = LFF.fromHash(location.hash);
        this.changed();
      });
      new ResizeObserver(() => this.later()).observe(byId("stage"));
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.changed());
    }

    set(key, value) {
      this.state[key] = key === "normalize" ? Number(value) : value;
      if (key === "rows" || key === "cols") this.state.at = "";
      this.changed();
    }

    look(change) {
      change();
      this.later();
    }

    // side: "a", "b" or none for both; what: "encoding", "drag" or "put"; values: new ones of the side's state.
    changed(side, what = "encoding", values = {}) {
      if (side) Object.assign(this.state[side], values);
      if (what === "encoding") {
        LFF.adopt(this.state, LFF.runOf(values.from));
        LFF.tidy(this.state);
        for (const one of side && !values.from ? [side] : sides) this.dirty.add(one);
      }
      this.later();
    }

    later() {
      if (this.waiting) return;
      this.waiting = true;
      clearTimeout(this.settling); // the state has changed, the panels have not yet
      requestAnimationFrame(() => this.frame());
    }

    frame() {
      this.waiting = false;
      const { panels, state } = this;
      for (const side of this.dirty) {
        panels[side].field = null;
        panels[side].load();
      }
      if (this.dirty.size) this.show();
      this.dirty.clear();
      const cell = this.cell();
      for (const side of sides) panels[side].place(cell);
      const low = state.low === "fit" ? this.lowest() : 0;
      byId("lowest").textContent = low.toFixed(1).replace("-", "−").replace(".0", "");
      const floor = Math.min(low, Math.floor(4 * this.lowest()) / 4); // what has no colour has a place in the cuts
      for (const side of sides) panels[side].draw(low, floor, cell);
      this.drawn += 1;
      clearTimeout(this.settling);
      this.settling = setTimeout(() => this.settle(), 300);
    }

    lowest() {
      const least = sides.map((side) => this.panels[side].values.reduce((a, b) => (b < a ? b : a), 1));
      return Math.min(Math.floor(10 * Math.min(...least)) / 10, 0.9);
    }

    show() {
      const { state } = this;
      for (const id of ["positions", "normalize", "low", "view", "rows", "cols", "height", "width"]) byId(id).value = state[id];
      byId("normalize").disabled = sides.every((side) => typeof this.panels[side].run?.normalize === "boolean"); // neither would change
      for (const part of document.querySelectorAll(".boxes")) part.hidden = state.positions !== "boxes";
    }

    // Once nothing changes any more: what is read aloud, what is to be copied, and the address.
    settle() {
      for (const side of sides) {
        const panel = this.panels[side];
        panel.python(this.state.positions === "boxes" ? panel.box : this.cell());
        const spoken = panel.figure.querySelector(".spoken");
        const text = `${panel.figure.querySelector("h2").textContent}. ${panel.summary}`;
        if (spoken.textContent !== text) spoken.textContent = text;
      }
      const hash = LFF.toHash(this.state);
      if (hash !== location.hash.slice(1)) history.replaceState(null, "", `#${hash}`);
    }
  }

  LFF.page = new Page();
})();
