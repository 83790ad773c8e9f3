// CPUs and clusters: residency, stays in idle states, frequencies, energy.

/**
 * A state with its time in a row of the snapshot.
 * @typedef {object} StateTime
 * @property {string} id
 * @property {string} name
 * @property {string} kind Class of its colour.
 * @property {number} ns
 */

/**
 * States of a cluster or a CPU: running from the fastest down, then idle from the shallowest down, then the rest.
 * @param {any} row
 * @param {any[]} running
 * @returns {StateTime[]}
 */
function statesOf(row, running) {
  const speeds = [...running].sort((one, other) => (other.khz ?? -1) - (one.khz ?? -1));
  const states = speeds.map(({ khz, ns }) => ({ id: `running ${khz}`, name: khz === null ? 'running, frequency unknown' : `running at ${frequency(khz)}`, kind: 'running', ns }));
  const idle = [...row.idle].sort((one, other) => one.state - other.state);
  states.push(...idle.map(({ state, name, ns }) => ({ id: `idle ${state}`, name: `idle in ${visible(name) || `state ${state}`}`, kind: 'idle', ns })));
  const rest = /** @type {[string, string, string, number][]} */ ([
    ['idle_unknown', 'idle, depth unknown', 'idle faint', row.idle_unknown_ns],
    ['offline', 'offline', 'offline', row.offline_ns],
    ['unknown', 'unknown', 'unknown', row.unknown_ns],
  ]);
  states.push(...rest.filter(([, , , ns]) => ns > 0).map(([id, name, kind, ns]) => ({ id, name, kind, ns })));
  return states;
}

/**
 * How opaque states are: slower and shallower ones are paler.
 * @param {StateTime[]} states All that a cluster and its CPUs have, from the fastest and the shallowest on.
 * @returns {Map<string, string>} By their ids.
 */
function shadesOf(states) {
  const shades = new Map();
  const idle = states.filter(({ kind }) => kind === 'idle');
  idle.forEach(({ id }, level) => shades.set(id, String(0.4 + (0.6 * (level + 1)) / idle.length)));
  states.filter(({ kind }) => kind === 'running').forEach(({ id }, rank) => shades.set(id, String(Math.max(0.3, 1 - 0.2 * rank))));
  return shades;
}

/**
 * A bar of the window, divided by states.
 * @param {StateTime[]} states
 * @param {Map<string, string>} shades
 */
function residencyBar(states, shades) {
  const known = states.filter(({ ns }) => ns > 0);
  const parts = known.map(({ id, name, kind, ns }) => {
    const piece = element('span', { class: kind, title: `${name}: ${duration(ns)}, ${percent(ns, windowNs)}` });
    piece.style.flexGrow = String(ns / windowNs);
    piece.style.opacity = shades.get(id) ?? '';
    return piece;
  });
  return element('span', { class: 'residency', role: 'img', 'aria-label': known.map(({ name, ns }) => `${name} ${percent(ns, windowNs)}`).join(', ') }, parts);
}

function powerPart() {
  const { clusters, cpus } = snapshot;
  if (cpus.length === 0) return null;
  const groups = clusters.map((/** @type {any} */ cluster) => ({ cluster, cpus: cpus.filter((/** @type {any} */ cpu) => cpu.cluster === cluster.cluster) }));
  const about = 'Shares of the window. A cluster runs while any of its CPUs runs, at the highest frequency that one of these requested; it is idle while all are, as deep as the shallowest of them: both are inferred from the events of its CPUs.';
  return part('power', 'CPUs and clusters', about, element('div', { class: 'blocks' }, groups.map(clusterBlock)), idleTable(), element('div', { class: 'blocks' }, frequencyTable(), concurrencyTable()));
}

/** Residency of a cluster and of its CPUs: states down, CPUs across. @param {{cluster: any, cpus: any[]}} group */
function clusterBlock({ cluster, cpus }) {
  const units = [
    { name: 'cluster', key: 'clusters', states: statesOf(cluster, cluster.active) },
    ...cpus.map((cpu) => ({ name: `cpu${cpu.cpu}`, key: 'cpus', states: statesOf(cpu, cpu.running) })),
  ];
  /** @type {Map<string, StateTime>} */
  const all = new Map();
  for (const { states } of units) for (const state of states) if (!all.has(state.id)) all.set(state.id, state);
  const order = (/** @type {StateTime} */ { id, kind }) => (kind === 'running' ? -Number(id.split(' ')[1] || 0) - 1e3 : kind === 'idle' ? Number(id.split(' ')[1]) : 1e6);
  const rows = [...all.values()].sort((one, other) => order(one) - order(other));
  const shades = shadesOf(rows);
  const square = (/** @type {StateTime} */ { id, kind }) => {
    const square = swatch(kind);
    square.style.opacity = shades.get(id) ?? '';
    return square;
  };
  const bars = element('div', { class: 'residencies' }, units.map(({ name, states }) => [element('span', {}, name), residencyBar(states, shades)]).flat());
  /** @type {Column[]} */
  const columns = [
    { title: 'State', isText: true, cell: (state) => [square(state), state.name] },
    ...units.map(({ name, key, states }) => ({
      title: name,
      cell: (/** @type {StateTime} */ { id }) => {
        const own = states.find((state) => state.id === id);
        const isRough = isIncomplete(key) ? '~' : '';
        return own ? element('span', { title: duration(own.ns) }, isRough + percent(own.ns, windowNs)) : '';
      },
    })),
  ];
  const title = `cluster ${visible(cluster.cluster)}, CPUs ${cluster.cpus.join(', ')}`;
  return element('div', { class: 'cluster' }, element('h3', {}, title), bars, table({ caption: `Residency of ${title}`, columns, rows }));
}

/** Stays of each CPU and cluster in each idle state. */
function idleTable() {
  const of = (/** @type {any} */ row, /** @type {string} */ unit) => row.idle.map((/** @type {any} */ state) => ({ ...state, unit }));
  const rows = [...snapshot.clusters.flatMap((/** @type {any} */ row) => of(row, `cluster ${visible(row.cluster)}`)), ...snapshot.cpus.flatMap((/** @type {any} */ row) => of(row, `cpu${row.cpu}`))].filter(({ ns }) => ns > 0);
  if (rows.length === 0) return null;
  const columns = [
    words('', (row) => row.unit),
    words('Idle state', (row) => visible(row.name) || `state ${row.state}`, { key: (row) => row.state }),
    times('Time', (row) => row.ns),
    counts('Stays', (row) => row.hits),
    times('min', (row) => row.min_ns),
    times('p50', (row) => row.p50_ns, 'cpus.idle.p50_ns'),
    times('p90', (row) => row.p90_ns, 'cpus.idle.p90_ns'),
    times('p99', (row) => row.p99_ns, 'cpus.idle.p99_ns'),
    times('max', (row) => row.max_ns),
    { ...counts('Too short', (row) => row.early, 'cpus.idle.early'), hint: 'Shorter than the target residency of the state' },
    { ...counts('For deeper', (row) => row.late, 'cpus.idle.late'), hint: 'Long enough for the next deeper state' },
  ];
  return element('div', {}, element('h3', {}, 'Stays in idle states'), table({ caption: 'Stays in idle states', columns, rows, most: 30 }));
}

/** Running time by frequency: as each CPU requested it, and as its cluster ran. */
function frequencyTable() {
  const rows = snapshot.cpus.flatMap((/** @type {any} */ cpu) => {
    const speeds = [...new Set([...cpu.running, ...cpu.effective].map(({ khz }) => khz))];
    const ns = (/** @type {any[]} */ list, /** @type {number|null} */ khz) => list.find((row) => row.khz === khz)?.ns ?? 0;
    return speeds.map((khz) => ({ cpu: cpu.cpu, khz, requested: ns(cpu.running, khz), effective: ns(cpu.effective, khz) }));
  });
  if (!rows.some((/** @type {any} */ row) => row.khz !== null)) return element('p', { class: 'about' }, 'Frequencies are unknown: no event told one.');
  const columns = [
    words('CPU', (row) => `cpu${row.cpu}`, { key: (row) => row.cpu }),
    { title: 'Frequency', cell: (/** @type {any} */ row) => frequency(row.khz), key: (/** @type {any} */ row) => row.khz },
    times('Requested', (row) => row.requested, 'cpus.running'),
    { ...times('Effective', (row) => row.effective, 'cpus.effective'), hint: 'By the frequency of its cluster' },
  ];
  return element('div', {}, element('h3', {}, 'Running time by frequency'), table({ caption: 'Running time by frequency', columns, rows, most: 30 }));
}

/** How many CPUs of a cluster ran at once. */
function concurrencyTable() {
  const rows = snapshot.clusters.flatMap((/** @type {any} */ row) => row.concurrency.map((/** @type {any} */ time) => ({ ...time, cluster: row.cluster })));
  if (rows.length === 0) return null;
  const columns = [
    words('Cluster', (row) => visible(row.cluster)),
    { title: 'Running CPUs', key: (/** @type {any} */ row) => row.running_cpus, cell: (/** @type {any} */ row) => (row.running_cpus === null ? 'unknown' : count(row.running_cpus)) },
    times('Time', (row) => row.ns, 'clusters'),
    shares('%', (row) => row.ns, windowNs, () => 'running'),
  ];
  return element('div', {}, element('h3', {}, 'CPUs that ran at once'), table({ caption: 'CPUs that ran at once', columns, rows, most: 20 }));
}

function energyPart() {
  const row = snapshot.energy;
  if (!row) return null;
  const isRough = isIncomplete('energy') ? '~' : '';
  const show = (/** @type {number} */ value) => isRough + energy(value, row.unit);
  const range = row.total_max > row.total_min ? `, from ${show(row.total_min)} to ${show(row.total_max)} with the time that is unknown` : '';
  const parts = (/** @type {string} */ title, /** @type {string} */ key) => ({ title, key: (/** @type {any} */ row) => row.parts[key], cell: (/** @type {any} */ row) => show(row.parts[key]) });
  const columns = [
    words('Cluster', (row) => visible(row.cluster)),
    { title: 'Energy', key: (/** @type {any} */ row) => row.total, cell: (/** @type {any} */ row) => show(row.total) },
    { title: 'Range', cell: (/** @type {any} */ row) => (row.total_max > row.total_min ? `${show(row.total_min)} to ${show(row.total_max)}` : '') },
    parts('CPUs running', 'cpu_active'),
    parts('CPUs idle', 'cpu_idle'),
    parts('Cluster active', 'cluster_active'),
    parts('Cluster idle', 'cluster_idle'),
    parts('Wake-ups', 'wakeups'),
  ];
  const rows = [...row.clusters, { ...row, cluster: 'all' }];
  const unpriced = row.unpriced.map((/** @type {any} */ { cluster, cpu, what, ns }) => element('li', {}, `${cpu === null ? `cluster ${visible(cluster)}` : `cpu${cpu}`}, ${visible(what)}: ${duration(ns)}`));
  const notes = row.notes.map((/** @type {string} */ note) => element('p', { class: 'about' }, visible(note)));
  const about = `By the model ${visible(row.model)}${row.unit === 'J' ? '' : ', which states no unit: figures compare with each other only'}.`;
  return part(
    'energy',
    'Energy',
    about,
    element('p', { class: 'large' }, element('strong', {}, show(row.total)), range),
    table({ caption: 'Energy by cluster', columns, rows }),
    unpriced.length > 0 && [element('h3', {}, 'Time in states that the model lacks'), element('ul', {}, unpriced)].flat(),
    notes,
  );
}

/** Measured energy of power rails: beside the model's, and never added to it. */
function railsPart() {
  const measured = snapshot.rails;
  if (!measured) return null;
  const signed = (/** @type {number} */ value) => (value < 0 ? `-${energy(-value, 'J')}` : energy(value, 'J'));
  const known = (/** @type {any} */ row) => row.end_ns - row.begin_ns - row.gap_ns;
  const power = (/** @type {any} */ row) => (known(row) > 0 ? row.energy_nj / known(row) : null);
  const notes = (/** @type {any} */ row) =>
    [
      row.wraps > 0 && `wrapped ${plural(row.wraps, 'time')}`,
      row.gaps > 0 && `${plural(row.gaps, 'gap')}: without ${duration(row.gap_ns)}`,
      row.failed > 0 && `${plural(row.failed, 'reading')} failed: ${visible(row.failure ?? '')}`,
    ]
      .filter(Boolean)
      .join(', ');
  const columns = [
    words('Rail', (row) => visible(`${row.source}/${row.chip}/${row.name}`)),
    words('By', (row) => row.kind),
    { title: 'Energy', key: (/** @type {any} */ row) => row.energy_nj, cell: (/** @type {any} */ row) => signed(row.energy_nj * 1e-9) },
    { title: 'Mean power', key: power, cell: (/** @type {any} */ row) => (power(row) === null ? '' : signed(power(row) ?? 0).replace('J', 'W')) },
    { title: 'Time', key: known, cell: (/** @type {any} */ row) => duration(known(row)) },
    { title: 'Readings', key: (/** @type {any} */ row) => row.readings, cell: (/** @type {any} */ row) => count(row.readings) },
    words('Notes', notes),
  ];
  const unreadable = measured.unreadable.map((/** @type {any} */ { rail, reason }) => element('li', {}, `${visible(rail)}: ${visible(reason)}`));
  return part(
    'rails',
    'Measured rails',
    'What sensors of the host measured. Rails may overlap, and are in no sum.',
    measured.rails.length > 0 && table({ caption: 'Measured energy of power rails', columns, rows: measured.rails }),
    unreadable.length > 0 && [element('h3', {}, 'Rails that cannot be read'), element('ul', {}, unreadable)].flat(),
  );
}
