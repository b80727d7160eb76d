// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are templates of rules
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileBytes, compilePayload, compileTemplate } from '../../lib/rules/template.ts';
import { Float, type Value } from '../../lib/sql/values.ts';

const OUTPUT: Value = {
  clientid: 'c1',
  qos: 1,
  temperature: 21.5,
  whole: new Float(2),
  big: 12345678901234567890n,
  yes: true,
  nothing: null,
  list: [1, 'a', { b: 2 }],
  nested: { a: { b_2: 'deep' } },
  payload: '{"x": {"y": 5}, "text": "{\\"inner\\": 1.0}", "__proto__": {"polluted": "own"}}',
  bytes: Uint8Array.of(0xff, 0x41)
};

function render(template: string, output: Value = OUTPUT): string {
  return compileTemplate(template)(output);
}

describe('A template', () => {
  it('prints the text form of each kind of value', () => {
    const cases: readonly (readonly [string, string])[] = [
      ['${clientid}', 'c1'],
      ['${qos}', '1'],
      ['${temperature}', '21.5'],
      ['${whole}', '2.0'],
      ['${big}', '12345678901234567890'],
      ['${yes}', 'true'],
      ['${nothing}', 'null'],
      ['${list}', '[1,"a",{"b":2}]'],
      ['${nested}', '{"a":{"b_2":"deep"}}'],
      ['${bytes}', '\ufffdA']
    ];
    for (const [template, text] of cases) assert.equal(render(template), text, template);
  });

  it('keeps the text between placeholders, and quotes nothing', () => {
    assert.equal(render('{"id":"${clientid}","n":${nested},"q":${qos}}'), '{"id":"c1","n":{"a":{"b_2":"deep"}},"q":1}');
    assert.equal(render('${qos}${qos}'), '11');
    assert.equal(render(''), '');
    assert.equal(render('plain'), 'plain');
  });

  it('leaves all other text unchanged', () => {
    for (const text of ['${}', '$a', '${a', '$ {qos}', '{qos}', '$']) assert.equal(render(text), text);
    assert.equal(render('${${qos}}'), '${1}');
    assert.equal(render('$${qos}'), '$1');
    assert.equal(render('\\${qos}'), '\\1');
  });

  it('accepts placeholder names of any characters except dots and braces', () => {
    const output = { 'device-id': 'd1', 'a b': 1, ä: 2, 'x[1]': 3, 'qos+1': 4, nested: { 'in-ner': 5 } };
    assert.equal(render('${device-id} ${a b} ${ä} ${x[1]} ${qos+1} ${nested.in-ner}', output), 'd1 1 2 3 4 5');
    assert.equal(render('${not-there}', output), 'undefined');
  });

  it('follows paths through objects and JSON text', () => {
    assert.equal(render('${nested.a.b_2}'), 'deep');
    assert.equal(render('${payload.x.y} ${payload.x} ${payload.text.inner}'), '5 {"y":5} 1.0');
  });

  it('prints undefined for absent values', () => {
    for (const path of ['topic', 'nested.b', 'clientid.x', 'qos.x', 'list.1', 'list.length', 'nothing.x', 'bytes.x'])
      assert.equal(render(`\${${path}}`), 'undefined', path);
    assert.equal(render('${payload.x}', { payload: 'no JSON' }), 'undefined');
    assert.equal(render('${.} ${a.} ${..}', { a: 1 }), 'undefined undefined undefined');
    assert.equal(render('${x}', { x: undefined }), 'undefined');
  });

  it('ignores inherited members of objects', () => {
    for (const path of ['toString', '__proto__', 'constructor.name', 'nested.hasOwnProperty', 'list.map'])
      assert.equal(render(`\${${path}}`), 'undefined', path);
    assert.equal(render('${payload.__proto__.polluted}'), 'own');
    assert.equal(({} as Record<string, unknown>).polluted, undefined);
  });

  it('finds the element of FOREACH under the name item', () => {
    assert.equal(render('${item}', 7), '7');
    assert.equal(render('${item}', 'text'), 'text');
    assert.equal(render('${item}', [1, 2]), '[1,2]');
    assert.equal(render('${item.idx} ${idx}', { idx: 3 }), '3 3');
    assert.equal(render('${item.idx}', '{"idx": 4}'), '4');
    assert.equal(render('${idx}', '{"idx": 4}'), '4');
    assert.equal(render('${item}', { item: 'own', idx: 3 }), 'own');
    assert.equal(render('${item.idx}', { item: 'own', idx: 3 }), 'undefined');
    assert.equal(render('${other}', 7), 'undefined');
  });

  it('encodes values, but not the text between them', () => {
    const run = compileTemplate('a/b?x=${topic}', encodeURIComponent);
    assert.equal(run({ topic: 'c/d e' }), 'a/b?x=c%2Fd%20e');
  });

  it('keeps no state between outputs', () => {
    const run = compileTemplate('${payload.x}-${payload.x}');
    assert.equal(run({ payload: '{"x":1}' }), '1-1');
    assert.equal(run({ payload: '{"x":2}' }), '2-2');
    assert.equal(run({}), 'undefined-undefined');
  });
});

describe('A template of a payload', () => {
  it('leaves bytes unchanged if the template is a single placeholder', () => {
    const bytes = Uint8Array.of(0xff, 0, 0x41);
    const result = compileBytes('${payload}')({ payload: bytes });
    assert.ok(Buffer.isBuffer(result));
    assert.deepEqual([...result], [0xff, 0, 0x41]);
    bytes[0] = 1;
    assert.equal(result[0], 0xff, 'it is a copy');
    assert.deepEqual(compileBytes('${a.b}')({ a: { b: Uint8Array.of(0x80) } }), Buffer.of(0x80));
  });

  it('returns a string for all other values and templates', () => {
    assert.equal(compileBytes('${payload}')({ payload: 'ä' }), 'ä');
    assert.equal(compileBytes('${payload}')({}), 'undefined');
    assert.equal(compileBytes('${payload} ')({ payload: Uint8Array.of(0xff) }), '\ufffd ');
    assert.equal(compileBytes('')({ payload: Uint8Array.of(0xff) }), '');
    assert.equal(compileBytes('${a}${b}')({ a: 1, b: 2 }), '12');
  });

  it('stands for the whole output as JSON if the template is empty', () => {
    const output = { qos: 1, whole: new Float(2), absent: undefined, id: 2n ** 64n };
    for (const template of ['', undefined])
      assert.equal(compilePayload(template)(output), '{"qos":1,"whole":2.0,"id":18446744073709551616}');
    assert.equal(compilePayload(undefined)(7), '7');
    assert.equal(compilePayload('${qos}')(output), '1');
  });
});
