// The live stream of a tab: when it is open, what it watches, and what it says when it is lost.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EventReader, Live, type LiveState, type Watch } from '../../adapters/dashboard/page/model/live.ts';

/** Waits until all that was begun has been done. */
const settled = () => new Promise<void>((done) => setImmediate(done));

/** A server that is written by the test. */
class Server {
  readonly states: LiveState[] = [];
  readonly sets: { id: string; watches: Readonly<Record<string, Watch>> }[] = [];
  readonly timers = new Set<{ run: () => void; ms: number }>();
  readonly streams: { write: (text: string) => void; end: () => void; signal: AbortSignal }[] = [];
  refusal: Error | undefined;
  answering: Promise<void> = Promise.resolve();
  readonly live = new Live({
    open: async (signal) => {
      if (this.refusal !== undefined) throw this.refusal;
      return this.#stream(signal);
    },
    set: async (id, watches) => {
      this.sets.push({ id, watches });
      await this.answering;
    },
    changed: (state) => void this.states.push(state),
    now: () => 5_000,
    later: (run, ms) => {
      const timer = { run, ms };
      this.timers.add(timer);
      return () => void this.timers.delete(timer);
    }
  });

  async *#stream(signal: AbortSignal): AsyncGenerator<string> {
    const waiting: (string | undefined)[] = [];
    let wake = () => {};
    const push = (text: string | undefined) => {
      waiting.push(text);
      wake();
    };
    signal.addEventListener('abort', () => push(undefined));
    this.streams.push({ write: push, end: () => push(undefined), signal });
    for (;;) {
      while (waiting.length === 0) await new Promise<void>((done) => (wake = done));
      const text = waiting.shift();
      if (text === undefined) return;
      yield text;
    }
  }

  get state(): LiveState | undefined {
    return this.states.at(-1);
  }

  async opened(id: string): Promise<void> {
    await settled();
    this.streams.at(-1)?.write(`event: opened\ndata: {"id":"${id}"}\n\n`);
    await settled();
  }

  ring(): void {
    const [timer] = this.timers;
    this.timers.delete(timer);
    timer.run();
  }
}

describe('The live stream of a tab', () => {
  it('opens with the first watch, and sends all watches together when it is open', async () => {
    const server = new Server();
    const seen: unknown[] = [];
    server.live.watch('a', { kind: 'overview' }, (data, kind) => seen.push([kind, data]));
    server.live.watch('b', { kind: 'tail', filter: '#' }, () => seen.push('b'));
    await server.opened('s1');
    assert.deepEqual(server.sets, [
      { id: 's1', watches: { 'a 1': { kind: 'overview' }, 'b 2': { kind: 'tail', filter: '#' } } }
    ]);
    assert.deepEqual(server.state, { is: 'open' });
    server.streams[0].write('event: overview\ndata: {"watch":"a 1",');
    server.streams[0].write('"x":1}\n\nevent: tail\ndata: not json\n\n');
    await settled();
    assert.deepEqual(seen, [['overview', { watch: 'a 1', x: 1 }]]);
  });

  it('keeps the stream when watches change, and sends the last of them after the answer to the one before', async () => {
    const server = new Server();
    const end = server.live.watch('a', { kind: 'overview' }, () => {});
    await server.opened('s1');
    let answer = () => {};
    server.answering = new Promise((done) => (answer = done));
    server.live.watch('b', { kind: 'alarms' }, () => {});
    await settled();
    end();
    server.live.watch('c', { kind: 'alarms' }, () => {});
    await settled();
    assert.equal(server.sets.length, 2);
    answer();
    await settled();
    assert.deepEqual(Object.keys(server.sets[2].watches), ['b 2', 'c 3']);
    assert.equal(server.streams.length, 1);
  });

  it('closes while the tab is hidden', async () => {
    const server = new Server();
    server.live.watch('a', { kind: 'overview' }, () => {});
    await server.opened('s1');
    server.live.show(false);
    assert.equal(server.streams[0].signal.aborted, true);
    assert.deepEqual(server.state, { is: 'hidden' });
    server.live.watch('b', { kind: 'alarms' }, () => {});
    await settled();
    assert.equal(server.streams.length, 1);
    server.live.show(true);
    await server.opened('s2');
    assert.deepEqual([server.sets[1].id, Object.keys(server.sets[1].watches)], ['s2', ['a 1', 'b 2']]);
  });

  it('opens again after it was lost, later each time, and at once when it is asked to', async () => {
    const server = new Server();
    server.refusal = new Error('all streams are in use');
    server.live.watch('a', { kind: 'overview' }, () => {});
    await settled();
    assert.deepEqual(server.state, { is: 'lost', reason: server.refusal, againAt: 6_000 });
    const delays: number[] = [];
    for (let i = 0; i < 4; i++) {
      delays.push([...server.timers][0].ms);
      server.ring();
      await settled();
    }
    assert.deepEqual(delays, [1_000, 2_000, 5_000, 10_000]);
    assert.equal([...server.timers][0].ms, 10_000);
    server.refusal = undefined;
    server.live.retry();
    await server.opened('s1');
    assert.deepEqual([server.timers.size, server.state], [0, { is: 'open' }]);
    server.streams[0].end(); // the broker stops
    await settled();
    assert.equal([...server.timers][0].ms, 1_000);
  });

  it('stays closed after the session has ended, until there is one again', async () => {
    const server = new Server();
    server.live.watch('a', { kind: 'overview' }, () => {});
    await server.opened('s1');
    server.live.end();
    server.live.show(false);
    server.live.show(true);
    server.live.watch('b', { kind: 'overview' }, () => {});
    await settled();
    assert.deepEqual([server.streams.length, server.timers.size, server.streams[0].signal.aborted], [1, 0, true]);
    server.live.retry();
    await settled();
    assert.equal(server.streams.length, 2);
  });

  it('reports why the server has ended it', async () => {
    const server = new Server();
    server.live.watch('a', { kind: 'overview' }, () => {});
    await server.opened('s1');
    server.streams[0].write('event: closed\ndata: {"reason":"the broker has stopped"}\n\n');
    await settled();
    const { reason } = server.state as Extract<LiveState, { is: 'lost' }>;
    assert.equal((reason as Error).message, 'the broker has stopped');
  });

  it('takes no event of a stream that was replaced', async () => {
    const server = new Server();
    let count = 0;
    server.live.watch('a', { kind: 'overview' }, () => count++);
    await server.opened('s1');
    server.streams[0].write('event: overview\ndata: {"watch":"a 1"}\n\n');
    server.live.show(false);
    await settled();
    assert.equal(count, 0);
  });

  it('passes no event of a watch that has ended to the next one with its name', async () => {
    const server = new Server();
    const seen: unknown[] = [];
    const end = server.live.watch('trace', { kind: 'trace', id: 1 }, ({ x }) => seen.push(['first', x]));
    await server.opened('s1');
    end();
    server.live.watch('trace', { kind: 'trace', id: 2 }, ({ x }) => seen.push(['second', x]));
    server.streams[0].write('event: trace\ndata: {"watch":"trace 1","x":1}\n\n');
    server.streams[0].write('event: trace\ndata: {"watch":"trace 2","x":2}\n\n');
    await settled();
    assert.deepEqual(seen, [['second', 2]]);
  });

  it('keeps the name of a watch of topics whose rows change, so that the broker continues those that stay in view', async () => {
    const server = new Server();
    const seen: unknown[] = [];
    const watched = (topic: string) =>
      server.live.watch('tree', { kind: 'topics', topics: [topic] }, () => seen.push(topic));
    const end = watched('a');
    await server.opened('s1');
    end();
    const endLast = watched('b');
    end();
    await settled();
    const names = server.sets.map(({ watches }) => Object.entries(watches).map(([name, { topics }]) => [name, topics]));
    assert.deepEqual(names, [[['tree', ['a']]], [['tree', ['b']]]]);
    server.streams[0].write('event: topics\ndata: {"watch":"tree","rows":[]}\n\n');
    await settled();
    assert.deepEqual(seen, ['b']);
    endLast();
    await settled();
    assert.deepEqual(server.sets[2].watches, {});
  });

  it('continues the rates of clients that stay in view when the rows of the list change', async () => {
    const server = new Server();
    const end = server.live.watch('clients 1', { kind: 'clients', clientIds: ['a', 'b'] }, () => {});
    await server.opened('s1');
    end();
    server.live.watch('clients 1', { kind: 'clients', clientIds: ['b', 'c'] }, () => {});
    await settled();
    assert.deepEqual(server.sets[1].watches, { 'clients 1': { kind: 'clients', clientIds: ['b', 'c'] } });
  });

  it('says nothing about the stream after the tab is shown again if nothing is watched', async () => {
    const server = new Server();
    const end = server.live.watch('a', { kind: 'overview' }, () => {});
    await server.opened('s1');
    end();
    server.live.show(false);
    assert.deepEqual(server.state, { is: 'hidden' });
    server.live.show(true);
    assert.deepEqual(server.state, { is: 'idle' });
  });
});

describe('Server-sent events', () => {
  it('reads the same server-sent events from chunks of any size', () => {
    const text =
      ': comment\r\nevent: a\r\ndata: 1\r\ndata: 2\r\n\r\ndata:x\n\nevent: none\n\nid: 5\ndata: {"y":"ü"}\n\n';
    const read = (size: number) => {
      const found: [string, string][] = [];
      const reader = new EventReader((kind, data) => found.push([kind, data]));
      for (let at = 0; at < text.length; at += size) reader.read(text.slice(at, at + size));
      return found;
    };
    const expected = [
      ['a', '1\n2'],
      ['message', 'x'],
      ['message', '{"y":"ü"}']
    ];
    for (let size = 1; size <= text.length; size++) assert.deepEqual(read(size), expected, `chunks of ${size}`);
  });
});
