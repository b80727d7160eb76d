import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import ts from 'typescript';
import { EVENT_NAMES, EVENTS } from '../lib/events/catalogue.ts';
import { EVENT_ABOUT, EVENT_FIELD_ABOUT } from '../lib/events/event-texts.ts';
import { editorOf } from './support/compiler.ts';

const HEAD = `
  import { acl, type Broker, type BrokerOptions, createBroker } from 'embermq';
  import { createTestBroker, setupBroker } from 'embermq/testing';
  interface User { readonly tenant: string }
`;

/** A call with mistakes, and the faults that the compiler reports: the name at which each is, and the beginning of its text. */
type Mistakes = readonly [call: string, ...faults: (readonly [at: string, text: string])[]];

const UNKNOWN = 'Object literal may only specify known properties,';
const MISTAKES: readonly Mistakes[] = [
  [
    'createBroker({ maxPacketSize: true })',
    ['maxPacketSize', "Type 'true' is not assignable to type 'string | number"]
  ],
  [
    'createBroker({ maxPacketSiz: 5 })',
    ['maxPacketSiz', `${UNKNOWN} but 'maxPacketSiz' does not exist in type 'Broker`]
  ],
  [
    'createBroker({ maxQoS: 1 })',
    ['maxQoS', `${UNKNOWN} and 'maxQoS' does not exist in type 'BrokerOptions<unknown> &`]
  ],
  ['createBroker({ allowAnonymous: 0 })', ['allowAnonymous', "Type 'number' is not assignable to type 'boolean"]],
  [
    "createBroker({ mqueueDefaultPriority: 'low' })",
    ['mqueueDefaultPriority', `Type '"low"' is not assignable to type '"lowest" | "highest"`]
  ],
  ['createBroker({ auth: 5 })', ['auth', "Type 'number' is not assignable to type 'readonly AuthSource<unknown>[]'."]],
  ['createBroker({ auth: [{ name: 5 }] })', ['name', "Type 'number' is not assignable to type 'string'."]],
  [
    "createBroker({ auth: [acl([{ access: 'permit', topic: '#' }])] })",
    ['access', `Type '"permit"' is not assignable to type '"allow" | "deny"'.`]
  ],
  [
    'createBroker({ hooks: { authenticat: () => true } })',
    ['authenticat', `${UNKNOWN} but 'authenticat' does not exist in type 'Hooks<unknown>'.`]
  ],
  ["createBroker({ hooks: { deliver: () => 'x' } })", ['deliver', "Type '() => string' is not assignable to type"]],
  [
    'createBroker({ hooks: { deliver: ({ message }) => message.topc === message.topic } })',
    ['topc', "Property 'topc' does not exist on type 'Message<unknown>'. Did you mean 'topic'?"]
  ],
  [
    'createBroker({ zones: { inner: { maxQos: 1 } } })',
    ['maxQos', `${UNKNOWN} and 'maxQos' does not exist in type 'ZoneInput'.`]
  ],
  ['createBroker({ store: {} })', ['store', "Type '{}' is missing the following properties from type 'Store'"]],
  ['createBroker({ logger: 5 })', ['logger', "Type 'number' is not assignable to type 'Logger'."]],
  ["createBroker('data')", ["'data'", `Type '"data"' has no properties in common with type 'BrokerOptions<unknown>`]],
  [
    'createBroker({ maxPacketSize: true, auth: 5, hooks: { deliver: () => true, authenticate: 4 } })',
    ['maxPacketSize', "Type 'true' is not assignable"],
    ['auth', "Type 'number' is not assignable"],
    ['authenticate', "Type 'number' is not assignable"]
  ],
  [
    'createBroker<User>({ auth: 5 })',
    ['auth', "Type 'number' is not assignable to type 'readonly AuthSource<User>[]'."]
  ],
  [
    'createBroker<User>({ maxQoS: 1 })',
    ['maxQoS', `${UNKNOWN} and 'maxQoS' does not exist in type 'BrokerOptions<User>'.`]
  ],
  [
    "createBroker({ maxPacketSize: true, auth: 5, hooks: { deliver: ({ message }) => message.topic === 'a' } })",
    ['maxPacketSize', "Type 'true' is not assignable"],
    ['auth', "Type 'number' is not assignable"]
  ],
  [
    "createBroker({ auth: [{ name: 'a', authenticate: ({ client }) => client.clientId === 'a', nam: 3 }] })",
    ['nam', `${UNKNOWN} but 'nam' does not exist in type 'AuthSource<unknown>'.`]
  ],
  [
    "createTestBroker({ maxPacketSize: true, hooks: { deliver: ({ message }) => message.topic === 'a' } })",
    ['maxPacketSize', "Type 'true' is not assignable"]
  ],
  [
    "setupBroker(globalThis as never, { maxPacketSize: true, hooks: { deliver: ({ message }) => message.topic === 'a' } })",
    ['maxPacketSize', "Type 'true' is not assignable"]
  ],
  ['createBroker({}, 5)', ['5', "Argument of type '5' is not assignable to parameter of type 'never'."]]
];

/** Calls without a mistake: the type of the data is given, or unknown; hooks know what they return. */
const CORRECT = [
  'const options: BrokerOptions<User> = {}; const typed: Broker<User> = createBroker<User>(options);',
  'const untyped: Broker = createBroker({ hooks: { authenticate: () => ({ allow: true, clientData: 5 }) } });',
  'createBroker({ hooks: { authenticate: () => new Promise((resolve) => resolve(true)) } });',
  "({ createBroker }).createBroker({ hooks: { deliver: ({ message }) => message.topic === 'a' } }).on('error', ({ during }) => during);",
  'createBroker<User>({ hooks: { authenticate: () => new Promise((resolve) => resolve({ allow: true, clientData: { tenant: "a" } })) } });',
  "createBroker<User>({ hooks: { deliver: ({ client }) => client.data?.tenant === 'a' } });",
  'const wrapped = <Data>(given: BrokerOptions<Data>): Broker<Data> => createBroker<Data>(given);',
  'const first: Parameters<typeof createBroker>[0] = { maxPacketSize: 5 };'
];

describe('An editor', () => {
  it('shows one fault for each mistake in the options of a broker, at the option', () => {
    const code = `${HEAD}${MISTAKES.map(([call]) => `${call};\n`).join('')}${CORRECT.join('\n')}`;
    const { service, path } = editorOf(code);
    const firstLine = HEAD.split('\n').length - 1;
    const found = service.getSemanticDiagnostics(path).map(({ start = 0, length, messageText }) => ({
      row: code.slice(0, start).split('\n').length - 1 - firstLine,
      at: code.slice(start, start + (length ?? 0)),
      text: ts.flattenDiagnosticMessageText(messageText, '\n')
    }));
    for (const [row, [call, ...faults]] of MISTAKES.entries()) {
      const here = found.filter((fault) => fault.row === row);
      const shown = here.map(({ at, text }, number) => [at, text.slice(0, faults[number]?.[1].length)]);
      assert.deepEqual(shown, faults, call);
    }
    assert.deepEqual(
      found.filter(({ row }) => row >= MISTAKES.length),
      []
    );
  });

  it('shows the parameter of each listener as the type of its event, and the text of the event and of each field', () => {
    const calls = EVENT_NAMES.map((name) => {
      const fields = Object.keys(EVENTS[name].fields);
      return `broker.on('${name}', (e) => [${fields.map((field) => `e.${field}`)}]);
        broker.on('${name}', ({ ${fields} }) => undefined); ({} as BrokerEvents)['${name}'];\n`;
    });
    const hover = hoverOf(
      `import { type BrokerEvents, createBroker } from 'embermq'; const broker = createBroker();\n${calls.join('')}`
    );
    for (const name of EVENT_NAMES) {
      const start = `broker.on('${name}', (`;
      const shown = /^\(parameter\) e: (\w+Event)(?:<unknown>)?$/.exec(hover(start, 'e').type);
      assert.equal(shown?.[1].toLowerCase(), eventTypeName(name).toLowerCase());
      assert.equal(hover('', `({} as BrokerEvents)['${name}'`, `${name}'`).text, EVENT_ABOUT[name]);
      for (const field of Object.keys(EVENTS[name].fields)) {
        const about = EVENT_FIELD_ABOUT[`${name} ${field}`] ?? EVENT_FIELD_ABOUT[field];
        assert.ok(about.length > 5);
        const member = hover(start, `e.${field}`, field);
        assert.equal(member.text, about, `${name} ${field}`);
        assert.match(member.type, new RegExp(`^\\(property\\) ${shown?.[1]}(<unknown>)?\\.${field}: (?!any)`));
        assert.equal(hover(`broker.on('${name}', ({`, field).text, about, `${name} ${field}`);
      }
    }
  });

  it('shows the data of clients in the values of events with their own type', () => {
    const hover = hoverOf(`${HEAD} declare const broker: Broker<User>;
      broker.on('client.connected', (e) => e.client.data);
      const next = await broker.nextEvent('error', { where: (v) => v.client?.data?.tenant === '' });`);
    assert.equal(hover("'client.connected', (", 'e').type, '(parameter) e: ClientConnectedEvent<User>');
    assert.equal(hover('e.client.', 'data').type, '(property) ClientInfo<User>.data: User | undefined');
    assert.equal(hover('const ', 'next').type, 'const next: BrokerErrorEvent<User>');
    assert.equal(hover('where: (', 'v').type, '(parameter) v: BrokerErrorEvent<User>');
  });

  it('shows the parameter of each hook as a named type', () => {
    const hooks = ['preConnect', 'authenticate', 'authorizePublish', 'authorizeSubscribe', 'publish', 'deliver'];
    const hover = hoverOf(`${HEAD} const broker = createBroker();
      ${hooks.map((name) => `broker.hook('${name}', (request) => { request.client; return false; });`).join('\n')}`);
    for (const name of hooks) {
      const type = `${name[0].toUpperCase()}${name.slice(1)}Request`;
      assert.equal(hover(`'${name}', (`, 'request').type, `(parameter) request: ${type}<unknown>`);
      assert.notEqual(hover(`'${name}', (`, 'request.client', 'client').text, '');
    }
  });

  it('shows the text of each key in tables of properties and of parameters', () => {
    const keys = ['type', 'about', 'default', 'unit', 'title', 'required', 'min', 'isSecret', 'isTemplate'];
    const row =
      "{ type: 'integer', about: 'x', default: 1, unit: 'ms', title: 'y', required: true, min: 0, isSecret: true, isTemplate: true }";
    const hover = hoverOf(`import type { ActionType, ResourceType, SinkType, SourceType } from 'embermq/adapter';
      const sink: Partial<SinkType> = { properties: { url: ${row} } };
      const source: Partial<SourceType> = { properties: { url: ${row} } };
      const action: Partial<ActionType> = { params: { url: ${row} } };
      const resource: Partial<ResourceType> = { params: { url: ${row} } };`);
    for (const place of ['sink', 'source', 'action', 'resource'])
      for (const key of keys) assert.ok(hover(`const ${place}:`, `${key}: `).text.length > 5, `${place} ${key}`);
  });

  it('declares the values of events as the catalogue has them', () => {
    const code = `import type { BrokerEvents, EVENTS, EventName, EventValue } from 'embermq';
      type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
      type Computed<Data> = { readonly [E in EventName]: EventValue<(typeof EVENTS)[E]['fields'], Data> };
      interface User { readonly tenant: string }
      const isSame: Same<BrokerEvents, Computed<unknown>> = true;
      const isSameWithData: Same<BrokerEvents<User>, Computed<User>> = true;
      const isOther: Same<BrokerEvents<User>, Computed<unknown>> = false;
      const isLarger: Same<BrokerEvents, Computed<unknown> & { readonly other: number }> = false;`;
    const { service, path } = editorOf(code);
    assert.deepEqual(
      service.getSemanticDiagnostics(path).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n')),
      []
    );
  });
});

/** The name of the type of an event, in any case. */
function eventTypeName(event: string): string {
  return event === 'error' ? 'BrokerErrorEvent' : `${event.replace(/[._]/g, '')}Event`;
}

/**
 * Opens a file in an editor.
 * @returns a function that points at `at`, the last part of `text`, which is the first such text behind `before`, and returns what the editor shows
 */
function hoverOf(code: string): (before: string, text: string, at?: string) => { type: string; text: string } {
  const { service, path } = editorOf(code);
  return (before, text, at = text) => {
    const from = code.indexOf(before);
    assert.ok(from >= 0, before);
    const start = code.indexOf(text, from + before.length);
    assert.ok(start >= 0, text);
    const info =
      service.getQuickInfoAtPosition(path, start + text.length - at.length) ?? assert.fail(`${before}${text}`);
    return {
      type: ts.displayPartsToString(info.displayParts),
      text: ts.displayPartsToString(info.documentation)
    };
  };
}
