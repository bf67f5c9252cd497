// The encodings of lff, over a list of positions. An encoding is a node: a kind, its weights by name, the nodes it is made of.
// Each function returns { rows, width }: vectors whose inner products are those of the encodings, no wider than they need to be.
// A position for which an encoding has no vector, as a table has none beyond its extent, gives NaN.
"use strict";

(() => {
  const single = Math.fround;

  const kinds = {
    zero: (node, x, n) => ({ rows: new Float64Array(n), width: 1 }),
    fourier: (node, x, n) => waves(x, n, node.coords, node.w_r, node.bias, { factor: 1 / Math.sqrt(2 * frequencies(node)) }),
    sine(node, x, n) {
      const parts = axes(x, n, node.coords).map((axis) => waves(axis, n, 1, sineFrequencies(node, 0), null, { inTurns: true }));
      return beside(parts, n);
    },
    mdsine: (node, x, n) => waves(x, n, node.coords, LFF.frequencies(node).w, null, { inTurns: true }),
    embed: table,
    scaled(node, x, n) {
      const { rows, width } = LFF.encode(node.features, x, n);
      return { rows: rows.map((v) => v * node.factor), width };
    },
    dense(node, x, n) {
      const { rows, width } = LFF.encode(node.features, x, n);
      return last(node.dense, rows, n, width, (v) => v);
    },
    mlp(node, x, n) {
      const units = node.b_1.length;
      return last(node.dense_2, linear(x, n, node.coords, node.w_1, node.b_1), n, units, LFF.gelu);
    },
    modulated(node, x, n) {
      return LFF.finish(node, LFF.hidden(node, x, n), n);
    },
    grouped(node, x, n) {
      // The groups of a position lie side by side, before as after.
      const { rows, width } = LFF.encode(node.encoder, x, n * node.groups);
      return { rows, width: width * node.groups };
    },
    flattened(node, x, n) {
      return LFF.encode(node.encoder, raster(x, n, node.extent), n);
    },
  };

  // Sums of x W^T + b as they come before GELU, [n, units].
  LFF.hidden = (node, x, n) => {
    const { rows, width } = LFF.encode(node.features, x, n);
    if (node.norm_1) LFF.layerNorm(rows, n, width, node.norm_1);
    return linear(rows, n, width, node.dense_1.weight, node.dense_1.bias);
  };

  // What comes after them in Eq. 6.
  LFF.finish = (node, sums, n) => {
    const units = node.dense_1.bias.length;
    if (!node.norm_2) return last(node.dense_2, sums, n, units, LFF.gelu);
    const h = sums.map(LFF.gelu);
    LFF.layerNorm(h, n, units, node.norm_2);
    return last(node.dense_2, h, n, units, (v) => v);
  };

  LFF.encode = (node, x, n) => kinds[node.kind](node, x, n);

  // The part of an encoding that holds frequencies, if any does.
  LFF.featuresOf = (node) => {
    if (["fourier", "sine", "mdsine"].includes(node.kind)) return node;
    const inner = node.features || node.encoder;
    return inner ? LFF.featuresOf(inner) : null;
  };

  // W_r, [count, coords], or what stands for it where frequencies are constant: those of Sine lie on the axes.
  LFF.frequencies = (node) => {
    const { coords } = node;
    if (node.kind === "fourier") return { w: node.w_r, coords };
    const along = Array.from({ length: coords }, (_, i) => sineFrequencies(node, node.kind === "mdsine" ? i : 0));
    const each = along[0].length;
    if (node.kind === "mdsine") return { w: Float32Array.from({ length: each * coords }, (_, k) => along[k % coords][Math.floor(k / coords)]), coords };
    const w = new Float32Array(each * coords * coords);
    along.forEach((axis, i) => axis.forEach((value, d) => (w[(i * each + d) * coords + i] = value)));
    return { w, coords };
  };

  const frequencies = (node) => node.w_r.length / node.coords;

  function sineFrequencies({ kind, coords, depth, temperature }, halvings) {
    const share = kind === "sine" ? depth / coords : depth;
    const rate = single(-Math.log(temperature / 2 ** halvings) / share);
    return Float32Array.from({ length: share / 2 }, (_, d) => Math.exp(single(2 * d * rate)));
  }

  // Cosines and then sines of x W^T, as Eq. 2 has them, or sine and cosine in turns, as Eq. 1 does. Phases are rounded to
  // float32, as in the library.
  function waves(x, n, coords, w, bias, { factor = 1, inTurns = false }) {
    const count = w.length / coords;
    const [step, sine, cosine] = inTurns ? [2, 0, 1] : [1, count, 0];
    const rows = new Float64Array(n * 2 * count);
    for (let i = 0, at = 0; i < n; i++, at += 2 * count) {
      for (let f = 0; f < count; f++) {
        const angle = phase(x, i * coords, w, f * coords, coords) + (bias ? bias[f] : 0);
        rows[at + f * step + cosine] = Math.cos(angle) * factor;
        rows[at + f * step + sine] = Math.sin(angle) * factor;
      }
    }
    return { rows, width: 2 * count };
  }

  function phase(x, i, w, f, coords) {
    let angle = single(x[i] * w[f]);
    for (let k = 1; k < coords; k++) angle = single(angle + x[i + k] * w[f + k]);
    return angle;
  }
  LFF.phase = phase;

  function linear(x, n, width, weight, bias) {
    const units = bias.length;
    const across = LFF.transposed(weight, units, width);
    const out = new Float64Array(n * units);
    for (let i = 0; i < n; i++) {
      const at = i * units;
      out.set(bias, at);
      let j = 0;
      for (; j + 4 <= width; j += 4) {
        const [a, b, c, d] = [x[i * width + j], x[i * width + j + 1], x[i * width + j + 2], x[i * width + j + 3]];
        const from = j * units;
        // Four at a time: each sum is then read and written a quarter as often.
        for (let k = 0; k < units; k++) {
          out[at + k] += a * across[from + k] + b * across[from + units + k] + c * across[from + 2 * units + k] + d * across[from + 3 * units + k];
        }
      }
      for (; j < width; j++) add(out, at, across, j * units, units, x[i * width + j]);
    }
    return out;
  }

  function add(out, at, vector, from, length, factor) {
    for (let k = 0; k < length; k++) out[at + k] += factor * vector[from + k];
  }
  LFF.add = add;

  // The last layer of an encoding, of which the inner products of its outputs are all that is wanted.
  function last(dense, x, n, units, activation) {
    dense.products ??= LFF.products(dense.weight, dense.bias, dense.bias.length, units);
    const { factor, width } = dense.products;
    const rows = new Float64Array(n * width);
    for (let i = 0; i < n; i++) {
      rows.set(factor.subarray(units * width), i * width);
      for (let k = 0; k < units; k++) add(rows, i * width, factor, k * width, width, activation(x[i * units + k]));
    }
    return { rows, width };
  }

  function table(node, x, n) {
    const { coords, extent, tables, join } = node;
    if (join === "cell") return looked(tables[0], raster(x, n, extent), n, extent.reduce((a, b) => a * b, 1));
    const parts = axes(x, n, coords).map((axis, i) => looked(tables[i], axis, n, extent[i]));
    if (join === "concat") return beside(parts, n);
    const rows = parts[0].rows;
    for (const part of parts.slice(1)) part.rows.forEach((value, k) => (rows[k] += value));
    return { rows, width: parts[0].width };
  }

  function looked(entries, index, n, size) {
    const width = entries.length / size;
    const rows = new Float64Array(n * width).fill(NaN);
    for (let i = 0; i < n; i++) {
      if (Number.isInteger(index[i]) && index[i] >= 0 && index[i] < size) rows.set(entries.subarray(index[i] * width, (index[i] + 1) * width), i * width);
    }
    return { rows, width };
  }

  function raster(x, n, extent) {
    const inside = (value, k) => Number.isInteger(value) && value >= 0 && value < extent[k];
    return Float32Array.from({ length: n }, (_, i) => {
      const cell = x.subarray(i * extent.length, (i + 1) * extent.length);
      return cell.every(inside) ? cell.reduce((flat, value, k) => flat * extent[k] + value, 0) : NaN;
    });
  }

  const axes = (x, n, coords) => Array.from({ length: coords }, (_, i) => columns(x, n, coords, i, 1));

  function columns(x, n, coords, first, count) {
    return Float32Array.from({ length: n * count }, (_, k) => x[Math.floor(k / count) * coords + first + (k % count)]);
  }

  function beside(parts, n) {
    const width = parts.reduce((sum, part) => sum + part.width, 0);
    const rows = new Float64Array(n * width);
    for (let i = 0, at = 0; i < n; i++) {
      for (const part of parts) {
        rows.set(part.rows.subarray(i * part.width, (i + 1) * part.width), at);
        at += part.width;
      }
    }
    return { rows, width };
  }
})();
