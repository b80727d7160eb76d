import { InvalidInput } from '../../base/errors.ts';
import { checkNames, checkObject } from '../../base/fields.ts';
import type { QoS } from '../../packets/types.ts';
import { checkTopicFilter, parseSharedFilter } from '../../topics/topic.ts';

/** A subscription that the broker makes for every client when it connects. `%c` and `%u` are replaced by the client id and the user name. */
export interface AutoSubscription {
  /** The topic filter. */
  readonly topic: string;
  /** Default 0. */
  readonly qos?: QoS;
  /** No Local. Default false. */
  readonly noLocal?: boolean;
  /** Retain As Published. Default false. */
  readonly retainAsPublished?: boolean;
  /** Retain Handling: send retained messages always (0, the default), only if the subscription is new (1), or never (2). */
  readonly retainHandling?: 0 | 1 | 2;
}

/** The options of a subscription by every accepted spelling: camelCase, snake_case, and the short one of documented settings files. */
const SUBSCRIPTION_NAMES: Readonly<Record<string, keyof AutoSubscription>> = {
  topic: 'topic',
  qos: 'qos',
  noLocal: 'noLocal',
  no_local: 'noLocal',
  nl: 'noLocal',
  retainAsPublished: 'retainAsPublished',
  retain_as_published: 'retainAsPublished',
  rap: 'retainAsPublished',
  retainHandling: 'retainHandling',
  retain_handling: 'retainHandling',
  rh: 'retainHandling'
};

/** Read the option `autoSubscriptions`. @throws InvalidInput OPTION_INVALID, OPTION_UNKNOWN */
export function readAutoSubscriptions(list: unknown): AutoSubscription[] {
  if (!Array.isArray(list)) {
    const expected = 'a list of { topic, qos, noLocal, retainAsPublished, retainHandling }';
    throw new InvalidInput('OPTION_INVALID', 'autoSubscriptions', expected, list);
  }
  return list.map((given, at) => {
    const where = `autoSubscriptions.${at}`;
    checkObject(given, where);
    checkNames(given, Object.keys(SUBSCRIPTION_NAMES), where);
    const named = Object.entries(given).map(([name, value]) => [SUBSCRIPTION_NAMES[name], value]);
    const subscription = Object.fromEntries(named) as AutoSubscription;
    checkSubscription(subscription, `${where}.`);
    return subscription;
  });
}

/**
 * Check a subscription that is made on behalf of a client.
 * @param where prefix for the names of its options in errors
 * @throws InvalidInput OPTION_INVALID
 */
export function checkSubscription(given: AutoSubscription, where = ''): void {
  const { topic, qos = 0, noLocal = false, retainAsPublished = false, retainHandling = 0 } = given;
  const refuse = (name: keyof AutoSubscription, expected: string, fault?: string): never => {
    const message = fault === undefined ? undefined : `${where}${name}: ${fault}`;
    throw new InvalidInput('OPTION_INVALID', `${where}${name}`, expected, given[name], message);
  };
  const fault = typeof topic === 'string' ? checkTopicFilter(topic) : 'expected a topic filter';
  if (fault !== undefined) refuse('topic', 'a topic filter', fault);
  if (![0, 1, 2].includes(qos)) refuse('qos', '0, 1 or 2');
  if (typeof noLocal !== 'boolean') refuse('noLocal', 'true or false');
  if (typeof retainAsPublished !== 'boolean') refuse('retainAsPublished', 'true or false');
  if (![0, 1, 2].includes(retainHandling)) refuse('retainHandling', '0, 1 or 2');
  if (noLocal && parseSharedFilter(topic) !== undefined)
    refuse('noLocal', 'false', 'No Local is not allowed on a shared subscription'); // [MQTT-3.8.3-4]
}
