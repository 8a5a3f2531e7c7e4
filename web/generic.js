// Any JSON, readable: for documents and keys that have no view of their own.
import { el, facts, fold, section, table } from './dom.js';
import { formatBytes, formatCount, formatLatency, formatNumber, isNumber, words } from './format.js';

const DEPTH_MAX = 8;
const isRecord = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
const isScalar = (value) => value === null || typeof value !== 'object';

// A name carries its unit.
export function scalarText(name, value) {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (!isNumber(value)) return String(value);
  if (/_ns$/.test(name)) return formatLatency(value);
  if (/(^|_)bytes$/.test(name)) return formatBytes(value);
  return Number.isInteger(value) ? formatCount(value) : formatNumber(value);
}

const label = (name) => words(name).replace(/ ns$/, '');

function recordsTable(list, name, path) {
  const keys = [...new Set(list.flatMap((entry) => Object.keys(entry)))];
  const columns = [{ label: '#' }, ...keys.map((key) => ({ label: label(key), text: list.some((entry) => typeof entry[key] === 'string') }))];
  const rows = list.map((entry, i) => [String(i + 1), ...keys.map((key) => (
    { text: scalarText(key, entry[key]), path: `${path}.${i}.${key}` }))]);
  return table({ caption: label(name), columns, rows });
}

function list(value, name, path, depth) {
  if (value.length === 0) return el('p', { class: 'muted' }, `${label(name)}: none`);
  if (value.every(isScalar)) {
    return facts([[label(name), value.map((entry) => scalarText(name, entry)).join(', ')]]);
  }
  if (value.every((entry) => isRecord(entry) && Object.values(entry).every(isScalar))) return recordsTable(value, name, path);
  return el('div', {}, depth === 1 && el('h3', {}, label(name)), value.map((entry, i) => generic(entry, `${name} ${i + 1}`, `${path}.${i}`, depth)));
}

export function generic(value, name, path, depth = 0) {
  if (isScalar(value)) return facts([[label(name), scalarText(name, value)]]);
  if (depth >= DEPTH_MAX) return el('pre', { class: 'scroll' }, JSON.stringify(value).slice(0, 2000));
  if (Array.isArray(value)) return list(value, name, path, depth + 1);
  const entries = Object.entries(value);
  const scalars = entries.filter(([, entry]) => isScalar(entry));
  const nested = entries.filter(([, entry]) => !isScalar(entry));
  const body = () => el('div', { class: 'nested' },
    scalars.length > 0 && facts(scalars.map(([key, entry]) => [label(key), scalarText(key, entry)])),
    nested.map(([key, entry]) => generic(entry, key, path ? `${path}.${key}` : key, depth + 1)));
  return depth > 1 ? fold(label(name), body) : el('div', {}, el(depth === 0 ? 'h3' : 'h4', {}, label(name)), body());
}

// What a document holds beside the keys that its view shows; null is nothing.
export function genericSection(document, known) {
  const rest = Object.entries(document).filter(([key, value]) => !known.includes(key) && value !== null);
  if (rest.length === 0) return null;
  return section('further', 'Further', rest.map(([key, value]) => generic(value, key, key)));
}
