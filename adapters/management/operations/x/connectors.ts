// Webhooks and bridges have the same operations, so a row of `ConnectorKindEntry` makes those of a kind. Only a webhook can be
// tested: whether a bridge is connected is its state. The result of a test is data, also if the server is down: the request has
// done what it was asked for.

import type { Static } from 'typebox';
import { BrokerError, type ConnectorState, InvalidInput } from '../../../../lib/index.ts';
import { Fault } from '../../../rest/index.ts';
import { anyObject, flag, integer, listOf, objectOf, optional, recordOf, text } from '../../../rest/kit/index.ts';
import { renamed } from '../../codes.ts';
import { pageOf } from '../../listing.ts';
import { type Context, type Operation, operation } from '../../operation.ts';

const NAME = text('The name: letters, digits, ".", "-" and "_"');
const STATE = objectOf({
  name: NAME,
  started: flag('True if it is started'),
  status: text('The current state; missing: it could not be created, see last_error'),
  waiting: integer('Number of queued entries'),
  figures: recordOf(integer(), 'Counters since it was created, such as sent and dropped'),
  last_error: optional(text('Why the last attempt has failed; absent after a success')),
  settings: optional(
    anyObject('The options, with ****** for secrets; absent: created by the app or the configuration of the process')
  )
});

const TEST = objectOf({
  delivered: flag('True if the server has accepted the event, with a status from 200 to 299'),
  status: optional(integer('The HTTP status of its answer; absent: there was none')),
  time_ms: integer('Time until the answer or the failure, in milliseconds'),
  error: optional(
    objectOf(
      {
        code: text('What has failed, such as HTTP_FAILED, HTTP_TIMEOUT or HTTP_STATUS'),
        message: text('The failure in words')
      },
      { description: 'Why it was not delivered; absent if it was' }
    )
  )
});

/** A kind of connector. */
interface ConnectorKindEntry {
  /** The kind as `broker.connectors` names it, also used in names of operations. */
  readonly kind: 'webhook' | 'bridge';
  /** The title, for descriptions. */
  readonly title: string;
  /** Options of an example, without the name. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** The effect of a stop on the queue, for descriptions. */
  readonly whenStopped: string;
  /** The name of a connector that the examples can change and delete. */
  readonly present: string;
}

/** A connector, without messages of errors for callers who may not see values of messages. */
function shown(connector: ConnectorState, { hidesPayloads }: Context): Static<typeof STATE> {
  const { name, isStarted, state, size, lastError, counters, settings } = connector;
  return {
    name,
    started: isStarted,
    status: state,
    waiting: size,
    figures: { ...counters },
    ...(lastError && !hidesPayloads && { last_error: lastError.message }),
    ...(settings && { settings: { ...settings } })
  };
}

/** The options of a body that is a record as shown, or that contains only the options. */
function settingsIn(body: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { settings } = body;
  const isRecord = typeof settings === 'object' && settings !== null && 'started' in body;
  return isRecord ? (settings as Readonly<Record<string, unknown>>) : body;
}

/** An error about options, under the names that the body uses. */
const fault = (kind: string) => (error: unknown) => {
  const field = error instanceof InvalidInput ? error.field : '';
  throw renamed(error, { [field]: field.replace(`${kind}.`, '') });
};

function operationsOf(row: ConnectorKindEntry): Operation[] {
  const { kind, title, settings, present } = row;
  const all = `/x/${kind}s` as const;
  const one = `${all}/:name` as const;
  const BODY = anyObject(`Its name and the options of a ${kind}, as in the config file`);
  const CHANGE = anyObject('All options, or the record with its settings; ****** for a secret keeps the current value');
  const unknown = (name: string) => new Fault('unknownRecord', `there is no ${kind} "${name}"`, 'not_found');
  const params = { name: present };
  return [
    operation({
      name: `list_${kind}s`,
      method: 'GET',
      path: all,
      ctl: { [`${kind}s list`]: 'name started status waiting last_error' },
      descr: `List the ${kind}s with their states`,
      paged: 'max',
      hasCursor: true,
      data: listOf(STATE),
      example: {},
      run: (context) => {
        const { broker, page } = context;
        const shape = (connector: ConnectorState) => shown(connector, context);
        return pageOf(broker.connectors.list(kind), page, shape, { keyOf: ({ name }) => name });
      }
    }),
    operation({
      name: `create_${kind}`,
      method: 'POST',
      path: all,
      ctl: `${kind}s add FILE`,
      descr: `Create a ${title}, which is started now and at each start of the broker`,
      body: BODY,
      data: STATE,
      example: { body: { name: 'second', ...settings } },
      audited: ({ body: { name } }) => ({ name: `${name}` }),
      run: async (context, { body }) =>
        shown(await context.broker.connectors.create(kind, body).catch(fault(kind)), context)
    }),
    operation({
      name: `lookup_${kind}`,
      method: 'GET',
      path: one,
      ctl: `${kind}s show NAME`,
      descr: `Look up a ${title}`,
      data: STATE,
      example: { params },
      run: (context, { params: { name } }) => {
        const found = context.broker.connectors.get(kind, name);
        if (found === undefined) throw unknown(name);
        return shown(found, context);
      }
    }),
    operation({
      name: `update_${kind}`,
      method: 'PUT',
      path: one,
      ctl: `${kind}s change NAME FILE`,
      descr: `Replace the options of a ${title}; if they change, its queue is dropped unless isPersisted is set`,
      body: CHANGE,
      data: STATE,
      example: { params, body: settings },
      run: async (context, { params: { name }, body }) =>
        shown(await context.broker.connectors.change(kind, name, { ...settingsIn(body) }).catch(fault(kind)), context)
    }),
    operation({
      name: `delete_${kind}`,
      method: 'DELETE',
      path: one,
      ctl: `${kind}s remove NAME`,
      descr: `Delete a ${title}`,
      example: { params },
      run: ({ broker }, { params: { name } }) => broker.connectors.delete(kind, name)
    }),
    ...defineSwitches(row, one)
  ];
}

function defineSwitches(
  { kind, title, whenStopped, present }: ConnectorKindEntry,
  one: `/x/${ConnectorKindEntry['kind']}s/:name`
): Operation[] {
  const params = { name: present };
  return [
    operation({
      name: `start_${kind}`,
      method: 'POST',
      path: `${one}/start`,
      ctl: `${kind}s start NAME`,
      descr: `Start a ${title}`,
      example: { params },
      run: async ({ broker }, { params: { name } }) => {
        await broker.connectors.start(kind, name);
      }
    }),
    operation({
      name: `stop_${kind}`,
      method: 'POST',
      path: `${one}/stop`,
      ctl: `${kind}s stop NAME`,
      descr: `Stop a ${title}; ${whenStopped}`,
      example: { params },
      run: async ({ broker }, { params: { name } }) => {
        await broker.connectors.stop(kind, name);
      }
    })
  ];
}

const TEST_WEBHOOK = operation({
  name: 'test_webhook',
  method: 'POST',
  path: '/x/webhooks/:name/test',
  ctl: 'webhooks test NAME',
  descr: 'Send one event that is marked as a test to the server of a webhook, and return the result',
  data: TEST,
  example: { params: { name: 'first' }, data: { delivered: true, status: 200, time_ms: 12 } },
  run: async ({ broker }, { params: { name } }) => {
    const { status, durationMs, error } = await broker.connectors.test('webhook', name);
    const code = error instanceof BrokerError ? error.code : 'HTTP_FAILED';
    return {
      delivered: error === undefined,
      status,
      time_ms: Math.round(durationMs),
      error: error && { code, message: error.message }
    };
  }
});

/** Webhooks and bridges, which can be created, changed, started and stopped at run time. */
export const CONNECTORS: readonly Operation[] = [
  ...operationsOf({
    kind: 'webhook',
    title: 'webhook',
    settings: { url: 'http://127.0.0.1:3000/events', rules: [{ event: 'client.connected' }] },
    whenStopped: 'queued events are still sent',
    present: 'first'
  }),
  TEST_WEBHOOK,
  ...operationsOf({
    kind: 'bridge',
    title: 'bridge to another MQTT server',
    settings: { url: 'mqtt://127.0.0.1:1', out: [{ filter: 'sensors/#', qos: 1 }] },
    whenStopped: 'its queue is kept',
    present: 'first'
  })
];
