// Tables that can be sorted, and of which long ones show their first rows.

/**
 * @typedef {object} Column
 * @property {string} title
 * @property {string} [hint] Explains the title.
 * @property {(row: any) => Child|Child[]} cell
 * @property {(row: any) => number|string|null|undefined} [key] What the column is sorted by; without it, it is text.
 * @property {boolean} [isText] Whether it stands on the left.
 * @property {string} [figure] Key of the snapshot, by which its figures may be incomplete.
 */

/**
 * @typedef {object} TableOptions
 * @property {string} caption
 * @property {Column[]} columns
 * @property {any[]} rows
 * @property {number} [sorted] Number of the column that the rows are sorted by at first; by itself they stay in their order.
 * @property {(row: any) => string} [group] What neighbours share: the first column shows it once.
 * @property {number} [most] Rows that are shown before somebody asks for more.
 * @property {(row: any) => void} [select] What choosing a row does.
 */

/** A column of words. @param {string} title @param {(row: any) => string} text @param {Partial<Column>} [more] @returns {Column} */
const words = (title, text, more = {}) => ({ title, cell: text, key: text, isText: true, ...more });

/** A column of times, ns. @param {string} title @param {(row: any) => number|null} key @param {string} [figure] @returns {Column} */
const times = (title, key, figure) => ({ title, key, figure, cell: (row) => duration(key(row)) });

/** A column of shares of a whole, with bars. @param {string} title @param {(row: any) => number} key @param {number} whole @param {(row: any) => string} colour @param {string} [hint] @returns {Column} */
const shares = (title, key, whole, colour, hint) => ({ title, key, hint, cell: (row) => [bar(key(row) / whole, colour(row)), element('span', { class: 'percent' }, percent(key(row), whole))] });

/** A column of counts. @param {string} title @param {(row: any) => number|null} key @param {string} [figure] @returns {Column} */
const counts = (title, key, figure) => ({ title, key, figure, cell: (row) => count(key(row)) });

/**
 * @param {TableOptions} options
 * @returns {HTMLElement}
 */
function table({ caption, columns, rows, sorted, group, most = Infinity, select }) {
  let order = { column: sorted ?? -1, falls: true };
  let isWhole = rows.length <= most;
  /** @type {any} */
  let selected = null;
  const body = element('tbody');
  const heads = columns.map((column, number) => {
    const sort = () => {
      order = { column: number, falls: order.column === number ? !order.falls : !column.isText };
      fill();
    };
    const mark = column.figure && isIncomplete(column.figure) ? ' ~' : '';
    const title = column.key
      ? element('button', { type: 'button', onclick: sort, title: column.hint }, column.title + mark)
      : element('span', { title: column.hint }, column.title + mark);
    return element('th', { scope: 'col', class: column.isText ? 'text' : null }, title);
  });
  const more = element('button', { type: 'button', class: 'more', onclick: () => {
    isWhole = true;
    fill();
  } }, `Show all ${count(rows.length)}`);

  const choose = (/** @type {any} */ row) => {
    selected = row;
    [...body.children].forEach((line) => line.setAttribute('aria-selected', String(line.row === row)));
    select?.(row);
  };

  function fill() {
    const { column, falls } = order;
    const key = columns[column]?.key;
    const shown = [...rows];
    if (key) shown.sort((one, other) => compare(key(one), key(other)) * (falls ? -1 : 1));
    heads.forEach((head, number) => {
      if (number === column) head.setAttribute('aria-sort', falls ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    const lines = shown.slice(0, isWhole ? Infinity : most).map((row, place) => {
      const cells = columns.map(({ cell, isText, figure }) => {
        const isRough = figure && isIncomplete(figure);
        const content = cell(row);
        return element('td', { class: isText ? 'text' : null }, isRough && content !== UNKNOWN ? '~' : null, content);
      });
      const repeats = group !== undefined && place > 0 && group(row) === group(shown[place - 1]);
      const line = element('tr', { class: repeats ? 'repeats' : null }, cells);
      if (select) {
        line.row = row;
        line.tabIndex = 0;
        line.setAttribute('aria-selected', String(row === selected));
        line.addEventListener('click', () => choose(row));
        line.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
          if (event.key !== 'Enter' && event.key !== ' ') return;
          event.preventDefault();
          choose(row);
        });
      }
      return line;
    });
    body.replaceChildren(...lines);
    more.hidden = isWhole;
  }

  fill();
  const head = element('thead', {}, element('tr', {}, heads));
  const whole = element('table', { class: select ? 'choice' : null }, element('caption', {}, caption), head, body);
  const frame = element('div', { class: 'table' }, element('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': caption }, whole), more);
  frame.choose = choose;
  return frame;
}

/**
 * Order of two keys; what is not known is below everything.
 * @param {number|string|null|undefined} one
 * @param {number|string|null|undefined} other
 */
function compare(one, other) {
  if (typeof one === 'string' && typeof other === 'string') return one < other ? -1 : Number(one > other);
  return Number(one ?? -Infinity) - Number(other ?? -Infinity) || 0;
}
