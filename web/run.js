// A run report: verdict first, then what was counted, how fast, how late, and on what.
import { chart, chartGrid, extent } from './chart.js';
import { commandNote, commandOf } from './command.js';
import { append, el, facts, figure, fold, section, star, table } from './dom.js';
import {
  formatBytes, formatCount, formatCountTick, formatLatency, formatLatencyIn, formatLatencyTick, formatNumber, formatRate,
  formatSeconds, formatShare, formatTime, isNumber, latencyUnit, words,
} from './format.js';
import { genericSection } from './generic.js';
import { banner, environmentSection, head, limitationsSection, objectives, tiles, workloadSection } from './parts.js';
import { LISTED, clockTroubles, percentileChart, readClocks } from './percentiles.js';

const RUN_KEYS = [
  'schema_version', 'run_id', 'muster', 'started_at', 'measure_started_at', 'measure_ended_at', 'verdict', 'workload',
  'target', 'environment', 'phases', 'has_acks', 'connections', 'publishes', 'deliveries', 'server_counters', 'fan_out',
  'rates', 'calibration', 'bytes', 'latency', 'warmup', 'series', 'observed', 'storm', 'backlog', 'memory', 'derived',
  'workers', 'comparability', 'limitations', 'document',
];

function tone(r) {
  if (r.verdict.result !== 'valid') return 'bad';
  if (r.verdict.objectives.some(({ held }) => held === false)) return 'bad';
  return r.deliveries.lost > 0 ? 'warn' : 'good';
}

function headline(r) {
  if (r.verdict.result !== 'valid') return 'Invalid: these figures do not stand';
  const broken = r.verdict.objectives.filter(({ held }) => held === false).length;
  const lost = r.deliveries.lost > 0 ? ', and the server lost deliveries' : '';
  return `Valid${lost}${broken ? `, but ${broken === 1 ? 'an objective is' : `${broken} objectives are`} broken` : ''}`;
}

function findings({ deliveries: d }) {
  return [
    d.lost > 0 && `Lost: ${formatCount(d.lost)} of ${formatCount(d.expected)} expected deliveries (${formatShare(d.lost / d.expected)}).`,
    d.unacked_delivered > 0 && `${formatCount(d.unacked_delivered)} deliveries of publishes whose ACK failed.`,
    d.recovered > 0 && `${formatCount(d.recovered)} deliveries were pulled by recipients that were away when they were sent.`,
  ].filter(Boolean);
}

const isFew = (clock, key) => clock.few_samples?.includes(key) ?? false;
const fewMark = (clock, key) => (isFew(clock, key) ? '*' : '');

function clockTile(r, name, key, label) {
  const clock = r.latency[name];
  if (!clock || clock.count === 0) return null;
  return [label, `latency.${name}.${key}`, `${formatLatency(clock[key])}${fewMark(clock, key)}`];
}

function keyFigures(r) {
  const traffic = r.workload.topology !== 'hold';
  return tiles([
    traffic && r.has_acks && ['acks per second', 'rates.acks_per_second', formatRate(r.rates.acks_per_second),
      isNumber(r.rates.asked_publishes_per_second) && `${formatRate(r.rates.asked_publishes_per_second)} asked`],
    traffic && ['deliveries per second', 'rates.deliveries_per_second', formatRate(r.rates.deliveries_per_second)],
    traffic && ['lost deliveries', 'deliveries.lost', formatCount(r.deliveries.lost), `of ${formatCount(r.deliveries.expected)} expected`],
    traffic && ['fan-out', 'fan_out', formatNumber(r.fan_out), `deliveries per ${r.has_acks ? 'acked' : 'attempted'} publish`],
    !traffic && ['connections held', 'connections.established', formatCount(r.connections.established), `of ${formatCount(r.connections.attempted)}`],
    !traffic && ['connections per second', 'rates.connections_per_second', formatRate(r.rates.connections_per_second)],
    !traffic && clockTile(r, 'connect', 'p50_ns', 'connect p50'), !traffic && clockTile(r, 'connect', 'p99_ns', 'connect p99'),
    clockTile(r, 'ack', 'p50_ns', 'ack p50'), clockTile(r, 'ack', 'p99_ns', 'ack p99'),
    clockTile(r, 'delivery', 'p50_ns', 'delivery p50'), clockTile(r, 'delivery', 'p99_ns', 'delivery p99'),
  ]);
}

function verdictSection(r) {
  const reasons = [...r.verdict.reasons, ...findings(r)];
  return section('verdict', 'Verdict',
    banner(tone(r), headline(r), reasons.length > 0 && el('ul', {}, reasons.map((reason) => el('li', {}, reason)))),
    objectives(r.verdict.objectives, 'verdict.objectives'),
    keyFigures(r),
    r.phases.interrupted && el('p', { class: 'notice' }, 'The run was interrupted: its measure phase is shorter than asked.'));
}

// --- counts -----------------------------------------------------------------------------------------------------

const FUNNELS = [
  {
    key: 'connections', title: 'Connections', note: 'clients',
    steps: ['attempted', 'established'], losses: ['failed', 'dropped'], beside: ['reconnected'],
    identities: [['attempted', ['established', 'failed']]],
  },
  {
    key: 'publishes', title: 'Publishes', note: 'messages that senders owed',
    steps: ['scheduled', 'attempted', 'acked'], losses: ['unsent', 'rejected', 'timed_out'], beside: ['acked_late'],
    identities: [['scheduled', ['attempted', 'unsent']], ['attempted', ['acked', 'rejected', 'timed_out']]],
  },
  {
    key: 'deliveries', title: 'Deliveries', note: 'pairs of a publish and a recipient',
    steps: ['expected', 'observed'], losses: ['lost'],
    beside: ['duplicate', 'reordered', 'corrupt', 'unexpected', 'late', 'unacked_delivered', 'recovered', 'overlap'],
    identities: [['expected', ['observed', 'lost']]],
  },
];

function bar(share, kind) {
  const fill = el('i');
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  // The smallest loss has to be seen.
  if (share > 0) fill.style.minWidth = '2px';
  return el('span', { class: `bar ${kind}`, 'aria-hidden': 'true' }, fill);
}

function funnelRow(r, funnel, key, kind) {
  const value = r[funnel.key][key];
  const whole = r[funnel.key][funnel.steps[0]];
  const share = whole > 0 ? value / whole : 0;
  const className = `${kind}${value === 0 && kind !== 'step' ? ' none' : ''}`;
  return el('tr', { class: className },
    el('th', { scope: 'row' }, words(key), kind !== 'beside' && bar(share, kind)),
    el('td', { class: 'number', 'data-path': `${funnel.key}.${key}` }, formatCount(value)),
    el('td', { class: 'number share' }, kind === 'beside' || whole === 0 ? '' : formatShare(share)));
}

function identity(r, funnel, [whole, parts]) {
  const counts = r[funnel.key];
  const holds = counts[whole] === parts.reduce((sum, part) => sum + counts[part], 0);
  return el('li', { class: holds ? '' : 'broken' },
    `${words(whole)} = ${parts.map(words).join(' + ')}`, holds ? ' ✓' : ' does not hold ✗');
}

function funnel(r, shape) {
  const acks = shape.key !== 'publishes' || r.has_acks;
  const steps = acks ? shape.steps : shape.steps.filter((key) => key !== 'acked');
  const identities = acks ? shape.identities : shape.identities.slice(0, 1);
  const group = (keys, kind) => keys.filter((key) => isNumber(r[shape.key][key])).map((key) => funnelRow(r, shape, key, kind));
  return el('div', { class: 'funnel' },
    el('table', {},
      el('caption', {}, el('b', {}, shape.title), ` ${shape.note}`),
      el('thead', { class: 'hidden' }, el('tr', {}, ['counter', 'count', `share of ${steps[0]}`].map((text) => el('th', { scope: 'col' }, text)))),
      el('tbody', {}, group(steps, 'step')),
      el('tbody', {}, group(shape.losses, 'loss')),
      el('tbody', {}, group(shape.beside, 'beside'))),
    !acks && el('p', { class: 'note' }, 'The protocol has no ACK: what was written counts as attempted.'),
    el('ul', { class: 'identities' }, identities.map((one) => identity(r, shape, one))));
}

function warmupTable(r) {
  const rows = ['publishes', 'deliveries'].flatMap((group) => Object.entries(r.warmup[group])
    .filter(([, value]) => isNumber(value))
    .map(([key, value]) => [`${group}: ${words(key)}`, { text: formatCount(value), path: `warmup.${group}.${key}` }]));
  return table({ caption: 'Warm-up, counted in no other figure', columns: [{ label: 'counter' }, { label: 'count' }], rows });
}

function countsSection(r) {
  const held = r.workload.topology === 'hold';
  const funnels = FUNNELS.filter(({ key }) => !held || key === 'connections');
  return section('counts', 'What was counted',
    el('div', { class: 'funnels' }, funnels.map((shape) => funnel(r, shape))),
    r.warmup && !held && fold('Counts of the warm-up', () => warmupTable(r)));
}

// --- errors -----------------------------------------------------------------------------------------------------

const CODES = [
  ['connections', 'failed'], ['connections', 'dropped'], ['publishes', 'unsent'], ['publishes', 'rejected'],
  ['publishes', 'timed_out'], ['storm', 'failed'],
];

function errorsSection(r) {
  const rows = CODES.flatMap(([group, key]) => (r[group]?.[`${key}_by_code`] ?? []).map((entry, i) => [
    { text: `${group}: ${words(key)}` },
    { text: entry.code === null ? '–' : String(entry.code) },
    { text: entry.name ?? 'unknown to muster' },
    { text: formatCount(entry.count), path: `${group}.${key}_by_code.${i}.count` },
  ]));
  const columns = [{ label: 'what', text: true }, { label: 'code' }, { label: 'meaning', text: true }, { label: 'count' }];
  return section('errors', 'Errors by code', rows.length ? table({ caption: 'Errors by code', columns, rows, hideCaption: true })
    : el('p', {}, 'None: nothing failed, was dropped, rejected, timed out or stayed unsent.'));
}

// --- latency ----------------------------------------------------------------------------------------------------

const columnName = (key) => key.replace(/_ns$/, '').replace(/^p(\d+)_(\d+)$/, 'p$1.$2');

function latencyRow(name, clock) {
  if (clock.count === 0) return [words(name), { text: '0', path: `latency.${name}.count` }, ...Array(11).fill('–')];
  const unit = latencyUnit(clock.p50_ns, clock.max_ns);
  const cell = (key) => ({
    text: [formatLatencyIn(clock[key], unit), star(isFew(clock, key))],
    path: `latency.${name}.${key}`,
    class: isFew(clock, key) ? 'few' : '',
  });
  return [
    words(name), { text: formatCount(clock.count), path: `latency.${name}.count` }, { text: unit.name, class: 'unit' },
    cell('min_ns'), cell('mean_ns'), ...LISTED.map(([key]) => cell(key)), cell('max_ns'),
  ];
}

function latencyTable(r) {
  const columns = ['clock', 'count', 'unit', 'min', 'mean', ...LISTED.map(([key]) => columnName(key)), 'max']
    .map((label, i) => ({ label, text: i === 0 }));
  return table({
    caption: 'Latency by clock',
    columns,
    rows: Object.entries(r.latency).map(([name, clock]) => latencyRow(name, clock)),
  });
}

function outOfRange(r) {
  const strange = Object.entries(r.latency).filter(([, clock]) => clock.overflow > 0 || clock.negative > 0);
  return strange.map(([name, clock]) => el('p', { class: 'notice' },
    `${words(name)}: ${formatCount(clock.overflow)} above one hour (counted as one hour), ${
      formatCount(clock.negative)} below zero (not counted).`));
}

function latencySection(r, clocks) {
  const anyFew = Object.values(r.latency).some((clock) => clock.few_samples?.length);
  return section('latency', 'Latency',
    percentileChart(clocks),
    clockTroubles(clocks),
    latencyTable(r),
    anyFew && el('p', { class: 'note' }, '* Fewer than 10 values lie beyond this percentile: read it as a hint.'),
    outOfRange(r));
}

// --- over time --------------------------------------------------------------------------------------------------

// The last row is as long as what the measure phase leaves for it.
function secondsOfRow({ series, phases }, row) {
  const left = phases.measure_s - row * series.interval_s;
  return left > 0 ? Math.min(series.interval_s, left) : series.interval_s;
}

function timeAxis(r) {
  const { series } = r;
  const step = series.interval_s;
  const starts = (r.observed ?? []).flatMap((source) => source.rows?.map(([t]) => t) ?? []);
  const end = Math.max(series.rows * step, r.phases.measure_s ?? 0);
  const range = [starts.length ? Math.min(0, ...extent(starts)) : 0, starts.length ? Math.max(end, ...extent(starts)) : end];
  return {
    values: Array.from({ length: series.rows }, (_, i) => (i + 0.5) * step),
    label: 'second of the measure phase',
    format: (t) => `${Number(t.toFixed(2))} s`,
    tableFormat: (t) => `${Number((t - step / 2).toFixed(2))}–${Number((t + step / 2).toFixed(2))} s`,
    range: range[1] > range[0] ? range : [0, 1],
    measured: [0, end],
  };
}

const besideMeasure = (x) => [
  x.range[0] < 0 && { from: x.range[0], to: 0, text: 'before' },
  x.range[1] > x.measured[1] && { from: x.measured[1], to: x.range[1], text: 'after' },
].filter(Boolean);

function latencyOverTime(r, x, name) {
  const columns = r.series[name];
  if (!columns) return null;
  return chart({
    id: `time-${name}`,
    title: `${name === 'ack' ? 'Ack' : 'Delivery'} latency of each second`,
    x,
    y: { format: formatLatency, tick: formatLatencyTick, log: true, canBeLog: true },
    series: [
      { label: 'max', values: columns.max_ns, hue: 'grey', dash: 'dotted', width: 1.5 },
      { label: 'p99', values: columns.p99_ns, hue: 'orange', dash: 'dashed' },
      { label: 'p50', values: columns.p50_ns, hue: 'blue' },
    ],
    shade: besideMeasure(x),
    sync: 'time',
  });
}

function ratesOverTime(r, x) {
  const rate = (values) => values.map((value, i) => value / secondsOfRow(r, i));
  const publishes = chart({
    id: 'time-publishes', title: 'Publishes per second', x, sync: 'time', shade: besideMeasure(x),
    y: { format: (value) => `${formatRate(value)} /s`, tick: formatCountTick },
    series: [
      { label: 'scheduled', values: rate(r.series.scheduled), hue: 'grey', dash: 'dotted', width: 3 },
      { label: r.has_acks ? 'acked' : 'attempted', values: rate(r.has_acks ? r.series.acked : r.series.attempted), hue: 'blue' },
      ...(r.publishes.rejected ? [{ label: 'rejected', values: rate(r.series.rejected), hue: 'brown', dash: 'dashed' }] : []),
    ],
  });
  const deliveries = chart({
    id: 'time-deliveries', title: 'Deliveries per second', x, sync: 'time', shade: besideMeasure(x),
    y: { format: (value) => `${formatRate(value)} /s`, tick: formatCountTick },
    series: [{ label: 'delivered', values: rate(r.series.delivered), hue: 'orange' }],
  });
  const connections = r.series.dropped.some(Boolean) || r.series.established.some(Boolean);
  return [publishes, deliveries, connections && chart({
    id: 'time-connections', title: 'Connections per second', x, sync: 'time', shade: besideMeasure(x),
    y: { format: (value) => `${formatRate(value)} /s`, tick: formatCountTick },
    series: [
      { label: 'established', values: rate(r.series.established), hue: 'green' },
      { label: 'dropped', values: rate(r.series.dropped), hue: 'brown', dash: 'dashed' },
    ],
  })];
}

// How an observed column reads: its name carries its unit.
const BYTE_STEPS = Array.from({ length: 50 }, (_, i) => 2 ** i);
const PLAIN_NAMES = {
  cpu: 'CPU', rss: 'resident memory', anonymous: 'anonymous memory', voluntary_switches: 'voluntary context switches',
  involuntary_switches: 'involuntary context switches', namespace_received: 'received in its network namespace',
  namespace_sent: 'sent in its network namespace', throttled: 'CPU throttled',
};
const plainName = (name) => PLAIN_NAMES[name] ?? words(name);

function columnFormat(name) {
  const whole = name.replace(/_(cores|bytes_per_second|per_second|bytes|ns)$/, '');
  if (name.endsWith('_cores')) {
    return { title: `${plainName(whole)}, in cores`, format: (v) => `${formatNumber(v)} cores`, tick: formatNumber };
  }
  if (name.endsWith('_bytes_per_second')) {
    return { title: `${plainName(whole)} per second`, format: (v) => `${formatBytes(v)}/s`, tick: formatBytes, incrs: BYTE_STEPS };
  }
  if (name.endsWith('_bytes')) return { title: plainName(whole), format: formatBytes, tick: formatBytes, incrs: BYTE_STEPS };
  if (name.endsWith('_ns')) return { title: plainName(whole), format: formatLatency, tick: formatLatencyTick };
  if (name.endsWith('_per_second')) return { title: `${plainName(whole)} per second`, format: (v) => `${formatNumber(v)} /s`, tick: formatCountTick };
  return { title: plainName(name), format: formatNumber, tick: formatCountTick };
}

const sourceName = (source) => source.label || (source.role === 'other' ? source.source : `${source.role}, ${source.source}`);

// The first server is blue and the first generator orange on every chart; what comes behind takes what is left.
const LOOKS_OF_ROLE = { server: ['blue', 'solid'], generator: ['orange', 'dashed'] };
const FURTHER_LOOKS = [['grey', 'dotted'], ['green', 'solid'], ['purple', 'dashed'], ['brown', 'solid'], ['green', 'dotted']];

function looksOf(sources) {
  const taken = new Set();
  let next = 0;
  return new Map(sources.map((source) => {
    const own = LOOKS_OF_ROLE[source.role];
    if (!own || taken.has(source.role)) return [source, FURTHER_LOOKS[next++ % FURTHER_LOOKS.length]];
    taken.add(source.role);
    return [source, own];
  }));
}

function observedChart(x, column, sources, looks) {
  const lines = sources.map((source) => {
    const at = source.columns.indexOf(column) + 1;
    return { source, points: new Map(source.rows.map((row) => [row[0], row[at]])) };
  });
  const times = [...new Set(lines.flatMap(({ points }) => [...points.keys()]))].sort((a, b) => a - b);
  const { title, format, tick, incrs } = columnFormat(column);
  return chart({
    id: `observed-${column.replace(/\W+/g, '-')}`,
    title: title[0].toUpperCase() + title.slice(1),
    x: { ...x, values: times, tableFormat: x.format, label: 'time of the sample, from the start of the measure phase' },
    y: { format, tick, incrs },
    sync: 'time',
    shade: besideMeasure(x),
    series: lines.map(({ source, points }) => ({
      label: sourceName(source),
      values: times.map((t) => points.get(t) ?? null),
      hue: looks.get(source)[0],
      dash: looks.get(source)[1],
      spanGaps: true,
    })),
  });
}

// The charts that every reader wants, and those for who looks further.
function observedCharts(r, x) {
  const sources = (r.observed ?? []).filter((source) => source.rows?.length && source.columns?.length);
  const columns = [...new Set(sources.flatMap((source) => source.columns))];
  const looks = looksOf(sources);
  const charts = (names) => names.map((column) =>
    observedChart(x, column, sources.filter((source) => source.columns.includes(column)), looks));
  const first = ['cpu_cores', 'rss_bytes'].filter((column) => columns.includes(column));
  return [charts(first), charts(columns.filter((column) => !first.includes(column))).filter(Boolean)];
}

function observedNotes(r) {
  if (!r.observed?.length) {
    const cores = r.derived?.server_cores;
    return [el('p', { class: 'note' }, isNumber(cores)
      ? `This document has no samples of the server. On average it kept ${formatNumber(cores)} cores busy.`
      : 'This document has no samples of the server: --observe takes them.')];
  }
  return r.observed.filter(({ error }) => error)
    .map((source) => el('p', { class: 'notice' }, `${sourceName(source)}: ${source.error}`));
}

function timeSection(r) {
  if (!r.series?.rows) return null;
  const x = timeAxis(r);
  const [publishes, deliveries, connections] = ratesOverTime(r, x);
  const [first, more] = observedCharts(r, x);
  const latencies = r.workload.topology === 'hold' ? [] : [latencyOverTime(r, x, 'ack'), latencyOverTime(r, x, 'delivery')];
  return section('time', 'Over time',
    chartGrid(latencies),
    r.workload.topology !== 'hold' && chartGrid(publishes, deliveries),
    chartGrid(first, connections),
    more.length > 0 && el('details', { class: 'fold' },
      el('summary', {}, `More about the observed processes: ${formatCount(more.length)} charts`), chartGrid(more)),
    observedNotes(r));
}

// --- the rest ---------------------------------------------------------------------------------------------------

function ratesSection(r) {
  const held = r.workload.topology === 'hold';
  const per = r.has_acks ? 'acked' : 'attempted';
  const fanOut = ['fanout_first', 'fanout_complete'].filter((name) => r.latency[name]?.count);
  return section('rates', 'Rates and fan-out',
    facts([
      !held && ['fan-out', [figure('fan_out', formatNumber(r.fan_out)), ` observed deliveries per ${per} publish`]],
      ...fanOut.map((name) => [words(name), [
        'p50 ', figure(`latency.${name}.p50_ns`, formatLatency(r.latency[name].p50_ns)), ', p99 ',
        figure(`latency.${name}.p99_ns`, `${formatLatency(r.latency[name].p99_ns)}${fewMark(r.latency[name], 'p99_ns')}`),
        name === 'fanout_first' ? ' until the first recipient has it' : ' until the last recipient has it']]),
      !held && isNumber(r.rates.asked_publishes_per_second) && ['asked', [figure('rates.asked_publishes_per_second', formatRate(r.rates.asked_publishes_per_second)), ' publishes/s']],
      !held && ['attempted', [figure('rates.attempts_per_second', formatRate(r.rates.attempts_per_second)), ' publishes/s']],
      !held && r.has_acks && ['acked', [figure('rates.acks_per_second', formatRate(r.rates.acks_per_second)), ' publishes/s']],
      !held && ['delivered', [figure('rates.deliveries_per_second', formatRate(r.rates.deliveries_per_second)), ' deliveries/s']],
      ['connected', [figure('rates.connections_per_second', formatRate(r.rates.connections_per_second)), ' connections/s, in the connect phase']],
      ['traffic', [figure('bytes.sent', formatBytes(r.bytes.sent)), ' sent, ', figure('bytes.received', formatBytes(r.bytes.received)), ' received']],
      r.calibration && ['generator', [r.calibration.is_lower_bound ? 'at most ' : '',
        figure('calibration.load_share', formatShare(r.calibration.load_share)),
        ` of its calibrated ceiling of ${r.calibration.is_lower_bound ? 'at least ' : ''}${formatRate(r.calibration.ceiling_publishes_per_second)} publishes/s`]],
    ].filter(Boolean)));
}

function stormSection({ storm: s }) {
  if (!s) return null;
  return section('storm', 'Storm', facts([
    ['lost', figure('storm.lost', formatCount(s.lost))],
    ['returned', figure('storm.returned', formatCount(s.returned))],
    ['attempts', figure('storm.attempts', formatCount(s.attempts))],
    ['failed', figure('storm.failed', formatCount(s.failed))],
    ['all back after', s.all_back_s === null ? 'not everybody is back' : figure('storm.all_back_s', formatSeconds(s.all_back_s))],
    ['backoff', `${formatSeconds(s.backoff_first_s)}, doubled up to ${formatSeconds(s.backoff_max_s)}, less up to ${formatShare(s.backoff_jitter)}`],
  ]));
}

function backlogSection({ backlog: b }) {
  if (!b) return null;
  return section('backlog', 'Backlog', facts([
    ['receivers', figure('backlog.receivers', formatCount(b.receivers))],
    ['came back', figure('backlog.returned', formatCount(b.returned))],
    ['got all', figure('backlog.complete', formatCount(b.complete))],
    ['read within', b.read_s === null ? 'nothing came' : figure('backlog.read_s', formatSeconds(b.read_s))],
  ]));
}

// A difference over few connections shows the cost of start-up.
const CONNECTIONS_MIN = 1000;

function costSection(r) {
  const d = r.derived ?? {};
  const memory = r.connections.established >= CONNECTIONS_MIN ? Object.entries(r.memory ?? {}) : [];
  const rows = [
    isNumber(d.server_cores) && ['server CPU', [figure('derived.server_cores', formatNumber(d.server_cores)), ' cores on average']],
    isNumber(d.publishes_per_core_second) && ['publishes', [figure('derived.publishes_per_core_second', formatRate(d.publishes_per_core_second)), ' per second of one core']],
    isNumber(d.distributions_per_core_second) && ['distributions', [figure('derived.distributions_per_core_second', formatRate(d.distributions_per_core_second)), ' copies per second of one core']],
    isNumber(d.publish_ns) && ['one publish', [figure('derived.publish_ns', formatLatency(d.publish_ns)), ' of server CPU, with all that follows']],
    ...['send_ns', 'distribute_ns', 'notify_pull_ns'].filter((key) => isNumber(d.stages?.[key])).map((key) => [
      `stage ${words(key.replace(/_ns$/, ''))}`, [figure(`derived.stages.${key}`, formatLatency(d.stages[key])), ` (${d.stages.formula})`]]),
    ...memory.filter(([, m]) => isNumber(m?.per_connection_bytes)).map(([end, m]) => [
      `memory, ${words(end)}`, [figure(`memory.${end}.per_connection_bytes`, formatBytes(m.per_connection_bytes)), ' a connection']]),
    ...Object.entries(r.server_counters ?? {}).map(([name, value]) => [`server says: ${words(name)}`, figure(`server_counters.${name}`, formatCount(value))]),
  ].filter(Boolean);
  return rows.length ? section('cost', 'Server cost', facts(rows)) : null;
}

function workersTable(r) {
  const columns = ['worker', 'clients', 'busy', 'CPU', 'clock gaps', 'gaps in all', 'longest gap', 'memory', 'priority']
    .map((label) => ({ label }));
  return table({
    caption: 'Generator workers',
    columns,
    rows: r.workers.map((w, i) => [
      `${i}${w.died ? ' died' : ''}`, { text: formatCount(w.clients), path: `workers.${i}.clients` },
      formatShare(w.busy_share), formatShare(w.cpu_share), { text: formatCount(w.clock_gaps), path: `workers.${i}.clock_gaps` },
      formatLatency(w.clock_gap_ns), formatLatency(w.longest_gap_ns), formatBytes(w.rss_bytes), `nice ${w.nice}`,
    ]),
  });
}

function phasesTable({ phases: p }) {
  const names = [['setup', 'set-up'], ['connect', 'connect'], ['warmup', 'warm-up'], ['measure', 'measure'], ['grace', 'grace'],
    ['catch_up', 'catch-up']].filter(([key]) => isNumber(p[`${key}_s`]));
  return table({
    caption: `Phases (the measure phase ended by ${words(p.ended_by)})`,
    columns: [{ label: 'phase', text: true }, { label: 'length' }],
    rows: names.map(([key, label]) => [label, { text: formatSeconds(p[`${key}_s`]), path: `phases.${key}_s` }]),
  });
}

export async function renderRun(main, r) {
  head('run report', r.workload.name, [
    `run ${r.run_id}`, formatTime(r.started_at), r.target.protocol_title, r.target.url,
  ]);
  const clocks = await readClocks(r.latency);
  append(main, [
    verdictSection(r),
    countsSection(r),
    ratesSection(r),
    latencySection(r, clocks),
    timeSection(r),
    errorsSection(r),
    stormSection(r),
    backlogSection(r),
    costSection(r),
    workloadSection(r.workload, commandOf(r), commandNote(r)),
    environmentSection(r, [el('div', { class: 'columns' }, phasesTable(r), workersTable(r))]),
    limitationsSection(r.limitations),
    genericSection(r, RUN_KEYS),
  ]);
}
