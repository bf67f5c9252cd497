// An encoding over many positions at once, and the similarity of them all to one: what a map shows.
"use strict";

(() => {
  class Field {
    // node: an encoding; x: Float32Array [n, coords].
    constructor(node, x) {
      this.node = node;
      this.x = x;
      this.n = x.length / node.coords;
      this.begin();
    }

    // Groups are encoded by one encoder, so moving one of its frequencies moves a column in each of them.
    begin() {
      const inner = this.node.kind === "grouped" ? this.node.encoder : this.node;
      this.quick = inner.kind === "modulated" && inner.features.kind === "fourier" && !inner.norm_1 ? inner : null;
      this.many = this.n * (this.node.coords / inner.coords);
      this.plain = inner.kind === "fourier" ? inner : null;
      if (!this.quick) {
        this.keep(LFF.encode(this.node, this.x, this.n));
        return;
      }
      this.sums = LFF.hidden(inner, this.x, this.many); // groups lie side by side in x: each is a position of the encoder
      this.finish();
    }

    finish() {
      const { rows, width } = LFF.finish(this.quick, this.sums, this.many);
      this.keep({ rows, width: (width * this.many) / this.n });
    }

    keep({ rows, width }) {
      this.width = width;
      this.rows = Float32Array.from(unit(rows, this.n, width));
    }

    // After frequency f of W_r has become other numbers: was holds the old ones.
    moved(f, was) {
      if (this.plain) {
        this.columns(f);
        return;
      }
      if (!this.quick) {
        this.begin();
        return;
      }
      const { features, dense_1 } = this.quick;
      const { coords, w_r, bias } = features;
      const count = w_r.length / coords;
      const units = dense_1.bias.length;
      const factor = 1 / Math.sqrt(2 * count);
      const cosines = Float64Array.from({ length: units }, (_, k) => dense_1.weight[k * 2 * count + f]);
      const sines = Float64Array.from({ length: units }, (_, k) => dense_1.weight[k * 2 * count + count + f]);
      const { x, sums } = this;
      const shift = bias ? bias[f] : 0;
      for (let i = 0; i < this.many; i++) {
        const old = LFF.phase(x, i * coords, was, 0, coords) + shift;
        const now = LFF.phase(x, i * coords, w_r, f * coords, coords) + shift;
        LFF.add(sums, i * units, cosines, 0, units, (Math.cos(now) - Math.cos(old)) * factor);
        LFF.add(sums, i * units, sines, 0, units, (Math.sin(now) - Math.sin(old)) * factor);
      }
      this.finish();
    }

    // Features alone have one length whatever W_r is, so a frequency is two columns of the unit vectors.
    columns(f) {
      const { coords, w_r, bias } = this.plain;
      const count = w_r.length / coords;
      const factor = 1 / Math.sqrt((count * this.many) / this.n);
      for (let i = 0; i < this.many; i++) {
        const angle = LFF.phase(this.x, i * coords, w_r, f * coords, coords) + (bias ? bias[f] : 0);
        this.rows[i * 2 * count + f] = Math.cos(angle) * factor;
        this.rows[i * 2 * count + count + f] = Math.sin(angle) * factor;
      }
    }

    // Cosine similarity of every position to one; 0 where an encoding is all zeros, NaN where it has none.
    similarity(position) {
      const { rows, width } = LFF.encode(this.node, position, 1);
      const at = Float32Array.from(unit(rows, 1, width));
      const out = new Float32Array(this.n);
      const all = this.rows;
      for (let i = 0, k = 0; i < out.length; i++) {
        let even = 0; // two sums, which the processor can add to at the same time
        let odd = 0;
        for (let j = 0; j + 1 < width; j += 2, k += 2) {
          even += all[k] * at[j];
          odd += all[k + 1] * at[j + 1];
        }
        if (width % 2) even += all[k++] * at[width - 1];
        out[i] = even + odd;
      }
      return out;
    }
  }

  function unit(rows, n, width) {
    for (let i = 0; i < n; i++) {
      let square = 0;
      for (let k = i * width; k < (i + 1) * width; k++) square += rows[k] ** 2;
      const scale = square > 0 ? 1 / Math.sqrt(square) : square; // NaN stays NaN
      for (let k = i * width; k < (i + 1) * width; k++) rows[k] *= scale;
    }
    return rows;
  }

  // Positions as lff.grid and lff.boxes make them, in float32.
  LFF.gridPositions = ([rows, cols], normalize) => {
    const axis = (i, n) => (normalize ? Math.fround(i + 0.5) / n : i);
    return Float32Array.from({ length: rows * cols * 2 }, (_, k) => {
      const cell = k >> 1;
      return k % 2 ? axis(cell % cols, cols) : axis(Math.floor(cell / cols), rows);
    });
  };

  // One box (top, left, bottom, right), its sides in cells; no box where it would end before it starts.
  LFF.boxPosition = ([top, left, bottom, right], [rows, cols], normalize) => {
    if (bottom < top || right < left) return Float32Array.of(NaN, NaN, NaN, NaN);
    const [h, w] = normalize ? [rows, cols] : [1, 1];
    return Float32Array.of(top / h, left / w, bottom / h, right / w);
  };

  LFF.Field = Field;
})();
