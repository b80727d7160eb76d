import type { FieldValues } from '../../lib/adapter.ts';
import type { Broker } from '../../lib/index.ts';
import type { Answer, Call, Credentials, GUARD_OPTIONS, HttpMounts, Service } from '../rest/index.ts';
import { Guard, mountsOf } from '../rest/index.ts';
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
  /** The header in which they report the address of the client, as in the options of `managementApi`. */
  proxyHeader?: 'x-forwarded-for' | 'forwarded';
  /** Names of the server, as in the options of `managementApi`. */
  hosts?: string | readonly string[];
}

/** A read-only page: its paths, and its answer to a request that passes the guard. */
interface Page {
  readonly paths: readonly string[];
  show(call: Call): Answer | Promise<Answer>;
}

/** Mount read-only pages, which pages of all origins may read. */
export function mountPages(
  broker: Broker,
  settings: FieldValues<typeof GUARD_OPTIONS>,
  pages: readonly Page[]
): HttpMounts {
  const guard = new Guard(broker, { ...settings, origins: 'any' }, { name: 'management' });
  const serviceOf = ({ paths, show }: Page): Service => ({
    prefixes: paths,
    methods: methodsAt,
    answer: async (call) => {
      if (!methodsAt(call.path).includes(call.method)) return undefined;
      try {
        await guard.admit(call, false);
      } catch (error) {
        const fault = faultOf(error);
        if (fault === undefined) throw error;
        return answerTo(fault, false);
      }
      return show(call);
    }
  });
  return mountsOf(broker, pages.map(serviceOf));
}

function methodsAt(path: string): readonly string[] {
  return /^\/*$/.test(path) ? ['GET', 'HEAD'] : [];
}
