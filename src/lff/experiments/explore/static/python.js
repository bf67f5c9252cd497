// The lines of Python that give the map on the page.
"use strict";

(() => {
  const text = (value) => JSON.stringify(value);
  const float = (value) => (Number.isInteger(value) ? `${value}.0` : String(value));
  const tuple = (values) => `(${values.join(", ")})`;

  LFF.python = (state, panel, { run, edits, reference, coords, table }) => {
    const lines = ["import torch", "import lff", "from lff.analysis.similarity import similarity", ""];
    lines.push(...(run ? [`encode = lff.Encoding.from_pretrained(${text(run.stops[panel.stop].path)})`] : built(state, panel, coords)));
    if (edits.size) {
      lines.push(`w_r = next(w for name, w in encode.state_dict().items() if name.endswith("w_r"))`);
      for (const [index, w] of edits) lines.push(`w_r[${index}] = torch.tensor([${w.map(float).join(", ")}])`);
    }
    lines.push(...(coords === 2 ? points(state, reference) : boxes(state, reference)));
    if (table) lines.push("# the page leaves out what a table has no entry for; Python raises");
    return lines.join("\n");
  };

  function built(state, panel, coords) {
    const method = LFF.METHODS.get(panel.from);
    const { depth, groups } = LFF.settle(panel.from, { ...panel, coords });
    const words = [text(panel.from), `coords=${coords}`, `depth=${depth}`];
    if (/Embed|-1D/.test(panel.from)) words.push(`extent=${tuple(extent(state, coords))}`);
    if (method.gamma === true) words.push(`gamma=${float(panel.gamma)}`);
    if (method.groups === "any" && groups > 1) words.push(`groups=${groups}`);
    return [...(method.seed ? [`torch.manual_seed(${panel.seed})`] : []), `encode = lff.build(${words.join(", ")})`];
  }

  const extent = ({ rows, cols }, coords) => (coords === 2 ? [rows, cols] : [rows, cols, rows, cols]);

  const points = (state, [row, col]) => [
    `positions = lff.grid(${tuple([state.rows, state.cols])}${state.normalize ? ", normalize=True" : ""})`,
    `values = similarity(encode, positions, positions[${row}, ${col}][None])[0]`,
  ];

  function boxes(state, box) {
    const size = state.normalize ? `, size=${tuple([state.rows, state.cols])}` : "";
    const [top, left, bottom, right] = box;
    const cells = `row, col = lff.grid(${tuple([state.rows, state.cols])}).unbind(-1)`;
    const moved = [`top, left = row - ${(bottom - top) >> 1}, col - ${(right - left) >> 1}`, `xyxy = torch.stack([left, top, left + ${right - left}, top + ${bottom - top}], -1)`];
    const resized = [`xyxy = torch.stack([torch.full_like(col, ${left}), torch.full_like(row, ${top}), col, row], -1)[${Math.max(top, 0)}:, ${Math.max(left, 0)}:]`];
    return [
      cells,
      ...(state.view === "moved" ? moved : resized),
      `at = torch.tensor([[${[left, top, right, bottom].map(float).join(", ")}]])`,
      `values = similarity(encode, lff.boxes(xyxy${size}), lff.boxes(at${size}))[0]`,
    ];
  }
})();
