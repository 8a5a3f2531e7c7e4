// Manual pages and shell completions out of what the programs say of themselves, so that they never tell another story:
// node manuals.mjs MUSTER MUSTERD OUT_FOLDER
//
// A help text is: usage lines, paragraphs, headings that end in ':' at the margin, and lines "  --name VALUE   text".
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

const [muster, musterd, out] = process.argv.slice(2);
if (!out) {
  console.error('usage: node manuals.mjs MUSTER MUSTERD OUT_FOLDER');
  process.exit(2);
}

const ask = (program, ...args) => execFileSync(program, args, { encoding: 'utf8' });
const version = ask(muster, 'version').match(/^muster (\S+)/)[1];
const overview = ask(muster, 'help');
const commands = [...overview.matchAll(/^ {2}([a-z]+) +(\S.*)$/gm)].map(([, name, help]) => ({ name, help }));
const workloads = ['run', 'ricochet'].flatMap((command) =>
  [...ask(muster, 'help', command).matchAll(/^ {2}([a-z][a-z-]*) {2,}/gm)].map(([, name]) => name));
const presets = ask(muster, 'scenarios').split('\n').map((line) => line.match(/^ {0,2}([a-z][a-z0-9-]+) {2,}/)?.[1])
  .filter(Boolean);
const drivers = JSON.parse(ask(muster, 'drivers', '--json')).drivers.map(({ name }) => name);
const listed = (command, heading) => [...ask(muster, 'help', command).split(heading)[1].split(/^[A-Z]/m)[0]
  .matchAll(/^ {2}([a-z][a-z-]*) {2,}/gm)].map(([, name]) => name);
const forms = listed('report', 'Forms:'), scenarios = listed('ricochet', 'Scenarios, and');

// What `muster COMMAND` takes; commands without help of their own have none.
function helpOf(name) {
  if (name === 'run') return `${ask(muster, 'help', 'run').split('\n\n').slice(0, 2).join('\n\n')}\n${ask(muster, 'help', 'run', 'all')}`;
  const text = ask(muster, 'help', name);
  return /^Usage: muster COMMAND/m.test(text) ? '' : text;
}

// --- options ---

const optionLine = /^ {2}(-{1,2}[a-zA-Z].*?)(?: {2,}(.*))?$/;

function optionsOf(text) {
  const options = new Map();
  let heading = '';
  for (const line of text.split('\n')) {
    if (/^\S.*$/.test(line)) heading = line.replace(/:$/, '');
    const match = line.match(optionLine);
    if (!match) continue;
    for (const part of match[1].split(/, (?=-)/)) {
      const [, name, value] = part.match(/^(-{1,2}[^ =[]+)(?:[ =[](.*))?$/);
      options.set(name, { name, value, help: match[2] ?? '', heading });
    }
  }
  return [...options.values()];
}

// --- manual pages ---

const roff = (text) => text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replace(/^([.'])/, '\\&$1');

function roffBody(text) {
  const lines = [];
  let inOption = false;
  for (const line of text.split('\n')) {
    const option = line.match(optionLine) ?? line.match(/^ {2}([A-Za-z][\w-]*(?: \.{3})?) {2,}(.*)$/);
    if (/^Usage: /.test(line) || /^ {7}muster/.test(line)) continue;
    if (/^[A-Z](?:[^.]|\.{3})*$/.test(line) && (/:$/.test(line) || /^[A-Z][a-z]+$/.test(line))) {
      lines.push(`.SH "${roff(line.replace(/:$/, '').toUpperCase()).replaceAll('"', '')}"`);
      inOption = false;
    } else if (option) {
      lines.push('.TP', `.B ${roff(option[1])}`, roff(option[2] ?? ''));
      inOption = true;
    } else if (inOption && /^ {10,}\S/.test(line)) {
      lines.push(roff(line.trim()));
    } else if (line.trim() === '') {
      if (inOption || lines.at(-1) !== '.PP') lines.push('.PP');
      inOption = false;
    } else {
      if (inOption) lines.push('.PP');
      inOption = false;
      lines.push(roff(line.trim()));
    }
  }
  return lines.filter((line, i) => line !== '.PP' || (i + 1 < lines.length && !/^\.(SH|PP)/.test(lines[i + 1])))
    .filter(Boolean).join('\n');
}

function manual(name, section, title, usage, body, more) {
  return `.TH ${name.toUpperCase()} ${section} "" "muster ${version}" "muster"
.SH NAME
${name} \\- ${roff(title)}
.SH SYNOPSIS
${usage.map((line) => `.B ${roff(line)}`).join('\n.br\n')}
.SH DESCRIPTION
${body}
${more}`.replace(/\n{2,}/g, '\n').replace(/\n?$/, '\n');
}

const usageOf = (text) => [...text.matchAll(/^(?:Usage: | {7})(musterd?\b.*)$/gm)].map(([, line]) => line);

const environment = `.SH ENVIRONMENT
.TP
.B MUSTER_APP_SECRET
secret of the target's app, for signed set\\-up calls
.TP
.B MUSTER_APP_KEY
as \\-\\-app\\-key
.TP
.B MUSTER_PASSWORD
of \\-\\-user
`;
const seeAlso = (names) => `.SH SEE ALSO\n${names.map((name) => `.BR ${roff(name)} (1)`).join(',\n')}\n`;

const documented = commands.filter(({ name }) => helpOf(name)).map(({ name }) => `muster-${name}`);
const pages = new Map([['muster.1', manual('muster', 1, 'does your real-time messaging server pass muster?',
  ['muster COMMAND [options]'], roffBody(overview), environment + seeAlso([...documented, 'musterd']))]]);
for (const { name, help } of commands) {
  const text = helpOf(name);
  if (!text) continue;
  pages.set(`muster-${name}.1`, manual(`muster-${name}`, 1, help.replace(/: `.*$/, ''), [...new Set(usageOf(text))],
    roffBody(text), environment + seeAlso(['muster'])));
}
const serverHelp = ask(musterd, '--help');
pages.set('musterd.1', manual('musterd', 1, 'messaging server with production semantics, compatible with JuggleIM',
  usageOf(serverHelp), roffBody(serverHelp), seeAlso(['muster'])));

// --- completions ---

const choices = (value) => (value && /^[a-z0-9.]+(\|[a-z0-9.]+)+$/.test(value) ? value.split('|') : undefined);
const isPath = (value) => /PATH|FILE|FOLDER/.test(value ?? '');
const isRun = (name) => ['run', 'plan', 'find', 'calibrate'].includes(name);

function completed(name) {
  const own = optionsOf(helpOf(name));
  const run = isRun(name) && name !== 'run' ? optionsOf(helpOf('run')) : [];
  const seen = new Set(own.map((option) => option.name));
  return [...own, ...run.filter((option) => !seen.has(option.name))];
}

const topics = ['all', ...ask(muster, 'help', 'run').match(/one of the groups\n([\s\S]*?)\n\n/)[1].trim().split(/\s+/)];
const known = { '--driver': drivers, '--kind': workloads, '--as': forms, '-protocol': scenarios };
const valuesOf = (option) => choices(option.value) ?? known[option.name];

function bash() {
  const cases = commands.map(({ name }) => `    ${name}) words="${completed(name).map((o) => o.name).join(' ')}" ;;`);
  const values = new Map();
  for (const option of [...commands.flatMap(({ name }) => completed(name)), ...optionsOf(serverHelp)]) {
    const words = valuesOf(option);
    if (words) values.set(option.name, words.join(' '));
    else if (option.value && !values.has(option.name)) values.set(option.name, isPath(option.value) ? 'FILE' : '');
  }
  const arms = [...values].map(([name, words]) => (words === 'FILE'
    ? `    ${name}) COMPREPLY=($(compgen -f -- "$2")); return 0 ;;`
    : `    ${name}) COMPREPLY=($(compgen -W "${words}" -- "$2")); return 0 ;;`));
  return `# bash completion of muster and musterd; made by packaging/manuals.mjs.
_muster_value() {
  case $1 in
${arms.join('\n')}
  esac
  return 1
}

_muster() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} words
  compopt -o filenames 2>/dev/null
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(' ')}" -- "$current"))
    return
  fi
  _muster_value "$previous" "$current" && return
  case \${COMP_WORDS[1]} in
    help)
      words="${commands.map(({ name }) => name).join(' ')}"
      [ "$COMP_CWORD" -eq 2 ] || words=""
      if [ "$COMP_CWORD" -eq 3 ] && [ "\${COMP_WORDS[2]}" = run ]; then words="${topics.join(' ')}"; fi ;;
${cases.filter((line) => !/^ {4}help\)/.test(line)).join('\n')}
  esac
  case \${COMP_WORDS[1]} in
    ${commands.map(({ name }) => name).filter(isRun).join(' | ')}) [ "$COMP_CWORD" -ne 2 ] || words="$words ${[...workloads, ...presets].join(' ')}" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  case \${COMP_WORDS[1]} in help | scenarios | drivers | version) return ;; esac
  case $current in -*) ;; *) COMPREPLY+=($(compgen -f -- "$current")) ;; esac
}

_musterd() {
  local current=\${COMP_WORDS[COMP_CWORD]}
  _muster_value "\${COMP_WORDS[COMP_CWORD - 1]}" "$current" && return
  COMPREPLY=($(compgen -W "${optionsOf(serverHelp).map((o) => o.name).join(' ')}" -- "$current"))
}

complete -F _muster muster
complete -F _musterd musterd
`;
}

const zshText = (text) => text.replace(/[[\]\\:'"`$]/g, (c) => (c === "'" ? "'\\''" : c === '`' || c === '"' || c === '$' ? c : `\\${c}`));

function zshOption(option) {
  const words = valuesOf(option);
  const action = words ? `(${words.join(' ')})` : isPath(option.value) ? '_files' : '';
  const value = option.value ? `:${zshText(option.value)}:${action}` : '';
  return `'*${option.name}[${zshText(option.help)}]${value}'`;
}

function zsh() {
  const described = commands.map(({ name, help }) => `    '${name}:${zshText(help)}'`);
  const arms = commands.map(({ name }) => {
    const options = completed(name).map(zshOption);
    const first = isRun(name) ? [`'1:workload:(${[...workloads, ...presets].join(' ')})'`]
      : name === 'help' ? [`'1:command:(${commands.map((c) => c.name).join(' ')})'`, `'2:group of options:(${topics.join(' ')})'`] : [];
    return `    ${name}) _arguments ${[...options, ...first, "'*:file:_files'"].join(' \\\n      ')} ;;`;
  });
  return `#compdef muster musterd
# zsh completion of muster and musterd; made by packaging/manuals.mjs.
_muster_commands() {
  local -a known
  known=(
${described.join('\n')}
  )
  _describe command known
}

_muster() {
  if [[ $service == musterd ]]; then
    _arguments ${optionsOf(serverHelp).map(zshOption).join(' \\\n      ')}
    return
  fi
  if (( CURRENT == 2 )); then
    _muster_commands
    return
  fi
  local name=$words[2]
  shift words
  (( CURRENT-- ))
  case $name in
${arms.join('\n')}
  esac
}

_muster "$@"
`;
}

function write(folder, name, text) {
  mkdirSync(join(out, folder), { recursive: true });
  writeFileSync(join(out, folder, name), text);
}
for (const [name, text] of pages) write('man/man1', name, text);
write('bash-completion/completions', 'muster', bash());
write('bash-completion/completions', 'musterd', '. "${BASH_SOURCE[0]%/*}/muster"\n');
write('zsh/vendor-completions', '_muster', zsh());
