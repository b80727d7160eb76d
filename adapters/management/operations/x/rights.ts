import type { AccessRule, AccessStep } from '../../../../lib/index.ts';
import { Fault } from '../../../rest/index.ts';
import { anyOf, flag, integer, listOf, objectOf, oneOf, optional, text } from '../../../rest/kit/index.ts';
import { renamed } from '../../codes.ts';
import { type Operation, operation } from '../../operation.ts';

const RULE = objectOf(
  {
    access: text('allow or deny'),
    action: text('publish, subscribe or pubsub'),
    topic: optional(text('The topic filter; absent: all topics except those under $SYS')),
    exact: optional(flag('Topics are compared character by character')),
    clientid: optional(text('The client id to which it applies')),
    username: optional(text('The user name to which it applies')),
    has_username: optional(flag('The rule applies to clients with any user name')),
    ip_address: optional(anyOf([text(), listOf(text())], 'The addresses to which it applies'))
  },
  { description: 'The rule that decides, as it was written' }
);
const STEP_FIELDS = {
  by: text(
    [
      'ban; superuser; builtin: the form of the topic, limits of the zone, $SYS; records: rules set at run time; client: rules that the client',
      'got when it connected; rules: rules of a source; source: a source that is asked; hook: a hook of the app; default: acl_nomatch'
    ].join(' ')
  ),
  answer: oneOf(
    ['allow', 'deny', 'none', 'unasked', 'failed'],
    'none: it does not decide about this; unasked: ask=true asks it; failed: it gave no answer, which denies'
  ),
  source: optional(text('Name of the source')),
  rule: optional(RULE),
  index: optional(integer('Place of the rule in the list of its source, from 0')),
  reason_code: optional(integer('The reason code of the refusal')),
  topic: optional(text('The topic filter that a hook has put in place of the requested one'))
};

function shownRule({ access, action = 'pubsub', topic, exact, clientId, username, hasUsername, address }: AccessRule) {
  // undefined fields are not written
  return { access, action, topic, exact, clientid: clientId, username, has_username: hasUsername, ip_address: address };
}

function shownStep({ by, answer, source, rule, index, reasonCode, filter }: AccessStep) {
  return { by, answer, source, rule: rule && shownRule(rule), index, reason_code: reasonCode, topic: filter };
}

/** The rights of clients. */
export const RIGHTS: readonly Operation[] = [
  operation({
    name: 'explain_rights',
    method: 'GET',
    path: '/x/rights',
    ctl: 'rights ACTION=action TOPIC=topic --client=clientid --user=username --address=ip_address --ask',
    descr: 'Check whether a client may publish to a topic or subscribe to a topic filter, and report what decides',
    query: objectOf({
      clientid: optional(
        text('The client id. If it has a session, the rights of the client of the session are checked')
      ),
      username: optional(
        text('The user name of a client whose rights are checked by the given names, with or without a session')
      ),
      ip_address: optional(text('The IP address of such a client')),
      zone: optional(text('The zone of such a client')),
      action: oneOf(['publish', 'subscribe'], 'The requested action'),
      topic: text('The topic name, or the topic filter of a subscription'),
      ask: optional(
        flag('Also ask hooks of the app, and sources that ask something else, such as a server or a database', {
          default: false
        })
      )
    }),
    data: objectOf({
      access: oneOf(['allow', 'deny', 'unknown'], 'unknown: what was not asked may decide otherwise'),
      topic: text('The topic after rewriting; of a delayed message, the one to which it is published'),
      has_session: flag('True if the rights of the client of a session were checked'),
      clientid: text('The client id'),
      username: optional(text('The user name')),
      ip_address: optional(text('The IP address')),
      is_superuser: flag('True if it is exempt from access control'),
      decided_by: objectOf(STEP_FIELDS, { description: 'The check that decides' }),
      steps: listOf(objectOf(STEP_FIELDS), 'The checks in order; the last one has decided')
    }),
    example: {
      query: {
        clientid: 'sensor-9',
        username: 'ann',
        ip_address: '192.0.2.1',
        action: 'subscribe',
        topic: 'sensors/9'
      },
      data: {
        access: 'allow',
        topic: 'sensors/9',
        has_session: false,
        clientid: 'sensor-9',
        username: 'ann',
        ip_address: '192.0.2.1',
        is_superuser: false,
        decided_by: { by: 'default', answer: 'allow' },
        steps: [{ by: 'default', answer: 'allow' }]
      }
    },
    run: async ({ broker }, { query }) => {
      const { clientid: clientId, username, ip_address: remoteAddress, zone, action, topic, ask } = query;
      if (clientId === undefined && username === undefined && remoteAddress === undefined)
        throw new Fault('missingParameter', 'give "clientid", "username" or "ip_address"', 'clientid');
      const given = { clientId, username, remoteAddress, zone, action, topic, ask };
      const {
        access,
        client,
        hasSession,
        topic: judged,
        steps
      } = await broker.access.explain(given).catch((error: unknown) => {
        throw renamed(error, { remoteAddress: 'ip_address' });
      });
      const shown = steps.map(shownStep);
      return {
        access,
        topic: judged,
        has_session: hasSession,
        clientid: client.clientId,
        username: client.username,
        ip_address: client.transportInfo.remoteAddress,
        is_superuser: client.isSuperuser,
        decided_by: shown[shown.length - 1],
        steps: shown
      };
    }
  })
];
