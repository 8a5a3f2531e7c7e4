// Charts: uPlot with a legend of buttons, a summary for screen readers and every value in a table.
import { append, el, fold, table } from './dom.js';
import { DASHES, colour } from './palette.js';

const charts = [];
const FONT = '12px system-ui, sans-serif';

/* spec: {
 *   id, title, note,
 *   x: {values, label, format, log, range, splits, tableValues},
 *   y: {format, tick, log, unit},
 *   series: [{label, values, hue, dash, width, points, hidden, format}],
 *   sync: key or undefined, height, shade: [{from, to, text}], lines: [{y, text}], draw(u), table: {columns, rows} }
 */
export function chart(spec) {
  const shown = spec.series.filter((series) => series.values.some((value) => value !== null && value !== undefined));
  if (shown.length === 0) return null;
  const state = { spec: { ...spec, series: shown }, plot: null, log: spec.y.log ?? false };
  state.holder = el('div', { class: 'plot', role: 'img', 'aria-label': summaryOf(state.spec) });
  state.legend = shown.map((series, i) => legendButton(state, series, i));
  state.at = el('span', { class: 'at', 'aria-hidden': 'true' });
  charts.push(state);
  state.figure = el('figure', { class: 'chart', id: spec.id },
    el('figcaption', {}, el('h3', {}, spec.title), spec.note && el('p', { class: 'note' }, spec.note)),
    el('div', { class: 'legend' }, el('ul', {}, state.legend.map((item) => el('li', {}, item.button))), state.at,
      spec.y.canBeLog && scaleButton(state)),
    state.holder,
    fold('Values as a table', () => (spec.table ? spec.table() : defaultTable(state.spec))));
  return state.figure;
}

// Open marks without a line; the caller draws those that are 'drawn'.
const HOLLOW = ['hollow', 'drawn'];

function legendButton(state, series, i) {
  const value = el('span', { class: 'value' });
  const button = el('button', {
    type: 'button',
    'aria-pressed': String(!series.hidden),
    class: `swatch ${series.hue} ${HOLLOW.includes(series.points) ? series.points : series.dash ?? 'solid'}`,
    onclick: () => {
      series.hidden = !series.hidden;
      button.setAttribute('aria-pressed', String(!series.hidden));
      state.plot?.setSeries(i + 1, { show: !series.hidden });
      state.holder.setAttribute('aria-label', summaryOf(state.spec));
    },
  }, el('i', { 'aria-hidden': 'true' }), series.label, value);
  return { button, value };
}

function scaleButton(state) {
  const button = el('button', {
    type: 'button',
    class: 'toggle',
    'aria-pressed': String(state.log),
    onclick: () => {
      state.log = !state.log;
      button.setAttribute('aria-pressed', String(state.log));
      draw(state);
    },
  }, 'Logarithmic scale');
  return button;
}

// What the chart shows, in one sentence a series.
function summaryOf({ title, series, x, y }) {
  const parts = series.filter((one) => !one.hidden).map((one) => {
    const values = one.values.filter((value) => value !== null && value !== undefined);
    const format = one.format ?? y.format;
    const [low, high] = extent(values).map(format);
    return low === high ? `${one.label} ${low}` : `${one.label} from ${low} to ${high}`;
  });
  return `Chart: ${title}, over ${x.label}. ${parts.join('; ')}. The table below the chart has all values.`;
}

// The least and the greatest.
export function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

function defaultTable({ title, x, y, series }) {
  const columns = [{ label: x.label }, ...series.map((one) => ({ label: one.label }))];
  const rows = x.values.map((value, row) => [
    (x.tableFormat ?? x.format)(value),
    ...series.map((one) => (one.values[row] === null || one.values[row] === undefined
      ? '–' : (one.format ?? y.format)(one.values[row]))),
  ]);
  return table({ caption: title, columns, rows, hideCaption: true, className: 'tall' });
}

function linearRange(low, high) {
  if (low === null || high === null) return [0, 1];
  const top = high > 0 ? high * 1.08 : 1;
  return [Math.min(0, low), top];
}

// Whole decades are too coarse for a narrow range: the nearest of 1, 2, 5 outside it.
function logRange(low, high) {
  if (low === null || high === null || low <= 0) return [1, 10];
  const steps = [1, 2, 5, 10];
  const base = (value) => 10 ** Math.floor(Math.log10(value) + 1e-9);
  const down = [...steps].reverse().find((step) => step * base(low) <= low * 1.0001) ?? 1;
  const up = steps.find((step) => step * base(high) >= high * 0.9999) ?? 10;
  let from = down * base(low);
  const to = up * base(high);
  if (to / from < 10) from = to / 10;
  return [from, to];
}

function yAxis(state, narrow) {
  const { y } = state.spec;
  return {
    scale: 'y',
    stroke: colour('muted'),
    font: FONT,
    size: narrow ? 54 : 66,
    gap: 4,
    grid: { stroke: colour('line'), width: 1, ...(state.log && { filter: filterLog }) },
    ticks: { show: false },
    space: state.log ? 22 : 34,
    ...(y.incrs && { incrs: y.incrs }),
    values: (u, splits) => splits.map((value) => (value === null ? '' : (y.tick ?? y.format)(value))),
    ...(state.log && { filter: filterLog }),
  };
}

// Of the ticks of a decade: all when there is room, else 1, 2, 5, else 1.
function filterLog(u, splits) {
  const { min, max } = u.scales.y;
  const room = (u.bbox.height / (window.devicePixelRatio || 1)) / Math.max(Math.log10(max / min), 0.5);
  const kept = room > 110 ? [1, 2, 5] : [1];
  return splits.map((value) => {
    const lead = Number((value / 10 ** Math.floor(Math.log10(value) + 1e-9)).toPrecision(3));
    return kept.includes(lead) ? value : null;
  });
}

function xAxis(state, width) {
  const { x } = state.spec;
  return {
    stroke: colour('muted'),
    font: FONT,
    size: 28,
    gap: 4,
    grid: { stroke: colour('line'), width: 1 },
    ticks: { show: true, stroke: colour('line'), size: 4 },
    space: 56,
    ...(x.splits && { splits: (u) => x.splits(u, width), filter: (u, splits) => splits }),
    values: (u, splits) => splits.map((value) => (value === null ? '' : x.format(value))),
  };
}

function seriesOf(state) {
  return state.spec.series.map((one) => ({
    label: one.label,
    show: !one.hidden,
    stroke: colour(one.hue),
    width: ['only', 'hollow', 'drawn'].includes(one.points) ? 0 : one.width ?? 2,
    dash: DASHES[one.dash ?? 'solid'],
    spanGaps: one.spanGaps ?? false,
    points: one.points === 'only' ? { show: true, size: 9, fill: colour(one.hue), stroke: colour('surface'), width: 1 }
      : one.points === 'hollow' ? { show: true, size: 10, fill: colour('surface'), stroke: colour(one.hue), width: 2 }
      : { show: one.points !== 'none' && one.points !== 'drawn' && one.values.length <= 40, size: 5, fill: colour('surface'), stroke: colour(one.hue), width: 1.5 },
  }));
}

function showCursor(state, u) {
  const { series, x, y } = state.spec;
  const at = u.cursor.idx;
  const inside = at !== null && at !== undefined && u.cursor.left >= 0;
  state.at.textContent = inside ? `${x.label}: ${(x.tableFormat ?? x.format)(x.values[at])}` : '';
  series.forEach((one, i) => {
    const value = inside ? one.values[at] : null;
    state.legend[i].value.textContent =
      value === null || value === undefined ? '' : (one.format ?? y.format)(value);
  });
}

function paintShade(state, u) {
  const { ctx, bbox } = u;
  const scale = window.devicePixelRatio || 1;
  for (const shade of state.spec.shade ?? []) {
    const from = Math.max(u.valToPos(shade.from, 'x', true), bbox.left);
    const to = Math.min(u.valToPos(shade.to, 'x', true), bbox.left + bbox.width);
    if (to <= from) continue;
    ctx.save();
    ctx.fillStyle = colour(shade.tone ?? 'shade');
    ctx.fillRect(from, bbox.top, to - from, bbox.height);
    paintText(ctx, shade.text, from + 5 * scale, bbox.top + 14 * scale, to - from - 8 * scale, scale);
    ctx.restore();
  }
}

function paintText(ctx, text, left, top, room, scale) {
  ctx.font = `${11 * scale}px system-ui, sans-serif`;
  ctx.fillStyle = colour('muted');
  ctx.textAlign = 'left';
  if (text && ctx.measureText(text).width <= room) ctx.fillText(text, left, top);
}

function paintLines(state, u) {
  const { ctx, bbox } = u;
  const scale = window.devicePixelRatio || 1;
  for (const line of state.spec.lines ?? []) {
    const top = u.valToPos(line.y, 'y', true);
    if (top < bbox.top || top > bbox.top + bbox.height) continue;
    ctx.save();
    ctx.strokeStyle = colour('bad');
    ctx.lineWidth = scale;
    ctx.setLineDash([6 * scale, 4 * scale]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, top);
    ctx.lineTo(bbox.left + bbox.width, top);
    ctx.stroke();
    paintText(ctx, line.text, bbox.left + 6 * scale, top - 5 * scale, bbox.width, scale);
    ctx.restore();
  }
}

function optionsOf(state, width) {
  const { spec } = state;
  const { x } = spec;
  const narrow = width < 520;
  return {
    width,
    height: spec.height ?? (narrow ? 220 : 260),
    padding: [10, narrow ? 10 : 18, 0, 0],
    scales: {
      x: { time: false, distr: x.log ? 3 : 1, ...(x.range && { range: () => x.range }) },
      y: state.log ? { distr: 3, range: (u, low, high) => logRange(low, high) }
        : { range: (u, low, high) => (spec.y.range ? spec.y.range(low, high) : linearRange(low, high)) },
    },
    series: [{}, ...seriesOf(state)],
    axes: [xAxis(state, width), yAxis(state, narrow)],
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: false, y: false, setScale: false },
      points: { size: 7 },
      ...(spec.sync && { sync: { key: spec.sync } }),
    },
    hooks: {
      drawClear: [(u) => paintShade(state, u)],
      draw: [(u) => paintLines(state, u), (u) => spec.draw?.(u)],
      setCursor: [(u) => showCursor(state, u)],
    },
  };
}

// A value at or below zero has no place on a logarithmic scale.
function dataOf(state) {
  const columns = state.spec.series.map((one) => one.values.map((value) =>
    (value === undefined || value === null || (state.log && value <= 0) ? null : value)));
  return [state.spec.x.values, ...columns];
}

function draw(state, width = Math.floor(state.holder.clientWidth)) {
  if (width < 50) return;
  state.plot?.destroy();
  state.holder.replaceChildren();
  state.width = width;
  state.plot = new uPlot(optionsOf(state, width), dataOf(state), state.holder);
}

function redrawAll() {
  for (const state of charts) draw(state);
}

// The colours of the screen may be dark, and its room is not the paper's.
const PAPER_WIDTH = 660;
function beforePrint() {
  document.documentElement.classList.add('printing');
  for (const state of charts) draw(state, PAPER_WIDTH);
}

function afterPrint() {
  document.documentElement.classList.remove('printing');
  redrawAll();
}

// Draws every chart, and again when its room or the colours change.
export function startCharts() {
  const observer = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const state = charts.find((one) => one.holder === target);
      if (state && Math.floor(target.clientWidth) !== state.width) draw(state);
    }
  });
  for (const state of charts) {
    draw(state);
    observer.observe(state.holder);
  }
  for (const query of ['(prefers-color-scheme: dark)', 'print']) matchMedia(query).addEventListener('change', redrawAll);
  window.addEventListener('beforeprint', beforePrint);
  window.addEventListener('afterprint', afterPrint);
}

export const chartGrid = (...children) => {
  const present = children.flat().filter(Boolean);
  if (present.length === 0) return null;
  const grid = el('div', { class: 'charts' });
  append(grid, present);
  return grid;
};
