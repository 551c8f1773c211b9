// Why the figures may be believed: where they come from, what was replayed, and how to run it again.
import {legend, stackedBar} from './bars.js';
import {figure, h, section, table} from './dom.js';
import {amount, grouped, percent, seconds, unit} from './format.js';

const kinds = [
  {key: 'measured', label: 'measured', colour: 'o1', why: 'somebody ran it, and this is the point'},
  {key: 'interpolated', label: 'interpolated', colour: 'o2', why: 'between measured points of one table'},
  {key: 'transferred', label: 'transferred', colour: 'o3', why: 'from the nearest measured shape, format or GPU'},
  {key: 'datasheet', label: 'datasheet', colour: 'o4', why: 'published by the vendor'},
  {key: 'assumed', label: 'assumed', colour: 'o5', why: 'neither; the reason is kept beside the figure', hatch: true},
];

export function origins(data) {
  const {summary} = data;
  const bar = (label, shares) => {
    const parts = kinds.map((kind) => ({...kind, value: shares[kind.key]}));
    return parts.some((part) => part.value > 0) ? stackedBar(label, parts, 1)
                                                : h('span', {class: 'nothing'}, 'No busy time.');
  };
  return section('origins', 'Origins', 'Where the numbers come from',
      'Share of the busy GPU time by the origin of the figures it was computed from. A result is no better than its weakest share.',
      legend(kinds),
      h('div', {class: 'split'}, h('span', {class: 'what'}, 'whole run'), bar('Whole run', summary.provenance.time_by_origin),
        summary.pools.length > 1 && summary.pools.map((pool) =>
            [h('span', {class: 'what'}, pool.name), bar(pool.name, pool.time_by_origin)])),
      table('Origins', ['origin', 'meaning', 'share'], kinds.map((kind) => [
        kind.label, kind.why, figure(data, `provenance.time_by_origin.${kind.key}`, percent)]), {left: 2}));
}

export function trace(data) {
  const info = data.summary.trace;
  if (info === null) return null;
  const rows = [['recorded', 'as recorded'], ['scaled', 'as replayed']].map(([key, label]) => {
    const of = (path, format) => figure(data, `trace.${key}.${path}`, format);
    return [label, of('requests', grouped), of('sessions', grouped), of('span_s', seconds), of('cv', amount),
            of('dispersion_1s', amount), of('dispersion_10s', amount), of('dispersion_60s', amount),
            of('isl.p50', grouped), of('isl.p99', grouped), of('osl.p50', grouped), of('osl.p99', grouped), of('reuse', percent)];
  });
  const skipped = Object.entries(info.skipped);
  return section('trace', 'Trace', 'The trace, before and after scaling',
      `${info.format} format, time in ${info.time_unit}` +
      `${info.block_tokens ? `, prefix identity in blocks of ${info.block_tokens} tokens` : ', no prefix identity'}` +
      `${info.closed_loop ? ', closed-loop sessions' : ''}. A scaling that changes burstiness or reuse changes the answer.`,
      table('Trace', ['', 'requests', 'sessions', 'span', 'gap CV', 'var/mean 1 s', '10 s', '60 s',
                      'ISL p50', 'ISL p99', 'OSL p50', 'OSL p99', 'reuse'], rows, {wide: true}),
      skipped.length > 0
          ? h('p', {}, 'Left out: ', skipped.map(([reason, count]) => `${grouped(count)} ${reason}`).join('; '), '.')
          : h('p', {class: 'note'}, 'No row was left out.'));
}

export function scenario(data) {
  const {summary} = data;
  const {provenance} = summary;
  return section('scenario', 'Run it again', 'Run it again', 'The whole resolved scenario. Saved to a file and run, it gives the same bytes.',
      h('dl', {class: 'inline'}, h('dt', {}, 'version'), h('dd', {}, provenance.version),
        h('dt', {}, 'seed'), h('dd', {}, String(provenance.seed)), h('dt', {}, 'digest'), h('dd', {}, h('code', {}, summary.digest)),
        h('dt', {}, 'simulated'), h('dd', {}, figure(data, 'provenance.simulated_s', seconds)),
        h('dt', {}, 'events'), h('dd', {}, figure(data, 'provenance.events', grouped)),
        h('dt', {}, 'steps'), h('dd', {}, figure(data, 'provenance.steps', grouped))),
      h('details', {class: 'yaml'}, h('summary', {}, 'Resolved scenario (YAML)'), h('pre', {tabindex: '0'}, summary.scenario)));
}
