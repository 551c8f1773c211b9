// The map of the cluster: every rack, every GPU a cell, coloured by how busy it was. Own canvas:
// 4,608 cells draw in a few milliseconds. A pointer reads single GPUs; so do the arrow keys
// (racks first, Enter goes into a rack, Escape out of it); a table stands behind it.
import {dataTable, figure, h} from './dom.js';
import {grouped, percent} from './format.js';
import {colour, isDark, onPaper, onThemeChange} from './theme.js';

// Sequential, one hue, even in lightness: it reads the same for every kind of colour vision and
// in grey print. Light pages darken with use, dark pages brighten.
const ramps = {
  light: ['#edf3f9', '#cfe0ef', '#9fc6e3', '#64a5d1', '#3480b8', '#145b96', '#08366b'],
  dark: ['#182430', '#1d3a55', '#22557f', '#2f76ab', '#4e9ad0', '#85c0ea', '#cdeaff'],
};

function mix(from, to, part) {
  const channel = (text, at) => parseInt(text.slice(at, at + 2), 16);
  return [1, 3, 5].map((at) => Math.round(channel(from, at) * (1 - part) + channel(to, at) * part));
}

export function heat(part) {
  const ramp = ramps[isDark() ? 'dark' : 'light'];
  const at = Math.min(1, Math.max(0, part)) * (ramp.length - 1);
  const index = Math.min(ramp.length - 2, Math.floor(at));
  return `rgb(${mix(ramp[index], ramp[index + 1], at - index).join(',')})`;
}

// A rack of 72 stands as it is built: 18 trays of 4 GPUs; others in rows of 8, else 4.
function cellsAcross(gpus) {
  if (gpus % 72 === 0) return 4;
  return gpus % 8 === 0 ? 8 : 4;
}

class Layout {
  constructor(width, racks) {
    const most = Math.max(1, ...racks.map((rack) => rack.gpus));
    this.across = cellsAcross(most);
    this.down = Math.ceil(most / this.across);
    this.columns = Math.max(1, Math.min(racks.length, 16, Math.floor(width / 42)));
    this.rows = Math.ceil(racks.length / this.columns);
    this.pitch = Math.min(width / this.columns, 150);
    this.gap = this.pitch > 60 ? 10 : 6;
    this.cellWidth = (this.pitch - this.gap) / this.across;
    this.cellHeight = Math.max(4, Math.min(this.down > 9 ? 5 : 10, this.cellWidth));
    this.head = 18;
    this.rackHeight = this.head + this.down * this.cellHeight + 10;
    this.height = this.rows * this.rackHeight;
  }
  corner(index) {
    return {x: (index % this.columns) * this.pitch + this.gap / 2,
            y: Math.floor(index / this.columns) * this.rackHeight};
  }
  cell(index, gpu) {
    const {x, y} = this.corner(index);
    return {x: x + (gpu % this.across) * this.cellWidth,
            y: y + this.head + Math.floor(gpu / this.across) * this.cellHeight};
  }
  at(x, y) {
    const column = Math.floor(x / this.pitch);
    const row = Math.floor(y / this.rackHeight);
    if (column < 0 || column >= this.columns || row < 0) return null;
    const index = row * this.columns + column;
    const {x: left, y: top} = this.corner(index);
    const across = Math.floor((x - left) / this.cellWidth);
    const down = Math.floor((y - top - this.head) / this.cellHeight);
    const inside = across >= 0 && across < this.across && down >= 0 && down < this.down;
    return {index, gpu: inside ? down * this.across + across : null};
  }
}

// The colours of the pools that a rack serves, side by side: its label joins their names by "+".
const roleColours = (label, pools) => label.split('+').map(
    (name) => pools.find((pool) => pool.name === name)?.role ?? 'ink-soft');

export function rackMap(data) {
  const racks = data.summary.racks;
  const gpus = data.gpu_utilisation;
  if (racks.length === 0) return h('p', {class: 'nothing'}, 'No racks in this result.');

  const canvas = h('canvas', {'aria-hidden': 'true'});
  const tip = h('div', {class: 'tip', hidden: true});
  const spoken = h('div', {class: 'unseen', role: 'status', 'aria-live': 'polite'});
  const box = h('div', {class: 'map', tabindex: '0', role: 'application',
                        'aria-label': `Map of ${racks.length} racks. Arrow keys choose a rack, Enter goes into it, Escape leaves it.`},
                canvas, tip, spoken);
  let layout = null;
  let chosen = null;  // {index, gpu or null}

  const describe = ({index, gpu}) => {
    const rack = racks[index];
    const whole = `Rack ${rack.rack} (${rack.label}): ${percent(rack.utilisation)} busy, ` +
        `${grouped(rack.gpus_used)} of ${grouped(rack.gpus)} GPUs in use`;
    if (gpu === null || gpu >= gpus[index].length) return whole;
    return `Rack ${rack.rack}, GPU ${gpu} (${layout.across === 4 ? 'tray' : 'node'} ${Math.floor(gpu / layout.across)}): ` +
        `${percent(gpus[index][gpu])} busy. ${whole}`;
  };

  const draw = () => {
    const width = onPaper() ? 690 : Math.max(260, box.clientWidth);
    layout = new Layout(width, racks);
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(layout.height * scale);
    canvas.style.height = `${layout.height}px`;
    const context = canvas.getContext('2d');
    context.scale(scale, scale);
    context.textBaseline = 'middle';
    racks.forEach((rack, index) => drawRack(context, layout, rack, gpus[index], index, data.summary.pools));
    if (chosen) outline(context, layout, chosen);
  };

  const choose = (place, point) => {
    chosen = place && place.index < racks.length ? place : null;
    draw();
    tip.hidden = !chosen;
    if (!chosen) return;
    tip.textContent = describe(chosen);
    const corner = point ?? layout.cell(chosen.index, chosen.gpu ?? 0);
    tip.style.left = `${Math.min(corner.x + 14, box.clientWidth - 250)}px`;
    tip.style.top = `${corner.y + 18}px`;
  };

  canvas.addEventListener('pointermove', (event) => {
    const x = event.offsetX;
    const y = event.offsetY;
    choose(layout.at(x, y), {x, y});
  });
  canvas.addEventListener('pointerleave', () => choose(null));
  box.addEventListener('blur', () => choose(null));
  box.addEventListener('keydown', (event) => {
    if (!layout) draw();
    const next = steered(event.key, chosen, layout, racks);
    if (next === undefined) return;
    event.preventDefault();
    choose(next);
    spoken.textContent = chosen ? describe(chosen) : '';
  });
  new ResizeObserver(() => requestAnimationFrame(draw)).observe(box);
  onThemeChange(draw);

  const scaleBar = h('div', {class: 'heat', 'aria-hidden': 'true'}, '0 % busy', h('canvas', {}), '100 %');
  const paint = () => paintScale(scaleBar.querySelector('canvas'));
  onThemeChange(paint);
  paint();
  return h('div', {}, scaleBar, box,
           dataTable('Racks', ['rack', 'serves', 'GPUs', 'in use', 'busy'],
                     () => racks.map((rack, i) => [
                       rack.rack, rack.label, grouped(rack.gpus), grouped(rack.gpus_used),
                       figure(data, `racks.${i}.utilisation`, percent)])));
}

function drawRack(context, layout, rack, gpus, index, pools) {
  const {x, y} = layout.corner(index);
  const width = layout.across * layout.cellWidth;
  roleColours(rack.label, pools).forEach((role, i, all) => {
    context.fillStyle = colour(role);
    context.fillRect(x + i * width / all.length, y + 14, width / all.length, 2.5);
  });
  context.fillStyle = colour('ink-soft');
  context.font = '10px system-ui, sans-serif';
  const number = String(rack.rack).padStart(2, '0');
  const label = rack.label.includes('+') ? 'both' : rack.label;
  context.fillText(layout.pitch > 62 ? `${number} ${label}` : number, x, y + 7, width);
  for (let gpu = 0; gpu < rack.gpus; ++gpu) {
    const cell = layout.cell(index, gpu);
    if (rack.gpus_used === 0) {
      context.strokeStyle = colour('grid');
      context.lineWidth = 0.7;
      context.strokeRect(cell.x + 0.5, cell.y + 0.5, layout.cellWidth - 1.5, layout.cellHeight - 1.2);
      continue;
    }
    context.fillStyle = heat(gpus[gpu] ?? 0);
    context.fillRect(cell.x, cell.y, layout.cellWidth - 0.8, layout.cellHeight - 0.8);
  }
}

function outline(context, layout, {index, gpu}) {
  const corner = gpu === null ? layout.corner(index) : layout.cell(index, gpu);
  context.strokeStyle = colour('accent');
  context.lineWidth = 2;
  if (gpu === null)
    context.strokeRect(corner.x - 2, corner.y + 12, layout.across * layout.cellWidth + 3,
                       layout.rackHeight - 19);
  else
    context.strokeRect(corner.x - 1, corner.y - 1, layout.cellWidth + 1, layout.cellHeight + 1);
}

// Where a key leads from `chosen`; undefined for a key that means nothing here.
function steered(key, chosen, layout, racks) {
  const start = {index: 0, gpu: null};
  if (key === 'Escape') return chosen && chosen.gpu !== null ? {...chosen, gpu: null} : null;
  if (key === 'Enter') return chosen ? {...chosen, gpu: 0} : start;
  const inside = chosen && chosen.gpu !== null;
  const wide = inside ? layout.across : layout.columns;
  const moves = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -wide, ArrowDown: wide};
  if (!(key in moves)) return undefined;
  if (!chosen) return start;
  const count = inside ? racks[chosen.index].gpus : racks.length;
  const at = (inside ? chosen.gpu : chosen.index) + moves[key];
  if (at < 0 || at >= count) return chosen;
  return inside ? {...chosen, gpu: at} : {index: at, gpu: null};
}

function paintScale(canvas) {
  canvas.width = 160;
  canvas.height = 10;
  const context = canvas.getContext('2d');
  for (let x = 0; x < 160; ++x) {
    context.fillStyle = heat(x / 159);
    context.fillRect(x, 0, 1, 10);
  }
}
