// The page that follows a run, in a real browser: live.mjs MUSTER.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import { axe, complaintsOf, launch } from './browser.mjs';

const [muster] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), 'muster-live-'));
const browser = await launch();
const report = join(scratch, 'report.json');
const run = spawn(muster, ['run', 'group', '--clients', '10', '--rate', '50', '--warmup', '1s', '--duration', '6s', '--ui', '0',
  '--quiet', '--output', report], { stdio: ['ignore', 'ignore', 'pipe'] });
process.on('exit', () => {
  run.kill('SIGKILL');
  rmSync(scratch, { recursive: true, force: true });
});
const ended = new Promise((resolve) => run.on('close', resolve));
const url = await new Promise((resolve, reject) => {
  let text = '';
  run.stderr.on('data', (data) => {
    text += data;
    const match = text.match(/^page: (http:\S+)$/m);
    if (match) resolve(match[1]);
  });
  ended.then(() => reject(new Error(`muster ended early: ${text}`)));
});

const page = await (await browser.newContext({ viewport: { width: 375, height: 800 }, colorScheme: 'dark' })).newPage();
const complaints = complaintsOf(page);
await page.goto(url);
await page.waitForFunction(() => document.getElementById('phase')?.textContent === 'measure', undefined, { timeout: 20000 });

const cards = await page.locator('.card').allInnerTexts();
assert.deepEqual(cards.map((text) => text.split('\n')[0]), ['Connections', 'Publishes', 'Deliveries', 'Latency of the last second']);
assert.match(cards[0], /10 of 10/);
assert.equal(await page.locator('#rates polyline, #latencies polyline').count() > 0, true);
assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 375), 'the page is too wide for a phone');
await page.evaluate(axe);
const found = await page.evaluate(() => window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa'] }));
assert.deepEqual(found.violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);

// It changes by itself, and the report takes its place.
const before = await page.locator('#content').innerText();
await page.waitForFunction((text) => document.getElementById('content')?.innerText !== text, before);
await page.waitForURL(/\/report$/, { timeout: 30000 });
await page.waitForFunction(() => document.documentElement.dataset.ready === 'yes');
const document = JSON.parse(readFileSync(report, 'utf8'));
assert.match(await page.locator('body').innerText(), new RegExp(document.run_id));
assert.ok([0, 3].includes(await ended)); // how busy the machine is does not matter here
assert.deepEqual(complaints, []);
await browser.close();
console.log(`live page: followed ${document.run_id} to its report`);
