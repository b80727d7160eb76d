import { checkBroker } from '../../lib/adapter.ts';
import type { Broker } from '../../lib/index.ts';
import { type Answer, type Call, GUARD_OPTIONS, type HttpMounts, prefixRow, readMountOptions } from '../rest/index.ts';
import { type GuardOptions, mountPages } from './guard.ts';

/** Options of `healthHandler`. */
export interface HealthOptions extends GuardOptions {
  /** The path before `/livez` and `/readyz`, or several. Default: none. */
  prefix?: string | readonly string[];
}

const HEALTH_OPTIONS = { ...GUARD_OPTIONS, prefix: prefixRow(['']) };

/** A condition of health. */
interface Check {
  readonly name: string;
  /** @returns the problem; undefined: the condition holds */
  fault(broker: Broker): string | undefined;
}

/** A check that fails while an alarm of the broker is present. */
function alarmCheck(name: string, alarm: string): Check {
  return { name, fault: ({ alarms }) => alarms.get(alarm)?.title };
}

/** The process responds. */
const PING: Check = { name: 'ping', fault: () => undefined };

/** The checks of each page. */
const PAGES: Readonly<Record<'livez' | 'readyz', readonly Check[]>> = {
  livez: [PING],
  readyz: [
    PING,
    {
      name: 'broker',
      fault: ({ state }) =>
        ({ connected: undefined, idle: 'the broker is not started', disconnected: 'the broker has stopped' })[state]
    },
    {
      name: 'listeners',
      fault: (broker) => {
        const closed = broker.listeners().filter(({ address, isOpen = address !== undefined }) => !isOpen);
        return closed.length === 0 ? undefined : `not open: ${closed.map(({ name }) => name).join(', ')}`;
      }
    },
    alarmCheck('store', 'store_failed'),
    alarmCheck('store-space', 'store_space_low'),
    alarmCheck('memory', 'memory_high_watermark')
  ]
};

/**
 * Make a handler for health checks: `/livez` answers 200 as long as the process answers at all; `/readyz` answers 200
 * if the broker can serve clients, otherwise 503 with the failed checks. `?verbose` lists every check; `?exclude=NAME`
 * leaves one out.
 *
 * ```ts
 * app.use(healthHandler(broker).node); // GET /livez, GET /readyz
 * ```
 * @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN
 */
export function healthHandler(broker: Broker, options: HealthOptions = {}): HttpMounts {
  checkBroker(broker, 'healthHandler');
  const settings = readMountOptions(HEALTH_OPTIONS, options, 'healthHandler');
  const pages = (['livez', 'readyz'] as const).map((name) => ({
    paths: settings.prefix.map((prefix) => `${prefix}/${name}`),
    show: (call: Call) => healthOf(broker, name, call)
  }));
  return mountPages(broker, settings, pages);
}

interface Result {
  readonly name: string;
  readonly fault: string | undefined;
}

function healthOf(broker: Broker, page: keyof typeof PAGES, call: Call): Answer {
  const query = new URLSearchParams(call.query);
  const excluded = query.getAll('exclude');
  const checks = PAGES[page].filter(({ name }) => !excluded.includes(name));
  const results = checks.map(({ name, fault }) => ({ name, fault: fault(broker) }));
  const isPassed = isGood(results);
  const isJson = /\bapplication\/json\b/i.test(call.header('accept') ?? '');
  const unknown = excluded.filter((one) => !PAGES[page].some(({ name }) => name === one));
  const isShort = isPassed && !query.has('verbose') && unknown.length === 0;
  const body = isJson ? jsonOf(results, unknown) : isShort ? 'ok' : textOf(page, results, unknown);
  const contentType = isJson ? 'application/json' : 'text/plain; charset=utf-8';
  return { status: isPassed ? 200 : 503, headers: { 'content-type': contentType, 'cache-control': 'no-store' }, body };
}

/** The list of checks, in the format of Kubernetes. */
function textOf(page: string, results: readonly Result[], unknown: readonly string[]): string {
  const lines = results.map(({ name, fault }) =>
    fault === undefined ? `[+]${name} ok` : `[-]${name} failed: ${fault}`
  );
  if (unknown.length > 0) lines.push(`warn: ${warningOf(unknown)}`);
  return `${lines.join('\n')}\n${page} check ${isGood(results) ? 'passed' : 'failed'}\n`;
}

function isGood(results: readonly Result[]): boolean {
  return results.every(({ fault }) => fault === undefined);
}

function warningOf(unknown: readonly string[]): string {
  return `there is no check ${unknown.map((name) => JSON.stringify(name.slice(0, 80))).join(', ')} to exclude`;
}

function jsonOf(results: readonly Result[], unknown: readonly string[]): string {
  const checks = results.map(({ name, fault }) =>
    fault === undefined ? { name, status: 'ok' } : { name, status: 'failed', message: fault }
  );
  const warning = unknown.length === 0 ? undefined : warningOf(unknown);
  return JSON.stringify({ status: isGood(results) ? 'ok' : 'failed', checks, warning });
}
