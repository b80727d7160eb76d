import type { ClientInfo, ConnectionMeta } from './client-info.ts';
import type { Clock } from './clock.ts';
import { BrokerError, InvalidInput } from './errors.ts';
import type { SubscriptionOptions } from './events.ts';
import { unknownName } from './options-table.ts';
import type { Message, MessageInput } from './packets/message.ts';
import { ReasonCode } from './packets/reason-codes.ts';
import type { ConnectPacket, UserProperty } from './packets/types.ts';
import type { WorkCount } from './work.ts';

/** What a hook may answer now or later. */
export type Awaitable<T> = T | PromiseLike<T>;

/** Refusal of a connection. `serverReference` goes with 0x9C (use another server) and 0x9D (server moved). */
export interface Refusal {
  readonly allow: false;
  /** MQTT 5.0 reason code, 0x80 or above. Translated for 3.x clients. */
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

/** true: let it; false: refuse; undefined: no opinion, ask the next hook. */
export type Verdict = boolean | NoOpinion | Refusal;

/**
 * The hooks, in the order in which they run. All may be synchronous or return a promise, except `deliver`. A hook that throws, rejects
 * or takes longer than `hookTimeout` refuses that one operation, and an `error` event tells of it.
 *
 * CONNECT: preConnect, authenticate. SUBSCRIBE: authorizeSubscribe for each filter. PUBLISH (clients and wills): authorizePublish, publish.
 * Delivery: deliver. Where several functions are registered for a hook they run in order of registration; the first opinion of
 * preConnect, authenticate and the authorize hooks is final, `publish` and `deliver` functions run all.
 */
export interface Hooks {
  /** A well-formed CONNECT has come; nothing is known of the client yet. Refuse, or redirect with `serverReference`. */
  preConnect?(request: {
    readonly packet: ConnectPacket;
    readonly connection: ConnectionMeta;
    readonly client: ClientInfo;
    readonly signal: AbortSignal;
  }): Awaitable<Verdict>;
  /** Who is it? Without an opinion from any hook, `allowAnonymous` decides; an Authentication Method nobody knows is refused with 0x8C. */
  authenticate?(request: AuthenticateRequest): Awaitable<Verdict | Approval | Challenge>;
  /** May this client (or its will) publish this? */
  authorizePublish?(request: { readonly client: ClientInfo; readonly message: Message }): Awaitable<Verdict>;
  /** May it subscribe? A number 0 to 2 lowers the granted QoS; 0x80 or above is the refusal's code. */
  authorizeSubscribe?(request: {
    readonly client: ClientInfo;
    readonly filter: string;
    readonly options: SubscriptionOptions;
  }): Awaitable<Verdict | number>;
  /** Change a message by returning another, refuse it with `false` or a refusal, keep it with anything else. `client` is absent for the app's own. */
  publish?(request: {
    readonly message: Message;
    readonly client: ClientInfo | undefined;
  }): Awaitable<MessageInput | boolean | NoOpinion | Refusal>;
  /** false drops this message for this receiver. Synchronous, on the packet path: keep it short. */
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
      return typeof (answer as PromiseLike<A> | undefined)?.then === 'function'
        ? this.#within(name, answer as PromiseLike<A>, onFailure, client, abort)
        : (answer as A);
    } catch (error) {
      this.#report(error, `hook ${name}`, client);
      return onFailure;
    }
  }

  #within<A>(
    name: HookName,
    answer: PromiseLike<A>,
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
      Promise.resolve(answer).then(settle, fail);
    });
  }
}

/** Whether a hook's answer is still to come. */
export function isThenable<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as Promise<T> | undefined)?.then === 'function';
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
