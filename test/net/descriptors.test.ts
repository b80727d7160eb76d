import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Server as HttpServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Duplex, PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, it } from 'node:test';
import mqtt from 'mqtt';
import { Gate } from '../../adapters/net/gate.ts';
import { tcp } from '../../adapters/net/index.ts';
import { type DescriptorCount, DescriptorReserve, Descriptors } from '../../adapters/upgrades/descriptors.ts';
import { HttpPlaces } from '../../adapters/upgrades/index.ts';
import { encode } from '../../lib/packets/encode.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { evalFlags, programOf, SOURCE_FLAGS, urlOf } from '../support/programs.ts';
import { connectPacket } from '../support/raw-client.ts';
import { closed, StubBroker } from './stub-broker.ts';

/** A process with the numbers that the test sets. */
function processWith(count: DescriptorCount, lookMs = 0) {
  const clock = new ManualClock();
  const state = { count, looks: 0 };
  const look = () => {
    state.looks++;
    clock.stall(lookMs);
    return state.count;
  };
  return { clock, state, descriptors: new Descriptors(look, () => clock.monotonic()) };
}

describe('Descriptors', () => {
  it('reads the count of the process once in 100 ms, and counts sockets in between', () => {
    const { clock, state, descriptors } = processWith({ limit: 1000, used: 100 });
    assert.equal(descriptors.free(), 900);
    for (let accepted = 0; accepted < 50; accepted++) descriptors.add();
    descriptors.remove();
    assert.equal(descriptors.free(), 851);
    assert.equal(state.looks, 1);
    state.count = { limit: 1000, used: 400 };
    clock.advance(99);
    assert.equal(descriptors.free(), 851);
    clock.advance(1);
    assert.equal(descriptors.free(), 600);
    assert.equal(state.looks, 2);
  });

  it('spends at most one hundredth of the time on slow reads', () => {
    const { clock, state, descriptors } = processWith({ limit: 1000, used: 100 }, 30);
    descriptors.free();
    clock.advance(2_999);
    descriptors.free();
    assert.equal(state.looks, 1);
    clock.advance(1);
    descriptors.free();
    assert.equal(state.looks, 2);
  });

  it('reports no free descriptors if none is left for reading the count [EMFILE, ENFILE], and keeps the known limit', () => {
    for (const code of ['EMFILE', 'ENFILE']) {
      let fault: string | undefined;
      const clock = new ManualClock();
      const look = () => {
        if (fault !== undefined) throw Object.assign(new Error(fault), { code: fault });
        return { limit: 1000, used: 100 };
      };
      const descriptors = new Descriptors(look, () => clock.monotonic());
      const freeWith = (next: string | undefined) => {
        fault = next;
        clock.advance(100);
        return [descriptors.free(), descriptors.limit];
      };
      assert.deepEqual(freeWith(code), [0, Infinity]);
      assert.deepEqual(freeWith(undefined), [900, 1000]);
      assert.deepEqual(freeWith(code), [0, 1000]);
      assert.deepEqual(freeWith(undefined), [900, 1000]);
    }
  });

  it('reports no limit if the count of the process cannot be read [ENOENT]', () => {
    const descriptors = new Descriptors(
      () => {
        throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' });
      },
      () => 0
    );
    assert.equal(descriptors.free(), Infinity);
  });

  it('detects that a process has used all of its descriptors', { skip: process.platform !== 'linux' }, () => {
    const script = `
      import { closeSync, openSync } from 'node:fs';
      import { Descriptors } from '${urlOf('adapters/upgrades/descriptors.ts')}';
      let now = 0;
      const descriptors = new Descriptors(undefined, () => now);
      const seen = [descriptors.free() > 0];
      const opened = [];
      try { for (;;) opened.push(openSync('/dev/null', 'r')); } catch {}
      now = 1e6;
      seen.push(descriptors.free(), descriptors.limit);
      for (const fd of opened) closeSync(fd);
      console.log(JSON.stringify(seen));`;
    const node = [process.execPath, ...evalFlags(script)];
    const said = execFileSync('bash', ['-c', 'ulimit -n 200; exec "$0" "$@"', ...node], { encoding: 'utf8' });
    assert.deepEqual(JSON.parse(said), [true, 0, 200]);
  });
});

describe('a reserve of descriptors', () => {
  function reserveOf(count: DescriptorCount, wanted: number) {
    const broker = new StubBroker();
    const { clock, state, descriptors } = processWith(count);
    broker.clock = clock;
    const use = (used: number) => {
      state.count = { ...state.count, used };
      clock.advance(100);
    };
    return { broker, clock, use, reserve: new DescriptorReserve(broker, 'tcp:1883', wanted, descriptors) };
  }

  it('admits connections down to the reserve, reports once that it closes others [DESCRIPTORS_SHORT], and clears the alarm', () => {
    const { broker, clock, use, reserve } = reserveOf({ limit: 1000, used: 936 }, 64);
    assert.equal(reserve.admits(), true);
    assert.equal(broker.alarmed.length, 0);
    use(937);
    assert.equal(reserve.admits(), false);
    assert.equal(reserve.admits(), false);
    assert.deepEqual(
      broker.alarmed.map(({ change, id }) => [change, id]),
      [['raise', 'descriptors_short:tcp:1883']]
    );
    assert.match(
      broker.alarmed[0].summary ?? '',
      /^63 of 1000 file descriptors are free, and 64 are reserved for the store/
    );
    assert.deepEqual(
      broker.reports.map(({ error }) => (error as Error & { code: string }).code),
      ['DESCRIPTORS_SHORT']
    );
    use(936);
    assert.equal(reserve.admits(), true, 'one descriptor is free again');
    clock.advance(10_000);
    assert.equal(broker.alarmed.length, 1, 'the alarm stays until a quarter more is free');
    use(920);
    clock.advance(1_000);
    assert.equal(broker.alarmed[1].change, 'clear');
    assert.equal(clock.pending, 0);
  });

  it('takes at most a quarter of the limit, and nothing if it is 0 or the limit is unknown', () => {
    const small = reserveOf({ limit: 100, used: 75 }, 64);
    assert.equal(small.reserve.admits(), true);
    small.use(76);
    assert.equal(small.reserve.admits(), false);
    assert.equal(reserveOf({ limit: 100, used: 100 }, 0).reserve.admits(), true);
    assert.equal(reserveOf({ limit: Infinity, used: 1e6 }, 64).reserve.admits(), true);
  });

  it('refuses connections, with its alarm raised, while all descriptors of the process are in use [EMFILE]', () => {
    const broker = new StubBroker();
    const clock = new ManualClock();
    broker.clock = clock;
    const exhausted = () => {
      throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    };
    let look: () => DescriptorCount = () => ({ limit: 1000, used: 950 });
    const descriptors = new Descriptors(
      () => look(),
      () => clock.monotonic()
    );
    const reserve = new DescriptorReserve(broker, 'tcp:1883', 64, descriptors);
    assert.equal(reserve.admits(), false);
    look = exhausted;
    clock.advance(5_000);
    assert.equal(reserve.admits(), false);
    assert.deepEqual(
      broker.alarmed.map(({ change }) => change),
      ['raise']
    );
    reserve.close();
  });

  it('clears its alarm when the listener closes', () => {
    const { broker, clock, reserve } = reserveOf({ limit: 100, used: 100 }, 64);
    reserve.admits();
    reserve.close();
    reserve.close();
    assert.deepEqual(
      broker.alarmed.map(({ change }) => change),
      ['raise', 'clear']
    );
    assert.equal(clock.pending, 0);
  });

  it('defaults to 64 as the option reservedDescriptors of a listener [OPTION_INVALID]', () => {
    assert.equal(tcp({ port: 0 }).common.reservedDescriptors, 64);
    assert.equal(tcp({ port: 0, reservedDescriptors: 0 }).common.reservedDescriptors, 0);
    assert.throws(() => tcp({ port: 0, reservedDescriptors: -1 }), { code: 'OPTION_INVALID' });
  });
});

describe('the reserve of descriptors of a listener', () => {
  /** A listener with room for one connection, in a process that has room for three. */
  function gateInFullProcess() {
    const broker = new StubBroker();
    const { clock, descriptors } = processWith({ limit: 1000, used: 934 });
    broker.clock = clock;
    const gate = new Gate(broker, 'tcp:1883', { ...tcp({ port: 0 }).common, maxConnections: 1 }, descriptors);
    gate.accept();
    const admitted: Duplex[] = [];
    const arrive = () => {
      const socket = new PassThrough();
      gate.admit(socket, 'tcp', undefined, false, (arrival) => admitted.push(arrival.socket));
      return socket;
    };
    return { gate, clock, descriptors, admitted, arrive };
  }

  it('counts connections that wait for a place, and closes new ones when only the reserve is left', async () => {
    const { gate, descriptors, admitted, arrive } = gateInFullProcess();
    const [first, second, third, fourth] = [arrive(), arrive(), arrive(), arrive()];
    assert.deepEqual(gate.shutdownCount, { descriptors_short: 1 });
    assert.equal(fourth.destroyed, true);
    assert.equal(descriptors.free(), 63);
    await closing(second);
    assert.equal(descriptors.free(), 64);
    const fifth = arrive();
    assert.equal(fifth.destroyed, false);
    await closing(first);
    await new Promise(setImmediate);
    assert.deepEqual(admitted, [first, third]);
    assert.equal(descriptors.free(), 64);
    gate.close();
    for (const socket of [third, fifth]) await closing(socket);
    assert.equal(descriptors.free(), 66, 'each socket is subtracted once');
  });

  it('counts a waiting connection once if its client has closed it when a place becomes free', async () => {
    const { gate, descriptors, admitted, arrive } = gateInFullProcess();
    const [first, second] = [arrive(), arrive()];
    const closed = [first, second].map((socket) => once(socket, 'close'));
    first.destroy();
    second.destroy();
    await Promise.all(closed);
    await new Promise(setImmediate);
    assert.deepEqual(admitted, [first]);
    assert.equal(descriptors.free(), 66);
    gate.close();
  });

  it('applies to HTTP connections: one that waits for a request makes room, and one that is being answered does not', async () => {
    const broker = new StubBroker();
    const { clock, descriptors } = processWith({ limit: 1000, used: 936 });
    broker.clock = clock;
    const places = new HttpPlaces(0, clock, new DescriptorReserve(broker, 'http:8081', 64, descriptors));
    const server = places.watch(new EventEmitter() as HttpServer, () => {});
    const arrive = (remotePort: number) => {
      const socket = Object.assign(new PassThrough(), { remoteAddress: '10.0.0.1', remotePort });
      server.emit('connection', socket);
      return socket;
    };
    const first = arrive(1);
    assert.equal(descriptors.free(), 63);
    const second = arrive(2);
    assert.deepEqual([first.destroyed, second.destroyed], [true, false]);
    await new Promise(setImmediate);
    assert.equal(descriptors.free(), 63);
    server.emit('request', { headers: {}, socket: second }, new EventEmitter());
    assert.deepEqual([arrive(3).destroyed, second.destroyed], [true, false]);
    assert.equal(places.size, 1);
    assert.deepEqual(
      broker.alarmed.map(({ change, id }) => [change, id]),
      [['raise', 'descriptors_short:http:8081']]
    );
    await closing(second);
    assert.equal(descriptors.free(), 64);
  });
});

/** Closes a stream, and waits until it has closed. */
async function closing(socket: Duplex): Promise<void> {
  if (socket.closed) return;
  const closed = once(socket, 'close');
  socket.destroy();
  await closed;
}

/** Starts a broker whose process may have 160 descriptors. */
class App {
  readonly child: ChildProcess;
  readonly said: Record<string, unknown>[] = [];
  #heard = () => {};

  constructor(folder: string, reserve: number, ...more: readonly string[]) {
    const args = [...SOURCE_FLAGS, programOf('test/net/descriptor-app.ts'), folder, String(reserve), ...more];
    this.child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    createInterface({ input: this.child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const event = JSON.parse(line);
      if ('loaded' in event) this.#limit();
      else this.said.push(event);
      this.#heard();
    });
    this.child.once('exit', () => this.#heard());
  }

  /** Limits the app to 160 descriptors after it has loaded its modules: the loader of Node opens many files at once. */
  #limit(): void {
    execFileSync('prlimit', ['--nofile=160:160', '--pid', String(this.child.pid)]);
    this.child.stdin?.write('\n');
  }

  /** Returns the first line of the app with this key, which may still be to come. */
  async says(key: string, value?: unknown): Promise<Record<string, unknown>> {
    for (;;) {
      const found = this.said.find((event) => key in event && (value === undefined || event[key] === value));
      if (found !== undefined) return found;
      assert.equal(this.child.exitCode, null, `the app ended and did not say ${key}`);
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
    }
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null) return;
    this.child.stdin?.end();
    await once(this.child, 'exit');
  }
}

it('connections to the port for pushed rows leave descriptors free, and the status of a rule reports the shortage', {
  skip: process.platform !== 'linux'
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'embermq-descriptors-'));
  const app = new App(folder, 64, 'push');
  const port = (await app.says('port')).port as number;
  const sockets: Socket[] = [];
  for (let n = 0; n < 200; n++) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    sockets.push(socket);
    await once(socket, 'connect');
  }
  await Promise.all(sockets.slice(0, 50).map(closed));
  app.child.stdin?.write('\n');
  const { used, status } = await app.says('used');
  assert.match(status as string, /file descriptors are free/);
  assert.ok((used as number) <= 130, `${used} of 160 descriptors are open`);
  for (const socket of sockets) socket.destroy();
  await app.end();
  rmSync(folder, { recursive: true });
});

describe('clients that open as many descriptors as they can', { skip: process.platform !== 'linux' }, () => {
  let folder: string;
  let app: App;
  const sockets: Socket[] = [];

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'embermq-descriptors-'));
    app = new App(folder, 64);
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await app.end();
    rmSync(folder, { recursive: true });
  });

  /** Connects and stays connected. @returns whether the client was admitted */
  async function hold(port: number): Promise<boolean> {
    const socket = connect(port, '127.0.0.1');
    sockets.push(socket);
    socket.on('error', () => {});
    socket.write(encode(connectPacket({ clientId: `holder${sockets.length}` }), 5));
    const answered = new Promise<boolean>((resolve) => socket.once('data', () => resolve(true)));
    return Promise.race([answered, closed(socket).then(() => false)]);
  }

  it('leaves enough descriptors for the store: every persisted publish is acknowledged, and others are admitted once they disconnect', async () => {
    const port = (await app.says('port')).port as number;
    const dial = (clientId: string) =>
      mqtt.connectAsync({
        port,
        clientId,
        protocolVersion: 5,
        clean: false,
        reconnectPeriod: 0,
        properties: { sessionExpiryInterval: 3600 }
      });
    const keeper = await dial('keeper');
    await keeper.subscribeAsync('jobs/#', { qos: 1 });
    await keeper.endAsync();
    const publisher = await dial('publisher');
    const admitted: boolean[] = [];
    for (let round = 0; round < 10; round++)
      admitted.push(...(await Promise.all(Array.from({ length: 30 }, () => hold(port)))));
    const count = admitted.filter((isIn) => isIn).length;
    assert.ok(count > 20 && count < 120, `${count} of 300 were let in`);

    // LevelDB starts a new log every 4 MB, and opens tables
    const payload = Buffer.alloc(65_536, 'x');
    for (let sent = 0; sent < 200; sent++) await publisher.publishAsync(`jobs/${sent}`, payload, { qos: 1 });

    assert.equal((await app.says('alarm', 'alert')).id, 'descriptors_short:main');
    assert.deepEqual(
      app.said.filter((event) => 'error' in event).map(({ error }) => error),
      ['DESCRIPTORS_SHORT']
    );
    app.child.stdin?.write('\n');
    const info = (await app.says('info')).info as { currentConnections: number; shutdownCount: object };
    assert.equal(info.currentConnections, count + 1);
    assert.deepEqual(info.shutdownCount, { normal: 1, descriptors_short: 300 - count });

    for (const socket of sockets.splice(0)) socket.destroy();
    await app.says('alarm', 'clear');
    assert.equal(await hold(port), true);
    publisher.end(true);
  });
});
