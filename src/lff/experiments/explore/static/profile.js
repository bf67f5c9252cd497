// Three cuts through a map at the cell looked from: along its row, its column and its diagonal.
"use strict";

(() => {
  const CUTS = [
    { name: "row", step: [0, 1], colour: "--m1", dash: [] },
    { name: "column", step: [1, 0], colour: "--m2", dash: [6, 3] },
    { name: "diagonal", step: [1, 1], colour: "--m3", dash: [2, 3] },
  ];

  // Points (distance in cells, similarity) of each cut, in order.
  LFF.cuts = (values, [rows, cols], [row, col]) =>
    CUTS.map((cut) => {
      const [down, across] = cut.step;
      const points = [];
      for (let k = -Math.max(rows, cols); k <= Math.max(rows, cols); k++) {
        const [r, c] = [row + k * down, col + k * across];
        if (r >= 0 && r < rows && c >= 0 && c < cols) points.push([k * Math.hypot(down, across), values[r * cols + c]]);
      }
      return { ...cut, points };
    });

  // The value at a distance, straight between cells, on whichever side has it.
  LFF.valueAt = (points, distance) => {
    for (const sign of [1, -1]) {
      const ordered = points.map(([d, v]) => [d * sign, v]).sort((p, q) => p[0] - q[0]);
      const next = ordered.findIndex(([d]) => d >= distance - 1e-9);
      if (next <= 0) continue;
      const [[d0, v0], [d1, v1]] = [ordered[next - 1], ordered[next]];
      return v0 + ((v1 - v0) * (distance - d0)) / (d1 - d0);
    }
    return NaN;
  };

  LFF.drawProfile = (canvas, cuts, floor) => {
    const { context, width, height } = LFF.fitted(canvas);
    const edge = { left: 30, right: 6, top: 6, bottom: 18 };
    const reach = Math.max(...cuts.flatMap(({ points }) => points.map(([d]) => Math.abs(d))), 1);
    const x = (d) => edge.left + ((d + reach) / (2 * reach)) * (width - edge.left - edge.right);
    const y = (v) => edge.top + ((1 - v) / (1 - floor)) * (height - edge.top - edge.bottom);
    context.font = `11px ${LFF.colour("--sans")}`;
    context.fillStyle = LFF.colour("--soft");
    context.strokeStyle = LFF.colour("--rule");
    context.textBaseline = "middle";
    context.textAlign = "right";
    const levels = new Set([1, 0.5, 0, -0.5, -1, Math.max(floor, 0)].filter((v) => v >= floor));
    for (const v of levels) {
      context.fillText(v.toFixed(2).replace(/0$/, "").replace("-", "−"), edge.left - 6, y(v));
      line(context, [[edge.left, y(v)], [width - edge.right, y(v)]]);
    }
    context.textBaseline = "alphabetic";
    const tick = nice(reach / 2);
    for (let d = -Math.floor(reach / tick) * tick; d <= reach; d += tick) {
      context.textAlign = x(d) > width - 16 ? "right" : "center";
      context.fillText(String(d).replace("-", "−"), x(d), height - 3);
    }
    context.save();
    context.beginPath();
    context.rect(edge.left, edge.top - 2, width - edge.left - edge.right, height - edge.top - edge.bottom + 4);
    context.clip();
    for (const { points, colour, dash } of cuts) {
      Object.assign(context, { strokeStyle: LFF.colour(colour), lineWidth: 1.75 });
      context.setLineDash(dash);
      line(context, points.filter(([, v]) => !Number.isNaN(v)).map(([d, v]) => [x(d), y(v)]));
    }
    context.restore();
    context.setLineDash([]);
  };

  function nice(size) {
    const power = 10 ** Math.floor(Math.log10(size));
    return Math.max([5, 2, 1].find((step) => step * power <= size) * power, 1);
  }

  function line(context, points) {
    context.beginPath();
    points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.stroke();
  }
})();
