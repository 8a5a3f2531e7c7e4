// The command that repeats a run, made from the workload that its document records.

const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${String(text).replaceAll("'", "'\\''")}'`);

// Without rounding: 0.004586157 s is 4586157ns.
function duration(s) {
  if (Number.isInteger(s)) return `${s}s`;
  return Number.isInteger(s * 1000) ? `${s * 1000}ms` : `${Math.round(s * 1e9)}ns`;
}

export function kindOf(document) {
  const w = document.workload;
  if (document.storm || w.storm) return 'storm';
  if (w.backlog) return 'backlog';
  if (w.topology === 'ring') return 'private';
  if (w.topology === 'groups') return w.groups > 1 ? 'groups' : 'group';
  return w.topology === 'self' ? w.scenario ?? document.operations?.scenario ?? 'self' : w.topology;
}

function population(kind, w) {
  switch (kind) {
  case 'star':
  case 'queue':
    return [['senders', w.senders], ['receivers', w.clients - w.senders],
      kind === 'queue' && ['queues', w.groups], w.offline && ['receivers-online', w.clients - w.senders - w.offline]];
  case 'backlog':
    return [['senders', w.senders], ['clients', w.clients - w.senders]];
  case 'group':
    return [['clients', w.clients], ['group-senders', w.senders],
      w.offline && ['receivers-online', w.clients - w.senders - w.offline]];
  case 'groups':
    return [['groups', w.groups], ['members', w.shared_groups ? w.clients : w.clients / w.groups],
      ['group-senders', w.shared_groups ? w.senders : w.senders / w.groups], w.shared_groups && ['shared-groups'],
      w.offline && ['receivers-online', w.clients - w.senders - w.offline]];
  case 'room':
    return [['clients', w.clients], ['senders', w.senders]];
  case 'broadcast':
    return [['clients', w.clients], ['senders', w.senders]];
  default:
    return [['clients', w.clients]];
  }
}

function load(kind, w) {
  if (kind === 'hold') return [];
  const limit = w.load_model !== 'rounds' && w.publishes ? ['count', w.publishes] : null;
  if (w.load_model === 'rounds') {
    return [['rounds', w.rounds], w.interval_s ? ['interval', duration(w.interval_s)] : ['outstanding', w.outstanding]];
  }
  if (w.load_model === 'closed') {
    return [w.senders < w.clients && kind === 'echo' ? ['concurrent', w.senders * w.outstanding]
      : ['outstanding', w.outstanding], w.max_rate_per_second && ['max-rate', w.max_rate_per_second], limit];
  }
  const steps = w.steps?.map((step) => `${step.rate_per_second}@${duration(step.length_s)}`).join(',');
  return [steps ? ['steps', steps] : ['rate', w.rate_per_second],
    w.ramp_to_per_second && ['ramp-to', w.ramp_to_per_second],
    w.arrivals === 'poisson' && ['arrivals', 'poisson'], limit];
}

function storm({ storm: s }) {
  if (!s) return [];
  return [['storm-at', duration(s.at_s)], s.by === 'server' && ['storm-by', 'server'],
    ['backoff', duration(s.backoff_first_s)], ['backoff-max', duration(s.backoff_max_s)],
    ['backoff-jitter', Math.round(s.backoff_jitter * 100)]];
}

function target(document) {
  const w = document.workload;
  const protocol = document.target?.protocol ?? document.driver;
  if (!w.target) {
    return [protocol && protocol !== 'juggle' && ['driver', protocol], w.ack_policy === 'received' && ['ack', 'received'],
      w.push_window && ['push-window', w.push_window], w.rate_limits === 'on' && ['rate-limits', 'on']];
  }
  return [['target', w.target], protocol?.startsWith('shootout') && ['driver', protocol],
    w.api_url && ['api-url', w.api_url], w.navigator_url && ['navigator', w.navigator_url],
    w.app_key && ['app-key', w.app_key], w.allow_non_loopback && ['allow-non-loopback'], w.tls_insecure && ['insecure'],
    w.tls_ca_file && ['ca-file', w.tls_ca_file], w.origin && ['origin', w.origin],
    w.user && ['user', w.user], w.tls_certificate_file && ['cert', w.tls_certificate_file],
    w.tls_key_file && ['key', w.tls_key_file]];
}

const differs = (name, seconds, usual) => (seconds !== undefined && seconds !== null && seconds !== usual
  ? [name, duration(seconds)] : null);

// What only this driver reads, but for the requests of a warm-up that has none.
const options = (w) => Object.entries(w.options ?? {}).filter(([name, value]) => !(name === 'warmup-requests' && value === '0'))
  .map(([name, value]) => [`${name}=${quote(value)}`]);

const traffic = (kind, w) => (kind === 'hold' ? [] : [['payload-bytes', w.payload_bytes],
  w.delivery_grace_asked === false ? null
    : differs('delivery-grace', w.delivery_grace_s, w.delivery_grace_asked ? null : 3), differs('ack-timeout', w.ack_timeout_s, 10)]);

function rest(w) {
  return [
    w.backlog ? null : ['warmup', duration(w.warmup_s)], w.steps?.length ? null : ['duration', duration(w.duration_s)],
    differs('setup-timeout', w.setup_deadline_s, 120), differs('connect-timeout', w.connect_deadline_s, 30),
    differs('catch-up-timeout', w.catch_up_deadline_s, 60), w.keep_alive_s && ['keep-alive', duration(w.keep_alive_s)],
    w.connect_concurrency !== 20 && ['connect-concurrency', w.connect_concurrency],
    w.connect_per_second && ['connect-rate', w.connect_per_second],
    w.setup_concurrency !== 10 && ['setup-concurrency', w.setup_concurrency],
    w.local_addresses && ['local-addr', w.local_addresses],
    w.target_addresses && ['target-addr', w.target_addresses], ['workers', w.workers], ['seed', w.seed],
    w.store_messages === false && ['store-messages=false'], w.count_messages === false && ['count-messages=false'],
    w.obfuscate === false && ['plain'], w.allow_partial && ['allow-partial'],
    w.environment_label && ['environment', w.environment_label], w.database_label && ['database', w.database_label],
  ];
}

function search(document) {
  const s = document.search;
  if (!s) return [];
  return [['vary', s.vary], ['from', s.from], ['to', s.to], s.step_size && ['step-size', s.step_size],
    ['resolution', s.resolution]];
}

export function commandOf(document) {
  const w = document.workload;
  if (!w?.topology) return null;
  const kind = kindOf(document);
  const verb = document.kind ?? 'run';
  const vary = document.search?.vary;
  const objectives = document.search?.objectives ?? document.verdict?.objectives?.map(({ text }) => text) ?? [];
  const all = [
    ...search(document), ...population(kind, w), ...load(kind, w), ...storm(document), ...target(document), ...options(w),
    ...traffic(kind, w), ...rest(w),
    objectives.length && ['slo', objectives.join(',')],
  ].filter(Boolean).filter(([name]) => !(vary === name));
  const texts = all.map(([name, value]) => (value === undefined ? `--${name}` : `--${name} ${quote(String(value))}`));
  return [`muster ${verb} ${kind}`, ...texts].join(' ');
}

export function commandNote(document) {
  const w = document.workload;
  const notes = ['Made from the settings that this document records, defaults of muster left out.'];
  if (w.name !== kindOf(document)) notes.push(`The workload was started as ${w.name}, a scenario.`);
  if (w.target) notes.push('Secrets come from the environment.');
  return notes.join(' ');
}
