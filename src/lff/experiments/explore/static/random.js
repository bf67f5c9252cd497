// The random numbers that torch draws on a CPU, so that a seed here makes the encoding that it makes in Python.
"use strict";
var LFF = globalThis.LFF || {};

(() => {
  const WORDS = 624;
  const MIDDLE = 397;

  // Mersenne twister (mt19937), and the distributions that torch makes of its words.
  class Generator {
    constructor(seed) {
      this.state = new Uint32Array(WORDS);
      this.state[0] = seed;
      for (let i = 1; i < WORDS; i++) {
        const before = this.state[i - 1];
        this.state[i] = Math.imul(1812433253, before ^ (before >>> 30)) + i;
      }
      this.next = WORDS;
      this.kept = null;
    }

    twist() {
      const s = this.state;
      for (let i = 0; i < WORDS; i++) {
        const y = (s[i] & 0x80000000) | (s[(i + 1) % WORDS] & 0x7fffffff);
        s[i] = s[(i + MIDDLE) % WORDS] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
      }
      this.next = 0;
    }

    word() {
      if (this.next === WORDS) this.twist();
      let y = this.state[this.next++];
      y ^= y >>> 11;
      y ^= (y << 7) & 0x9d2c5680;
      y ^= (y << 15) & 0xefc60000;
      return (y ^ (y >>> 18)) >>> 0;
    }

    // Numbers that are drawn in Python and overwritten there.
    skip(count) {
      for (let i = 0; i < count; i++) this.word();
    }

    // A float32 in [0, 1) takes 24 bits of one word, a float64 53 bits of two.
    single() {
      return (this.word() & 0xffffff) / 2 ** 24;
    }

    double() {
      const high = this.word();
      return ((high & 0x1fffff) * 2 ** 32 + this.word()) / 2 ** 53;
    }

    uniforms(count, low, high) {
      const from = Math.fround(low);
      const width = Math.fround(Math.fround(high) - from);
      return Float32Array.from({ length: count }, () => Math.fround(this.single() * width) + from);
    }

    // Box and Muller's method: sixteen at a time, or pair by pair for a tensor of fewer.
    normals(count, std) {
      const out = new Float32Array(count);
      if (count < 16) {
        for (let i = 0; i < count; i++) out[i] = this.normal() * std;
        return out;
      }
      for (let i = 0; i < count; i++) out[i] = this.single();
      for (let i = 0; i + 16 <= count; i += 16) sixteen(out, i, std);
      if (count % 16) {
        for (let i = count - 16; i < count; i++) out[i] = this.single();
        sixteen(out, count - 16, std);
      }
      return out;
    }

    normal() {
      if (this.kept !== null) {
        const kept = this.kept;
        this.kept = null;
        return kept;
      }
      const angle = 2 * Math.PI * this.double();
      const radius = Math.sqrt(-2 * Math.log1p(-this.double()));
      this.kept = radius * Math.sin(angle);
      return radius * Math.cos(angle);
    }
  }

  function sixteen(out, start, std) {
    for (let i = start; i < start + 8; i++) {
      const radius = Math.sqrt(-2 * Math.log(1 - out[i]));
      const angle = 2 * Math.PI * out[i + 8];
      out[i] = radius * Math.cos(angle) * std;
      out[i + 8] = radius * Math.sin(angle) * std;
    }
  }

  LFF.Generator = Generator;
})();
