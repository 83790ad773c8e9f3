// The report: its parts, one after the other.

/** What measuring cost. */
function reportFoot() {
  const { overhead, source, tool } = snapshot;
  const texts = [
    `${plural(overhead.marks, 'mark')}${overhead.ns_per_mark ? ` at ${duration(overhead.ns_per_mark)} each` : ''}`,
    `${plural(overhead.power_events, 'power event')}${overhead.ns_per_power_event ? ` at ${duration(overhead.ns_per_power_event)} each` : ''}`,
    `CPU time of the profiler ${duration(overhead.collector_cpu_ns)}`,
  ];
  const files = source.files.length > 0 && element('details', {}, element('summary', {}, source.kind === 'replay' ? 'Files' : 'Probed files', element('span', { class: 'count' }, count(source.files.length))), source.files.map((/** @type {string} */ file) => element('p', {}, element('code', {}, visible(file)))));
  return element('footer', {}, element('p', {}, `${texts.join(' · ')}.`), files, element('p', {}, `Written by ${tool.name} ${tool.version}. This file needs no network, and its policy allows none.`));
}

const parts = [reportHead(), null, swimlane(), phasesPart(), languageModelsPart(), devicesPart(), deviceUsagePart(), deviceClocksPart(), functionsPart(), iterationsPart(), reportsPart(), powerPart(), energyPart(), railsPart(), ...otherParts(), reportFoot()];
const sectionsOfPage = parts.filter((/** @type {any} */ part) => part?.tagName === 'SECTION');
parts[1] = element('nav', { 'aria-label': 'Parts of the report' }, sectionsOfPage.map((/** @type {any} */ { id, firstChild }) => element('a', { href: `#${id}` }, firstChild.textContent)));
document.getElementById('report')?.append(...parts.filter(Boolean));
document.title = `${visible(data.title)} · nntrace-bpf`;
