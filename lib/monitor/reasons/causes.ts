// A row for each cause for which a message does not arrive. `text` is a sentence for people about the evidence, and
// `remedy` what to do. Recorded causes come from records of the log (`recorded.ts` maps them), sampled ones from the
// last examples of rules and share groups, derived ones from the state of the broker at the time of the question.

import { WILL_DROPS } from '../../events/reasons.ts';
import { restOfMisspelledShare } from '../../topics/near-filter.ts';

/** Values that a cause is about, by name. Texts of clients have at most 256 characters. */
export type Evidence = Readonly<Record<string, string | number | boolean | undefined>>;

/** Source of a cause: recorded when it happened, one of the last examples, or derived from the state of the broker at the time of the question. */
export type CauseKind = 'recorded' | 'sampled' | 'derived';

/** A row of `CAUSES`. */
export interface CauseEntry {
  /** The kinds of knowledge that can show the cause. */
  readonly kinds: readonly CauseKind[];
  /** Describe the cause, in a sentence. */
  text(evidence: Evidence): string;
  /** Advice for the operator. */
  readonly remedy: string;
  /** Other advice, for what the evidence shows; undefined: `remedy`. */
  remedyOf?(evidence: Evidence): string | undefined;
}

/** A row of `CAUSES`. The parameter of `text` is inferred. */
function row(
  kinds: CauseKind | readonly CauseKind[],
  text: (evidence: Evidence) => string,
  remedy: string,
  remedyOf?: CauseEntry['remedyOf']
): CauseEntry {
  return { kinds: typeof kinds === 'string' ? [kinds] : kinds, text, remedy, ...(remedyOf && { remedyOf }) };
}

/** Advice if a message that a rule publishes is refused, by the reason. */
const REPUBLISHING: readonly (readonly [RegExp, string])[] = [
  [
    /: rules publish because of each other/,
    'Let one of the rules select from other topics, or publish to another one.'
  ],
  [/: topic name "/, 'Correct the topic of the action and the values in it: a topic name has no wildcards.']
];

/** Advice if a filter was meant to be shared. */
const SHARE_PREFIX =
  'A shared subscription begins with `$share/`, followed by the name of the group, a slash and the filter.';

/** The beginning of the client ids of bridges. */
const BRIDGE = '$bridge/';
const isOfBridge = (clientId: Evidence[string]) => typeof clientId === 'string' && clientId.startsWith(BRIDGE);

/** Advice if a bridge has no connection. */
const RECONNECTING = ({ isStarted }: Evidence) =>
  isStarted === false ? 'Start the bridge.' : 'Check the server, and the address and credentials of the bridge.';

/** Advice if a message is missing because the feature `retainer` was stopped. */
const RETAINING: readonly (readonly [RegExp, string])[] = [
  [
    /^the feature `retainer` (is stopped|was stopped .* until now$)/,
    'Start the feature retainer if it is still stopped (`embermq ctl plugins load`), then publish the message again.'
  ],
  [/^the feature `retainer` was stopped/, 'The feature has been started again: let the client subscribe again.']
];

/** Advice if what prevented the message has ended. */
const ifOver =
  (advice: string) =>
  ({ until }: Evidence) =>
    until === undefined ? undefined : advice;

/** Advice if a will was deleted, by the reason. */
const WILL_ADVICE: Readonly<Record<string, string>> = {
  [WILL_DROPS.returned]:
    'Connect the client with a shorter Will Delay, so that also a short loss of its connection is reported.',
  [WILL_DROPS.kicked]: 'Publish the will when the client is disconnected: that is the default.',
  [WILL_DROPS.notAccepted]: 'Correct what the broker refused: a will is published only if the client had been accepted.'
};

/** The values of the evidence, named as in the sentences. */
const client = ({ clientId }: Evidence) =>
  clientId === undefined
    ? 'the receiver'
    : isOfBridge(clientId)
      ? `bridge ${quote(`${clientId}`.slice(BRIDGE.length))}`
      : `client ${quote(clientId)}`;
const sender = ({ publisher }: Evidence) =>
  publisher === undefined ? 'the publisher' : publisher === '' ? 'the app' : `client ${quote(publisher)}`;
const newcomer = (e: Evidence) =>
  e.clientId === undefined
    ? 'A connection was closed before its client id was known'
    : `${begin(client(e))} could not connect`;
const topicOf = ({ topic }: Evidence) => (topic === undefined ? 'the message' : `topic ${quote(topic)}`);
const filterOf = ({ filter }: Evidence) => (filter === undefined ? 'the subscription' : `filter ${quote(filter)}`);
const ruleOf = ({ rule }: Evidence) => (rule === undefined ? 'the rule' : `rule ${quote(rule)}`);
const toTopic = ({ topic }: Evidence) => (topic === undefined ? '' : ` to topic ${quote(topic)}`);
const because = ({ detail }: Evidence) => (detail === undefined ? '' : `: ${`${detail}`.replace(/\.$/, '')}`);
const refusal = ({ topic, waitingOutputs }: Evidence) =>
  waitingOutputs === undefined
    ? `did not accept ${topic === undefined ? 'a message, which may be another one' : 'the message'}`
    : 'has not accepted the message yet';
const quote = (text: string | number | boolean) => JSON.stringify(text);
const timeOf = (ms: string | number | boolean) => new Date(Number(ms)).toISOString();
const begin = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** The causes for which a message does not arrive. Their codes are public and are not changed. */
export const CAUSES = {
  // ------------------------------------------------------------------------------------------------------------ the client
  wrong_password: row(
    'recorded',
    (e) => `${begin(client(e))} could not connect, because its user name or password was not accepted${because(e)}.`,
    'Correct the credentials in the client, or in the broker or its source.'
  ),
  token_expired: row(
    'recorded',
    (e) => `The authentication of ${client(e)} has expired${because(e)}.`,
    'Give the client a new token; MQTT 5.0 clients can re-authenticate before the token expires.'
  ),
  reauthentication_failed: row(
    'recorded',
    (e) => `The re-authentication of ${client(e)} was refused, and its connection was closed${because(e)}.`,
    'Give the client credentials that its source of authentication, or the hook of the app, accepts.'
  ),
  banned: row(
    'recorded',
    (e) => `${begin(client(e))} was refused or disconnected by a ban${because(e)}.`,
    'Delete the ban with `embermq ctl ban remove`, or wait until it ends. If it is deleted already, publish the message again.'
  ),
  taken_over: row(
    'recorded',
    (e) => `Another connection with the same client id took over the session of ${client(e)}${because(e)}.`,
    'Give each client a different id.'
  ),
  kicked: row(
    'recorded',
    (e) => `${begin(client(e))} was disconnected by an operator or the app${because(e)}.`,
    'Let the client connect and subscribe again; the requests of operators are in the audit log (`embermq ctl audit`).'
  ),
  connection_limit: row(
    'recorded',
    (e) => `${newcomer(e)}, because a limit was reached${because(e)}.`,
    'Close unused connections, or raise this limit. After failed logins, correct the credentials of the clients that fail, and wait a minute.'
  ),
  connect_refused: row(
    'recorded',
    (e) => `${newcomer(e)}${because(e)}.`,
    'Check the options of the zone, the hooks of the app, and the sources of authentication.'
  ),
  // ----------------------------------------------------------------------------------------------------------- refusals
  acl_record: row(
    'recorded',
    (e) => `An access rule of the broker forbids ${sender(e)} to publish to ${topicOf(e)}${because(e)}.`,
    'Change the access rule, or add one for this client that allows it. If that is done already, publish the message again.'
  ),
  acl_file_rule: row(
    'recorded',
    (e) => `A rule of a list or file forbids ${sender(e)} to publish to ${topicOf(e)}${because(e)}.`,
    'Change the rule in its file or list, and reload it.'
  ),
  client_rule: row(
    'recorded',
    (e) => `A rule that ${sender(e)} got when it connected forbids it to publish to ${topicOf(e)}${because(e)}.`,
    'Change the rules that the token or the source gives to the client; they apply from its next authentication.'
  ),
  acl_nomatch: row(
    'recorded',
    (e) =>
      `No access rule allows ${sender(e)} to publish to ${topicOf(e)}, and \`aclNomatch\` refuses the rest${because(e)}.`,
    'Add an access rule that allows it, or set `aclNomatch` to `allow`.'
  ),
  authorize_hook: row(
    'recorded',
    (e) => `A hook of the app (authorizePublish) forbids ${sender(e)} to publish to ${topicOf(e)}${because(e)}.`,
    'Check the hook in the app that runs the broker.'
  ),
  source_denied: row(
    'recorded',
    (e) => `A source of access rights forbids ${sender(e)} to publish to ${topicOf(e)}${because(e)}.`,
    'Change the rights of the client in that source; answers are kept for `aclCacheTtl`.'
  ),
  source_failed: row(
    'recorded',
    (e) => `A source of access rights could not answer, so the request of ${sender(e)} was refused${because(e)}.`,
    'Restore the server of the source. The broker asks it again for the next message.'
  ),
  publish_hook: row(
    'recorded',
    (e) => `A hook of the app (publish) refused the message of ${sender(e)}${toTopic(e)}${because(e)}.`,
    'Check the hook in the app that runs the broker.'
  ),
  schema: row(
    'recorded',
    (e) => `The payload of the message of ${sender(e)}${toTopic(e)} does not match a schema${because(e)}.`,
    'Correct the payload, or the schema of the filter in the options of the broker. The publisher got the reason in its acknowledgement (MQTT 5.0).'
  ),
  not_authorized: row(
    'recorded',
    (e) => `${begin(sender(e))} has no right to publish to ${topicOf(e)}${because(e)}.`,
    'Find the rule that decides with `embermq ctl rights`.'
  ),
  packet_too_large: row(
    'recorded',
    (e) => `A packet of ${sender(e)} was larger than the broker accepts, and its connection was closed${because(e)}.`,
    'Send smaller messages, or raise `maxPacketSize`.'
  ),
  topic_not_allowed: row(
    'recorded',
    (e) => `The topic of the message of ${sender(e)} is not allowed${because(e)}.`,
    'Publish to a topic that is valid: without wildcards, within `maxTopicLevels`, and not below `$SYS`.'
  ),
  publish_limited: row(
    'derived',
    (e) => `The broker does not read the messages of ${sender(e)} now, because it exceeds a rate limit${because(e)}.`,
    'Wait, or make the client publish less; its limits are `publishLimit`, `rateLimit`, `totalPublishLimit` and `totalRateLimit`.'
  ),
  publisher_unknown: row(
    'derived',
    (e) => `${begin(sender(e))} is not connected, and no CONNECT of it is recorded${because(e)}.`,
    'Check the client id of the publisher in the question, and the address and port to which it connects.'
  ),
  delayed_stopped: row(
    'recorded',
    (e) =>
      `The delayed message of ${sender(e)}${toTopic(e)} was refused, because the feature delayed is stopped${because(e)}.`,
    'Start the feature delayed (`embermq ctl plugins load`), or publish without a delay.',
    ({ until }) => (until === undefined ? undefined : 'The feature has been started again: publish the message again.')
  ),
  qos_not_allowed: row(
    'recorded',
    (e) => `The QoS or the retain flag of the message of ${sender(e)} is not allowed${because(e)}.`,
    'Use a QoS up to `maxQosAllowed`, and retain only if `retainAvailable` is set.'
  ),
  store_full: row(
    'recorded',
    (e) => `There was no space to persist the message of ${sender(e)}${toTopic(e)}${because(e)}.`,
    'Free space on the disk, or raise the limit of the store.'
  ),
  store_failed: row(
    'recorded',
    (e) => `The message of ${sender(e)}${toTopic(e)} could not be persisted, because the store failed${because(e)}.`,
    'Check the log and the alarms for the error of the store.'
  ),
  memory_watermark: row(
    'recorded',
    (e) => `There was no room to queue the message of ${sender(e)}${toTopic(e)}${because(e)}.`,
    'Make receivers read their messages, lower their queue limits, or give the broker more memory.'
  ),
  // ------------------------------------------------------------------------------------------------------------ routing
  no_subscriber: row(
    ['recorded', 'derived'],
    (e) =>
      e.clientId === undefined
        ? `No subscription matched ${topicOf(e)}${because(e)}.`
        : `No subscription of ${client(e)} matches ${topicOf(e)}${because(e)}.`,
    'Subscribe to the topic before the message is published, or retain the message.'
  ),
  filter_case: row(
    'derived',
    (e) => `${begin(filterOf(e))} of ${client(e)} differs from ${topicOf(e)} in upper and lower case${because(e)}.`,
    'Topics are case-sensitive: correct the filter or the topic.'
  ),
  filter_slash: row(
    'derived',
    (e) => `${begin(filterOf(e))} of ${client(e)} differs from ${topicOf(e)} in a slash${because(e)}.`,
    'A slash at the beginning or end, or a doubled one, begins another level: correct the filter or the topic.'
  ),
  filter_levels: row(
    'derived',
    (e) => `${begin(filterOf(e))} of ${client(e)} and ${topicOf(e)} differ in the number of levels${because(e)}.`,
    '`+` stands for exactly one level, and `#` for any number at the end: correct the filter.'
  ),
  filter_system: row(
    'derived',
    (e) =>
      `${begin(filterOf(e))} of ${client(e)} begins with a wildcard, which does not cover ${topicOf(e)}${because(e)}.`,
    'Subscribe to topics that begin with `$` by name, for example `$SYS/#`.'
  ),
  filter_space: row(
    'derived',
    (e) => `${begin(filterOf(e))} of ${client(e)} differs from ${topicOf(e)} in a blank${because(e)}.`,
    'Remove the blanks at the beginning or end of the levels.'
  ),
  filter_share: row(
    'derived',
    (e) =>
      `${begin(filterOf(e))} of ${client(e)} is not a shared subscription, so it does not match ${topicOf(e)}${because(e)}.`,
    SHARE_PREFIX
  ),
  mount_point: row(
    'derived',
    (e) => `A mount point separates ${client(e)} from ${topicOf(e)}${because(e)}.`,
    'Publish below the mount point of the receiver, or use a listener without one.',
    ({ side, mountpoint }) =>
      side === 'publisher' && mountpoint !== undefined
        ? `Subscribe to the topic below ${quote(mountpoint)}, or connect the publisher to a listener without a mount point.`
        : undefined
  ),
  rewritten: row(
    'derived',
    (e) => `A rewrite rule has changed ${topicOf(e)} or ${filterOf(e)}${because(e)}.`,
    'Change the rewrite rule, or subscribe to the rewritten topic.'
  ),
  subscribe_refused: row(
    'recorded',
    (e) => `The subscription of ${client(e)} to ${filterOf(e)} was refused${because(e)}.`,
    'Allow the subscription, and let the client subscribe again.',
    ({ filter }) =>
      typeof filter === 'string' && restOfMisspelledShare(filter) !== undefined ? SHARE_PREFIX : undefined
  ),
  subscribed_later: row(
    'recorded',
    (e) => `${begin(client(e))} subscribed to ${filterOf(e)} after the message was published${because(e)}.`,
    'Subscribe before the message is published, in a session that is kept (Clean Start 0, session expiry interval), or retain the message.'
  ),
  unsubscribed: row(
    'recorded',
    (e) => `The subscription of ${client(e)} to ${filterOf(e)} ended${because(e)}.`,
    'Let the client subscribe again; the requests of operators are in the audit log (`embermq ctl audit`).'
  ),
  subscription_withdrawn: row(
    'recorded',
    (e) =>
      `The subscription of ${client(e)} to ${filterOf(e)} was removed, because the client lost the right to it${because(e)}.`,
    'Allow the topic in the access rules, and let the client subscribe again.'
  ),
  session_ended: row(
    'recorded',
    (e) => `The session of ${client(e)} ended, and its subscriptions and queued messages with it${because(e)}.`,
    'Use a longer session expiry interval, and connect without Clean Start.'
  ),
  // ----------------------------------------------------------------------------------------------------------- receiver
  no_local: row(
    ['recorded', 'derived'],
    (e) => `${begin(client(e))} published the message itself, and does not receive its own messages${because(e)}.`,
    'Subscribe without No Local, and set `ignoreLoopDeliver` of its zone to false.'
  ),
  retained_missing: row(
    ['recorded', 'derived'],
    (e) => `There was no retained message for ${client(e)} at ${topicOf(e)}${because(e)}.`,
    'Publish with the retain flag, and check the limits of retained messages and Retain Handling.',
    ({ detail }) => RETAINING.find(([pattern]) => pattern.test(`${detail}`))?.[1]
  ),
  share_member: row(
    ['recorded', 'sampled', 'derived'],
    (e) => `A share group delivers each message to one member only${because(e)}.`,
    'Check the member that was chosen, or subscribe without a share group.'
  ),
  delayed: row(
    'derived',
    (e) => `The message${toTopic(e)} is still delayed${because(e)}.`,
    'Wait until its delay has passed, or delete the delayed message.'
  ),
  will_delayed: row(
    'derived',
    (e) => `The will of ${sender(e)}${toTopic(e)} is not published yet${because(e)}.`,
    'Wait until the Will Delay has passed, or connect the client with a shorter one.',
    ({ isConnected }) =>
      isConnected === true
        ? 'If the client is gone, wait until the broker closes its connection, or kick it; connect it with a shorter keep alive.'
        : undefined
  ),
  will_dropped: row(
    'recorded',
    (e) =>
      `The will of ${sender(e)}${toTopic(e)} was deleted, because ${e.detail ?? 'the client ended its connection itself'}.`,
    'A will is published if the connection is lost, or if the client sends DISCONNECT with the reason code 0x04 (MQTT 5.0).',
    ({ detail }) => WILL_ADVICE[`${detail}`]
  ),
  no_will: row(
    'derived',
    (e) => `${begin(sender(e))} lost its connection, and had no will${because(e)}.`,
    'Set a will in the CONNECT of the client: the broker publishes it if the connection is lost.'
  ),
  offline_no_session: row(
    'derived',
    (e) => `${begin(client(e))} is not connected and has no session${because(e)}.`,
    'Connect the client; with a session expiry interval its messages are queued while it is away.'
  ),
  offline_qos0: row(
    ['recorded', 'derived'],
    (e) => `Messages of QoS 0 are not queued for ${client(e)}${because(e)}.`,
    'Publish and subscribe with QoS 1, or set `mqueueStoreQos0`.'
  ),
  offline_queued: row(
    'derived',
    (e) =>
      e.bridge === undefined
        ? `${begin(client(e))} is offline, and its messages wait in its queue${because(e)}.`
        : `Bridge ${quote(e.bridge)} is not connected to its server, and the messages for it wait in its queue${because(e)}.`,
    'Connect the client without Clean Start.',
    (e) => (e.bridge === undefined ? undefined : RECONNECTING(e))
  ),
  bridge_disconnected: row(
    'derived',
    (e) =>
      `${e.bridge === undefined ? 'The bridge' : `Bridge ${quote(e.bridge)}`} ${e.until === undefined ? 'is not connected to its server' : `was not connected to its server until ${timeOf(e.until)}`}${because(e)}.`,
    'Check the server, and the address and credentials of the bridge.',
    (e) =>
      e.until === undefined
        ? RECONNECTING(e)
        : 'The bridge is connected again: publish the message again at its server, unless it comes from the queue there.'
  ),
  queued: row(
    'derived',
    (e) => `Messages for ${client(e)} wait in its queue${because(e)}.`,
    'Wait until the client has received the earlier messages, or make it read and acknowledge faster.'
  ),
  qos_lowered: row(
    'derived',
    (e) =>
      `${begin(client(e))} receives ${topicOf(e)} with ${e.grantedQos === undefined ? 'a low QoS' : `at most QoS ${e.grantedQos}`}${because(e)}.`,
    'Publish and subscribe with QoS 1 or 2.',
    ({ grantedQos }) => (grantedQos === 1 ? 'Subscribe with the QoS of the messages.' : undefined)
  ),
  queue_full: row(
    'recorded',
    (e) => `The queue of ${client(e)} was full, so a message${toTopic(e)} was dropped${because(e)}.`,
    'Make the client read faster, or raise `maxMqueueLen` and the limits of the backlog.',
    ({ clientId }) =>
      isOfBridge(clientId)
        ? 'Restore the connection of the bridge, or raise its options `maxQueue` and `maxQueueBytes`.'
        : undefined
  ),
  queue_cleared: row(
    'recorded',
    (e) => `The queue of ${client(e)} was cleared${because(e)}.`,
    'The app or an operator cleared it: see the audit log.'
  ),
  expired: row(
    ['recorded', 'derived'],
    (e) => `The message${toTopic(e)} expired before ${client(e)} received it${because(e)}.`,
    'Publish with a longer Message Expiry Interval, or raise `maxMessageExpiryInterval`.'
  ),
  too_large: row(
    'recorded',
    (e) => `The message${toTopic(e)} is larger than ${client(e)} accepts${because(e)}.`,
    'Raise the Maximum Packet Size in the CONNECT of the receiver, or send smaller messages.'
  ),
  awaiting_acknowledgements: row(
    'derived',
    (e) => `${begin(client(e))} has not acknowledged messages that were sent to it${because(e)}.`,
    'Make the client send PUBACK (QoS 1) or PUBREC and PUBCOMP (QoS 2), or raise its Receive Maximum and `maxInflight`.'
  ),
  connection_lost: row(
    'recorded',
    (e) =>
      `${begin(client(e))} did not answer before its connection was lost, and messages that were sent to it in that time may not have arrived${because(e)}.`,
    'Publish and subscribe with QoS 1, in a session that is kept (session expiry interval): what was not acknowledged is then sent again. A shorter keep alive notices lost connections earlier.'
  ),
  slow_consumer: row(
    'recorded',
    (e) => `The connection of ${client(e)} was closed, because it did not read its messages${because(e)}.`,
    'Check the network and the load of the client, or raise `slowConsumerTimeout`.'
  ),
  right_withdrawn: row(
    ['recorded', 'derived'],
    (e) =>
      e.group !== undefined && e.clientId === undefined
        ? `No member of share group ${quote(e.group)} has the right to receive ${topicOf(e)}${because(e)}.`
        : `${begin(client(e))} has lost the right to receive ${topicOf(e)}${because(e)}.`,
    'Allow the topic in the access rules; the subscription still exists.',
    ({ until, deniedUntil }) =>
      (until ?? deniedUntil) === undefined
        ? undefined
        : 'The client has the right again: publish the message again, and look up the change in the audit log (`embermq ctl audit`).'
  ),
  receiver_refused: row(
    'recorded',
    (e) =>
      isOfBridge(e.clientId)
        ? `The server of ${client(e)} refused the message${toTopic(e)}${because(e)}.`
        : `${begin(client(e))} received the message${toTopic(e)}, and refused it${because(e)}.`,
    'The reason code is the answer of the client to the message: look it up in the client.',
    ({ clientId, detail }) =>
      !isOfBridge(clientId)
        ? undefined
        : /\b0x87\b/.test(`${detail}`)
          ? 'Allow the user of the bridge to publish to the topic at the server, with the `remotePrefix` of the bridge, if it has one.'
          : 'The reason code is the answer of the server to the message: look it up in the log and the limits of the server.'
  ),
  deliver_hook: row(
    'recorded',
    (e) => `A hook of the app (deliver) withheld the message${toTopic(e)} from ${client(e)}${because(e)}.`,
    'Check the hook in the app that runs the broker.'
  ),
  broker_stopped: row(
    'recorded',
    (e) => `The broker stopped while the message${toTopic(e)} was in progress${because(e)}.`,
    'Publish the message again.'
  ),
  // -------------------------------------------------------------------------------------------------------------- rules
  rule_stopped: row(
    ['recorded', 'derived'],
    (e) =>
      e.until === undefined
        ? `${begin(ruleOf(e))} is not running${because(e)}.`
        : `${begin(ruleOf(e))} was not running until ${timeOf(e.until)}${because(e).replace(/^: it is /, ': it was ')}.`,
    'Enable or start the rule; if it stopped with an error, correct the error first.',
    ({ until, endedAt, detail }) =>
      /\bwaiting for (its|next) schedule\b/.test(`${detail}`)
        ? 'Publish the message while the rule runs, or change the schedule of the rule.'
        : detail === 'no rule has this id'
          ? 'Correct the id: `embermq ctl rules list` and `embermq ctl stream list` show those that exist.'
          : (until ?? endedAt) === undefined
            ? undefined
            : 'The rule runs again: publish the message again, and look up the change in the audit log (`embermq ctl audit`).'
  ),
  from_unmatched: row(
    'derived',
    (e) =>
      e.until === undefined
        ? `${begin(ruleOf(e))} does not select from ${topicOf(e)}${because(e)}.`
        : `${begin(ruleOf(e))} did not select from ${topicOf(e)} until ${timeOf(e.until)}${because(e)}.`,
    'Correct the filters after FROM, or the topic.',
    ifOver('The statement of the rule was changed then: check its filters after FROM, and publish the message again.')
  ),
  where_false: row(
    ['sampled', 'derived'],
    (e) =>
      `The condition of ${ruleOf(e)} ${e.isCertain === false ? 'may not have been met' : 'was not met'}${because(e)}.`,
    'Compare the values with the WHERE of the rule.'
  ),
  window_open: row(
    'derived',
    (e) => `${begin(ruleOf(e))} may still collect rows in its window, and has no result before it ends${because(e)}.`,
    'Wait until the window ends. A window that counts rows, or is in the time of events, ends only when other rows arrive.'
  ),
  payload_invalid: row(
    'recorded',
    (e) =>
      `${e.topic === undefined ? 'A payload' : `The payload of a message${toTopic(e)}`} could not be decoded for ${ruleOf(e)}${because(e)}.`,
    'Send JSON, or use a function or a format for the payload that is sent.'
  ),
  function_failed: row(
    'recorded',
    (e) => `A function of ${ruleOf(e)} failed${because(e)}.`,
    'Check the arguments of the function, and test the rule with this message.'
  ),
  field_missing: row(
    'recorded',
    (e) => `${begin(ruleOf(e))} published to a topic with a placeholder that has no value${because(e)}.`,
    'Use the name that the value has in the output of the rule, or let its WHERE exclude messages without it.'
  ),
  target_refused: row(
    ['recorded', 'derived'],
    (e) => `The target of an action of ${ruleOf(e)} ${refusal(e)}${because(e)}.`,
    'Check the resource or sink, and its server.',
    ({ detail }) => REPUBLISHING.find(([pattern]) => pattern.test(`${detail}`))?.[1]
  ),
  row_late: row(
    'sampled',
    (e) => `A row came too late for its window in ${ruleOf(e)}${because(e)}.`,
    'Raise `lateTolerance` of the rule, or correct the clock of the device.'
  )
} as const satisfies Record<string, CauseEntry>;

/** The code of a cause. */
export type CauseCode = keyof typeof CAUSES;

/** A cause for which a message did not arrive. */
export interface Cause {
  /** The code of the cause, a key of `CAUSES`. */
  readonly code: CauseCode;
  /** The source of the knowledge. */
  readonly kind: CauseKind;
  /** When it happened last, in milliseconds since 1970; of a derived cause, the time of the question. */
  readonly at: number;
  /** Number of times that it happened; of a derived cause, the messages or subscriptions that it is about, or 1. */
  readonly count: number;
  /** The cause in a sentence. */
  readonly text: string;
  /** The values that the sentence is about. */
  readonly evidence: Evidence;
  /** Advice for the operator. */
  readonly remedy: string;
}
