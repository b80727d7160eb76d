import { EVENT_FUNCTIONS } from '../../lib/rules/event-functions.ts';
import { compileStatement } from '../../lib/sql/compile-statement.ts';
import { ruleDialect } from '../../lib/sql/dialect.ts';
import { commonFunctions } from '../../lib/sql/functions/all.ts';
import type { FunctionTools } from '../../lib/sql/functions/function.ts';
import { decodeJson } from '../../lib/sql/json.ts';
import { type Members, readMembers } from '../../lib/sql/json-members.ts';
import { loadPatterns } from '../../lib/sql/patterns.ts';
import { parseStatement } from '../../lib/sql/statement.ts';
import type { Value } from '../../lib/sql/values.ts';
import { matches } from '../../lib/topics/topic.ts';
import { PlainRow } from './plain-row.ts';

export const DIALECT = ruleDialect((topic, filter) => matches(filter, topic));
export const FUNCTIONS = new Map([...commonFunctions(DIALECT), ...EVENT_FUNCTIONS].map((row) => [row.name, row]));

/** 2026-01-02T03:04:05.678Z */
const NOW = 1_767_323_045_678;

const pattern = await loadPatterns();

/** Tools for functions, without randomness and with a stopped clock. */
export function tools(): FunctionTools {
  return {
    now: () => NOW,
    random: () => 0.25,
    pattern,
    table: new Map()
  };
}

/** The columns of an event unless a case changes them. */
const EVENT = { clientid: 'c_emqx', topic: 't/a', qos: 1, payload: '{"msg": "hello"}' };

/** A row that reads members without decoding the others, as events do for their payload. */
export class MembersRow extends PlainRow {
  /** Number of times that members were read. */
  static reads = 0;

  override decoded(name: string, members?: Members): Value {
    const value = this.column(name);
    if (typeof value !== 'string' || members === undefined) return super.decoded(name);
    const bytes = Buffer.from(value);
    const read = readMembers(bytes, 0, bytes.length, members);
    if (read === undefined) return super.decoded(name);
    MembersRow.reads++;
    return read;
  }
}

/** Evaluate a statement for an event. @throws SqlError, SqlFailure */
export function evaluate(
  sql: string,
  event: Readonly<Record<string, unknown>> = {},
  Row: typeof PlainRow = PlainRow
): readonly Value[] | undefined {
  const statement = parseStatement(sql, DIALECT);
  const context = { text: sql, dialect: DIALECT, functions: FUNCTIONS, tools: tools() };
  const columns = { ...EVENT, ...event } as Record<string, Value>;
  return compileStatement(statement, context).run(new Row(columns, decodeJson));
}
