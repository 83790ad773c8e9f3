// The head of the report: what was measured, and what is not right with it.

/** @returns {HTMLElement} */
function reportHead() {
  const { host, window: { begin_ns: begin, clock }, source, tool } = snapshot;
  const began = data.began_ns === null ? null : new Date(data.began_ns / 1e6);
  /** @type {[string, string|null][]} */
  const facts = [
    ['Window', `${duration(windowNs)}, from ${(begin / 1e9).toFixed(6)} s of ${clock === 'trace' ? "the trace's clock" : 'CLOCK_MONOTONIC'}`],
    ['Began', began && began.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })],
    ['Host', [data.host_name && visible(data.host_name), host.cpus > 0 && plural(host.cpus, 'CPU'), visible(host.machine)].filter(Boolean).join(', ')],
    ['Kernel', visible(host.kernel) || null],
    ['Source', source.kind === 'replay' ? 'replay' : `live, marks by ${source.marks}`],
    ['Sections', count(data.swimlane.all.count)],
  ];
  const shown = facts.filter(([, text]) => text);
  return element(
    'header',
    {},
    element('p', { class: 'tool' }, `${tool.name} ${tool.version}`),
    element('h1', {}, visible(data.title) || 'Report'),
    data.headline.map((/** @type {string} */ line) => element('p', { class: 'headline' }, visible(line))),
    element('dl', { class: 'facts' }, shown.map(([name, text]) => element('div', {}, element('dt', {}, name), element('dd', {}, text)))),
    alerts(),
  );
}

/** What a reader has to know before he believes a figure. */
function alerts() {
  const { loss, notes, diagnostics, verify } = snapshot;
  const dropped = loss.records_dropped + (loss.records_unreadable ?? 0);
  const lines = [];
  if (dropped > 0 || loss.at_least) {
    lines.push(element('p', { class: 'loss' }, `${loss.at_least ? 'At least ' : ''}${plural(dropped, 'record')} lost.`));
  }
  if (loss.incomplete.length > 0) {
    lines.push(element('p', {}, `Figures with ~ lack what was lost: ${loss.incomplete.join(', ')}. All others are exact.`));
  }
  const summed = Object.entries(loss.summed ?? {}).map(([table, rows]) => `${table} ${count(/** @type {number} */ (rows))}`);
  if (summed.length > 0) lines.push(element('p', {}, `Rows without room (--memory): ${summed.join(', ')}.`));
  if (verify && !verify.passes) lines.push(element('p', { class: 'loss' }, "Totals differ from the kernel's."));
  diagnostics.forEach((/** @type {any} */ { kind, count: times, example }, /** @type {number} */ number) => {
    const place = data.diagnostic_places[number];
    lines.push(element('p', {}, `${kind.replaceAll('_', ' ')}: ${count(times)}${place ? `, the first ${place}` : ''}`, example ? element('code', {}, ` ${visible(example)}`) : null));
  });
  for (const note of notes) lines.push(element('p', {}, visible(note)));
  if (lines.length === 0) return null;
  const isLoss = dropped > 0 || loss.at_least || loss.incomplete.length > 0;
  const summary = element('summary', {}, isLoss ? 'Losses and notes' : 'Notes', element('span', { class: 'count' }, count(lines.length)));
  return element('details', { class: isLoss ? 'alerts lossy' : 'alerts', open: isLoss || lines.length <= 3 }, summary, lines);
}
