// Times of marks: layers and phases, functions, iterations, reports.

/** Times of layers and phases by process, with the distribution of the chosen one. */
function phasesPart() {
  const rows = snapshot.phases;
  if (rows.length === 0) return part('phases', 'Layers and phases', null, element('p', {}, 'No marked section has ended.'));
  const self = sum(rows, (row) => row.exclusive_ns);
  const chart = element('figure', { class: 'distribution', 'aria-live': 'polite' });
  /** @type {Column[]} */
  const columns = [
    words('Process', (row) => processName(row.pid)),
    { title: 'Layer', isText: true, key: (row) => Object.keys(LAYERS).indexOf(row.layer), cell: (row) => [swatch(row.layer), LAYERS[row.layer] ?? row.layer] },
    words('Phase', (row) => PHASES[row.phase] ?? row.phase, { key: (row) => Object.keys(PHASES).indexOf(row.phase) }),
    { title: 'Self', hint: 'Without the marked sections in them', key: (row) => row.exclusive_ns, figure: 'phases.exclusive_ns', cell: (row) => duration(row.exclusive_ns) },
    shares('%', (row) => row.exclusive_ns, self, (row) => row.layer, 'Of the self time of all'),
    times('Total', (row) => row.total_ns, 'phases.total_ns'),
    counts('Count', (row) => row.count, 'phases.count'),
    times('p50', (row) => row.p50_ns, 'phases.p50_ns'),
    times('p90', (row) => row.p90_ns, 'phases.p90_ns'),
    times('p99', (row) => row.p99_ns, 'phases.p99_ns'),
    times('max', (row) => row.max_ns, 'phases.max_ns'),
  ];
  const select = (/** @type {any} */ row) => chart.replaceChildren(...distribution(row, data.histograms[rows.indexOf(row)], `${layerAndPhase(row.layer, row.phase)}, ${processName(row.pid)}`));
  const frame = table({ caption: 'Time by process, layer and phase', columns, rows, most: 60, group: (row) => String(row.pid), select });
  // A distribution is of interest where there are some times.
  const frequent = rows.filter((/** @type {any} */ row) => row.count > 9);
  const [first] = (frequent.length > 0 ? frequent : [...rows]).sort((/** @type {any} */ one, /** @type {any} */ other) => other.exclusive_ns - one.exclusive_ns);
  // @ts-ignore: tables of choices have it.
  frame.choose(first);
  const about = 'Self is time in no deeper marked section; total follows the contract of marks. Choose a row to see the distribution of its times.';
  return part('phases', 'Layers and phases', about, element('div', { class: 'sides' }, frame, chart));
}

/** @param {any[]} rows @param {(row: any) => number} value */
function sum(rows, value) {
  return rows.reduce((sum, row) => sum + value(row), 0);
}

/** Size of the drawing of a distribution. */
const CHART = { width: 420, height: 190, left: 44, right: 14, bottom: 24, top: 22, columns: 56 };

/**
 * The distribution of a row's times over a logarithmic axis.
 * @param {any} row
 * @param {[number, number, number][]} bins
 * @param {string} name
 * @returns {Node[]}
 */
function distribution(row, bins, name) {
  const caption = element('figcaption', {}, element('strong', {}, name));
  if (bins.length === 0) return [caption, element('p', { class: 'about' }, 'None of it was recorded one by one: how its times are distributed is unknown.')];
  const middle = (/** @type {[number, number, number]} */ [low, high]) => Math.sqrt(Math.max(low, 1) * Math.max(high, 1));
  let [low, high] = [Math.max(bins[0][0], 1), bins[bins.length - 1][1]];
  const widened = Math.sqrt(Math.max(4 / (high / low), 1));
  [low, high] = [low / widened, high * widened];
  const { width, height, left, right, bottom, top, columns } = CHART;
  const share = (/** @type {number} */ ns) => Math.log(ns / low) / Math.log(high / low);
  const sums = new Array(columns).fill(0);
  for (const bin of bins) sums[Math.min(columns - 1, Math.max(0, Math.floor(share(middle(bin)) * columns)))] += bin[2];
  const most = Math.max(...sums);
  const plot = width - left - right;
  const x = (/** @type {number} */ ns) => left + share(ns) * plot;
  const y = (/** @type {number} */ count) => height - bottom - (count / most) * (height - bottom - top);
  const bars = sums.map((count, column) => count > 0 && shape('rect', { class: row.layer ?? 'plain', x: left + (column / columns) * plot, y: Math.min(y(count), height - bottom - 1), width: plot / columns - 1, height: Math.max(1, height - bottom - y(count)) }));
  const ticks = [];
  for (let decade = 10 ** Math.floor(Math.log10(low)); decade <= high; decade *= 10) {
    for (const digit of high / low > 300 ? [1] : high / low > 20 ? [1, 3] : [1, 2, 5]) {
      const ns = digit * decade;
      if (ns < low || ns > high || x(ns) > width - 24) continue;
      ticks.push(shape('line', { class: 'tick', x1: x(ns), x2: x(ns), y1: height - bottom, y2: height - bottom + 4 }), shape('text', { x: x(ns), y: height - 6, 'text-anchor': 'middle' }, tickLabel(ns)));
    }
  }
  const quantiles = /** @type {[string, number|null][]} */ ([['p50', row.p50_ns], ['p90', row.p90_ns], ['p99', row.p99_ns]]);
  let lastLabel = -Infinity;
  const lines = quantiles.flatMap(([name, ns]) => {
    if (ns === null) return [];
    const at = x(Math.max(ns, low));
    const hasRoom = at - lastLabel > 26;
    if (hasRoom) lastLabel = at;
    return [shape('line', { class: 'quantile', x1: at, x2: at, y1: top - 6, y2: height - bottom }), hasRoom && shape('text', { class: 'quantile', x: at, y: top - 10, 'text-anchor': 'middle' }, name)];
  });
  const axis = [
    shape('line', { class: 'axis', x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }),
    shape('text', { x: left - 6, y: top + 4, 'text-anchor': 'end' }, count(most)),
    shape('text', { x: left - 6, y: height - bottom, 'text-anchor': 'end' }, '0'),
  ];
  const total = bins.reduce((sum, bin) => sum + bin[2], 0);
  const label = `${plural(total, 'time')} from ${duration(row.min_ns)} to ${duration(row.max_ns)}`;
  const picture = shape('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `Distribution of ${name}: ${label}` }, axis, bars, ticks, lines);
  caption.append(element('span', {}, ` ${label}, median ${duration(row.p50_ns)}`));
  return [caption, picture];
}

/** A round time. @param {number} ns */
function tickLabel(ns) {
  for (const [unit, name] of /** @type {[number, string][]} */ ([[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']])) if (ns >= unit) return `${Math.round(ns / unit)} ${name}`;
  return `${Math.round(ns)} ns`;
}

/** A column of layers and phases, in the colour of the layer. @type {Column} */
const LAYER_PHASE = { title: 'Layer, phase', isText: true, key: (row) => `${row.layer}_${row.phase}`, cell: (row) => [swatch(row.layer), layerAndPhase(row.layer, row.phase)] };

/** A column of names from the target. @param {string} title @param {(row: any) => string} name @returns {Column} */
const names = (title, name) => ({ title, isText: true, key: name, cell: (row) => element('code', {}, visible(name(row))) });

function functionsPart() {
  if (snapshot.functions.length === 0) return null;
  const columns = [
    names('Function', (row) => row.name),
    LAYER_PHASE,
    words('Process', (row) => processName(row.pid)),
    times('Self', (row) => row.exclusive_ns, 'functions.exclusive_ns'),
    times('Total', (row) => row.total_ns, 'functions.total_ns'),
    counts('Count', (row) => row.count, 'functions.count'),
    times('p50', (row) => row.p50_ns, 'functions.p50_ns'),
    times('p99', (row) => row.p99_ns, 'functions.p99_ns'),
    times('max', (row) => row.max_ns, 'functions.max_ns'),
  ];
  const isDrawn = data.swimlane.columns.begin.length > 0;
  const about = isDrawn ? 'Select a function to show its slowest call in the swimlane.' : null;
  const select = isDrawn ? (/** @type {any} */ row) => document.dispatchEvent(new CustomEvent('find-slowest', { detail: row })) : undefined;
  return part('functions', 'Functions', about, table({ caption: 'Time by function', columns, rows: snapshot.functions, sorted: 3, most: 20, select }));
}

/** Iterations by function with the distribution of their times, and the slowest ones. */
function iterationsPart() {
  const roots = snapshot.iterations;
  if (roots.length === 0) return null;
  const chart = element('figure', { class: 'distribution', 'aria-live': 'polite' });
  /** @type {Column[]} */
  const columns = [
    names('Function', (row) => row.name),
    words('Process', (row) => processName(row.pid)),
    counts('Count', (row) => row.count, 'iterations'),
    counts('Open', (row) => row.open, 'iterations'),
    times('Mean', (row) => row.mean_ns, 'iterations'),
    times('p50', (row) => row.p50_ns, 'iterations'),
    times('p90', (row) => row.p90_ns, 'iterations'),
    times('p99', (row) => row.p99_ns, 'iterations'),
    times('max', (row) => row.max_ns, 'iterations'),
  ];
  const show = (/** @type {any} */ row) => chart.replaceChildren(...distribution(row, data.iteration_histograms[roots.indexOf(row)], `Iterations of ${visible(row.name)}, ${processName(row.pid)}`));
  const all = table({ caption: 'Iterations by function', columns, rows: roots, sorted: 2, most: 20, select: show });
  const [first] = [...roots].sort((/** @type {any} */ one, /** @type {any} */ other) => other.count - one.count);
  // @ts-ignore: tables of choices have it.
  all.choose(first);
  const slowest = roots.flatMap((/** @type {any} */ root) => root.slowest.map((/** @type {any} */ row) => ({ ...row, name: root.name })));
  /** @type {Column[]} */
  const ofSlowest = [
    names('Function', (row) => row.name),
    counts('Iteration', (row) => row.iter),
    words('In', (row) => (row.parent ? `${visible(row.parent.name)} ${count(row.parent.iter)}` : '')),
    times('Wall', (row) => row.wall_ns, 'iterations'),
    times('Total', (row) => row.total_ns, 'iterations'),
    times('Self', (row) => row.exclusive_ns, 'iterations'),
    { ...times('In no section', (row) => row.missing_ns, 'iterations'), hint: 'On any thread' },
  ];
  const select = (/** @type {any} */ row) => document.dispatchEvent(new CustomEvent('find-section', { detail: `iter=${row.iter}` }));
  const frame = table({ caption: 'Slowest iterations', columns: ofSlowest, rows: slowest, sorted: 3, most: 10, select });
  const about = 'Wall is from the first begin to the last end of what was done in an iteration, on any thread. The second table has the slowest of each function; choose a row to find it in the swimlane.';
  return part('iterations', 'Iterations', about, element('div', { class: 'sides' }, all, chart), frame);
}

/** The contract's table of each `[NN_LA_PO]`. */
function reportsPart() {
  const reports = snapshot.reports.filter((/** @type {any} */ report) => Object.keys(report.total_ns).length > 0);
  if (reports.length === 0) return null;
  const isRough = isIncomplete('reports') ? '~' : '';
  const tables = reports.slice(0, 50).map((/** @type {any} */ { starting_mark: mark, total_ns: total, self_ns: self, executions }) => {
    const phases = Object.keys(PHASES).filter((phase) => Object.values(total).some((row) => phase in row));
    const rows = [...Object.keys(LAYERS), 'LT'].filter((layer) => layer in total);
    /** @type {Column[]} */
    const columns = [
      { title: 'Layer', isText: true, cell: (layer) => [layer in LAYERS && swatch(layer), LAYERS[layer] ?? 'Largest'] },
      ...phases.map((phase) => ({
        title: PHASES[phase],
        cell: (/** @type {string} */ layer) => {
          if (total[layer][phase] === undefined) return '';
          return [element('span', { class: 'own' }, isRough + duration(self[layer]?.[phase] ?? 0)), element('span', { class: 'whole' }, isRough + duration(total[layer][phase]))];
        },
      })),
    ];
    const name = mark === '' ? 'Before any [NN_LA_PO]' : visible(mark);
    const done = Object.entries(executions).filter(([, times]) => times > 0).map(([phase, times]) => `${PHASES[phase]} ${count(times)}`);
    return [element('h3', {}, element('code', {}, name), done.length > 0 && ` executions: ${done.join(', ')}`), table({ caption: name, columns, rows })];
  });
  const about = `As the NNAPI contract counts, over all processes: self time, and total below it.${reports.length > 50 ? ` The first 50 of ${count(reports.length)}.` : ''}`;
  return part('reports', 'Reports', about, tables.flat());
}

/** What only some runs have. */
function otherParts() {
  const site = [names('Function', (row) => row.name), LAYER_PHASE, words('Process', (row) => processName(row.pid))];
  /** @type {[string, string, any[]|undefined, Column[]][]} */
  const all = [
    ['accounts', 'Accounts', snapshot.accounts, [words('Account', (row) => (row.account === null ? 'nobody' : visible(row.account))), counts('Sections', (row) => row.count), times('Self', (row) => row.exclusive_ns), times('Named', (row) => row.explicit_ns), times('Nested', (row) => row.nested_ns), times('Handed over', (row) => row.handed_over_ns), times('Threads created', (row) => row.created_ns)]],
    ['missing', 'Time in no section', snapshot.missing, [...site, counts('Roots', (row) => row.count), times('Total', (row) => row.total_ns), times('Missing', (row) => row.missing_ns), times('Most of one', (row) => row.max_missing_ns)]],
    ['groups', 'By attribute', snapshot.groups, [words('Value', (row) => `${visible(row.key)}=${visible(row.value)}`), ...site, counts('Count', (row) => row.count), times('Total', (row) => row.total_ns), times('Self', (row) => row.exclusive_ns), times('max', (row) => row.max_ns)]],
    ['threads', 'Threads', snapshot.threads, [names('Thread', (row) => row.comm), words('Id', (row) => String(row.tid), { key: (row) => row.tid }), words('Process', (row) => processName(row.pid)), times('On CPU', (row) => row.on_cpu_ns), times('Waiting for one', (row) => row.runnable_ns), times('Asleep', (row) => row.sleeping_ns), times('Uninterruptible', (row) => row.uninterruptible_ns), times('Unknown', (row) => row.unknown_ns)]],
    ['details', 'Functions of threads', snapshot.details, [...site, words('Thread', (row) => String(row.tid)), times('Self', (row) => row.exclusive_ns), times('Total', (row) => row.total_ns), counts('Count', (row) => row.count)]],
    ['counters', 'Counters', snapshot.counters, [names('Counter', (row) => row.name), words('Process', (row) => processName(row.pid)), counts('Set', (row) => row.count), counts('min', (row) => row.min), counts('max', (row) => row.max), counts('last', (row) => row.last)]],
    ['tracks', 'Asynchronous slices and instants', snapshot.tracks, [names('Name', (row) => row.name), names('Track', (row) => row.track), words('Process', (row) => processName(row.pid)), counts('Instants', (row) => row.instants), counts('Slices', (row) => row.slices), times('Time of slices', (row) => row.slices_ns)]],
  ];
  return all.map(([id, title, rows, columns]) => (rows?.length ? part(id, title, null, table({ caption: title, columns, rows, most: 15 })) : null));
}
