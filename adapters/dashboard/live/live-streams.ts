// The watches of a stream are set as a whole, since a view knows what it shows. Those that are the same go on, so that a
// change of one does not restart the others. If one of them is wrong, nothing changes.

import type { Broker } from '../../../lib/index.ts';
import { type Caller, crypto, Fault } from '../../rest/index.ts';
import type { Session } from '../sessions.ts';
import { KINDS } from './kinds.ts';
import type { LiveKind, OpenWatch, WatchContext } from './live-kind.ts';
import { LiveStream } from './live-stream.ts';

/** Maximum number of streams: one for each tab that is in view. */
const MAX_STREAMS = 64;
/** Maximum number of watches of a stream, and of characters of their names. */
const MAX_WATCHES = 32;
const MAX_NAME_LENGTH = 64;
const SECOND_MS = 1_000;

/** A watch of a stream. */
interface Watching {
  /** The kind and the parameters as they were sent. */
  readonly text: string;
  readonly kind: LiveKind;
  readonly watch: OpenWatch<unknown>;
}

/** A stream with its watches. */
interface Open {
  readonly stream: LiveStream;
  readonly caller: Caller;
  readonly watches: Map<string, Watching>;
}

/** A checked watch that is not open yet. */
interface Asked {
  readonly text: string;
  readonly name: string;
  readonly kind: LiveKind;
  readonly params: unknown;
}

/** The live streams of a console. */
export class LiveStreams {
  readonly #broker: Broker;
  readonly #viewerPayloads: boolean;
  readonly #streams = new Map<string, Open>();
  readonly #everySecond = new Set<() => void>();
  #timer: unknown;

  constructor(broker: Broker, viewerPayloads: boolean) {
    this.#broker = broker;
    this.#viewerPayloads = viewerPayloads;
  }

  /**
   * Open a stream.
   * @param session the stream ends with it; undefined: the caller has sent credentials
   * @throws Fault tooMany, unavailable
   */
  open(caller: Caller, session: Session | undefined): LiveStream {
    if (this.#broker.state === 'disconnected')
      throw new Fault('unavailable', 'the broker has stopped, or is stopping; try again later');
    if (this.#streams.size >= MAX_STREAMS)
      throw new Fault(
        'tooMany',
        `${MAX_STREAMS} tabs of the console are open, and no more can be shown live: close one of them`
      );
    const id = crypto().randomBytes(16).toString('base64url');
    let leaveSession = () => {};
    const stream = new LiveStream(id, this.#broker.clock, () => {
      leaveSession();
      this.#set(open, []);
      this.#streams.delete(id);
    });
    const open: Open = { stream, caller, watches: new Map() };
    this.#streams.set(id, open);
    if (session !== undefined) leaveSession = session.onEnd(() => stream.end('the session has ended'));
    return stream;
  }

  /**
   * Replace the watches of a stream.
   * @param given the watches by name, as they were sent
   * @throws Fault unknownPath: there is no such stream of the caller; wrongParameter
   */
  set(id: string, given: unknown, caller: Caller): void {
    const open = this.#streams.get(id);
    if (open === undefined || open.caller.id !== caller.id || open.caller.kind !== caller.kind)
      throw new Fault('unknownPath', 'the stream has ended, or it belongs to another session: open a new one');
    this.#set(open, readWatches(given));
  }

  /** End the streams of callers that a function selects. */
  endIf(isOver: (caller: Caller) => boolean, reason: string): void {
    for (const { caller, stream } of [...this.#streams.values()]) if (isOver(caller)) stream.end(reason);
  }

  #set({ stream, caller, watches }: Open, asked: readonly Asked[]): void {
    const names = new Set(asked.map(({ name }) => name));
    for (const [name, { watch }] of watches) {
      if (names.has(name)) continue;
      watch.close();
      watches.delete(name);
    }
    for (const { name, text, kind, params } of asked) {
      const present = watches.get(name);
      if (present?.text === text) continue;
      if (present?.kind === kind && present.watch.update !== undefined) {
        present.watch.update(params);
        watches.set(name, { ...present, text });
        continue;
      }
      present?.watch.close();
      watches.delete(name);
      const kindName = nameOf(kind);
      const context: WatchContext = {
        broker: this.#broker,
        hidesPayloads: caller.scope === 'viewer' && !this.#viewerPayloads,
        emit: (data) => stream.push(kindName, { watch: name, ...data }),
        everySecond: (run) => this.#repeat(run)
      };
      watches.set(name, { text, kind, watch: kind.open(context, params) });
    }
  }

  #repeat(run: () => void): () => void {
    const one = () => run();
    this.#everySecond.add(one);
    this.#arm();
    return () => {
      this.#everySecond.delete(one);
      if (this.#everySecond.size > 0) return;
      this.#broker.clock.clearTimeout(this.#timer);
      this.#timer = undefined;
    };
  }

  /** One timer serves all watches of all streams. */
  #arm(): void {
    this.#timer ??= this.#broker.clock.setTimeout(() => {
      this.#timer = undefined;
      for (const run of [...this.#everySecond]) {
        try {
          run();
        } catch (error) {
          this.#broker.failed(error, 'watching for the console');
        }
      }
      if (this.#everySecond.size > 0) this.#arm();
    }, SECOND_MS);
  }
}

function nameOf(kind: LiveKind): string {
  return Object.keys(KINDS).find((name) => KINDS[name] === kind) as string;
}

/** @throws Fault wrongParameter */
function readWatches(given: unknown): readonly Asked[] {
  if (!isRecord(given)) throw new Fault('wrongParameter', '"watches" must be an object of watches by their names');
  const entries = Object.entries(given);
  if (entries.length > MAX_WATCHES)
    throw new Fault('wrongParameter', `a stream has at most ${MAX_WATCHES} watches, not ${entries.length}`);
  return entries.map(([name, one]) => {
    if (name.length > MAX_NAME_LENGTH)
      throw new Fault('wrongParameter', `the name of a watch has at most ${MAX_NAME_LENGTH} characters`);
    const { kind: kindName, ...params } = isRecord(one) ? one : {};
    const kind = typeof kindName === 'string' && Object.hasOwn(KINDS, kindName) ? KINDS[kindName] : undefined;
    if (kind === undefined) {
      const known = Object.keys(KINDS).join(', ');
      throw new Fault('wrongParameter', `the "kind" of the watch ${JSON.stringify(name)} must be one of ${known}`);
    }
    return { name, text: JSON.stringify([kindName, params]), kind, params: kind.read(params) };
  });
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
