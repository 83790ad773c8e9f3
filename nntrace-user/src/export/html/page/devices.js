// Jobs of accelerators and GPUs: their lanes, and the table of who queued them.

/**
 * Jobs of a ring, in columns.
 * @typedef {object} DeviceLane
 * @property {string} device Empty where it is not known.
 * @property {string} ring
 * @property {(number|null)[]} process
 * @property {Float64Array} begin
 * @property {Float64Array} end
 * @property {(number|null)[]} waiting
 */

/** @returns {DeviceLane[]} */
function readDeviceLanes() {
  return data.devices.lanes.map((/** @type {any} */ lane) => ({
    ...lane,
    begin: Float64Array.from(lane.begin),
    end: Float64Array.from(lane.begin, (begin, at) => begin + lane.running[at]),
  }));
}

/** The name of a ring with that of its device. @param {{device: string|null, ring: string}} lane */
function ringName({ device, ring }) {
  return device && device !== ring ? `${visible(device)} ${visible(ring)}` : visible(ring);
}

/** @param {number|null} pid */
function queuedBy(pid) {
  return pid === null ? 'queued before the trace' : processName(pid);
}

/**
 * @param {Scene} scene
 * @param {DeviceLane} lane
 * @param {number} top
 */
function paintDevice(scene, lane, top) {
  const { context, gutter, view } = scene;
  let covered = -1;
  for (let job = firstAbove(lane.end, view.begin); job < lane.end.length && lane.begin[job] < view.end; job += 1) {
    const left = xOf(scene, lane.begin[job]);
    const right = xOf(scene, lane.end[job]);
    if (right <= covered) continue;
    const wide = Math.max(right - left, 1);
    covered = Math.max(covered, Math.ceil(left + wide) - (wide > 2 ? 1 : 0));
    context.fillStyle = colours.LD;
    context.fillRect(left, top + 1, wide > 3 ? wide - 0.5 : wide, ROW - 2);
    if (wide > 26) {
      const from = Math.max(left, gutter) + 4;
      context.fillStyle = colours['on-section'];
      context.fillText(fitted(context, queuedBy(lane.process[job]), left + wide - from - 4), from, top + ROW / 2 + 0.5);
    }
  }
}

/**
 * A job at a time, in words; `null` where the ring had none.
 * @param {DeviceLane} lane
 * @param {number} time
 */
function jobAt(lane, time) {
  const job = firstAbove(lane.end, time);
  if (job >= lane.end.length || lane.begin[job] > time) return null;
  const waiting = lane.waiting[job];
  return `${ringName(lane)}: ${queuedBy(lane.process[job])}, ran ${duration(lane.end[job] - lane.begin[job])}${waiting === null ? '' : ` after ${duration(waiting)} in the queue`}`;
}

function devicesPart() {
  const devices = snapshot.devices ?? [];
  if (devices.length === 0) return null;
  const key = 'devices';
  const rows = devices.flatMap((/** @type {any} */ ring) =>
    ring.processes.flatMap((/** @type {any} */ row) => {
      const own = { ...row, name: ringName(ring), section: '', total: row.latency };
      const sections = row.sections.map((/** @type {any} */ section) => ({ ...section, pid: row.pid, name: ringName(ring), section: `${section.layer}_${section.phase}: ${visible(section.function)}`, total: {} }));
      return [own, ...sections];
    }),
  );
  /** @type {Column[]} */
  const columns = [
    words('Ring', (row) => row.name),
    words('Queued by', (row) => queuedBy(row.pid)),
    words('Section', (row) => row.section),
    counts('Jobs', (row) => row.jobs, key),
    times('Running', (row) => row.running_ns, key),
    shares('%', (row) => row.running_ns, windowNs, () => 'running'),
    times('Waiting', (row) => row.waiting_ns, key),
    { ...times('Behind', (row) => row.behind_others_ns, key), hint: 'Part of the waiting time in which the ring ran jobs of other processes' },
    { ...times('Blocked', (row) => row.blocked_ns, key), hint: 'Waiting for fences that jobs depend on' },
    { ...times('p50', (row) => row.total.p50_ns, key), hint: 'From when a job was queued until it was done' },
    times('p99', (row) => row.total.p99_ns, key),
    times('max', (row) => row.total.max_ns, key),
  ];
  const notes = devices.flatMap((/** @type {any} */ ring) => [
    ring.lost > 0 && `${ringName(ring)}: missing events of ${plural(ring.lost, 'job')}, ${duration(ring.lost_ns)}.`,
    ring.out_of_order > 0 && `${ringName(ring)}: ${plural(ring.out_of_order, 'job')} completed before an older one; the oldest is assumed to run.`,
  ]);
  if (data.devices.left_out > 0) notes.push(`The ${count(data.devices.left_out)} shortest jobs are not drawn.`);
  const about = 'A job waits for its fences, then for its ring, then runs. The oldest job handed to a ring is assumed to run.';
  return part('devices', 'Accelerators and GPUs', about, table({ caption: 'Jobs by ring, process and section', columns, rows }), notes.filter(Boolean).map((/** @type {string} */ note) => element('p', { class: 'about' }, note)));
}
