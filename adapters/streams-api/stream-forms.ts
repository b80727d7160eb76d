import * as Type from 'typebox';
import type { StreamKind } from '../../lib/index.ts';
import { anyObject, anyOf, componentOf, integer, listOf, optional, text } from '../rest/kit/index.ts';

/** A stream or a table, in answers. */
export const STREAM = componentOf('Stream', 'A stream or a table', {
  Name: text('The name'),
  StreamFields: anyOf(
    [listOf(anyObject()), Type.Null()],
    'The columns with FieldType and Name; null: it has no schema'
  ),
  Options: anyObject('The options, by their names in upper case'),
  StreamType: integer('0: stream, 1: table'),
  sql: text('The statement, so that the answer can be sent back'),
  Fault: optional(
    text('The fault of a stored definition that is not valid in this version. Rules that read it do not run')
  )
});

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
