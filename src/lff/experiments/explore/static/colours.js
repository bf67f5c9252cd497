// From dark blue to yellow, even to the eye and to the colour-blind: the colours of matplotlib's viridis, as in the report.
"use strict";

(() => {
  const stops = ["440154", "48186a", "472d7b", "424086", "3b528b", "33638d", "2c728e", "26828e", "21918c", "1fa088", "28ae80", "3fbc73", "5ec962", "84d44b", "addc30", "d8e219", "fde725"];
  const rgb = stops.map((hex) => [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));

  LFF.LEVELS = 256;
  // Red, green and blue of 256 levels.
  LFF.palette = new Uint8ClampedArray(LFF.LEVELS * 3);
  for (let level = 0; level < LFF.LEVELS; level++) {
    const at = (level / (LFF.LEVELS - 1)) * (rgb.length - 1);
    const i = Math.min(Math.floor(at), rgb.length - 2);
    for (let k = 0; k < 3; k++) LFF.palette[level * 3 + k] = rgb[i][k] + (at - i) * (rgb[i + 1][k] - rgb[i][k]);
  }

  LFF.level = (value, low) => Math.min(Math.max(Math.round(((value - low) / (1 - low)) * (LFF.LEVELS - 1)), 0), LFF.LEVELS - 1);

  // A strip with the colours in it, for the legend.
  LFF.drawScale = (canvas) => {
    canvas.width = LFF.LEVELS;
    canvas.height = 1;
    const context = canvas.getContext("2d");
    const image = context.createImageData(LFF.LEVELS, 1);
    for (let level = 0; level < LFF.LEVELS; level++) image.data.set([...LFF.palette.subarray(level * 3, level * 3 + 3), 255], level * 4);
    context.putImageData(image, 0, 0);
  };

  // A canvas in its size on the screen; drawing goes by the pixels of the page.
  LFF.fitted = (canvas) => {
    const { clientWidth, clientHeight } = canvas;
    const ratio = globalThis.devicePixelRatio || 1;
    const [width, height] = [Math.round(clientWidth * ratio), Math.round(clientHeight * ratio)];
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, clientWidth, clientHeight);
    return { context, width: clientWidth, height: clientHeight };
  };

  LFF.colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
})();
