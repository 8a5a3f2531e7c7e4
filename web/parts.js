// What several kinds of documents show in the same way.
import { append, el, facts, figure, fold, section, sectionList, table } from './dom.js';
import {
  formatBytes, formatCount, formatLatency, formatNumber, formatRate, formatSeconds, formatShare, formatTime, words,
} from './format.js';

export function head(kind, title, details) {
  append(document.getElementById('head'), [
    el('p', { class: 'brand' }, el('b', {}, 'muster'), ` ${kind}`),
    el('h1', {}, title),
    el('p', { class: 'meta' }, details.filter(Boolean).map((detail) => el('span', {}, detail))),
  ]);
}

export function contents() {
  const nav = document.getElementById('contents');
  nav.hidden = sectionList().length < 3;
  append(nav, [el('ul', {}, sectionList().map(({ id, title }) => el('li', {}, el('a', { href: `#${id}` }, title))))]);
}

// tone: good, bad or warn. The word says it too, and the sign: colour is never alone.
const SIGNS = { good: '✓', bad: '✗', warn: '!', none: '–' };
export function banner(tone, headline, ...more) {
  return el('div', { class: `banner ${tone}` },
    el('span', { class: 'sign', 'aria-hidden': 'true' }, SIGNS[tone]),
    el('div', {}, el('p', { class: 'headline' }, headline), more));
}

// items: [label, path, text, note]
export const tiles = (items) => el('dl', { class: 'tiles' }, items.filter(Boolean).map(([label, path, text, note]) =>
  el('div', {}, el('dt', {}, label), el('dd', {}, figure(path, text), note && el('small', {}, note)))));

export function formatMeasured(measured, unit) {
  if (measured === null || measured === undefined) return 'not measurable';
  if (unit === 'ns') return formatLatency(measured);
  if (unit === 'share') return formatShare(measured);
  if (unit === 'count') return formatCount(measured);
  if (unit === 'per_second') return `${formatRate(measured)} /s`;
  return formatNumber(measured);
}

const objectiveResult = (objective) => (objective.held === null || objective.held === undefined ? 'not judged'
  : objective.held ? 'held' : 'broken');

export function mark(word, tone) {
  return el('span', { class: `mark ${tone}` }, el('span', { 'aria-hidden': 'true' }, `${SIGNS[tone]} `), word);
}

export function objectives(list, path) {
  if (!list?.length) return null;
  return table({
    caption: 'Objectives',
    columns: [{ label: 'objective', text: true }, { label: 'result', text: true }, { label: 'measured' }],
    rows: list.map((objective, i) => {
      const result = objectiveResult(objective);
      return [
        objective.text,
        mark(result, result === 'held' ? 'good' : result === 'broken' ? 'bad' : 'warn'),
        { text: formatMeasured(objective.measured, objective.unit), path: `${path}.${i}.measured` },
      ];
    }),
  });
}

export function environmentSection(document, more) {
  const { environment: e, target: t, muster } = document;
  if (!e && !t) return null;
  return section('environment', 'Environment',
    el('div', { class: 'columns' },
      t && el('div', {}, el('h3', {}, 'Server'), facts([
        ['target', t.url],
        ['protocol', t.protocol_title ?? t.protocol],
        ['server', t.embedded ? `embedded ${t.server_version ?? ''}` : t.server_version ?? 'version unknown'],
        ['host', t.shares_host ? 'shared with the generator' : 'its own'],
        ['an ACK means', t.ack_meaning],
        ['ACK policy', t.ack_policy],
        ['delivery', t.delivery_semantics],
        ['storage', t.storage ?? 'unknown'],
        ['TLS', t.tls ?? 'none'],
        ['rate limits', t.rate_limits],
      ])),
      e && el('div', {}, el('h3', {}, 'Generator’s machine'), facts([
        ['host', e.hostname],
        ['CPU', e.cpu_model],
        ['CPUs', `${e.usable_cpus} of ${e.logical_cpus} usable`],
        ['CPU limit', e.cgroup_cpus ? `${formatNumber(e.cgroup_cpus)} cores (cgroup)` : null],
        ['memory', formatBytes(e.memory_bytes)],
        ['memory limit', e.cgroup_memory_bytes ? `${formatBytes(e.cgroup_memory_bytes)} (cgroup)` : null],
        ['system', e.os],
        ['kernel', e.kernel],
        ['open files', e.nofile_soft ? `${formatCount(e.nofile_soft)} of at most ${formatCount(e.nofile_hard)}` : 'unlimited'],
        ['congestion control', e.congestion_control],
        ['muster', muster && `${muster.version}, commit ${muster.commit}${muster.dirty ? ', modified' : ''}`],
        ['environment', document.workload?.environment_label],
        ['database', document.workload?.database_label],
      ]))),
    more);
}

const who = {
  ring: (w) => `${formatCount(w.clients)} clients in a ring: each publishes to the next one`,
  pairs: (w) => `${formatCount(w.clients)} clients in pairs`,
  star: (w) => `${formatCount(w.senders)} senders to ${formatCount(w.clients - w.senders)} receivers in turn${
    w.backlog ? ', who connect when all is sent' : ''}`,
  groups: (w) => (w.groups <= 1
    ? `one group of ${formatCount(w.clients)} members, ${formatCount(w.senders)} of them send`
    : w.shared_groups
      ? `${formatCount(w.groups)} groups of the same ${formatCount(w.clients)} members, ${formatCount(w.senders)} of them send to each in turn`
      : `${formatCount(w.groups)} groups of ${formatCount(Math.floor(w.clients / w.groups))} members, ${
        formatCount(Math.floor(w.senders / w.groups))} of each send`),
  room: (w) => `one chatroom of ${formatCount(w.clients)} members, ${formatCount(w.senders)} of them send`,
  broadcast: (w) => `${formatCount(w.clients)} clients, ${formatCount(w.senders)} of them broadcast to all`,
  echo: (w) => `${formatCount(w.clients)} clients, ${w.senders < w.clients ? `${formatCount(w.senders)} of them hear their own echoes` : 'each hears its own echo'}`,
  self: (w) => `${formatCount(w.clients)} clients, each works on itself`,
  hold: (w) => `${formatCount(w.clients)} clients, held`,
};

function loadText(w) {
  if (w.topology === 'hold') return w.keep_alive_s ? `keep-alives every ${w.keep_alive_s} s` : 'the protocol’s own keep-alives';
  if (w.load_model === 'closed') return `closed loop, ${formatCount(w.outstanding)} outstanding per sender`;
  if (w.load_model === 'rounds') {
    return `${formatCount(w.rounds)} rounds, ${w.interval_s ? `each sender every ${w.interval_s} s` : 'as fast as answered'}`;
  }
  const rates = w.steps?.length ? w.steps.map((step) => formatRate(step.rate_per_second)).join(', ')
    : w.ramp_to_per_second ? `${formatRate(w.rate_per_second)} to ${formatRate(w.ramp_to_per_second)}`
      : formatRate(w.rate_per_second);
  return `${rates} publishes/s, open loop, ${w.arrivals} arrivals`;
}

// What only this driver has: "mqtt-version 5, qos 1".
const optionsText = (w) => [...Object.entries(w.options ?? {}), ...Object.entries(w.target_options ?? {})]
  .map(([name, value]) => `${name} ${value}`).join(', ') || null;

export function workloadSection(w, command, commandNote) {
  if (!w) return null;
  return section('workload', 'Workload',
    facts([
      ['name', w.name],
      ['population', who[w.topology]?.(w) ?? w.topology],
      ['offline', w.offline ? `${formatCount(w.offline)} clients stay offline` : null],
      ['load', loadText(w)],
      ['options', optionsText(w)],
      ['payload', `${formatCount(w.payload_bytes)} B`],
      ['measure phase', w.publishes ? `${formatCount(w.publishes)} publishes, or ${formatSeconds(w.duration_s)}` : formatSeconds(w.duration_s)],
      ['warm-up', w.warmup_s ? `${formatSeconds(w.warmup_s)}, not counted` : 'none'],
      ['seed', w.seed],
    ]),
    fold('Every setting of the workload', () => facts(Object.entries(w).map(([name, value]) => [words(name), settingText(value)]))),
    command && el('div', { class: 'command' },
      el('h3', { id: 'reproduce' }, 'How to reproduce'),
      el('pre', { class: 'scroll', role: 'group', 'aria-label': 'Command', id: 'command' }, command),
      commandNote && el('p', { class: 'note' }, commandNote)));
}

const settingText = (value) => (value === null ? 'not set' : typeof value === 'object'
  ? (Object.keys(value).length ? JSON.stringify(value) : 'none') : String(value));

export const limitationsSection = (list) => (list?.length
  ? section('limitations', 'Limitations', el('ul', { class: 'plain' }, list.map((text) => el('li', {}, text)))) : null);

// The document itself, to keep beside the page or to feed to other tools.
export function saveButton(text, name) {
  return el('p', { class: 'save' }, el('button', {
    type: 'button',
    onclick: () => {
      const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
      el('a', { href: url, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    },
  }, 'Save the JSON document'));
}

export { formatTime };
