// The watches of a stream are replaced together, since a view knows all that it shows. Those that are the same go on, so that a
// change of one does not restart the others. A watch that cannot be opened, because a person has written a condition that
// is wrong, sends a failure to its view; the others are not concerned. Calls for a stream run one after the other.

import { type Broker, BrokerError, SqlError } from '../../../lib/index.ts';
import { faultOf } from '../../management/parts/index.ts';
import { type Caller, crypto, Fault } from '../../rest/index.ts';
import { isSame } from '../logins.ts';
import type { Session } from '../sessions.ts';
import { KINDS } from './kinds.ts';
import type { LiveKind, OpenWatch, SharedWatches, WatchContext } from './live-kind.ts';
import { LiveStream } from './live-stream.ts';

/** Maximum number of streams: one for each tab that is in view. */
const MAX_STREAMS = 64;
/** Maximum number of watches of a stream, and of characters of their names. */
const MAX_WATCHES = 32;
const MAX_NAME_LENGTH = 64;
/** Maximum number of topics of the watches of a stream: 200 rows in view, the selected one, and those that are pinned. */
const MAX_TOPICS = 256;
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
  /** The last change of the watches. */
  changing: Promise<void>;
}

/** A watch that is not open yet. */
interface Asked {
  readonly text: string;
  readonly name: string;
  readonly kindName: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** The live streams of a console. */
export class LiveStreams {
  readonly #broker: Broker;
  readonly #viewerPayloads: boolean;
  readonly #streams = new Map<string, Open>();
  readonly #shared: SharedWatches = { rows: { clients: 0, topics: 0 } };
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
      this.#streams.delete(id);
      void this.#set(open, []);
    });
    const open: Open = { stream, caller, watches: new Map(), changing: Promise.resolve() };
    this.#streams.set(id, open);
    if (session !== undefined) leaveSession = session.onEnd(() => stream.close('the session has ended'));
    return stream;
  }

  /**
   * Replace the watches of a stream.
   * @param given the watches by name, as they were sent
   * @throws Fault unknownPath if the caller has no stream with this id; wrongParameter if `given` is not a set of watches
   */
  async set(id: string, given: unknown, caller: Caller): Promise<void> {
    const open = this.#streams.get(id);
    if (open === undefined || !isSame(open.caller, caller))
      throw new Fault('unknownPath', 'the stream has ended, or it belongs to another session: open a new one');
    await this.#set(open, readWatches(given));
  }

  /** End the streams of callers that a function selects. */
  endIf(isOver: (caller: Caller) => boolean, reason: string): void {
    for (const { caller, stream } of [...this.#streams.values()]) if (isOver(caller)) stream.close(reason);
  }

  #set(open: Open, asked: readonly Asked[]): Promise<void> {
    const changed = open.changing.then(() => this.#change(open, asked));
    open.changing = changed.catch((error: unknown) => this.#broker.failed(error, 'setting watches of the console'));
    return changed;
  }

  async #change(open: Open, asked: readonly Asked[]): Promise<void> {
    const { watches } = open;
    const names = new Set(asked.map(({ name }) => name));
    for (const [name, { watch }] of watches) {
      if (names.has(name)) continue;
      watches.delete(name);
      watch.close();
    }
    for (const one of asked) if (watches.get(one.name)?.text !== one.text) await this.#watch(open, one);
  }

  /** Open a watch, or go on with the one of the same name. */
  async #watch({ stream, caller, watches }: Open, { name, text, kindName, params }: Asked): Promise<void> {
    const kind = KINDS[kindName];
    const present = watches.get(name);
    const emit = (data: object) => stream.push(kindName, { watch: name, ...data });
    const endPresent = () => {
      if (watches.delete(name)) present?.watch.close();
    };
    try {
      const read = kind.read(params);
      if (present?.kind === kind && present.watch.update !== undefined) {
        present.watch.update(read);
        watches.set(name, { ...present, text });
        return;
      }
      endPresent();
      const context: WatchContext = {
        broker: this.#broker,
        hidesPayloads: caller.scope === 'viewer' && !this.#viewerPayloads,
        shared: this.#shared,
        emit,
        drained: () => stream.drained(),
        everySecond: (run) => this.#repeat(run)
      };
      const watch = await kind.open(context, read);
      if (stream.isOver) watch.close();
      else watches.set(name, { text, kind, watch });
    } catch (error) {
      endPresent(); // unless it has ended already
      emit({ failure: this.#failureOf(error) });
    }
  }

  /** An error for the view, with the place in a statement or a condition if it has one. */
  #failureOf(error: unknown): object {
    const known = faultOf(error);
    if (error instanceof SqlError) {
      const { message, fault, line, column } = error;
      return { message, fault, line, column };
    }
    if (known !== undefined || error instanceof BrokerError) return { message: (error as Error).message };
    this.#broker.failed(error, 'watching for the console');
    return { message: 'an internal error has occurred; the broker has reported it' };
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

/** @throws Fault wrongParameter */
function readWatches(given: unknown): readonly Asked[] {
  if (!isRecord(given)) throw new Fault('wrongParameter', '"watches" must be an object of watches by their names');
  const entries = Object.entries(given);
  if (entries.length > MAX_WATCHES)
    throw new Fault('wrongParameter', `a stream has at most ${MAX_WATCHES} watches, not ${entries.length}`);
  const asked = entries.map(([name, one]) => {
    if (name.length > MAX_NAME_LENGTH)
      throw new Fault('wrongParameter', `the name of a watch has at most ${MAX_NAME_LENGTH} characters`);
    const { kind: kindName, ...params } = isRecord(one) ? one : {};
    if (typeof kindName !== 'string' || !Object.hasOwn(KINDS, kindName)) {
      const known = Object.keys(KINDS).join(', ');
      throw new Fault('wrongParameter', `the "kind" of the watch ${JSON.stringify(name)} must be one of ${known}`);
    }
    return { name, text: JSON.stringify([kindName, params]), kindName, params };
  });
  const topics = asked.reduce((sum, { params }) => sum + (Array.isArray(params.topics) ? params.topics.length : 0), 0);
  if (topics > MAX_TOPICS)
    throw new Fault('wrongParameter', `the watches of a stream have at most ${MAX_TOPICS} topics, not ${topics}`);
  return asked;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
