// Hooks fail closed, per kind of hook. The documented defaults (`allow_anonymous` true, `acl_nomatch` allow) hold
// while no hook decides. An app that registers a hook intends to decide, and a code path that returns nothing is
// usually a mistake, so the default becomes refusal. Publishing and subscribing are separate. The rule is read when
// the hooks are asked, so removing a hook while it runs admits no client. A zone with `aclNomatch: 'deny'` does the same
// without a hook.

import { isUint8Array } from 'node:util/types';
import type { Clock } from '../base/clock.ts';
import { BrokerError, InvalidInput, show } from '../base/errors.ts';
import { nearest, unknownName } from '../base/fields.ts';
import type { WorkCount } from '../base/pending-work.ts';
import { type CodeSet, isAllowedCode } from '../packets/allowed-codes.ts';
import type { Message, MessageInput } from '../packets/message.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { ConnectPacket, QoS, UserProperty } from '../packets/types.ts';
import type { AccessRule } from '../records/access-rule.ts';
import type { ClientInfo, TransportInfo } from '../records/client.ts';
import type { Zone } from '../records/zone.ts';
import { OpenQuestions } from './questions.ts';
import type { SubscriptionOptions } from './subscription-options.ts';

/** A value or a promise of it. */
export type Awaitable<T> = T | PromiseLike<T>;

/** The answer of a hook that refuses a connection, a message or a subscription. */
export interface Refusal {
  /** Refuse. */
  readonly allow: false;
  /**
   * MQTT 5.0 reason code of 0x80 or above that is allowed in the refusing packet (CONNACK, PUBACK or SUBACK). Any other
   * code is reported (HOOK_ANSWER_INVALID) and replaced. For 3.x clients the code is translated.
   */
  readonly reasonCode?: number;
  /** Reason String for v5 clients. */
  readonly reasonString?: string;
  /** Server Reference for v5 clients, with reason code 0x9C (use another server) or 0x9D (server moved); 0x9C if no code is given. */
  readonly serverReference?: string;
  /**
   * The reason for the operator: in the log, the events `client.rejected` and `client.connack`, and traces. It is not
   * sent to the client and must not contain secrets. Default: `reasonString`.
   */
  readonly why?: string;
  /** For `authenticate`: the credentials were right and have expired, like a token. Recorded as `token_expired`. Default false. */
  readonly isExpired?: boolean;
}

/** The argument of a preConnect hook. */
export interface PreConnectRequest<Data = unknown> {
  /** The CONNECT, with the password. */
  readonly packet: ConnectPacket;
  /** Address, transport and handshake facts of the connection. */
  readonly transportInfo: TransportInfo;
  /** The client, as its CONNECT describes it. */
  readonly client: ClientInfo<Data>;
  /** Aborted when the connection closes or `hookTimeout` has passed. */
  readonly signal: AbortSignal;
}

/** The argument of an authenticate hook. */
export interface AuthenticateRequest<Data = unknown> {
  /** The client, as its CONNECT describes it. */
  readonly client: ClientInfo<Data>;
  /** The user name; undefined if CONNECT has none. */
  readonly username: string | undefined;
  /** The password; undefined if CONNECT has none. */
  readonly password: Buffer | undefined;
  /** Authentication Method of MQTT 5.0; undefined if CONNECT has none. */
  readonly method: string | undefined;
  /** Authentication Data of CONNECT, or of the AUTH packet in later rounds. */
  readonly data: Buffer | undefined;
  /** 0 for CONNECT or for the AUTH that starts a re-authentication, then 1, 2, ... */
  readonly round: number;
  /** True if a connected client authenticates again. */
  readonly isReauthentication: boolean;
  /** State for the hook to use; the same map in all rounds of one authentication. */
  readonly state: Map<string, unknown>;
  /**
   * Aborted when the connection closes or `hookTimeout` has passed. It is created when it is first read, so a spread
   * copy of the request lacks it.
   */
  readonly signal: AbortSignal;
}

/** The answer of an authenticate hook that accepts a client. */
export interface Approval<Data = unknown> {
  /** Accept the client. */
  readonly allow: true;
  /** User name to use instead of the one in CONNECT. */
  readonly username?: string;
  /** Exempt the client from access control: authorizePublish and authorizeSubscribe hooks are not called for it. Default false. */
  readonly isSuperuser?: boolean;
  /**
   * Access rules for this client only; see `AccessRule`. They apply until its next authentication and are not
   * persisted. Operations that neither they nor any other rule allows are denied, unless `aclNomatch` is set to
   * `allow`.
   */
  readonly rules?: readonly AccessRule[];
  /** Any value to be kept as `data` of the client, which hooks and events receive. It is not persisted. */
  readonly clientData?: Data;
  /**
   * Expiry of the authentication, in milliseconds since 1970: the broker then closes the connection (`expired_token`).
   * A time in the past refuses the client. Each authentication replaces the value, so a re-authentication without it
   * removes it. Default: never.
   */
  readonly expiresAt?: number;
  /** Authentication Data for CONNACK, or for the AUTH that completes a re-authentication. */
  readonly data?: Buffer;
  /** User properties for CONNACK. */
  readonly userProperties?: readonly UserProperty[];
}

/** The answer of an authenticate hook that needs another round: AUTH 0x18 is sent with `challenge` as its data [MQTT-4.12.0-2]. */
export interface Challenge {
  /** Authentication Data for the client; undefined: none. */
  readonly challenge: Buffer | undefined;
}

/** The argument of an authorizePublish hook. */
export interface AuthorizePublishRequest<Data = unknown> {
  /** The publisher. */
  readonly client: ClientInfo<Data>;
  /** The message, or the will. */
  readonly message: Message;
  /** Aborted when `hookTimeout` has passed. Not when the connection closes, because the broker has received the message. */
  readonly signal: AbortSignal;
  /**
   * Report that the hook cannot decide, because a system that it queries has failed: the following answer is not
   * cached (`cache: 'route'`).
   */
  undecided(): void;
}

/** The argument of an authorizeSubscribe hook. */
export interface AuthorizeSubscribeRequest<Data = unknown> {
  /** The subscriber. */
  readonly client: ClientInfo<Data>;
  /** The requested topic filter after rewriting, without the mount point. */
  readonly filter: string;
  /** The requested options of the subscription. */
  readonly options: SubscriptionOptions;
  /** Aborted when the connection closes or `hookTimeout` has passed. */
  readonly signal: AbortSignal;
  /**
   * Report that the hook cannot decide, because a system that it queries has failed: the following answer is not
   * cached, and the hooks are soon asked again about a subscription that receives it.
   */
  undecided(): void;
}

/** The answer of an `authorizeSubscribe` hook that allows a topic filter other than the requested one. */
export interface ChangedFilter {
  /** Has no effect: an answer with a filter allows. */
  readonly allow?: true;
  /** The topic filter to subscribe to, without the mount point; with the share prefix for a shared subscription. */
  readonly filter: string;
  /** The maximum QoS to grant. Default: the requested one. */
  readonly qos?: QoS;
}

/** The argument of a publish hook. */
export interface PublishRequest<Data = unknown> {
  /** The message. */
  readonly message: Message;
  /** The publisher; undefined for messages from the app. */
  readonly client: ClientInfo<Data> | undefined;
}

/** The argument of a deliver hook. */
export interface DeliverRequest<Data = unknown> {
  /** The message. */
  readonly message: Message;
  /** The receiver. */
  readonly client: ClientInfo<Data>;
}

/** The answer of a hook that does not decide. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing is a valid hook
export type NoOpinion = undefined | void;

/**
 * The decision of a hook: `true` or `{ allow: true }` allows, `false` or a refusal refuses, and undefined leaves the decision to the next
 * hook.
 *
 * If no hook decides, the option `aclNomatch` applies to the authorize hooks, and `allowAnonymous` to authenticate.
 */
export type Verdict = boolean | NoOpinion | Refusal;

/**
 * The hooks of a broker, in the order in which they run. Each may return a promise, except `deliver`.
 *
 * For CONNECT: preConnect, authenticate. For SUBSCRIBE: authorizeSubscribe, for each topic filter. For PUBLISH and wills: authorizePublish,
 * publish. For each receiver: deliver.
 *
 * The functions registered for one hook run in order of registration. For preConnect, authenticate and the authorize hooks the first
 * decision is final; of publish and deliver all functions run.
 *
 * The operation is refused, and an `error` event is emitted, if a hook throws, rejects, does not answer within `hookTimeout`
 * (HOOK_TIMEOUT), or answers with an unknown key or a value of the wrong type (HOOK_ANSWER_INVALID). null means the same as undefined,
 * except for publish and deliver, where it is a value of the wrong type.
 */
export interface Hooks<Data = unknown> {
  /** Decides whether a client may try to connect; called for each well-formed CONNECT. Can redirect the client with `serverReference`. */
  preConnect?(request: PreConnectRequest<Data>): Awaitable<Verdict>;
  /**
   * Decides whether a client may connect. If no hook decides, the client is refused, unless the option `allowAnonymous` is set to true. A
   * CONNECT with an Authentication Method about which no hook decides is refused with 0x8C.
   */
  authenticate?(request: AuthenticateRequest<Data>): Awaitable<Verdict | Approval<Data> | Challenge>;
  /**
   * Decides whether a client may publish a message, or its will. If no hook decides, the message is refused, unless the option `aclNomatch`
   * is set to 'allow'. For a delayed message the hook is called when the message is accepted. It is not called for messages that the
   * application publishes with `broker.publish`.
   */
  authorizePublish?(request: AuthorizePublishRequest<Data>): Awaitable<Verdict>;
  /**
   * Decides whether a client may subscribe to a topic filter. A number from 0 to 2 allows it and is the maximum QoS to
   * grant, so 0 does not refuse; a number of 0x80 or above refuses with that reason code. If no hook decides, the
   * subscription is refused, unless the option `aclNomatch` is set to 'allow'. It is not called for `autoSubscriptions`
   * or for subscriptions that the application creates for a client. While there are sources that query external systems
   * (`AuthSource.authorize`), it is called again for a subscription whenever they are.
   */
  authorizeSubscribe?(request: AuthorizeSubscribeRequest<Data>): Awaitable<Verdict | number | ChangedFilter>;
  /**
   * Changes or refuses a message before it is routed. An object with any of topic, payload, qos, retain and properties replaces those
   * fields and keeps the others. `true`, `{ allow: true }` or undefined leaves the message unchanged; `false` or a refusal refuses it. Any
   * other value (0, '', null, {}, [], a function) refuses it and is reported (HOOK_ANSWER_INVALID). `client` is undefined for messages from
   * the application.
   */
  publish?(request: PublishRequest<Data>): Awaitable<MessageInput | boolean | NoOpinion | Refusal>;
  /**
   * Decides whether one receiver gets a message, and may change it for this receiver. `true` or undefined delivers it
   * unchanged; `false` drops it for this receiver. An object with any of topic, payload, qos, retain and properties
   * delivers a changed message: `qos` may only be lower than that of the message, `retain` is the flag of the packet,
   * and a topic keeps the mount point of the client. Any other value (0, '', null, an empty object) drops it and is
   * reported (HOOK_ANSWER_INVALID; HOOK_INVALID for a promise).
   *
   * It is synchronous and on the packet path, so it should be fast. It is called when the message is sent to the
   * receiver, not when it is queued. The changed message is resent until it is acknowledged. The store keeps the
   * message as it was published, so the hook is called again for a message that was in flight and is read from the
   * store. Access rules also apply to a changed topic. It is not called for messages of the broker itself (`$SYS`). A
   * message that is reassigned to another member of a shared subscription is reassigned as it was published, as a new
   * delivery.
   */
  deliver?(request: DeliverRequest<Data>): Partial<MessageInput> | boolean | NoOpinion;
}

/** Name of a hook, the first argument of `broker.hook`. */
export type HookName = keyof Hooks;

/** The function of one hook, the second argument of `broker.hook`. */
export type Hook<N extends HookName, Data = unknown> = Required<Hooks<Data>>[N];

/** Options of `broker.hook`. */
export interface HookOptions {
  /** Call the function before those that are already registered. Default: after them. */
  readonly isFirst?: boolean;
  /**
   * For `authorizePublish` and `authorizeSubscribe`: the answer depends only on client and topic, not on the payload,
   * QoS or other properties of the packet. If all hooks of the name are registered in this way, the broker asks once
   * for each connection and topic, within the limits of `aclCacheMaxSize` and `aclCacheTtl`, and QoS 0 messages stay on
   * the fast path. `broker.access.invalidate` makes it ask again.
   */
  readonly cache?: 'route' | undefined;
}

/** The origin of a hook function: the access rules that come before or after external queries, or a source. */
export type HookOrigin = { readonly rules: 'first' | 'last' } | { readonly source: string };

/** Options with which the broker registers its own functions and those of sources (`AuthSource`). */
interface SourceHookOptions extends HookOptions {
  /** Maximum time for an answer, in milliseconds; 0: the function limits it itself. Default: `hookTimeout`. */
  readonly timeoutMs?: number | undefined;
  /** Call the function after all others, including those that are registered later. Default false. */
  readonly isLast?: boolean;
  /**
   * The hook queries an external system, such as a server, and is asked again when its answer expires. Default false.
   */
  readonly isAsking?: boolean;
  /** The origin of the function. Default: a hook of the app. */
  readonly origin?: HookOrigin;
  /**
   * False if the function alone does not close the broker to unknown clients and to operations that no rule allows.
   * Default true.
   */
  readonly isDeciding?: boolean;
}

/** A question in progress, which can abort the signal of its request; see `Question`. */
interface Asked {
  /** True if the signal is already aborted. */
  readonly isAborted?: boolean;
  abort(reason: Error): void;
  /** Note which function is asked now. @param hook undefined: all have been asked, and none has decided */
  asking?(hook: object | undefined): void;
}

/** Names of all hooks, in the order in which they run. */
export const HOOK_NAMES: readonly HookName[] = [
  'preConnect',
  'authenticate',
  'authorizePublish',
  'authorizeSubscribe',
  'publish',
  'deliver'
];

/** The registered functions of each hook. A list is replaced and never changed, so that a call in progress is not affected. */
export class HookRegistry {
  preConnect: readonly Hook<'preConnect'>[] = [];
  authenticate: readonly Hook<'authenticate'>[] = [];
  authorizePublish: readonly Hook<'authorizePublish'>[] = [];
  authorizeSubscribe: readonly Hook<'authorizeSubscribe'>[] = [];
  publish: readonly Hook<'publish'>[] = [];
  deliver: readonly Hook<'deliver'>[] = [];
  /** Pending questions to authorizeSubscribe hooks. */
  readonly questions = new OpenQuestions();
  readonly #clock: Clock;
  #timeoutMs: number;
  readonly #report: (error: unknown, during: string, client: ClientInfo | undefined) => void;
  readonly #work: WorkCount | undefined;
  /** The functions whose answers may be cached. */
  readonly #cached = new WeakSet<object>();
  /** The functions with a separate time limit. */
  readonly #timeouts = new WeakMap<object, number>();
  /** The functions that are called after all others. */
  readonly #last = new WeakSet<object>();
  /** The functions that query external systems. */
  readonly #asking = new WeakSet<object>();
  readonly #origins = new WeakMap<object, HookOrigin>();
  /** The number of deciding functions of each hook; see `decides`. */
  readonly #deciding = new Map<HookName, number>();

  /** @param work counts the pending calls of hooks */
  constructor(
    clock: Clock,
    timeoutMs: number,
    report: (error: unknown, during: string, client: ClientInfo | undefined) => void,
    work?: WorkCount
  ) {
    this.#clock = clock.internal ?? clock;
    this.#timeoutMs = timeoutMs;
    this.#report = report;
    this.#work = work;
  }

  /** Change the time limit of functions without a separate limit. Applies to calls from now on. */
  limitTime(timeoutMs: number): void {
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Register a function for a hook.
   * @returns a function that removes the hook
   * @throws InvalidInput HOOK_UNKNOWN, with a suggestion, if there is no such hook; HOOK_INVALID if `hook` is not a function; OPTION_INVALID
   */
  add<N extends HookName>(name: N, hook: Hook<N>, options: SourceHookOptions = {}): () => void {
    const { isFirst = false, isLast = false, cache, timeoutMs, isDeciding = true, isAsking = false } = options;
    if (!HOOK_NAMES.includes(name)) throw unknownName('HOOK_UNKNOWN', 'hook', name, HOOK_NAMES);
    if (typeof hook !== 'function') throw new InvalidInput('HOOK_INVALID', name, 'a function', hook);
    const own = ((request: never) => (hook as (request: never) => unknown)(request)) as unknown as Hook<N>;
    if (cache !== undefined) {
      if (cache !== 'route') throw new InvalidInput('OPTION_INVALID', 'cache', "'route' or undefined", cache);
      if (name !== 'authorizePublish' && name !== 'authorizeSubscribe')
        throw new InvalidInput('OPTION_INVALID', 'cache', 'undefined for hooks that do not authorize', cache);
      this.#cached.add(own);
    }
    if (timeoutMs !== undefined) this.#timeouts.set(own, timeoutMs);
    if (isAsking) this.#asking.add(own);
    if (options.origin !== undefined) this.#origins.set(own, options.origin);
    const others = this[name] as readonly Hook<N>[];
    if (isLast) this.#last.add(own);
    const behind = isLast ? [] : others.filter((other) => this.#last.has(other));
    const before = others.filter((other) => !behind.includes(other));
    (this[name] as readonly Hook<N>[]) = isFirst ? [own, ...others] : [...before, own, ...behind];
    const undecide = isDeciding ? this.decide(name) : undefined;
    return () => {
      const left = (this[name] as readonly Hook<N>[]).filter((other) => other !== own);
      if (left.length === this[name].length) return;
      (this[name] as readonly Hook<N>[]) = left;
      undecide?.();
    };
  }

  /**
   * Count a decider without a hook function, such as a source whose records the broker holds.
   * @returns a function that removes it
   */
  decide(name: HookName): () => void {
    this.#deciding.set(name, (this.#deciding.get(name) ?? 0) + 1);
    return () => void this.#deciding.set(name, (this.#deciding.get(name) as number) - 1);
  }

  /** Check whether there is a decider for an operation, so that an operation that no decider allows is refused. */
  decides(name: HookName): boolean {
    return (this.#deciding.get(name) ?? 0) > 0;
  }

  /** Check whether the answers of all functions of a hook may be cached (option `cache`). */
  isCached(name: 'authorizePublish' | 'authorizeSubscribe'): boolean {
    return this[name].every((hook) => this.#cached.has(hook));
  }

  /** Check whether a function queries an external system, see `SourceHookOptions`. */
  isAsking(hook: object | undefined): boolean {
    return hook !== undefined && this.#asking.has(hook);
  }

  /** The origin of a function; undefined for a hook of the app. */
  originOf(hook: object): HookOrigin | undefined {
    return this.#origins.get(hook);
  }

  /** True if an authorizeSubscribe function queries an external system. */
  get asksForSubscriptions(): boolean {
    return this.authorizeSubscribe.some((hook) => this.#asking.has(hook));
  }

  /**
   * Call functions in order until one of them decides. Returns a promise only if one of them does.
   * @returns the first answer that is neither undefined nor null; `onFailure` if a function failed or timed out;
   *   undefined if none decided
   */
  first<Q, A>(
    name: HookName,
    hooks: readonly ((request: Q) => Awaitable<A>)[],
    request: Q,
    onFailure: A,
    client: ClientInfo | undefined,
    cancellation?: Asked
  ): A | undefined | Promise<A | undefined> {
    return this.#from(0, name, hooks, request, onFailure, client, cancellation);
  }

  #from<Q, A>(
    at: number,
    name: HookName,
    hooks: readonly ((request: Q) => Awaitable<A>)[],
    request: Q,
    onFailure: A,
    client: ClientInfo | undefined,
    cancellation: Asked | undefined
  ): A | undefined | Promise<A | undefined> {
    for (; at < hooks.length; at++) {
      cancellation?.asking?.(hooks[at]);
      const answer = this.call(name, hooks[at], request, onFailure, client, cancellation);
      if (isThenable(answer)) {
        const next = at + 1;
        return answer.then((value) => {
          return value ?? this.#from(next, name, hooks, request, onFailure, client, cancellation);
        });
      }
      if (answer != null) return answer;
    }
    cancellation?.asking?.(undefined);
    return undefined;
  }

  /** Call one function. If it throws, rejects, times out or gives an invalid answer, the error is reported and `onFailure` is returned. */
  call<Q, A>(
    name: HookName,
    hook: (request: Q) => Awaitable<A>,
    request: Q,
    onFailure: A,
    client: ClientInfo | undefined,
    cancellation?: Asked
  ): A | Promise<A> {
    const work = this.#work;
    // the closure for each call is created only while a test clock is watching
    if (work?.isWatched)
      return work.run((asked: Q) => this.#ask(name, hook, asked, onFailure, client, cancellation), request);
    const answer = this.#ask(name, hook, request, onFailure, client, cancellation);
    return work === undefined ? answer : work.during(answer);
  }

  #ask<Q, A>(
    name: HookName,
    hook: (request: Q) => Awaitable<A>,
    request: Q,
    onFailure: A,
    client: ClientInfo | undefined,
    cancellation: Asked | undefined
  ): A | Promise<A> {
    try {
      const answer = hook(request);
      if (typeof (answer as PromiseLike<A> | undefined)?.then === 'function')
        return this.#within(name, hook, answer as PromiseLike<A>, request, onFailure, client, cancellation);
      checkAnswer(name, answer, request);
      return answer as A;
    } catch (error) {
      this.#report(error, `hook ${name}`, client);
      return onFailure;
    }
  }

  #within<Q, A>(
    name: HookName,
    hook: object,
    answer: PromiseLike<A>,
    request: Q,
    onFailure: A,
    client: ClientInfo | undefined,
    cancellation: Asked | undefined
  ): Promise<A> {
    return new Promise((resolve) => {
      let isOpen = true;
      const limitMs = this.#timeouts.get(hook) ?? this.#timeoutMs;
      const settle = (value: A) => {
        isOpen = false;
        if (timer !== undefined) this.#clock.clearTimeout(timer);
        resolve(value);
      };
      const fail = (error: unknown) => {
        // After the timeout a hook often rejects because its signal was aborted; that is not reported as a second failure.
        if (!isOpen) return;
        if (cancellation?.isAborted !== true) this.#report(error, `hook ${name}`, client); // otherwise the answer is not needed
        settle(onFailure);
      };
      const expire = () => {
        const error = new BrokerError(
          'HOOK_TIMEOUT',
          `hook ${name} did not answer within ${limitMs} ms (option hookTimeout)`
        );
        fail(error);
        cancellation?.abort(error);
      };
      const timer = limitMs === 0 ? undefined : this.#clock.setTimeout(expire, limitMs);
      // A custom thenable may throw from its `then`.
      Promise.resolve(answer)
        .then((value) => {
          if (isOpen) checkAnswer(name, value, request);
          settle(value);
        })
        .catch(fail);
    });
  }
}

const REFUSAL_KEYS: readonly string[] = ['allow', 'reasonCode', 'reasonString', 'serverReference', 'why'];

/** Allowed keys of an answer that is an object, by hook. */
const ANSWER_KEYS: Readonly<Record<HookName, readonly string[]>> = {
  preConnect: REFUSAL_KEYS,
  authenticate: [
    ...REFUSAL_KEYS,
    'username',
    'isSuperuser',
    'rules',
    'clientData',
    'expiresAt',
    'data',
    'userProperties',
    'challenge',
    'isExpired'
  ],
  authorizePublish: REFUSAL_KEYS,
  authorizeSubscribe: [...REFUSAL_KEYS, 'filter', 'qos'],
  publish: [...REFUSAL_KEYS, 'topic', 'payload', 'qos', 'retain', 'properties'],
  deliver: ['topic', 'payload', 'qos', 'retain', 'properties']
};

/** Allowed values of these keys; undefined counts as absent. The keys of a message are checked when the message is built. */
const ANSWER_VALUES: Readonly<Record<string, readonly [expected: string, isSound: (value: unknown) => boolean]>> = {
  allow: ['true or false', (value) => typeof value === 'boolean'],
  reasonCode: ['a number', (value) => typeof value === 'number'],
  reasonString: ['a string', (value) => typeof value === 'string'],
  serverReference: ['a string', (value) => typeof value === 'string'],
  why: ['a string', (value) => typeof value === 'string'],
  filter: ['a string', (value) => typeof value === 'string'],
  isExpired: ['true or false', (value) => typeof value === 'boolean'],
  username: ['a string', (value) => typeof value === 'string'],
  isSuperuser: ['true or false', (value) => typeof value === 'boolean'],
  rules: ['a list of access rules', Array.isArray],
  expiresAt: ['a number of milliseconds since 1970', (value) => typeof value === 'number' && !Number.isNaN(value)],
  data: ['a Buffer', isUint8Array],
  challenge: ['a Buffer', isUint8Array],
  userProperties: [
    'a list of pairs of strings',
    (value) =>
      Array.isArray(value) &&
      value.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every((text) => typeof text === 'string'))
  ]
};

/** Allowed answers of each hook, as named in error messages. */
const EXPECTED: Readonly<Record<HookName, string>> = {
  preConnect: 'true, false, undefined, { allow: true } or { allow: false }',
  authenticate: 'true, false, undefined, { allow: true }, { allow: false } or { challenge }',
  authorizePublish: 'true, false, undefined, { allow: true } or { allow: false }',
  authorizeSubscribe:
    'true, false, undefined, { allow: true }, { allow: false }, { filter }, a QoS or a reason code of SUBACK',
  publish: 'true, false, undefined, { allow } or an object with topic, payload, qos, retain or properties',
  deliver: 'true, false, undefined or an object with topic, payload, qos, retain or properties'
};

/** The packet that carries the reason code when a hook refuses. A refused re-authentication ends with DISCONNECT. */
const REFUSING_PACKETS: Readonly<Record<HookName, readonly [name: string, ...sets: CodeSet[]]>> = {
  preConnect: ['CONNACK', 'connack'],
  authenticate: ['CONNACK or DISCONNECT', 'connack', 'disconnectFromServer'],
  authorizePublish: ['PUBACK', 'puback'],
  authorizeSubscribe: ['SUBACK', 'suback'],
  publish: ['PUBACK', 'puback'],
  deliver: ['']
};

/**
 * Check the answer of a hook.
 * @throws InvalidInput HOOK_ANSWER_INVALID for an unknown key (with a suggestion), a value of the wrong type, or a reason code that cannot
 * be sent
 */
function checkAnswer(name: HookName, answer: unknown, request: unknown): void {
  if (answer === undefined || typeof answer === 'boolean') return;
  const isChanging = name === 'publish' || name === 'deliver';
  if (answer === null && !isChanging) return; // not a decision
  if (name === 'authorizeSubscribe' && typeof answer === 'number' && isAllowedCode('suback', answer)) return;
  if (typeof answer !== 'object' || answer === null) throw wrongAnswer(name, answer);
  const keys = ANSWER_KEYS[name];
  for (const [key, value] of Object.entries(answer)) {
    // such a hook may return a spread copy of its message
    if (!keys.includes(key) && !(isChanging && key in (request as { message: object }).message))
      throw unknownAnswer(name, key, keys);
    const rule = Object.hasOwn(ANSWER_VALUES, key) ? ANSWER_VALUES[key] : undefined;
    if (rule === undefined || value === undefined || rule[1](value)) continue;
    throw new InvalidInput('HOOK_ANSWER_INVALID', `${key} of the hook ${name}`, rule[0], value);
  }
  // without "allow: false", such an answer would be treated as a change of the message that changes nothing
  const { allow, reasonCode, reasonString, serverReference } = answer as Partial<Refusal>;
  const isHalf =
    name === 'publish' && allow === undefined && (reasonCode ?? reasonString ?? serverReference) !== undefined;
  if (isHalf) {
    const text = `the hook publish returned ${show(answer)}, but reasonCode, reasonString and serverReference need "allow: false"`;
    throw new InvalidInput('HOOK_ANSWER_INVALID', name, EXPECTED[name], answer, text);
  }
  if (!hasAnswerKey(name, answer, keys)) throw wrongAnswer(name, answer);
  if (allow !== false || reasonCode === undefined) return;
  const [packet, ...sets] = REFUSING_PACKETS[name];
  if (reasonCode >= 0x80 && sets.some((set) => isAllowedCode(set, reasonCode))) return;
  const expected = `a reason code of 0x80 or above that ${packet} may carry`;
  throw new InvalidInput('HOOK_ANSWER_INVALID', `reasonCode of the hook ${name}`, expected, reasonCode);
}

/** Check whether an object has a key that makes it an answer of this hook. */
function hasAnswerKey(name: HookName, answer: object, keys: readonly string[]): boolean {
  const given = answer as Readonly<Record<string, unknown>>;
  if (name === 'publish' || name === 'deliver') return keys.some((key) => given[key] !== undefined);
  if (name === 'authorizeSubscribe' && typeof given.filter === 'string')
    return given.allow !== false && (given.qos === undefined || [0, 1, 2].includes(given.qos as number));
  return (
    (typeof given.allow === 'boolean' && given.qos === undefined) || (name === 'authenticate' && 'challenge' in given)
  );
}

function wrongAnswer(name: HookName, answer: unknown): InvalidInput {
  return new InvalidInput('HOOK_ANSWER_INVALID', name, EXPECTED[name], answer);
}

function unknownAnswer(name: HookName, key: string, keys: readonly string[]): InvalidInput {
  const near = nearest(key, keys);
  const allowed = `allowed keys are ${keys.join(', ')}`;
  const hint = near === undefined ? allowed : `did you mean "${near}"?`;
  const text = `the hook ${name} returned an object with the unknown key "${key}"; ${hint}`;
  return new InvalidInput('HOOK_ANSWER_INVALID', key, `one of ${keys.join(', ')}`, key, text);
}

/** Check whether a value is a promise. */
export function isThenable<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as Promise<T> | undefined)?.then === 'function';
}

/**
 * Check whether an operation is allowed that no authorize hook decides. If there is a decider, or if the client has
 * its own rules, only `aclNomatch` 'allow' allows it.
 */
export function allowsUnmatched(
  { agreement, rules }: { readonly agreement: { readonly zone: Zone }; readonly rules: object | undefined },
  hooks: HookRegistry,
  name: 'authorizePublish' | 'authorizeSubscribe'
): boolean {
  const { aclNomatch } = agreement.zone;
  return aclNomatch === undefined ? rules === undefined && !hooks.decides(name) : aclNomatch === 'allow';
}

/**
 * Read the refusal of a hook; values of the wrong type are ignored.
 * @returns with a reason code from 0x80 to 0xFF: the given one, otherwise 0x9C if there is a server reference,
 *   otherwise `fallbackCode`
 */
export function readRefusal(given: Partial<Refusal>, fallbackCode: number): Refusal & { readonly reasonCode: number } {
  const { reasonCode, reasonString, serverReference, why } = given;
  const isCode = typeof reasonCode === 'number' && reasonCode >= 0x80 && reasonCode <= 0xff;
  return {
    allow: false,
    reasonCode: isCode ? reasonCode : typeof serverReference === 'string' ? ReasonCode.useAnotherServer : fallbackCode,
    reasonString: typeof reasonString === 'string' ? reasonString : undefined,
    serverReference: typeof serverReference === 'string' ? serverReference : undefined,
    why: typeof why === 'string' ? why : undefined
  };
}

/** Check whether the answer of a hook allows the operation: `true` or an object with `allow: true`. */
export function isApproval(answer: unknown): boolean {
  return (
    answer === true || (typeof answer === 'object' && answer !== null && (answer as { allow?: unknown }).allow === true)
  );
}
