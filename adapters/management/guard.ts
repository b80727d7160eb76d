import type { FieldValues } from '../../lib/adapter.ts';
import type { Broker } from '../../lib/index.ts';
import { type Answer, type Call, type Credentials, type GUARD_OPTIONS, Guard, type Service } from '../rest/index.ts';
import { faultOf } from './codes.ts';
import { answerTo } from './reply.ts';

/** Access options of read-only handlers. */
export interface GuardOptions {
  /**
   * Access control, as in the options of `managementApi`. Default `host`: the host app decides. With `none`, the `Host`
   * header must be an IP address, `localhost` or a name in `hosts`.
   */
  credentials?: Credentials;
  /** Proxies in front of the server, as in the options of `managementApi`. */
  trustedProxies?: string | readonly string[];
  /** Names of the server, as in the options of `managementApi`. */
  hosts?: string | readonly string[];
}

/** The guard of read-only handlers, which pages of all origins may read. */
export function pageGuard(broker: Broker, settings: FieldValues<typeof GUARD_OPTIONS>): Guard {
  return new Guard(broker, { ...settings, origins: 'any' }, { name: 'management' });
}

/** A read-only page behind a guard. */
export class GuardedPage implements Service {
  readonly prefixes: readonly string[];
  readonly #guard: Guard;
  readonly #show: (call: Call) => Answer | Promise<Answer>;

  /**
   * @param prefixes the paths of the page
   * @param show answers a request that passes the guard
   */
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
