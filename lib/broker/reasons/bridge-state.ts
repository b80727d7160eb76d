import { errorText } from '../../base/errors.ts';
import { hideInText } from '../../base/hidden-text.ts';
import { cut } from '../../monitor/cut-text.ts';
import { type DerivedCause, derived } from '../../monitor/reasons/derived.ts';
import type { Session } from '../../session/session.ts';
import type { Connectors } from '../configuration/connectors.ts';
import { BRIDGE_PREFIX } from '../rights/bridge-access.ts';

/** Minimum length of a loss of the connection that is an answer to a question without a time, in milliseconds. */
const MIN_OUTAGE_MS = 1_000;

/** The bridges that bring the messages of a topic from another server, and had no connection to it. */
export function inboundCauses(
  { topic, at, now, precision }: BridgeQuestion & { readonly precision: number },
  connectors: Pick<Connectors, 'feeding'>
): DerivedCause[] {
  return connectors.feeding(topic).flatMap(({ name, isStarted, lastError, inflow }) => {
    const outage = inflow?.outages.at(at, precision);
    if (outage === undefined) return [];
    const { from, until } = outage;
    if (until !== undefined && precision === Infinity && until - from < MIN_OUTAGE_MS) return [];
    const error = lastError === undefined ? 'it has no answer yet' : hideInText(errorText(lastError));
    const why = until !== undefined ? [] : [isStarted ? error : 'it is stopped'];
    const brings = `it brings ${JSON.stringify(cut(topic))}, and had no connection since ${new Date(from).toISOString()}`;
    const evidence = { topic: cut(topic), bridge: cut(name), isStarted, since: from, until };
    return [derived('bridge_disconnected', now, { ...evidence, detail: [brings, ...why].join('; ') })];
  });
}

/** The question about a receiver that may be a bridge. */
interface BridgeQuestion {
  readonly topic: string;
  readonly at: number;
  readonly now: number;
}

/**
 * Name the bridge whose session is offline, with the last error of its connection: in the cause that messages of the topic wait, or in one of
 * its own. Other causes stay as they are.
 * @param causes those of the session
 * @param isSubscribed true if the session has a subscription to the topic
 */
export function withBridge(
  causes: readonly DerivedCause[],
  { client, outlet }: Session,
  { topic, at, now }: BridgeQuestion,
  isSubscribed: boolean,
  connectors: Pick<Connectors, 'get'>
): readonly DerivedCause[] {
  const { clientId, disconnectedAt = -Infinity } = client;
  if (!clientId.startsWith(BRIDGE_PREFIX) || outlet.isOnline) return causes;
  const bridge = clientId.slice(BRIDGE_PREFIX.length);
  const { isStarted = false, lastError } = connectors.get('bridge', bridge) ?? {};
  const error = lastError === undefined ? undefined : hideInText(errorText(lastError));
  const reason = isStarted ? error : 'it is stopped';
  const detailed = (detail?: string) => cut([detail, reason].filter((part) => part !== undefined).join('; '));
  const isWaiting = ({ code }: DerivedCause) => code === 'offline_queued';
  if (causes.some(isWaiting) || !isSubscribed || disconnectedAt > at)
    return causes.map((cause) => {
      const { evidence } = cause;
      if (!isWaiting(cause)) return cause;
      return { ...cause, evidence: { ...evidence, bridge, isStarted, detail: detailed(`${evidence.detail}`) } };
    });
  const evidence = { topic: cut(topic), clientId: cut(clientId), bridge, isStarted, detail: reason && detailed() };
  return [...causes, derived('bridge_disconnected', now, evidence)];
}
