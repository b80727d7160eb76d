import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { TemplateTools } from '../../lib/streams/template/functions-tools.ts';
import { compileTemplate } from '../../lib/streams/template/template.ts';

const TOOLS: TemplateTools = {
  now: () => 1_700_000_000_000,
  offsetMinutes: () => 0,
  pattern: (text) => ({
    parts: 1,
    test: (subject) => new RegExp(text).test(subject),
    replace: (subject, replacement) =>
      subject.replace(new RegExp(text, 'g'), (...groups) => replacement(groups.slice(0, -2) as string[]))
  })
};

interface Case {
  readonly line: number;
  readonly template: string;
  readonly data: unknown;
  readonly expected: string;
  readonly isError: boolean;
}

/** Read `templates.txt`, keyed by the titles of its sections. */
function readCases(): Map<string, Case[]> {
  const sections = new Map<string, Case[]>();
  let title = '';
  let template: string | undefined;
  let data: unknown = {};
  const plain = (text: string) => (text.startsWith('"') && text.endsWith('"') ? (JSON.parse(text) as string) : text);
  for (const [at, text] of readFileSync(join(import.meta.dirname, 'templates.txt'), 'utf8')
    .split('\n')
    .entries()) {
    if (text === '' || text.startsWith('# differs')) continue;
    if (text.startsWith('# ')) sections.set((title = text.slice(2)), []);
    else if (text.startsWith('< ')) data = JSON.parse(text.slice(2));
    else if (text.startsWith('> ') || text.startsWith('! ')) {
      assert.ok(template !== undefined, `line ${at + 1} has no template`);
      const isError = text.startsWith('!');
      sections.get(title)?.push({ line: at + 1, template, data, expected: plain(text.slice(2)), isError });
      template = undefined;
      data = {};
    } else template = plain(text);
  }
  return sections;
}

describe('data templates', () => {
  for (const [title, cases] of readCases()) {
    if (cases.length === 0) continue;
    it(`prints the expected text: ${title}`, () => {
      for (const { line, template, data, expected, isError } of cases) {
        let actual: string;
        try {
          actual = compileTemplate(template, TOOLS)(data);
        } catch (error) {
          actual = (error as Error).message;
          if (!isError) throw new Error(`line ${line}: ${actual}`, { cause: error });
        }
        assert.equal(actual, expected, `line ${line}`);
      }
    });
  }

  it('refuses an invalid template when it is created, and names the property', () => {
    assert.throws(() => compileTemplate('a\n{{.b', TOOLS, { property: 'topic' }), {
      name: 'InvalidInput',
      code: 'PROPERTY_INVALID',
      field: 'topic',
      message: 'property topic a\n{{.b is invalid: template: sink:2:0: unclosed action'
    });
  });

  it('shows no password of a URL in the error of an invalid template', () => {
    assert.throws(() => compileTemplate('http://u:secret@h/{{.b', TOOLS, { property: 'url' }), {
      message: /^property url http:\/\/\*{6}@h\/\{\{\.b is invalid: /
    });
  });

  it('fails with STREAM_FAILED when a template cannot be filled in', () => {
    assert.throws(() => compileTemplate('{{upper .a}}', TOOLS)({ a: 1 }), { code: 'STREAM_FAILED' });
  });

  it('converts dates, bytes and large integers as JSON does, and leaves the row unchanged', () => {
    const row = { at: new Date(0), bytes: Buffer.from('hi'), id: 2n ** 60n, count: 12n, list: [1n], name: 'x' };
    const fill = compileTemplate('{{.at}} {{.bytes}} {{.id}} {{.count}} {{json .list}} {{.name}}', TOOLS);
    assert.equal(fill(row), '1970-01-01T00:00:00.000Z aGk= 1152921504606846976 12 [1] x');
    assert.equal(typeof row.id, 'bigint');
  });

  it('takes the time from the tools, in the zone of the service', () => {
    const fill = compileTemplate('{{now | date "15:04:05 -07:00"}}', { ...TOOLS, offsetMinutes: () => 60 });
    assert.equal(fill({}), '23:13:20 +01:00');
  });

  it('reads fields of the first row where that is allowed', () => {
    const fill = compileTemplate('a/{{.id}}/{{(index . 1).id}}', TOOLS, { readsFirst: true });
    assert.equal(fill([{ id: 'x' }, { id: 'y' }]), 'a/x/y');
    assert.equal(compileTemplate('a/{{.id}}', TOOLS, { readsFirst: true })([]), 'a/<no value>');
  });

  it('creates no more characters than allowed', () => {
    const fill = compileTemplate('{{range .}}{{.}}{{end}}', TOOLS, { most: 3 });
    assert.equal(fill(['a', 'b', 'c']), 'abc');
    assert.throws(() => fill(['a', 'b', 'c', 'd']), /longer than 3 characters \(bounds\.templateCharacters\)/);
  });

  it('ends templates that would practically run forever', () => {
    const nested = '{{$l := list 1}}{{range until 60}}{{$l = list $l $l}}{{end}}';
    const doubled = '{{$l := list (until 900)}}{{range until 12}}{{$l = concat $l $l}}{{end}}';
    const twice = '{{template "a" (add1 .)}}';
    const cases: readonly (readonly [template: string, message: RegExp])[] = [
      [`${nested}{{printf "%d" $l}}`, /longer than 10000 characters/],
      [`${doubled}{{toStrings $l}}`, /longer than 10000 characters/],
      [`${doubled}{{join "" $l}}`, /longer than 10000 characters/],
      ['{{$s := repeat 9000 "a"}}{{cat $s $s}}', /longer than 10000 characters/],
      ['{{$s := repeat 9000 "a"}}{{regexReplaceAllLiteral "a" $s $s}}', /longer than 10000 characters/],
      ['{{$s := repeat 9000 "a"}}{{range until 1000}}{{$x := sha1sum $s}}{{end}}', /read and create more than 1000000/],
      [`{{define "a"}}{{if lt . 60}}${twice}${twice}{{end}}{{end}}{{template "a" 1}}`, /more than 1000000 /]
    ];
    for (const [template, message] of cases)
      assert.throws(() => compileTemplate(template, TOOLS, { most: 10_000 })({}), message, template);
    const uses = '{{define "a"}}{{if .}}{{template "a" .x}}{{template "a" .x}}{{end}}{{end}}{{template "a" .}}';
    let data = {};
    for (let level = 0; level < 60; level++) data = { x: data };
    assert.throws(
      () => compileTemplate(uses, TOOLS)({ x: data }),
      /loops of a template have more than 1000000 iterations/
    );
  });

  it('gives names of prototypes no meaning', () => {
    const data: unknown = JSON.parse('{"a":{"__proto__":{"x":1}}}');
    const fill = compileTemplate('{{.constructor}} {{.a.toString}} {{(index .a "__proto__").x}}', TOOLS);
    assert.equal(fill(data), '<no value> <no value> 1');
    assert.equal(compileTemplate('{{$d := dict "__proto__" 1}}{{json $d}}', TOOLS)({}), '{"__proto__":1}');
  });
});
