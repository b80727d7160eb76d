import assert from 'node:assert/strict';
import ts from 'typescript';
import { COUNTER_ABOUT, GAUGE_ABOUT, PLAIN_GAUGE_ABOUT } from '../../lib/adapter.ts';
import type { Timer, TimingWheel } from '../../lib/base/timing-wheel.ts';
import type { ErrorCodeEntry } from '../../lib/events/error-codes/row.ts';
import { ERROR_AREAS } from '../../lib/events/error-codes.ts';
import { CAUSES, createBroker, systemClock } from '../../lib/index.ts';
import type { CauseEntry } from '../../lib/monitor/reasons/causes.ts';
import { SysTopics } from '../../lib/monitor/sys.ts';
import { code, interfaceMembers, markdown } from './table-parts.ts';

const NODE = '<node>';
const PREFIX = `$SYS/brokers/${NODE}/`;

/** Returns the tables of error codes, one for each area. */
export function errorCodes(): string {
  return Object.entries<Readonly<Record<string, ErrorCodeEntry>>>(ERROR_AREAS)
    .map(([title, rows]) => {
      const lines = Object.entries(rows).map(([name, { about, remedy }]) => [code(name), about, remedy]);
      return `#### ${title}\n\n${markdown(['code', 'what it means', 'what to do'], lines)}`;
    })
    .join('\n\n');
}

/** Returns the table of the causes for which a message does not arrive. */
export function causes(): string {
  const names = { clientId: 'C', publisher: 'P', topic: 'T', filter: 'F', rule: 'R' };
  const rows = Object.entries<CauseEntry>(CAUSES).map(([name, { kinds, text, remedy }]) => [
    code(name),
    text(names),
    kinds.join(', '),
    remedy
  ]);
  return markdown(['code', 'cause', 'known', 'what to do'], rows);
}

/** Returns the table of the statistics that are published under `$SYS`. */
export function sysFigures(): string {
  const plain = publishedTopics(false);
  const dotted = publishedTopics(true).filter((topic) => !plain.includes(topic));
  const rows = plain
    .filter((topic) => /\/(?:stats|metrics)\//.test(topic))
    .map((topic) => {
      const suffix = topic.slice(PREFIX.length);
      const also = dotted.filter((other) => isAnotherSpelling(other.slice(PREFIX.length), suffix));
      return [
        code(suffix),
        aboutOf(suffix),
        also
          .map((other) => other.slice(PREFIX.length))
          .map(code)
          .join(', ')
      ];
    });
  return markdown(['topic below `$SYS/brokers/<node>/`', 'number', 'with `sysDottedTopics` also'], rows);
}

/** Returns the topics that the broker publishes at intervals. */
function publishedTopics(isDotted: boolean): string[] {
  const timers: Timer[] = [];
  const topics: string[] = [];
  const sys = new SysTopics({
    node: NODE,
    version: '',
    clock: systemClock,
    wheel: { armAt: (timer: Timer) => void timers.push(timer), disarm: () => undefined } as unknown as TimingWheel,
    metrics: createBroker().metrics,
    settings: { sysInterval: 1, sysHeartbeat: 1, sysDottedTopics: isDotted },
    publish: (topic) => void topics.push(topic),
    hasSubscribers: () => true,
    nodes: () => [NODE],
    startedAtMs: 0
  });
  sys.start();
  for (const timer of timers.splice(0)) timer.ring(0);
  return topics;
}

function isAnotherSpelling(other: string, suffix: string): boolean {
  if (other.replaceAll('.', '/') === suffix) return true;
  return suffix.startsWith('metrics/packets/') && /^\/(?:received|sent)$/.test(other.slice(suffix.length))
    ? other.startsWith(suffix)
    : false;
}

function aboutOf(suffix: string): string {
  const [, kind, name] = /^(stats|metrics)\/(.*)$/.exec(suffix) as RegExpExecArray;
  const counters: Readonly<Record<string, string>> = { ...COUNTER_ABOUT, ...PLAIN_GAUGE_ABOUT };
  if (kind === 'metrics') {
    const dotted = name.replaceAll('/', '.');
    const own = counters[dotted];
    if (own !== undefined) return own;
    const directions = ['received', 'sent'].filter((way) => counters[`${dotted}.${way}`] !== undefined);
    return directions.length === 1
      ? counters[`${dotted}.${directions[0]}`]
      : `${dotted.split('.')[1].toUpperCase()} packets ${directions.join(' and ')}`;
  }
  const [, gauge, value] = /^(.*)\/(count|max)$/.exec(name) as RegExpExecArray;
  const about = GAUGE_ABOUT[gauge.replaceAll('/', '.') as keyof typeof GAUGE_ABOUT];
  return value === 'count' ? about : `The highest number of: ${about[0].toLowerCase()}${about.slice(1)}`;
}

/** Returns the table of hooks. Their docstrings begin with their decision, and their types define their parameters. */
export function hooks(): string {
  const file = 'lib/events/hooks.ts';
  const rows = interfaceMembers(file, 'Hooks').map(({ name, about, node }) => {
    assert.ok(ts.isMethodSignature(node), `${name} is a function`);
    const request = node.parameters[0].type?.getText().replace('<Data>', '') ?? assert.fail(name);
    const fields = interfaceMembers(file, request, true).map((field) => field.name);
    const isAsynchronous = node.type?.getText().startsWith('Awaitable<') === true;
    const decides = /^.*?[.;]/.exec(about)?.[0].replace(/;$/, '.') ?? about;
    return [code(name), decides, fields.map(code).join(', '), isAsynchronous ? 'yes' : 'no'];
  });
  return markdown(['hook', 'what it does', 'what it gets', 'may be asynchronous'], rows);
}
