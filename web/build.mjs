// Puts the page's sources and uPlot into one HTML file: node build.mjs OUT
//
// The modules keep `import` and `export`, so that node and an editor understand them, and become one script by leaving
// both out. The page runs nothing but this script and this style: its content security policy names their hashes.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { Script } from 'node:vm';

// In the order in which they need each other.
const modules = [
  'format', 'dom', 'histogram', 'percentiles', 'palette', 'chart', 'parts', 'command', 'run', 'find', 'generic', 'page',
];

const read = (path) => readFileSync(new URL(path, import.meta.url), 'utf8');

function fail(message) {
  console.error(`web/build.mjs: ${message}`);
  process.exit(1);
}

const declared = new Map();
function checkNames(name, text) {
  for (const [, declaration] of text.matchAll(/^(?:export )?(?:async )?(?:function|const|let|class) (\w+)/gm)) {
    if (declared.has(declaration)) fail(`${declaration} is declared in ${declared.get(declaration)}.js and ${name}.js`);
    declared.set(declaration, name);
  }
}

function moduleText(name) {
  const text = read(`${name}.js`);
  checkNames(name, text);
  const rest = text.replace(/^import [\s\S]*?;\n/gm, '').replace(/^export /gm, '');
  const left = rest.match(/^\s*(?:import|export)\b.*$/m);
  if (left) fail(`${name}.js: only named imports and exports of declarations can be joined, not: ${left[0]}`);
  return rest.trim();
}

const licence = read('node_modules/uplot/LICENSE').trim();
const uplot = read('node_modules/uplot/dist/uPlot.iife.min.js').trim();
const own = `(() => {\n'use strict';\n${modules.map(moduleText).join('\n\n')}\n})();`;
const script = `\n/*\nuPlot:\n\n${licence}\n*/\n${uplot}\n${own}\n`;
const style = `\n${read('node_modules/uplot/dist/uPlot.min.css').trim()}\n${read('page.css').trim()}\n`;

try {
  new Script(script);
} catch (error) {
  fail(`the script does not parse: ${error.message}`);
}
if (/<\/script|<!--/i.test(script)) fail('the script holds what would end it inside an HTML page');
if (/<\/style/i.test(style)) fail('the style holds what would end it inside an HTML page');

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const parts = { STYLE: style, SCRIPT: script, STYLE_HASH: hash(style), SCRIPT_HASH: hash(script) };
const page = read('page.html').replace(/@(STYLE|SCRIPT|STYLE_HASH|SCRIPT_HASH)@/g, (_, part) => parts[part]);
for (const marker of ['@MUSTER_TITLE@', '@MUSTER_DOCUMENT@']) {
  if (page.split(marker).length !== 2) fail(`${marker} must stand in the page once`);
}
writeFileSync(process.argv[2] ?? fail('usage: node build.mjs OUT'), page);
