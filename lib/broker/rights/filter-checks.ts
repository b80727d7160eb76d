import type { AccessRules } from '../../access/access-rules.ts';
import { isSystem } from '../../access/rule.ts';
import { DECIDERS, type Decider } from '../../events/deciders.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { Session } from '../../session/session.ts';
import type { SessionClient } from '../../session/session-client.ts';
import { isOfClients, isOwnTopic } from '../../topics/client-topics.ts';
import { checkTopicFilter, isWildcard, MAX_TOPIC_BYTES, parseSharedFilter } from '../../topics/topic.ts';

const LOCAL = /^(::1|127\.|::ffff:127\.)/;

/** The options on which the checks depend. */
interface CheckSettings {
  readonly sysForRemoteClients: boolean;
}

/**
 * Perform the checks of a subscription that need no hook: the form of a filter, the limits of the zone, and who may subscribe below `$SYS`
 * and `$client`.
 * @param hasId the SUBSCRIBE has a Subscription Identifier
 * @returns 0 or the reason code that refuses the filter
 */
export function filterFault(
  client: SessionClient,
  filter: string,
  hasId: boolean,
  rules: AccessRules,
  settings: CheckSettings
): number {
  const { agreement, mountpoint } = client;
  const { zone } = agreement;
  if (checkTopicFilter(filter) !== undefined) return ReasonCode.topicFilterInvalid;
  if (checkTopicFilter(filter, { maxLevels: zone.maxTopicLevels }) !== undefined) return ReasonCode.topicFilterInvalid;
  if (mountpoint !== '' && Buffer.byteLength(filter) + Buffer.byteLength(mountpoint) > MAX_TOPIC_BYTES)
    return ReasonCode.topicFilterInvalid;
  const shared = parseSharedFilter(filter);
  const inner = typeof shared === 'object' ? shared.filter : filter;
  if (shared !== undefined && !zone.sharedSubscription) return ReasonCode.sharedSubscriptionsNotSupported;
  if (!zone.wildcardSubscription && isWildcard(inner)) return ReasonCode.wildcardSubscriptionsNotSupported;
  if (hasId && !zone.subscriptionIdentifiers) return ReasonCode.subscriptionIdentifiersNotSupported;
  if (isOfClients(inner) && !isOwnTopic(client.clientId, inner) && !client.isSuperuser) return ReasonCode.notAuthorized;
  if (isSystem(inner) && !maySubscribeSystem(client, inner, rules, settings)) return ReasonCode.notAuthorized;
  return 0;
}

/** Tell whether a rule allows a subscription below `$SYS`: only rules about `$SYS` override the built-in checks. */
function maySubscribeSystem(
  client: SessionClient,
  filter: string,
  rules: AccessRules,
  settings: CheckSettings
): boolean {
  const { transportInfo, isSuperuser } = client;
  const { transport, remoteAddress } = transportInfo;
  const ruled = isSuperuser ? undefined : rules.decideFilter(client, filter);
  if (ruled !== undefined) return ruled;
  if (settings.sysForRemoteClients || isSuperuser) return true;
  if (transport === 'local' || transport === 'unix') return true;
  return remoteAddress === undefined ? transport === 'stream' : LOCAL.test(remoteAddress);
}

/** The parts of the broker that limit subscriptions. */
interface SubscriptionLimits {
  readonly ledger: { readonly isFailed: boolean } | undefined;
  readonly pressure: { readonly isSpaceLow: boolean };
  readonly sessions: { hasRoomForSubscription(): boolean };
}

/** The limit that allows no subscription. @param isNew the subscription does not exist yet @returns undefined: there is room */
export function lackOfRoom(
  session: Session,
  isNew: boolean,
  { ledger, pressure, sessions }: SubscriptionLimits
): Decider | undefined {
  const { maxSubscriptions } = session.client.agreement.zone;
  if (session.log !== undefined && ledger?.isFailed) return DECIDERS.storeFailed;
  if (!isNew) return undefined;
  if (maxSubscriptions > 0 && session.subscriptions.size >= maxSubscriptions) return DECIDERS.subscriptionsFull;
  if (session.log !== undefined && pressure.isSpaceLow) return DECIDERS.storeFull;
  return sessions.hasRoomForSubscription() ? undefined : DECIDERS.allSubscriptionsFull;
}
