// A cgroup that a run observes: musterd is moved into one of its own for each tree of cgroups that tells CPU time.
// A counted skip (77) where none may be made.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { run, startMusterd, stop, target } from './lib.mjs';

function makeGroup(tree, pid) {
  const folder = join(tree, `muster-test-${process.pid}`);
  try {
    mkdirSync(folder);
    writeFileSync(join(folder, 'cgroup.procs'), String(pid));
    const tells = existsSync(join(folder, 'cpuacct.usage')) ||
      readFileSync(join(folder, 'cpu.stat'), 'utf8').includes('usage_usec');
    if (tells) return folder;
  } catch {
    // Not there, or not ours to change.
  }
  return undefined;
}

function removeGroup(folder) {
  try {
    rmdirSync(folder);
  } catch {
    // Was never made.
  }
}

const trees = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified', '/sys/fs/cgroup/cpuacct'];
const server = await startMusterd(['--no-rate-limits']);
try {
  const groups = trees.map((tree) => makeGroup(tree, server.pid)).filter(Boolean);
  if (groups.length === 0) {
    console.log('no cgroup may be made here');
    process.exitCode = 77;
  } else {
    const { report, err } = await run('private', [
      '--clients', '20', '--rate', '200', '--warmup', '1s', '--duration', '2s', ...target(server),
      ...groups.flatMap((group) => ['--observe', `cgroup:${group}`]),
    ]);
    assert.ok(report, err);
    for (const group of groups) {
      const source = report.observed.find((one) => one.source === `cgroup:${group}`);
      assert.equal(source.error, null);
      assert.ok(source.rows.some((row) => row[1 + source.columns.indexOf('cpu_cores')] > 0), `${group} used no CPU`);
    }
    console.log(`observed ${groups.join(' ')}`);
  }
} finally {
  await stop(server);
  for (const tree of trees) removeGroup(join(tree, `muster-test-${process.pid}`));
}
process.exit();
