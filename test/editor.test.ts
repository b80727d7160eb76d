import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import ts from 'typescript';
import { editorOf } from './support/compiler.ts';

const HEAD = `
  import { acl, type Broker, type BrokerOptions, createBroker } from 'embermq';
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
  ['createBroker({}, 5)', ['5', "Argument of type '5' is not assignable to parameter of type 'never'."]]
];

/** Calls without a mistake: the type of the data is given, or unknown; hooks know what they return. */
const CORRECT = [
  'const options: BrokerOptions<User> = {}; const typed: Broker<User> = createBroker<User>(options);',
  'const untyped: Broker = createBroker({ hooks: { authenticate: () => ({ allow: true, clientData: 5 }) } });',
  'createBroker({ hooks: { authenticate: () => new Promise((resolve) => resolve(true)) } });',
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
});
