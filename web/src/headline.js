// The top of the page: what is asked first, answered in one sentence each.
import {figure, h} from './dom.js';
import {amount, billions, bound as asBound, grouped, milliseconds, percent, seconds, unit} from './format.js';
import {toggleTheme} from './theme.js';

export const hasBound = (slo) => slo.ttft_ms !== null || slo.tpot_ms !== null || slo.e2el_ms !== null;

export function bounds(slo) {
  return [['TTFT', slo.ttft_ms], ['TPOT', slo.tpot_ms], ['E2E', slo.e2el_ms]]
      .filter(([, bound]) => bound !== null)
      .map(([name, bound]) => `${name} ≤ ${asBound(bound)}`.replaceAll(' ', '\u00a0')).join(', ');
}

export function masthead(data) {
  const {summary} = data;
  const {cluster, provenance} = summary;
  return h('header', {class: 'masthead'},
           h('div', {},
             h('p', {class: 'brand'}, 'Racktwin', h('span', {}, ` ${provenance.version} · predicted, not measured`)),
             h('h1', {}, summary.scenario_name),
             h('p', {class: 'sub'},
               `${cluster.model} (${billions(cluster.model_parameters)} parameters, ` +
               `${billions(cluster.model_active_parameters)} active) on ` +
               `${grouped(cluster.gpus_used)} of ${grouped(cluster.gpus)} ${cluster.gpu} GPUs, ` +
               `${grouped(cluster.racks)} ${cluster.racks === 1 ? 'rack' : 'racks'} of ${cluster.system} · ` +
               `${seconds(provenance.simulated_s)} simulated`)),
           h('button', {type: 'button', class: 'theme', onclick: toggleTheme}, 'Light / dark'));
}

export function notices(data) {
  const {summary} = data;
  const {warnings} = summary;
  const list = h('ul', {}, warnings.map((text) => h('li', {}, text)));
  return [
    summary.partial && h('div', {class: 'notice stop', role: 'note'},
                         h('strong', {}, 'Partial run. '),
                         `${summary.partial_reason}. Every figure is of what had happened by then.`),
    warnings.length > 0 && h('div', {class: 'notice', role: 'note'},
        warnings.length <= 4
            ? [h('strong', {}, warnings.length === 1 ? '1 warning' : `${warnings.length} warnings`), list]
            : h('details', {}, h('summary', {}, h('strong', {}, `${warnings.length} warnings`)), list)),
  ];
}

function delivers(data) {
  const {summary} = data;
  if (summary.output_throughput === null)
    return h('p', {}, `Nothing: ${grouped(summary.requests.arrived)} requests arrived, none completed.`);
  if (summary.steady !== null)
    return h('p', {}, figure(data, 'steady.output_throughput', unit('output tok/s')), ' (',
             figure(data, 'steady.output_throughput_per_gpu', unit('tok/s')), ' per GPU in use) and ',
             figure(data, 'steady.request_throughput', unit('requests/s')), ' while load is on it (',
             figure(data, 'steady.from_s', seconds), ' to ', figure(data, 'steady.to_s', seconds), '). ',
             figure(data, 'completed', grouped), ' of ', figure(data, 'requests.arrived', grouped),
             ' requests completed.');
  return h('p', {}, figure(data, 'output_throughput', unit('output tok/s')), ' (',
           figure(data, 'output_throughput_per_gpu', unit('tok/s')), ' per GPU in use) from ',
           figure(data, 'request_throughput', unit('requests/s')), '; ',
           figure(data, 'completed', grouped), ' of ', figure(data, 'requests.arrived', grouped),
           ' requests completed.');
}

function verdict(data) {
  const judged = data.summary.slos.map((slo, i) => ({slo, i})).filter(({slo}) => hasBound(slo));
  if (judged.length === 0) return {tone: 'plain', word: 'Not asked', text: h('p', {}, 'The scenario sets no bound on latency.')};
  const ended = judged.filter(({slo}) => slo.met !== null);
  const missed = ended.filter(({slo}) => !slo.met);
  const shown = missed.length ? missed : ended;
  if (ended.length === 0) return {tone: 'plain', word: 'Unknown', text: h('p', {}, 'No request with a bound has ended.')};
  const text = shown.slice(0, 2).map(({slo, i}) => h('p', {},
      judged.length > 1 && h('b', {}, `${slo.name}: `), figure(data, `slos.${i}.reached`, percent),
      ' of the requests kept ', bounds(slo), '; ', percent(slo.attainment), ' asked.'));
  if (shown.length > 2) text.push(h('p', {}, `And ${shown.length - 2} more below.`));
  const word = judged.length === 1 ? 'Missed' : `Missed by ${missed.length} of ${judged.length} classes`;
  return missed.length ? {tone: 'bad', word, text} : {tone: 'good', word: 'Met', text};
}

export function answers(data) {
  const slo = verdict(data);
  const {bottleneck} = data.summary;
  const card = (question, tone, word, content) =>
      h('div', {class: `answer ${tone}`}, h('h2', {}, question), word && h('p', {class: 'word'}, word), content);
  return h('section', {class: 'answers', id: 'answers', 'aria-label': 'In short'},
           card('What does it deliver?', 'plain', null, delivers(data)),
           card('Is the objective met?', slo.tone, slo.word, slo.text),
           card('What limits it?', 'plain', null,
                h('p', {}, bottleneck.sentence || 'Nothing was found to limit this run.')));
}

export function tiles(data) {
  const tile = (label, key, format, second) => h('div', {class: 'tile'},
      h('dt', {}, label), h('dd', {}, figure(data, key, format)),
      second && h('dd', {class: 'second'}, second));
  const base = data.summary.steady === null ? '' : 'steady.';
  return h('dl', {class: 'tiles'},
           tile(base ? 'Output under load' : 'Output', `${base}output_throughput`, unit('tok/s'),
                [figure(data, `${base}output_throughput_per_gpu`, amount), ' per GPU']),
           tile(base ? 'Goodput under load' : 'Goodput', `${base}request_goodput`, unit('req/s'),
                ['of ', figure(data, `${base}request_throughput`, unit('req/s'))]),
           tile('TTFT p50', 'median_ttft_ms', milliseconds, ['p99 ', figure(data, 'p99_ttft_ms', milliseconds)]),
           tile('TPOT p50', 'median_tpot_ms', milliseconds, ['p99 ', figure(data, 'p99_tpot_ms', milliseconds)]),
           tile('E2E p50', 'median_e2el_ms', milliseconds, ['p99 ', figure(data, 'p99_e2el_ms', milliseconds)]),
           tile('In flight', 'mean_concurrent_requests', amount, ['peak ', figure(data, 'max_concurrent_requests', grouped)]));
}
