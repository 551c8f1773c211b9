// Line charts with uPlot: over time, and distributions. Each is a focusable picture with a
// spoken summary, a cursor that the arrow keys move, a legend with the values under it, and a
// data table behind it.
import uPlot from 'uplot';

import {dataTable, h} from './dom.js';
import {amount, clock, percent, short, tick} from './format.js';
import {colour, onPaper, onThemeChange} from './theme.js';

const height = 190;
// Charts on A4: two or three side by side.
const paperWidth = (box) => (box.closest('.three') ? 212 : 330);
const clockSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
const dashes = [[], [6, 4], [2, 3], [9, 3, 2, 3]];

function axes(options) {
  const common = {
    stroke: () => colour('ink-soft'),
    grid: {stroke: () => colour('grid'), width: 1},
    ticks: {stroke: () => colour('grid'), width: 1, size: 4},
    font: '11px system-ui, sans-serif',
    gap: 4,
  };
  return [
    {...common, size: 30, space: options.xSpace ?? 70, splits: options.xSplits, incrs: options.xSteps,
     values: (_, splits) => splits.map((at) => (at === null ? null : options.xTick(at))),
     filter: options.xFilter},
    {...common, size: 52, space: 34,
     values: (_, splits) => splits.map((at) => (at === null ? null : options.yTick(at)))},
  ];
}

function seriesOf(spec, index) {
  return {
    label: spec.label,
    stroke: () => colour(spec.colour),
    width: 1.8,
    dash: spec.dash ?? (spec.solid ? [] : dashes[index % dashes.length]),
    fill: spec.fill ? () => `${colour(spec.colour)}22` : undefined,
    points: {show: false},
    spanGaps: false,
    value: (_, value) => (value === null || value === undefined ? '–' : spec.format(value)),
  };
}

// Redrawn on a change of theme, resized with its box, steered by the arrow keys.
function place(box, build) {
  let plot = null;
  const room = () => (onPaper() ? paperWidth(box) : Math.max(220, Math.floor(box.clientWidth)));
  const draw = () => {
    const width = room();
    if (plot) plot.destroy();
    plot = build(width);
    box.prepend(plot.root);
  };
  new ResizeObserver(() => requestAnimationFrame(() => {
    if (!plot) draw();
    else if (plot.width !== room()) plot.setSize({width: room(), height});
  })).observe(box);
  onThemeChange(() => plot && draw());
  const move = (event) => {
    if (!plot) return;
    const last = plot.data[0].length - 1;
    const step = Math.max(1, Math.round(last / 60));
    const moves = {ArrowLeft: -step, ArrowRight: step, Home: -last, End: last};
    if (!(event.key in moves)) return;
    event.preventDefault();
    const at = Math.min(last, Math.max(0, (plot.cursor.idx ?? 0) + moves[event.key]));
    plot.setCursor({left: plot.valToPos(plot.data[0][at], 'x'), top: height / 4});
  };
  box.addEventListener('keydown', move);
}

function frame(options, plotBox, details) {
  return h('figure', {class: `chart ${options.class ?? ''}`},
           h('figcaption', {}, options.title,
             options.unit && h('span', {class: 'unit'}, ` ${options.unit}`)),
           options.note && h('p', {class: 'note'}, options.note), plotBox, details);
}

function empty(options, why) {
  return h('figure', {class: 'chart'}, h('figcaption', {}, options.title),
           h('p', {class: 'nothing'}, why));
}

function range(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return high >= low ? {low, high} : null;
}

// `options.series`: [{label, values, colour, format, fill}]; `options.bounds`: horizontal lines
// [{label, at}]; `options.top`: fixed upper end of the axis.
export function timeChart(time, options) {
  const shown = options.series.filter((each) => range(each.values));
  if (time.length < 2 || shown.length === 0) return empty(options, 'Nothing to draw: no samples.');
  const highest = Math.max(...shown.map((each) => range(each.values).high));
  const top = options.top ?? (highest > 0 ? highest * 1.08 : 1);
  const spoken = shown.map((each) => {
    const {low, high} = range(each.values);
    return `${each.label} from ${each.format(low)} to ${each.format(high)}`;
  }).join('; ');
  const box = h('div', {class: 'plot', tabindex: '0', role: 'img',
                        'aria-label': `${options.title} over time: ${spoken}. Arrow keys move the cursor.`});
  place(box, (width) => new uPlot({
    width, height,
    scales: {x: {time: false}, y: {range: [0, top]}},
    legend: {live: true},
    cursor: {drag: {x: true, y: false}, focus: {prox: 24}, sync: {key: 'time'}},
    hooks: {draw: [loadEdges]},
    axes: axes({xTick: clock, xSteps: clockSteps, yTick: options.yTick ?? short}),
    series: [{label: 'time', value: (_, at) => (at === null ? '–' : clock(at))},
             ...shown.map((each, i) => seriesOf({...each, solid: shown.length === 1}, i))],
  }, [time, ...shown.map((each) => each.values)]));
  return frame(options, box, dataTable(options.title, ['time', ...shown.map((each) => each.label)],
      () => time.map((at, row) => [clock(at), ...shown.map((each) =>
          (each.values[row] === null ? '–' : each.format(each.values[row])))])));
}

// Where the load begins and ends, so that filling and emptying are told from the state between.
let edges = [];
export function markLoad(from, to) {
  edges = [from, to];
}

function loadEdges(plot) {
  const {ctx, bbox} = plot;
  ctx.save();
  ctx.strokeStyle = colour('ink-soft');
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const at of edges) {
    const x = Math.round(plot.valToPos(at, 'x', true));
    if (x <= bbox.left + 2 || x >= bbox.left + bbox.width - 2) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

// Vertical marks drawn over a distribution: percentiles, and bounds asked for.
function marks(list) {
  return (plot) => {
    const {ctx, bbox} = plot;
    const scale = devicePixelRatio;
    ctx.save();
    ctx.font = `${11 * scale}px system-ui, sans-serif`;
    let row = 0;
    for (const mark of list) {
      const x = Math.round(plot.valToPos(mark.at, 'x', true));
      if (!(x >= bbox.left && x <= bbox.left + bbox.width)) continue;
      ctx.strokeStyle = colour(mark.colour);
      ctx.fillStyle = colour(mark.colour);
      ctx.lineWidth = (mark.bound ? 2 : 1) * scale;
      ctx.setLineDash(mark.bound ? [7 * scale, 4 * scale] : [2 * scale, 2 * scale]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const room = ctx.measureText(mark.label).width + 5 * scale;
      const left = x + room > bbox.left + bbox.width;
      ctx.textAlign = left ? 'right' : 'left';
      const y = bbox.top + bbox.height - (8 + 14 * (row++ % 5)) * scale;
      ctx.setLineDash([]);
      ctx.lineWidth = 4 * scale;
      ctx.strokeStyle = colour('card');
      ctx.strokeText(mark.label, x + (left ? -4 : 4) * scale, y);
      ctx.fillText(mark.label, x + (left ? -4 : 4) * scale, y);
    }
    ctx.restore();
  };
}

// A cumulative distribution. `curve`: {level, part} in ms; marks: [{label, at, colour, bound}].
export function curveChart(curve, options) {
  if (!curve) return empty(options, options.why);
  const level = curve.level.map((at) => Math.max(at, 1e-6));
  const marked = options.marks.filter((mark) => mark.at !== null);
  const ends = [level[0], level[level.length - 1],
                ...marked.filter((mark) => mark.bound).map((mark) => mark.at)];
  const low = Math.min(...ends) / 1.15;
  const high = Math.max(...ends) * 1.15;
  const wide = high / low > 30;
  const spoken = marked.map((mark) => `${mark.label} at ${tick(mark.at)}`).join(', ');
  const box = h('div', {class: 'plot', tabindex: '0', role: 'img',
                        'aria-label': `${options.title}, share of values up to a level: ${spoken}. Arrow keys move the cursor.`});
  place(box, (width) => new uPlot({
    width, height,
    scales: {x: {time: false, distr: 3, log: 10, range: [low, high]}, y: {range: [0, 1.02]}},
    cursor: {drag: {x: false, y: false}},
    axes: axes({
      xTick: tick, yTick: (part) => `${Math.round(100 * part)} %`, xSpace: 46,
      xSplits: (plot) => logSplits(low, high, wide, plot.width),
      xFilter: (_, splits) => splits,
    }),
    hooks: {draw: [marks(marked)]},
    series: [{label: 'up to', value: (_, at) => (at === null ? '–' : tick(at))},
             {...seriesOf({label: 'share', colour: options.colour, solid: true, fill: true,
                           format: percent}, 0), paths: uPlot.paths.stepped({align: 1})}],
  }, [[low, ...level, high], [0, ...curve.part, 1]]));
  const thin = Math.max(1, Math.floor(level.length / 100));
  return frame(options, box, dataTable(options.title, ['up to', 'share of values'],
      () => level.map((at, i) => [`${amount(at)} ms`, percent(curve.part[i])])
                .filter((_, i) => i % thin === 0 || i === level.length - 1)));
}

// Round levels: 1, 2, 5 of each decade where it spans many, evenly spaced ones where it does not.
function logSplits(low, high, wide, width) {
  const splits = [];
  if (wide) {
    const room = width / (Math.log10(high / low) * 46);  // labels that fit into a decade
    const digits = room >= 3.5 ? [1, 2, 5] : room >= 2.5 ? [1, 3] : [1];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power)
      for (const digit of digits) splits.push(digit * 10 ** power);
  } else {
    const rough = (high - low) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((digit) => digit * power >= rough) * power;
    for (let i = Math.ceil(low / step); i * step <= high; ++i) splits.push(Number((i * step).toPrecision(12)));
  }
  return splits.filter((at) => at >= low && at <= high);
}
