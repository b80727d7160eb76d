// A connector attaches itself to the broker in its constructor, whether the app makes it or a kind does (`create`); the
// app owns the former, and only the latter are in the table. Changes run one after the other (`#inTurn`), and the
// table is written before anything is made or closed: after a crash, the next start makes what the table has. One
// that cannot be made is listed as `missing` with the reason instead of failing the start. Secrets are stored, but
// never returned: `hidden` shows only options that the kind does not name as secret.

import { isDeepStrictEqual } from '../../base/builtins.ts';
import { type BrokerError, InvalidInput, NotFound, StateError } from '../../base/errors.ts';
import { checkObject, type FieldTable } from '../../base/fields.ts';
import { HIDDEN, hideInText } from '../../base/hidden-text.ts';
import { hideSecrets, keepSecrets, mapped } from '../../base/secrets.ts';
import type { Awaitable } from '../../events/hooks.ts';
import { checkConnectorName } from './connector-name.ts';
import type { Table } from './tables.ts';

/** A connection to another system with which events or messages are exchanged, such as a webhook or a bridge. */
export interface Connector {
  /** Unique among those of its kind. */
  readonly name: string;
  /** True if it is started; it need not be connected. */
  readonly isStarted: boolean;
  /** The current state, in the words of its kind. */
  readonly state: string;
  /** Number of waiting events or messages. */
  readonly size: number;
  /** The reason why the last attempt has failed; undefined after a success. */
  readonly lastError: Error | undefined;
  /** Counters since it was created, in the words of its kind: `{ sent, dropped: { expired } }`. */
  readonly counters: object;
  /** Start it, if it is stopped. */
  start(): void;
  /** Stop it. Waiting events or messages stay. */
  stop(): Awaitable<void>;
  /**
   * Send something that is marked as a test to the target, at once and once: see `Connectors.test`. It waits for a limited time, and rejects only
   * if nothing can be sent. Absent: the connector cannot be tested.
   */
  test?(): Promise<ConnectorTest>;
  /** End a test in progress: it resolves with an error. Called when the broker begins to stop. Absent: there is nothing to end. */
  endTest?(): void;
  /** Absent: no messages of another system are published here. */
  readonly inflow?: Inflow;
  /** Stop, and release everything. Persisted data stays. */
  close(): Awaitable<void>;
  /** Close, and also remove the waiting messages from the store. It is required; `discard` takes its place in this version. */
  delete?(): Awaitable<void>;
  /** @deprecated Use `delete`. */
  discard?(): Awaitable<void>;
}

/** The messages of another system that a connector publishes here, for the question why a message did not arrive. */
export interface Inflow {
  /** Tell whether messages to a topic of this broker come from the other system. */
  publishes(topic: string): boolean;
  /** The times without a connection. */
  readonly outages: {
    /** The last one that may have been at a time. @param precision possible difference, in milliseconds */
    at(
      time: number,
      precision: number
    ):
      | {
          /** The beginning, in milliseconds since 1970. */
          readonly from: number;
          /** The end, in milliseconds since 1970; undefined: it lasts. */
          readonly until: number | undefined;
        }
      | undefined;
  };
}

/** The result of a test of a connector. */
export interface ConnectorTest {
  /** HTTP status of the answer; undefined: there was none. */
  readonly status: number | undefined;
  /** Time until the answer or the failure, in milliseconds. */
  readonly durationMs: number;
  /** Why the target has not accepted the test; undefined: it has. */
  readonly error: Error | undefined;
}

/** Options of a connector, in the form of JSON. */
export type ConnectorSettings = Readonly<Record<string, unknown>>;

/** A kind of connector that can be created at run time: the option `connectors` of `createBroker`. */
export interface ConnectorKind<Host = never> {
  /** `webhook`, `bridge`. If a connector has an outbox, that is named after both: `webhook:main`. */
  readonly name: string;
  /**
   * Names of options that are never shown. Other options whose name denotes a secret, such as `authToken`, are not shown either, whatever
   * their type is, except booleans; nor are logins, queries and fragments of URLs.
   */
  readonly secrets: readonly string[];
  /** Check options without using them. @throws InvalidInput */
  check(settings: ConnectorSettings): void;
  /**
   * Create a connector, which is started and has attached itself to the broker. It is required; `make` takes its place in this version.
   * @param before the settings of the one that it replaces
   * @throws as `check`
   */
  create?(broker: Host, settings: ConnectorSettings, before?: ConnectorSettings): Connector;
  /** @deprecated Use `create`. */
  make?(broker: Host, settings: ConnectorSettings, before?: ConnectorSettings): Connector;
}

/** A connector, as `broker.connectors` lists it. */
export interface ConnectorState {
  /** The kind, such as `webhook` or `bridge`. */
  readonly kind: string;
  /** Unique among those of its kind. */
  readonly name: string;
  /** True if it is started; it need not be connected. */
  readonly isStarted: boolean;
  /** In the words of its kind; `missing`: it could not be created, see `lastError`. */
  readonly state: string;
  /** Number of waiting events or messages. */
  readonly size: number;
  /** The reason why the last attempt has failed; undefined after a success. */
  readonly lastError: Error | undefined;
  /** Counters since it was created: `{ sent, dropped_expired }`. Empty if it is missing. */
  readonly counters: Readonly<Record<string, number>>;
  /**
   * The settings with which it was created at run time, with `HIDDEN` for secrets. Undefined: the app or the configuration of the process
   * has created it.
   */
  readonly settings: ConnectorSettings | undefined;
}

/** A connector that was created at run time, in its stored form. */
export interface StoredConnector {
  readonly kind: string;
  readonly settings: ConnectorSettings;
  readonly isStarted: boolean;
}

/** The table in the store. */
export const CONNECTORS_TABLE = '$connectors';

/** The part of the broker that `Connectors` uses. */
interface ConnectorsHost {
  readonly kinds: readonly ConnectorKind[];
  readonly table: Table<StoredConnector>;
  /** The broker that is passed to `make` of a kind. */
  readonly broker: unknown;
  isStarted(): boolean;
  failed(error: unknown, during: string): void;
  /** Delete the stored messages of the outbox of a connector, which is not open. @param name `webhook:main` */
  discard(name: string): void;
}

/**
 * The connectors of a broker: `broker.connectors`. Those that the app creates (`webhook(broker, ...)`) attach themselves; those that are
 * created here are persisted with the state of the broker, with their secrets, and created again at each start.
 */
export class Connectors {
  readonly #host: ConnectorsHost;
  readonly #kinds = new Map<string, ConnectorKind>();
  readonly #running = new Map<string, Connector>();
  /** The reasons why stored connectors are missing. */
  readonly #errors = new Map<string, Error>();
  /** The last change. Changes are made one after the other. */
  #last: Promise<unknown> = Promise.resolve();
  /** The connector that is being created. */
  #making: string | undefined = undefined;

  /** @internal */
  constructor(host: ConnectorsHost) {
    this.#host = host;
    for (const kind of host.kinds) this.#kinds.set(kind.name, kind);
  }

  /** The kinds that can be created. */
  get kinds(): readonly string[] {
    return [...this.#kinds.keys()];
  }

  /** The connectors of a kind, sorted by name. @param kind default: all kinds, sorted by kind */
  list(kind?: string): ConnectorState[] {
    const keys = new Set([...this.#running.keys(), ...[...this.#host.table].map(([key]) => key)]);
    return [...keys]
      .sort()
      .filter((key) => kind === undefined || key.startsWith(`${kind}:`))
      .map((key) => this.#stateOf(key));
  }

  /** Tell whether there is a connector of this name, or it is in the store. @internal */
  isKnown(kind: string, name: string): boolean {
    const key = keyOf(kind, name);
    return this.#running.has(key) || this.#host.table.has(key);
  }

  /** A connector; undefined: there is none. */
  get(kind: string, name: string): ConnectorState | undefined {
    return this.isKnown(kind, name) ? this.#stateOf(keyOf(kind, name)) : undefined;
  }

  /** The connectors that publish messages of a topic here. @internal */
  feeding(topic: string): readonly Connector[] {
    return [...this.#running.values()].filter(({ inflow }) => inflow?.publishes(topic) === true);
  }

  /**
   * Add a connector that its caller has created. For adapters.
   * @returns a function that removes it
   * @throws StateError RECORD_EXISTS
   */
  attach(kind: string, connector: Connector): () => void {
    const key = keyOf(kind, connector.name);
    if (this.#running.has(key) || (this.#host.table.has(key) && this.#making !== key))
      throw exists(kind, connector.name);
    this.#running.set(key, connector);
    return () => {
      if (this.#running.get(key) === connector) this.#running.delete(key);
    };
  }

  /**
   * Create a connector and start it. It is persisted.
   * @param settings the options of its kind, with its name
   * @throws InvalidInput with the field, NotFound RECORD_NOT_FOUND (no such kind), StateError RECORD_EXISTS, BROKER_NOT_STARTED,
   * BrokerError STORE_FAILED: nothing has changed
   */
  create(kind: string, settings: ConnectorSettings): Promise<ConnectorState> {
    return this.#inTurn(async () => {
      const made = this.#kind(kind);
      const name = nameIn(settings, kind);
      const key = keyOf(kind, name);
      if (this.#running.has(key) || this.#host.table.has(key)) throw exists(kind, name);
      withSecrets(settings, {}, made); // nothing is hidden
      made.check(settings);
      const stored: StoredConnector = { kind, settings, isStarted: true };
      await this.#host.table.set(key, stored);
      await this.#make(key, stored);
      return this.#stateOf(key);
    });
  }

  /** @deprecated Use `create`. */
  add(kind: string, settings: ConnectorSettings): Promise<ConnectorState> {
    return this.create(kind, settings);
  }

  /**
   * Replace the options of a connector that was created at run time. Has no effect if they are the current ones. Otherwise, waiting
   * messages stay if its kind persists them. The new connector has the same state, started or stopped.
   * @param settings all options; `******` for a secret means the current one
   * @throws as `create`; NotFound RECORD_NOT_FOUND; StateError CONNECTOR_OF_APP
   */
  change(kind: string, name: string, settings: ConnectorSettings): Promise<ConnectorState> {
    return this.#inTurn(async () => {
      const key = keyOf(kind, name);
      const before = this.#stored(kind, name);
      const made = this.#kind(kind);
      if (settings.name !== undefined && settings.name !== name)
        throw new InvalidInput('OPTION_INVALID', 'name', `"${name}", because a name cannot be changed`, settings.name);
      const after = withSecrets({ ...settings, name }, before.settings, made);
      made.check(after);
      if (this.#running.has(key) && isDeepStrictEqual(after, before.settings)) return this.#stateOf(key);
      const stored: StoredConnector = { ...before, settings: after };
      await this.#host.table.set(key, stored);
      await this.#running.get(key)?.close();
      await this.#make(key, stored, before.settings);
      return this.#stateOf(key);
    });
  }

  /**
   * Start a connector. @returns false: it was started already. For one that was created at run time this is persisted
   * @throws NotFound RECORD_NOT_FOUND; StateError BROKER_NOT_STARTED; BrokerError STORE_FAILED
   */
  start(kind: string, name: string): Promise<boolean> {
    return this.#switch(kind, name, true);
  }

  /** Stop a connector. Waiting messages stay. @returns false: it was stopped already @throws as `start` */
  stop(kind: string, name: string): Promise<boolean> {
    return this.#switch(kind, name, false);
  }

  /**
   * Send something that is marked as a test to the target of a connector, which may be stopped. Its queue and its counters stay as they are.
   * @throws NotFound RECORD_NOT_FOUND; StateError CONNECTOR_UNTESTABLE, BROKER_NOT_STARTED
   */
  async test(kind: string, name: string): Promise<ConnectorTest> {
    if (!this.#host.isStarted()) throw new StateError('BROKER_NOT_STARTED', 'the broker is not started');
    if (!this.isKnown(kind, name)) throw notFound(kind, name);
    const running = this.#running.get(keyOf(kind, name));
    if (running?.test !== undefined) return running.test();
    const why = running === undefined ? `could not be created; correct its options first` : 'cannot be tested';
    throw new StateError('CONNECTOR_UNTESTABLE', `the ${kind} "${name}" ${why}`);
  }

  /** End the tests in progress, because the broker stops. @internal */
  endTests(): void {
    for (const [key, connector] of this.#running)
      try {
        connector.endTest?.();
      } catch (error) {
        this.#host.failed(error, `ending the test of ${key}`);
      }
  }

  /**
   * Delete a connector that was created at run time, with its waiting messages. @throws NotFound RECORD_NOT_FOUND; StateError
   * CONNECTOR_OF_APP, BROKER_NOT_STARTED
   */
  delete(kind: string, name: string): Promise<void> {
    return this.#inTurn(async () => {
      this.#stored(kind, name);
      const key = keyOf(kind, name);
      await this.#host.table.delete(key);
      this.#errors.delete(key);
      const running = this.#running.get(key);
      if (running === undefined) this.#host.discard(key);
      else await (running.delete === undefined ? running.discard?.() : running.delete());
    });
  }

  /** Create the connectors of the store after it has been read. @internal */
  async restored(): Promise<void> {
    for (const [key, stored] of [...this.#host.table]) if (!this.#running.has(key)) await this.#make(key, stored);
  }

  #switch(kind: string, name: string, isStarted: boolean): Promise<boolean> {
    return this.#inTurn(async () => {
      const key = keyOf(kind, name);
      const state = this.get(kind, name);
      if (state === undefined) throw notFound(kind, name);
      const stored = this.#host.table.get(key);
      if (stored !== undefined && stored.isStarted !== isStarted)
        await this.#host.table.set(key, { ...stored, isStarted });
      const running = this.#running.get(key);
      if (running === undefined && stored !== undefined && isStarted) {
        await this.#make(key, { ...stored, isStarted });
        return true;
      }
      if (running === undefined || running.isStarted === isStarted) return false;
      if (isStarted) running.start();
      else await running.stop();
      return true;
    });
  }

  /** Create one of the stored connectors. If that fails, it is listed with the reason. */
  async #make(key: string, { kind, settings, isStarted }: StoredConnector, before?: ConnectorSettings): Promise<void> {
    this.#errors.delete(key);
    this.#making = key;
    try {
      const type = this.#kind(kind);
      const create = (type.create ?? type.make) as NonNullable<ConnectorKind['create']>;
      const connector = create.call(type, this.#host.broker as never, settings, before);
      if (!isStarted) await connector.stop();
    } catch (error) {
      this.#errors.set(key, error as Error);
      this.#host.failed(error, `making the ${key.replace(':', ' ')}`);
    } finally {
      this.#making = undefined;
    }
  }

  #stateOf(key: string): ConnectorState {
    const [kind] = key.split(':', 1);
    const name = key.slice(kind.length + 1);
    const stored = this.#host.table.get(key);
    const settings = stored && hidden(stored.settings, this.#kinds.get(kind)?.secrets);
    const running = this.#running.get(key);
    if (running === undefined)
      return {
        ...{ kind, name, isStarted: false, state: 'missing', size: 0, lastError: this.#errors.get(key) },
        ...{ counters: {}, settings }
      };
    const { isStarted, state, size, lastError, counters } = running;
    return { kind, name, isStarted, state, size, lastError, counters: flattened(counters), settings };
  }

  #stored(kind: string, name: string): StoredConnector {
    const stored = this.#host.table.get(keyOf(kind, name));
    if (stored !== undefined) return stored;
    if (!this.#running.has(keyOf(kind, name))) throw notFound(kind, name);
    throw new StateError(
      'CONNECTOR_OF_APP',
      `the ${kind} "${name}" belongs to the app or the configuration of the process; change it there`
    );
  }

  #kind(name: string): ConnectorKind {
    const kind = this.#kinds.get(name);
    if (kind !== undefined) return kind;
    throw new NotFound(
      'RECORD_NOT_FOUND',
      `this broker cannot make a ${name}: its option "connectors" does not have this kind`
    );
  }

  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const done = this.#last.then(() => {
      if (!this.#host.isStarted()) throw new StateError('BROKER_NOT_STARTED', 'the broker is not started');
      return run();
    });
    this.#last = done.catch(() => undefined);
    return done;
  }
}

/** @throws InvalidInput OPTION_INVALID */
export function checkConnectorKinds(value: unknown): readonly ConnectorKind[] {
  const isKind = (kind: Partial<ConnectorKind> | null) =>
    typeof kind === 'object' && kind !== null && typeof (kind.create ?? kind.make) === 'function';
  if (!Array.isArray(value) || !value.every(isKind))
    throw new InvalidInput('OPTION_INVALID', 'connectors', 'a list of kinds, such as [webhooks()]', value);
  return value;
}

/** Counters, with those of inner objects as `outer_inner`. */
function flattened(counters: object, prefix = ''): Record<string, number> {
  const entries = Object.entries(counters).flatMap(([name, value]) =>
    typeof value === 'number' ? [[prefix + name, value]] : Object.entries(flattened(value, `${prefix}${name}_`))
  );
  return Object.fromEntries(entries);
}

function keyOf(kind: string, name: string): string {
  return `${kind}:${name}`;
}

function nameIn(settings: ConnectorSettings, kind: string): string {
  checkObject(settings, kind);
  const { name } = settings;
  return checkConnectorName(name, 'name');
}

/** @param secrets undefined: it is not known which settings are secret */
function hidden(settings: ConnectorSettings, secrets: readonly string[] | undefined): ConnectorSettings {
  if (secrets === undefined)
    return mapped(settings, (value, name) => (name === 'name' ? hideInText(value as string) : HIDDEN));
  return hideSecrets(tableOf(secrets), settings);
}

function tableOf(secrets: readonly string[]): FieldTable {
  const secret = { type: 'any', about: 'A secret.', isSecret: true } as const;
  return Object.fromEntries(secrets.map((name) => [name, secret]));
}

/** @throws InvalidInput OPTION_INVALID: a secret has no current value or is for another server, or a value has too many levels */
function withSecrets(
  settings: ConnectorSettings,
  before: ConnectorSettings,
  { name, secrets }: Pick<ConnectorKind, 'name'> & Partial<ConnectorKind> // an app in JavaScript may leave `secrets` out
): ConnectorSettings {
  const fault = (path: readonly string[], reason: string, expected: string) => {
    const place = [name, ...path].join('.');
    return new InvalidInput('OPTION_INVALID', place, expected, undefined, place + reason);
  };
  const field = secrets === undefined ? { isSecret: true } : { fields: tableOf(secrets) };
  return keepSecrets(settings, before, { field, fault }) as ConnectorSettings;
}

function exists(kind: string, name: string): BrokerError {
  return new StateError('RECORD_EXISTS', `there is a ${kind} "${name}" already`);
}

function notFound(kind: string, name: string): BrokerError {
  return new NotFound('RECORD_NOT_FOUND', `there is no ${kind} "${name}"`);
}
