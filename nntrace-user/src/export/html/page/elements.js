// Elements of the page. A text from the data is only ever set as a text.

/** @typedef {Node|string|null|undefined|false} Child */

/**
 * Creates an element. Attributes that are `null` or `false` are left out; `on...` are listeners.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Child|Child[])} children
 * @returns {any}
 */
function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/**
 * Creates an element of a drawing.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Child|Child[])} children
 * @returns {any}
 */
function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

/**
 * @param {Element} element
 * @param {Record<string, any>} attributes
 * @param {(Child|Child[])[]} children
 */
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

/**
 * A part of the report: a heading and what follows it.
 * @param {string} id
 * @param {string} title
 * @param {string|null} about
 * @param {...(Child|Child[])} children
 */
function part(id, title, about, ...children) {
  return element(
    'section',
    { id, 'aria-labelledby': `${id}-title` },
    element('h2', { id: `${id}-title` }, title),
    about && element('p', { class: 'about' }, about),
    ...children,
  );
}

/**
 * A square in the colour of a layer or a state.
 * @param {string} name
 */
function swatch(name) {
  return element('span', { class: `swatch ${name}`, 'aria-hidden': 'true' });
}

/**
 * A bar as long as a share.
 * @param {number} share Of 1.
 * @param {string} [name] Class of its colour.
 */
function bar(share, name = '') {
  const fill = element('span', { class: `fill ${name}` });
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return element('span', { class: 'bar', 'aria-hidden': 'true' }, fill);
}
