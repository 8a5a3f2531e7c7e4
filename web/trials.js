// The trials of one workload: each of them, and for every metric the median with its interval.
import { chart, chartGrid } from './chart.js';
import { commandNote, commandOf } from './command.js';
import { metricFormat, metricTitle } from './compare.js';
import { append, el, fold, section, table } from './dom.js';
import { formatCount, formatCountTick, formatLatency, formatLatencyTick, formatRate, formatTime, isNumber } from './format.js';
import { genericSection } from './generic.js';
import { banner, environmentSection, head, mark, tiles, workloadSection } from './parts.js';

const TRIALS_KEYS = ['document', 'schema_version', 'id', 'muster', 'started_at', 'name', 'verdict', 'order', 'trials', 'metrics',
  'method', 'workload', 'target', 'environment', 'comparability'];
const FIRST_METRICS = ['acks_per_second', 'deliveries_per_second', 'ack.p50', 'ack.p99', 'delivery.p50', 'delivery.p99'];

const inUnit = (metric, value) => (metric.unit === 'ns' ? formatLatency(value) : formatRate(value));

function verdictOfTrials(t) {
  const valid = t.verdict.result === 'valid';
  const text = valid ? `Valid: ${t.verdict.valid} of ${t.verdict.asked} trials count` : 'Invalid: these trials do not stand';
  const first = FIRST_METRICS.map((name) => t.metrics.findIndex((metric) => metric.name === name)).filter((i) => i >= 0);
  return section('verdict', 'Verdict',
    banner(valid ? 'good' : 'bad', text,
      t.verdict.reasons.length > 0 && el('ul', {}, t.verdict.reasons.map((reason) => el('li', {}, reason)))),
    tiles(first.map((i) => {
      const metric = t.metrics[i];
      return [metricTitle(metric.name), `metrics.${i}.median`, inUnit(metric, metric.median),
        metric.interval && `${inUnit(metric, metric.interval[0])} to ${inUnit(metric, metric.interval[1])}`];
    })),
    el('p', { class: 'note' }, 'Medians over the valid trials, with the interval of the median.'));
}

function trialVerdict(trial) {
  if (trial.error || !trial.verdict) return [mark('no report', 'bad'), trial.error ?? ''];
  const reasons = trial.verdict.reasons.join('; ');
  const broken = trial.verdict.objectives.filter(({ held }) => held === false).map(({ text }) => text).join(', ');
  if (trial.verdict.result !== 'valid') return [mark('invalid', 'bad'), reasons];
  return broken ? [mark('objective broken', 'bad'), broken] : [mark('valid', 'good'), ''];
}

function trialsSection(t) {
  return section('trials', 'Every trial',
    table({
      caption: `Trials (${formatCount(t.verdict.listed)} listed, ${formatCount(t.verdict.valid)} valid)`,
      columns: [{ label: 'trial' }, { label: 'verdict', text: true }, { label: 'why', text: true }, { label: 'run', text: true },
        { label: 'started', text: true }, { label: 'exit code' }, { label: 'report', text: true }],
      rows: t.trials.map((trial, i) => [
        { text: formatCount(trial.number), path: `trials.${i}.number` }, ...trialVerdict(trial), trial.run_id ?? '–',
        trial.started_at ? formatTime(trial.started_at) : '–', { text: String(trial.exit_code), path: `trials.${i}.exit_code` },
        trial.file ?? 'none']),
    }));
}

const isValid = (trial) => trial?.verdict?.result === 'valid';

function trialsChart(t, name) {
  const metric = t.metrics.find((one) => one.name === name);
  if (!metric || !metric.values.some(isNumber)) return null;
  const latency = metric.unit === 'ns';
  // An invalid trial counts for no median: an open mark, with a name of its own.
  const pick = (valid) => metric.values.map((value, i) => (isValid(t.trials[i]) === valid ? value : null));
  const invalid = pick(false);
  return chart({
    id: `trials-${name.replace(/\W+/g, '-')}`,
    title: `${metricTitle(name)} of each trial`,
    x: { values: metric.values.map((_, i) => i + 1), label: 'trial', format: String, splits: () => metric.values.map((_, i) => i + 1),
      range: [0.5, metric.values.length + 0.5] },
    y: { format: (value) => (latency ? formatLatency(value) : `${formatRate(value)} /s`), tick: latency ? formatLatencyTick : formatCountTick },
    series: [
      { label: 'trial', values: pick(true), hue: 'blue', points: 'only' },
      ...(invalid.some(isNumber) ? [{ label: 'invalid trial', values: invalid, hue: 'brown', points: 'hollow' }] : []),
      { label: 'median', values: metric.values.map(() => metric.median), hue: 'orange', dash: 'dashed', points: 'none' },
    ],
    height: 220,
  });
}

function metricOfTrials(metric, i) {
  const { unit, format } = metricFormat(metric.unit, metric.median, metric.max);
  const few = metric.few_samples?.length ? '*' : '';
  const cell = (value, path) => ({ text: `${format(value)}${few}`, path });
  return [
    metricTitle(metric.name), { text: unit, class: 'unit' }, { text: formatCount(metric.count), path: `metrics.${i}.count` },
    cell(metric.median, `metrics.${i}.median`),
    metric.interval ? `${format(metric.interval[0])} to ${format(metric.interval[1])}` : '–',
    cell(metric.min, `metrics.${i}.min`), cell(metric.max, `metrics.${i}.max`),
  ];
}

function trialValues(t) {
  const columns = [{ label: 'metric' }, { label: 'unit' }, ...t.trials.map((trial) => (
    { label: `trial ${trial.number}${isValid(trial) ? '' : ' (invalid)'}` }))];
  const rows = t.metrics.map((metric, i) => {
    const { unit, format } = metricFormat(metric.unit, metric.median, metric.max);
    return [metricTitle(metric.name), { text: unit, class: 'unit' }, ...metric.values.map((value, k) => (
      { text: isNumber(value) ? format(value) : '–', path: `metrics.${i}.values.${k}` }))];
  });
  return table({ caption: 'The value of every trial', hideCaption: true, columns, rows });
}

function summarySection(t) {
  const few = t.metrics.some((metric) => metric.few_samples?.length);
  const percent = isNumber(t.method?.confidence) ? `${t.method.confidence * 100} % interval` : 'interval';
  return section('metrics', 'Medians and intervals',
    chartGrid(FIRST_METRICS.map((name) => trialsChart(t, name))),
    table({
      caption: 'Every metric over the valid trials',
      columns: ['metric', 'unit', 'trials', 'median', percent, 'min', 'max'].map((label) => ({ label })),
      rows: t.metrics.map(metricOfTrials),
    }),
    few && el('p', { class: 'note' }, '* In some trials fewer than 10 values lie beyond this percentile: read it as a hint.'),
    fold('The value of every trial', () => trialValues(t)));
}

export function renderTrials(main, t) {
  head('trials', t.name ?? 'trials', [t.id, formatTime(t.started_at), t.target?.protocol_title]);
  const command = t.workload && commandOf(t);
  append(main, [
    verdictOfTrials(t),
    summarySection(t),
    trialsSection(t),
    workloadSection(t.workload, command && `${command} --trials ${t.verdict.asked}`, command && commandNote(t)),
    environmentSection(t),
    genericSection(t, TRIALS_KEYS),
  ]);
}
