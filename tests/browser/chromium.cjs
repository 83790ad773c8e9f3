// Headless Chromium, driven over a pipe by its own protocol: no port, no package.

const { spawn } = require('node:child_process');
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');

/** Time in which the browser answers, ms: it draws a page in a few hundred. */
const PATIENCE = 20000;

/**
 * Without what would ask the network of itself; root has to do without the sandbox. Pages are drawn, and their timers run,
 * whether or not the browser takes them for visible.
 */
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-sync',
  '--disable-extensions',
  '--disable-component-update',
  '--disable-background-networking',
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-renderer-backgrounding',
  '--disable-dev-shm-usage',
  '--force-color-profile=srgb',
  '--hide-scrollbars',
  '--no-first-run',
  '--no-default-browser-check',
  '--remote-debugging-pipe',
];

/** A browser that was started. */
class Browser {
  #child;
  #folder = mkdtempSync(join(tmpdir(), 'nntrace-browser-'));
  #next = 1;
  #calls = new Map();
  #listeners = [];
  #rest = '';

  constructor() {
    const flags = [...FLAGS, `--user-data-dir=${this.#folder}`];
    this.#child = spawn(process.env.CHROMIUM ?? 'chromium', flags, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    this.#child.on('error', (error) => this.#fail(`chromium, of Debian's package of that name: ${error.message}`));
    this.#child.on('exit', (code) => this.#fail(`chromium has ended: ${code}`));
    this.#child.stdio[3].on('error', () => {});
    this.#child.stdio[4].setEncoding('utf8').on('data', (text) => this.#take(text));
  }

  #take(text) {
    const messages = (this.#rest + text).split('\0');
    this.#rest = messages.pop();
    for (const message of messages.map((text) => JSON.parse(text))) {
      const call = this.#calls.get(message.id);
      this.#calls.delete(message.id);
      if (call && message.error) call.reject(new Error(`${call.method}: ${message.error.message}`));
      else if (call) call.resolve(message.result);
      else this.#listeners.forEach((listen) => listen(message));
    }
  }

  #fail(reason) {
    for (const call of this.#calls.values()) call.reject(new Error(reason));
    this.#calls.clear();
  }

  /** Calls a method of the browser, or of a page by its session. It has to answer in time. */
  send(method, params = {}, sessionId = undefined) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#calls.delete(id);
        reject(new Error(`${method} ${JSON.stringify(params).slice(0, 200)}: no answer in ${PATIENCE} ms`));
      }, PATIENCE);
      const settled = (settle) => (value) => {
        clearTimeout(late);
        settle(value);
      };
      this.#calls.set(id, { method, resolve: settled(resolve), reject: settled(reject) });
      this.#child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  /** Calls a function with every event. */
  listen(listener) {
    this.#listeners.push(listener);
  }

  /** Opens a page of this size, with `light` or `dark` colours. */
  async page(width, height, scheme) {
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page(this, sessionId);
    await Promise.all(['Page', 'Runtime', 'Log', 'Network'].map((domain) => page.send(`${domain}.enable`)));
    await page.resize(width, height);
    await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
    return page;
  }

  /** Ends the browser. */
  async close() {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    await this.send('Browser.close').catch(() => this.#child.kill('SIGKILL'));
    await ended;
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A page. */
class Page {
  #browser;
  #session;
  /** Complaints: errors of scripts, and what the browser logs. */
  complaints = [];
  /** Addresses that were asked for, besides files and data. */
  requests = [];

  constructor(browser, session) {
    this.#browser = browser;
    this.#session = session;
    browser.listen(({ sessionId, method, params }) => {
      if (sessionId !== session) return;
      if (method === 'Runtime.exceptionThrown') {
        const { exceptionDetails: details } = params;
        this.complaints.push(details.exception?.description ?? details.text);
      }
      if (method === 'Runtime.consoleAPICalled') {
        this.complaints.push(`${params.type}: ${params.args.map((value) => value.value ?? value.description).join(' ')}`);
      }
      if (method === 'Log.entryAdded') this.complaints.push(`${params.entry.level}: ${params.entry.text}`);
      if (method === 'Network.requestWillBeSent' && !/^(file|data|blob|about):/.test(params.request.url)) {
        this.requests.push(params.request.url);
      }
    });
  }

  send(method, params = {}) {
    return this.#browser.send(method, params, this.#session);
  }

  /** Opens an address, and waits until it is loaded: the blank page before it has been, too. */
  async open(url) {
    const { errorText } = await this.send('Page.navigate', { url });
    if (errorText) throw new Error(`${url}: ${errorText}`);
    await this.until(() => location.href !== 'about:blank' && document.readyState === 'complete');
  }

  resize(width, height) {
    return this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
  }

  /** Returns what a function gives in the page. */
  async evaluate(body, ...values) {
    const expression = `(${body})(${values.map((value) => JSON.stringify(value)).join(', ')})`;
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** Waits until a function in the page gives something. */
  async until(body, ...values) {
    const last = Date.now() + 60000;
    for (;;) {
      const value = await this.evaluate(body, ...values).catch(() => undefined);
      if (value) return value;
      if (Date.now() > last) throw new Error(`not within a minute: ${body}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Waits until what was changed is drawn. */
  drawn() {
    return this.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(true)))));
  }

  async click(x, y) {
    const button = { x, y, button: 'left', clickCount: 1 };
    await this.send('Input.dispatchMouseEvent', { type: 'mousePressed', ...button });
    await this.send('Input.dispatchMouseEvent', { type: 'mouseReleased', ...button });
    await this.drawn();
  }

  async drag([x, y], [toX, toY]) {
    await this.send('Input.dispatchMouseEvent', { type: 'mousePressed', x, y, button: 'left', clickCount: 1 });
    for (const share of [0.5, 1]) {
      const at = { x: x + (toX - x) * share, y: y + (toY - y) * share };
      await this.send('Input.dispatchMouseEvent', { type: 'mouseMoved', ...at, button: 'left', buttons: 1 });
    }
    await this.send('Input.dispatchMouseEvent', { type: 'mouseReleased', x: toX, y: toY, button: 'left', clickCount: 1 });
    await this.drawn();
  }

  async wheel(x, y, deltaY) {
    await this.send('Input.dispatchMouseEvent', { type: 'mouseWheel', x, y, deltaX: 0, deltaY });
    await this.drawn();
  }

  async key(key) {
    const text = key.length === 1 ? { text: key } : key === 'Enter' ? { text: '\r' } : {};
    await this.send('Input.dispatchKeyEvent', { type: 'keyDown', key, ...text });
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', key });
    await this.drawn();
  }

  async type(text) {
    await this.send('Input.insertText', { text });
    await this.drawn();
  }

  /** Writes a picture of the window. */
  async picture(file) {
    const { data } = await this.send('Page.captureScreenshot', { format: 'png' });
    writeFileSync(file, Buffer.from(data, 'base64'));
  }

  /** Writes a picture of the whole page, in a window of its height: beyond its window, Chromium does not always draw. */
  async wholePicture(file) {
    const [width, height, whole] = await this.evaluate(() => [innerWidth, innerHeight, document.documentElement.scrollHeight]);
    await this.resize(width, whole);
    await this.drawn();
    await this.picture(file);
    await this.resize(width, height);
    await this.drawn();
  }
}

module.exports = { Browser };
