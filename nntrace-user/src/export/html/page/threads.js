// States of threads: whether they ran, waited for a CPU, or slept.

/** Height of the strip above a thread's sections, with the gap below it. */
const STRIP = 6;
/** Numbers of the states in the data. Those of threads on CPUs begin with the last, by CPU. */
const [NOT_KNOWN, ASLEEP, WAITING, ON_CPU] = [0, 1, 2, 3];

/** @returns {(Stretches|null)[]} */
function readThreadStates() {
  return data.swimlane.thread_states.map((/** @type {any} */ states) => states && readStretches(states));
}

/** Colours of the states of threads, with their words: none where no context switch is known. @returns {[string, string][]} */
function legendOfThreads() {
  const has = data.swimlane.thread_states.some((/** @type {any} */ states) => states !== null);
  return has ? [['running', 'thread on a CPU'], ['waiting', 'thread waiting for a CPU'], ['asleep', 'thread asleep']] : [];
}

/** @param {number} state */
function threadState(state) {
  return state >= ON_CPU ? `on cpu${state - ON_CPU}` : { [WAITING]: 'waiting for a CPU', [ASLEEP]: 'asleep' }[state] ?? 'unknown state';
}

/** Kinds of states, in the order in which they are drawn: what is asleep below the others. @param {number} state */
function kindOfThreadState(state) {
  return state === NOT_KNOWN ? 0 : state === ASLEEP ? 1 : state === WAITING ? 3 : 2;
}

/**
 * A strip of a thread's states. Within a column, running is at the bottom and waiting for a CPU at the top, by their shares.
 * @param {Scene} scene
 * @param {Stretches} stretches
 * @param {number} top
 */
function paintThreadStates(scene, stretches, top) {
  const { context } = scene;
  const height = STRIP - 2;
  const drawn = ['', colours.rule, colours.running, colours.waiting];
  eachStretch(scene, stretches, (kind, x, wide, density) => {
    if (kind === 0) return;
    const own = kind === 1 ? 1 : Math.max(1, height * density);
    context.fillStyle = drawn[kind];
    context.fillRect(x, kind === 3 ? top + 1 : top + 1 + height - own, wide, own);
  }, kindOfThreadState);
}

/**
 * What a thread did at a time, in words; `null` where nothing is known.
 * @param {Stretches} stretches
 * @param {number} time
 */
function threadStateAt({ begins, state }, time) {
  const at = firstAbove(begins, time) - 1;
  if (at < 0 || at >= state.length) return null;
  return `${threadState(state[at])}, ${duration(begins[at + 1] - begins[at])}`;
}

/**
 * Times of a thread between two times, with their names: none where no context switch of it is known.
 * @param {Stretches|null} stretches
 * @param {number} begin
 * @param {number} end
 * @returns {[string, number][]}
 */
function timesOf(stretches, begin, end) {
  if (!stretches) return [];
  const { running, waiting, asleep, unknown } = threadTimes(stretches, begin, end);
  /** @type {[string, number][]} */
  const all = [['On a CPU', running], ['Waited for a CPU', waiting], ['Asleep', asleep]];
  return unknown > 0 ? [...all, ['State unknown', unknown]] : all;
}

/**
 * How long a thread ran, waited for a CPU and slept between two times, and for how long that is not known, ns.
 * @param {Stretches} stretches
 * @param {number} begin
 * @param {number} end
 */
function threadTimes({ begins, state }, begin, end) {
  const times = { running: 0, waiting: 0, asleep: 0, unknown: 0 };
  let known = begin;
  for (let at = Math.max(0, firstAbove(begins, begin) - 1); at < state.length && begins[at] < end; at += 1) {
    const from = Math.max(begins[at], begin);
    const to = Math.min(begins[at + 1], end);
    if (to <= from) continue;
    times.unknown += from - known;
    known = to;
    if (state[at] >= ON_CPU) times.running += to - from;
    else if (state[at] === WAITING) times.waiting += to - from;
    else if (state[at] === ASLEEP) times.asleep += to - from;
    else times.unknown += to - from;
  }
  times.unknown += end - known;
  return times;
}
