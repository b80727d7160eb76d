// The checks of versions, the clock and the limits of the process. They apply to a broker that this user starts here;
// the limit of open files is read from the running broker, if there is one.

import { type Dirent, readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { readBrokerOptions } from '../../../lib/adapter.ts';
import { type Check, type Finding, fault, ok, reportOf, type Subject, sized, warning } from './check.ts';

const DAY_MS = 86_400_000;
/** The lines of Node.js with the end of their support. */
const NODE_LINES: Readonly<Record<number, string>> = {
  20: '2026-04-30',
  21: '2024-06-01',
  22: '2027-04-30',
  23: '2025-06-01',
  24: '2028-04-30',
  25: '2026-06-01',
  26: '2029-04-30'
};
/** The oldest version of Node.js that embermq runs on, as in `engines` of its package.json. */
const LEAST_NODE = [20, 19] as const;
const NODE_REMEDY = 'Install a line of Node.js with long-term support: 22, 24 or 26.';

/** The clock may be this much behind the time of a file that was written just now. */
const TOLERANCE_MS = 2_000;
/** A store that was not written for so long may mean that the clock has jumped ahead. */
const LONG_MS = 365 * DAY_MS;

/** File descriptors for the store, ports and modules, beside those of clients. */
const OWN_DESCRIPTORS = 128;
/** With fewer descriptors, a broker serves a test only. */
const FEW_DESCRIPTORS = 4_096;
const LEAST_MEMORY = 134_217_728;
/** The default of `memoryHighWatermark`, as a share of the limit of the heap. */
const DEFAULT_WATERMARK = 0.85;

function checkNode({ machine }: Subject): Finding[] {
  const { nodeVersion } = machine;
  const [major, minor] = nodeVersion.split('.').map(Number);
  const [leastMajor, leastMinor] = LEAST_NODE;
  if (major < leastMajor || (major === leastMajor && minor < leastMinor))
    return [fault(`Node.js ${nodeVersion} is older than ${leastMajor}.${leastMinor}, the oldest that embermq runs on`)];
  const end = NODE_LINES[major];
  if (end === undefined) return [ok(`Node.js ${nodeVersion}, which is newer than this release of embermq`)];
  const leftMs = Date.parse(end) - machine.now();
  if (leftMs < 0) return [warning(`Node.js ${nodeVersion} gets no security updates since ${end}`)];
  return [ok(`Node.js ${nodeVersion}, which gets security updates until ${end}`)];
}

function checkVersion(): Finding[] {
  // the package refers to itself by name, which works both from the sources and from `dist`
  const { version } = createRequire(import.meta.url)('embermq/package.json') as { version: string };
  return [ok(`embermq ${version}`)];
}

function checkClock(subject: Subject): Finding[] {
  const { folder, machine } = subject;
  const report = reportOf(subject);
  if (folder === undefined || report?.hasStore !== true) return [];
  const newest = newestTime(folder);
  const nowMs = machine.now();
  const shown = (ms: number) => new Date(ms).toISOString();
  const made = report.format?.madeAt ?? 0;
  if (Math.max(newest, made) > nowMs + TOLERANCE_MS)
    return [
      fault(
        `the clock says ${shown(nowMs)}, but the store was written at ${shown(Math.max(newest, made))}: expiry times of messages and sessions would be wrong`
      )
    ];
  if (report.holder === undefined && nowMs - newest > LONG_MS)
    return [
      warning(
        `the clock says ${shown(nowMs)}, and the store was last written at ${shown(newest)}: if the clock is wrong, messages and sessions expire at the start`
      )
    ];
  return [ok(`the clock says ${shown(nowMs)}; the store was last written at ${shown(newest)}`)];
}

/** The latest time of a file of the store. */
function newestTime(folder: string): number {
  const isOfStore = ({ name }: Dirent) => /^(CURRENT|CLOSED|LOG|MANIFEST-\d+|\d+\.(ldb|sst|log))$/.test(name);
  const times = readdirSync(folder, { withFileTypes: true })
    .filter(isOfStore)
    .map(({ name }) => statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0);
  return Math.max(0, ...times);
}

async function checkSynchronization({ machine }: Subject): Promise<Finding[]> {
  const isSynchronized = await machine.isClockSynchronized();
  if (isSynchronized === undefined) return [];
  return [
    isSynchronized
      ? ok('the clock is synchronised with a time server')
      : warning('the clock is not synchronised with a time server: expiry times depend on it')
  ];
}

function checkTimeZone({ machine, shell }: Subject): Finding[] {
  const { TZ } = shell.env;
  const isKnown = TZ === undefined || TZ === '' || isTimeZone(TZ);
  if (!isKnown) return [warning(`the time zone "${TZ}" of the variable TZ is unknown: times in UTC are shown instead`)];
  return [ok(`the time zone is ${machine.timeZone}; only schedules of rules and texts for people depend on it`)];
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name.replace(/^:/, '') });
    return true;
  } catch {
    return /^[A-Za-z]{3,}[+-]?\d/.test(name); // in the format of POSIX, such as CET-1CEST
  }
}

async function checkOpenFiles(subject: Subject): Promise<Finding[]> {
  const { machine, settings } = subject;
  const holder = reportOf(subject)?.holder;
  const limits = await machine.readText(`/proc/${holder ?? 'self'}/limits`);
  const limit = /^Max open files\s+(\S+)/m.exec(limits ?? '')?.[1];
  if (limit === undefined) return [];
  const files = limit === 'unlimited' ? Infinity : Number(limit);
  const clients = Math.max(0, files - OWN_DESCRIPTORS);
  const whose = holder === undefined ? 'this shell' : `the running broker (process ${holder})`;
  const text = `the limit of open files of ${whose} is ${limit}`;
  const wanted = wantedConnections(settings);
  if (wanted > clients)
    return [warning(`${text}: enough for ${clients} of the ${wanted} connections that are configured`)];
  if (files < FEW_DESCRIPTORS) return [warning(`${text}: enough for ${clients} clients only`)];
  return [ok(text)];
}

/** The number of connections that the user has asked for; 0: none, the defaults apply. */
function wantedConnections(settings: Subject['settings']): number {
  const given = settings?.broker.maxConnections;
  return given === undefined ? 0 : readBrokerOptions({ maxConnections: given }).maxConnections;
}

function checkMemory({ machine, settings }: Subject): Finding[] {
  const { memoryBytes, heapBytes } = machine;
  const given = settings?.broker.memoryHighWatermark;
  const watermark =
    given === undefined
      ? heapBytes * DEFAULT_WATERMARK
      : readBrokerOptions({ memoryHighWatermark: given }).memoryHighWatermark;
  const limit = `this process may use ${sized(memoryBytes)} of memory`;
  if (watermark > memoryBytes)
    return [
      fault(
        `${limit}, and memoryHighWatermark is ${sized(watermark)}: the system would end the broker before it refuses messages`,
        `Set memoryHighWatermark to at most ${sized(memoryBytes * 0.8)}, or allow more memory.`
      )
    ];
  if (heapBytes > memoryBytes)
    return [
      warning(
        `${limit}, and the heap of Node.js may grow to ${sized(heapBytes)}`,
        `Set NODE_OPTIONS=--max-old-space-size=${Math.floor((memoryBytes * 0.75) / 1_048_576)}.`
      )
    ];
  if (memoryBytes < LEAST_MEMORY) return [warning(`${limit}; use 128 MB or more`)];
  return [ok(`${limit}, the heap of Node.js ${sized(heapBytes)}, memoryHighWatermark is ${sized(watermark)}`)];
}

async function checkCores({ machine }: Subject): Promise<Finding[]> {
  const [quota = 'max', period] = ((await machine.readText('/sys/fs/cgroup/cpu.max')) ?? '').trim().split(' ');
  const share = Number(quota) / Number(period);
  if (share < 1)
    return [warning(`the container may use ${share} of a core: logins and bursts of messages are delayed`)];
  return [ok(`${machine.cores} ${machine.cores === 1 ? 'core' : 'cores'}`)];
}

/** The checks of versions, the clock and limits. */
export const MACHINE_CHECKS: readonly Check[] = [
  { id: 'node', title: 'The version of Node.js is supported', remedy: NODE_REMEDY, run: checkNode },
  { id: 'version', title: 'The version of embermq', remedy: '', run: checkVersion },
  {
    id: 'clock',
    title: 'The clock agrees with the times of the store',
    remedy: 'Set the clock, and run a time service such as chrony or systemd-timesyncd.',
    run: checkClock
  },
  {
    id: 'clock-sync',
    title: 'The clock is synchronised (with systemd)',
    remedy: 'Turn on a time service: timedatectl set-ntp true',
    run: checkSynchronization
  },
  {
    id: 'time-zone',
    title: 'The time zone exists',
    remedy: 'Set TZ to a name such as Europe/Berlin, and install the package tzdata if it is missing.',
    run: checkTimeZone
  },
  {
    id: 'open-files',
    title: 'Enough files can be open for the connections',
    remedy: 'Raise the limit: ulimit -n 65536, LimitNOFILE=65536 of systemd, or --ulimit nofile=65536 of Docker.',
    run: checkOpenFiles
  },
  {
    id: 'memory',
    title: 'The broker refuses messages before the system ends it for lack of memory',
    remedy: 'Allow more memory: MemoryMax of systemd, or --memory of Docker.',
    run: checkMemory
  },
  {
    id: 'cores',
    title: 'The process may use a whole core',
    remedy: 'Allow more: CPUQuota of systemd, or --cpus of Docker.',
    run: checkCores
  }
];
