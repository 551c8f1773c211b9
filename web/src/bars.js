// Stacked bars in plain HTML: they print, zoom and are read aloud without a canvas. A part is
// told apart by colour, order and label, and by a hatch where it stands for "nothing".
import {h} from './dom.js';
import {percent} from './format.js';

// `parts`: [{label, value, text, colour, hatch}], widths relative to `whole` (default: their sum).
export function stackedBar(label, parts, whole) {
  const sum = whole ?? parts.reduce((total, part) => total + part.value, 0);
  const spoken = parts.map((part) => `${part.label} ${part.text ?? percent(part.value)}`).join(', ');
  return h('div', {class: 'bar', role: 'img', 'aria-label': `${label}: ${spoken}`},
           parts.filter((part) => part.value > 0).map((part) => {
             const share = sum > 0 ? part.value / sum : 0;
             return h('span', {class: part.hatch ? 'part hatch' : 'part',
                               style: `width:${100 * share}%;--part:var(--${part.colour})`,
                               title: `${part.label}: ${part.text ?? percent(part.value)}`},
                      share > 0.045 ? h('b', {}, part.text ?? percent(part.value)) : null);
           }));
}

export function legend(parts) {
  return h('ul', {class: 'legend', 'aria-hidden': 'true'}, parts.map((part) =>
      h('li', {}, h('i', {class: part.hatch ? 'hatch' : null, style: `--part:var(--${part.colour})`}),
        part.label)));
}

// A level against a target near 1: the scale shows four times the misses that are allowed.
export function bullet(label, level, target, good) {
  const low = target < 1 ? Math.max(0, 1 - 4 * (1 - target)) : 0.9;
  const place = (part) => `${100 * Math.max(0, (part - low) / (1 - low))}%`;
  return h('div', {class: `bullet ${good ? 'good' : 'bad'}`, role: 'img',
                   title: `scale from ${percent(low)} to 100 %`,
                   'aria-label': `${label}: ${percent(level)} of ${percent(target)} asked for`},
           h('span', {class: 'level', style: `width:${place(level)}`}),
           h('span', {class: 'target', style: `left:${place(target)}`}));
}
