// Streams and tables have the same operations, so the rows are made for both kinds from `NAMES`. A statement is
// executed at either path, whatever kind it is about; only a replacement must be of the kind of its path. Sentences
// of answers and faults are the documented ones.

import { describeStream, describeStreamText } from '../../../lib/adapter.ts';
import { SqlError, type StreamKind, type StreamsApi } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { flag, listOf, objectOf, optional, text } from '../../rest/kit/index.ts';
import { hasCode } from '../faults.ts';
import { type Operation, operation } from '../operation.ts';
import { type Ddl, ddlOf, STREAM } from '../stream-forms.ts';

const NAMES: Readonly<Record<StreamKind, { readonly title: string; readonly example: string; readonly sql: string }>> =
  {
    stream: { title: 'Stream', example: 'demo', sql: 'CREATE STREAM demo () WITH (DATASOURCE="demo", FORMAT="json")' },
    table: {
      title: 'Table',
      example: 'names',
      sql: 'CREATE TABLE names () WITH (DATASOURCE="names.json", TYPE="file")'
    }
  };

function missing(message: string): Fault {
  return new Fault('notFound', message);
}

function other(kind: StreamKind): StreamKind {
  return kind === 'stream' ? 'table' : 'stream';
}

/**
 * Drop a stream or a table.
 * @throws Fault with the documented message
 */
async function drop(streams: StreamsApi, kind: StreamKind, name: string, force: boolean): Promise<string> {
  try {
    await streams.delete(kind, name, { force });
  } catch (error) {
    if (hasCode(error, 'STREAM_NOT_FOUND')) {
      const isOther = (await streams.get(other(kind), name)) !== undefined;
      throw missing(isOther ? `${kind} ${name} is not found` : `${name} is not found`);
    }
    if (!hasCode(error, 'STREAM_IN_USE')) throw error;
    const message = `${kind} ${name} has been referenced by other rules; "?force=true" drops it nevertheless`;
    throw new Fault('stream', message);
  }
  return `${NAMES[kind].title} ${name} is dropped.`;
}

/**
 * Get a definition.
 * @throws Fault
 */
async function definitionOf(streams: StreamsApi, kind: StreamKind, name: string) {
  const found = await streams.get(kind, name);
  if (found === undefined) throw missing(`Describe ${kind} fails, ${name} is not found.`);
  return found;
}

/** The fault for an error of CREATE. */
function createFault(error: unknown, { kind, name }: Ddl, verb: 'Create' | 'Replace'): unknown {
  if (error instanceof SqlError) return new Fault('syntax', error.message);
  if (!hasCode(error, 'STREAM_EXISTS')) return error;
  return new Fault('stream', `${verb} ${kind} fails: Item ${name} already exists.`);
}

/**
 * Execute a statement.
 * @returns the text that the command of the original prints
 */
async function executed(streams: StreamsApi, sql: string): Promise<string> {
  const ddl = ddlOf(sql) ?? { verb: 'create', kind: 'stream', name: '' };
  const { verb, kind, name } = ddl;
  if (verb === 'create') {
    const made = await streams.create(sql).catch((error: unknown) => {
      throw createFault(error, ddl, 'Create');
    });
    return `${NAMES[made.kind].title} ${made.name} is created.`;
  }
  if (verb === 'show') {
    const names = (await streams.list(kind)).map((one) => one.name);
    return names.length === 0 ? `No ${kind} definitions are found.` : names.join('\n');
  }
  if (verb === 'drop') return drop(streams, kind, name, false);
  const definition = await definitionOf(streams, kind, name);
  return verb === 'describe' ? describeStreamText(definition) : 'TO BE SUPPORTED';
}

const BODY = objectOf({ sql: text('The statement', { min: 1 }) });

function notJson(_body: string, reason: string): string {
  return `Invalid body: Error decoding the statement descriptor: ${reason}`;
}

/** The paths of streams or of tables, which have the same form. */
function pathsOf(kind: StreamKind) {
  return { list: `/${kind}s` as '/streams', one: `/${kind}s/:name` as '/streams/:name' };
}

/** The operations that create or show streams or tables. */
function readingOf(kind: StreamKind): readonly Operation[] {
  const { title, example, sql } = NAMES[kind];
  const { list, one } = pathsOf(kind);
  return [
    operation({
      name: `execute${title}Statement`,
      method: 'POST',
      path: list,
      ctl: kind === 'stream' ? 'stream sql [FILE=sql] --sql' : undefined,
      descr: `Execute a statement: CREATE, SHOW, DESCRIBE, EXPLAIN or DROP, of streams and tables`,
      errorPrefix: `${title} command error`,
      body: BODY,
      notJson,
      status: 201,
      example: { body: { sql }, data: `${title} ${example} is created.` },
      audited: ({ body: { sql } }) => {
        const ddl = ddlOf(sql);
        return { statement: ddl && `${ddl.verb} ${ddl.kind} ${ddl.name}` };
      },
      run: ({ streams }, { body }) => executed(streams, body.sql)
    }),
    operation({
      name: `list${title}s`,
      method: 'GET',
      path: list,
      ctl: { [`stream ${kind}s`]: 'name' },
      descr: `List the names of the ${kind}s, sorted`,
      errorPrefix: `${title} command error`,
      query: objectOf({
        kind: optional(text('Only those of this kind (option KIND): scan or lookup'))
      }),
      data: listOf(text()),
      example: { data: [example] },
      run: async ({ streams }, { query }) => {
        const wanted = query.kind?.toLowerCase();
        const found = await streams.list(kind);
        const kindOf = (options: Readonly<Record<string, string>>) => (options.KIND ?? 'scan').toLowerCase();
        const shown = wanted === undefined ? found : found.filter(({ options }) => kindOf(options) === wanted);
        return shown.map(({ name }) => name);
      }
    }),
    operation({
      name: `describe${title}`,
      method: 'GET',
      path: one,
      ctl: `stream ${kind} NAME`,
      descr: `Describe a ${kind}`,
      errorPrefix: `describe ${kind} error`,
      data: STREAM,
      example: { params: { name: example } },
      run: async ({ streams }, { params: { name } }) => {
        const definition = await definitionOf(streams, kind, name);
        return { ...describeStream(definition), sql: definition.sql };
      }
    })
  ];
}

/** The operations that replace or delete a stream or a table. */
function changesOf(kind: StreamKind): readonly Operation[] {
  const { title, example, sql } = NAMES[kind];
  const { one } = pathsOf(kind);
  return [
    operation({
      name: `replace${title}`,
      method: 'PUT',
      path: one,
      ctl: `stream replace-${kind} NAME [FILE=sql] --sql`,
      descr: `Replace a ${kind}, or create it; the name in the statement counts`,
      errorPrefix: `${title} command error`,
      body: BODY,
      notJson,
      example: { params: { name: example }, body: { sql }, data: `${title} ${example} is replaced.` },
      run: async ({ streams }, { body }) => {
        const ddl = ddlOf(body.sql);
        if (ddl !== undefined && ddl.verb !== 'create')
          throw new Fault(
            'syntax',
            `a ${kind} is replaced by CREATE ${kind.toUpperCase()}, not by ${ddl.verb.toUpperCase()}`
          );
        if (ddl !== undefined && ddl.kind !== kind) throw missing(`${kind} ${ddl.name} is not found`);
        const made = await streams.replace(body.sql).catch((error: unknown) => {
          throw createFault(error, ddl ?? { verb: 'create', kind, name: '' }, 'Replace');
        });
        return `${title} ${made.name} is replaced.`;
      }
    }),
    operation({
      name: `drop${title}`,
      method: 'DELETE',
      path: one,
      ctl: `stream drop-${kind} NAME --force`,
      descr: `Drop a ${kind}`,
      errorPrefix: `delete ${kind} error`,
      query: objectOf({
        force: optional(flag('Also if rules use it', { default: false }))
      }),
      example: { params: { name: example }, query: { force: true }, data: `${title} ${example} is dropped.` },
      run: ({ streams }, { params: { name }, query: { force = false } }) => drop(streams, kind, name, force)
    })
  ];
}

/** The streams and the tables. */
export const STREAMS: readonly Operation[] = [
  ...readingOf('stream'),
  ...changesOf('stream'),
  ...readingOf('table'),
  ...changesOf('table')
];
