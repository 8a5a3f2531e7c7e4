// The HTML report in a real browser: page.mjs MUSTER REPORT_TOOL. Skips itself (77) where there is no Chromium.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import { axe, complaintsOf, launch } from './browser.mjs';
import { says, valueAt } from './figures.mjs';

const [muster, reportTool] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), 'muster-page-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
const inScratch = (name) => join(scratch, name);

// The verdict may be anything: this machine may be too busy for a valid run.
function runMuster(args, name) {
  const result = spawnSync(muster, [...args, '--quiet', '--json', inScratch(`${name}.json`)], { encoding: 'utf8' });
  assert.ok([0, 1, 3].includes(result.status), `muster ${args.join(' ')}: ${result.status} ${result.stderr}`);
  return JSON.parse(readFileSync(inScratch(`${name}.json`), 'utf8'));
}

let written = 0;
// The page with another document, put in as src/report/html.c does.
function pageWith(html, document) {
  const text = (typeof document === 'string' ? document : JSON.stringify(document)).replaceAll('<', '\\u003c');
  const file = inScratch(`page-${written++}.html`);
  writeFileSync(file, html.replace(/(id="document">)[\s\S]*?(<\/script>)/, (_, before, after) => before + text + after));
  return file;
}

const browser = await launch();
// Folded charts are not printed.
const shot = async (page) => page.evaluate(() =>
  [...document.querySelectorAll('canvas')].filter((canvas) => !canvas.closest('details')).map((canvas) => canvas.toDataURL()));

// The charts once every one of them looks different from before.
async function redrawn(page, before, what) {
  for (let i = 0; i < 100; i++) {
    const now = await shot(page);
    if (now.every((picture, chart) => picture !== before[chart])) return now;
    await page.waitForTimeout(50);
  }
  throw new Error(`not every chart has been drawn again for ${what}`);
}

// Opens a file and holds everything that it must not do against it.
async function open(file, { width = 1280, colorScheme = 'light', ready = 'yes' } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, reducedMotion: 'reduce' });
  const page = await context.newPage();
  const complaints = complaintsOf(page);
  const url = `file://${file}`;
  page.on('request', (request) => request.url() !== url && !request.url().startsWith('data:')
    && complaints.push(`request: ${request.url()}`));
  await page.goto(url);
  await page.waitForSelector('html[data-ready]');
  assert.equal(await page.getAttribute('html', 'data-ready'), ready);
  page.check = async () => {
    assert.deepEqual(complaints, []);
    await context.close();
  };
  return page;
}

const unfold = (page) => page.evaluate(() => {
  // Unfolding builds content that may hold folds again.
  for (let i = 0; i < 8; i++) for (const details of document.querySelectorAll('details:not([open])')) details.open = true;
  return new Promise((resolve) => { setTimeout(resolve, 50); });
});

async function figuresOf(page) {
  return page.evaluate(() => [...document.querySelectorAll('[data-path]')].map((element) => ({
    path: element.dataset.path, text: element.textContent, unit: element.closest('tr')?.querySelector('.unit')?.textContent ?? '',
  })));
}

// Every figure of the page against the document; returns the paths that were shown.
async function checkFigures(page, document) {
  await unfold(page);
  const figures = await figuresOf(page);
  for (const { path, text, unit } of figures) {
    const value = valueAt(document, path);
    assert.notEqual(value, undefined, `the page shows ${path}, which is not in the document`);
    assert.ok(says(text, value, { path, unit }), `${path} is ${JSON.stringify(value)}, the page says '${text}' ${unit}`);
  }
  return new Set(figures.map(({ path }) => path));
}

const tableOf = (page, id) => page.evaluate((chart) => {
  const table = document.querySelector(`#${CSS.escape(chart)} table`);
  const texts = (row) => [...row.children].map((cell) => cell.textContent);
  return { head: texts(table.querySelector('thead tr')), rows: [...table.querySelectorAll('tbody tr')].map(texts) };
}, id);

function numbersIn(document, parts) {
  const paths = [];
  const walk = (value, path) => {
    if (typeof value === 'number') paths.push(path);
    else if (value && typeof value === 'object') for (const [key, inner] of Object.entries(value)) walk(inner, `${path}.${key}`);
  };
  for (const part of parts) walk(document[part], part);
  return paths;
}

async function checkRunFigures(page, report) {
  const shown = await checkFigures(page, report);
  const owed = numbersIn(report, ['connections', 'publishes', 'deliveries', 'latency', 'rates', 'fan_out', 'bytes', 'phases'])
    .filter((path) => !/\.(overflow|negative)$|_by_code\.\d+\.code$/.test(path));
  for (const path of owed) assert.ok(shown.has(path), `the page does not show ${path}`);

  const curves = await tableOf(page, 'distribution');
  for (const [percentile, key] of [['50 %', 'p50_ns'], ['75 %', 'p75_ns'], ['90 %', 'p90_ns'], ['95 %', 'p95_ns'],
    ['99 %', 'p99_ns'], ['99.9 %', 'p99_9_ns'], ['99.99 %', 'p99_99_ns'], ['0 %', 'min_ns'], ['100 %', 'max_ns']]) {
    const row = curves.rows.find(([name]) => name === percentile);
    curves.head.slice(1).forEach((clock, i) => {
      const value = report.latency[clock.replaceAll(' ', '_')][key];
      assert.ok(says(row[i + 1], value, { path: key }), `curve of ${clock} at ${percentile}: ${row[i + 1]}, the report says ${value}`);
    });
  }
  for (const clock of ['ack', 'delivery']) {
    const { head, rows } = await tableOf(page, `time-${clock}`);
    assert.equal(rows.length, report.series.rows);
    rows.forEach((row, second) => head.slice(1).forEach((name, i) => {
      const value = report.series[clock][`${name}_ns`][second];
      assert.ok(says(row[i + 1], value), `${clock} ${name} of second ${second}: ${row[i + 1]} for ${value}`);
    }));
  }
  const { head, rows } = await tableOf(page, 'time-publishes');
  rows.forEach((row, second) => {
    const rate = report.series.scheduled[second] / Math.min(1, report.phases.measure_s - second);
    const shown = row[head.indexOf('scheduled')];
    assert.ok(says(shown, rate, { path: 'per_second' }), `publishes of second ${second}: ${shown} for ${rate}`);
  });
}

async function checkObserved(page, report) {
  const sources = report.observed.filter(({ columns, rows }) => columns.includes('cpu_cores') && rows.length);
  if (sources.length === 0) return;
  const { head, rows } = await tableOf(page, 'observed-cpu_cores');
  assert.equal(head.length, 1 + sources.length);
  const shown = rows.flatMap((row) => row.slice(1)).filter((text) => text !== '–').length;
  const known = sources.flatMap(({ columns, rows: samples }) => samples.map((row) => row[1 + columns.indexOf('cpu_cores')]))
    .filter((value) => value !== null).length;
  assert.equal(shown, known);
}

async function checkAccess(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const found = violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.slice(0, 2).map(({ html }) => html.slice(0, 160)).join(' | ')}`);
  assert.deepEqual(found, [], `axe on ${what}`);
}

async function checkNarrow(file, what) {
  const page = await open(file, { width: 375 });
  await unfold(page);
  const [width, widest] = await page.evaluate(() => [document.documentElement.scrollWidth,
    [...document.querySelectorAll('main *')].filter((element) => !element.closest('.scroll') && element.getBoundingClientRect().right > 376)
      .map((element) => `${element.tagName}.${element.className}`).slice(0, 3)]);
  assert.ok(width <= 375, `${what} is ${width} px wide on a phone: ${widest}`);
  await page.check();
}

async function checkColours(file) {
  const page = await open(file);
  const light = await shot(page);
  assert.ok(light.length >= 3);
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await redrawn(page, light, 'the dark');
  await checkAccess(page, 'the dark page');
  await page.emulateMedia({ colorScheme: 'dark', media: 'print' });
  await redrawn(page, dark, 'paper');
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(255, 255, 255)');
  assert.equal(await page.isVisible('#contents'), false);
  await page.emulateMedia({ media: 'screen' });
  assert.ok((await page.pdf({ format: 'A4' })).length > 20000);
  await page.check();
}

async function checkKeyboard(file) {
  const page = await open(file);
  const focused = () => page.evaluate(() => {
    const element = document.activeElement;
    return { tag: element.tagName, text: element.textContent, outline: getComputedStyle(element).outlineStyle };
  });
  await page.keyboard.press('Tab');
  assert.equal((await focused()).text, 'Skip to the report');
  await page.keyboard.press('Enter');
  const reached = [];
  for (let i = 0; i < 120; i++) {
    await page.keyboard.press('Tab');
    const element = await focused();
    if (element.tag === 'BODY') break;
    assert.notEqual(element.outline, 'none', `no focus to be seen on ${element.tag} ${element.text.slice(0, 40)}`);
    reached.push(`${element.tag} ${element.text}`);
    if (element.text === 'delivery' || element.text === 'Logarithmic scale') {
      const pressed = () => page.evaluate(() => document.activeElement.getAttribute('aria-pressed'));
      const before = await pressed();
      await page.keyboard.press('Space');
      assert.notEqual(await pressed(), before, `${element.text} does not answer the keyboard`);
    }
    if (element.text === 'Values as a table') {
      await page.keyboard.press('Enter');
      assert.ok(await page.evaluate(() => document.activeElement.parentElement.open));
    }
  }
  for (const wanted of ['BUTTON delivery', 'BUTTON Logarithmic scale', 'SUMMARY Values as a table', 'SUMMARY Every setting of the workload',
    'BUTTON Save the JSON document']) assert.ok(reached.includes(wanted), `the keyboard does not reach ${wanted}`);
  await page.check();
}

const HOSTILE = `</script><script>window.hacked=1</script><img src=x onerror="window.hacked=2"><!-- '"&\u2028`;

function poisoned(value) {
  if (typeof value === 'string') return value + HOSTILE;
  if (Array.isArray(value)) return value.map(poisoned);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, poisoned(inner)]));
}

async function checkHostile(html, report) {
  const document = { ...poisoned(report), server_counters: { [HOSTILE]: 3 }, [HOSTILE]: { [HOSTILE]: HOSTILE } };
  document.latency = Object.fromEntries(Object.entries(document.latency).map(([name, clock]) => [name, { ...clock, few_samples: [] }]));
  document.latency[HOSTILE] = { ...report.latency.ack };
  document.latency.constructor = { ...report.latency.ack };
  for (const content of [document, { document: HOSTILE, a: [document.workload] }]) {
    const page = await open(pageWith(html, content));
    await unfold(page);
    const found = await page.evaluate(() => [window.hacked, document.images.length, document.scripts.length, document.querySelector('main').textContent]);
    assert.equal(found[0], undefined);
    assert.equal(found[1], 0);
    assert.equal(found[2], 2);
    assert.ok(found[3].includes(HOSTILE), 'the hostile text is not shown as it is');
    await page.check();
  }
}

// The command of the page asks for the same workload.
async function checkCommand(page, report) {
  const command = (await page.textContent('#command')).trim();
  const args = execFileSync('sh', ['-c', `for word in ${command}; do printf '%s\\n' "$word"; done`], { encoding: 'utf8' }).trim().split('\n');
  assert.equal(args[0], 'muster');
  const again = runMuster(args.slice(1), 'again');
  assert.deepEqual(again.workload, report.workload);
  assert.deepEqual(again.verdict.objectives.map(({ text }) => text), report.verdict.objectives.map(({ text }) => text));
}

function rendered(json) {
  const file = json.replace(/json$/, 'html');
  execFileSync(muster, ['report', json, '--as', 'html', '--output', file]);
  return { document: JSON.parse(readFileSync(json, 'utf8')), file };
}

function compared() {
  const sample = JSON.parse(execFileSync(reportTool, ['valid'], { encoding: 'utf8', maxBuffer: 1 << 26 }));
  const files = Array.from({ length: 4 }, (_, i) => {
    const file = inScratch(`sample-${i}.json`);
    writeFileSync(file, JSON.stringify({ ...sample, run_id: `muster-000000000000000${i}` }));
    return file;
  });
  execFileSync(muster, ['compare', files[0], files[1], '--', files[2], files[3], '--json', inScratch('compare.json')], { stdio: 'ignore' });
  return rendered(inScratch('compare.json'));
}

async function checkTrials() {
  const folder = inScratch('trials/');
  const result = spawnSync(muster, ['run', 'private', '--clients', '5', '--rate', '100', '--duration', '500ms', '--warmup', '0s',
    '--trials', '2', '--output', folder, '--quiet'], { encoding: 'utf8' });
  assert.ok([0, 3].includes(result.status), result.stderr);
  const summary = readdirSync(folder).find((name) => name.endsWith('-summary.json'));
  const { document, file } = rendered(join(folder, summary));
  const page = await open(file);
  const shown = await checkFigures(page, document);
  document.metrics.forEach((metric, i) => ['median', 'min', 'max', 'count'].forEach((key) => assert.ok(shown.has(`metrics.${i}.${key}`))));
  document.trials.forEach((trial, i) => assert.ok(shown.has(`trials.${i}.exit_code`)));
  assert.equal(await page.locator('#further').count(), 0, 'trials hold what their view does not show');
  await checkAccess(page, 'trials');
  await page.check();
  await checkNarrow(file, 'trials');
}

// What is invalid is drawn otherwise, under a name of its own, and named in the tables.
async function checkInvalid(html) {
  const folder = inScratch('invalid/');
  const line = ['--clients', '5', '--rate', '100', '--duration', '300ms', '--warmup', '0s', '--quiet'];
  spawnSync(muster, ['run', 'private', ...line, '--trials', '3', '--output', folder]);
  const file = readdirSync(folder).find((name) => name.endsWith('-summary.json'));
  const trials = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  trials.trials.forEach((trial, i) => (trial.verdict.result = i === 1 ? 'invalid' : 'valid'));
  trials.metrics = [{ name: 'ack.p50', unit: 'ns', count: 2, median: 2e6, interval: [1e6, 3e6], min: 1e6, max: 3e6, values: [1e6, 9e6, 3e6], few_samples: [] }];
  const page = await open(pageWith(html, trials));
  assert.match(await page.textContent('#trials-ack-p50'), /invalid trial/);
  await unfold(page);
  assert.match(await page.textContent('#metrics'), /trial 2 \(invalid\)/);
  await page.check();

  spawnSync(muster, ['find', 'private', ...line, '--from', '100', '--to', '200', '--output', inScratch('search.json')]);
  const search = JSON.parse(readFileSync(inScratch('search.json'), 'utf8'));
  for (const step of search.steps) Object.assign(step, { outcome: 'held', why: null });
  const clean = await open(pageWith(html, search));
  assert.doesNotMatch(await clean.textContent('#capacity-delivery'), /invalid test/);
  await clean.check();
  Object.assign(search.steps.at(-1), { outcome: 'invalid', why: 'late' });
  const mixed = await open(pageWith(html, search));
  for (const chart of ['#capacity-delivery', '#capacity-ack', '#capacity-rate']) {
    assert.match(await mixed.textContent(chart), /invalid test/);
  }
  const before = await shot(mixed);
  await mixed.click('#capacity-delivery button:has-text("p99, invalid test")');
  await mixed.waitForTimeout(200);
  assert.notEqual((await shot(mixed))[0], before[0], 'the diamonds go with their name');
  await mixed.check();
}

async function checkKinds(html, report) {
  const { document, file } = compared();
  const page = await open(file);
  const shown = await checkFigures(page, document);
  document.metrics.forEach((metric, i) => metric.base && assert.ok(shown.has(`metrics.${i}.ratio`) && shown.has(`metrics.${i}.candidate.median`)));
  assert.equal(await page.isVisible('#all'), false);
  await checkAccess(page, 'a comparison');
  await page.check();
  await checkNarrow(file, 'a comparison');

  const old = structuredClone(report);
  old.schema_version = 1;
  for (const clock of Object.values(old.latency)) delete clock.histogram;
  delete old.observed;
  const first = await open(pageWith(html, old));
  await checkFigures(first, old);
  assert.match(await first.textContent('#distribution'), /holds no histograms/);
  await first.check();

  const unknown = { document: 'future', things: [{ p50_ns: 1500000, name: 'x' }], list: [{ a: { b: 1 } }], deep: { er: { est: { of: { all: [1, 2, { a: 1 }] } } } } };
  const generic = await open(pageWith(html, unknown));
  await checkFigures(generic, unknown);
  assert.match(await generic.textContent('main'), /1\.500 ms/);
  await checkAccess(generic, 'an unknown document');
  await generic.check();

  const broken = await open(pageWith(html, '{"cut": '), { ready: 'failed' });
  assert.match(await broken.textContent('main'), /cannot be read/);
  await broken.check();
}

const report = runMuster(['run', 'group', '--clients', '20', '--group-senders', '3', '--rate', '200', '--duration', '2500ms', '--warmup',
  '200ms', '--arrivals', 'poisson', '--slo', 'delivery.p90<60s,lost=0', '--html', inScratch('run.html')], 'run');
const html = readFileSync(inScratch('run.html'), 'utf8');
const runFile = inScratch('run.html');

const page = await open(runFile);
assert.match(await page.title(), new RegExp(`^group, ${report.verdict.result}, `));
assert.match(await page.textContent('#verdict .headline'), report.verdict.result === 'valid' ? /^Valid/ : /^Invalid/);
for (const reason of report.verdict.reasons) assert.ok((await page.textContent('#verdict')).includes(reason));
await checkRunFigures(page, report);
await checkObserved(page, report);
await checkAccess(page, 'a run report');
assert.equal(await page.locator('#further').count(), 0, 'a run report holds what its view does not show');
await checkCommand(page, report);
await page.check();
await checkNarrow(runFile, 'a run report');
await checkColours(runFile);
await checkKeyboard(runFile);
await checkHostile(html, report);
await checkKinds(html, report);
await checkTrials();
await checkInvalid(html);

const find = runMuster(['find', 'private', '--clients', '10', '--duration', '1s', '--warmup', '100ms', '--from', '500', '--to', '1000', '--slo', 'delivery.p50<1s,lost=0',
  '--html', inScratch('find.html')], 'find');
const answer = await open(inScratch('find.html'));
const shown = await checkFigures(answer, find);
for (const path of numbersIn(find, ['loads']).filter((one) => !one.endsWith('.load'))) assert.ok(shown.has(path), `the page does not show ${path}`);
for (const key of ['steps', 'below_capacity']) {
  find[key].forEach((step, i) => step.figures && assert.ok(shown.has(`${key}.${i}.figures.delivery.p99_ns`)));
}
assert.equal(await answer.locator('#further').count(), 0, 'a search holds what its view does not show');
await checkAccess(answer, 'a search');
await answer.check();
await checkNarrow(inScratch('find.html'), 'a search');

await browser.close();
console.log('page: run, search, trials, comparison, old, unknown, broken and hostile documents');
