// The frequencies of an encoding as points; those of Fourier features can be dragged.
"use strict";

(() => {
  const KEYS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const MARGIN = 20;

  class Frequencies {
    // moved(index, w) when a point is dragged, chosen(index) when one is picked, put() when it is let go.
    constructor(canvas, { moved, chosen, put }) {
      Object.assign(this, { canvas, moved, chosen, put, pair: 0, picked: 0, range: 1, held: null });
      canvas.addEventListener("pointerdown", (event) => this.down(event));
      canvas.addEventListener("pointermove", (event) => this.drag(event));
      for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => this.up());
      canvas.addEventListener("keydown", (event) => this.key(event));
    }

    // w: [count, coords]; ring: standard deviation of the draw, or null; free: whether points can be dragged.
    show({ w, coords }, { ring, free }) {
      Object.assign(this, { w, coords, ring, free, count: w.length / coords });
      this.picked = Math.min(this.picked, this.count - 1);
      if (this.held === null) this.range = 1.05 * Math.max(w.reduce((most, v) => Math.max(most, Math.abs(v)), 0), 2.5 * (ring || 0), 1e-6);
      this.canvas.style.cursor = free ? "grab" : "default";
      this.canvas.style.touchAction = free ? "none" : "auto";
      this.draw();
    }

    // Which coordinates are drawn: (vertical, horizontal); one alone is drawn along the middle.
    axes() {
      return this.coords === 1 ? [null, 0] : [2 * this.pair, 2 * this.pair + 1];
    }

    place(index) {
      const { clientWidth: width, clientHeight: height } = this.canvas;
      const [down, across] = this.axes();
      const at = (axis) => (axis === null ? 0 : this.w[index * this.coords + axis] / this.range);
      return [width / 2 + at(across) * (width / 2 - MARGIN), height / 2 + at(down) * (height / 2 - MARGIN)];
    }

    down(event) {
      const box = this.canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const reach = event.pointerType === "mouse" ? 14 : 28;
      let [best, nearest] = [null, reach];
      for (let i = 0; i < this.count; i++) {
        const [px, py] = this.place(i);
        const distance = Math.hypot(px - x, py - y);
        if (distance <= nearest) [best, nearest] = [i, distance];
      }
      if (best === null) return;
      this.pick(best);
      if (!this.free) return;
      this.held = best;
      this.canvas.style.cursor = "grabbing";
      this.canvas.setPointerCapture(event.pointerId);
    }

    drag(event) {
      if (this.held === null) return;
      const box = this.canvas.getBoundingClientRect();
      const scaled = (v, size) => Math.min(Math.max((v - size / 2) / (size / 2 - MARGIN), -1), 1) * this.range;
      this.set(this.held, [scaled(event.clientY - box.top, box.height), scaled(event.clientX - box.left, box.width)]);
    }

    up() {
      if (this.held === null) return;
      this.held = null;
      this.canvas.style.cursor = "grab";
      this.put();
    }

    key(event) {
      const turn = { PageDown: 1, PageUp: -1 }[event.key];
      const step = KEYS[event.key];
      if (!turn && !(step && this.free)) return;
      event.preventDefault();
      if (turn) {
        this.pick((this.picked + turn + this.count) % this.count);
        return;
      }
      const [down, across] = this.axes();
      const at = (axis) => (axis === null ? 0 : this.w[this.picked * this.coords + axis]);
      const far = (this.range / 50) * (event.shiftKey ? 5 : 1);
      this.set(this.picked, [at(down) + step[0] * far, at(across) + step[1] * far]);
      this.put();
    }

    set(index, [vertical, horizontal]) {
      const w = Array.from(this.w.subarray(index * this.coords, (index + 1) * this.coords));
      const [down, across] = this.axes();
      if (down !== null) w[down] = vertical;
      w[across] = horizontal;
      this.moved(index, w.map((v) => Number(v.toPrecision(4))));
    }

    pick(index) {
      this.picked = index;
      this.chosen(index);
      this.draw();
    }

    draw() {
      if (!this.w) return;
      const { context, width, height } = LFF.fitted(this.canvas);
      const scale = (Math.min(width, height) / 2 - MARGIN) / this.range;
      Object.assign(context, { strokeStyle: LFF.colour("--rule"), fillStyle: LFF.colour("--soft"), lineWidth: 1, font: `11px ${LFF.colour("--sans")}` });
      context.beginPath();
      context.moveTo(0, height / 2);
      context.lineTo(width, height / 2);
      if (this.coords > 1) context.moveTo(width / 2, 0), context.lineTo(width / 2, height);
      context.stroke();
      this.labels(context, width, height);
      this.rings(context, width, height, scale);
      context.globalAlpha = this.count > 256 ? 0.55 : 0.8;
      Object.assign(context, { fillStyle: LFF.colour("--accent"), strokeStyle: LFF.colour("--accent"), lineWidth: 1.25 });
      for (let i = 0; i < this.count; i++) this.point(context, i);
      context.globalAlpha = 1;
      const [x, y] = this.place(this.picked);
      Object.assign(context, { strokeStyle: LFF.colour("--ink"), lineWidth: 2 });
      context.beginPath();
      context.arc(x, y, 7, 0, 2 * Math.PI);
      context.stroke();
    }

    labels(context, width, height) {
      const names = { 1: ["", "frequency"], 2: ["row", "column"], 4: [["top", "left"], ["bottom", "right"]][this.pair] }[this.coords] || ["", ""];
      context.textAlign = "right";
      context.fillText(names[1], width - 6, height / 2 - 6);
      context.textAlign = "left";
      context.fillText(names[0], width / 2 + 6, height - 6);
    }

    rings(context, width, height, scale) {
      if (!this.ring) return;
      context.setLineDash([3, 4]);
      Object.assign(context, { strokeStyle: LFF.colour("--soft"), globalAlpha: 0.7 });
      for (const times of [1, 2]) {
        context.beginPath();
        if (this.coords === 1) for (const sign of [-1, 1]) context.moveTo(width / 2 + sign * times * this.ring * scale, height / 2 - 12), context.lineTo(width / 2 + sign * times * this.ring * scale, height / 2 + 12);
        else context.arc(width / 2, height / 2, times * this.ring * scale, 0, 2 * Math.PI);
        context.stroke();
      }
      context.setLineDash([]);
      context.globalAlpha = 1;
    }

    point(context, i) {
      const [x, y] = this.place(i);
      context.beginPath();
      context.arc(x, y, this.count > 256 ? 2 : 3, 0, 2 * Math.PI);
      if (this.free) context.fill();
      else context.stroke();
    }
  }

  LFF.Frequencies = Frequencies;
})();
