// Clocks of devices: time by frequency.

function deviceClocksPart() {
  const clocks = snapshot.device_clocks ?? [];
  if (clocks.length === 0) return null;
  const key = 'device_clocks';
  const rows = clocks.flatMap((/** @type {any} */ clock) => clock.frequencies.map((/** @type {any} */ time) => ({ ...time, device: clock.device, transitions: clock.transitions })));
  const columns = [
    words('Device', (row) => visible(row.device)),
    { title: 'Frequency', key: (/** @type {any} */ row) => row.hz, cell: (/** @type {any} */ row) => frequency(row.hz === null ? null : row.hz / 1000) },
    times('Time', (row) => row.ns, key),
    shares('%', (row) => row.ns, windowNs, () => 'running'),
    counts('Changes', (row) => row.transitions, key),
  ];
  return part('device-clocks', 'Device clocks', 'Time by frequency of devices other than CPUs; changes are those of the device.', table({ caption: 'Time of devices by frequency', columns, rows, most: 40 }));
}
