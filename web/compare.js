// Two sets of trials side by side: what changed, by how much, and how sure that is.
import { append, el, facts, figure, fold, section, table } from './dom.js';
import { formatCount, formatLatencyIn, formatNumber, formatRate, formatShare, formatTime, isNumber, latencyUnit, words } from './format.js';
import { genericSection } from './generic.js';
import { banner, head, mark, tiles } from './parts.js';

const COMPARE_KEYS = ['document', 'schema_version', 'muster', 'verdict', 'gates', 'different', 'warnings', 'base', 'candidate',
  'comparability', 'metrics', 'method'];
const VERDICTS = {
  faster: ['good', 'The candidate is faster'],
  slower: ['bad', 'The candidate is slower'],
  mixed: ['warn', 'Mixed: faster in some figures, slower in others'],
  none_shown: ['none', 'No difference shown'],
};
const OUTCOMES = { faster: 'good', slower: 'bad', none_shown: 'none', not_compared: 'none' };
const GATES = { held: 'good', broken: 'bad', undecided: 'warn' };

export const metricTitle = (name) => words(name);

// A metric's values, all in the unit of its row.
export function metricFormat(unit, typical, most) {
  if (unit !== 'ns') return { unit: '/s', format: formatRate };
  const chosen = latencyUnit(typical, most);
  return { unit: chosen.name, format: (value) => formatLatencyIn(value, chosen) };
}

// 1.25 as "+25 %"; what is far away as a factor.
export function formatChange(ratio) {
  if (!isNumber(ratio)) return '–';
  if (ratio >= 10) return `×${formatNumber(Number(ratio.toPrecision(3)))}`;
  const percent = (ratio - 1) * 100;
  const sign = percent > 0 ? '+' : percent < 0 ? '−' : '±';
  return `${sign}${Math.abs(percent).toFixed(Math.abs(percent) < 10 ? 1 : 0)} %`;
}

function outcomeMark(outcome, tones) {
  return mark(words(outcome), tones[outcome] ?? 'warn');
}

function verdictOfComparison(c) {
  const [tone, text] = VERDICTS[c.verdict.result] ?? ['warn', words(c.verdict.result)];
  const gatesBroken = c.gates.some(({ result }) => result === 'broken');
  const shown = c.metrics.filter((metric) => metric.headline && isNumber(metric.ratio)).slice(0, 8);
  return section('verdict', 'Verdict',
    banner(gatesBroken ? 'bad' : tone, gatesBroken ? `${text}; a gate is broken` : text, el('p', {}, c.verdict.text)),
    c.warnings.map((warning) => el('p', { class: 'notice' }, warning)),
    tiles(shown.map((metric) => [metricTitle(metric.name), `metrics.${c.metrics.indexOf(metric)}.ratio`, formatChange(metric.ratio),
      words(metric.outcome)])),
    gatesTable(c.gates));
}

function gatesTable(gates) {
  if (gates.length === 0) return null;
  return table({
    caption: 'Gates',
    columns: [{ label: 'gate', text: true }, { label: 'result', text: true }, { label: 'change' }, { label: 'p, corrected' }, { label: 'why', text: true }],
    rows: gates.map((gate, i) => [gate.text, outcomeMark(gate.result, GATES),
      { text: isNumber(gate.change) ? formatChange(1 + gate.change) : '–', path: `gates.${i}.change` },
      isNumber(gate.p_corrected) ? gate.p_corrected.toFixed(3) : '–', gate.why ?? '']),
  });
}

// --- the intervals, drawn -----------------------------------------------------------------------------------------

const FURTHEST = 8;
const place = (ratio, reach) => {
  const share = Math.log(Math.min(Math.max(ratio, 1 / reach), reach)) / Math.log(reach);
  return 50 + 50 * share;
};

function reachOf(metrics) {
  const all = metrics.flatMap((metric) => metric.ratio_interval ?? []).filter((ratio) => ratio > 0);
  const most = Math.max(1.1, ...all.map((ratio) => Math.max(ratio, 1 / ratio)));
  return Math.min(most * 1.05, FURTHEST);
}

function intervalGraphic(metric, reach) {
  const [low, high] = metric.ratio_interval.map((ratio) => place(ratio, reach));
  const track = el('i', { class: `range ${OUTCOMES[metric.outcome]}` });
  track.style.left = `${low}%`;
  track.style.width = `${Math.max(high - low, 0.6)}%`;
  const point = el('i', { class: `point ${OUTCOMES[metric.outcome]}` });
  point.style.left = `${place(metric.ratio, reach)}%`;
  return el('span', { class: 'interval', 'aria-hidden': 'true' }, el('i', { class: 'one' }), track, point);
}

function metricRow(c, metric, reach) {
  const i = c.metrics.indexOf(metric);
  const { unit, format } = metricFormat(metric.unit, metric.base.median, Math.max(metric.base.max, metric.candidate.max));
  return [
    metricTitle(metric.name),
    { text: unit, class: 'unit' },
    { text: format(metric.base.median), path: `metrics.${i}.base.median` },
    { text: format(metric.candidate.median), path: `metrics.${i}.candidate.median` },
    { text: formatChange(metric.ratio), path: `metrics.${i}.ratio` },
    { text: `${formatChange(metric.ratio_interval[0])} to ${formatChange(metric.ratio_interval[1])}`, path: `metrics.${i}.ratio_interval` },
    { text: intervalGraphic(metric, reach), class: 'graphic' },
    { text: metric.p_corrected.toFixed(3), path: `metrics.${i}.p_corrected` },
    outcomeMark(metric.outcome, OUTCOMES),
  ];
}

function metricsTable(c, metrics, caption) {
  if (metrics.length === 0) return null;
  const reach = reachOf(metrics);
  const percent = formatShare(c.method.confidence).replace(/\.0+ /, ' ');
  return table({
    caption,
    columns: ['metric', 'unit', 'base', 'candidate', 'change', `${percent} interval`, `×1/${formatNumber(Number(reach.toPrecision(2)))} … 1 … ×${
      formatNumber(Number(reach.toPrecision(2)))}`, 'p, corrected', 'outcome'].map((label, i) => ({ label, text: i === 8 })),
    rows: metrics.map((metric) => metricRow(c, metric, reach)),
  });
}

function comparedValues(c) {
  const metrics = c.metrics.filter((metric) => metric.base);
  const rows = metrics.flatMap((metric) => ['base', 'candidate'].map((side) => {
    const { unit, format } = metricFormat(metric.unit, metric.base.median, Math.max(metric.base.max, metric.candidate.max));
    return [`${metricTitle(metric.name)}, ${side}`, unit, metric[side].values.map((value) => (value === null ? '–' : format(value))).join('   ')];
  }));
  return table({ caption: 'Every trial', hideCaption: true, rows,
    columns: [{ label: 'metric' }, { label: 'unit' }, { label: 'values, in the order of the trials' }] });
}

function metricsSection(c) {
  const compared = c.metrics.filter((metric) => metric.base && metric.candidate);
  const not = c.metrics.filter((metric) => !metric.base || !metric.candidate);
  return section('metrics', 'Side by side',
    el('p', { class: 'note' }, 'Medians over the trials. Change is the candidate’s median against the base’s; the bar is its interval, the line in the middle no change.'),
    metricsTable(c, compared.filter(({ headline }) => headline), 'Headline metrics'),
    metricsTable(c, compared.filter(({ headline }) => !headline), 'Other metrics'),
    fold('The value of every trial', () => comparedValues(c)),
    not.length > 0 && table({
      caption: 'Not compared',
      columns: [{ label: 'metric', text: true }, { label: 'why', text: true }],
      rows: not.map((metric) => [metricTitle(metric.name), metric.why ?? '']),
    }));
}

const plainText = (value) => (value === null || value === undefined ? 'not there' : typeof value === 'object' ? JSON.stringify(value) : String(value));

function differencesSection(c) {
  if (c.different.length === 0) return null;
  return section('different', 'Not equal',
    el('p', { class: 'notice' }, 'These keys of comparability differ and were accepted with --allow-different: the figures compare two things that do not mean the same.'),
    table({
      caption: 'Keys that differ',
      hideCaption: true,
      columns: [{ label: 'key', text: true }, { label: 'base', text: true }, { label: 'candidate', text: true }],
      rows: c.different.map((one) => [words(one.key), plainText(one.base), plainText(one.candidate)]),
    }));
}

function side(c, name) {
  const s = c[name];
  return el('div', {}, el('h3', {}, name === 'base' ? 'Base' : 'Candidate'),
    facts([
      ['workload', s.workload?.name], ['trials', figure(`${name}.trials.length`, formatCount(s.trials.length))],
      ['server', s.target?.server_version ?? 'version unknown'], ['target', s.target?.url],
      ['ACK policy', s.target?.ack_policy], ['storage', s.target?.storage], ['protocol', s.target?.protocol_title],
      ['machine', [s.environment?.cpu_model, s.environment?.hostname].filter(Boolean).join(', ')],
      ['kernel', s.environment?.kernel],
      ['muster', s.muster && `${s.muster.version}, commit ${s.muster.commit}${s.muster.dirty ? ', modified' : ''}`],
    ]),
    table({
      caption: 'Trials',
      columns: [{ label: 'run', text: true }, { label: 'started', text: true }, { label: 'file', text: true }],
      rows: s.trials.map((trial) => [trial.run_id, formatTime(trial.started_at), trial.file]),
    }));
}

export function renderCompare(main, c) {
  head('comparison', `${c.base.workload?.name ?? 'base'} against ${c.candidate.workload?.name ?? 'candidate'}`, [
    `${c.base.trials.length} and ${c.candidate.trials.length} trials`, c.base.target?.protocol_title]);
  append(main, [
    verdictOfComparison(c),
    metricsSection(c),
    differencesSection(c),
    section('sides', 'What was compared', el('div', { class: 'columns' }, side(c, 'base'), side(c, 'candidate'))),
    section('method', 'Method', el('p', {}, c.method.text), facts([
      ['level', formatShare(c.method.alpha)], ['least change', formatShare(c.method.least_change)],
      ['resamples', formatCount(c.method.resamples)]])),
    genericSection({ comparability: c.comparability, ...c }, COMPARE_KEYS.filter((key) => key !== 'comparability')),
  ]);
}
