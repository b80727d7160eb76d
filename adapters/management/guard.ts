import type { OptionValues } from '../../lib/adapter.ts';
import type { Broker } from '../../lib/index.ts';
import {
  type Answer,
  type Call,
  type Credentials,
  type GUARD_OPTIONS,
  Guard,
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

/** The guard of handlers that only show something, which pages of all origins may read. */
export function pageGuard(broker: Broker, settings: OptionValues<typeof GUARD_OPTIONS>): Guard {
  return new Guard(broker, { ...settings, origins: 'any', hosts: hostsFor(settings) }, { name: 'management' });
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
    try {
      await this.#guard.admit(call, false);
    } catch (error) {
      const fault = faultOf(error);
      if (fault === undefined) throw error;
      return answerTo(fault, false);
    }
    return this.#show(call);
  }
}
