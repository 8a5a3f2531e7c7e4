// Puts the sources of the report's page and uPlot into one HTML file, and those of the live page into another:
// node build.mjs OUT LIVE_OUT
//
// The modules keep `import` and `export`, so that node and an editor understand them, and become one script by leaving
// both out. The page runs nothing but this script and this style: its content security policy names their hashes.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { Script } from 'node:vm';

// In the order in which they need each other.
const liveModules = ['format', 'dom', 'live'];
const modules = [
  'format', 'dom', 'histogram', 'percentiles', 'palette', 'chart', 'parts', 'command', 'run', 'find', 'compare', 'trials',
  'generic', 'page',
];

const read = (path) => readFileSync(new URL(path, import.meta.url), 'utf8');

function fail(message) {
  console.error(`web/build.mjs: ${message}`);
  process.exit(1);
}

function checkNames(declared, name, text) {
  for (const [, declaration] of text.matchAll(/^(?:export )?(?:async )?(?:function|const|let|class) (\w+)/gm)) {
    if (declared.has(declaration)) fail(`${declaration} is declared in ${declared.get(declaration)}.js and ${name}.js`);
    declared.set(declaration, name);
  }
}

function moduleText(declared, name) {
  const text = read(`${name}.js`);
  checkNames(declared, name, text);
  const rest = text.replace(/^import [\s\S]*?;\n/gm, '').replace(/^export /gm, '');
  const left = rest.match(/^\s*(?:import|export)\b.*$/m);
  if (left) fail(`${name}.js: only named imports and exports of declarations can be joined, not: ${left[0]}`);
  return rest.trim();
}

function ownScript(names) {
  const declared = new Map();
  return `(() => {\n'use strict';\n${names.map((name) => moduleText(declared, name)).join('\n\n')}\n})();`;
}

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

function page(template, script, style) {
  try {
    new Script(script);
  } catch (error) {
    fail(`the script of ${template} does not parse: ${error.message}`);
  }
  if (/<\/script|<!--/i.test(script)) fail(`the script of ${template} holds what would end it inside an HTML page`);
  if (/<\/style/i.test(style)) fail(`the style of ${template} holds what would end it inside an HTML page`);
  const parts = { STYLE: style, SCRIPT: script, STYLE_HASH: hash(style), SCRIPT_HASH: hash(script) };
  return read(template).replace(/@(STYLE|SCRIPT|STYLE_HASH|SCRIPT_HASH)@/g, (_, part) => parts[part]);
}

const [reportOut, liveOut] = process.argv.slice(2);
if (!liveOut) fail('usage: node build.mjs OUT LIVE_OUT');

const licence = read('node_modules/uplot/LICENSE').trim();
const uplot = read('node_modules/uplot/dist/uPlot.iife.min.js').trim();
const pageStyle = read('page.css').trim();
const report = page('page.html', `\n/*\nuPlot:\n\n${licence}\n*/\n${uplot}\n${ownScript(modules)}\n`,
  `\n${read('node_modules/uplot/dist/uPlot.min.css').trim()}\n${pageStyle}\n`);
for (const marker of ['@MUSTER_TITLE@', '@MUSTER_DOCUMENT@']) {
  if (report.split(marker).length !== 2) fail(`${marker} must stand in the page once`);
}
writeFileSync(reportOut, report);
writeFileSync(liveOut, page('live.html', `\n${ownScript(liveModules)}\n`, `\n${pageStyle}\n${read('live.css').trim()}\n`));
