import * as Type from 'typebox';
import type { StreamKind } from '../../lib/index.ts';
import { recordOf } from '../rest/index.ts';

/** A stream or a table, in answers. */
export const STREAM = Type.Object(
  {
    Name: Type.String(),
    StreamFields: Type.Union([Type.Array(recordOf(Type.Unknown())), Type.Null()], {
      description: 'The columns with FieldType and Name; null: it has no schema'
    }),
    Options: recordOf(Type.Unknown(), { description: 'The options, by their names in upper case' }),
    StreamType: Type.Integer({ description: '0: stream, 1: table' }),
    sql: Type.String({ description: 'The statement, so that the answer can be sent back' }),
    Fault: Type.Optional(
      Type.String({
        description: 'The fault of a stored definition that is not valid in this version. Rules that read it do not run'
      })
    )
  },
  { title: 'Stream' }
);

/** A statement about streams or tables. */
export interface Ddl {
  readonly verb: 'create' | 'show' | 'describe' | 'explain' | 'drop';
  readonly kind: StreamKind;
  /** Empty for SHOW. For CREATE: the name, as far as it is known without parsing the statement. */
  readonly name: string;
}

const NAME = '(?:`([^`]+)`|([^\\s`;(]+))';
const FORMS = [
  /^(show)\s+(stream|table)s\s*;?$/i,
  new RegExp(`^(describe|explain|drop)\\s+(stream|table)\\s+${NAME}\\s*;?$`, 'i'),
  new RegExp(`^(create)\\s+(stream|table)\\s*${NAME}`, 'i')
];

/**
 * Classify a statement.
 * @returns undefined if it has none of the forms; a parser then reports the fault
 */
export function ddlOf(sql: string): Ddl | undefined {
  const text = sql.trim();
  for (const form of FORMS) {
    const found = form.exec(text);
    if (found === null) continue;
    const [, verb, kind, quoted, plain = ''] = found;
    return { verb: verb.toLowerCase() as Ddl['verb'], kind: kind.toLowerCase() as StreamKind, name: quoted ?? plain };
  }
  return undefined;
}
