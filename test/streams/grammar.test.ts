import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_CHARACTERS } from '../../lib/sql/lexer.ts';
import { SqlError } from '../../lib/sql/sql-error.ts';
import { parseDdl } from '../../lib/streams/ddl/ddl.ts';
import { describeJson, describeText } from '../../lib/streams/ddl/describe.ts';
import { printStreamStatement } from '../../lib/streams/print-statement.ts';
import { parseStreamStatement } from '../../lib/streams/statement.ts';
import type { StreamDefinition } from '../../lib/streams/types.ts';
import { Random } from '../fuzz/random.ts';
import { withoutPlaces } from '../sql/generated.ts';
import { readSeed, samples, shownSeed } from '../support/samples.ts';
import { StreamStatementMaker } from './generated.ts';
import { GRAMMAR_CASES } from './grammar-cases.ts';

const print = (sql: string) => printStreamStatement(parseStreamStatement(sql));

/** The result of a case, as written in the file. */
function resultOf(text: string): string {
  try {
    if (/^(create|show|describe|explain|drop)\b/i.test(text)) {
      const ddl = parseDdl(text);
      return JSON.stringify(ddl.type === 'create' ? { ...ddl.definition, sql: undefined } : ddl);
    }
    return print(text);
  } catch (error) {
    if (error instanceof SqlError) return `error ${error.message.replaceAll('\n', ' ')}`;
    throw error;
  }
}

describe('The grammar of streams', () => {
  for (const { place, text, expected } of GRAMMAR_CASES)
    it(`${place}: ${text} gives ${expected}`, () => {
      const result = resultOf(text);
      if (!expected.startsWith('error ')) assert.equal(result, expected);
      else assert.ok(result.startsWith('error ') && result.includes(expected.slice(6)), result);
    });
});

describe('A printed statement over streams', () => {
  it('parses to the same tree after printing, and prints the same text again', () => {
    const seed = readSeed();
    const maker = new StreamStatementMaker(new Random(seed));
    for (let count = 0; count < samples(3000); count++) {
      const statement = maker.statement();
      const text = printStreamStatement(statement);
      const parsed = parseStreamStatement(text);
      assert.deepEqual(withoutPlaces(parsed), withoutPlaces(statement), `${shownSeed(seed)}: ${text}`);
      assert.equal(printStreamStatement(parsed), text, shownSeed(seed));
    }
  });

  it('keeps the meaning of all valid statements of the text file', () => {
    for (const { text, expected } of GRAMMAR_CASES)
      if (/^select/i.test(text) && !expected.startsWith('error ')) assert.equal(print(print(text)), print(text));
  });
});

describe('A statement over streams that is too large', () => {
  it('rejects a statement with too many characters', () => {
    const long = 'x'.repeat(MAX_CHARACTERS);
    assert.throws(() => parseStreamStatement(`SELECT ${long} FROM demo`), /the maximum is 65536/);
    assert.throws(() => parseDdl(`CREATE STREAM demo () WITH (DATASOURCE="${long}")`), /the maximum is 65536/);
  });

  for (const [what, before, after] of [
    ['parentheses', '(', ')'],
    ['signs', '- ', ''],
    ['operators', '1 + ', ''],
    ['comparisons', 'a = ', ''],
    ['calls', 'f(', ')'],
    ['indexes', 'a[', ']'],
    ['parts', 'a[:', ']'],
    ['conditions', 'CASE WHEN a THEN ', ' END'],
    ['BETWEEN', 'a BETWEEN 1 AND ', ''],
    ['IN', 'a IN (', ')'],
    ['OVER', 'lag(a) OVER (WHEN ', ')']
  ])
    it(`rejects too many levels of ${what}`, () => {
      const sql = `SELECT ${before.repeat(3000)}b${after.repeat(3000)} FROM demo`;
      assert.throws(() => parseStreamStatement(sql), /has more than 500 (levels|steps)/);
    });

  it('rejects a path with too many steps', () => {
    for (const step of ['.a', '->a', '[1]', '[1:]'])
      for (const start of ['a', 'f(a)', '(a)'])
        assert.throws(
          () => parseStreamStatement(`SELECT ${start}${step.repeat(3000)} FROM demo`),
          /more than 500 steps/
        );
  });

  it('rejects a type with too many levels', () => {
    const type = `${'ARRAY('.repeat(600)}BIGINT${')'.repeat(600)}`;
    assert.throws(() => parseDdl(`CREATE STREAM demo (a ${type}) WITH ()`), /the type has more than 500 levels/);
  });

  it('parses a statement in time proportional to its length', () => {
    for (const text of [
      `${'/*'.repeat(30_000)}`,
      `"${'\\'.repeat(60_001)}`,
      `${'a.'.repeat(20_000)}`,
      '`'.repeat(60_001)
    ])
      assert.throws(() => parseStreamStatement(`SELECT ${text}`), SqlError);
  });
});

function defined(sql: string): StreamDefinition {
  const ddl = parseDdl(sql);
  assert.equal(ddl.type, 'create');
  return (ddl as Extract<typeof ddl, { type: 'create' }>).definition;
}

describe('The description of a definition', () => {
  const sql = `CREATE STREAM demo (id BIGINT, tags ARRAY(STRING), pos STRUCT(x FLOAT, y ARRAY(STRUCT(z BYTEA))))
    WITH (TYPE="mqtt", DATASOURCE="t/#", FORMAT="json", RETAIN_SIZE="3", STRICT_VALIDATION="TRUE", SHARED="true")`;

  it('describes a definition with a line for each column and each specified option', () => {
    const lines = [
      'Fields',
      '-'.repeat(80),
      'id\tbigint',
      'tags\tarray(string)',
      'pos\tstruct(x float, y array(struct(z bytea)))',
      '',
      'DATASOURCE: t/#',
      'FORMAT: json',
      'RETAIN_SIZE: 3',
      'SHARED: true',
      'STRICT_VALIDATION: true',
      'TYPE: mqtt',
      ''
    ];
    assert.equal(describeText(defined(sql)), lines.join('\n'));
    assert.equal(describeText(defined('CREATE STREAM a () WITH ()')), `Fields\n${'-'.repeat(80)}\n\n`);
  });

  it('describes a definition as an object with all options of the original', () => {
    const pos = [
      { FieldType: 'float', Name: 'x' },
      {
        FieldType: { Type: 'array', ElementType: { Type: 'struct', Fields: [{ FieldType: 'bytea', Name: 'z' }] } },
        Name: 'y'
      }
    ];
    assert.deepEqual(describeJson(defined(sql)), {
      Name: 'demo',
      StreamFields: [
        { FieldType: 'bigint', Name: 'id' },
        { FieldType: { Type: 'array', ElementType: 'string' }, Name: 'tags' },
        { FieldType: { Type: 'struct', Fields: pos }, Name: 'pos' }
      ],
      Options: {
        DATASOURCE: 't/#',
        KEY: '',
        FORMAT: 'json',
        CONF_KEY: '',
        TYPE: 'mqtt',
        STRICT_VALIDATION: true,
        TIMESTAMP: '',
        TIMESTAMP_FORMAT: '',
        RETAIN_SIZE: 3,
        SHARED: true
      },
      StreamType: 0
    });
    const table = describeJson(defined('CREATE TABLE a () WITH (KIND="LOOKUP")'));
    assert.deepEqual([table.StreamFields, table.StreamType], [null, 1]);
    assert.equal((table.Options as { KIND: string }).KIND, 'lookup');
  });
});
