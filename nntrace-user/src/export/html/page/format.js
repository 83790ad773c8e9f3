// Numbers and names as people read them: three significant digits and a unit.

/** Sign for a figure that is not known. */
const UNKNOWN = '–';

/**
 * A number of units with three significant digits, rounded as all other outputs are; `null` when that is 1000 or more.
 * @param {number} value A whole number.
 * @param {number} unit
 */
function threeDigits(value, unit) {
  const rounded = (/** @type {number} */ scale) => Math.floor((value * scale + unit / 2) / unit);
  for (const [digits, scale] of [[2, 100], [1, 10], [0, 1]]) {
    if (rounded(scale) < 1000) return (rounded(scale) / scale).toFixed(digits);
  }
  return null;
}

/**
 * A duration: `456 ns`, `1.23 ms`, `12.3 s`, from 1000 s on `16m 40s`, `12h 34m`.
 * @param {number|null|undefined} ns
 */
function duration(ns) {
  if (ns === null || ns === undefined) return UNKNOWN;
  if (ns < 0) return `−${duration(-ns)}`;
  if (ns < 1000) return `${Math.round(ns)} ns`;
  for (const [unit, name] of /** @type {[number, string][]} */ ([[1e3, 'µs'], [1e6, 'ms'], [1e9, 's']])) {
    const digits = threeDigits(ns, unit);
    if (digits !== null) return `${digits} ${name}`;
  }
  const seconds = Math.round(ns / 1e9);
  const [minutes, hours, days] = [60, 3600, 86400].map((unit) => Math.floor(seconds / unit));
  if (minutes < 60) return `${minutes}m ${String(seconds % 60).padStart(2, '0')}s`;
  if (hours < 100) return `${hours}h ${String(minutes % 60).padStart(2, '0')}m`;
  return `${days}d ${hours % 24}h`;
}

/**
 * A duration with every digit: `1,234,567 ns`.
 * @param {number} ns
 */
function exactly(ns) {
  return `${count(ns)} ns`;
}

/**
 * A point in time, with as many digits as steps of this width need: `1.2345 s`.
 * @param {number} ns
 * @param {number} step
 */
function instant(ns, step) {
  if (ns === 0) return '0';
  const [unit, name] = /** @type {[number, string]} */ (
    Math.abs(ns) >= 1e9 || step >= 1e9 ? [1e9, 's'] : Math.abs(ns) >= 1e6 || step >= 1e6 ? [1e6, 'ms'] : [1e3, 'µs']
  );
  const digits = Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9));
  return `${(ns / unit).toFixed(Math.min(digits, 9)).replace('-', '−')} ${name}`;
}

/**
 * A count to the unit: `12,345`.
 * @param {number|null|undefined} count
 */
function count(count) {
  return count === null || count === undefined ? UNKNOWN : Math.round(count).toLocaleString('en-US');
}

/**
 * A rate: `82.6` a second, above a thousand to the unit.
 * @param {number|null} rate
 */
function perSecond(rate) {
  if (rate === null) return UNKNOWN;
  if (rate > 0 && rate < 1) return rate.toFixed(3);
  return threeDigits(Math.round(rate * 1000), 1000) ?? count(rate);
}

/**
 * A share: `12.3%`; `<0.1%` for something that is not nothing.
 * @param {number} part
 * @param {number} whole
 */
function percent(part, whole) {
  if (!whole) return UNKNOWN;
  const tenths = Math.round((part * 1000) / whole);
  if (tenths === 0) return part > 0 ? '<0.1%' : '0%';
  return tenths < 1000 ? `${(tenths / 10).toFixed(1)}%` : `${Math.round(tenths / 10)}%`;
}

/**
 * A frequency: `1.80 GHz`, `600 MHz`.
 * @param {number|null} khz
 */
function frequency(khz) {
  if (khz === null) return 'unknown';
  if (khz < 1000) return `${khz} kHz`;
  return khz < 999500 ? `${Number((khz / 1000).toFixed(3))} MHz` : `${threeDigits(khz, 1e6)} GHz`;
}

/**
 * An energy in J, `23.5 mJ`, or in no unit, `23.5 m`.
 * @param {number} value
 * @param {string} unit
 */
function energy(value, unit) {
  const symbol = unit === 'J' ? 'J' : '';
  if (value === 0) return `0 ${symbol}`.trim();
  const scales = /** @type {[number, string][]} */ (
    [[1e-9, 'n'], [1e-6, 'µ'], [1e-3, 'm'], [1, ''], [1e3, 'k'], [1e6, 'M'], [1e9, 'G']]
  );
  const [scale, prefix] = scales.find(([scale]) => value < 999.5 * scale) ?? scales[6];
  return `${threeDigits(value, scale)} ${prefix}${symbol}`.trim();
}

/** Characters that act on what stands around them instead of standing there. */
const ACTING = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/**
 * A text from the target, with controls as in other outputs: `\x1b`, `\u{202e}`.
 * @param {string} text
 */
function visible(text) {
  return text.replace(ACTING, (character) => {
    const known = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }[character];
    const code = /** @type {number} */ (character.codePointAt(0));
    return known ?? (code < 0x80 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`);
  });
}

/**
 * A word with its number: `1 section`, `12 sections`.
 * @param {number} number
 * @param {string} word
 */
function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? '' : 's'}`;
}

/**
 * The words of a layer and a phase: `Runtime · Execution`.
 * @param {string} layer
 * @param {string} phase
 */
function layerAndPhase(layer, phase) {
  return `${LAYERS[layer] ?? layer} · ${PHASES[phase] ?? phase}`;
}
