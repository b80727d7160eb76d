import { BrokerError, InvalidInput, ProtocolError, Refused } from '../../lib/index.ts';

/** Reason codes of permanent refusals: not authorized, topic name, packet too large, payload format. */
const FINAL: readonly number[] = [0x87, 0x90, 0x95, 0x99];

/**
 * Check whether an error of `client.publish` means that the server will never accept the message. After any other error
 * it can be sent again.
 */
export function isFinalRefusal(error: unknown): boolean {
  if (error instanceof Refused) return error.code === 'PUBLISH_REFUSED' && FINAL.includes(error.reasonCode);
  if (error instanceof InvalidInput || error instanceof ProtocolError) return true;
  return error instanceof BrokerError && (error.code === 'PACKET_TOO_LARGE' || error.code === 'MESSAGE_EXPIRED');
}
