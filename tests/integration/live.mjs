// A run that others watch: --ui follows it over Server-Sent Events and ends with its report, --metrics tells machines.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { muster, scratch } from './lib.mjs';

const small = ['--clients', '6', '--rate', '60', '--warmup', '300ms', '--duration', '2s', '--quiet'];

// Starts a run and hands over its URL as soon as muster tells it.
function watched(file, args, watch) {
  let seen;
  return muster([...args, '--output', join(scratch, file)], {
    onStart(child) {
      let text = '';
      child.stderr.on('data', (data) => {
        text += data;
        const url = text.match(/^(?:page|metrics): (http:\S+)$/m)?.[1];
        if (url && !seen) seen = watch(url);
      });
    },
  }).then(async (result) => ({ ...result, seen: await seen }));
}

// All events of a stream, until it ends.
async function follow(url) {
  const response = await fetch(url);
  assert.equal(response.headers.get('content-type'), 'text/event-stream');
  let text = '';
  for await (const chunk of response.body) text += Buffer.from(chunk).toString();
  return text.trim().split('\n\n').map((event) => ({
    name: event.match(/^event: (.*)$/m)?.[1],
    data: event.match(/^data: (.*)$/m)[1],
  }));
}

{
  const result = await watched('page.json', ['run', 'private', ...small, '--warmup', '3s', '--ui', '0'], async (url) => {
    const page = await fetch(url);
    const html = await page.text();
    const events = await follow(`${url}events`);
    const report = await fetch(new URL(events.at(-1).data, url));
    return { html, events, report: await report.text(), missing: (await fetch(`${url}nothing`).catch(() => undefined))?.status };
  });
  assert.ok([0, 3].includes(result.code), result.err); // how busy the machine is does not matter here
  const { events, html, report } = result.seen;
  assert.match(html, /EventSource\('\/events'\)/);
  assert.equal(events.at(-1).name, 'report');
  const states = events.slice(0, -1).map(({ data }) => JSON.parse(data));
  const phases = [...new Set(states.map(({ phase }) => phase))];
  for (const phase of ['warm-up', 'measure', 'grace']) assert.ok(phases.includes(phase), `${phase} in ${phases}`);
  const document = JSON.parse(readFileSync(join(scratch, 'page.json'), 'utf8'));
  const last = states.at(-1);
  assert.equal(last.publishes.acked, document.publishes.acked);
  assert.equal(last.deliveries.observed, document.deliveries.observed);
  assert.equal(last.deliveries.awaited, 0);
  assert.ok(report.includes(document.run_id), 'the page ends with the report of its run');
  console.log(`page: ${states.length} states of ${phases.join(', ')}, then the report`);
}

{
  const result = await watched('metrics.json', ['run', 'private', ...small, '--metrics', '127.0.0.1:0'], async (url) => {
    const response = await fetch(url);
    const page = await fetch(new URL('/', url));
    return { type: response.headers.get('content-type'), text: await response.text(), page: page.status };
  });
  assert.ok([0, 3].includes(result.code), result.err); // how busy the machine is does not matter here
  assert.match(result.seen.type, /^application\/openmetrics-text; version=1\.0\.0/);
  assert.ok(result.seen.text.endsWith('# EOF\n'));
  assert.match(result.seen.text, /^muster_publishes_acked_total \d+$/m);
  assert.equal(result.seen.page, 404, '--metrics has no page');
}

{
  // Half requests that hold every connection are given up, pages that never read are no hindrance, and the run goes on.
  const long = small.with(small.indexOf('2s'), '6s');
  const result = await watched('held.json', ['run', 'private', ...long, '--ui', '0'], async (url) => {
    const { port } = new URL(url);
    const hold = (text) => new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(text, resolve));
      socket.on('error', () => {}).pause();
    });
    await Promise.all(Array.from({ length: 20 }, () => hold('GET /events HTTP/1.1\r\nHost: x\r\n\r\n')));
    await Promise.all(Array.from({ length: 100 }, () => hold('GET / HTTP/1.1\r\nHost: x\r\n')));
    return (await fetch(new URL('/metrics', url))).status;
  });
  assert.ok([0, 3].includes(result.code), result.err); // how busy the machine is does not matter here
  assert.equal(result.seen, 200);
  const document = JSON.parse(readFileSync(join(scratch, 'held.json'), 'utf8'));
  assert.equal(document.publishes.acked, document.publishes.attempted);
}

{
  const holder = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => holder.once('listening', resolve));
  const cases = [
    [['--ui', String(holder.address().port)], /--ui \d+: cannot listen there: Address already in use/],
    [['--ui', '70000'], /--ui 70000: give a port, or HOST:PORT/],
    [['--ui', 'no.such.host.invalid:1'], /--ui no\.such\.host\.invalid:1: give a port/],
    [['--ui', '0', '--metrics', '0'], /--ui serves \/metrics too/],
  ];
  for (const [args, pattern] of cases) {
    const result = await muster(['run', 'private', ...small, ...args]);
    assert.equal(result.code, 2, result.err);
    assert.match(result.err, pattern);
    assert.equal(result.err.trim().split('\n').length, 1);
  }
  holder.close();
}
console.log('live: all well');
