// What the users of the cluster see: load, throughput, latency, objectives.
import {bullet} from './bars.js';
import {curveChart, timeChart} from './charts.js';
import {figure, h, section, table} from './dom.js';
import {amount, bound as asBound, grouped, milliseconds, percent, short, tick, unit} from './format.js';
import {bounds, hasBound} from './headline.js';

export function load(data) {
  const {series, summary} = data;
  const time = series.time_s;
  const perSecond = unit('tok/s');
  const every = 'requests per second';
  const note = series.merged > 1 ? `Each point is the mean of ${series.merged} intervals.` : null;
  const reasons = Object.entries(summary.requests.shed_reasons)
      .map(([reason, count]) => `${grouped(count)} ${reason}`).join(', ');
  return section('load', 'Load', 'Load and throughput', null,
      h('p', {class: 'lead'},
        figure(data, 'requests.arrived', grouped), ' arrived = ',
        figure(data, 'requests.completed', grouped), ' completed + ',
        figure(data, 'requests.shed', grouped), ' shed', reasons && ` (${reasons})`, ' + ',
        figure(data, 'requests.unfinished', grouped), ' unfinished. ',
        summary.steady === null ? 'Input ' : 'From the end of the warm-up to the last completion, emptying included: input ', figure(data, 'input_throughput', perSecond), ', output ',
        figure(data, 'output_throughput', perSecond), ', together ',
        figure(data, 'total_token_throughput', perSecond), '.'),
      summary.steady !== null && h('p', {class: 'note'}, 'Dashed uprights: where the load begins and ends.'),
      h('div', {class: 'charts'},
        timeChart(time, {title: 'Token throughput', unit: 'tok/s', note, series: [
          {label: 'output', values: series.output_tokens_per_s, colour: 'c1', format: perSecond},
          {label: 'input', values: series.input_tokens_per_s, colour: 'c2', format: perSecond}]}),
        timeChart(time, {title: 'Arrivals and completions', unit: every, note, series: [
          {label: 'arrivals', values: series.arrivals, colour: 'c3', format: amount},
          {label: 'completions', values: series.completions, colour: 'c4', format: amount}]})),
      h('div', {class: 'charts three'},
        timeChart(time, {title: 'Requests in the system', note, series: [
          {label: 'in flight', values: series.concurrency, colour: 'c1', format: grouped, fill: true}]}),
        timeChart(time, {title: 'Time to first token', note, yTick: tick, series: [
          {label: 'p50', values: series.ttft_p50_ms, colour: 'c1', format: milliseconds},
          {label: 'p99', values: series.ttft_p99_ms, colour: 'c4', format: milliseconds}]}),
        timeChart(time, {title: 'Time per output token', note, yTick: tick, series: [
          {label: 'p50', values: series.tpot_p50_ms, colour: 'c3', format: milliseconds}]})));
}

const kinds = [
  ['ttft', 'TTFT', 'Time to first token', 'c1', 'ttft_ms'],
  ['tpot', 'TPOT', 'Time per output token', 'c3', 'tpot_ms'],
  ['itl', 'ITL', 'Inter-token latency', 'c5', null],
  ['e2el', 'E2E', 'End-to-end latency', 'c2', 'e2el_ms'],
];

export function latency(data) {
  const {summary, curves} = data;
  const charts = kinds.map(([key, , title, colour, bound]) => {
    const marks = [['p50', 'median'], ['p90', 'p90'], ['p99', 'p99']].map(([label, name]) => {
      const at = summary[`${name}_${key}_ms`];
      return {label: `${label} ${at === null ? '' : milliseconds(at)}`, at, colour: 'ink-soft'};
    });
    for (const slo of summary.slos)
      if (bound && slo[bound] !== null)
        marks.push({label: `SLO ${summary.slos.length > 1 ? `${slo.name} ` : ''}${asBound(slo[bound])}`,
                    at: slo[bound], colour: 'bad', bound: true});
    return curveChart(curves[key], {title, unit: '(share of values up to a level)', colour, marks,
                                    why: 'No value: no request had one (a one-token answer has no time between tokens).'});
  });
  const figures = ['mean', 'median', 'p90', 'p95', 'p99', 'max'];
  const rows = kinds.map(([key, short, title]) => [
    h('span', {}, h('abbr', {title}, short)), ...figures.map((name) => figure(data, `${name}_${key}_ms`, milliseconds))]);
  const inner = ['mean', 'p50', 'p90', 'p95', 'p99', 'max'];
  rows.push(['Waiting for the first step', ...inner.map((name) => figure(data, `queue_time.${name}_ms`, milliseconds))]);
  rows.push(['Between deliveries to the client', ...inner.map((name) => figure(data, `chunk_latency.${name}_ms`, milliseconds))]);
  for (const [key, label] of [['input_length', 'Input length'], ['output_length', 'Output length']])
    rows.push([label, ...inner.map((name) => figure(data, `${key}.${name}`, unit('tok')))]);
  return section('latency', 'Latency', 'Latency', 'TTFT runs from arrival to the first token, with queueing, hand-over and the wait for a decode slot. ' +
      'TPOT is one value per request, ITL every gap between two tokens.',
      h('div', {class: 'charts'}, charts),
      table('Latency figures', ['', 'mean', 'p50', 'p90', 'p95', 'p99', 'max'], rows, {wide: true}));
}

export function objectives(data) {
  const {slos} = data.summary;
  if (!slos.some(hasBound)) return null;
  const rows = slos.map((slo, i) => {
    const count = (key) => figure(data, `slos.${i}.${key}`, grouped);
    const judged = slo.met !== null;
    return [slo.name, bounds(slo) || 'no bound',
            judged ? bullet(slo.name, slo.reached, slo.attainment, slo.met) : '–',
            [figure(data, `slos.${i}.reached`, percent), ` of ${percent(slo.attainment)}`],
            judged ? h('span', {class: slo.met ? 'pill good' : 'pill bad'}, slo.met ? '✓ met' : '✗ missed') : '–',
            count('requests'), count('good'), count('missed_ttft'), count('missed_tpot'),
            count('missed_e2el'), count('not_served')];
  });
  return section('objectives', 'Objectives', 'Goodput against the objectives', null,
      h('p', {class: 'lead'}, 'Goodput: ', figure(data, 'request_goodput', unit('requests/s')), ' of ',
        figure(data, 'request_throughput', unit('requests/s')), ' and ',
        figure(data, 'token_goodput', unit('output tok/s')), ' of ',
        figure(data, 'output_throughput', unit('output tok/s')),
        ' kept every bound of their class. A request may miss several bounds.'),
      table('Objectives by class', ['class', 'bounds', '', 'reached of asked', 'verdict', 'requests', 'good',
                                    'missed TTFT', 'missed TPOT', 'missed E2E', 'not served'], rows, {wide: true, left: 3}));
}
