// Takes the pictures of the documentation, of a recording of the example network: its report in HTML, and its trace in Perfetto's
// own user interface.
// node pictures.cjs PROFILER RECORDING INTERFACE FOLDER

const { execFileSync } = require('node:child_process');
const { createReadStream, existsSync, mkdtempSync, rmSync } = require('node:fs');
const { createServer } = require('node:http');
const { tmpdir } = require('node:os');
const { extname, join, normalize } = require('node:path');
const { pathToFileURL } = require('node:url');
const { Browser } = require('./chromium.cjs');

const [profiler, recording, userInterface, folder] = process.argv.slice(2);
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json', '.wasm': 'application/wasm' };

/** Serves the interface and a trace on this machine. */
function serve(trace) {
  const server = createServer(({ url }, response) => {
    const path = normalize(decodeURIComponent(new URL(url, 'http://localhost').pathname));
    const file = path === '/run.pftrace' ? trace : join(userInterface, path === '/' ? 'index.html' : path);
    // Its index is of the folder above, and names this one.
    const place = [file, join(userInterface, '..', path)].find((place) => existsSync(place));
    if (!place) return response.writeHead(404).end();
    response.writeHead(200, { 'Content-Type': TYPES[extname(place)] ?? 'application/octet-stream' });
    createReadStream(place).pipe(response);
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

/** Waits for what Perfetto computes in the background. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 3000));

/** The trace, from shortly before a time on, with one of its hand-overs. */
async function inPerfetto(browser, trace, time) {
  const server = await serve(trace);
  try {
    const page = await browser.page(1400, 860, 'light');
    const origin = `http://127.0.0.1:${server.address().port}`;
    const expand = { id: 'dev.perfetto.ExpandTracksByRegex', args: ['workloa|clusters'] };
    const parameters = new URLSearchParams({
      url: `${origin}/run.pftrace`,
      visStart: time - 2e6,
      visEnd: time + 8e6,
      startupCommands: JSON.stringify([expand]),
      hideSidebar: 'true',
    });
    await page.open(`${origin}/#!/?${parameters}`);
    await page.until(() => document.title.includes('run.pftrace') && document.body.innerText.includes('clusters'));
    await settled();
    // A flow is drawn of what is selected: the first match in what is shown.
    await page.click(700, 22);
    await page.type('nn.send');
    await settled();
    await page.key('Enter');
    await settled();
    // Without the details of the slice there is room for all tracks.
    await page.evaluate(() => [...document.querySelectorAll('button')].find((button) => button.textContent.includes('keyboard_arrow_down'))?.click());
    await settled();
    await page.picture(join(folder, 'perfetto.png'));
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** The report, with one iteration in its swimlane. */
async function ofReport(browser, report, iteration) {
  const page = await browser.page(1400, 1000, 'light');
  await page.open(pathToFileURL(report).href);
  await page.evaluate((text) => {
    document.dispatchEvent(new CustomEvent('find-section', { detail: text }));
    const search = document.querySelector('input[type=search]');
    search.value = '';
    search.dispatchEvent(new Event('input'));
    scrollTo(0, document.getElementById('swimlane').offsetTop - 24);
  }, `iter=${iteration}`);
  await page.drawn();
  await page.picture(join(folder, 'report.png'));
}

async function main() {
  const work = mkdtempSync(join(tmpdir(), 'nntrace-pictures-'));
  const [trace, report] = ['run.pftrace', 'run.html'].map((name) => join(work, name));
  const browser = new Browser();
  try {
    for (const output of [trace, report]) execFileSync(profiler, ['export', recording, '-o', output]);
    const printed = execFileSync(profiler, ['print', '--json-lines', '--name', 'classify*', recording], { stdio: ['ignore', 'pipe', 'ignore'] });
    const sections = printed.toString().trim().split('\n').map((line) => JSON.parse(line));
    const { begin_ns: time, attributes } = sections[Math.floor(sections.length / 2)];
    await ofReport(browser, report, attributes.iter);
    await inPerfetto(browser, trace, time);
  } finally {
    await browser.close();
    rmSync(work, { recursive: true });
  }
}

main().catch((error) => {
  console.error(error.stack);
  process.exitCode = 1;
});
