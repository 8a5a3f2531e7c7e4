// Follows a run through its server's events and goes to the report when the run is over.
import { append, el } from './dom.js';
import { formatCount, formatNumber, formatRate, formatShare } from './format.js';

const byId = (id) => document.getElementById(id);
const HISTORY = 600;
const SVG = 'http://www.w3.org/2000/svg';
const history = [];

const perSecond = (value) => `${formatRate(Math.round(value))}/s`;
const ms = (latency, key) => (latency ? `${formatNumber(latency[key])} ms` : '–');

function card(title, rows) {
  return el('section', { class: 'card' },
    el('h2', {}, title),
    el('dl', {}, rows.filter(Boolean).map(([name, value, wrong]) =>
      [el('dt', {}, name), el('dd', { class: wrong ? 'wrong' : undefined }, value)])));
}

function cards(now) {
  const { connections, publishes, deliveries } = now;
  return [
    card('Connections', [
      ['established', `${formatCount(connections.established)} of ${formatCount(connections.clients)}`],
      now.phase === 'connect' && ['rate', perSecond(connections.established_per_second)],
      ['failed', formatCount(connections.failed), connections.failed > 0],
      ['dropped', formatCount(connections.dropped), connections.dropped > 0],
    ]),
    card('Publishes', [
      ['scheduled', perSecond(publishes.scheduled_per_second)],
      publishes.has_acks && ['acked', perSecond(publishes.acked_per_second)],
      ['rejected', formatCount(publishes.rejected), publishes.rejected > 0],
      ['timed out', formatCount(publishes.timed_out), publishes.timed_out > 0],
    ]),
    card('Deliveries', [
      ['observed', perSecond(deliveries.observed_per_second)],
      ['observed in all', formatCount(deliveries.observed)],
      ['awaited', formatCount(deliveries.awaited)],
    ]),
    card('Latency of the last second', [
      ['ack p50', ms(now.ack, 'p50_ms')],
      ['ack p99', ms(now.ack, 'p99_ms')],
      ['delivery p50', ms(now.delivery, 'p50_ms')],
      ['delivery p99', ms(now.delivery, 'p99_ms')],
      ['worst core', formatShare(now.worst_core_busy)],
    ]),
  ];
}

function svg(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// Lines over the last minutes; the figures beside them are the newest ones, so that nothing is told by a line alone.
function trace(label, lines, format) {
  const top = Math.max(1e-9, ...lines.flatMap(({ values }) => values.filter((value) => value !== null)));
  const box = svg('svg', { viewBox: `0 0 ${Math.max(50, history.length - 1)} 100`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label });
  const legend = el('p', { class: 'legend' });
  lines.forEach(({ name, values }, i) => {
    const points = values.map((value, x) => value !== null && `${x},${(98 - (96 * value) / top).toFixed(1)}`);
    box.append(svg('polyline', { class: `line${i}`, points: points.filter(Boolean).join(' ') }));
    const sample = svg('svg', { viewBox: '0 0 20 4', 'aria-hidden': 'true' });
    sample.append(svg('polyline', { class: `line${i}`, points: '0,2 20,2' }));
    append(legend, [el('span', {}, sample, `${name} ${format(values.at(-1))}`)]);
  });
  append(legend, [el('span', { class: 'muted' }, `highest ${format(top)}`)]);
  return el('div', { class: 'trace' }, legend, box);
}

const line = (name, of) => ({ name, values: history.map(of) });

function traces() {
  byId('rates').replaceChildren(trace('Scheduled and acked publishes and observed deliveries per second', [
    line('scheduled', (now) => now.publishes.scheduled_per_second),
    line('acked', (now) => now.publishes.acked_per_second),
    line('delivered', (now) => now.deliveries.observed_per_second),
  ], perSecond));
  const inMs = (value) => (value === null || value === undefined ? '–' : `${formatNumber(value)} ms`);
  byId('latencies').replaceChildren(trace('p99 of ACKs and deliveries in milliseconds', [
    line('ack', (now) => now.ack?.p99_ms ?? null),
    line('delivery', (now) => now.delivery?.p99_ms ?? null),
  ], inMs));
}

let said = '';
function say(text, wrong) {
  if (text === said) return; // a screen reader is told changes only
  said = text;
  byId('state').textContent = text;
  byId('state').className = wrong ? 'notice' : 'hidden';
}

function show(now) {
  history.push(now);
  if (history.length > HISTORY) history.shift();
  document.title = `${now.workload}, ${now.phase} - muster`;
  byId('title').textContent = now.workload;
  byId('target').textContent = `on ${now.target}`;
  byId('phase').textContent = now.phase;
  byId('time').textContent = now.length_s > 0
    ? `${Math.round(now.elapsed_s)} of ${Math.round(now.length_s)} s` : `${Math.round(now.elapsed_s)} s`;
  byId('share').value = now.share;
  byId('cards').replaceChildren(...cards(now));
  traces();
  say(`The run is in its ${now.phase} phase.`);
  document.documentElement.dataset.ready = 'yes';
}

const events = new EventSource('/events');
events.onmessage = (event) => show(JSON.parse(event.data));
events.addEventListener('report', (event) => {
  events.close();
  location.replace(event.data);
});
events.addEventListener('end', (event) => {
  events.close();
  say(event.data, true);
});
events.onerror = () => say('muster does not answer: it has ended, or its host cannot be reached.', true);
