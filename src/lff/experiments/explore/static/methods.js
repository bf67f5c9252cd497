// The row names of lff.METHODS: each draws its weights from torch's generator in the order in which lff.build does.
"use strict";

(() => {
  const HIDDEN = 32;
  const GELU_POWER = 1 / 3 + 1 / (2 * Math.PI * Math.sqrt(3));
  const TEMPERATURE = 10000;

  // Each maker: (settings, draw) -> node. Settings: coords, depth, features, groups, gamma, extent.
  const fourier = (init = "normal") => ({ coords, features, groups, gamma }, draw) => {
    const m = coords / groups;
    const count = (features / 2) * m;
    const w_r = init === "normal" ? draw.normals(count, 1 / gamma) : draw.uniforms(count, 0, 1 / gamma);
    return { kind: "fourier", coords: m, w_r, bias: null, gamma, rms: 1 / Math.sqrt(2 * features) };
  };
  const sine = ({ coords, features, groups }) => ({ kind: "sine", coords: coords / groups, depth: features, temperature: TEMPERATURE, rms: Math.SQRT1_2 });
  const mdsine = ({ coords, features }) => ({ kind: "mdsine", coords, depth: features, temperature: TEMPERATURE, rms: Math.SQRT1_2 });
  const line = (settings) => ({ kind: "flattened", coords: settings.coords, extent: settings.extent, encoder: sine({ ...settings, coords: 1 }) });

  const embed = (join) => ({ coords, features, extent }, draw) => {
    const rows = join === "cell" ? [extent.reduce((a, b) => a * b, 1)] : extent;
    const width = join === "concat" ? features / coords : features;
    const std = join === "sum" ? 1 / Math.sqrt(rows.length) : 1;
    return { kind: "embed", coords, extent, join, tables: rows.map((n) => draw.normals(n * width, std)), rms: 1 };
  };

  // Layers are drawn twice in Python: by torch's defaults, and then as lff starts them.
  const dense = (inputs, outputs, gain, draw) => ({ weight: draw.normals(outputs * inputs, 1 / (gain * Math.sqrt(inputs))), bias: new Float32Array(outputs) });
  const untouched = (inputs, outputs, draw) => draw.skip(inputs * outputs + outputs);

  const mlp = (make) => (settings, draw) => {
    const features = make(settings, draw);
    const { features: f, depth, groups } = settings;
    untouched(f, HIDDEN, draw);
    untouched(HIDDEN, depth / groups, draw);
    const dense_1 = dense(f, HIDDEN, features.rms, draw);
    return { kind: "modulated", coords: features.coords, features, dense_1, dense_2: dense(HIDDEN, depth / groups, Math.sqrt(GELU_POWER), draw) };
  };
  const grouped = (make) => (settings, draw) => ({ kind: "grouped", coords: settings.coords, groups: settings.groups, encoder: make(settings, draw) });
  const alone = ({ coords, depth }, draw) => {
    const bound = 1 / Math.sqrt(coords);
    const [w_1, b_1] = [draw.uniforms(HIDDEN * coords, -bound, bound), draw.uniforms(HIDDEN, -bound, bound)];
    untouched(HIDDEN, depth, draw);
    return { kind: "mlp", coords, w_1, b_1, dense_2: dense(HIDDEN, depth, Math.sqrt(GELU_POWER), draw) };
  };
  const oneLayer = (settings, draw) => {
    const features = fourier()(settings, draw);
    untouched(settings.features, settings.depth, draw);
    return { kind: "dense", coords: settings.coords, features, dense: dense(settings.features, settings.depth, features.rms, draw) };
  };
  const scaled = (settings, draw) => {
    const features = fourier()(settings, draw);
    return { kind: "scaled", coords: settings.coords, features, factor: 1 / features.rms };
  };

  // What decides a method's look: g a gamma, s a seed, G any number of groups; a number is that of the name itself.
  const groupedFourier = grouped(fourier());
  const groupedMlp = grouped(mlp(fourier()));
  const inGroups = (name, make, extra) => [["1/4", 1], ["2/2", 2], ["4/1", 4]].map(([suffix, groups]) => [`${name}-${suffix}`, { make, coords: 4, groups, ...extra }]);
  const free = { gamma: true, seed: true, groups: "any" };
  const drawn = { gamma: true, seed: true };

  LFF.METHODS = new Map([
    ["none", { make: ({ coords }) => ({ kind: "zero", coords }), features: false }],
    ["Sine-1D", { make: line, coords: 2 }],
    ["Sine-2D", { make: sine, coords: 2 }],
    ["Sine-4D", { make: sine, coords: 4 }],
    ["Embed-1D", { make: embed("cell"), coords: 2, seed: true }],
    ["Embed-2D", { make: embed("concat"), coords: 2, seed: true }],
    ["Embed-4D", { make: embed("sum"), coords: 4, seed: true }],
    ["MLP", { make: alone, seed: true }],
    ["Learnable-Fourier", { make: groupedFourier, ...free }],
    ...inGroups("Learnable-Fourier", groupedFourier, drawn),
    ["Learnable-Fourier+MLP", { make: groupedMlp, ...free }],
    ...inGroups("Learnable-Fourier+MLP", groupedMlp, drawn),
    ["Fixed-Fourier", { make: groupedFourier, ...free }],
    ["Fixed-Fourier+MLP", { make: groupedMlp, ...free }],
    ...inGroups("Fixed-Fourier+MLP", groupedMlp, drawn),
    ["MD-Sine", { make: mdsine }],
    ["MD-Sine+MLP", { make: mlp(mdsine), seed: true }],
    ["Sine-2D+MLP", { make: grouped(mlp(sine)), coords: 2, seed: true, groups: "any" }],
    ...inGroups("Sine-4D+MLP", grouped(mlp(sine)), { seed: true }),
    ["Embed-1D+MLP", { make: mlp(embed("cell")), coords: 2, seed: true }],
    ["Embed-2D+MLP", { make: mlp(embed("concat")), coords: 2, seed: true }],
    ["Embed-4D+MLP", { make: mlp(embed("sum")), coords: 4, seed: true }],
    ["Learnable-Fourier+Dense", { make: oneLayer, ...drawn }],
    ["Learnable-Fourier+Scale", { make: scaled, ...drawn }],
    ["Uniform [0, 1]", { make: grouped(fourier("uniform")), ...free, gamma: 1 }],
    ["Uniform [0, 1] & MLP", { make: grouped(mlp(fourier("uniform"))), ...free, gamma: 1 }],
    ["N(0, 4^-2)", { make: groupedFourier, ...free, gamma: 4 }],
    ["N(0, 4^-2) & MLP", { make: groupedMlp, ...free, gamma: 4 }],
  ]);

  // Where a grid of boxes is numbered cell by cell there are too many cells.
  LFF.methodsFor = (coords) => [...LFF.METHODS].filter(([, method]) => !method.coords || method.coords === coords).map(([name]) => name);

  // The settings that a method has, after what its name says is taken from them.
  LFF.settle = (name, { coords, features, groups, gamma, extent }) => {
    const method = LFF.METHODS.get(name);
    const G = method.groups === "any" ? groups : method.groups || 1;
    return { coords, extent, features, groups: G, depth: features * G, gamma: typeof method.gamma === "number" ? method.gamma : gamma };
  };

  LFF.build = (name, settings, seed) => LFF.METHODS.get(name).make(LFF.settle(name, settings), new LFF.Generator(seed));
})();
