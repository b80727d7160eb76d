import type { DisconnectReason } from '../../events/reasons.ts';
import { CONNECT_REFUSALS } from '../../packets/connect-refusals.ts';
import type { TransportInfo } from '../../records/client.ts';

/** The documented name of a disconnect reason. Undocumented reasons keep their internal names. */
export function disconnectReasonName(reason: DisconnectReason, { transport }: TransportInfo): string {
  if (reason !== 'closed') return reason;
  return transport === 'tls' || transport === 'wss' ? 'ssl_closed' : 'tcp_closed';
}

const REFUSAL_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(CONNECT_REFUSALS).map(([name, { reasonCode }]) => [reasonCode, name])
);

/** The documented name of the reason code of a CONNACK. */
export function connackReasonName(reasonCode: number): string {
  return reasonCode === 0 ? 'success' : (REFUSAL_NAMES.get(reasonCode) ?? 'unspecified_error');
}
