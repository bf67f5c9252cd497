// A similarity map: cells in colours, the cell looked from, and the ways to choose it by pointer, touch and keys.
"use strict";

(() => {
  const KEYS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  class SimilarityMap {
    // hover(cell or null) while a pointer is over the map; choose(cell) when one is put down.
    constructor(canvas, { hover, choose, cell }) {
      Object.assign(this, { canvas, hover, choose, cell, small: document.createElement("canvas"), size: [1, 1] });
      canvas.addEventListener("pointermove", (event) => {
        if (event.pointerType === "mouse" && !event.buttons) hover(this.under(event));
        else choose(this.under(event));
      });
      canvas.addEventListener("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        choose(this.under(event));
      });
      canvas.addEventListener("pointerleave", () => hover(null));
      canvas.addEventListener("keydown", (event) => this.key(event));
    }

    key(event) {
      const [rows, cols] = this.size;
      const [row, col] = this.cell();
      const far = event.shiftKey ? 8 : 1;
      const ends = { Home: [row, 0], End: [row, cols - 1], PageUp: [0, col], PageDown: [rows - 1, col] };
      const step = KEYS[event.key];
      const to = step ? [row + step[0] * far, col + step[1] * far] : ends[event.key];
      if (!to) return;
      event.preventDefault();
      this.choose(this.inside(to));
    }

    under(event) {
      const box = this.canvas.getBoundingClientRect();
      const [rows, cols] = this.size;
      return this.inside([Math.floor(((event.clientY - box.top) / box.height) * rows), Math.floor(((event.clientX - box.left) / box.width) * cols)]);
    }

    inside([row, col]) {
      const [rows, cols] = this.size;
      return [Math.min(Math.max(row, 0), rows - 1), Math.min(Math.max(col, 0), cols - 1)];
    }

    resize(size) {
      this.size = size;
      [this.small.height, this.small.width] = size;
      this.canvas.style.setProperty("--aspect", size[1] / size[0]);
    }

    // values: one a cell; box: [top, left, bottom, right] around what is looked from, in cells.
    draw(values, low, box, round) {
      const [rows, cols] = this.size;
      const inner = this.small.getContext("2d");
      const image = inner.createImageData(cols, rows);
      for (let i = 0; i < values.length; i++) {
        if (Number.isNaN(values[i])) continue; // stays transparent: there is nothing at this place
        const level = LFF.level(values[i], low) * 3;
        image.data[4 * i] = LFF.palette[level];
        image.data[4 * i + 1] = LFF.palette[level + 1];
        image.data[4 * i + 2] = LFF.palette[level + 2];
        image.data[4 * i + 3] = 255;
      }
      inner.putImageData(image, 0, 0);
      const { context, width, height } = LFF.fitted(this.canvas);
      context.imageSmoothingEnabled = false;
      context.drawImage(this.small, 0, 0, width, height);
      this.mark(context, box, [width / cols, height / rows], round);
    }

    mark(context, [top, left, bottom, right], [across, down], round) {
      const path = () => {
        context.beginPath();
        if (round) context.arc((left + 0.5) * across, (top + 0.5) * down, Math.min(Math.max(across * 0.9, 5), 12), 0, 2 * Math.PI);
        else context.rect(left * across, top * down, (right - left + 1) * across, (bottom - top + 1) * down);
        context.stroke();
      };
      for (const [style, line] of [["#0009", 4], ["#fff", 2]]) {
        Object.assign(context, { strokeStyle: style, lineWidth: line });
        path();
      }
    }
  }

  LFF.SimilarityMap = SimilarityMap;
})();
