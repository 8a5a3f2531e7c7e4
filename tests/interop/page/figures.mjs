// Whether a text of the page says what the document says: to the last digit that it shows.
const FACTORS = {
  'µs': 1e3, ms: 1e6, s: 1e9, '%': 0.01, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, '': 1, '/s': 1, '/s ': 1,
};

export const valueAt = (document, path) => {
  let value = document;
  let rest = path;
  while (rest !== '') {
    if (value === null || value === undefined) return undefined;
    // A key may hold a dot itself.
    const key = Object.keys(value).filter((name) => rest === name || rest.startsWith(`${name}.`))
      .sort((a, b) => b.length - a.length)[0] ?? (rest === 'length' ? 'length' : undefined);
    if (key === undefined) return undefined;
    value = value[key];
    rest = rest.slice(key.length + 1);
  }
  return value;
};

function ratioOf(text) {
  if (text.startsWith('×')) {
    const value = Number(text.slice(1).replaceAll(',', ''));
    return { value, step: value / 100 }; // three digits
  }
  const [, sign, number] = text.match(/^([+−±])([\d.,]+) %$/) ?? [];
  if (number === undefined) return null;
  const decimals = (number.split('.')[1] ?? '').length;
  return { value: 1 + ((sign === '−' ? -1 : 1) * Number(number.replaceAll(',', ''))) / 100, step: 10 ** -decimals / 100 };
}

function sameRatio(text, value) {
  const shown = ratioOf(text);
  return shown !== null && Math.abs(shown.value - value) <= shown.step * 0.5001;
}

// unit: of the row, where the text has none.
export function says(text, value, { path = '', unit = '' } = {}) {
  const plain = text.replace(/\*$/, '').trim();
  if (value === null) return ['–', 'not measurable', 'unlimited'].includes(plain);
  if (Array.isArray(value)) return plain.split(' to ').every((part, i) => says(part, value[i], { path: path.replace(/_interval$/, ''), unit }));
  if (typeof value === 'boolean') return plain === (value ? 'yes' : 'no');
  if (typeof value === 'string') return plain === value;
  if (/\.ratio$/.test(path)) return sameRatio(plain, value);
  if (/\.change$/.test(path)) return sameRatio(plain, 1 + value);
  if (plain === '>99.99 %') return value > 0.9999 && value < 1;
  if (plain === '<0.01 %') return value > 0 && value < 0.0001;
  const [, number, suffix] = plain.match(/^([\d,]+(?:\.\d+)?) ?(\D*)$/) ?? [];
  if (number === undefined) return false;
  const isSeconds = suffix === 's' && /_s$/.test(path);
  const factor = isSeconds ? 1 : FACTORS[suffix || (/(count|p_corrected)$/.test(path) ? '' : unit)];
  if (factor === undefined) return false;
  const decimals = (number.split('.')[1] ?? '').length;
  const shown = Number(number.replaceAll(',', ''));
  if (factor === 1 && decimals === 0 && Number.isInteger(value)) return shown === value;
  // Zeros at the end may have been left out, so a tenth of a thousandth of the figure is allowed as well.
  return Math.abs(shown * factor - value) <= Math.max(10 ** -decimals * factor * 0.5001, Math.abs(value) * 5e-4);
}
