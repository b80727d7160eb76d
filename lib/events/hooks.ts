import { isUint8Array } from 'node:util/types';
import type { Clock } from '../base/clock.ts';
import { BrokerError, InvalidInput } from '../base/errors.ts';
import { nearest, unknownName } from '../base/options-table.ts';
import type { WorkCount } from '../base/pending-work.ts';
import { type CodeSet, isAllowedCode } from '../packets/allowed-codes.ts';
import type { Message, MessageInput } from '../packets/message.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { ConnectPacket, UserProperty } from '../packets/types.ts';
import type { ClientInfo, TransportInfo } from '../records/client.ts';
import type { Zone } from '../records/zone.ts';
import type { SubscriptionOptions } from './events.ts';

/** What a hook may answer now or later. */
export type Awaitable<T> = T | PromiseLike<T>;

/** Refusal of a connection. `serverReference` goes with 0x9C (use another server) and 0x9D (server moved). */
export interface Refusal {
  readonly allow: false;
  /**
   * MQTT 5.0 reason code, 0x80 or above, one that the packet which refuses may carry (CONNACK, PUBACK or SUBACK); another one is reported
   * (HOOK_ANSWER_INVALID) and replaced. Translated for 3.x clients.
   */
  readonly reasonCode?: number;
  readonly reasonString?: string;
  readonly serverReference?: string;
}

/** What an authenticate hook is asked. */
export interface AuthenticateRequest {
  readonly client: ClientInfo;
  readonly username: string | undefined;
  readonly password: Buffer | undefined;
  /** Authentication Method of MQTT 5.0; undefined for plain CONNECTs. */
  readonly method: string | undefined;
  /** Authentication Data of the CONNECT, or of the AUTH packet in later rounds. */
  readonly data: Buffer | undefined;
  /** 0 for the CONNECT (or the AUTH that begins a re-authentication), then 1, 2, ... */
  readonly round: number;
  readonly isReauthentication: boolean;
  /** The hook's own, kept from round to round. */
  readonly state: Map<string, unknown>;
  /** Aborted when the connection closes or the hook's time is over. */
  readonly signal: AbortSignal;
}

/** An authenticate hook's approval, with what it wants to change. */
export interface Approval {
  readonly allow: true;
  readonly username?: string;
  /** Access rules do not bind this client: the hooks authorizePublish and authorizeSubscribe are not asked about it. Default false. */
  readonly isSuperuser?: boolean;
  /** Authentication Data for the CONNACK or the closing AUTH. */
  readonly data?: Buffer;
  /** User properties for the CONNACK. */
  readonly userProperties?: readonly UserProperty[];
}

/** One more round of enhanced authentication: goes out as AUTH 0x18 [MQTT-4.12.0-2]. */
export interface Challenge {
  readonly challenge: Buffer | undefined;
}

/** What a hook returns that has no opinion. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing is a good hook
export type NoOpinion = undefined | void;

/**
 * true or `{ allow: true }`: allowed; false or a refusal: refused; undefined: no opinion, the next hook is asked. Where no hook has an
 * opinion, the option `aclNomatch` decides for the authorize hooks, and `allowAnonymous` for authenticate.
 */
export type Verdict = boolean | NoOpinion | Refusal;

/**
 * The hooks, in the order in which they run. All may be synchronous or return a promise, except `deliver`. A hook that throws, rejects
 * or takes longer than `hookTimeout` (HOOK_TIMEOUT) refuses that one operation, and so does one that answers with an unknown key or a
 * value of the wrong kind (HOOK_ANSWER_INVALID, with the nearest known key); an `error` event reports it. null is no opinion, as undefined
 * is, except to `publish` and `deliver`, for which it is a value of the wrong kind.
 *
 * CONNECT: preConnect, authenticate. SUBSCRIBE: authorizeSubscribe for each filter. PUBLISH (clients and wills): authorizePublish, publish.
 * Delivery: deliver. Where several functions are registered for a hook they run in order of registration; the first opinion of
 * preConnect, authenticate and the authorize hooks is final, `publish` and `deliver` functions run all.
 */
export interface Hooks {
  /** A well-formed CONNECT has come; nothing is known of the client yet. Refuse, or redirect with `serverReference`. */
  preConnect?(request: {
    readonly packet: ConnectPacket;
    readonly transportInfo: TransportInfo;
    readonly client: ClientInfo;
    readonly signal: AbortSignal;
  }): Awaitable<Verdict>;
  /**
   * Who is it? Without an opinion from any hook the client is refused, unless `allowAnonymous: true` is written out; an Authentication
   * Method nobody knows is refused with 0x8C.
   */
  authenticate?(request: AuthenticateRequest): Awaitable<Verdict | Approval | Challenge>;
  /**
   * May this client (or its will) publish this? Without an opinion from any hook the message is refused, unless `aclNomatch: 'allow'` is
   * written out. A delayed message is asked about when it is accepted. What the app publishes with `broker.publish` is not asked about.
   */
  authorizePublish?(request: { readonly client: ClientInfo; readonly message: Message }): Awaitable<Verdict>;
  /**
   * May it subscribe? A number from 0 to 2 allows it and is the highest QoS that is granted, so 0 is no refusal; 0x80 or above refuses with
   * that reason code. Without an opinion from any hook the
   * subscription is refused, unless `aclNomatch: 'allow'` is written out. `autoSubscriptions` and what the app subscribes on a client's
   * behalf are not asked about.
   */
  authorizeSubscribe?(request: {
    readonly client: ClientInfo;
    readonly filter: string;
    readonly options: SubscriptionOptions;
  }): Awaitable<Verdict | number>;
  /**
   * May change a message: an object with any of topic, payload, qos, retain and properties replaces those and keeps the others. `true`,
   * `{ allow: true }` or undefined keeps the message, `false` or a refusal refuses it. Anything else (0, '', null, {}, [], a function) refuses
   * it, too, and is reported (HOOK_ANSWER_INVALID). `client` is absent for the app's own.
   */
  publish?(request: {
    readonly message: Message;
    readonly client: ClientInfo | undefined;
  }): Awaitable<MessageInput | boolean | NoOpinion | Refusal>;
  /**
   * `true` or undefined sends this message to this receiver, `false` drops it for this receiver. Anything else (0, '', null, an object) drops
   * it, too, and is reported (HOOK_ANSWER_INVALID; HOOK_INVALID for a promise). Synchronous, on the packet path: keep it short. It is asked
   * when the message is to be sent, once: a message that waits in a backlog is asked about when it leaves that. What is sent again to a client that did not
   * acknowledge it is not asked about again.
   */
  deliver?(request: { readonly message: Message; readonly client: ClientInfo }): boolean | NoOpinion;
}

/** Name of a hook, as `broker.hook` takes it. */
export type HookName = keyof Hooks;

/** The function of one hook, as `broker.hook` takes it. */
export type Hook<N extends HookName> = Required<Hooks>[N];

/** Names of all hooks, in the order in which they run. */
const HOOK_NAMES: readonly HookName[] = [
  'preConnect',
  'authenticate',
  'authorizePublish',
  'authorizeSubscribe',
  'publish',
  'deliver'
];

/** The registered functions of each hook. A list is replaced, never changed, so a run in progress is not disturbed. */
export class HookRegistry {
  preConnect: readonly Hook<'preConnect'>[] = [];
  authenticate: readonly Hook<'authenticate'>[] = [];
  authorizePublish: readonly Hook<'authorizePublish'>[] = [];
  authorizeSubscribe: readonly Hook<'authorizeSubscribe'>[] = [];
  publish: readonly Hook<'publish'>[] = [];
  deliver: readonly Hook<'deliver'>[] = [];
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #report: (error: unknown, during: string, client: ClientInfo | undefined) => void;
  readonly #work: WorkCount | undefined;

  /** @param work counts the hooks that have not answered */
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

  /**
   * @param isFirst in front of those registered before
   * @returns a function that takes the hook away again
   * @throws InvalidInput HOOK_UNKNOWN with a suggestion, HOOK_INVALID
   */
  add<N extends HookName>(name: N, hook: Hook<N>, isFirst = false): () => void {
    if (!HOOK_NAMES.includes(name)) throw unknownName('HOOK_UNKNOWN', 'hook', name, HOOK_NAMES);
    if (typeof hook !== 'function') throw new InvalidInput('HOOK_INVALID', name, 'a function', hook);
    const own = ((request: never) => (hook as (request: never) => unknown)(request)) as unknown as Hook<N>;
    const others = this[name] as readonly Hook<N>[];
    (this[name] as readonly Hook<N>[]) = isFirst ? [own, ...others] : [...others, own];
    return () => {
      (this[name] as readonly Hook<N>[]) = (this[name] as readonly Hook<N>[]).filter((other) => other !== own);
    };
  }

  /**
   * Ask functions in order until one has an opinion. Stays synchronous while they do. An answer of null is no opinion either.
   * @returns the first opinion, or undefined where nobody has one; `onFailure` where one threw or timed out
   */
  first<Q, A>(
    name: HookName,
    hooks: readonly ((request: Q) => Awaitable<A>)[],
    request: Q,
    onFailure: A,
    client: ClientInfo | undefined,
    abort?: AbortController
  ): A | undefined | Promise<A | undefined> {
    return this.#from(0, name, hooks, request, onFailure, client, abort);
  }

  #from<Q, A>(
    at: number,
    name: HookName,
    hooks: readonly ((request: Q) => Awaitable<A>)[],
    request: Q,
    onFailure: A,
    client: ClientInfo | undefined,
    abort: AbortController | undefined
  ): A | undefined | Promise<A | undefined> {
    for (; at < hooks.length; at++) {
      const answer = this.call(name, hooks[at], request, onFailure, client, abort);
      if (isThenable(answer)) {
        const next = at + 1;
        return answer.then((value) =>
          value == null ? this.#from(next, name, hooks, request, onFailure, client, abort) : value
        );
      }
      if (answer != null) return answer;
    }
    return undefined;
  }

  /** Call one function: what it throws, rejects or leaves unanswered for `hookTimeout` becomes `onFailure`, reported. */
  call<Q, A>(
    name: HookName,
    hook: (request: Q) => Awaitable<A>,
    request: Q,
    onFailure: A,
    client: ClientInfo | undefined,
    abort?: AbortController
  ): A | Promise<A> {
    const work = this.#work;
    // a closure for each call only where a test clock watches
    if (work?.watch !== undefined)
      return work.run((asked: Q) => this.#ask(name, hook, asked, onFailure, client, abort), request);
    const answer = this.#ask(name, hook, request, onFailure, client, abort);
    return work === undefined ? answer : work.during(answer);
  }

  #ask<Q, A>(
    name: HookName,
    hook: (request: Q) => Awaitable<A>,
    request: Q,
    onFailure: A,
    client: ClientInfo | undefined,
    abort: AbortController | undefined
  ): A | Promise<A> {
    try {
      const answer = hook(request);
      if (typeof (answer as PromiseLike<A> | undefined)?.then === 'function')
        return this.#within(name, answer as PromiseLike<A>, request, onFailure, client, abort);
      checkAnswer(name, answer, request);
      return answer as A;
    } catch (error) {
      this.#report(error, `hook ${name}`, client);
      return onFailure;
    }
  }

  #within<Q, A>(
    name: HookName,
    answer: PromiseLike<A>,
    request: Q,
    onFailure: A,
    client: ClientInfo | undefined,
    abort: AbortController | undefined
  ): Promise<A> {
    return new Promise((resolve) => {
      let isOpen = true;
      const settle = (value: A) => {
        isOpen = false;
        this.#clock.clearTimeout(timer);
        resolve(value);
      };
      const fail = (error: unknown) => {
        // A hook that is told of its timeout by the signal may well reject then; that is no second failure.
        if (!isOpen) return;
        this.#report(error, `hook ${name}`, client);
        settle(onFailure);
      };
      const timer = this.#clock.setTimeout(() => {
        const error = new BrokerError(
          'HOOK_TIMEOUT',
          `hook ${name} gave no answer within ${this.#timeoutMs} ms (option hookTimeout)`
        );
        fail(error);
        abort?.abort(error);
      }, this.#timeoutMs);
      // A thenable of the app's own may throw from `then`.
      Promise.resolve(answer)
        .then((value) => {
          if (isOpen) checkAnswer(name, value, request);
          settle(value);
        })
        .catch(fail);
    });
  }
}

const REFUSAL_KEYS: readonly string[] = ['allow', 'reasonCode', 'reasonString', 'serverReference'];

/** What an answer that is an object may have in it, by hook. */
const ANSWER_KEYS: Readonly<Record<HookName, readonly string[]>> = {
  preConnect: REFUSAL_KEYS,
  authenticate: [...REFUSAL_KEYS, 'username', 'isSuperuser', 'data', 'userProperties', 'challenge'],
  authorizePublish: REFUSAL_KEYS,
  authorizeSubscribe: REFUSAL_KEYS,
  publish: [...REFUSAL_KEYS, 'topic', 'payload', 'qos', 'retain', 'properties'],
  deliver: []
};

/** What the values of those keys have to be. Others are read where the message is made. An undefined value counts as absent. */
const ANSWER_VALUES: Readonly<Record<string, readonly [expected: string, isSound: (value: unknown) => boolean]>> = {
  allow: ['true or false', (value) => typeof value === 'boolean'],
  reasonCode: ['a number', (value) => typeof value === 'number'],
  reasonString: ['a string', (value) => typeof value === 'string'],
  serverReference: ['a string', (value) => typeof value === 'string'],
  username: ['a string', (value) => typeof value === 'string'],
  isSuperuser: ['true or false', (value) => typeof value === 'boolean'],
  data: ['a Buffer', isUint8Array],
  challenge: ['a Buffer', isUint8Array],
  userProperties: [
    'a list of pairs of strings',
    (value) =>
      Array.isArray(value) &&
      value.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every((text) => typeof text === 'string'))
  ]
};

/** What each hook may return, as the error says it. */
const EXPECTED: Readonly<Record<HookName, string>> = {
  preConnect: 'true, false, undefined, { allow: true } or { allow: false }',
  authenticate: 'true, false, undefined, { allow: true }, { allow: false } or { challenge }',
  authorizePublish: 'true, false, undefined, { allow: true } or { allow: false }',
  authorizeSubscribe: 'true, false, undefined, { allow: true }, { allow: false }, a QoS or a reason code of SUBACK',
  publish: 'true, false, undefined, { allow } or an object with topic, payload, qos, retain or properties',
  deliver: 'true, false or undefined'
};

/** The packet that carries the reason code of a hook's refusal. A refused re-authentication ends with DISCONNECT. */
const REFUSING_PACKETS: Readonly<Record<HookName, readonly [name: string, ...sets: CodeSet[]]>> = {
  preConnect: ['CONNACK', 'connack'],
  authenticate: ['CONNACK or DISCONNECT', 'connack', 'disconnectFromServer'],
  authorizePublish: ['PUBACK', 'puback'],
  authorizeSubscribe: ['SUBACK', 'suback'],
  publish: ['PUBACK', 'puback'],
  deliver: ['']
};

/**
 * @throws InvalidInput HOOK_ANSWER_INVALID for an unknown key, with the nearest known one, a value of a kind the hook does not know, or a
 * reason code that can not be sent
 */
function checkAnswer(name: HookName, answer: unknown, request: unknown): void {
  if (answer === undefined || typeof answer === 'boolean') return;
  const isDeciding = name !== 'publish' && name !== 'deliver';
  if (answer === null && isDeciding) return; // no opinion
  if (name === 'authorizeSubscribe' && typeof answer === 'number' && isAllowedCode('suback', answer)) return;
  if (typeof answer !== 'object' || answer === null) throw wrongAnswer(name, answer);
  const keys = ANSWER_KEYS[name];
  for (const [key, value] of Object.entries(answer)) {
    // a publish hook may spread the message that it was given
    if (!keys.includes(key) && !(name === 'publish' && key in (request as { message: object }).message))
      throw unknownAnswer(name, key, keys);
    const rule = Object.hasOwn(ANSWER_VALUES, key) ? ANSWER_VALUES[key] : undefined;
    if (rule === undefined || value === undefined || rule[1](value)) continue;
    throw new InvalidInput('HOOK_ANSWER_INVALID', `${key} of the hook ${name}`, rule[0], value);
  }
  // without "allow" it would be taken for a change that changes nothing
  const { allow, reasonCode, reasonString, serverReference } = answer as Partial<Refusal>;
  const isHalf =
    name === 'publish' && allow === undefined && (reasonCode ?? reasonString ?? serverReference) !== undefined;
  if (isHalf) throw new InvalidInput('HOOK_ANSWER_INVALID', name, '"allow: false" beside a reason code', answer);
  if (!saysSomething(name, answer, keys)) throw wrongAnswer(name, answer);
  if (allow !== false || reasonCode === undefined) return;
  const [packet, ...sets] = REFUSING_PACKETS[name];
  if (reasonCode >= 0x80 && sets.some((set) => isAllowedCode(set, reasonCode))) return;
  const expected = `a reason code of 0x80 or above that ${packet} may carry`;
  throw new InvalidInput('HOOK_ANSWER_INVALID', `reasonCode of the hook ${name}`, expected, reasonCode);
}

/** Whether an object has one of the keys that make it an answer of this hook. */
function saysSomething(name: HookName, answer: object, keys: readonly string[]): boolean {
  const given = answer as Readonly<Record<string, unknown>>;
  if (name === 'publish') return keys.some((key) => given[key] !== undefined);
  return typeof given.allow === 'boolean' || (name === 'authenticate' && 'challenge' in given);
}

function wrongAnswer(name: HookName, answer: unknown): InvalidInput {
  return new InvalidInput('HOOK_ANSWER_INVALID', name, EXPECTED[name], answer);
}

function unknownAnswer(name: HookName, key: string, keys: readonly string[]): InvalidInput {
  const near = nearest(key, keys);
  const hint =
    near === undefined ? `known are ${keys.join(', ') || 'true, false and undefined'}` : `did you mean "${near}"?`;
  const text = `the hook ${name} returned an object with the unknown key "${key}"; ${hint}`;
  return new InvalidInput('HOOK_ANSWER_INVALID', key, `one of ${keys.join(', ')}`, key, text);
}

/** Whether a hook's answer is still to come. */
export function isThenable<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as Promise<T> | undefined)?.then === 'function';
}

/**
 * Is an operation allowed on which no authorize hook has an opinion? Once a hook of its kind is registered, only where the option says so.
 * @param hooks the authorizePublish or the authorizeSubscribe hooks
 */
export function allowsUnmatched({ aclNomatch }: Zone, hooks: readonly unknown[]): boolean {
  return aclNomatch === undefined ? hooks.length === 0 : aclNomatch === 'allow';
}

/** A refusal as a hook gave it, made sound: a code that refuses, texts that are texts. A server reference alone means 0x9C. */
export function soundRefusal(given: Partial<Refusal>, fallbackCode: number): Refusal & { readonly reasonCode: number } {
  const { reasonCode, reasonString, serverReference } = given;
  const isCode = typeof reasonCode === 'number' && reasonCode >= 0x80 && reasonCode <= 0xff;
  return {
    allow: false,
    reasonCode: isCode ? reasonCode : typeof serverReference === 'string' ? ReasonCode.useAnotherServer : fallbackCode,
    reasonString: typeof reasonString === 'string' ? reasonString : undefined,
    serverReference: typeof serverReference === 'string' ? serverReference : undefined
  };
}

/** Whether a hook says yes: `true`, or an object that says so. */
export function isApproval(answer: unknown): boolean {
  return (
    answer === true || (typeof answer === 'object' && answer !== null && (answer as { allow?: unknown }).allow === true)
  );
}
