// The swimlane: its canvas, what moves it, the search, and the details of a section.

/** Shortest time that fills the view, ns. */
const LEAST_VIEW = 200;

/** @returns {HTMLElement|null} */
function swimlane() {
  const sections = readSections();
  const threads = data.swimlane.threads;
  const lanes = readPowerLanes();
  const devices = readDeviceLanes();
  const states = readThreadStates();
  const layout = layOut(sections, threads, states, devices, lanes);
  if (layout.bands.length === 0) return null;
  const whole = wholeView(sections, devices, lanes);

  const canvas = element('canvas', { tabindex: '0', role: 'application', 'aria-label': `Swimlane of ${plural(sections.count, 'section')}`, 'aria-describedby': 'swimlane-keys' });
  const scroller = element('div', { class: 'lanes' }, canvas, element('div', { class: 'extent' }));
  const hint = element('div', { class: 'hint', hidden: true });
  const status = element('p', { class: 'status', role: 'status' });
  const details = element('aside', { class: 'details', 'aria-live': 'polite', 'aria-label': 'Details of a section' });
  const frame = element('div', { class: 'swimlane' });

  /** @type {Scene} */
  const scene = {
    context: canvas.getContext('2d'),
    width: 0,
    height: 0,
    gutter: 0,
    scroll: 0,
    view: { ...whole },
    whole,
    selected: null,
    matches: null,
    overview: overviewOf(sections, layout, whole),
  };
  let isWaiting = false;
  let isNew = true;
  const draw = () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      paint(scene, sections, layout);
      showStatus();
    });
  };

  function resize() {
    const width = scroller.clientWidth;
    // As high as it is, unless that is more than a page has.
    const needed = layout.height + OVERVIEW + RULER;
    const height = needed <= 1000 ? needed : Math.max(480, Math.round(innerHeight * 0.85));
    scroller.style.height = `${height}px`;
    scroller.lastElementChild.style.height = `${needed - height}px`;
    const ratio = devicePixelRatio || 1;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    scene.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    Object.assign(scene, { width, height, gutter: width < 640 ? 84 : 168 });
    if (isNew && opening !== null) reveal(opening);
    isNew = false;
    draw();
  }

  function showStatus() {
    const { view } = scene;
    const flows = flowsIn(view).length;
    const texts = [`${duration(view.end - view.begin)} of ${duration(whole.end - whole.begin)}, from ${instant(view.begin, roundStep((view.end - view.begin) / 100))} on`];
    if (flows > MOST_FLOWS) texts.push(`${count(flows)} hand-overs: arrows are drawn of ${MOST_FLOWS} at most, zoom in`);
    status.textContent = texts.join(' · ');
    Object.assign(frame.dataset, { begin: Math.round(view.begin), end: Math.round(view.end), selected: scene.selected ?? '' });
  }

  /** @param {number} begin @param {number} end */
  function show(begin, end) {
    const length = Math.min(Math.max(end - begin, LEAST_VIEW), whole.end - whole.begin);
    const middle = (begin + end) / 2;
    const first = Math.min(Math.max(middle - length / 2, whole.begin), whole.end - length);
    scene.view = { begin: first, end: first + length };
    draw();
  }

  /** @param {number} factor @param {number} [at] Time that stays in its place. */
  function zoom(factor, at = (scene.view.begin + scene.view.end) / 2) {
    const { begin, end } = scene.view;
    const length = Math.min(Math.max((end - begin) * factor, LEAST_VIEW), whole.end - whole.begin);
    const first = at - ((at - begin) / (end - begin)) * length;
    show(first, first + length);
  }

  /** @param {number} share Of the view. */
  function pan(share) {
    const { begin, end } = scene.view;
    const step = Math.min(Math.max((end - begin) * share, whole.begin - begin), whole.end - end);
    show(begin + step, end + step);
  }

  const reset = () => show(whole.begin, whole.end);

  /** @param {number|null} section */
  function select(section) {
    scene.selected = section;
    details.replaceChildren(...(section === null ? [noSelection()] : detailsOf(section)));
    draw();
  }

  /** Brings a section into the view, wide enough to be seen. @param {number} section */
  function reveal(section) {
    const [begin, end] = [sections.begin[section], sections.end[section]];
    const { view } = scene;
    const length = view.end - view.begin;
    const isVisible = begin >= view.begin && end <= view.end && ((end - begin) / length) * (scene.width - scene.gutter) > 6;
    if (!isVisible) {
      const wanted = Math.min(Math.max((end - begin) * 5, LEAST_VIEW), whole.end - whole.begin);
      show((begin + end - wanted) / 2, (begin + end + wanted) / 2);
    }
    const band = layout.byThread.get(sections.thread[section]);
    const row = band?.rows?.findIndex((row) => sections.depth[row[0]] === sections.depth[section]) ?? 0;
    if (band) {
      const top = topOfRow(band, row);
      const room = scene.height - OVERVIEW - RULER;
      if (top < scene.scroll || top + ROW > scene.scroll + room) scroller.scrollTop = Math.max(0, top - room / 2);
    }
    select(section);
  }

  function noSelection() {
    return element('p', {}, 'Choose a section to see what it is.');
  }

  /** @param {number} section */
  function detailsOf(section) {
    const [begin, end] = [sections.begin[section], sections.end[section]];
    const thread = threads[sections.thread[section]];
    const [layer, phase] = data.swimlane.tags[sections.tag[section]].split('_');
    const attributes = sections.attributes[section] ? attributesOf(data.swimlane.attributes[sections.attributes[section] - 1]) : [];
    const kind = sections.kind[section] ? data.swimlane.classes[sections.kind[section] - 1] : null;
    const time = (/** @type {number} */ ns) => element('span', { title: exactly(ns) }, duration(ns));
    /** @type {[string, Child][]} */
    const rows = [
      ['Layer, phase', layerAndPhase(layer, phase)],
      ['Process', processName(thread.pid)],
      ['Thread', thread.name ? `${visible(thread.name)} ${thread.tid}` : String(thread.tid)],
      ['Begin', element('span', { title: `${((snapshot.window.begin_ns + begin) / 1e9).toFixed(6)} s of the clock` }, instant(begin, Math.max(1, roundStep((end - begin) / 100))))],
      ['Total', time(end - begin)],
      ['Self', time(sections.exclusive[section])],
      ...timesOf(states[sections.thread[section]], begin, end).map(([name, ns]) => /** @type {[string, Child]} */ ([name, time(ns)])),
      ...(kind ? /** @type {[string, Child][]} */ ([['Adds as', kind === 'detail' ? 'detail: to no total' : kind]]) : []),
      ...attributes.map(([key, value]) => /** @type {[string, Child]} */ ([{ iter: 'Iteration', acct: 'Account', h: 'Hand-over' }[key] ?? visible(key), visible(value)])),
    ];
    return [
      element('h3', {}, swatch(layer), sectionNames[sections.name[section]]),
      element('dl', {}, rows.map(([name, content]) => element('div', {}, element('dt', {}, name), element('dd', {}, content)))),
      element('div', { class: 'buttons' }, button('Zoom to it', '', () => show(begin - (end - begin) / 10, end + (end - begin) / 10)), button('Find others', '', () => {
        search.value = data.swimlane.names[sections.name[section]];
        find();
      })),
    ];
  }

  // Search.
  const search = element('input', { type: 'search', placeholder: 'Search name, attribute, layer', 'aria-label': 'Search sections', spellcheck: 'false', autocomplete: 'off' });
  const found = element('output', { class: 'found' });
  /** @type {number[]} */
  let matches = [];
  let current = -1;

  function find() {
    const wanted = search.value.trim().toLowerCase();
    current = -1;
    if (wanted === '') {
      [matches, scene.matches] = [[], null];
    } else {
      const has = (/** @type {string} */ text) => text.toLowerCase().includes(wanted);
      const names = data.swimlane.names.map((/** @type {string} */ name, /** @type {number} */ at) => has(name) || has(sectionNames[at]));
      // `key=value` means one attribute, and not those that begin with it.
      const attributes = data.swimlane.attributes.map((/** @type {string} */ text) =>
        wanted.includes('=') ? text.toLowerCase().split('#').includes(wanted) : has(text),
      );
      const tags = data.swimlane.tags.map((/** @type {string} */ tag) => has(tag) || has(layerAndPhase(...tag.split('_'))));
      const own = new Uint8Array(sections.count);
      matches = [];
      for (let section = 0; section < sections.count; section += 1) {
        if (names[sections.name[section]] || tags[sections.tag[section]] || attributes[sections.attributes[section] - 1]) {
          own[section] = 1;
          matches.push(section);
        }
      }
      matches.sort((one, other) => sections.begin[one] - sections.begin[other] || one - other);
      scene.matches = own;
    }
    showFound();
    draw();
  }

  function showFound() {
    const place = current >= 0 ? `${count(current + 1)} of ` : '';
    found.textContent = search.value.trim() === '' ? '' : `${place}${matches.length === 1 ? '1 match' : `${count(matches.length)} matches`}`;
  }

  /** @param {number} step */
  function jump(step) {
    if (matches.length === 0) return;
    if (current < 0) {
      // The first one of what is shown.
      const after = firstAbove(matches, scene.view.begin - 1, (place) => sections.begin[matches[place]]);
      current = step > 0 ? after % matches.length : (after - 1 + matches.length) % matches.length;
    } else {
      current = (current + step + matches.length) % matches.length;
    }
    showFound();
    reveal(matches[current]);
  }

  search.addEventListener('input', find);
  search.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Enter') jump(event.shiftKey ? -1 : 1);
    if (event.key === 'Escape') {
      search.value = '';
      find();
      canvas.focus();
    }
  });

  document.addEventListener('find-section', (/** @type {any} */ { detail }) => {
    search.value = detail;
    find();
    jump(1);
    frame.scrollIntoView({ block: 'nearest' });
  });

  /**
   * Number of a function's name, and its slowest call among the sections.
   * @param {any} row Row of the functions.
   * @returns {[number, number|null]}
   */
  function slowestOf({ name, layer, phase, pid }) {
    // Long names are cut in the swimlane.
    const isWanted = (/** @type {string} */ known) => known === name || (known.endsWith('…') && name.length >= known.length && name.startsWith(known.slice(0, -1)));
    const [wanted, tag] = [data.swimlane.names.findIndex(isWanted), data.swimlane.tags.indexOf(`${layer}_${phase}`)];
    /** @type {number|null} */
    let slowest = null;
    for (let section = 0; section < sections.count; section += 1) {
      if (sections.name[section] !== wanted || sections.tag[section] !== tag || threads[sections.thread[section]].pid !== pid) continue;
      if (slowest === null || sections.end[section] - sections.begin[section] > sections.end[slowest] - sections.begin[slowest]) slowest = section;
    }
    return [wanted, slowest];
  }

  document.addEventListener('find-slowest', (/** @type {any} */ { detail: row }) => {
    const [wanted, slowest] = slowestOf(row);
    search.value = wanted < 0 ? row.name : data.swimlane.names[wanted];
    find();
    if (slowest !== null) {
      reveal(slowest);
    } else {
      select(null);
      details.replaceChildren(element('p', {}, 'The swimlane contains none of its calls.'));
    }
    frame.scrollIntoView({ block: 'nearest' });
  });

  // Pointer and keys.
  const hit = (/** @type {MouseEvent} */ event) => {
    const y = event.offsetY - OVERVIEW - RULER + scene.scroll;
    if (event.offsetY < OVERVIEW + RULER || event.offsetX < scene.gutter) return null;
    const band = layout.bands.find(({ top, height }) => top <= y && y < top + height);
    const time = timeAt(scene, event.offsetX);
    if (band?.states && y < topOfRow(band, 0)) return { text: threadStateAt(band.states, time) };
    const row = band?.rows?.[Math.floor((y - topOfRow(band, 0)) / ROW)];
    if (row) return { section: sectionAt(sections, row, time, (2 * (scene.view.end - scene.view.begin)) / (scene.width - scene.gutter)) };
    if (band?.device) return { text: jobAt(band.device, time) };
    if (!band?.lane) return null;
    const { begins, state, states } = band.lane;
    const at = firstAbove(begins, time) - 1;
    return at >= 0 && at < state.length ? { state: states[state[at]], ns: begins[at + 1] - begins[at], lane: band.lane } : null;
  };
  const inOverview = (/** @type {MouseEvent} */ event) => event.offsetY < OVERVIEW && event.offsetX >= scene.gutter;
  const overviewTime = (/** @type {MouseEvent} */ event) => whole.begin + ((event.offsetX - scene.gutter) / (scene.width - scene.gutter)) * (whole.end - whole.begin);

  /** @type {{x: number, y: number, view: View, scroll: number, isOverview: boolean, moved: boolean}|null} */
  let drag = null;
  canvas.addEventListener('pointerdown', (/** @type {PointerEvent} */ event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    drag = { x: event.clientX, y: event.clientY, view: { ...scene.view }, scroll: scroller.scrollTop, isOverview: inOverview(event), moved: false };
    if (drag.isOverview) moveOverview(event);
  });
  const moveOverview = (/** @type {PointerEvent} */ event) => {
    const half = (scene.view.end - scene.view.begin) / 2;
    show(overviewTime(event) - half, overviewTime(event) + half);
  };
  canvas.addEventListener('pointermove', (/** @type {PointerEvent} */ event) => {
    if (!drag) return showHint(event);
    if (Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 4) drag.moved = true;
    if (drag.isOverview) return moveOverview(event);
    if (!drag.moved) return;
    hint.hidden = true;
    const length = drag.view.end - drag.view.begin;
    const step = ((drag.x - event.clientX) / (scene.width - scene.gutter)) * length;
    const begin = Math.min(Math.max(drag.view.begin + step, whole.begin), whole.end - length);
    show(begin, begin + length);
    if (event.pointerType === 'mouse') scroller.scrollTop = drag.scroll + drag.y - event.clientY;
  });
  canvas.addEventListener('pointerup', (/** @type {PointerEvent} */ event) => {
    if (drag && !drag.moved && !drag.isOverview) select(hit(event)?.section ?? null);
    drag = null;
  });
  canvas.addEventListener('pointercancel', () => (drag = null));
  canvas.addEventListener('pointerleave', () => (hint.hidden = true));
  canvas.addEventListener('dblclick', (/** @type {MouseEvent} */ event) => zoom(0.25, timeAt(scene, event.offsetX)));
  // A wheel over a page scrolls it: here it zooms once somebody has clicked.
  canvas.addEventListener('wheel', (/** @type {WheelEvent} */ event) => {
    if (!event.ctrlKey && document.activeElement !== canvas) return;
    event.preventDefault();
    const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (isSideways) pan((event.deltaX || event.deltaY) / (scene.width - scene.gutter));
    else zoom(1.0016 ** event.deltaY, timeAt(scene, Math.max(event.offsetX, scene.gutter)));
  }, { passive: false });

  /** @param {PointerEvent} event */
  function showHint(event) {
    const at = hit(event);
    const text = at?.text
      ? at.text
      : at?.state
      ? `${at.lane.cpu === null ? `cluster ${visible(at.lane.cluster)}` : `cpu${at.lane.cpu}`}: ${visible(at.state.name)}, ${duration(at.ns)}`
      : at?.section !== undefined && at?.section !== null && at
        ? `${sectionNames[sections.name[at.section]]}, ${duration(sections.end[at.section] - sections.begin[at.section])}`
        : null;
    hint.hidden = text === null;
    if (text === null) return;
    hint.textContent = text;
    const place = frame.getBoundingClientRect();
    hint.style.left = `${Math.min(event.clientX - place.left + 12, place.width - hint.offsetWidth - 4)}px`;
    hint.style.top = `${event.clientY - place.top + 16}px`;
  }

  /** The section before or after the selected one, in its row. @param {number} step */
  function next(step) {
    const { selected, view } = scene;
    if (selected === null) {
      const band = [...layout.byThread.values()].find(({ rows }) => rows?.length);
      const row = band?.rows?.[0];
      if (row) reveal(row[Math.min(firstEndingAfter(sections, row, view.begin), row.length - 1)]);
      return;
    }
    const rows = layout.byThread.get(sections.thread[selected])?.rows ?? [];
    const row = rows.find((row) => sections.depth[row[0]] === sections.depth[selected]);
    const place = row ? firstEndingAfter(sections, row, sections.end[selected] - 0.5) + step : -1;
    if (row && place >= 0 && place < row.length) reveal(row[place]);
  }

  /** @type {Record<string, () => void>} */
  const keys = {
    '+': () => zoom(0.7),
    '=': () => zoom(0.7),
    w: () => zoom(0.7),
    '-': () => zoom(1 / 0.7),
    s: () => zoom(1 / 0.7),
    ArrowLeft: () => pan(-0.15),
    a: () => pan(-0.15),
    ArrowRight: () => pan(0.15),
    d: () => pan(0.15),
    ArrowUp: () => (scroller.scrollTop -= 3 * ROW),
    ArrowDown: () => (scroller.scrollTop += 3 * ROW),
    0: reset,
    Home: reset,
    ',': () => next(-1),
    '.': () => next(1),
    n: () => jump(1),
    p: () => jump(-1),
    '/': () => search.focus(),
    Escape: () => select(null),
  };
  canvas.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });

  scroller.addEventListener('scroll', () => {
    scene.scroll = scroller.scrollTop;
    draw();
  });
  new ResizeObserver(resize).observe(scroller);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    colours = readColours();
    draw();
  });

  const tools = element(
    'div',
    { class: 'tools', role: 'toolbar', 'aria-label': 'Swimlane' },
    element('span', { class: 'search', hidden: sections.count === 0 }, search, button('‹', 'Match before', () => jump(-1)), button('›', 'Next match', () => jump(1)), found),
    element('span', { class: 'zoom' }, button('−', 'Zoom out', () => zoom(1 / 0.5)), button('+', 'Zoom in', () => zoom(0.5)), button('Reset', 'Show all of it', reset)),
  );
  // The view opens on the slowest call of the main function, unless a part of the run was asked for.
  const main = data.swimlane.range ? undefined : snapshot.functions[data.main_function];
  const opening = main ? slowestOf(main)[1] : null;
  if (sections.count > 0) select(null);
  frame.append(tools, element('div', { class: 'sides' }, element('div', {}, scroller, status), details), hint);
  /** @type {[string, string][]} */
  const known = [['w s', 'zoom'], ['a d', 'move'], [', .', 'section before and after'], ['/', 'search'], ['n p', 'next match, match before'], ['0', 'all'], ['Esc', 'no section']];
  const opened = opening === null ? null : `At first, the slowest call of ${sectionNames[sections.name[opening]]} is selected; Reset shows the whole run. `;
  const about = element('p', { id: 'swimlane-keys', class: 'about' }, opened, 'Drag moves, a double-click zooms, and after a click so does the wheel. ', known.map(([keys, what]) => element('span', { class: 'key' }, keys.split(' ').map((key) => element('kbd', {}, key)), ` ${what}`)));
  return part('swimlane', 'Swimlane', shownOf(sections), legend(), frame, about);
}

/**
 * Attributes of a section: keys and values.
 * @param {string} text As it is written, each behind a `#`.
 * @returns {[string, string][]}
 */
function attributesOf(text) {
  const all = text.split('#').filter((part) => part !== '');
  return all.map((part) => {
    const at = part.indexOf('=');
    return at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)];
  });
}

/**
 * @param {string} text
 * @param {string} label
 * @param {() => void} act
 */
function button(text, label, act) {
  return element('button', { type: 'button', 'aria-label': label || null, title: label || null, onclick: act }, text);
}

/**
 * All the time that there is something of: the window, or the range that was asked for.
 * @param {Sections} sections
 * @param {DeviceLane[]} devices
 * @param {PowerLane[]} lanes
 * @returns {View}
 */
function wholeView(sections, devices, lanes) {
  const { range } = data.swimlane;
  const origin = snapshot.window.begin_ns;
  let [begin, end] = [0, windowNs];
  if (range) {
    [begin, end] = [Math.max(range[0] - origin, begin), Math.min(range[1] - origin, end)];
  } else {
    for (let section = 0; section < sections.count; section += 1) {
      begin = Math.min(begin, sections.begin[section]);
      end = Math.max(end, sections.end[section]);
    }
    for (const lane of lanes) end = Math.max(end, lane.begins[lane.begins.length - 1]);
    for (const { end: ends } of devices) end = Math.max(end, ends[ends.length - 1]);
  }
  return end - begin >= LEAST_VIEW ? { begin, end } : { begin, end: begin + LEAST_VIEW };
}

/** How many of the run's sections there are. @param {Sections} sections */
function shownOf(sections) {
  const { all, hidden, outside, short, least_ns: least, range, hand_overs: handOvers } = data.swimlane;
  if (all.count === 0) return 'No marked section of the run has ended.';
  const texts = [hidden.count + outside.count + short.count === 0 ? `All ${plural(sections.count, 'section')} of the run.` : `${count(sections.count)} of the ${plural(all.count, 'section')} of the run.`];
  if (range) texts.push(`Outside of the time that was asked for: ${plural(outside.count, 'section')}, ${duration(outside.ns)} in total.`);
  if (short.count > 0) texts.push(`Shorter than ${duration(least)}: ${plural(short.count, 'section')}, ${duration(short.ns)} in total.`);
  if (hidden.count > 0) texts.push(`Left out as the shortest: ${plural(hidden.count, 'section')}, ${duration(hidden.ns)} in total.`);
  if (handOvers.left_out > 0) texts.push(`Hand-overs left out: ${count(handOvers.left_out)}.`);
  if (data.swimlane.open_count > 0) texts.push(`Not ended, and not shown: ${plural(data.swimlane.open_count, 'section')}.`);
  const earlier = data.swimlane.thread_states.reduce((/** @type {number} */ sum, /** @type {any} */ states) => sum + (states?.left_out ?? 0), 0);
  if (earlier > 0) texts.push(`Older thread states left out: ${count(earlier)}.`);
  if (data.swimlane.thread_states.some((/** @type {any} */ states) => states?.is_cut)) texts.push('Some threads have too many states: only the most recent are shown.');
  const coarse = data.power.filter((/** @type {any} */ lane) => lane.resolution !== null);
  if (coarse.length > 0) {
    const most = Math.max(...coarse.map((/** @type {any} */ lane) => lane.resolution));
    texts.push(`Some CPUs changed too often to keep every change: within ${duration(most)} the order of their states is not known, the sums are.`);
  }
  return texts.join(' ');
}

/** The colours of the layers that there are, and of power states. */
function legend() {
  const has = new Set(sectionLayers);
  const layers = Object.entries(LAYERS).filter(([layer]) => has.has(layer));
  const entry = (/** @type {string} */ name, /** @type {string} */ text) => element('li', {}, swatch(name), text);
  const kinds = new Set(data.power.flatMap((/** @type {any} */ lane) => lane.states.map((/** @type {PowerState} */ { kind, khz }) => (kind === 'running' && khz === null ? 'running_unknown' : kind))));
  /** @type {[string, string, string][]} */
  const all = [['running', 'running', 'running'], ['running_unknown', 'running faint', 'running, frequency unknown'], ['idle', 'idle', 'idle'], ['idle_unknown', 'idle faint', 'idle, depth unknown'], ['offline', 'offline', 'offline'], ['unknown', 'unknown', 'unknown']];
  const states = all.filter(([kind]) => kinds.has(kind)).map(([, colour, text]) => entry(colour, text));
  return element('ul', { class: 'legend' }, layers.map(([layer, word]) => entry(layer, word)), legendOfThreads().map(([colour, text]) => entry(colour, text)), states);
}
