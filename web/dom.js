// Elements. Every string of a document becomes a text node or an attribute's value, never markup.

export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(3)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

// A figure that stands for one place of the document.
export const figure = (path, text) => el('span', { 'data-path': path }, text);

// Marks a figure that too few values back; it hangs, so that digits stay below each other.
export const star = (isFew) => (isFew ? el('span', { class: 'star' }, '*') : null);

export const muted = (...children) => el('span', { class: 'muted' }, children);

// rows: arrays of cells, a cell being a text, a node or {text, path, class, sort}. The first one heads its row.
export function table({ caption, columns, rows, hideCaption = false, className = '' }) {
  const head = columns.map((column) =>
    el('th', { scope: 'col', class: column.text ? 'text' : 'number', title: column.title }, column.label));
  const body = rows.map((row) => el('tr', {}, row.map((cell, i) => tableCell(cell, i, columns[i]))));
  return el('div', { class: `scroll ${className}`, role: 'group', 'aria-label': caption },
    el('table', {},
      el('caption', { class: hideCaption ? 'hidden' : undefined }, caption),
      el('thead', {}, el('tr', {}, head)),
      el('tbody', {}, body)));
}

function tableCell(cell, i, column = {}) {
  const plain = cell === null || typeof cell !== 'object' || cell instanceof Node;
  const { text, path, class: extra = '' } = plain ? { text: cell } : cell;
  const className = `${column.text ? 'text' : 'number'} ${extra}`.trim();
  return el(i === 0 ? 'th' : 'td', { scope: i === 0 ? 'row' : undefined, class: className, 'data-path': path }, text);
}

// A list of names and values; rows whose value is missing are left out.
export function facts(rows) {
  const shown = rows.filter(([, value]) => value !== undefined && value !== null && value !== '');
  return el('dl', { class: 'facts' }, shown.map(([name, value]) =>
    el('div', {}, el('dt', {}, name), el('dd', {}, value))));
}

// Content that is built when somebody opens it.
export function fold(summary, build) {
  const details = el('details', { class: 'fold' }, el('summary', {}, summary));
  details.addEventListener('toggle', () => {
    if (!details.open || details.dataset.built) return;
    details.dataset.built = '1';
    append(details, [build()]);
    markScrolling();
  });
  return details;
}

const sections = [];
export const sectionList = () => sections;
export const forgetSections = () => sections.splice(0);

export function section(id, title, ...children) {
  const present = children.flat(3).filter(Boolean);
  if (present.length === 0) return null;
  sections.push({ id, title });
  return el('section', { id, 'aria-labelledby': `${id}-title` }, el('h2', { id: `${id}-title` }, title), present);
}

// Only what really scrolls is a stop for the keyboard.
export function markScrolling() {
  for (const box of document.querySelectorAll('.scroll')) {
    if (box.scrollWidth > box.clientWidth + 1) box.setAttribute('tabindex', '0');
    else box.removeAttribute('tabindex');
  }
}
