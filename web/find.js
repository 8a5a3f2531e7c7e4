// What a search for capacity found: the answer, the capacity curve and every test on the way.
import { chart, chartGrid } from './chart.js';
import { commandNote, commandOf } from './command.js';
import { append, el, facts, figure, section, star, table } from './dom.js';
import {
  formatCount, formatCountTick, formatLatency, formatLatencyTick, formatNumber, formatRate, formatSeconds, formatShare,
  formatTime, isNumber, words,
} from './format.js';
import { genericSection } from './generic.js';
import { colour } from './palette.js';
import { banner, environmentSection, head, mark, objectives, tiles, workloadSection } from './parts.js';

const FIND_KEYS = ['kind', 'schema_version', 'id', 'muster', 'started_at', 'result', 'search', 'loads', 'steps', 'below_capacity', 'workload',
  'target', 'environment', 'document'];
const UNITS = { publishes_per_second: 'publishes/s', clients: 'clients' };
const OUTCOME_TONE = { held: 'good', broken: 'bad', invalid: 'warn' };
const ENDS = {
  found: ['good', 'Capacity found'],
  all_held: ['good', 'Nothing broke: a lower bound'],
  none_held: ['bad', 'Not even the lowest load held'],
  stayed_invalid: ['warn', 'No answer: the tests stayed invalid'],
  tests_spent: ['warn', 'No answer: the tests were used up'],
  interrupted: ['warn', 'No answer: interrupted'],
};

function answerSection(f) {
  const unit = UNITS[f.result.unit] ?? f.result.unit;
  const [tone, text] = ENDS[f.result.end] ?? ['warn', words(f.result.end)];
  return section('verdict', 'Answer',
    banner(tone, text, el('p', {}, f.result.text)),
    tiles([
      isNumber(f.result.highest_held) && ['highest load that held', 'result.highest_held', formatRate(f.result.highest_held), unit],
      isNumber(f.result.lowest_broken) && ['lowest load that broke', 'result.lowest_broken', formatRate(f.result.lowest_broken), unit],
      isNumber(f.result.invalid_at) && ['invalid at', 'result.invalid_at', formatRate(f.result.invalid_at), unit],
      ['tests', 'result.tests', formatCount(f.result.tests)],
    ]));
}

const byLoad = (f) => [...f.steps].sort((a, b) => a.load - b.load);

// The bound of an objective on a percentile that the curve shows: 'delivery.p99<250ms'.
function objectiveLines(f, clock) {
  const unit = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, m: 60e9 };
  return f.search.objectives.map((text) => text.match(/^(\w+)\.p(?:50|99)<=?([\d.]+)(ns|us|ms|s|m)$/))
    .filter((match) => match && match[1] === clock)
    .map((match) => ({ y: Number(match[2]) * unit[match[3]], text: `objective ${match[0]}` }));
}

// One shape an outcome: a full circle held, a cross broke, an open diamond says nothing.
function drawMarks(u, steps, valueOf) {
  const { ctx } = u;
  const size = 5 * (window.devicePixelRatio || 1);
  for (const step of steps) {
    const value = valueOf(step);
    if (!isNumber(value)) continue;
    const left = u.valToPos(step.load, 'x', true);
    const top = u.valToPos(value, 'y', true);
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour(OUTCOME_TONE[step.outcome]);
    ctx.lineWidth = size / 2.5;
    ctx.beginPath();
    drawMark(ctx, step.outcome, left, top, size);
    ctx.restore();
  }
}

function drawMark(ctx, outcome, left, top, size) {
  if (outcome === 'held') {
    ctx.arc(left, top, size, 0, 2 * Math.PI);
    ctx.fill();
    return;
  }
  if (outcome === 'broken') {
    ctx.moveTo(left - size, top - size);
    ctx.lineTo(left + size, top + size);
    ctx.moveTo(left + size, top - size);
    ctx.lineTo(left - size, top + size);
  } else {
    ctx.moveTo(left, top - size * 1.2);
    ctx.lineTo(left + size * 1.2, top);
    ctx.lineTo(left, top + size * 1.2);
    ctx.lineTo(left - size * 1.2, top);
    ctx.closePath();
  }
  ctx.stroke();
}

function loadAxis(f, steps) {
  const loads = steps.map(({ load }) => load);
  const log = loads.at(-1) / loads[0] > 8;
  const pad = log ? [loads[0] / 1.25, loads.at(-1) * 1.25] : [loads[0] - (loads.at(-1) - loads[0]) * 0.05 - 1, loads.at(-1) * 1.05 + 1];
  return { values: loads, label: UNITS[f.result.unit] ?? f.result.unit, format: formatCountTick, log, range: pad,
    ...(log && { splits: (u, width) => logSplits(pad, width) }) };
}

function logSplits([from, to], width) {
  const out = [];
  const perDecade = width / Math.log10(to / from);
  for (let x = 10 ** Math.floor(Math.log10(from)); x <= to; x *= 10) out.push(x, ...(perDecade > 130 ? [2 * x, 5 * x] : []));
  return out.filter((x) => x >= from && x <= to);
}

function capacityShade(f) {
  const { highest_held: held, lowest_broken: broken } = f.result;
  return isNumber(held) && isNumber(broken) ? [{ from: held, to: broken, text: 'capacity' }] : [];
}

// A curve goes through what was judged; what was not has a name of its own, and drawMarks its diamond.
const judged = (steps, value) => steps.map((step) => (step.outcome === 'invalid' ? null : value(step) ?? null));
function notJudged(steps, value, label) {
  const values = steps.map((step) => (step.outcome === 'invalid' ? value(step) ?? null : null));
  return values.some(isNumber) ? [{ label: `${label}, invalid test`, values, hue: 'brown', points: 'drawn' }] : [];
}
const shown = (u, steps, label) => {
  const hidden = u.series.some((series) => series.label === `${label}, invalid test` && !series.show);
  return steps.filter(({ outcome }) => outcome !== 'invalid' || !hidden);
};

function latencyCurve(f, steps, x, name) {
  const value = (key) => (step) => step.figures?.[name]?.[key];
  return chart({
    id: `capacity-${name}`,
    title: `${name === 'ack' ? 'Ack' : 'Delivery'} latency by load`,
    x,
    y: { format: formatLatency, tick: formatLatencyTick, log: true, canBeLog: true },
    series: [
      { label: 'p99', values: judged(steps, value('p99_ns')), hue: 'orange', dash: 'dashed', points: 'none', spanGaps: true },
      { label: 'p50', values: judged(steps, value('p50_ns')), hue: 'blue', points: 'none', spanGaps: true },
      ...notJudged(steps, value('p99_ns'), 'p99'), ...notJudged(steps, value('p50_ns'), 'p50'),
    ],
    shade: capacityShade(f),
    lines: objectiveLines(f, name),
    draw: (u) => ['p99_ns', 'p50_ns'].forEach((key, i) => u.series[i + 1].show && drawMarks(u, shown(u, steps, key.slice(0, 3)), value(key))),
    height: 300,
  });
}

function rateCurve(f, steps, x) {
  const achieved = (step) => step.figures?.acks_per_second ?? step.figures?.deliveries_per_second;
  const ofRate = f.search.vary === 'rate';
  return chart({
    id: 'capacity-rate',
    title: `Achieved rate by load`,
    x,
    y: { format: (value) => `${formatRate(value)} /s`, tick: formatCountTick },
    series: [
      ...(ofRate ? [{ label: 'asked', values: steps.map(({ load }) => load), hue: 'grey', dash: 'dotted', points: 'none' }] : []),
      { label: 'acks', values: judged(steps, (step) => step.figures?.acks_per_second), hue: 'blue', points: 'none', spanGaps: true },
      { label: 'deliveries', values: judged(steps, (step) => step.figures?.deliveries_per_second), hue: 'orange', dash: 'dashed',
        points: 'none', spanGaps: true },
      ...notJudged(steps, achieved, 'achieved'),
    ],
    shade: capacityShade(f),
    draw: (u) => drawMarks(u, shown(u, steps, 'achieved'), achieved),
    height: 300,
  });
}

function curveSection(f) {
  const steps = byLoad(f).filter(({ figures }) => figures);
  if (steps.length === 0) return null;
  const x = loadAxis(f, steps);
  return section('curve', 'Capacity curve',
    el('p', { class: 'note marks' }, mark('held: full circle', 'good'), ' ', mark('broke: cross', 'bad'), ' ',
      mark('invalid, says nothing about the server: open diamond', 'warn')),
    chartGrid(latencyCurve(f, steps, x, 'delivery'), latencyCurve(f, steps, x, 'ack'), rateCurve(f, steps, x)));
}

function clockCells(step, path, name) {
  const clock = step.figures?.[name];
  if (!clock) return ['–', '–'];
  return [
    { text: formatLatency(clock.p50_ns), path: `${path}.figures.${name}.p50_ns` },
    { text: [formatLatency(clock.p99_ns), star(clock.p99_has_few_samples)], path: `${path}.figures.${name}.p99_ns` },
  ];
}

function stepRow(step, number, path) {
  const g = step.figures;
  const cell = (key, format) => (g ? { text: format(g[key]), path: `${path}.figures.${key}` } : '–');
  return [
    String(number), { text: formatRate(step.load), path: `${path}.load` }, formatCount(step.clients),
    g ? formatSeconds(g.length_s) : '–', mark(step.outcome, OUTCOME_TONE[step.outcome]),
    cell('acks_per_second', formatRate), cell('deliveries_per_second', formatRate),
    ...clockCells(step, path, 'ack'), ...clockCells(step, path, 'delivery'),
    cell('lost', formatCount), cell('rejected', formatCount), cell('timed_out', formatCount),
    g ? formatShare(g.worker_busy_share) : '–',
    { text: step.why ?? '', class: step.why ? 'sentence' : '' },
  ];
}

function stepsTable(f, key, caption) {
  const labels = ['test', UNITS[f.result.unit] ?? 'load', 'clients', 'length', 'outcome', 'acks/s', 'deliveries/s', 'ack p50',
    'ack p99', 'delivery p50', 'delivery p99', 'lost', 'rejected', 'timed out', 'busiest worker', 'why'];
  return table({
    caption,
    columns: labels.map((label) => ({ label, text: label === 'outcome' || label === 'why' })),
    rows: f[key].map((step, i) => stepRow(step, i + 1, `${key}.${i}`)),
  });
}

function stepsSection(f) {
  const below = f.below_capacity ?? [];
  const few = [...f.steps, ...below].some((step) => ['ack', 'delivery'].some((name) => step.figures?.[name]?.p99_has_few_samples));
  return section('steps', 'Every test',
    stepsTable(f, 'steps', 'Tests in the order in which they were made'),
    below.length > 0 && stepsTable(f, 'below_capacity', 'Below the capacity, where one would run a server'),
    few && el('p', { class: 'note' }, '* Fewer than 10 values lie beyond this percentile: read it as a hint.'),
    table({
      caption: 'Tests by load',
      columns: ['load', 'held', 'broken', 'invalid'].map((label) => ({ label })),
      rows: f.loads.map((load, i) => [formatRate(load.load), ...['held', 'broken', 'invalid'].map((key) => (
        { text: formatCount(load[key]), path: `loads.${i}.${key}` }))]),
    }));
}

function lastHeldObjectives(f) {
  const at = f.steps.findLastIndex((step) => step.outcome === 'held' && step.load === f.result.highest_held && step.figures);
  if (at < 0) return null;
  return section('objectives', 'Objectives at the highest load that held',
    objectives(f.steps[at].figures.objectives, `steps.${at}.figures.objectives`));
}

function searchSection(f) {
  const s = f.search;
  return section('search', 'How it searched', facts([
    ['varied', s.vary], ['from', figure('search.from', formatRate(s.from))], ['to', figure('search.to', formatRate(s.to))],
    ['step', s.step_size ? formatRate(s.step_size) : 'doubling, then bisection'],
    ['resolution', formatShare(s.resolution)],
    ['length of a test', `${formatSeconds(s.short_length_s)}, ${formatSeconds(s.full_length_s)} to confirm`],
    ['confirmations', formatNumber(s.confirmations)],
    ['objectives', s.objectives.join(', ')],
  ]));
}

export function renderFind(main, f) {
  head(f.kind === 'calibrate' ? 'calibration of the generator' : 'search for capacity', f.workload.name, [
    f.id, formatTime(f.started_at), f.target.protocol_title, f.target.url,
  ]);
  append(main, [
    answerSection(f),
    curveSection(f),
    stepsSection(f),
    lastHeldObjectives(f),
    searchSection(f),
    workloadSection(f.workload, commandOf(f), commandNote(f)),
    environmentSection(f),
    genericSection(f, FIND_KEYS),
  ]);
}
