// Configuration that makes other servers readable over this interface alone: sections of source properties, connections
// and schemas. Bodies are the properties; secrets are shown as `******`, which keeps the current value if it is sent
// back. What is in use is not deleted.

import type { StreamConfigKey, StreamConfigState, StreamRuleStatus, StreamsApi } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { anyObject, componentOf, listOf, objectOf, oneOf, optional, recordOf, text } from '../../rest/kit/index.ts';
import { hasCode } from '../faults.ts';
import { type Operation, operation } from '../operation.ts';
import { withWarnings } from '../reply.ts';

const PROPERTIES = anyObject('The properties of the type; secrets are shown as ******');
const PROTOBUF = { kind: 'schema', type: 'protobuf' } as const;
const CONNECTION = componentOf('Connection', 'A connection that sources and sinks can share', {
  id: text('The id'),
  typ: text('The type of sources and sinks that can use it'),
  props: PROPERTIES,
  status: oneOf(
    ['connected', 'connecting', 'disconnected'],
    'The state of the running stream rules that use it; disconnected if there are none'
  ),
  err: text('Why it is not connected; empty if that is not known')
});
const SCHEMA = componentOf('Schema', 'A schema of payloads', {
  type: text('The format, such as protobuf'),
  name: text('The name'),
  content: text('The text of the .proto file')
});
const CONTENT = text('The text of the .proto file');

/** @throws Fault notFound */
async function found(streams: StreamsApi, key: StreamConfigKey): Promise<StreamConfigState> {
  const entry = await streams.config.get(key);
  if (entry === undefined) throw await missing(streams, key);
  return entry;
}

/** The fault for an entry that does not exist. It names the type if there is none. */
async function missing(streams: StreamsApi, { kind, type, name }: StreamConfigKey): Promise<Fault> {
  if (kind === 'confKey') await checkType(streams, type ?? '');
  return new Fault('notFound', `${name} is not found`);
}

/** @throws Fault notFound if there is no source of a type */
async function checkType(streams: StreamsApi, type: string): Promise<void> {
  if ((await streams.sources()).some(({ name }) => name.toLowerCase() === type.toLowerCase())) return;
  throw new Fault('notFound', `unknown source type ${type}`);
}

/** @throws Fault notFound */
async function drop(streams: StreamsApi, key: StreamConfigKey): Promise<void> {
  if (!(await streams.config.delete(key))) throw await missing(streams, key);
}

/** Refuse other members of a body, such as a misspelled `props`, but not those of a record that is sent back. @throws Fault */
function only(...known: readonly string[]): (body: object) => void {
  return (body) => {
    const name = Object.keys(body).find((one) => !known.includes(one));
    if (name !== undefined)
      throw new Fault(
        'wrongParameter',
        `the parameter ${JSON.stringify(name)} is unknown; known are ${known.join(', ')}`
      );
  };
}
const CONNECTION_ONLY = only('id', 'typ', 'props', 'status', 'err');
const SCHEMA_ONLY = only('name', 'content', 'type');

/** The type of a path that does not exist is 404. */
function faultOf(error: unknown): Fault | undefined {
  return hasCode(error, 'SOURCE_NOT_FOUND') ? new Fault('notFound', (error as Error).message) : undefined;
}

/** Returns the status of a rule by its id; undefined if it has been deleted meanwhile. */
type StatusOf = (rule: string) => Promise<StreamRuleStatus | undefined>;

/** A connection in the form of answers, with the state of the sources and sinks that use it. */
async function shown(
  { name, type, properties, use }: StreamConfigState,
  statusOf: StatusOf,
  hidesPayloads: boolean
): Promise<object> {
  const states: { readonly status: unknown; readonly reason: unknown }[] = [];
  for (const { rule, node } of use.nodes) {
    const { state, metrics = {} } = (await statusOf(rule)) ?? {};
    const status = metrics[`${node}_0_connection_status`];
    if (state !== 'connected' || status === undefined) continue;
    states.push({ status, reason: metrics[`${node}_0_connection_last_disconnected_message`] });
  }
  const lost = states.find(({ status }) => status === -1);
  const isConnected = states.length > 0 && states.every(({ status }) => status === 1);
  const waiting = states.length === 0 || lost !== undefined ? 'disconnected' : 'connecting';
  return {
    id: name,
    typ: type,
    props: properties,
    status: isConnected ? 'connected' : waiting,
    err: hidesPayloads ? '' : (lost?.reason ?? '')
  };
}

/** The statuses of rules. Each is made once, because rules may have many metrics. */
function statuses({ rules }: StreamsApi): StatusOf {
  const known = new Map<string, ReturnType<StatusOf>>();
  return (id) => {
    let status = known.get(id);
    if (status === undefined) known.set(id, (status = rules.status(id).catch(() => undefined)));
    return status;
  };
}

/** The sections of the properties of a source type, which CONF_KEY selects. */
const SECTIONS: readonly Operation[] = [
  operation({
    name: 'listConfKeys',
    method: 'GET',
    path: '/metadata/sources/:type/confKeys',
    ctl: 'stream sections TYPE',
    descr: 'The sections of properties of a source type that were created over this interface, by name',
    errorPrefix: 'list source configurations error',
    data: recordOf(PROPERTIES),
    example: { params: { type: 'mqtt' } },
    run: async ({ streams }, { params: { type } }) => {
      const all = await streams.config.list('confKey');
      const own = all.filter((entry) => entry.type === type.toLowerCase());
      if (own.length === 0) await checkType(streams, type);
      return Object.fromEntries(own.map(({ name, properties }) => [name, properties]));
    }
  }),
  operation({
    name: 'describeConfKey',
    method: 'GET',
    path: '/metadata/sources/:type/confKeys/:key',
    ctl: 'stream section TYPE NAME',
    descr: 'The properties of a section',
    errorPrefix: 'describe source configuration error',
    data: PROPERTIES,
    run: async ({ streams }, { params: { type, key } }) =>
      (await found(streams, { kind: 'confKey', type, name: key })).properties
  }),
  operation({
    name: 'putConfKey',
    method: 'PUT',
    path: '/metadata/sources/:type/confKeys/:key',
    ctl: 'stream set-section TYPE NAME FILE',
    descr: 'Create or replace a section of properties; streams select it by the option CONF_KEY',
    errorPrefix: 'save source configuration error',
    body: PROPERTIES,
    example: {
      params: { type: 'mqtt', key: 'plant' },
      body: { server: 'tcp://127.0.0.1:1883' },
      data: 'Configuration plant of source mqtt was saved.'
    },
    faultOf,
    audited: ({ body }) => ({ properties: Object.keys(body) }),
    run: async ({ streams }, { params: { type, key }, body }) => {
      const warnings = await streams.config.set({ kind: 'confKey', type, name: key, properties: body });
      return withWarnings(`Configuration ${key} of source ${type} was saved.`, warnings);
    }
  }),
  operation({
    name: 'dropConfKey',
    method: 'DELETE',
    path: '/metadata/sources/:type/confKeys/:key',
    ctl: 'stream drop-section TYPE NAME',
    descr: 'Drop a section of properties that no stream uses',
    errorPrefix: 'delete source configuration error',
    run: async ({ streams }, { params: { type, key } }) => {
      await drop(streams, { kind: 'confKey', type, name: key });
      return `Configuration ${key} of source ${type} is dropped.`;
    }
  })
];

/** The connections, whose properties sections and actions take over. */
const CONNECTIONS: readonly Operation[] = [
  operation({
    name: 'createConnection',
    method: 'POST',
    path: '/connections',
    ctl: 'stream add-connection FILE',
    descr: 'Create a connection; sections and actions use it by the property connectionSelector',
    errorPrefix: 'create connection error',
    first: CONNECTION_ONLY,
    body: objectOf({
      id: text('The identifier', { min: 1 }),
      typ: text('The type of source or sink: mqtt'),
      props: optional(PROPERTIES)
    }),
    status: 201,
    example: {
      body: { id: 'plant', typ: 'mqtt', props: { server: 'tcp://127.0.0.1:1883' } },
      data: 'Connection plant was created.'
    },
    audited: ({ body: { typ, props = {} } }) => ({ typ, properties: Object.keys(props) }),
    run: async ({ streams }, { body: { id, typ, props = {} } }) => {
      const entry = { kind: 'connection', type: typ, name: id, properties: props } as const;
      return withWarnings(`Connection ${id} was created.`, await streams.config.set(entry, { isNew: true }));
    }
  }),
  operation({
    name: 'listConnections',
    method: 'GET',
    path: '/connections',
    ctl: { 'stream connections': 'id typ status err' },
    descr: 'The connections with their state',
    errorPrefix: 'list connections error',
    data: listOf(CONNECTION),
    example: {},
    run: async ({ streams, hidesPayloads }) => {
      const statusOf = statuses(streams);
      const all = await streams.config.list('connection');
      return Promise.all(all.map((entry) => shown(entry, statusOf, hidesPayloads)));
    }
  }),
  operation({
    name: 'describeConnection',
    method: 'GET',
    path: '/connections/:id',
    ctl: 'stream connection ID',
    descr: 'A connection with its state',
    errorPrefix: 'describe connection error',
    data: CONNECTION,
    run: async ({ streams, hidesPayloads }, { params: { id } }) =>
      shown(await found(streams, { kind: 'connection', name: id }), statuses(streams), hidesPayloads)
  }),
  operation({
    name: 'replaceConnection',
    method: 'PUT',
    path: '/connections/:id',
    ctl: 'stream change-connection ID FILE',
    descr: 'Replace the properties of a connection; rules use them from their next start',
    errorPrefix: 'update connection error',
    first: CONNECTION_ONLY,
    body: objectOf({
      typ: optional(text('The same as before')),
      props: PROPERTIES,
      id: optional(text('The same as in the path'))
    }),
    audited: ({ body: { typ, props } }) => ({ typ, properties: Object.keys(props) }),
    run: async ({ streams }, { params: { id }, body: { id: given = id, typ, props } }) => {
      if (given !== id) throw new Fault('refused', `invalid id ${given}: the path has ${id}`);
      const { type } = await found(streams, { kind: 'connection', name: id });
      const entry = { kind: 'connection', type: typ ?? type, name: id, properties: props } as const;
      const warnings = await streams.config.set(entry, { isNew: false });
      return withWarnings(`Connection ${id} was updated.`, warnings);
    }
  }),
  operation({
    name: 'dropConnection',
    method: 'DELETE',
    path: '/connections/:id',
    ctl: 'stream drop-connection ID',
    descr: 'Drop a connection that nothing uses',
    errorPrefix: 'delete connection error',
    run: async ({ streams }, { params: { id } }) => {
      await drop(streams, { kind: 'connection', name: id });
      return `Connection ${id} is dropped.`;
    }
  })
];

/** The schemas of the format protobuf. */
const SCHEMAS: readonly Operation[] = [
  operation({
    name: 'createSchema',
    method: 'POST',
    path: '/schemas/protobuf',
    ctl: 'stream add-schema NAME=name FILE=content',
    descr: 'Create a schema; streams use its messages as SCHEMAID="NAME.MESSAGE"',
    errorPrefix: 'create schema error',
    first: SCHEMA_ONLY,
    body: objectOf({ name: text('The name', { min: 1 }), content: CONTENT }),
    status: 201,
    run: async ({ streams }, { body: { name, content } }) => {
      await streams.config.set({ ...PROTOBUF, name, properties: { content } }, { isNew: true });
      return `protobuf schema ${name} is created`;
    }
  }),
  operation({
    name: 'listSchemas',
    method: 'GET',
    path: '/schemas/protobuf',
    ctl: { 'stream schemas': 'name' },
    descr: 'The names of the schemas',
    errorPrefix: 'list schemas error',
    data: listOf(text()),
    example: {},
    run: async ({ streams }) => (await streams.config.list('schema')).map(({ name }) => name)
  }),
  operation({
    name: 'describeSchema',
    method: 'GET',
    path: '/schemas/protobuf/:name',
    ctl: 'stream schema NAME',
    descr: 'A schema',
    errorPrefix: 'describe schema error',
    data: SCHEMA,
    run: async ({ streams }, { params: { name } }) => {
      const { type, properties } = await found(streams, { ...PROTOBUF, name });
      return { type, name, content: properties.content };
    }
  }),
  operation({
    name: 'replaceSchema',
    method: 'PUT',
    path: '/schemas/protobuf/:name',
    ctl: 'stream replace-schema NAME FILE=content',
    descr: 'Replace a schema, or create it; rules use it from their next start',
    errorPrefix: 'update schema error',
    first: SCHEMA_ONLY,
    body: objectOf({
      name: optional(text('The same as in the path')),
      content: CONTENT
    }),
    run: async ({ streams }, { params: { name }, body }) => {
      if (body.name !== undefined && body.name !== name)
        throw new Fault('refused', `invalid name ${body.name}: the path has ${name}`);
      await streams.config.set({ ...PROTOBUF, name, properties: { content: body.content } });
      return `protobuf schema ${name} is updated`;
    }
  }),
  operation({
    name: 'dropSchema',
    method: 'DELETE',
    path: '/schemas/protobuf/:name',
    ctl: 'stream drop-schema NAME',
    descr: 'Drop a schema that nothing uses',
    errorPrefix: 'delete schema error',
    run: async ({ streams }, { params: { name } }) => {
      await drop(streams, { ...PROTOBUF, name });
      return `protobuf schema ${name} is deleted`;
    }
  })
];

/** Sections of source properties, connections and schemas. */
export const CONFIGURATION: readonly Operation[] = [...SECTIONS, ...CONNECTIONS, ...SCHEMAS];
