// The data of the report, as the page has it, and its columns as arrays of numbers.

/**
 * @typedef {object} Count
 * @property {number} count
 * @property {number} ns
 */

/**
 * @typedef {object} Thread
 * @property {number} pid
 * @property {number} tid
 * @property {string} name Empty where it is not known.
 * @property {number} count Sections of it.
 */

/**
 * Sections in columns: by thread, and by begin in each. Times are in ns, begins from that of the run's window on.
 * @typedef {object} Sections
 * @property {number} count
 * @property {Float64Array} begin
 * @property {Float64Array} end
 * @property {Float64Array} exclusive
 * @property {Uint8Array} depth
 * @property {Uint32Array} thread
 * @property {Uint32Array} name
 * @property {Uint32Array} tag
 * @property {Uint32Array} attributes One more than the number of the attributes; 0 for none.
 * @property {Uint32Array} kind One more than the number of the class; 0 for the usual one.
 */

/**
 * @typedef {object} PowerState
 * @property {'running'|'idle'|'idle_unknown'|'offline'|'unknown'} kind
 * @property {number|null} khz
 * @property {number|null} level
 * @property {string} name
 */

/**
 * States of a cluster or a CPU, one stretch after the other.
 * @typedef {object} PowerLane
 * @property {string} cluster
 * @property {number|null} cpu
 * @property {number|null} resolution
 * @property {PowerState[]} states
 * @property {Uint32Array} state
 * @property {Float64Array} begins One more than there are stretches: the last is the end.
 */

const data = JSON.parse(/** @type {Element} */ (document.getElementById('data')).textContent ?? '');
const snapshot = data.snapshot;
/** Length of the run's window, ns. */
const windowNs = snapshot.window.end_ns - snapshot.window.begin_ns;

/** Layers in the order of the pipeline, with their words. */
const LAYERS = {
  LA: 'Application',
  LR: 'Runtime',
  LI: 'IPC',
  LD: 'Driver',
  LC: 'CPU',
  LU: 'Utility',
  LO: 'Other',
};
/** Phases in the order of the contract, with their words. */
const PHASES = {
  PO: 'Overall',
  PWU: 'Warm-up',
  PBM: 'Benchmark',
  PI: 'Initialization',
  PP: 'Preparation',
  PC: 'Compilation',
  PE: 'Execution',
  PT: 'Termination',
  PU: 'Unspecified',
  PIO: 'I/O',
  PTR: 'Transformation',
  PCO: 'Computation',
  PR: 'Results',
};

/** @returns {Sections} */
function readSections() {
  const { threads, columns } = data.swimlane;
  const count = columns.begin.length;
  const begin = new Float64Array(count);
  const end = new Float64Array(count);
  const thread = new Uint32Array(count);
  let at = 0;
  threads.forEach((/** @type {Thread} */ { count }, /** @type {number} */ number) => {
    let time = 0;
    for (const last = at + count; at < last; at += 1) {
      time += columns.begin[at];
      begin[at] = time;
      end[at] = time + columns.duration[at];
      thread[at] = number;
    }
  });
  return {
    count,
    begin,
    end,
    thread,
    exclusive: Float64Array.from(columns.exclusive),
    depth: Uint8Array.from(columns.depth),
    name: Uint32Array.from(columns.name),
    tag: Uint32Array.from(columns.tag),
    attributes: Uint32Array.from(columns.attributes),
    kind: Uint32Array.from(columns.class),
  };
}

/**
 * States one after the other.
 * @typedef {object} Stretches
 * @property {Uint32Array} state
 * @property {Float64Array} begins One more than there are stretches: the last is the end.
 */

/** @param {{begin: number, ns: number[], state: number[]}} lane @returns {Stretches} */
function readStretches({ begin, ns, state }) {
  const begins = new Float64Array(ns.length + 1);
  begins[0] = begin;
  ns.forEach((length, at) => {
    begins[at + 1] = begins[at] + length;
  });
  return { begins, state: Uint32Array.from(state) };
}

/** @returns {PowerLane[]} */
function readPowerLanes() {
  return data.power.map((/** @type {any} */ lane) => ({ ...lane, ...readStretches(lane) }));
}

/**
 * Returns the place of the first value that is larger than `value`, or the length.
 * @param {ArrayLike<number>} sorted
 * @param {number} value
 * @param {(place: number) => number} [at]
 */
function firstAbove(sorted, value, at = (place) => sorted[place]) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (at(middle) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * Whether the figures under a key of the snapshot lack what was lost.
 * @param {string} key
 */
function isIncomplete(key) {
  return snapshot.loss.incomplete.some((/** @type {string} */ known) => key === known || key.startsWith(`${known}.`));
}

/** Names of processes: those that queued jobs of devices, and those that have marks. */
const processNames = new Map(
  [...(snapshot.devices ?? []).flatMap((/** @type {any} */ ring) => ring.processes), ...snapshot.phases].filter((/** @type {any} */ row) => row.comm || row.pid === 0).map((/** @type {any} */ row) => [row.pid, row.comm || '(others)']),
);

/**
 * Returns a process by its name, as far as it is known, and its id.
 * @param {number} pid
 */
function processName(pid) {
  const name = processNames.get(pid);
  return name ? `${visible(name)} ${pid}` : `process ${pid}`;
}
