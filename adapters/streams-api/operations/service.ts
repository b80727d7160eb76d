// A row for each operation about the service as a whole. An export contains the secrets of rules, so viewers may not
// have it. Lists of types and functions come from the running service, so they include what plugins have defined.

import { arch, platform } from 'node:os';
import { type Field, fieldsOf, jsonTypeOf } from '../../../lib/adapter.ts';
import { Fault } from '../../rest/index.ts';
import { any, anyObject, componentOf, integer, listOf, objectOf, optional, text } from '../../rest/kit/index.ts';
import { type Operation, operation } from '../operation.ts';
import { RULESET, rulesetOf, shownRuleset } from '../ruleset.ts';

const VERSION = componentOf('Service', 'The service that runs stream rules', {
  version: text('The version of the broker'),
  os: text('The operating system, as Node names it: linux'),
  arch: text('The architecture of the processor, as Node names it: x64'),
  upTimeSeconds: integer('Seconds since the start of the process')
});

function defineService(method: 'GET' | 'POST'): Operation {
  return operation({
    name: method === 'GET' ? 'service' : 'servicePosted',
    method,
    path: '/',
    descr: 'Version, operating system and uptime',
    isReading: true,
    data: VERSION,
    example: {},
    run: ({ broker }) => ({
      version: broker.version,
      os: platform(),
      arch: arch(),
      upTimeSeconds: Math.floor(process.uptime())
    })
  });
}

/** A type of sources or sinks, in the form of lists. */
function shownType({ name, about }: { readonly name: string; readonly about: string }): object {
  return { name, about: { description: { en_US: about } } };
}

const NAME = text('The name of the type');
const ABOUT = anyObject('The description, as description.en_US');
const TYPE = componentOf('Type', 'A type of sources or sinks', { name: NAME, about: ABOUT });
const DETAILS = componentOf('TypeDetails', 'A type of sources or sinks, with its properties', {
  name: NAME,
  about: ABOUT,
  properties: listOf(anyObject(), 'The properties, each with name, type and hint')
});

function shownProperty([name, row]: readonly [string, Field]): object {
  const { about, required, choices, default: fallback } = row;
  return {
    name,
    type: jsonTypeOf(row),
    optional: required !== true,
    ...(fallback === undefined ? {} : { default: fallback }),
    ...(choices === undefined ? {} : { values: choices }),
    ...(row.isSecret === true && { secret: true }),
    hint: { en_US: about }
  };
}

function typesOf(what: 'sources' | 'sinks'): readonly Operation[] {
  return [
    operation({
      name: `list${what === 'sources' ? 'Source' : 'Sink'}Types`,
      method: 'GET',
      path: `/metadata/${what}` as '/metadata/sources',
      descr: `The types of ${what}`,
      data: listOf(TYPE),
      example: {},
      run: async ({ streams }) => (await streams[what]()).map(shownType)
    }),
    operation({
      name: `describe${what === 'sources' ? 'Source' : 'Sink'}Type`,
      method: 'GET',
      path: `/metadata/${what}/:name` as '/metadata/sources/:name',
      descr: `A type of ${what} with its properties`,
      errorPrefix: ({ name }) => `describe ${what} ${name} error`,
      data: DETAILS,
      run: async ({ streams }, { params: { name } }) => {
        const found = (await streams[what]()).find((one) => one.name === name);
        if (found === undefined) throw new Fault('notFound', 'not found');
        return {
          ...shownType(found),
          properties: Object.entries(fieldsOf(found.properties)).map(shownProperty)
        };
      }
    })
  ];
}

/** The service itself, its documents, and its complete contents. */
export const SERVICE: readonly Operation[] = [
  defineService('GET'),
  defineService('POST'),
  operation({
    name: 'ping',
    method: 'GET',
    path: '/ping',
    descr: 'An empty answer',
    example: { data: '' },
    run: () => ''
  }),
  operation({
    name: 'openapi',
    method: 'GET',
    path: '/openapi.json',
    descr: 'The OpenAPI document of this interface',
    data: anyObject(),
    example: {},
    run: (context) => context.document()
  }),
  operation({
    name: 'exportRuleset',
    method: 'POST',
    path: '/ruleset/export',
    ctl: 'stream export',
    // contains the secrets of rules, so viewers may not use it
    descr: 'All streams, tables and rules, each as its text, and sections, connections and schemas, with their secrets',
    errorPrefix: 'export error',
    data: RULESET,
    filename: 'ruleset.json',
    example: {},
    run: async ({ streams }) => shownRuleset(await streams.export())
  }),
  operation({
    name: 'importRuleset',
    method: 'POST',
    path: '/ruleset/import',
    ctl: 'stream import FILE=content',
    descr: 'Create or replace the streams, tables, rules and configuration of an export',
    errorPrefix: 'import error',
    body: objectOf({
      ...RULESET.properties,
      content: optional(any('The export, or its text, instead of the other fields'))
    }),
    notJson: (_body, reason) => `Invalid body: Error decoding json: ${reason}`,
    example: {
      body: { content: '{"streams":{},"tables":{},"rules":{}}' },
      data: 'imported 0 streams, 0 tables and 0 rules'
    },
    run: async ({ streams }, { body }) => {
      const counts = await streams.import(rulesetOf(body));
      const { config, streams: ofStreams, tables, rules } = counts;
      const more = config === undefined ? '' : `, and ${config} sections, connections and schemas`;
      return `imported ${ofStreams} streams, ${tables} tables and ${rules} rules${more}`;
    }
  }),
  operation({
    name: 'listBuiltinFunctions',
    method: 'GET',
    path: '/metadata/functions',
    ctl: { 'stream sql-functions': 'name kind params about' },
    descr: 'The functions of statements',
    data: listOf(
      componentOf('Function', 'A function of statements', {
        name: text('The name'),
        family: text('The group of the function, such as math'),
        kind: text('scalar, context, aggregate, analytic, rows or columns'),
        params: listOf(text(), 'The types of the arguments'),
        about: text('The description')
      })
    ),
    example: {},
    run: async ({ streams }) =>
      (await streams.functions()).map(({ name, family, kind, params, about }) => ({
        name,
        family,
        kind,
        params,
        about
      }))
  }),
  ...typesOf('sources'),
  ...typesOf('sinks')
];
