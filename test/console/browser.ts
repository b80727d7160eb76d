// A real browser for the tests of the console: Debian's chromium, driven by playwright-core.
import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core';
import { PASSWORD } from '../support/dashboard.ts';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** The reason why the tests are skipped, or false. @throws Error if there is no browser and REQUIRE_BROWSER is 1 */
export function missingBrowser(): string | false {
  if (existsSync(CHROMIUM)) return false;
  const reason = `${CHROMIUM} is missing: apt-get install chromium fonts-dejavu-core fonts-noto-core fonts-noto-cjk`;
  if (process.env.REQUIRE_BROWSER === '1') throw new Error(reason);
  return reason;
}

let browser: Promise<Browser> | undefined;

/** Close the browser. */
export async function closeBrowser(): Promise<void> {
  await (await browser)?.close();
  browser = undefined;
}

/** A tab of one person, and the faults that the browser has reported in it. */
export interface Tab {
  readonly page: Page;
  /** Errors of the page and of its policy, and requests to other servers. */
  readonly faults: string[];
  close(): Promise<void>;
}

/**
 * Messages of the browser about answers that a test expects, and about styles that the editing of chromium itself adds to text that is replaced: the
 * policy blocks them, as it should.
 */
const EXPECTED = /the server responded with a status of (400|401|403|404)\b|^Applying inline style violates/;

/**
 * Features of chromium that start processes which no test uses: a spare one for each navigation, and the suggestions of the address bar in each context.
 * Behind them, those that playwright disables and that matter for these pages: chromium takes the last list only.
 */
const DISABLED_FEATURES = [
  'SpareRendererForSitePerProcess',
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'HttpsFirstBalancedModeAutoEnable',
  'HttpsUpgrades',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'PreconnectToSearch',
  'AimEnabled'
];

const launch = () =>
  chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', `--disable-features=${DISABLED_FEATURES}`]
  });

/** Open an address of the console. */
export async function openTab(url: string, options: BrowserContextOptions = {}): Promise<Tab> {
  browser ??= launch();
  const context = await (await browser).newContext({
    viewport: { width: 1280, height: 800 },
    reducedMotion: 'reduce', // colours do not change while they are checked
    ...options
  });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  page.setDefaultNavigationTimeout(30_000); // tabs that are opened at the same time start a process each
  const faults: string[] = [];
  const { origin } = new URL(url);
  page.on('pageerror', ({ message }) => faults.push(message));
  page.on('console', (message) => {
    if (message.type() === 'error' && !EXPECTED.test(message.text())) faults.push(message.text());
  });
  page.on('request', (request) => {
    const asked = request.url();
    if (!asked.startsWith(`${origin}/`) && !/^(data|blob):/.test(asked)) faults.push(`request to ${asked}`);
  });
  await page.goto(url);
  return { page, faults, close: () => context.close() };
}

/** Log in with the form. */
export async function logIn({ page }: Tab, id: string): Promise<void> {
  await page.getByLabel('User', { exact: true }).fill(id);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('button', { name: 'Log out' }).waitFor();
}

/** Wait until the page has asked for its session. @returns false: there is none */
export async function hasSession({ page }: Tab): Promise<boolean> {
  const logOut = page.getByRole('button', { name: 'Log out' });
  await logOut
    .or(page.getByRole('button', { name: 'Log in' }))
    .first()
    .waitFor();
  return logOut.isVisible();
}

/** Wait until the view has its title and loads nothing. */
export async function settled({ page }: Tab): Promise<void> {
  await page.locator('main:not(:has(.loading)) h1').waitFor();
}

/** Show another view without loading the page again, as a link does, and wait until it is settled. */
export async function visit(tab: Tab, url: string): Promise<void> {
  await tab.page.evaluate(`
    history.pushState(null, '', ${JSON.stringify(url)});
    dispatchEvent(new PopStateEvent('popstate'));
    new Promise((done) => requestAnimationFrame(() => setTimeout(done))); // the view begins to load
  `);
  await settled(tab);
}

/** Open a view without loading the page again. Parts that it has in common with the one before are opened again, too. */
export async function reopen(tab: Tab, base: string, view: string): Promise<void> {
  for (const address of ['no-view', view]) await visit(tab, `${base}/${address}`);
}

let copies = Promise.resolve('');

/**
 * Click a button that copies, and read what it has copied. All tabs share the clipboard of the browser, so that copies wait for each other.
 * @param within contains the button and the message "Copied"
 */
export function copyBy({ page }: Tab, name: string, within: Locator = page.locator('body')): Promise<string> {
  const copy = async () => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.bringToFront(); // a page without the focus may not copy
    await within.getByText('Copied').waitFor({ state: 'detached' });
    await within.getByRole('button', { name }).click();
    await within.getByText('Copied').waitFor();
    return page.evaluate<string>('navigator.clipboard.readText()');
  };
  copies = copies.then(copy, copy);
  return copies;
}
