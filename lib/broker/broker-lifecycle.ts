// The chart (`broker.machine.ts`) says when a start or a stop has an effect; this file does the work. The entry action
// `open` begins the work of a start, which ends with the event `started` or `failed`. A stop enters
// `disconnected.draining`: wills are published, connections have time to send what is queued, and everything that uses
// the store ends before it is closed. Starts and stops wait for each other, in the order of the calls. Time limits are
// in real time, because a stop waits for sockets and disks, which do not follow a virtual clock.

// Imported by name, these timers are not replaced by the fake timers of a test framework.
import { clearTimeout, setTimeout } from 'node:timers';
import { onAbort } from '../base/abort-listeners.ts';
import type { ActorRef } from '../base/actor.ts';
import { BrokerError, InvalidInput, StateError } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import type { ListenerHandle } from '../records/listener.ts';
import type { Running } from './actors.ts';
import { warnOfExposure } from './admission/exposure.ts';
import { brokerMachine } from './broker.machine.ts';
import type { BrokerActions, BrokerEvent } from './chart.ts';
import { loadSchemas } from './configuration/payload-schemas.ts';
import type { Engine } from './engine.ts';
import type { Services } from './services.ts';

/** With a longer delay, setTimeout of Node fires immediately. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
const DEFAULT_STOP_MS = 2_000;
/** Maximum time for the store to close, and for the sources of authentication, also in a stop with a shorter `timeoutMs`. */
const CLOSE_MS = 10_000;
const STOP_NAMES: readonly (keyof StopOptions)[] = ['timeoutMs', 'wills', 'signal'];

/** Options of `broker.stop`. */
export interface StopOptions {
  /**
   * Milliseconds that connections have to send their remaining output, and listeners to close. Default 2000; `Infinity`: no limit.
   * The sources of authentication and then the store are closed. If one does not close, the stop takes at most 10 s more for it.
   */
  readonly timeoutMs?: number;
  /**
   * `publish` (default): wills are published, as for any close by the server. `keep`: wills are not published now. With a store, the next
   * start publishes them, as after a crash; without one they are discarded.
   */
  readonly wills?: 'publish' | 'keep';
  /** When it aborts, or if it has aborted already, the stop ends without waiting for connections and listeners. */
  readonly signal?: AbortSignal;
}

/** Starts and stops the broker: its listeners, its store and its actor. Starts and stops are executed in the order of the calls. */
export class BrokerLifecycle {
  /** See `Broker.actor`. The first actor of the broker. */
  readonly actor: ActorRef;
  /** The attached listeners by name. */
  readonly listeners = new Map<string, ListenerHandle>();
  /** Time of the start in wall-clock milliseconds; undefined while the broker is not started. */
  startedAt: number | undefined;
  readonly #services: Services;
  readonly #engine: Engine;
  readonly #chart: Running<'idle' | 'connected' | 'disconnected'>;
  readonly #onStopped: () => void;
  /** The start in progress, or the last one. */
  #opening: Promise<void> | undefined;
  /** Ends the start in progress. */
  #starting: AbortController | undefined;
  /** Resolves when the last requested start or stop is complete. */
  #turn: Promise<unknown> = Promise.resolve();
  /** The shortest `timeoutMs` of all stops that are requested and not complete; `#shortenStop` applies one to the stop in progress. */
  #stopTimeoutMs = Infinity;
  #shortenStop: ((timeoutMs: number) => void) | undefined;
  /** The stops that wait for their turn and whose time to wait for a start has passed: a start that begins before them ends at once. */
  readonly #overdue = new Set<object>();
  #wills: 'publish' | 'keep' = 'publish';

  /** @param onStopped called at the end of each stop */
  constructor(engine: Engine, onStopped: () => void) {
    const { services } = engine;
    this.#services = services;
    this.#engine = engine;
    this.#onStopped = onStopped;
    const actions: BrokerActions = {
      open: () => {
        this.#opening = this.#open((this.#starting as AbortController).signal);
      },
      accept: () => {
        this.startedAt = services.clock.now();
        engine.begin();
      },
      drain: () => engine.drain(this.#willsAtStop),
      release: () => {
        this.startedAt = undefined;
        engine.end();
      }
    };
    const start = engine.actors.starter<BrokerActions>(brokerMachine(), {
      key: 'broker',
      failed: (_, error, action) => services.announcer.failed(error, `the broker's ${action}`, undefined),
      methodsFor: () => 'broker.start() or broker.stop()'
    });
    this.#chart = start(actions, 'broker');
    this.actor = this.#chart.actor;
  }

  get state(): 'idle' | 'connected' | 'disconnected' {
    return this.#chart.state;
  }

  /** True if streams are accepted: the broker is started, or starting. */
  get isOpen(): boolean {
    const { path } = this.#chart.at;
    return path === 'connected' || path === 'idle.starting';
  }

  /** See `Broker.start`. */
  async start(signal: AbortSignal | undefined): Promise<void> {
    return this.#inTurn(() => this.#start(signal));
  }

  async #start(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.#engine.ledger?.isClosing) await this.#closeStore(); // by the previous stop, which reported errors; otherwise `open` reports them
    signal?.throwIfAborted();
    if (this.#overdue.size > 0 && this.state !== 'connected') throw endedByStop();
    const starting = new AbortController();
    const release = onAbort(signal, () => starting.abort(signal?.reason));
    this.#starting = starting;
    this.#opening = undefined;
    try {
      this.#send('start'); // in other states than `idle.built` and `disconnected.stopped`, this has no effect
      await this.#opening;
    } finally {
      this.#starting = undefined;
      release();
    }
  }

  /** Open everything, and send `started` or `failed`. */
  async #open(signal: AbortSignal): Promise<void> {
    const engine = this.#engine;
    const opened: ListenerHandle[] = [];
    try {
      await engine.operated.rewrites.load();
      await loadSchemas(engine.services.settings.schemas);
      await engine.persistence?.open();
      signal.throwIfAborted();
      engine.operated.features.restored();
      await engine.kept.connectors.restored();
      await engine.persistence?.adaptDefinitions();
      await engine.kept.rules.restore();
      await engine.kept.streams.restore();
      await unlessAborted(engine.access.start(), signal);
      signal.throwIfAborted();
      for (const listener of this.listeners.values()) {
        await listener.open();
        opened.push(listener);
        signal.throwIfAborted();
      }
    } catch (error) {
      await this.#within(DEFAULT_STOP_MS, closeAll(opened));
      await this.#within(DEFAULT_STOP_MS, Promise.all([engine.kept.streams.halt(), engine.kept.rules.halt()]));
      for (const failure of await this.#closeSources())
        this.#services.announcer.failed(failure, 'closing a source of authentication', undefined);
      const closeFailure = engine.ledger?.isClosing ? undefined : await this.#closeStore();
      if (closeFailure !== undefined) this.#services.announcer.failed(closeFailure, 'closing the store', undefined);
      engine.connections.refuseEarly();
      this.#send('failed');
      throw error;
    }
    this.#send('started');
    engine.persistence?.brokerStarted();
    for (const listener of this.listeners.values()) listener.accept?.();
    this.#services.events.emit('broker.started', { listeners: [...this.listeners.values()] });
    warnOfExposure(this.#services, this.listeners.values());
    await engine.persistence?.reportUpgrade();
  }

  /** Add a listener. */
  attach(listener: ListenerHandle): void {
    this.listeners.set(listener.name, listener);
    const { connections } = this.#engine;
    listener.attached?.(
      () => this.#services.turn.connectionArrived(),
      (address, why) => connections.limited(address, why)
    );
    if (this.state !== 'connected') return;
    this.#services.events.emit('listener.attached', { listener });
    warnOfExposure(this.#services, [listener]);
  }

  /** Remove a listener, if it was added. */
  detach(listener: ListenerHandle): void {
    if (this.listeners.get(listener.name) !== listener) return;
    this.listeners.delete(listener.name);
    if (this.state === 'connected') this.#services.events.emit('listener.detached', { listener });
  }

  /** See `Broker.stop`. */
  async stop(options: StopOptions): Promise<void> {
    const { timeoutMs, wills, signal } = readStopOptions(options);
    const shorten = (ms: number) => {
      this.#stopTimeoutMs = Math.min(this.#stopTimeoutMs, ms);
      this.#shortenStop?.(ms);
    };
    const endStart = () => {
      this.#overdue.add(endStart);
      this.#starting?.abort(endedByStop());
    };
    const cut = () => {
      endStart();
      shorten(0);
    };
    if (timeoutMs !== undefined) shorten(timeoutMs);
    if (signal?.aborted) cut();
    const release = onAbort(signal, cut);
    const timer = setTimeout(endStart, Math.min(timeoutMs ?? DEFAULT_STOP_MS, MAX_TIMEOUT_MS));
    try {
      await this.#inTurn(() => this.#stop(timeoutMs ?? DEFAULT_STOP_MS, wills));
    } finally {
      clearTimeout(timer);
      release();
      this.#overdue.delete(endStart); // before a later start begins
    }
    signal?.throwIfAborted();
  }

  async #stop(timeoutMs: number, wills: 'publish' | 'keep'): Promise<void> {
    const { connections, kept } = this.#engine;
    const { outboxes } = kept;
    const untilMs = performance.now() + timeoutMs; // real time, as in #within
    try {
      if (this.state === 'disconnected') return;
      const failures: unknown[] = [];
      const closed = closeAll(this.listeners.values(), failures);
      this.#wills = wills;
      this.#send('stop');
      await this.#within(Math.min(timeoutMs, this.#stopTimeoutMs), Promise.all([closed, connections.allClosed()]));
      connections.cutOff();
      const leftMs = () => Math.max(0, Math.min(untilMs - performance.now(), this.#stopTimeoutMs));
      await this.#within(leftMs(), kept.streams.halt());
      await this.#within(leftMs(), outboxes.drained());
      outboxes.halt();
      await this.#within(leftMs(), kept.rules.halt());
      failures.push(...(await this.#closeSources()));
      const failure = await this.#closeStore();
      if (failure !== undefined) failures.push(failure);
      this.#send('stopped'); // no effect on a broker that was never started: it is stopped already
      this.#onStopped();
      this.#services.events.emit('broker.stopped', {});
      if (failures.length > 0)
        throw new AggregateError(
          failures,
          'the broker has stopped, but a listener, a source of authentication or the store could not be closed (see errors)'
        );
    } finally {
      this.#stopTimeoutMs = Infinity;
    }
  }

  /** Close the sources of authentication, but wait at most CLOSE_MS for them. @returns the errors */
  #closeSources(): Promise<unknown[]> {
    const { access } = this.#engine;
    const late = (name: string) =>
      new StateError('SOURCE_FAILED', `the source of authentication "${name}" does not close`);
    return inTime(access.stop(), () => [...access.closing].map(late));
  }

  /** Close the store, but wait at most CLOSE_MS for it. @returns the error; undefined: the store is closed */
  async #closeStore(): Promise<unknown> {
    const { store } = this.#services.settings;
    const { persistence } = this.#engine;
    if (store === undefined || persistence === undefined) return undefined;
    const text = `${store.name}: the store does not close; it is unknown whether the last changes are persisted`;
    const closed = persistence.close().then(
      () => undefined,
      (error: unknown) => error
    );
    return inTime(closed, () => new BrokerError('STORE_FAILED', text));
  }

  /** Run a start or stop after all earlier ones are complete. */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(run);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when `done` has resolved or the time has passed, which `#shortenStop` may shorten. */
  #within(timeoutMs: number, done: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const timers: NodeJS.Timeout[] = [];
      // Real time, because this waits for sockets, which do not follow a virtual clock.
      const shorten = (ms: number) => {
        if (ms <= MAX_TIMEOUT_MS) timers.push(setTimeout(end, ms));
      };
      const end = () => {
        for (const timer of timers) clearTimeout(timer);
        if (this.#shortenStop === shorten) this.#shortenStop = undefined; // `done` may resolve during a later wait
        resolve();
      };
      this.#shortenStop = shorten;
      shorten(timeoutMs);
      void done.then(end);
    });
  }

  get #willsAtStop(): 'publish' | 'drop' | 'keep' {
    return this.#wills === 'keep' && this.#engine.persistence === undefined ? 'drop' : this.#wills;
  }

  #send(type: BrokerEvent['type']): void {
    this.#chart.send(type);
  }
}

/** The error of a start that a stop has ended. */
function endedByStop(): StateError {
  return new StateError('BROKER_NOT_STARTED', 'the start was ended by a stop of the broker');
}

/** The result of work that is left to itself when a signal aborts. @throws the reason of the signal */
function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const release = onAbort(signal, () => reject(signal.reason));
    work.then(resolve, reject).finally(release);
  });
}

/** The result of closing; after CLOSE_MS that of `late`. A stop with a shorter time limit does not end this. */
async function inTime<T>(closed: Promise<T>, late: () => T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(late()), CLOSE_MS); // real time, as in #within
  });
  const result = await Promise.race([closed, tooLong]);
  clearTimeout(timer);
  return result;
}

/** The error of operations that need a started broker. */
export function notStarted(): StateError {
  return new StateError(
    'BROKER_NOT_STARTED',
    'the broker is not started or is stopping; start it, and wait until it has started'
  );
}

/** @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID */
function readStopOptions(options: StopOptions) {
  checkObject(options, 'options');
  checkNames(options, STOP_NAMES, 'stop');
  const { timeoutMs, wills = 'publish', signal } = options;
  if (timeoutMs !== undefined && (typeof timeoutMs !== 'number' || !(timeoutMs >= 0)))
    throw new InvalidInput('OPTION_INVALID', 'timeoutMs', 'milliseconds, 0 or more', timeoutMs);
  if (wills !== 'publish' && wills !== 'keep')
    throw new InvalidInput('OPTION_INVALID', 'wills', '"publish" or "keep"', wills);
  return { timeoutMs, wills, signal };
}

/** Close listeners at the same time. @param failures receives their errors */
async function closeAll(listeners: Iterable<ListenerHandle>, failures: unknown[] = []): Promise<void> {
  const close = async (listener: ListenerHandle) => {
    try {
      await listener.close();
    } catch (error) {
      failures.push(error);
    }
  };
  await Promise.all([...listeners].map(close));
}
