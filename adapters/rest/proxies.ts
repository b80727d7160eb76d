import type { TrustedProxies } from '../upgrades/index.ts';
import type { Call } from './call.ts';

/** The address of the client of a call: that of the connection, or the last address in front of the trusted proxies. */
export function clientAddress(call: Call, proxies: TrustedProxies): string | undefined {
  return proxies.clientAddress(call.remoteAddress, (name) => call.header(name));
}
