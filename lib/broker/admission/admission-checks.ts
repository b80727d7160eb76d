import { ProtocolError } from '../../base/errors.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { Session } from '../../session/session.ts';
import type { SessionIndex } from '../sessions/session-index.ts';

/** The parts of the broker that `checkEntry` uses. */
interface EntryHost {
  readonly pressure: { readonly isShedding: boolean; readonly isSpaceLow: boolean };
  readonly sessions: Pick<SessionIndex, 'hasRoom' | 'isReturning'>;
  readonly ledger: { readonly isFailed: boolean } | undefined;
}

/**
 * Check whether a client that is approved can have its session now.
 * @param stored the previous session of its client id
 * @throws ProtocolError with the reason code of the CONNACK
 */
export function checkEntry(
  settings: { readonly takeoverByOtherUser: 'allow' | 'refuse' },
  { pressure, sessions, ledger }: EntryHost,
  { client, lifecycle }: Session,
  stored: Session | undefined
): void {
  const fail = (reasonCode: number, text: string): never => {
    throw new ProtocolError(reasonCode, text);
  };
  if (pressure.isShedding && !sessions.isReturning(client))
    fail(ReasonCode.serverBusy, 'the broker is short of memory (option memoryHighWatermark)');
  if (stored === undefined) {
    if (!sessions.hasRoom())
      fail(ReasonCode.quotaExceeded, 'the maximum number of sessions is reached (option maxSessions)');
    if (pressure.isSpaceLow && client.isPersistent)
      fail(ReasonCode.quotaExceeded, 'no new persistent session is possible: the space of the store is used up');
  } else if (settings.takeoverByOtherUser === 'refuse' && stored.client.username !== client.username)
    fail(
      ReasonCode.clientIdentifierNotValid,
      'the session of this client id belongs to another user name (option takeoverByOtherUser)'
    );
  const isPersisted = stored?.log !== undefined || client.isPersistent || lifecycle.will !== undefined;
  if (ledger?.isFailed && isPersisted)
    fail(ReasonCode.serverUnavailable, 'the session cannot be persisted: the store has failed');
}
