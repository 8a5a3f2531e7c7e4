// Numbers for people, always with their unit; rounding as in the text report (src/report/layout.c).

export const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

const grouped = (text) => {
  const [whole, fraction] = text.split('.');
  const groups = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return fraction === undefined ? groups : `${groups}.${fraction}`;
};

export const formatCount = (value) => (isNumber(value) ? grouped(String(Math.round(value))) : '–');

// A figure that need not be whole: four significant digits at least, no needless zeros.
export function formatNumber(value) {
  if (!isNumber(value)) return '–';
  const size = Math.abs(value);
  const decimals = size >= 1000 || Number.isInteger(value) ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4;
  const text = value.toFixed(decimals);
  return grouped(decimals ? text.replace(/\.?0+$/, '') : text);
}

export function formatRate(value) {
  if (!isNumber(value)) return '–';
  return grouped(value.toFixed(Number.isInteger(value) || value >= 1000 ? 0 : value >= 100 ? 1 : 2));
}

export function formatShare(value) {
  if (!isNumber(value)) return '–';
  const percent = value * 100;
  if (percent === 0 || percent === 100) return `${percent} %`;
  // What is not all must not look like all.
  if (percent > 99.99 && percent < 100) return '>99.99 %';
  if (percent < 0.01) return '<0.01 %';
  return `${percent.toFixed(percent >= 10 && percent < 99 ? 1 : 2)} %`;
}

const latencyUnits = [{ name: 'µs', ns: 1e3 }, { name: 'ms', ns: 1e6 }, { name: 's', ns: 1e9 }];

// One unit for a row of latencies, so that they can be compared at a glance.
export function latencyUnit(typicalNs, maxNs) {
  let i = 0;
  while (i < 2 && (typicalNs >= 1000 * latencyUnits[i].ns || maxNs >= 1e7 * latencyUnits[i].ns)) i++;
  return latencyUnits[i];
}

export function formatLatencyIn(ns, unit) {
  if (!isNumber(ns)) return '–';
  const value = ns / unit.ns;
  return grouped(value.toFixed(value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 9999.95 ? 1 : 0));
}

export function formatLatency(ns) {
  if (!isNumber(ns)) return '–';
  const unit = latencyUnit(ns, ns);
  return `${formatLatencyIn(ns, unit)} ${unit.name}`;
}

// For the ticks of an axis: no digits that say nothing.
export function formatLatencyTick(ns) {
  if (ns === 0) return '0';
  const unit = ns >= 1e9 ? latencyUnits[2] : ns >= 1e6 ? latencyUnits[1] : latencyUnits[0];
  return `${grouped(String(Number((ns / unit.ns).toPrecision(4))))} ${unit.name}`;
}

export function formatCountTick(value) {
  if (value >= 1e6) return `${Number((value / 1e6).toPrecision(4))}M`;
  if (value >= 1e4) return `${Number((value / 1e3).toPrecision(4))}k`;
  return grouped(String(Number(value.toPrecision(6))));
}

const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function formatBytes(bytes) {
  if (!isNumber(bytes)) return '–';
  let value = bytes;
  let i = 0;
  for (; i < 4 && Math.abs(value) >= 1024; i++) value /= 1024;
  return `${value.toFixed(i ? 1 : 0)} ${byteUnits[i]}`;
}

export const formatSeconds = (s) => (isNumber(s) ? `${Number(s.toFixed(s < 10 ? 3 : 1))} s` : '–');

// "2026-12-01T06:06:44.854Z" as "2026-12-01 06:06:44 UTC".
export const formatTime = (time) => String(time ?? '–').replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC');

export const words = (name) => String(name).replaceAll('_', ' ');
