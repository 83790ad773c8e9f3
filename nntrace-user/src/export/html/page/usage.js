// Device usage, from the counters of drivers.

function deviceUsagePart() {
  const usage = snapshot.device_usage;
  if (!usage) return null;
  const bytes = (/** @type {number|null} */ count) => {
    if (count === null || count === undefined) return UNKNOWN;
    const shift = count >= 2 ** 30 ? 30 : count >= 2 ** 20 ? 20 : count >= 2 ** 10 ? 10 : 0;
    return `${Math.round((10 * count) / 2 ** shift) / 10} ${{ 0: 'B', 10: 'KiB', 20: 'MiB', 30: 'GiB' }[shift]}`;
  };
  const sources = { fdinfo: 'per process', counter: 'device-wide', sampled: 'sampled' };
  const rows = usage.devices.flatMap((/** @type {any} */ device) => {
    const name = device.driver && device.driver !== device.device ? `${device.device} (${device.driver})` : device.device;
    const users = new Map(device.processes.map((/** @type {any} */ user) => [user.pid, user]));
    const who = (/** @type {any} */ user) => `${visible(user.comm) || UNKNOWN} ${user.pid}${user.is_lower_bound ? ', lower bound' : ''}`;
    const engines = device.engines.flatMap((/** @type {any} */ engine) => {
      const share = (/** @type {number|null} */ ns) => (ns === null || usage.known_ns === 0 ? null : ns / (usage.known_ns * engine.capacity));
      const about = [sources[/** @type {keyof typeof sources} */ (engine.source)], engine.capacity > 1 && `${engine.capacity} engines`, engine.implausible > 0 && plural(engine.implausible, 'implausible reading')].filter(Boolean).join(', ');
      const khz = engine.cycles !== null && engine.busy_ns > 0 ? Math.round((engine.cycles * 1e6) / engine.busy_ns) : null;
      const own = { device: name, engine: engine.engine, who: '', about, busy: engine.busy_ns, share: share(engine.busy_ns), khz, memory: null };
      const processes = engine.processes.map((/** @type {any} */ { pid, busy_ns: busy }) => {
        const user = users.get(pid) ?? { pid, comm: '', memory_bytes: null };
        return { device: name, engine: engine.engine, who: who(user), about: '', busy, share: share(busy), khz: null, memory: user.memory_bytes };
      });
      return [own, ...processes];
    });
    const counted = new Set(device.engines.flatMap((/** @type {any} */ engine) => engine.processes.map((/** @type {any} */ { pid }) => pid)));
    const others = device.processes.filter((/** @type {any} */ user) => !counted.has(user.pid));
    return [...engines, ...others.map((/** @type {any} */ user) => ({ device: name, engine: '', who: who(user), about: 'has it open', busy: null, share: null, khz: null, memory: user.memory_bytes }))];
  });
  const known = (/** @type {number|null} */ value, /** @type {(value: number) => any} */ show) => (value === null || value === undefined ? UNKNOWN : show(value));
  /** @type {Column[]} */
  const columns = [
    words('Device', (row) => visible(row.device)),
    words('Engine', (row) => visible(row.engine)),
    words('Process', (row) => row.who),
    words('Source', (row) => row.about),
    { title: 'Busy', key: (/** @type {any} */ row) => row.busy, cell: (/** @type {any} */ row) => known(row.busy, (ns) => element('span', { title: exactly(ns) }, duration(ns))) },
    { title: '%', key: (/** @type {any} */ row) => row.share, cell: (/** @type {any} */ row) => known(row.share, (share) => percent(share, 1)) },
    { title: 'Clock', key: (/** @type {any} */ row) => row.khz, cell: (/** @type {any} */ row) => (row.khz === null ? '' : frequency(row.khz)) },
    { title: 'Memory', key: (/** @type {any} */ row) => row.memory, cell: (/** @type {any} */ row) => (row.who ? bytes(row.memory) : '') },
  ];
  const about = `Driver counters, read every ${duration(usage.period_ns)}. A lower bound is of a process that closed the device between two readings.`;
  return part('device-usage', 'Device usage', about, table({ caption: 'Device usage by engine and process', columns, rows }));
}
