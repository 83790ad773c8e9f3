// The layout of the swimlane: bands from top to bottom, and rows of sections in them.

/** Heights in pixels. */
const ROW = 17;
const HEADING = 26;
const THREAD_GAP = 5;
const POWER = 46;

/**
 * A band of the swimlane: a heading, a thread with its rows, the jobs of a ring, or the states of a cluster or a CPU.
 * @typedef {object} Band
 * @property {'heading'|'thread'|'device'|'power'} kind
 * @property {number} top
 * @property {number} height
 * @property {string} label
 * @property {string} detail
 * @property {number} [thread]
 * @property {Uint32Array[]} [rows] Sections of a thread by their depth, each in order of time.
 * @property {Stretches|null} [states] States of a thread.
 * @property {DeviceLane} [device]
 * @property {PowerLane} [lane]
 */

/**
 * @typedef {object} Layout
 * @property {Band[]} bands
 * @property {number} height
 * @property {Map<number, Band>} byThread
 */

/**
 * Lays out processes in the order of the pipeline, then rings of devices, then CPUs by their clusters.
 * @param {Sections} sections
 * @param {Thread[]} threads
 * @param {(Stretches|null)[]} states Those of the threads.
 * @param {DeviceLane[]} devices
 * @param {PowerLane[]} lanes
 * @returns {Layout}
 */
function layOut(sections, threads, states, devices, lanes) {
  const ranks = Object.keys(LAYERS);
  const tagRanks = data.swimlane.tags.map((/** @type {string} */ tag) => ranks.indexOf(tag.split('_')[0]));
  let first = 0;
  const known = threads.map((thread, number) => {
    const own = { thread, number, first, ranks: new Set(), rank: ranks.length, begin: Infinity };
    for (let at = first; at < first + thread.count; at += 1) own.ranks.add(tagRanks[sections.tag[at]]);
    own.rank = Math.min(ranks.length, ...own.ranks);
    if (thread.count > 0) own.begin = sections.begin[first];
    first += thread.count;
    return own;
  });
  /** @type {Map<number, typeof known>} */
  const processes = new Map();
  for (const own of known) {
    const others = processes.get(own.thread.pid);
    if (others) others.push(own);
    else processes.set(own.thread.pid, [own]);
  }
  const order = (/** @type {any} */ one, /** @type {any} */ other) => one.rank - other.rank || one.begin - other.begin;
  const groups = [...processes].map(([pid, own]) => {
    own.sort((one, other) => order(one, other) || one.thread.tid - other.thread.tid);
    return { pid, own, rank: own[0].rank, begin: Math.min(...own.map(({ begin }) => begin)) };
  });
  groups.sort((one, other) => order(one, other) || one.pid - other.pid);

  /** @type {Band[]} */
  const bands = [];
  let top = 0;
  const add = (/** @type {Omit<Band, 'top'>} */ band, gap = 0) => {
    bands.push({ ...band, top });
    top += band.height + gap;
  };
  for (const { pid, own } of groups) {
    const layers = ranks.filter((_, rank) => own.some((thread) => thread.ranks.has(rank)));
    add({ kind: 'heading', height: HEADING, label: processName(pid), detail: layers.map((layer) => LAYERS[layer]).join(', ') });
    for (const { thread, number, first } of own) {
      const rows = rowsOf(sections, first, thread.count);
      const label = thread.name ? visible(thread.name) : thread.tid === thread.pid ? 'main' : `thread ${thread.tid}`;
      const strip = states[number] ? STRIP : 0;
      add({ kind: 'thread', height: strip + Math.max(1, rows.length) * ROW, states: states[number], label, detail: label.endsWith(String(thread.tid)) ? '' : String(thread.tid), thread: number, rows }, THREAD_GAP);
    }
  }
  if (devices.length > 0) add({ kind: 'heading', height: HEADING, label: 'Accelerators and GPUs', detail: 'running jobs' });
  for (const device of devices) add({ kind: 'device', height: ROW, label: visible(device.ring), detail: visible(device.device), device }, THREAD_GAP);
  let cluster = null;
  for (const lane of lanes) {
    if (lane.cluster !== cluster) {
      cluster = lane.cluster;
      const about = lane.cpu === null ? 'frequency up, idle depth down' : '';
      add({ kind: 'heading', height: HEADING, label: lane.cpu === null ? `cluster ${visible(cluster)}` : 'CPUs', detail: about });
    }
    const label = lane.cpu === null ? 'cluster' : `cpu${lane.cpu}`;
    add({ kind: 'power', height: POWER, label, detail: lane.cpu === null ? 'effective' : 'requested', lane });
  }
  const byThread = new Map(bands.filter(({ kind }) => kind === 'thread').map((band) => [/** @type {number} */ (band.thread), band]));
  return { bands, height: top + 6, byThread };
}

/** Where a row of a thread's sections begins, below the strip of its states. @param {Band} band @param {number} row */
const topOfRow = ({ top, states }, row) => top + (states ? STRIP : 0) + row * ROW;

/**
 * Rows of a thread's sections: one for each depth that any of them has.
 * @param {Sections} sections
 * @param {number} first
 * @param {number} count
 */
function rowsOf(sections, first, count) {
  /** @type {number[][]} */
  const byDepth = [];
  for (let at = first; at < first + count; at += 1) (byDepth[sections.depth[at]] ??= []).push(at);
  return byDepth.filter(Boolean).map((row) => Uint32Array.from(row));
}

/**
 * Returns the place in a row of the first section that ends after a time.
 * @param {Sections} sections
 * @param {Uint32Array} row
 * @param {number} time
 */
function firstEndingAfter(sections, row, time) {
  return firstAbove(row, time, (place) => sections.end[row[place]]);
}

/**
 * Returns the section of a row at a time, or the nearest one within a tolerance.
 * @param {Sections} sections
 * @param {Uint32Array} row
 * @param {number} time
 * @param {number} tolerance
 */
function sectionAt(sections, row, time, tolerance) {
  const at = firstEndingAfter(sections, row, time - tolerance);
  let best = null;
  let least = Infinity;
  for (let place = at; place < row.length && sections.begin[row[place]] <= time + tolerance; place += 1) {
    const section = row[place];
    const distance = Math.max(sections.begin[section] - time, time - sections.end[section], 0);
    if (distance < least) [best, least] = [section, distance];
    if (least === 0) break;
  }
  return best;
}

/**
 * Returns the row of a band whose section is the innermost at a time; 0 where there is none.
 * @param {Sections} sections
 * @param {Band} band
 * @param {number} time
 */
function innermostRow(sections, band, time) {
  const rows = band.rows ?? [];
  for (let row = rows.length - 1; row > 0; row -= 1) {
    if (sectionAt(sections, rows[row], time, 0) !== null) return row;
  }
  return 0;
}
