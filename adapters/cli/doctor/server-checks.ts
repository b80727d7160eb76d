// A wrong address of a bridge or of a database shows only when the broker has started: clients are refused, or messages
// wait. So the doctor opens a connection to each server that the config file names, and closes it without a word.

import { isPlainObject } from '../../../lib/adapter.ts';
import { filledOptions } from '../config-values.ts';
import { type Check, type Finding, ok, type Subject, warning } from './check.ts';

/** The default ports of the schemes of URLs. */
const PORTS: Readonly<Record<string, number>> = {
  mqtt: 1883,
  tcp: 1883,
  mqtts: 8883,
  ssl: 8883,
  ws: 80,
  wss: 443,
  http: 80,
  https: 443,
  ldap: 389,
  ldaps: 636,
  postgres: 5432,
  postgresql: 5432,
  mysql: 3306,
  redis: 6379,
  rediss: 6379,
  mongodb: 27017
};

/** Keys of options whose values are addresses of servers: the issuer of a token has a URL, but nothing connects to it. */
const OF_SERVERS = /ur[il]s?$|^(connection|servers?)$/i;

/** The lists of the config file that name servers. */
const LISTS = ['auth', 'bridges', 'webhooks'] as const;

/** A server that the broker connects to. */
interface Target {
  /** The place of its address: `bridges[0].url`. */
  readonly place: string;
  readonly host: string;
  readonly port: number;
}

/** Find the addresses in a value. A text that names several hosts is passed over. */
function targetsIn(value: unknown, place: string, isServer = false): Target[] {
  if (typeof value === 'string') {
    const port = PORTS[/^([a-z]+):\/\//i.exec(value)?.[1]?.toLowerCase() ?? ''];
    if (!isServer || port === undefined || !URL.canParse(value)) return [];
    const url = new URL(value);
    const host = url.hostname.replace(/^\[|\]$/g, '');
    return host === '' || /[$%,]/.test(host) ? [] : [{ place, host, port: Number(url.port) || port }];
  }
  if (Array.isArray(value)) return value.flatMap((item, at) => targetsIn(item, `${place}[${at}]`, isServer));
  if (!isPlainObject(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => targetsIn(item, `${place}.${key}`, OF_SERVERS.test(key)));
}

async function targetsOf({ content, shell }: Subject): Promise<Target[]> {
  const targets: Target[] = [];
  for (const list of LISTS) {
    const entries = Array.isArray(content[list]) ? (content[list] as unknown[]) : [];
    for (const [at, entry] of entries.entries()) {
      if (!isPlainObject(entry)) continue;
      const place = `${list}[${at}]`;
      // a file or variable that cannot be read is reported as an error of the configuration
      const filled = await filledOptions(entry, place, shell).then(
        (options) => options.filled,
        () => entry
      );
      targets.push(...targetsIn(filled, place));
    }
  }
  return targets;
}

async function checkServers(subject: Subject): Promise<Finding[]> {
  const targets = await targetsOf(subject);
  return Promise.all(
    targets.map(async ({ place, host, port }) => {
      const name = `${place}: ${host.includes(':') ? `[${host}]` : host}:${port}`;
      const failure = await subject.machine.connectionFailure(host, port);
      return failure === undefined
        ? ok(`${name} accepts connections`)
        : warning(`${name} cannot be reached: ${failure}`);
    })
  );
}

/** The checks of the servers that the broker connects to. */
export const SERVER_CHECKS: readonly Check[] = [
  {
    id: 'servers',
    title: 'The servers of `auth`, `bridges` and `webhooks` accept connections',
    remedy: 'Correct the address, start that server, or let the firewall pass the connection.',
    run: checkServers
  }
];
