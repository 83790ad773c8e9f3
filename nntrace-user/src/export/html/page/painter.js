// Drawing of the swimlane on its canvas.

/** Heights of the overview and of the ruler, in pixels. */
const OVERVIEW = 34;
const RULER = 22;
/** From the zero line of a power lane to the highest frequency, and to the deepest idle state. */
const UP = 24;
const DOWN = 14;
/** Flows that are drawn at once, at most. */
const MOST_FLOWS = 400;

/**
 * Part of the time that is shown, ns.
 * @typedef {object} View
 * @property {number} begin
 * @property {number} end
 */

/**
 * Picture to draw.
 * @typedef {object} Scene
 * @property {CanvasRenderingContext2D} context
 * @property {number} width
 * @property {number} height
 * @property {number} gutter Width of the labels.
 * @property {number} scroll
 * @property {View} view
 * @property {View} whole
 * @property {number|null} selected
 * @property {Uint8Array|null} matches Whether a section is a match; `null` without a search.
 * @property {Uint16Array} overview Sections that are outermost, by column of the overview.
 */

/** Colours by their names in the styles. */
let colours = readColours();

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const read = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  const names = ['paper', 'ink', 'muted', 'rule', 'faint', 'accent', 'running', 'idle', 'offline', 'waiting', 'on-section'];
  const layers = Object.keys(LAYERS);
  return Object.fromEntries([...names, ...layers].map((name) => [name, read(name)]));
}

const FONT = '11px system-ui, sans-serif';

/** @param {Scene} scene @param {number} time */
const xOf = ({ gutter, width, view }, time) => gutter + ((time - view.begin) / (view.end - view.begin)) * (width - gutter);
/** @param {Scene} scene @param {number} x */
const timeAt = ({ gutter, width, view }, x) => view.begin + ((x - gutter) / (width - gutter)) * (view.end - view.begin);

/**
 * @param {Scene} scene
 * @param {Sections} sections
 * @param {Layout} layout
 */
function paint(scene, sections, layout) {
  const { context, width, height, gutter, scroll } = scene;
  context.clearRect(0, 0, width, height);
  context.textBaseline = 'middle';
  context.font = FONT;
  paintOverview(scene);
  const ticks = paintRuler(scene);
  const top = OVERVIEW + RULER;
  context.save();
  context.beginPath();
  context.rect(0, top, width, height - top);
  context.clip();
  context.translate(0, top - scroll);
  context.fillStyle = colours.faint;
  for (const x of ticks) context.fillRect(Math.round(x), scroll, 1, height);
  const shown = layout.bands.filter((band) => band.top + band.height >= scroll && band.top <= scroll + height - top);
  context.save();
  context.beginPath();
  context.rect(gutter, scroll, width - gutter, height);
  context.clip();
  for (const band of shown) {
    if (band.states) paintThreadStates(scene, band.states, band.top);
    if (band.kind === 'thread') band.rows?.forEach((row, number) => paintRow(scene, sections, row, topOfRow(band, number)));
    if (band.device) paintDevice(scene, band.device, band.top);
    if (band.lane) paintPower(scene, band.lane, band.top);
  }
  paintFlows(scene, sections, layout);
  context.restore();
  for (const band of shown) paintLabel(scene, band);
  context.restore();
}

/** @param {Scene} scene @param {Band} band */
function paintLabel({ context, width, gutter }, band) {
  const { top, height, label, detail, kind } = band;
  context.font = kind === 'heading' ? `600 ${FONT}` : FONT;
  context.fillStyle = colours.ink;
  if (kind === 'heading') {
    context.fillStyle = colours.rule;
    context.fillRect(0, top + 3, width, 1);
    context.fillStyle = colours.ink;
    context.fillText(label, 8, top + height / 2 + 3);
    const at = 16 + context.measureText(label).width;
    context.font = FONT;
    context.fillStyle = colours.muted;
    context.fillText(detail, at, top + height / 2 + 3);
    return;
  }
  const middle = kind === 'power' ? top + UP + 4 : top + ROW / 2;
  const room = gutter - 20;
  context.fillText(fitted(context, label, room), 14, middle);
  const left = room - context.measureText(label).width - 8;
  context.fillStyle = colours.muted;
  if (context.measureText(detail).width <= left) {
    context.textAlign = 'right';
    context.fillText(detail, gutter - 8, middle);
    context.textAlign = 'left';
  }
}

/** Widths of texts. @type {Map<string, number>} */
const textWidths = new Map();

/**
 * As much of a text as there is room for.
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} room
 */
function fitted(context, text, room) {
  let width = textWidths.get(text);
  if (width === undefined) {
    if (textWidths.size > 20000) textWidths.clear();
    width = context.measureText(text.length > 300 ? text.slice(0, 300) : text).width;
    textWidths.set(text, width);
  }
  if (width <= room) return text;
  const length = Math.floor((Math.min(text.length, 300) * (room - 8)) / width);
  return length > 0 ? `${text.slice(0, length)}…` : '';
}

/** Names of sections, as they are shown. */
const sectionNames = data.swimlane.names.map(visible);
const sectionLayers = data.swimlane.tags.map((/** @type {string} */ tag) => tag.split('_')[0]);

/**
 * @param {Scene} scene
 * @param {Sections} sections
 * @param {Uint32Array} row
 * @param {number} top
 */
function paintRow(scene, sections, row, top) {
  const { context, gutter, view, matches, selected } = scene;
  let covered = -1;
  for (let place = firstEndingAfter(sections, row, view.begin); place < row.length; place += 1) {
    const section = row[place];
    if (sections.begin[section] >= view.end) break;
    const left = xOf(scene, sections.begin[section]);
    const right = xOf(scene, sections.end[section]);
    const isMatch = matches === null || matches[section] === 1;
    // What is within a pixel that has something already is not drawn again, unless it is looked for.
    if (right <= covered && section !== selected && (matches === null || !isMatch)) continue;
    const wide = Math.max(right - left, 1);
    covered = Math.max(covered, Math.ceil(left + wide) - (wide > 2 ? 1 : 0));
    context.globalAlpha = isMatch ? 1 : 0.18;
    context.fillStyle = colours[sectionLayers[sections.tag[section]]];
    context.fillRect(left, top + 1, wide > 3 ? wide - 0.5 : wide, ROW - 2);
    if (wide > 26) {
      const from = Math.max(left, gutter) + 4;
      context.fillStyle = colours['on-section'];
      context.fillText(fitted(context, sectionNames[sections.name[section]], left + wide - from - 4), from, top + ROW / 2 + 0.5);
    }
    context.globalAlpha = 1;
    if (section === selected) {
      context.strokeStyle = colours.ink;
      context.lineWidth = 2;
      context.strokeRect(left, top + 1, Math.max(wide, 2), ROW - 2);
    }
  }
}

/**
 * A lane of power states: frequencies up from the zero line, depth of idle down from it. Where there is more than columns, what
 * was within one is drawn as densely as it took time.
 * @param {Scene} scene
 * @param {PowerLane} lane
 * @param {number} top
 */
function paintPower(scene, lane, top) {
  const { context, gutter, width } = scene;
  const zero = top + UP + 4;
  const places = lane.states.map(placeOfState);
  eachStretch(scene, lane, (number, x, wide, density) => {
    const { from, height, colour, isUnsure } = places[number];
    context.globalAlpha = Math.max(0.08, density) * (isUnsure ? 0.4 : 1);
    context.fillStyle = colour;
    context.fillRect(x, zero + from, wide, height);
  });
  context.globalAlpha = 1;
  context.fillStyle = colours.muted;
  context.fillRect(gutter, zero, width - gutter, 0.5);
}

/**
 * Calls `draw` for the states in the view: for one that is at least two pixels wide, and for each kind of those within a column, with
 * its share of the column, in the order of the kinds.
 * @param {Scene} scene
 * @param {Stretches} stretches
 * @param {(kind: number, x: number, wide: number, density: number) => void} draw
 * @param {(state: number) => number} [kindOf] States of one kind are one; without it, each is its own.
 */
function eachStretch(scene, { begins, state }, draw, kindOf = (state) => state) {
  const { gutter, width, view } = scene;
  const step = (view.end - view.begin) / (width - gutter);
  let at = Math.max(0, firstAbove(begins, view.begin) - 1);
  let from = Math.max(begins[at], view.begin);
  while (at < state.length && from < view.end) {
    const left = xOf(scene, from);
    const right = xOf(scene, Math.min(begins[at + 1], view.end));
    if (right - left >= 2) {
      draw(kindOf(state[at]), left, right - left, 1);
      at += 1;
      from = begins[at];
      continue;
    }
    // All that is in this column, by state; what goes on after it is drawn next.
    const column = Math.floor(left);
    const until = Math.min(Math.max(timeAt(scene, column + 1), from + step / 2), view.end);
    const sums = new Map();
    while (at < state.length && from < until) {
      const to = Math.min(begins[at + 1], until);
      const kind = kindOf(state[at]);
      sums.set(kind, (sums.get(kind) ?? 0) + to - from);
      from = to;
      if (begins[at + 1] <= until) at += 1;
    }
    for (const [kind, ns] of [...sums].sort(([one], [other]) => one - other)) draw(kind, column, 1, Math.min(1, ns / step));
  }
}

/** Highest frequency and number of idle states over all lanes: all are drawn to one scale. */
const scale = {
  khz: Math.max(1, ...data.power.flatMap((/** @type {any} */ lane) => lane.states.map((/** @type {PowerState} */ state) => state.khz ?? 0))),
  levels: Math.max(1, ...data.power.flatMap((/** @type {any} */ lane) => lane.states.map((/** @type {PowerState} */ state) => (state.level ?? -1) + 1))),
};

/**
 * Where a state is drawn: from the zero line on, and how high.
 * @param {PowerState} state
 */
function placeOfState({ kind, khz, level }) {
  if (kind === 'running') {
    const height = khz === null ? UP : Math.max(1, (UP * khz) / scale.khz);
    return { from: -height, height, colour: colours.running, isUnsure: khz === null };
  }
  if (kind === 'idle') return { from: 0, height: (DOWN * (/** @type {number} */ (level) + 1)) / scale.levels, colour: colours.idle, isUnsure: false };
  if (kind === 'idle_unknown') return { from: 0, height: DOWN, colour: colours.idle, isUnsure: true };
  if (kind === 'offline') return { from: -3, height: 6, colour: colours.offline, isUnsure: false };
  return { from: -UP, height: UP + DOWN, colour: colours.muted, isUnsure: true };
}

/**
 * Arrows from where work was handed over to where it was taken.
 * @param {Scene} scene
 * @param {Sections} sections
 * @param {Layout} layout
 */
function paintFlows(scene, sections, layout) {
  const { context, view } = scene;
  const flows = flowsIn(view);
  if (flows.length > MOST_FLOWS) return;
  const { from, to, sent, received } = data.swimlane.hand_overs;
  context.strokeStyle = context.fillStyle = colours.muted;
  context.lineWidth = 1;
  for (const flow of flows) {
    const [one, other] = [layout.byThread.get(from[flow]), layout.byThread.get(to[flow])];
    if (!one || !other) continue;
    const [x1, x2] = [xOf(scene, sent[flow]), xOf(scene, received[flow])];
    const y1 = topOfRow(one, innermostRow(sections, one, sent[flow])) + ROW / 2;
    const y2 = topOfRow(other, innermostRow(sections, other, received[flow])) + ROW / 2;
    const bend = Math.max(6, Math.min(40, Math.abs(x2 - x1) / 2));
    context.globalAlpha = 0.75;
    context.beginPath();
    context.moveTo(x1, y1);
    context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2 - 3, y2);
    context.stroke();
    context.beginPath();
    context.moveTo(x2, y2);
    context.lineTo(x2 - 6, y2 - 3);
    context.lineTo(x2 - 6, y2 + 3);
    context.fill();
    context.globalAlpha = 1;
  }
}

/** @param {View} view @returns {number[]} Hand-overs that overlap it. */
function flowsIn({ begin, end }) {
  const { sent, received } = data.swimlane.hand_overs;
  const flows = [];
  for (let flow = 0; flow < sent.length; flow += 1) {
    if (sent[flow] <= end && received[flow] >= begin) flows.push(flow);
  }
  return flows;
}

/** How much goes on over the whole time, with the part that is shown. @param {Scene} scene */
function paintOverview({ context, width, gutter, view, whole, overview }) {
  const plot = width - gutter;
  const most = Math.max(1, ...overview);
  context.fillStyle = colours.faint;
  context.fillRect(gutter, 0, plot, OVERVIEW);
  context.fillStyle = colours.accent;
  context.globalAlpha = 0.55;
  for (let column = 0; column < overview.length; column += 1) {
    const height = (overview[column] / most) * (OVERVIEW - 6);
    const left = gutter + (column / overview.length) * plot;
    context.fillRect(left, OVERVIEW - height, plot / overview.length + 0.3, height);
  }
  context.globalAlpha = 1;
  const length = whole.end - whole.begin;
  const left = gutter + ((view.begin - whole.begin) / length) * plot;
  const right = gutter + ((view.end - whole.begin) / length) * plot;
  context.globalAlpha = 0.72;
  context.fillStyle = colours.paper;
  context.fillRect(gutter, 0, left - gutter, OVERVIEW);
  context.fillRect(right, 0, width - right, OVERVIEW);
  context.globalAlpha = 1;
  context.strokeStyle = colours.ink;
  context.lineWidth = 1;
  context.strokeRect(left + 0.5, 0.5, Math.max(right - left - 1, 2), OVERVIEW - 1);
}

/** @param {Scene} scene @returns {number[]} Places of its ticks. */
function paintRuler(scene) {
  const { context, gutter, width, view } = scene;
  const step = roundStep(((view.end - view.begin) / (width - gutter)) * 110);
  const ticks = [];
  context.fillStyle = colours.muted;
  for (let time = Math.ceil(view.begin / step) * step; time <= view.end; time += step) {
    const x = xOf(scene, time);
    ticks.push(x);
    context.fillRect(Math.round(x), OVERVIEW + RULER - 5, 1, 5);
    const text = instant(time, step);
    if (x + 4 + context.measureText(text).width < width) context.fillText(text, x + 4, OVERVIEW + RULER / 2 + 1);
  }
  return ticks;
}

/** The next 1, 2 or 5 of a decade. @param {number} least */
function roundStep(least) {
  const decade = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return decade * (/** @type {number} */ ([1, 2, 5, 10].find((digit) => digit * decade >= least)));
}

/**
 * Threads that are in an outermost section, by column of the whole time.
 * @param {Sections} sections
 * @param {Layout} layout
 * @param {View} whole
 */
function overviewOf(sections, layout, whole) {
  const columns = new Uint16Array(600);
  const length = whole.end - whole.begin;
  for (const { rows } of layout.byThread.values()) {
    let covered = -1;
    for (const section of rows?.[0] ?? []) {
      const place = (/** @type {number} */ time) => Math.floor(((time - whole.begin) / length) * columns.length);
      const first = Math.max(place(sections.begin[section]), covered + 1, 0);
      const last = Math.min(place(sections.end[section]), columns.length - 1);
      for (let column = first; column <= last; column += 1) columns[column] += 1;
      covered = Math.max(covered, last);
    }
  }
  return columns;
}
