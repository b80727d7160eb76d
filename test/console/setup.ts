// The console that the browser tests of one area share, with its users, clients, topics and traffic.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, describe } from 'node:test';
import { setImmediate as immediate } from 'node:timers/promises';
import type { Broker, BrokerOptions } from 'embermq';
import type { BrowserContextOptions } from 'playwright-core';
import { startConsole } from '../support/dashboard.ts';
import { hasSession, logIn, missingBrowser, openTab, type Tab } from './browser.ts';

/** Names that a page must show as text. */
export const HOSTILE_NAMES: readonly string[] = [
  '<img src=x onerror="globalThis.hacked=1">',
  '\u202Egnp.exe',
  '   ',
  'x'.repeat(4_000),
  '.',
  '..',
  'a/b?c#d\'"',
  'عميل'
];

const OF_BROKER: BrokerOptions = {
  allowAnonymous: true,
  aclNomatch: 'allow',
  memoryHighWatermark: 0,
  maxClientidLen: 65_535,
  maxConnectSize: 131_072
};

/** True to take real minutes, and to check each view in each look. */
export const IS_LONG = process.env.CONSOLE_LONG === '1';

/** A number of things that a person gives, to measure with more of them than by default. */
function sizeOf(variable: string, normal: number): number {
  const size = Number(process.env[variable] ?? normal);
  if (!Number.isSafeInteger(size) || size < 1) throw new Error(`${variable} must be a positive number`);
  return size;
}

/** The clients of `crowd`, over links in the process. */
export const CLIENTS = sizeOf('CONSOLE_CLIENTS', 2_000);
/** The topics of `crowd`, with a retained message each. */
const TOPICS = sizeOf('CONSOLE_TOPICS', 50_000);
/** The topics of `crowd` are spread evenly over these. */
export const SITES = 100;

/** Connect the clients `device-0` and so on, which subscribe to one filter each, and retain a message on `site-0/device-0/state` and so on. */
export async function crowd(broker: Broker): Promise<void> {
  for (let at = 0; at < CLIENTS; at++) {
    const client = await broker.connect({ clientId: `device-${at}` });
    await client.subscribe(`site-${at % SITES}/device-${Math.floor(at / SITES)}/commands`, { qos: 1 });
  }
  for (let at = 0; at < TOPICS; at++) {
    await broker.publish(`site-${at % SITES}/device-${Math.floor(at / SITES)}/state`, '{"t":21}', { retain: true });
    if (at % 1_000 === 0) await immediate(); // other areas have servers in this process
  }
}

/** The console of one area of tests. */
export interface ServedConsole {
  readonly broker: Broker;
  /** The address of the console, without a slash at its end. */
  readonly base: string;
  /**
   * Open a view as a person who has logged in: `ann` is an administrator, `bob` a viewer. The tabs of a person share a session. A tab that another test
   * has closed may be used again.
   * @param options of a new tab, with a separate cache and storage; `{}` for a test that changes its tab for later pages
   */
  open(path: string, id?: string, options?: BrowserContextOptions): Promise<Tab>;
}

/** Options of the broker of an area, and how it runs. */
interface AreaOptions extends BrokerOptions {
  readonly isAlone?: boolean;
  readonly prepare?: Parameters<typeof startConsole>[2];
  readonly load?: () => Promise<BrokerOptions>;
}

/** The words on the command line; none: all areas. */
const WORDS = process.argv.slice(2).map((word) => word.toLowerCase());

interface Area {
  /** True if nothing else may run at the same time. */
  readonly isAlone: boolean;
  declare(): void;
}

const areas: Area[] = [];

/** Maximum time of an area: a test that waits for ever fails, and the others run. */
const MAX_AREA_MS = IS_LONG ? 3_600_000 : 300_000;

/** Areas that run at the same time: tests wait for pages and for ticks of the broker more than half of the time. */
const AT_ONCE = 3;

/** Declare the tests of all areas: first those that run at the same time, and then those that run alone. @throws Error if no area contains a word of the command line */
export function declareAreas(): void {
  if (areas.length === 0) throw new Error(`no area of the console contains ${WORDS.join(' or ')}`);
  describe('The console in a browser', { concurrency: AT_ONCE }, () => {
    for (const { isAlone, declare } of areas) if (!isAlone) declare();
  });
  for (const { isAlone, declare } of areas) if (isAlone) declare();
}

/**
 * Declare the tests of an area, in a separate file that `test/console.ts` imports. They share a console at `/base/console` with the users `ann`
 * and `bob`, the clients `meter-1`, `meter-2`, `odd` and those with hostile names, some retained messages and the rule `hot`. They are skipped without
 * a browser, and if words were given on the command line of which the name of the area contains none.
 * @param name begins with a capital letter
 * @param tests declares them; `served` may be used once they run
 * @param ofBroker further options of the broker
 * @param isAlone true if no other area may run at the same time: it measures, or needs the process for itself
 * @param prepare receives the HTTP server before it listens
 * @param load makes options of the broker that have to be waited for: a file that awaits something itself would declare its area behind all others
 */
export function describeConsole(
  name: string,
  tests: (served: ServedConsole) => void,
  { isAlone = false, prepare, load, ...ofBroker }: AreaOptions = {}
): void {
  if (WORDS.length > 0 && !WORDS.some((word) => name.toLowerCase().includes(word))) return;
  areas.push({
    isAlone,
    declare: () => declareArea(name, tests, async () => ({ ...ofBroker, ...(await load?.()) }), prepare)
  });
}

function declareArea(
  name: string,
  tests: (served: ServedConsole) => void,
  optionsOfBroker: () => Promise<BrokerOptions>,
  prepare: AreaOptions['prepare']
): void {
  describe(name, { skip: missingBrowser(), concurrency: 1, timeout: MAX_AREA_MS }, () => {
    let server: Awaited<ReturnType<typeof startConsole>>;
    const logins = new Map<string, BrowserContextOptions['storageState']>();
    /** Tabs that tests have closed, by the person. To load a page in one of them costs a third of a new tab, which has a process. */
    const closed = new Map<string, Tab[]>();
    const opened: Tab[] = [];
    before(async () => {
      server = await startConsole({ prefix: '/base/console' }, { ...OF_BROKER, ...(await optionsOfBroker()) }, prepare);
      await fill(server.broker);
    });
    after(async () => {
      for (const tab of opened) await tab.close(); // also those of tests that have failed, which hold connections
      await server[Symbol.asyncDispose]();
    });
    tests({
      get broker() {
        return server.broker;
      },
      get base() {
        return `http://127.0.0.1:${server.port}/base/console`;
      },
      async open(path, id = 'ann', options) {
        const url = `${this.base}/${path}`;
        const before = options === undefined ? closed.get(id)?.pop() : undefined;
        const storageState = logins.get(id);
        const tab = before ?? (await openTab(url, { ...options, ...(storageState && { storageState }) }));
        if (before === undefined) opened.push(tab);
        else {
          await before.page.goto(url);
          before.faults.length = 0;
        }
        if (storageState === undefined || !(await hasSession(tab))) {
          await logIn(tab, id);
          logins.set(id, await tab.page.context().storageState());
        }
        if (options !== undefined) return tab;
        return { ...tab, close: async () => void closed.set(id, [...(closed.get(id) ?? []), tab]) };
      }
    });
  });
}

/** Clients, retained messages and traffic. */
async function fill(broker: Broker): Promise<void> {
  for (const clientId of [...HOSTILE_NAMES, 'meter-1', 'meter-2']) {
    const client = await broker.connect({ clientId });
    await client.subscribe('commands/+', { qos: 1 });
    await client.publish('meters/1/state', '{"kWh":12.5}', { retain: true });
  }
  await broker.rules.create({
    id: 'hot',
    sql: 'SELECT payload.t AS t FROM "rooms/#" WHERE payload.t > 20',
    actions: [{ name: 'republish', params: { target_topic: 'hot/rooms', payload_tmpl: 'hot', target_qos: 0 } }]
  });
  const client = await broker.connect({ clientId: 'odd' });
  await client.publish('odd/<b>bold</b>/ /state', Buffer.from([0, 255]), { retain: true });
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly impact: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}

/** The serious findings of axe, each with its elements. */
export async function seriousFindings({ page }: Tab): Promise<string[]> {
  if (!(await page.evaluate<boolean>('"axe" in globalThis'))) await page.evaluate(AXE);
  const { violations } = await page.evaluate<AxeResult>("axe.run({ resultTypes: ['violations'] })");
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' ')}`);
}
