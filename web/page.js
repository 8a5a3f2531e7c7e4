// Reads the document of this page and shows it by its kind.
import { startCharts } from './chart.js';
import { append, el, forgetSections, markScrolling, section } from './dom.js';
import { generic } from './generic.js';
import { renderCompare } from './compare.js';
import { renderFind } from './find.js';
import { contents, head, saveButton } from './parts.js';
import { renderRun } from './run.js';
import { renderTrials } from './trials.js';

function kindOfDocument(content) {
  if (content.document) return content.document;
  if (content.kind) return content.kind;
  return content.run_id && content.latency ? 'run' : 'unknown';
}

const RENDERERS = { run: renderRun, find: renderFind, calibrate: renderFind, compare: renderCompare, trials: renderTrials };

function renderUnknown(main, content, trouble) {
  const kind = kindOfDocument(content);
  document.getElementById('head').replaceChildren();
  head('document', kind === 'unknown' ? 'A document' : kind, []);
  append(main, [
    trouble && el('p', { class: 'notice' }, `This document is not as expected (${trouble}), so it is shown as it is.`),
    section('all', 'Contents', Object.entries(content).map(([key, value]) => generic(value, key, key))),
  ]);
}

async function render(main, content) {
  const renderer = RENDERERS[kindOfDocument(content)];
  if (!renderer) return renderUnknown(main, content);
  try {
    await renderer(main, content);
  } catch (error) {
    main.replaceChildren();
    forgetSections();
    renderUnknown(main, content, error.message);
  }
}

async function start() {
  const main = document.getElementById('content');
  const text = document.getElementById('document').textContent;
  let content;
  try {
    content = JSON.parse(text);
    if (content === null || typeof content !== 'object') throw new Error('it is not an object');
  } catch (error) {
    append(main, [el('p', { class: 'notice' }, `The document in this page cannot be read: ${error.message}`)]);
    document.documentElement.dataset.ready = 'failed';
    return;
  }
  await render(main, content);
  contents();
  append(main, [saveButton(text, `${content.run_id ?? content.id ?? 'muster'}.json`)]);
  startCharts();
  markScrolling();
  window.addEventListener('resize', markScrolling);
  document.documentElement.dataset.ready = 'yes';
}

start();
