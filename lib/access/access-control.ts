// The order of decisions is the order of hooks: rules that are evaluated first, hooks and sources in the order in
// which they were added, rules that are evaluated last; for CONNECT the records of the broker come first. A source
// that is stopped still counts as a decider (`decide`), so that stopping one never admits clients that it would
// refuse. Every change of sources or rules calls `rightsChanged` or `rulesChanged`, after which answers that
// connections keep are outdated. After each wait the source is looked up again, because it may have been removed.

import type { BaseServices } from '../base/base-services.ts';
import { asError, InvalidInput, NotFound, StateError } from '../base/errors.ts';
import { nearest, unknownKey } from '../base/fields.ts';
import { type Hook, type HookRegistry, isThenable, type Verdict } from '../events/hooks.ts';
import type { AccessRule, RuleAction } from '../records/access-rule.ts';
import type { Ban } from '../records/ban.ts';
import type { ClientInfo } from '../records/client.ts';
import { innerFilter } from '../topics/topic.ts';
import { AccessRules, type RuledClient } from './access-rules.ts';
import { AclRecords } from './acl-records.ts';
import { Applications } from './applications.ts';
import { BannedClients } from './banned.ts';
import { CredentialRecords } from './credential-records.ts';
import { Deciders } from './deciders.ts';
import { DeliveryRights } from './delivery-rights.ts';
import { LoginLimit } from './login-limit.ts';
import { ManagementUsers } from './management-users.ts';
import { PasswordChecks } from './password-checks.ts';
import { authenticateByRecords } from './record-login.ts';
import { InventedScram } from './scram.ts';
import { Secrets } from './secrets.ts';
import type { AuthorizeRequest, AuthSource, SourceContext } from './source.ts';

/** The part of the broker that `AccessControl` uses. */
interface AccessHost {
  readonly settings: {
    /** Cost of new hashes; see `hashPassword`. */
    readonly passwordCost: number;
    readonly retainedRights: 'keep' | 'recheck';
  };
  readonly hooks: HookRegistry;
  /** A persisted table that only the broker uses. */
  ownTable(name: string): unknown;
  /** Called when the rights of clients have changed. @param clientId undefined: of all clients */
  rightsChanged(clientId?: string): void;
  /** Called when rules that the broker holds have changed. */
  rulesChanged(): void;
  /** Called when hooks were added or removed. */
  hooksChanged(): void;
  /** Called when a ban was made. @returns the number of clients that were disconnected (option `banDisconnects`) */
  banned(ban: Ban): number;
  /** Disconnect the clients that a ban is about. @returns their number */
  enforced(ban: Ban): number;
  /** Called when the first record of clients was added. @param kind what has a password now: `client id` */
  recordAdded(kind: string): void;
  /** Called when a source was loaded again. @param error why it was not */
  reloaded(source: string, error: Error | undefined): void;
}

/** Rules that are evaluated before or after everything else. */
interface AskedRules {
  readonly place: { readonly isFirst?: true; readonly isLast?: true };
  decide(client: RuledClient, topic: string): boolean | undefined;
  decideFilter(client: RuledClient, filter: string): boolean | undefined;
}

/** A source that was added. */
interface Loaded {
  readonly source: AuthSource;
  isOpen: boolean;
  /** The start, as counted by `#starts`, whose opening of the source is in progress; undefined: none. */
  opening: number | undefined;
  /** True if an operator has stopped the source, so that it is not asked. */
  isStopped: boolean;
  /** Functions that remove what the source has registered. */
  readonly release: (() => void)[];
  /** Functions that unregister the source as a decider. Not called on stop, so that stopping a source never opens access. */
  readonly undecide: (() => void)[];
}

/** A source of authentication or of access rules, as `broker.access.list` returns it, with whether it is asked. */
export interface SourceState {
  /** The name of the source; `records`: the client ids, user names and logins with passwords that the broker has. */
  readonly name: string;
  /** The decisions that the source takes part in. */
  readonly provides: readonly ('authentication' | 'authorization')[];
  /** True if it is asked. */
  readonly isStarted: boolean;
}

/** The name of the records of the broker among the sources. */
const RECORDS = 'records';

/** The sources that an operator has stopped, by name. */
interface StoppedTable {
  has(name: string): boolean;
  set(name: string, isStopped: true): Promise<void>;
  delete(name: string): Promise<boolean>;
}

/**
 * Decides which clients may connect and what they may do, by the records and rules that the broker holds and by the sources, in the order
 * in which they are asked.
 */
export class AccessControl {
  readonly clientIds: CredentialRecords;
  readonly usernames: CredentialRecords;
  readonly logins: CredentialRecords;
  readonly rules: AccessRules;
  readonly deciders: Deciders;
  readonly acl: AclRecords;
  readonly banned: BannedClients;
  readonly applications: Applications;
  readonly users: ManagementUsers;
  readonly deliveryRights: DeliveryRights;
  readonly secrets: Secrets;
  /** SCRAM credentials for users that do not exist. */
  readonly inventedScram: InventedScram;
  /** Limits the failed logins of MQTT clients. */
  readonly loginLimit: LoginLimit;
  readonly #services: BaseServices;
  readonly #host: AccessHost;
  readonly #sources = new Map<string, Loaded>();
  readonly #stopped: StoppedTable;
  /** The last call of `switch` for each source, while it is in progress. It never rejects. */
  readonly #switches = new Map<string, Promise<unknown>>();
  /** Unregisters the records as a decider, while they are stopped. */
  #stoppedRecords: (() => void) | undefined = undefined;
  #removeRecords: (() => void) | undefined = undefined;
  /** Functions that remove the hooks of the rules which are evaluated first and last. */
  readonly #removeRules: { first: (() => void) | undefined; last: (() => void) | undefined } = {
    first: undefined,
    last: undefined
  };
  /** The names of the sources that a stop of the broker is closing. */
  readonly closing = new Set<string>();
  #isStarted = false;
  /** Increases with every start and stop, so that an opening of a source that takes too long is recognized as one of an earlier start. */
  #starts = 0;

  constructor(services: BaseServices, host: AccessHost) {
    const { clock } = services;
    this.#services = services;
    this.#host = host;
    this.secrets = new Secrets(new PasswordChecks(() => clock.monotonic()), host.settings.passwordCost);
    const own = (name: string) => host.ownTable(name) as never;
    this.#stopped = own('$stopped_sources');
    this.loginLimit = new LoginLimit(clock);
    this.inventedScram = new InventedScram(own('$scram'), (error) =>
      services.failed(error, 'persisting the key of invented SCRAM credentials')
    );
    const pause = () => services.pause();
    const records = (table: string, kind: string) =>
      new CredentialRecords(own(table), kind, pause, () => {
        if (this.#askRecords()) host.recordAdded(kind);
      });
    this.clientIds = records('$clientids', 'client id');
    this.usernames = records('$usernames', 'user name');
    this.logins = records('$logins', 'login');
    this.rules = new AccessRules(
      () => this.#rulesChanged(),
      () => clock.now()
    );
    this.deciders = new Deciders(host.hooks, this.rules);
    const { rules, clientIds, usernames, logins } = this;
    this.deliveryRights = new DeliveryRights({ rules, settings: host.settings, clientIds, usernames, logins });
    this.acl = new AclRecords(services, own('$acl'), rules.records, () => rules.recordsChanged(this.acl.size > 0));
    this.applications = new Applications(own('$applications'), this.secrets, () => clock.now());
    this.users = new ManagementUsers(own('$users'), this.secrets, (error, during) => services.failed(error, during));
    const { banned, enforced } = host;
    this.banned = new BannedClients(services, own('$banned'), banned, enforced);
  }

  /** Number of hooks of a name that evaluate the rules that the broker holds. */
  get ruleHooks(): number {
    const { first, last } = this.#removeRules;
    return (first === undefined ? 0 : 1) + (last === undefined ? 0 : 1);
  }

  /** The names of the sources, in the order in which they are asked. */
  get sources(): string[] {
    return [...this.#sources.keys()];
  }

  /** The records of the broker, and the sources in the order in which they are asked. */
  list(): SourceState[] {
    const sources = [...this.#sources.values()].map(({ source, isStopped }): SourceState => {
      return { name: source.name, provides: source.provides ?? provided(source), isStarted: !isStopped };
    });
    return [{ name: RECORDS, provides: ['authentication'], isStarted: !this.hasStoppedRecords }, ...sources];
  }

  /** True if an operator has stopped the records of clients. */
  get hasStoppedRecords(): boolean {
    return this.#stoppedRecords !== undefined;
  }

  /**
   * Stop asking a source, or ask it again after the others. The state is persisted. A call waits for the earlier ones about the same
   * source.
   * @returns false if it was in that state already
   * @throws NotFound SOURCE_UNKNOWN with a suggestion; what `open` or `close` of the source throws; BrokerError STORE_FAILED
   */
  async switch(name: string, isStarted: boolean): Promise<boolean> {
    if (name !== RECORDS) this.#known(name);
    const earlier = this.#switches.get(name);
    const change = () => this.#switch(name, isStarted);
    const changed = earlier === undefined ? change() : earlier.then(change);
    const ended = changed.catch(() => undefined);
    this.#switches.set(name, ended);
    try {
      return await changed;
    } finally {
      if (this.#switches.get(name) === ended) this.#switches.delete(name);
    }
  }

  async #switch(name: string, isStarted: boolean): Promise<boolean> {
    const loaded = name === RECORDS ? undefined : this.#known(name);
    if (isStarted === (loaded === undefined ? this.#stoppedRecords === undefined : !loaded.isStopped)) return false;
    if (!isStarted) await this.#stopped.set(name, true);
    try {
      if (loaded === undefined) this.#switchRecords(isStarted);
      else await this.#switchSource(loaded, isStarted);
      if (isStarted) await this.#stopped.delete(name);
    } catch (error) {
      if (isStarted && loaded !== undefined) await this.#switchSource(loaded, false);
      else if (isStarted) this.#switchRecords(false);
      throw error;
    }
    return true;
  }

  #switchRecords(isStarted: boolean): void {
    this.#stoppedRecords?.();
    this.#stoppedRecords = isStarted ? undefined : this.#host.hooks.decide('authenticate');
    if (!isStarted) this.#removeRecords?.();
    if (!isStarted) this.#removeRecords = undefined;
    else if (this.#hasRecords) this.#askRecords();
    this.#host.hooksChanged();
  }

  async #switchSource(loaded: Loaded, isStarted: boolean): Promise<void> {
    const { source } = loaded;
    loaded.isStopped = !isStarted;
    for (const release of loaded.release.splice(0)) release();
    if (!isStarted) this.rules.set(source.name, [], source.hasLastRules);
    else {
      this.#sources.delete(source.name);
      this.#sources.set(source.name, loaded);
      this.#register(loaded);
    }
    this.#host.hooksChanged();
    this.#host.rightsChanged();
    if (!isStarted) await close(loaded);
    else if (this.#isStarted) await this.#open(loaded);
  }

  /** Add a source; `start` opens it. @throws InvalidInput SOURCE_INVALID, SOURCE_NAME_IN_USE */
  load(source: AuthSource): void {
    checkSource(source);
    if (this.#sources.has(source.name) || source.name === RECORDS)
      throw new InvalidInput('SOURCE_NAME_IN_USE', 'name', 'a name that no other source has', source.name);
    const isStopped = this.#stopped.has(source.name);
    const loaded: Loaded = { source, isOpen: false, opening: undefined, isStopped, release: [], undecide: [] };
    this.#sources.set(source.name, loaded);
    this.#register(loaded);
  }

  /** Add a source to a started broker, and open it. If that fails, it is removed again. @throws as `load`; what its `open` throws */
  async add(source: AuthSource): Promise<void> {
    this.load(source);
    if (!this.#isStarted) return;
    const loaded = this.#known(source.name);
    try {
      await this.#open(loaded);
      this.#host.rightsChanged();
    } catch (error) {
      if (this.#sources.get(source.name) === loaded) await this.remove(source.name);
      throw error;
    }
  }

  /** Remove a source and close it. @throws NotFound SOURCE_UNKNOWN; what its `close` throws */
  async remove(name: string): Promise<void> {
    const loaded = this.#known(name);
    this.#sources.delete(name);
    for (const release of [...loaded.release, ...loaded.undecide]) release();
    this.rules.set(name, [], loaded.source.hasLastRules);
    this.#host.hooksChanged();
    this.#host.rightsChanged();
    await close(loaded);
  }

  /**
   * Load a source again: it reads its files, and is asked after the others from then on. @throws NotFound SOURCE_UNKNOWN; what `reload`
   * throws
   */
  async reload(name: string): Promise<void> {
    const loaded = this.#known(name);
    if (loaded.isStopped) throw new StateError('SOURCE_STOPPED', `the source "${name}" is stopped; start it first`);
    try {
      await loaded.source.reload?.();
    } catch (error) {
      this.#host.reloaded(name, asError(error));
      throw error;
    }
    if (this.#sources.get(name) !== loaded) return; // it was removed in the meantime
    this.#sources.delete(name);
    this.#sources.set(name, loaded);
    for (const release of loaded.release.splice(0)) release();
    this.#register(loaded);
    this.rules.moveLast(name);
    this.#host.rightsChanged();
    this.#host.reloaded(name, undefined);
  }

  /** Open the sources after the store has been read. @throws what their `open` throws; those that are open then stay open until `stop` */
  async start(): Promise<void> {
    this.acl.restored();
    this.banned.restored();
    this.#restoreSwitches();
    if (this.#hasRecords) this.#askRecords();
    for (const records of [this.clientIds, this.usernames, this.logins]) records.restored();
    this.#isStarted = true;
    const start = ++this.#starts;
    for (const loaded of [...this.#sources.values()]) if (start === this.#starts) await this.#open(loaded);
  }

  /** Stop the sources that an operator had stopped before this start. */
  #restoreSwitches(): void {
    if (this.#stopped.has(RECORDS) && this.#stoppedRecords === undefined) this.#switchRecords(false);
    for (const loaded of this.#sources.values()) {
      if (!this.#stopped.has(loaded.source.name)) continue;
      loaded.isStopped = true;
      for (const release of loaded.release.splice(0)) release();
    }
    this.#host.hooksChanged();
  }

  get #hasRecords(): boolean {
    return this.clientIds.size + this.usernames.size + this.logins.size > 0;
  }

  /** Close the sources. @returns the errors of those that could not be closed */
  async stop(): Promise<unknown[]> {
    this.#isStarted = false;
    this.#starts++;
    const closings = [...this.#sources.values()].map(async (loaded) => {
      const { name } = loaded.source;
      this.closing.add(name);
      await close(loaded).finally(() => this.closing.delete(name));
    });
    const results = await Promise.allSettled(closings);
    return results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  }

  #known(name: string): Loaded {
    const loaded = this.#sources.get(name);
    if (loaded !== undefined) return loaded;
    const names = [RECORDS, ...this.sources];
    const near = nearest(String(name), names);
    const hint = near === undefined ? `the sources are ${names.join(', ')}` : `did you mean "${near}"?`;
    throw new NotFound('SOURCE_UNKNOWN', `there is no source of authentication "${name}"; ${hint}`);
  }

  async #open(loaded: Loaded): Promise<void> {
    if (loaded.isOpen || loaded.isStopped) return;
    const start = this.#starts;
    loaded.opening = start;
    try {
      await loaded.source.open?.(this.#contextOf(loaded));
    } finally {
      if (loaded.opening === start) loaded.opening = undefined;
    }
    const isOver = start !== this.#starts; // the broker has stopped without waiting for it
    if (isOver && loaded.isOpen) return; // and was started again
    loaded.isOpen = true;
    if (isOver && loaded.opening === this.#starts) return; // it is being opened again, and closing it would close that
    const isRemoved = this.#sources.get(loaded.source.name) !== loaded;
    if (isOver || isRemoved || loaded.isStopped) await close(loaded); // this has happened in the meantime
  }

  #contextOf(loaded: Loaded): SourceContext {
    const services = this.#services;
    const { name, hasLastRules } = loaded.source;
    return {
      clock: services.clock,
      setRules: (rules: readonly AccessRule[]) => {
        if (this.#sources.get(name) === loaded && !loaded.isStopped) this.rules.set(name, rules, hasLastRules);
      },
      verifyPassword: (hash, { client, password, signal }, check) => {
        const { remoteAddress = '' } = client.transportInfo;
        return this.secrets.verify(hash, password ?? Buffer.alloc(0), remoteAddress, signal, check);
      },
      seedLogin: async (login, password, isSuperuser) => {
        if (this.logins.get(login) === undefined) await this.logins.create(login, password, { isSuperuser });
      },
      invalidate: (clientId) => this.#host.rightsChanged(clientId),
      failed: (error, during) => services.failed(error, during)
    };
  }

  /** Register the functions of a source as hooks. */
  #register({ source, isStopped, release, undecide }: Loaded): void {
    const { hooks } = this.#host;
    const { timeoutMs, provides = provided(source) } = source;
    const isNew = undecide.length === 0;
    if (provides.includes('authentication')) {
      const hook = source.authenticate && namedRefusals(source);
      if (isNew) undecide.push(hooks.decide('authenticate'));
      if (hook !== undefined && !isStopped)
        release.push(
          hooks.add('authenticate', hook, { timeoutMs, isDeciding: false, origin: { source: source.name } })
        );
    }
    if (provides.includes('authorization')) {
      if (isNew)
        for (const name of ['authorizePublish', 'authorizeSubscribe'] as const) undecide.push(hooks.decide(name));
      const authorize = source.authorize?.bind(source);
      if (authorize !== undefined && !isStopped) {
        const origin = { source: source.name };
        const ask = (question: QuestionPart, action: RuleAction, topic: string) =>
          authorize(new SourceQuestion(question, action, topic));
        release.push(
          hooks.add(
            'authorizePublish',
            (question) => ask(question, 'publish', unmounted(question.client, question.message.topic)),
            {
              timeoutMs,
              cache: 'route',
              isDeciding: false,
              origin
            }
          ),
          hooks.add('authorizeSubscribe', (question) => ask(question, 'subscribe', innerFilter(question.filter)), {
            isAsking: true,
            timeoutMs,
            cache: 'route',
            isDeciding: false,
            origin
          })
        );
      }
    }
    this.#host.hooksChanged();
  }

  /** Ask the records of clients first, because there are some. @returns whether there were none before */
  #askRecords(): boolean {
    if (this.#removeRecords !== undefined || this.#stoppedRecords !== undefined) return false;
    const ask = (request: Parameters<typeof authenticateByRecords>[1]) => authenticateByRecords(this, request);
    const origin = { source: RECORDS };
    this.#removeRecords = this.#host.hooks.add('authenticate', ask, { isFirst: true, isDeciding: false, origin });
    this.#host.hooksChanged();
    return true;
  }

  /** Evaluate the rules that the broker holds as long as there are any. Called when they have changed. */
  #rulesChanged(): void {
    const { rules } = this;
    const removals = this.#removeRules;
    removals.first = this.#askRules(rules.hasFirst, removals.first, {
      place: { isFirst: true },
      decide: (client, topic) => rules.decideFirst(client, 'publish', topic),
      decideFilter: (client, filter) => rules.decideFilterFirst(client, filter)
    });
    removals.last = this.#askRules(rules.hasLast, removals.last, {
      place: { isLast: true },
      decide: (client, topic) => rules.decideLast(client, 'publish', topic),
      decideFilter: (client, filter) => rules.decideFilterLast(client, filter)
    });
    this.#host.rulesChanged();
  }

  /** Register the hooks that evaluate rules, or remove them. @returns a function that removes them; undefined if they are not registered */
  #askRules(isWanted: boolean, remove: (() => void) | undefined, rules: AskedRules): (() => void) | undefined {
    if (isWanted === (remove !== undefined)) return remove;
    if (remove !== undefined) {
      remove();
      this.#host.hooksChanged();
      return undefined;
    }
    const { hooks } = this.#host;
    const origin = { rules: rules.place.isLast === true ? ('last' as const) : ('first' as const) };
    const options = { ...rules.place, isDeciding: false, origin };
    const removals = [
      hooks.add(
        'authorizePublish',
        ({ client, message }): Verdict => rules.decide(client as RuledClient, unmounted(client, message.topic)),
        { ...options, cache: 'route' }
      ),
      hooks.add(
        'authorizeSubscribe',
        ({ client, filter }): Verdict => rules.decideFilter(client as RuledClient, innerFilter(filter)),
        { ...options, cache: 'route' }
      )
    ];
    this.#host.hooksChanged();
    return () => {
      for (const one of removals) one();
    };
  }
}

/** The function that asks a source who a client is. Its refusals name the source, for the operator. */
function namedRefusals(source: AuthSource): Hook<'authenticate'> {
  type Answer = Awaited<ReturnType<NonNullable<AuthSource['authenticate']>>>;
  const named = (answer: Answer): Answer => {
    if (answer === false) return { allow: false, why: `the source ${source.name} refuses the client` };
    if (typeof answer !== 'object' || answer === null || !('allow' in answer) || answer.allow !== false) return answer;
    const why = answer.why ?? answer.reasonString ?? 'it refuses the client';
    return { ...answer, why: `source ${source.name}: ${why}` };
  };
  return (request) => {
    const answer = source.authenticate?.(request as never);
    return isThenable(answer as Answer | Promise<Answer>)
      ? (answer as Promise<Answer>).then(named)
      : named(answer as Answer);
  };
}

/** The part of the request of a hook that a source sees. */
type QuestionPart = Pick<AuthorizeRequest, 'client' | 'signal' | 'undecided'>;

/** A question to a source. It reads the signal of the request only if the source does, because reading creates it. */
class SourceQuestion implements AuthorizeRequest {
  readonly action: RuleAction;
  readonly topic: string;
  readonly #question: QuestionPart;

  constructor(question: QuestionPart, action: RuleAction, topic: string) {
    this.#question = question;
    this.action = action;
    this.topic = topic;
  }

  get client(): ClientInfo {
    return this.#question.client;
  }

  get signal(): AbortSignal {
    return this.#question.signal;
  }

  undecided(): void {
    this.#question.undecided();
  }
}

/** The decisions that a source takes part in, if it does not declare them itself. */
function provided({ authenticate, authorize }: AuthSource): ('authentication' | 'authorization')[] {
  return [
    ...(authenticate === undefined ? [] : (['authentication'] as const)),
    ...(authorize === undefined ? [] : (['authorization'] as const))
  ];
}

async function close(loaded: Loaded): Promise<void> {
  if (!loaded.isOpen) return;
  loaded.isOpen = false;
  await loaded.source.close?.();
}

/** A topic name as the client knows it. */
function unmounted({ mountpoint }: ClientInfo, topic: string): string {
  return topic.slice(mountpoint.length);
}

/** The functions that a source may have. */
const SOURCE_FUNCTIONS = ['authenticate', 'authorize', 'open', 'close', 'reload'] as const;

/** @throws InvalidInput SOURCE_INVALID */
function checkSource(source: AuthSource): void {
  if (typeof source !== 'object' || source === null || typeof source.name !== 'string' || source.name === '')
    throw new InvalidInput('SOURCE_INVALID', 'source', 'a source of authentication, such as users([...])', source);
  const place = `the source ${source.name}`;
  for (const name of SOURCE_FUNCTIONS)
    if (source[name] !== undefined && typeof source[name] !== 'function')
      throw new InvalidInput('SOURCE_INVALID', `${name} of ${place}`, 'a function', source[name]);
  // a misspelt function name would leave the broker open
  for (const [key, value] of Object.entries(source)) {
    const isMeant = typeof value === 'function' && nearest(key, SOURCE_FUNCTIONS) !== undefined;
    if (isMeant && !(SOURCE_FUNCTIONS as readonly string[]).includes(key))
      throw unknownKey(key, SOURCE_FUNCTIONS, place);
  }
  const { authenticate, authorize, open } = source;
  if ((authenticate ?? authorize ?? open) === undefined)
    throw new InvalidInput('SOURCE_INVALID', place, 'a function authenticate, authorize or open', Object.keys(source));
}
