import type { Broker, OptionValues } from '../../lib/index.ts';
import {
  type Answer,
  BrowserChecks,
  type Call,
  CredentialCheck,
  type Credentials,
  type GUARD_OPTIONS,
  hostsFor,
  type Service
} from '../rest/index.ts';
import { faultOf } from './codes.ts';
import { answerTo } from './reply.ts';

/** Options of handlers that only show something: who may see it. */
export interface GuardOptions {
  /**
   * Who may see it, as in the options of `managementApi`. Default `host`: whoever the host app lets through. With `none`, the `Host` header
   * must be an IP address, `localhost` or a name in `hosts`.
   */
  credentials?: Credentials;
  /** Proxies in front of the server, as in the options of `managementApi`. */
  trustedProxies?: string | readonly string[];
  /** Names by which the server is reached, as in the options of `managementApi`. */
  hosts?: string | readonly string[];
}

/** Lets requests through to what only shows something. */
export class Guard {
  readonly #credentials: CredentialCheck;
  readonly #browsers: BrowserChecks;

  constructor(broker: Broker, settings: OptionValues<typeof GUARD_OPTIONS>) {
    const { credentials, trustedProxies } = settings;
    this.#credentials = new CredentialCheck(broker, credentials, trustedProxies);
    this.#browsers = new BrowserChecks({ origins: 'any', hosts: hostsFor(settings) });
  }

  /** @returns the answer to a request that is refused; undefined: it may go on */
  async refusal(call: Call): Promise<Answer | undefined> {
    try {
      this.#browsers.check(call, false);
      await this.#credentials.check(call);
      return undefined;
    } catch (error) {
      const fault = faultOf(error);
      if (fault === undefined) throw error;
      return answerTo(fault, false);
    }
  }
}

/** A page behind a guard that only shows something. */
export class GuardedPage implements Service {
  readonly prefixes: readonly string[];
  readonly #guard: Guard;
  readonly #show: (call: Call) => Answer | Promise<Answer>;

  /** @param prefixes its paths @param show makes the answer to a request that the guard lets through */
  constructor(prefixes: readonly string[], guard: Guard, show: (call: Call) => Answer | Promise<Answer>) {
    this.prefixes = prefixes;
    this.#guard = guard;
    this.#show = show;
  }

  methods(path: string): readonly string[] {
    return /^\/*$/.test(path) ? ['GET', 'HEAD'] : [];
  }

  async answer(call: Call): Promise<Answer | undefined> {
    if (!this.methods(call.path).includes(call.method)) return undefined;
    return (await this.#guard.refusal(call)) ?? this.#show(call);
  }
}
