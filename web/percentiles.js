// The latency distribution: one curve a clock, over an axis on which each further nine has the same width.
import { chart } from './chart.js';
import { el, table } from './dom.js';
import { formatCount, formatLatency, formatLatencyTick, isNumber, words } from './format.js';
import { decodeHistogram, percentileOf } from './histogram.js';

export const LISTED = [
  ['p50_ns', 50], ['p75_ns', 75], ['p90_ns', 90], ['p95_ns', 95], ['p99_ns', 99], ['p99_9_ns', 99.9],
  ['p99_99_ns', 99.99],
];
const FINE = [0, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 99.995, 99.999, 100];
const STEPS_A_DECADE = 48;

// The scheduled and the service clock of one thing share a hue and differ by their dash.
const LOOKS = {
  ack: ['blue', 'solid'], ack_service: ['blue', 'dashed'],
  delivery: ['orange', 'solid'], delivery_service: ['orange', 'dashed'],
  fanout_first: ['green', 'dotted'], fanout_complete: ['green', 'solid'], broadcast_result: ['purple', 'solid'],
  connect: ['purple', 'solid'], connect_tcp: ['purple', 'dotted'], connect_tls: ['brown', 'dashed'],
  connect_protocol: ['purple', 'dashed'], recover: ['green', 'solid'], backlog_first: ['green', 'dotted'],
  backlog_complete: ['green', 'solid'], schedule_lag: ['grey', 'dotted'],
};
const FIRST = ['ack', 'ack_service', 'delivery', 'delivery_service'];
const SECOND = ['fanout_first', 'fanout_complete', 'broadcast_result', 'recover', 'backlog_first', 'backlog_complete'];

// The nines' axis: x is 1/(1-p), so 0 % is 1, 90 % is 10, 99 % is 100.
const xOf = (percentile) => 1 / (1 - percentile / 100);

export function percentileLabel(x) {
  const percentile = 100 * (1 - 1 / x);
  const nines = Math.max(0, Math.ceil(Math.log10(x)) - 2);
  return `${Number(percentile.toFixed(nines + 1))} %`;
}

// Decodes every clock's histogram; a clock without one (schema version 1) has `histogram: null`.
export async function readClocks(latency) {
  return Promise.all(Object.entries(latency).filter(([, clock]) => clock && clock.count > 0).map(async ([name, clock]) => {
    if (typeof clock.histogram !== 'string') return { name, clock, histogram: null };
    try {
      return { name, clock, histogram: await decodeHistogram(clock.histogram) };
    } catch (error) {
      return { name, clock, histogram: null, trouble: `${name}: its histogram cannot be read: ${error.message}` };
    }
  }));
}

// A grid that every curve shares. A curve ends at its own number of values: beyond it there is nothing to see.
function grid(clocks) {
  const top = Math.max(...clocks.map(({ clock }) => clock.count), 10);
  const last = Math.ceil(Math.log10(top) * STEPS_A_DECADE);
  return Array.from({ length: last + 1 }, (_, i) => 10 ** (i / STEPS_A_DECADE));
}

function curve({ clock, histogram }, xs) {
  return xs.map((x, i) => {
    if (x > clock.count) return xs[i - 1] < clock.count ? clock.max_ns : null;
    return percentileOf(histogram, 100 * (1 - 1 / x), clock.min_ns, clock.max_ns);
  });
}

const listedPoints = ({ clock }) => [
  [1, clock.min_ns],
  ...LISTED.filter(([, percentile]) => xOf(percentile) < clock.count).map(([key, p]) => [xOf(p), clock[key]]),
  [clock.count, clock.max_ns],
].filter(([, value]) => isNumber(value));

function listedGrid(clocks) {
  const xs = new Set(clocks.flatMap((clock) => listedPoints(clock).map(([x]) => x)));
  return [...xs].sort((a, b) => a - b);
}

function listedCurve(clock, xs) {
  const known = new Map(listedPoints(clock));
  return xs.map((x) => known.get(x) ?? null);
}

// The tens first, then halves between them, as far as their labels have room.
const CHARACTER_PX = 7.5;
function splits(top, width) {
  const perDecade = (width - 80) / Math.max(Math.log10(top), 1);
  const chosen = [];
  const tryAt = (x) => {
    const room = (percentileLabel(x).length + 2) * CHARACTER_PX;
    if (x <= top && chosen.every((other) => Math.abs(Math.log10(x / other)) * perDecade >= room)) chosen.push(x);
  };
  for (const factor of [1, 2, 4]) for (let x = 1; x <= top; x *= 10) tryAt(x * factor);
  return chosen.sort((a, b) => a - b);
}

function valuesTable(clocks) {
  const columns = [{ label: 'percentile' }, ...clocks.map(({ name }) => ({ label: words(name) }))];
  const rows = FINE.map((percentile) => [
    `${percentile} %`,
    ...clocks.map(({ clock, histogram }) => formatLatency(
      percentile >= 100 ? clock.max_ns : percentileOf(histogram, percentile, clock.min_ns, clock.max_ns))),
  ]);
  rows.push(['values', ...clocks.map(({ clock }) => formatCount(clock.count))]);
  return table({ caption: 'Latency by percentile, from the histograms', columns, rows, hideCaption: true });
}

function shownFirst(clocks) {
  const names = clocks.map(({ name }) => name);
  const first = names.filter((name) => FIRST.includes(name));
  if (first.length) return new Set(first);
  const second = names.filter((name) => SECOND.includes(name));
  return new Set(second.length ? second : names.slice(0, 4));
}

export function percentileChart(clocks) {
  if (clocks.length === 0) return null;
  const exact = clocks.every(({ histogram }) => histogram);
  const xs = exact ? grid(clocks) : listedGrid(clocks);
  const top = xs.at(-1);
  const shown = shownFirst(clocks);
  const ordered = [...clocks.filter(({ name }) => shown.has(name)), ...clocks.filter(({ name }) => !shown.has(name))];
  const fewest = Math.min(...clocks.filter(({ name }) => shown.has(name)).map(({ clock }) => clock.count));
  return chart({
    id: 'distribution',
    title: 'Latency by percentile: scheduled against service time',
    note: [
      'Solid: from the moment at which a publish was due. Dashed: from the moment at which it was written. ',
      'The gap between the two is what a stall makes others wait. ',
      !exact && 'This document holds no histograms: the curves join the percentiles that it lists.',
    ].filter(Boolean).join(''),
    x: {
      values: xs, label: 'percentile', log: true, range: [1, Math.max(top, 10)], format: percentileLabel,
      splits: (u, width) => splits(Math.max(top, 10), width),
    },
    y: { format: formatLatency, tick: formatLatencyTick, log: true, canBeLog: true },
    series: ordered.map((clock) => ({
      label: words(clock.name),
      values: exact ? curve(clock, xs) : listedCurve(clock, xs),
      hue: LOOKS[clock.name]?.[0] ?? 'brown',
      dash: LOOKS[clock.name]?.[1] ?? 'dotted',
      points: exact ? 'none' : undefined,
      spanGaps: !exact,
      hidden: !shown.has(clock.name),
    })),
    shade: fewest > 100 ? [{ from: fewest / 10, to: top, text: 'fewer than 10 values beyond' }] : [],
    table: exact ? () => valuesTable(ordered) : undefined,
    height: 320,
  });
}

export const clockTroubles = (clocks) => clocks.filter(({ trouble }) => trouble)
  .map(({ trouble }) => el('p', { class: 'notice' }, trouble));
