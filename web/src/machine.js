// What the people who run the cluster look at: pools, where GPU time goes, racks, transfers.
import {legend, stackedBar} from './bars.js';
import {timeChart} from './charts.js';
import {dataTable, figure, h, section, table} from './dom.js';
import {amount, gigabytes, grouped, milliseconds, percent, shape, unit} from './format.js';
import {rackMap} from './rackmap.js';

const spent = [
  {key: 'compute', label: 'compute', colour: 'compute'},
  {key: 'memory', label: 'HBM', colour: 'memory'},
  {key: 'communication', label: 'network', colour: 'network'},
  {key: 'overhead', label: 'host and launch', colour: 'overhead'},
  {key: 'idle', label: 'idle', colour: 'idle', hatch: true},
];

const roleTag = (role) => h('span', {class: `role ${role}`}, role);

export function gpuTime(data) {
  const {pools} = data.summary;
  const slowest = Math.max(...pools.map((pool) => stepTotal(pool)));
  return section('gpu-time', 'GPU time', 'Where GPU time goes',
      'Each moment of a step counts as what it waited for: arithmetic, HBM, the network, or the host. The second bar is the mean step, drawn to one scale for all pools.',
      legend(spent),
      pools.map((pool, i) => h('div', {class: 'split'},
          h('h3', {}, pool.name, roleTag(pool.role)),
          h('span', {class: 'what'}, 'of all GPU time'),
          stackedBar(`${pool.name}, GPU time`, spent.map((part) => ({...part, value: pool.time[part.key]})), 1),
          h('span', {class: 'what'}, 'mean step ', figure(data, `pools.${i}.time_per_step_ms.total`, milliseconds)),
          stepTotal(pool) > 0
              ? stackedBar(`${pool.name}, mean step`, spent.filter((part) => part.key !== 'idle').map((part) => ({
                  ...part, value: pool.time_per_step_ms[part.key], text: milliseconds(pool.time_per_step_ms[part.key])})), slowest)
              : h('span', {class: 'nothing'}, 'No step ran.'))),
      table('GPU time by pool', ['pool', ...spent.map((part) => part.label), 'steps', 'sequences per step', 'tokens per step'],
            pools.map((pool, i) => [pool.name, ...spent.map((part) => figure(data, `pools.${i}.time.${part.key}`, percent)),
                                    figure(data, `pools.${i}.steps`, grouped),
                                    figure(data, `pools.${i}.sequences_per_step`, amount),
                                    figure(data, `pools.${i}.tokens_per_step`, amount)]), {wide: true}),
      pools.map((pool, i) => operators(data, pool, i)));
}

const stepTotal = (pool) => pool.time_per_step_ms.total ?? 0;

const kindColours = {gemm: 'compute', expert_gemm: 'c1', attention_prefill: 'memory', attention_decode: 'memory',
                     elementwise: 'overhead', collective: 'network'};

const operatorHeads = ['operator', 'kind', '', 'time', 'layers', 'format', 'utilisation', 'origin'];

// The ones that take longest at once; all, in the order of the step, on demand.
function operators(data, pool, i) {
  const rows = pool.typical_step;
  if (rows.length === 0) return null;
  const longest = Math.max(...rows.map((row) => row.total_ms));
  const cells = (row, j) => [
    row.name, row.kind.replace('_', ' '),
    h('span', {class: 'spark', 'aria-hidden': 'true'},
      h('i', {style: `width:${100 * row.total_ms / longest}%;--part:var(--${kindColours[row.kind]})`})),
    figure(data, `pools.${i}.typical_step.${j}.total_ms`, milliseconds), grouped(row.layers), row.format,
    percent(row.utilisation), h('span', {class: `origin ${row.origin}`, title: row.source}, row.origin)];
  const shown = 8;
  const largest = rows.map((row, j) => ({row, j})).sort((a, b) => b.row.total_ms - a.row.total_ms).slice(0, shown);
  return h('div', {class: 'operators'},
      h('h3', {}, `A typical step of ${pool.name}`, h('span', {class: 'sub'},
          rows.length > shown ? `the ${shown} longest of ${rows.length} operators` : 'operator by operator')),
      table(`Longest operators of ${pool.name}`, operatorHeads, largest.map(({row, j}) => cells(row, j)),
            {wide: true, left: 3, class: 'tight'}),
      rows.length > shown && dataTable(`All operators of ${pool.name}`, operatorHeads, () => rows.map(cells),
                                       {label: 'All operators, in the order of the step', left: 3, class: 'tight'}));
}

function memoryBar(pool) {
  const plan = pool.memory_per_gpu;
  const parts = [
    {label: 'weights', value: plan.weights_gb, colour: 'c1'},
    {label: 'activations', value: plan.activations_gb, colour: 'c3'},
    {label: 'reserved', value: plan.reserved_gb, colour: 'overhead'},
    {label: 'KV cache', value: plan.kv_gb, colour: 'c2'},
  ].map((part) => ({...part, text: gigabytes(part.value)}));
  return h('div', {class: 'memory'}, h('span', {class: 'what'}, `HBM of a GPU, ${gigabytes(plan.hbm_gb)}`),
           stackedBar(`HBM of a GPU of ${pool.name}`, parts, plan.hbm_gb || undefined), legend(parts));
}

function onePool(data, pool, i) {
  const series = data.series.pools[i];
  const time = data.series.time_s;
  const of = (key, format) => figure(data, `pools.${i}.${key}`, format);
  const fact = (name, ...value) => [h('dt', {}, name), h('dd', {}, value)];
  const tiers = Object.entries(pool.reused_by_tier).filter(([, tokens]) => tokens > 0).map(([tier, tokens]) => `${tier} ${grouped(tokens)}`).join(', ');
  const note = data.series.merged > 1 ? `Each point is the mean of ${data.series.merged} intervals.` : null;
  return h('article', {class: 'pool', 'aria-label': `Pool ${pool.name}`},
      h('h3', {}, pool.name, roleTag(pool.role), h('span', {class: 'sub'},
          `${grouped(pool.replicas)} × ${shape(pool.parallelism)} = ${grouped(pool.gpus)} GPUs · ${pool.engine}`)),
      h('div', {class: 'facts'},
        h('dl', {}, fact('KV cache used', of('kv_used_mean', percent), ', peak ', of('kv_used_peak', percent)),
          fact('KV room', of('kv_blocks', grouped), ` blocks of ${pool.block_tokens} tokens per replica`),
          fact('Prompt tokens reused', of('reuse', percent), tiers && ` (${tiers} tokens)`)),
        h('dl', {}, fact('Waiting', of('queue_mean', amount), ', peak ', of('queue_peak', grouped)),
          fact('Preempted', of('preemptions', grouped), ', restarted ', of('restarts', grouped)),
          fact('Steps', of('steps', grouped), ', mixed ', of('mixed_steps', grouped)))),
      memoryBar(pool),
      series && h('div', {class: 'charts three'},
        timeChart(time, {title: 'Queue', unit: 'requests', note, series: [
          {label: 'running', values: series.running, colour: 'c1', format: amount},
          {label: 'waiting', values: series.waiting, colour: 'c4', format: amount}]}),
        timeChart(time, {title: 'KV cache', note, top: 1, yTick: (part) => `${Math.round(100 * part)} %`, series: [
          {label: 'used', values: series.kv_used, colour: 'c2', format: percent},
          {label: 'reuse', values: series.reuse, colour: 'c3', format: percent}]}),
        timeChart(time, {title: 'Busy', note, top: 1, yTick: (part) => `${Math.round(100 * part)} %`, series: [
          {label: 'busy', values: series.busy, colour: 'c5', format: percent, fill: true}]})));
}

export function pools(data) {
  return section('pools', 'Pools', 'Pools', null, data.summary.pools.map((pool, i) => onePool(data, pool, i)));
}

export function racks(data) {
  const {cluster} = data.summary;
  return section('racks', 'Racks', 'Racks',
      `${grouped(cluster.racks)} ${cluster.racks === 1 ? 'rack' : 'racks'}, ${grouped(cluster.gpus)} GPUs, ${grouped(cluster.gpus_used)} in use. Every cell is a GPU; the bar over a rack says which pool it serves.`,
      h('ul', {class: 'legend'}, ['prefill', 'decode', 'mixed'].map((role) =>
          h('li', {}, h('i', {style: `--part:var(--${role})`}), role))),
      rackMap(data));
}

export function transfers(data) {
  const moved = data.summary.transfers;
  if (moved === null) return null;
  const names = ['mean_ms', 'p50_ms', 'p90_ms', 'p95_ms', 'p99_ms', 'max_ms'];
  const row = (label, key) => [label, ...names.map((name) => figure(data, `transfers.${key}.${name}`, milliseconds))];
  return section('transfers', 'Transfers', 'KV transfers, prefill to decode', null,
      h('p', {class: 'lead'}, figure(data, 'transfers.count', grouped), ' transfers of ',
        figure(data, 'transfers.gb', gigabytes), ' in all; ', figure(data, 'transfers.inside_domain', percent),
        ' stayed inside one NVLink domain. Both rows are part of TTFT.'),
      table('Transfers', ['', 'mean', 'p50', 'p90', 'p95', 'p99', 'max'],
            [row('Duration', 'duration'), row('Wait for a decode slot', 'wait_for_slot')], {wide: true}));
}
