import { Message } from '../../lib/packets/message.ts';
import { CatalogueEvent } from '../../lib/rules/events/event.ts';
import { RULE_EVENTS } from '../../lib/rules/events/rows.ts';
import { compileBytes, compileTemplate } from '../../lib/rules/template.ts';
import { compileStatement } from '../../lib/sql/compile-statement.ts';
import { decodeJson, encodeJson } from '../../lib/sql/json.ts';
import { printStatement } from '../../lib/sql/print.ts';
import type { EventColumns } from '../../lib/sql/row.ts';
import { SqlError, SqlFailure } from '../../lib/sql/sql-error.ts';
import { parseStatement } from '../../lib/sql/statement.ts';
import type { Value } from '../../lib/sql/values.ts';
import { CASE_FILES, readCases } from '../sql/cases.ts';
import { StatementMaker } from '../sql/generated.ts';
import { PlainRow } from '../sql/plain-row.ts';
import { DIALECT, FUNCTIONS, tools } from '../sql/support.ts';
import type { Random } from './random.ts';
import { damaged, deep, hostileCall, hostilePayload, hostileValue, soup, template } from './sql-inputs.ts';

/** Maximum CPU time of one input, in milliseconds: far more than any takes, also on a slow machine. */
const MAX_MS = 3000;

export interface SqlFuzzOptions {
  readonly runs: number;
  readonly random: Random;
}

/** A statement, and the event for which it is evaluated. */
interface Input {
  readonly sql: string;
  readonly row: EventColumns;
}

type End = 'evaluated' | 'failed' | 'invalid';

/**
 * Parse and evaluate statements that are damaged, random or nested deeply; call functions with hostile values; evaluate damaged payloads;
 * and put hostile values into templates.
 * @returns the number of inputs for each result
 * @throws Error for an error that is not an SQL error, an input that takes too long, or a prototype that was changed
 */
export function fuzzSql({ runs, random }: SqlFuzzOptions): Record<End, number> {
  const ends = { evaluated: 0, failed: 0, invalid: 0 };
  const makers = makersOf(random);
  for (let run = 0; run < runs; run++) {
    const before = process.cpuUsage();
    const input = makers[run % makers.length]();
    ends[input === undefined ? filled(random) : evaluated(input)]++;
    const { user, system } = process.cpuUsage(before);
    const what = () => (input === undefined ? 'a template' : JSON.stringify(input.sql.slice(0, 1000)));
    if ((user + system) / 1000 > MAX_MS) throw new Error(`${what()} took ${(user + system) / 1000} ms`);
    if ('polluted' in Object.prototype) throw new Error(`${what()} changed the prototype of all objects`);
  }
  return ends;
}

/** Make inputs, one kind after the other; undefined: a template instead of a statement. */
function makersOf(random: Random): readonly (() => Input | undefined)[] {
  const maker = new StatementMaker(random);
  const texts = CASE_FILES.flatMap((file) => readCases(file).map(({ sql }) => sql));
  return [
    () => {
      const { sql, columns } = hostileCall(random);
      return { sql, row: new PlainRow(columns, decodeJson) };
    },
    () => ({ sql: damaged(random.pick(texts), random), row: hostileRow(random) }),
    () => ({ sql: damaged(printStatement(maker.statement(), DIALECT), random), row: hostileRow(random) }),
    () => ({ sql: soup(random), row: hostileRow(random) }),
    () => ({ sql: random.once(20) ? deep(random) : soup(random), row: hostileRow(random) }),
    () => ({ sql: random.pick(texts), row: eventOf(hostilePayload(random)) }),
    () => undefined
  ];
}

function hostileRow(random: Random): EventColumns {
  const value = () => hostileValue(random);
  return new PlainRow({ payload: value(), a: value(), b: value(), topic: value(), qos: value() }, decodeJson);
}

/** The publish of a message. */
function eventOf(payload: Buffer): EventColumns {
  const message = Message.from({ topic: 't/a', payload }, undefined, 0, 0);
  const value = { message, client: undefined };
  return new CatalogueEvent(RULE_EVENTS['message.publish'], value, { node: 'node', now: () => 0 });
}

function evaluated({ sql, row }: Input): End {
  return endOf(sql, () => {
    const statement = parseStatement(sql, DIALECT);
    const context = { text: sql, dialect: DIALECT, functions: FUNCTIONS, tools: tools() };
    const outputs = compileStatement(statement, context).run(row);
    encodeJson(outputs ?? null);
  });
}

/** Fill a template with a hostile output. */
function filled(random: Random): End {
  const text = template(random);
  const value = hostileValue(random);
  const output: Value = random.once(2) ? value : { a: value, payload: hostileValue(random) };
  return endOf(text, () => {
    compileTemplate(text)(output);
    compileBytes(text)(output);
  });
}

function endOf(text: string, run: () => void): End {
  try {
    run();
    return 'evaluated';
  } catch (error) {
    if (error instanceof SqlError) return 'invalid';
    // the cause is an error that a function throws for unexpected arguments
    if (error instanceof SqlFailure && error.cause === undefined) return 'failed';
    const { message, cause } = error as Error;
    throw new Error(`${JSON.stringify(text.slice(0, 1000))}: ${message}`, { cause: cause ?? error });
  }
}
