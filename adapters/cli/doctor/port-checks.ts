// A port is tested by binding it for a moment, because nothing else shows all reasons for which it cannot be bound:
// in use, an address of another machine, a privileged port. No client can connect in between unless it tries at that
// moment, and it is then closed as by a broker that is not started.

import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, Server } from 'node:net';
import { dirname } from 'node:path';
import { placeOf } from '../../../lib/adapter.ts';
import { isLoopback } from '../../net/index.ts';
import type { PlannedListener } from '../serve/settings.ts';
import { type Check, type Finding, fault, ok, reportOf, type Subject, warning } from './check.ts';

const ANSWER_MS = 3_000;
/** The addresses that stand for all addresses of this machine, with one at which this machine can be reached. */
const LOOPBACKS: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

interface Address {
  readonly host: string;
  readonly port: number;
  readonly ipv6Only?: boolean;
}

/** A port that is bound while the others are tested, because two listeners may have the same one. */
interface Bound {
  readonly server: Server;
  /** The name of its listener. */
  readonly name: string;
}

/** The address at which a listener can be reached from this machine. */
function reachable({ host, port }: Address): Address {
  return { host: LOOPBACKS[host] ?? host, port };
}

function addressOf({ transport: { place } }: PlannedListener): Address | undefined {
  return 'path' in place || place.port === 0 ? undefined : place;
}

/** Bind an address. @returns the code of an error */
async function bindOnce({ host, port, ipv6Only }: Address): Promise<Server | string | undefined> {
  const server = createServer((socket) => socket.destroy());
  try {
    server.listen({ host, port, ipv6Only, exclusive: true });
    await once(server, 'listening');
    return server;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}

async function checkPorts(subject: Subject): Promise<Finding[]> {
  const findings: Finding[] = [];
  const bound: Bound[] = [];
  try {
    for (const listener of subject.settings?.listeners ?? []) {
      const address = addressOf(listener);
      if (address !== undefined) findings.push(await checkPort(listener, address, bound, subject));
    }
  } finally {
    for (const { server } of bound) server.close();
  }
  return findings;
}

async function checkPort(
  { label, transport, isOptional = false }: PlannedListener,
  address: Address,
  bound: Bound[],
  subject: Subject
): Promise<Finding> {
  const holder = reportOf(subject)?.holder;
  const own = label ?? transport.common.name ?? transport.kind;
  const name = `${placeOf(address)} (${own})`;
  const code = await bindOnce(address);
  if (code instanceof Server) {
    bound.push({ server: code, name: own });
    if (holder === undefined) return ok(`${name} is free`);
    return warning(
      `${name} is free, although the broker runs (process ${holder})`,
      'Give the doctor the flags and the config file of the broker, or restart the broker with this configuration.'
    );
  }
  if (code === 'EACCES')
    return fault(
      `${name}: the user ${subject.machine.userName} may not bind ports below 1024`,
      'Use a higher port, or let the service bind it: AmbientCapabilities=CAP_NET_BIND_SERVICE of systemd.'
    );
  if (code !== 'EADDRINUSE')
    return fault(`${name} cannot be bound: ${code}`, 'Use an address of this machine (--host, --http-host).');
  const remedy = `Stop that program, or use another port${label === undefined ? '' : ` (--${label}-port)`}.`;
  const other = await holderOf(address, bound);
  if (other !== undefined)
    return (isOptional ? warning : fault)(
      `${name} is also the port of ${other.name}`,
      remedy.replace('Stop that program, or use', 'Use')
    );
  const pid = await subject.machine.listenerOf(address.port);
  if (pid !== undefined && pid === holder) return ok(`${name} is open: the broker runs (process ${pid})`);
  if (pid === undefined && holder !== undefined && (await accepts(address)))
    return ok(`${name} is open, probably by the broker that runs (process ${holder})`);
  const program = pid === undefined ? 'a program of another user' : `process ${pid} (${await programOf(pid, subject)})`;
  // serve starts without a listener on a default port that is in use
  const isFault = !isOptional && holder === undefined;
  return (isFault ? fault : warning)(`${name} is in use by ${program}`, remedy);
}

/** Find the listener of the broker that has an address, or a part of it. */
async function holderOf({ host, port }: Address, bound: readonly Bound[]): Promise<Bound | undefined> {
  const wanted = await lookup(host).then(
    ({ address }) => address,
    () => host
  );
  return bound.find(({ server }) => {
    const held = server.address() as AddressInfo;
    return held.port === port && (held.address === wanted || [held.address, wanted].some(isEvery));
  });
}

/** Tell whether an address stands for all addresses of this machine. */
function isEvery(address: string): boolean {
  return Object.hasOwn(LOOPBACKS, address);
}

async function programOf(pid: number, { machine }: Subject): Promise<string> {
  const words = (await machine.readText(`/proc/${pid}/cmdline`))?.split('\0').filter((word) => word !== '') ?? [];
  return words.join(' ').slice(0, 80) || 'unknown';
}

/** Try to open a connection. */
function accepts(address: Address): Promise<boolean> {
  const socket = connect(reachable(address));
  const signal = AbortSignal.timeout(ANSWER_MS);
  return once(socket, 'connect', { signal })
    .then(
      () => true,
      () => false
    )
    .finally(() => socket.destroy());
}

function isWritable(folder: string): Promise<boolean> {
  return access(folder, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false
  );
}

async function checkSockets({ settings, machine }: Subject): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const { transport } of settings?.listeners ?? []) {
    if (!('path' in transport.place)) continue;
    const { path, mode } = transport.place;
    const found = await stat(path).catch(() => undefined);
    if (found !== undefined && !found.isSocket())
      findings.push(fault(`${path} is not a socket`, 'Name another path for the listener.'));
    else if (!(await isWritable(dirname(path))))
      findings.push(
        fault(
          `${path} cannot be opened: its folder does not exist, or ${machine.userName} may not write to it`,
          'Create the folder for the user of the broker (RuntimeDirectory of systemd), or name another path.'
        )
      );
    else if ((mode & 0o002) !== 0)
      findings.push(warning(`every user of this machine may connect to ${path} (mode ${mode.toString(8)})`));
    else findings.push(ok(`${path} can be a socket`));
  }
  return findings;
}

async function checkRunning(subject: Subject): Promise<Finding[]> {
  const report = reportOf(subject);
  if (report === undefined) return [];
  const { holder } = report;
  if (holder === undefined) return [ok('no process has the folder open')];
  const running = `process ${holder} has the folder open`;
  const listeners = subject.settings?.listeners ?? [];
  const health = listeners.find(
    (one) => one.http === 'later' && one.transport.tls === undefined && addressOf(one) !== undefined
  );
  if (health !== undefined) {
    const url = `http://${placeOf(reachable(addressOf(health) as Address))}/readyz`;
    const answer = await fetch(url, {
      signal: AbortSignal.timeout(ANSWER_MS),
      headers: { accept: 'application/json' }
    }).catch(() => undefined);
    const body = (await answer?.json().catch(() => undefined)) as
      | { status?: string; checks?: HealthCheck[] }
      | undefined;
    if (body?.status === 'ok') return [ok(`${running}, and is ready (${url})`)];
    const failed = (body?.checks ?? []).filter(({ status }) => status === 'failed');
    if (failed.length > 0)
      return failed.map(({ name, message }) => fault(`${running}, and is not ready: ${name}: ${message}`));
  }
  for (const listener of listeners) {
    const address = listener.http === undefined ? addressOf(listener) : undefined;
    if (address !== undefined && (await accepts(address)))
      return [ok(`${running}, and accepts connections on ${placeOf(address)}`)];
  }
  const isPort = listeners.some((listener) => addressOf(listener) !== undefined);
  if (!isPort) return [ok(running)];
  return [warning(`${running}, but does not answer on the ports of this configuration`)];
}

interface HealthCheck {
  readonly name: string;
  readonly status: string;
  readonly message?: string;
}

function checkClearText({ settings }: Subject): Finding[] {
  const findings: Finding[] = [];
  for (const { label, transport, http } of settings?.listeners ?? []) {
    const { place, tls, kind } = transport;
    if (tls !== undefined || 'path' in place || isLoopback(place.host)) continue;
    const name = `${placeOf(place)} (${label ?? transport.common.name ?? kind})`;
    findings.push(
      http === undefined
        ? warning(
            `${name} can be reached from other machines without TLS: passwords and messages cross the network in clear text`,
            'Use --mqtts-port or --wss-port with --cert and --key, or a proxy with TLS.'
          )
        : warning(
            `${name} can be reached from other machines without TLS: credentials of operators cross the network in clear text`,
            'Use --https-port and --dashboard-https-port with --cert and --key, or a proxy with TLS.'
          )
    );
  }
  if (settings !== undefined && findings.length === 0)
    return [ok('every listener is for this machine only, or uses TLS')];
  return findings;
}

/** The checks of ports and sockets, and of a broker that runs. */
export const PORT_CHECKS: readonly Check[] = [
  {
    id: 'running',
    title: 'The process that has the data folder open answers',
    remedy: 'Look at its log. Give the doctor the flags and the config file of the broker.',
    run: checkRunning
  },
  {
    id: 'ports',
    title: 'The ports of the configuration are free, or open in the running broker',
    remedy: 'Stop the other program, or use another port.',
    run: checkPorts
  },
  {
    id: 'sockets',
    title: 'Unix sockets can be opened, and not by everyone',
    remedy: 'Set the option `mode` of the listener to 660 or 600.',
    run: checkSockets
  },
  {
    id: 'clear-text',
    title: 'What other machines can reach is encrypted',
    remedy: 'Use TLS, or bind a loopback address.',
    run: checkClearText
  }
];
