// Opens a report in Chromium, uses it, and prints as JSON what a person would see.
// node report.cjs REPORT PICTURES SEARCHED; without anything to be searched it is only looked at.

const { pathToFileURL } = require('node:url');
const { Browser } = require('./chromium.cjs');

const [file, pictures, searched] = process.argv.slice(2);
const WIDTHS = [1400, 400];

/** What the page shows, besides its canvas. */
const texts = () => {
  const cells = (line) => [...line.children].map((cell) => cell.textContent);
  const table = (id) => [...document.querySelectorAll(`#${id} tbody`)].map((body) => [...body.children].map(cells));
  const ids = [...document.querySelectorAll('main > section')].map(({ id }) => id);
  const { columns, all, hidden } = JSON.parse(document.getElementById('data').textContent).swimlane;
  return {
    title: document.title,
    heading: document.querySelector('h1').textContent,
    alerts: document.querySelector('.alerts')?.textContent ?? '',
    tables: Object.fromEntries(ids.map((id) => [id, table(id)])),
    shown: document.querySelector('#swimlane > .about')?.textContent ?? '',
    sections: columns.begin.length,
    all: all.count,
    hidden: hidden.count,
    scripts: document.scripts.length,
    // What no part of the page has: only a name that is no text could make it.
    foreign: document.querySelectorAll('img, iframe, object, embed, base, form, b, i, link[rel=stylesheet]').length,
    ran: 'ran' in window,
  };
};

/** State of the swimlane. */
const state = () => {
  const { begin, end, selected } = document.querySelector('.swimlane').dataset;
  const number = (text) => (text === '' ? null : Number(text));
  const found = document.querySelector('.found').textContent;
  return { begin: Number(begin), end: Number(end), selected: number(selected), found, details: document.querySelector('.details').innerText };
};

/** Uses the swimlane; returns its states. */
async function use(page) {
  const canvas = await page.evaluate(() => {
    const canvas = document.querySelector('canvas');
    canvas.scrollIntoView();
    const { x, y, width, height } = canvas.getBoundingClientRect();
    return { x, y, width, height };
  });
  const middle = [canvas.x + canvas.width * 0.6, canvas.y + Math.min(canvas.height, 500) / 2];
  const states = {};
  const note = async (name) => (states[name] = await page.evaluate(state));
  const plot = canvas.width < 640 ? 84 : 168;
  await note('opened');
  await page.evaluate(() => document.querySelector('canvas').focus());
  await page.key('0');
  await page.key('Escape');
  await page.evaluate(() => document.activeElement.blur());
  await note('whole');
  await page.wheel(...middle, -400);
  await note('wheeled_unfocused');
  await page.evaluate(() => document.querySelector('canvas').focus());
  await page.evaluate(() => document.querySelector('canvas').scrollIntoView());
  await page.wheel(...middle, -400);
  await note('wheeled');
  await page.key('w');
  await note('zoomed');
  await page.drag(middle, [middle[0] - 60, middle[1]]);
  await note('dragged');
  await page.key('0');
  await note('reset');
  await page.key('/');
  await page.type(searched);
  await note('searched');
  await page.key('Enter');
  await note('jumped');
  await page.picture(`${pictures}/found-${Math.round(canvas.width)}.png`);
  await page.evaluate(() => document.querySelector('canvas').focus());
  await page.key('Escape');
  await note('left');
  // Down a column of the canvas, until there is a section.
  const { top, left, width, bottom } = await page.evaluate(() => {
    document.querySelector('canvas').scrollIntoView();
    const { top, left, width, bottom } = document.querySelector('canvas').getBoundingClientRect();
    return { top, left, width, bottom };
  });
  for (let y = top + 60; y < Math.min(bottom, 880); y += 8) {
    await page.click(left + plot + (width - plot) / 2, y);
    if ((await note('clicked')).selected !== null) break;
  }
  await page.key('.');
  await note('next');
  const row = await page.evaluate(() => {
    const line = document.querySelector('#functions tbody tr');
    if (line === null) return null;
    line.scrollIntoView({ block: 'center' });
    const { x, y } = line.getBoundingClientRect();
    return { x, y };
  });
  if (row !== null) {
    await page.click(row.x + 20, row.y + 8);
    await note('slowest');
  }
  return states;
}

async function main() {
  const browser = new Browser();
  const seen = { views: [], used: [] };
  try {
    for (const scheme of ['light', 'dark']) {
      for (const width of WIDTHS) {
        const page = await browser.page(width, 900, scheme);
        await page.open(pathToFileURL(file).href);
        await page.drawn();
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        await page.wholePicture(`${pictures}/${width}-${scheme}.png`);
        seen.page ??= await page.evaluate(texts);
        if (scheme === 'light' && searched !== '') seen.used.push(await use(page));
        const { complaints, requests } = page;
        seen.views.push({ width, scheme, overflow, paper, complaints, requests });
        await page.send('Page.close');
      }
    }
  } finally {
    await browser.close();
  }
  console.log(JSON.stringify(seen));
}

main().catch((error) => {
  console.error(error.stack);
  process.exitCode = 1;
});
