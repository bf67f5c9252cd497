// One side of the page: an encoding, its map, its settings and its frequencies.
"use strict";

(() => {
  LFF.clone = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);
  const fixed = (value) => (Number.isNaN(value) ? "none" : value.toFixed(2).replace("-", "−"));

  class Panel {
    // page: state, changed(side, what), hover(cell), choose(cell), cell().
    constructor(side, page) {
      const figure = LFF.clone("figure");
      Object.assign(this, { side, page, figure, canvas: figure.querySelector(".map") });
      figure.id = `map-${side}`;
      this.map = new LFF.SimilarityMap(this.canvas, page);
      this.settings = new LFF.Settings(this);
    }

    get state() {
      return this.page.state[this.side];
    }

    // Whether coordinates go from 0 to 1. A run is asked as its host asked it.
    get normalize() {
      return this.run?.normalize ?? this.page.state.normalize;
    }

    // The encoding that the settings stand for.
    load() {
      const { state, page } = this;
      const coords = LFF.coords(page.state);
      this.run = LFF.runOf(state.from) || null;
      const extent = coords === 2 ? [page.state.rows, page.state.cols] : [page.state.rows, page.state.cols, page.state.rows, page.state.cols];
      this.node = this.run ? LFF.decoded(this.run.stops[state.stop].encoding) : LFF.build(state.from, { ...state, coords, extent }, state.seed);
      this.features = LFF.featuresOf(this.node);
      const free = this.features && this.features.kind === "fourier";
      this.edits = free ? LFF.edits(state.w, this.features.coords, this.features.w_r.length / this.features.coords) : new Map();
      for (const [index, w] of this.edits) this.features.w_r.set(w, index * w.length);
      this.settings.show();
    }

    drag(index, w) {
      const { w_r, coords } = this.features;
      const was = w_r.slice(index * coords, (index + 1) * coords);
      w_r.set(w, index * coords);
      this.edits.set(index, w);
      this.state.w = LFF.editsText(this.edits);
      this.field.moved(index, was);
      this.settings.spectrum();
      this.page.changed(this.side, "drag");
    }

    // Positions of all cells, and the position looked from.
    place(cell) {
      const { state } = this.page;
      const size = [state.rows, state.cols];
      const boxes = state.positions === "boxes";
      this.box = boxes ? around(cell, state) : [cell[0], cell[1], cell[0], cell[1]];
      const [top, left, bottom, right] = this.box;
      const key = boxes ? [state.view, bottom - top, right - left, ...(state.view === "resized" ? [top, left] : [])].join() : "points";
      if (!this.field || this.key !== key) {
        this.key = key;
        this.field = new LFF.Field(this.node, boxes ? allBoxes(this.box, { ...state, normalize: this.normalize }) : LFF.gridPositions(size, this.normalize));
      }
      const start = 2 * (cell[0] * state.cols + cell[1]);
      this.values = this.field.similarity(boxes ? LFF.boxPosition(this.box, size, this.normalize) : this.field.x.subarray(start, start + 2));
    }

    draw(low, floor, cell) {
      const { state } = this.page;
      const size = [state.rows, state.cols];
      if (String(this.map.size) !== String(size)) this.map.resize(size);
      this.map.draw(this.values, low, this.box, state.positions === "points");
      const centre = state.positions === "boxes" && state.view === "resized" ? [this.box[2], this.box[3]] : cell;
      const cuts = LFF.cuts(this.values, size, centre);
      LFF.drawProfile(this.figure.querySelector(".profile"), cuts, floor);
      this.summary = this.describe(cuts, cell);
      this.figure.querySelector(".summary").textContent = this.summary;
    }

    describe(cuts, [row, col]) {
      const { rows, cols, positions } = this.page.state;
      const where = `${positions === "boxes" ? "Box at row" : "Row"} ${row}, column ${col}.`;
      const known = this.values.filter((v) => !Number.isNaN(v));
      if (!known.length) return `${where} ${this.node.kind === "embed" || this.node.features?.kind === "embed" ? "A table has no entry here: it knows whole numbers inside its extent alone." : "Nothing to compare with here."}`;
      const far = Math.max(1, Math.round(Math.min(rows, cols) / 8));
      const values = cuts.map(({ name, points }) => `${fixed(LFF.valueAt(points, far))} along the ${name}`);
      return `${where} ${far} ${far === 1 ? "cell" : "cells"} away: ${values.join(", ")}. Smallest:\u00a0${fixed(known.reduce((a, b) => Math.min(a, b)))}.`;
    }

    python(reference) {
      const { state } = this.page;
      const table = this.values.some(Number.isNaN) && state.view !== "resized";
      this.settings.root.querySelector("code").textContent = LFF.python({ ...state, normalize: this.normalize }, this.state, { run: this.run, edits: this.edits, reference, coords: LFF.coords(state), table });
    }
  }

  // A box of the state's size around a cell; it may reach beyond the grid.
  function around([row, col], { height, width }) {
    const [top, left] = [row - ((height - 1) >> 1), col - ((width - 1) >> 1)];
    return [top, left, top + height - 1, left + width - 1];
  }

  function allBoxes([top, left], state) {
    const size = [state.rows, state.cols];
    const out = new Float32Array(4 * state.rows * state.cols);
    for (let row = 0; row < state.rows; row++) {
      for (let col = 0; col < state.cols; col++) {
        const box = state.view === "moved" ? around([row, col], state) : [top, left, row, col];
        out.set(LFF.boxPosition(box, size, state.normalize), 4 * (row * state.cols + col));
      }
    }
    return out;
  }

  LFF.Panel = Panel;
})();
