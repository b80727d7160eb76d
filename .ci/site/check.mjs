// Looks at the built site in a browser, Debian's chromium: pages without errors, the search, the texts of the API reference, and pictures of pages in
// light and dark in `.cache/site-build/pictures`. `node .ci/site/check.mjs`, after `npm run docs`
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { chromium } from 'playwright-core';
import { ReflectionKind } from 'typedoc';
import { SHELVES } from './shelves.mjs';

const root = join(import.meta.dirname, '../..');
const site = join(root, '.cache/site');
const pictures = join(root, '.cache/site-build/pictures');
const TYPES = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.json': 'application/json'
};

/** Questions of readers, and the page that must be among the first three results. */
const QUESTIONS = [
  ['counters of dropped messages', '/look-up/'],
  ['mount on express', '/do/express'],
  ['fake timers', '/do/fake-timers'],
  ['tumbling window', '/do/streams'],
  ['why was my client refused', '/do/troubleshooting'],
  ['port in use', '/do/troubleshooting'],
  ['nothing arrives', '/do/troubleshooting'],
  ['messages are dropped', '/do/troubleshooting'],
  ['home assistant', '/do/home-assistant'],
  ['nginx websocket', '/do/nginx'],
  ['kubernetes probes', '/do/kubernetes']
];

/** Members that a table describes: the page of the API reference, the name, and a part of its text. */
const DESCRIBED = [
  ['interfaces/lib.BrokerOptions', 'maxConnections', 'Maximum number of connections of all listeners together.'],
  ['interfaces/lib.BrokerEvents', 'client.connected', 'A successful CONNACK has been sent']
];

const server = createServer((request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url, 'http://site').pathname));
  try {
    const body = readFileSync(
      join(site, path.endsWith('/') ? `${path}index.html` : extname(path) ? path : `${path}.html`)
    );
    response
      .writeHead(200, { 'content-type': TYPES[extname(path) || '.html'] ?? 'application/octet-stream' })
      .end(body);
  } catch {
    response.writeHead(404).end();
  }
});
await once(server.listen(0, '127.0.0.1'), 'listening');
const origin = `http://127.0.0.1:${server.address().port}`;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox']
});
const faults = [];
try {
  mkdirSync(pictures, { recursive: true });
  for (const colorScheme of ['light', 'dark']) {
    const page = await browser.newPage({ colorScheme, viewport: { width: 1280, height: 900 } });
    page.on('pageerror', (error) => faults.push(`${page.url()}: ${error.message}`));
    page.on('response', (response) => {
      if (response.status() >= 400) faults.push(`${page.url()}: ${response.status()} for ${response.url()}`);
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(origin) && !request.url().startsWith('data:'))
        faults.push(`${page.url()} asks for ${request.url()}`);
    });
    const shown = [
      '/',
      '/openapi/index.html',
      '/api/index.html',
      '/do/troubleshooting',
      ...SHELVES.map(
        ({
          name,
          groups: [
            {
              pages: [first]
            }
          ]
        }) => `/${name}/${first.path}`
      )
    ];
    for (const path of shown) {
      await page.goto(origin + path, { waitUntil: 'networkidle' });
      await page.screenshot({
        path: join(pictures, `${path.replace(/^\/|\.html$/g, '').replaceAll('/', '-') || 'home'}-${colorScheme}.png`)
      });
    }
    if (colorScheme === 'light') {
      await search(page);
      for (const described of DESCRIBED) await describes(page, ...described);
    }
    await page.close();
  }
} finally {
  await browser.close();
  server.close();
}
const { all, without } = members();
process.stdout.write(`API reference: ${without.length} of ${all} members have no text\n`);
faults.push(...without.map((name) => `${name} has no text in the API reference`));
assert.deepEqual(faults, []);

/** The members of the API reference, and the names of those without a text. */
function members() {
  const { Accessor, EnumMember, Method, Property } = ReflectionKind;
  const without = [];
  let all = 0;
  const visit = ({ name, kind, comment, signatures = [], getSignature, type, children }, parent) => {
    const path = parent === undefined ? name : `${parent}.${name}`;
    if (kind & (Accessor | EnumMember | Method | Property)) {
      const ofFunction = type?.declaration?.signatures ?? [];
      const comments = [comment, getSignature?.comment, ...[...signatures, ...ofFunction].map((each) => each.comment)];
      all++;
      if (!comments.some((each) => each?.summary.length > 0 || each?.blockTags?.length > 0)) without.push(path);
    }
    for (const child of children ?? type?.declaration?.children ?? []) visit(child, path);
  };
  for (const module of JSON.parse(readFileSync(join(site, '../site-build/api.json'), 'utf8')).children) visit(module);
  return { all, without };
}

/** Checks that a page of the API reference shows the text of a member. */
async function describes(page, path, member, text) {
  await page.goto(`${origin}/api/${path}.html`, { waitUntil: 'networkidle' });
  const shown = await page
    .locator('.tsd-member', { has: page.locator(`[id="${member.toLowerCase().replaceAll('.', '')}"]`) })
    .allInnerTexts();
  if (!shown.some((each) => each.includes(text)))
    faults.push(`${path} shows at ${member}: ${shown.join(' ') || 'nothing'}`);
}

/** Asks the questions in the search of the site. */
async function search(page) {
  await page.goto(`${origin}/`, { waitUntil: 'networkidle' });
  await page.locator('.VPNavBarSearch button').first().click();
  for (const [question, wanted] of QUESTIONS) {
    await page.locator('#localsearch-input').fill(question);
    await page.waitForTimeout(600); // the search waits for the end of typing
    await page.locator('#localsearch-list a').first().waitFor();
    const found = await page
      .locator('#localsearch-list a')
      .evaluateAll((links) => links.map((link) => new URL(link.href).pathname.replace(/\.html$/, '')));
    const place = found.findIndex((path) => path.startsWith(wanted));
    process.stdout.write(`site: "${question}": ${found.slice(0, 3).join(', ')}\n`);
    if (place < 0 || place > 2) faults.push(`"${question}" has ${wanted} at place ${place + 1} of ${found.length}`);
  }
}
