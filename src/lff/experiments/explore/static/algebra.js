// The little linear algebra that encodings need.
"use strict";

(() => {
  // Standard normal distribution function between -8 and 8: Hermite's cubics between nodes, good to 1e-11.
  const STEPS = 128;
  const EDGE = 8;
  const density = (x) => Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI);
  const nodes = new Float64Array(2 * EDGE * STEPS + 1);
  const slopes = nodes.map((_, i) => density(i / STEPS - EDGE) / STEPS);
  for (let i = 1; i < nodes.length; i++) {
    const middle = density((i - 0.5) / STEPS - EDGE) / STEPS;
    nodes[i] = nodes[i - 1] + (slopes[i - 1] + 4 * middle + slopes[i]) / 6; // Simpson's rule
  }

  // The exact GELU, x times the distribution function.
  function gelu(x) {
    if (x <= -EDGE) return 0;
    if (x >= EDGE) return x;
    const at = (x + EDGE) * STEPS;
    const i = Math.min(Math.floor(at), nodes.length - 2);
    const t = at - i;
    const s = 1 - t;
    const value = s * s * ((1 + 2 * t) * nodes[i] + t * slopes[i]) + t * t * ((3 - 2 * t) * nodes[i + 1] - s * slopes[i + 1]);
    return x * value;
  }

  // [units + 1, width]: what turns hidden units and a constant 1 into vectors with the inner products of the layer's outputs.
  // The products need h G h' alone, G = [W b]^T [W b], and G = L L^T has a factor no wider than the units are many.
  function products(weight, bias, outputs, units) {
    const size = units + 1;
    const entry = (d, i) => (i < units ? weight[d * units + i] : bias[d]);
    if (outputs <= size) {
      const factor = new Float64Array(size * outputs);
      for (let i = 0; i < size; i++) for (let d = 0; d < outputs; d++) factor[i * outputs + d] = entry(d, i);
      return { factor, width: outputs };
    }
    const gram = new Float64Array(size * size);
    for (let d = 0; d < outputs; d++) {
      for (let i = 0; i < size; i++) for (let j = 0; j <= i; j++) gram[i * size + j] += entry(d, i) * entry(d, j);
    }
    return { factor: cholesky(gram, size), width: size };
  }

  // Lower triangular, in place; a direction without length, such as that of a bias of zeros, gives a column of zeros.
  function cholesky(gram, size) {
    const l = new Float64Array(size * size);
    for (let j = 0; j < size; j++) {
      let left = gram[j * size + j];
      for (let k = 0; k < j; k++) left -= l[j * size + k] ** 2;
      const pivot = left > 1e-12 * gram[j * size + j] ? Math.sqrt(left) : 0;
      l[j * size + j] = pivot;
      for (let i = j + 1; pivot && i < size; i++) {
        let sum = gram[i * size + j];
        for (let k = 0; k < j; k++) sum -= l[i * size + k] * l[j * size + k];
        l[i * size + j] = sum / pivot;
      }
    }
    return l;
  }

  function transposed(matrix, rows, cols) {
    const out = new Float64Array(rows * cols);
    for (let i = 0; i < rows; i++) for (let j = 0; j < cols; j++) out[j * rows + i] = matrix[i * cols + j];
    return out;
  }

  // A row minus its mean over its deviation, times and plus learned vectors, in place.
  function layerNorm(x, rows, width, { weight, bias }) {
    for (let start = 0; start < rows * width; start += width) {
      let mean = 0;
      let square = 0;
      for (let i = start; i < start + width; i++) mean += x[i] / width;
      for (let i = start; i < start + width; i++) square += (x[i] - mean) ** 2 / width;
      const scale = 1 / Math.sqrt(square + 1e-5);
      for (let i = 0; i < width; i++) x[start + i] = (x[start + i] - mean) * scale * weight[i] + bias[i];
    }
  }

  Object.assign(LFF, { gelu, products, transposed, layerNorm });
})();
