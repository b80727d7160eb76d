import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { InvalidInput } from '../../lib/base/errors.ts';
import type { Field, FieldTable, ParamTable } from '../../lib/base/fields.ts';
import { hideSecrets } from '../../lib/base/secrets.ts';
import { checkParams, hideAll, keepParams } from '../../lib/rules/params.ts';
import type { Params } from '../../lib/rules/types.ts';

function row(type: Field['type'], more: Partial<Field> = {}): Field {
  return { type, about: 'A parameter', ...more };
}

const TABLE: FieldTable = {
  url: row('string', { required: true, format: 'url', default: 'http://127.0.0.1' }),
  method: row('string', { choices: ['POST', 'PUT'], default: 'POST' }),
  keepalive: row('string', { format: 'duration' }),
  qos: row('number', { choices: [-1, 0, 1, 2] }),
  size: row('number', { min: 1, max: 10 }),
  ratio: row('number'),
  append: row('boolean'),
  headers: row('object', { fields: {}, isSecret: true }),
  tls: row('object', {
    fields: { verify: row('boolean', { required: true }), key: row('string', { isSecret: true }) }
  }),
  list: row('array', { items: row('string') }),
  password: row('string', { isSecret: true })
};
const URL_GIVEN = { url: 'http://localhost:8080/a' };

const keep = (given: unknown, present: Params, table = TABLE) =>
  keepParams(table, given, { present, what: 'the resource "r"' });

function faultOf(given: unknown, present?: Params): InvalidInput {
  try {
    checkParams(TABLE, present === undefined ? given : keep(given, present), 'the resource "r"');
  } catch (error) {
    if (error instanceof InvalidInput) return error;
    throw error;
  }
  throw new Error('the parameters are valid');
}

describe('Parameters', () => {
  it('returns parameters as given, without defaults and with those that are not in the table', () => {
    const given = {
      ...URL_GIVEN,
      method: 'PUT',
      keepalive: '1h30m',
      qos: -1,
      size: 10,
      ratio: 0.5,
      append: false,
      headers: { 'X-A': 'b' },
      tls: { verify: true, more: [1, null, { deep: 'x' }] },
      list: ['a'],
      unknown: { a: 1 },
      absent: undefined
    };
    const params = checkParams(TABLE, given, 'the resource "r"');
    const { absent: _, ...expected } = given;
    assert.deepEqual(params, expected);
    assert.notEqual(params.tls, given.tls, 'it is a copy');
    assert.deepEqual(checkParams({}, undefined, 'the action "inspect"'), {});
  });

  it('requires the required parameters', () => {
    const error = faultOf({ method: 'PUT' });
    assert.deepEqual(
      [error.code, error.field, error.expected],
      ['PARAM_REQUIRED', 'url', 'a URL that begins with http:// or https://']
    );
    assert.equal(error.message, 'the resource "r": the parameter "url" is missing');
    assert.equal(faultOf(undefined).code, 'PARAM_REQUIRED');
    const nested = faultOf({ ...URL_GIVEN, tls: {} });
    assert.deepEqual([nested.code, nested.field], ['PARAM_REQUIRED', 'tls.verify']);
  });

  it('refuses a name that differs only in case from that of a parameter', () => {
    const table: FieldTable = {
      target_topic: { type: 'string', required: true, about: 'Topic.' },
      tls: { type: 'object', about: 'TLS.', fields: { ca: { type: 'string', about: 'Authority.' } } }
    };
    const cases = [
      [{ target_topic: 't', Target_Topic: 't' }, 'Target_Topic', 'target_topic'],
      [{ Target_Topic: 't' }, 'Target_Topic', 'target_topic'],
      [{ target_topic: 't', tls: { CA: 'c' } }, 'tls.CA', 'tls.ca']
    ] as const;
    for (const [given, field, name] of cases)
      assert.throws(() => checkParams(table, given, 'the action "x"'), {
        code: 'PARAM_INVALID',
        field,
        message: `the action "x": there is no parameter "${field}"; did you mean "${name}"?`
      });
  });

  it('checks the type, the format and the range of parameters', () => {
    const cases: readonly (readonly [string, unknown, string])[] = [
      ['url', 'ftp://localhost', 'a URL that begins with http:// or https://'],
      ['url', 'http://', 'a URL that begins with http:// or https://'],
      ['url', 'localhost', 'a URL that begins with http:// or https://'],
      ['url', 1, 'a URL that begins with http:// or https://'],
      ['method', 'post', 'one of POST, PUT'],
      ['keepalive', '60', 'a duration such as "60s" or "1h30m"'],
      ['keepalive', 'infinity', 'a duration such as "60s" or "1h30m"'],
      ['keepalive', 60, 'a duration such as "60s" or "1h30m"'],
      ['qos', '1', 'one of -1, 0, 1, 2'],
      ['size', 0, 'a number from 1 to 10'],
      ['size', '5', 'a number from 1 to 10'],
      ['ratio', 'x', 'a number'],
      ['append', 'true', 'true or false'],
      ['append', null, 'true or false'],
      ['headers', [], 'an object'],
      ['tls', 'x', 'an object'],
      ['list', {}, 'a list'],
      ['list[1]', ['a', 1], 'a string'],
      ['tls.verify', { verify: 1 }, 'true or false']
    ];
    for (const [field, value, expected] of cases) {
      const [name] = field.split(/[.[]/);
      const error = faultOf({ ...URL_GIVEN, [name]: value });
      assert.deepEqual([error.code, error.field, error.expected], ['PARAM_INVALID', field, expected], field);
    }
    assert.equal(
      faultOf({ ...URL_GIVEN, size: 11 }).message,
      'the resource "r": the parameter "size" must be a number from 1 to 10, got 11'
    );
  });

  it('hides invalid parameters that are secret', () => {
    const error = faultOf({ ...URL_GIVEN, password: 12345 });
    assert.deepEqual([error.code, error.field, error.got], ['PARAM_INVALID', 'password', undefined]);
    assert.doesNotMatch(error.message, /12345/);
  });

  it('requires an object of values that JSON can express', () => {
    for (const given of [[], 'x', 1, null, new Map()]) assert.equal(faultOf(given).field, 'params');
    for (const value of [() => 1, 1n, NaN, Infinity, new Date(0), Buffer.from('x'), Symbol('s')])
      assert.equal(faultOf({ ...URL_GIVEN, more: { a: value } }).field, 'more.a');
  });

  it('limits the size and depth of parameters', () => {
    const long = 'x'.repeat(600_000);
    assert.doesNotThrow(() => checkParams(TABLE, { ...URL_GIVEN, long }, 'the resource "r"'));
    assert.equal(faultOf({ ...URL_GIVEN, long, more: long }).field, 'more');
    assert.equal(faultOf({ ...URL_GIVEN, many: Array.from({ length: 200_000 }, () => 0) }).code, 'PARAM_INVALID');
    const circle: Record<string, unknown> = {};
    circle.again = circle;
    assert.equal(faultOf({ ...URL_GIVEN, circle }).code, 'PARAM_INVALID');
  });

  it('accepts names of inherited members', () => {
    const given = JSON.parse('{"url":"http://localhost","__proto__":{"a":1},"constructor":"x"}') as object;
    const params = checkParams(TABLE, given, 'the resource "r"');
    assert.equal(Object.getPrototypeOf(params), Object.prototype);
    assert.deepEqual(Object.keys(params), ['url', '__proto__', 'constructor']);
    assert.equal(faultOf(JSON.parse('{"__proto__":{"url":"http://localhost"}}')).code, 'PARAM_REQUIRED');
    assert.deepEqual(hideSecrets(TABLE, params), params);
  });
});

describe('Parameters in the form of 0.2', () => {
  const text = { en: 'A parameter', zh: 'A parameter' };
  const list = (items: object): ParamTable => ({ list: { type: 'array', title: text, description: text, items } });

  it('does not check elements of a list that have no type', () => {
    assert.deepEqual(checkParams(list({ enum: ['a', 'b'] }), { list: ['c', 1] }, 'the action "a"'), { list: ['c', 1] });
  });

  it('checks elements of a list that have a type', () => {
    const refused: readonly (readonly [items: object, element: unknown])[] = [
      [{ type: 'string', enum: ['a'] }, 'b'],
      [{ type: 'float', range: [1, 2] }, 3],
      [{ type: 'float' }, 'a'],
      [{ type: 'object', schema: { id: { type: 'number', required: true, title: text, description: text } } }, {}]
    ];
    for (const [items, element] of refused)
      assert.throws(() => checkParams(list(items), { list: [element] }, 'the action "a"'), InvalidInput);
    assert.deepEqual(checkParams(list({ type: 'float' }), { list: [0.5] }, 'the action "a"'), { list: [0.5] });
  });
});

describe('Secrets', () => {
  const stored = {
    ...URL_GIVEN,
    password: 'pw',
    headers: { authorization: 'Bearer x', accept: 'a' },
    tls: { verify: true, key: 'PEM' }
  };
  const shown = {
    ...URL_GIVEN,
    password: '******',
    headers: { authorization: '******', accept: '******' },
    tls: { verify: true, key: '******' }
  };

  it('hides the values of secrets, but not their names', () => {
    assert.deepEqual(hideSecrets(TABLE, stored), shown);
    assert.deepEqual(hideSecrets(TABLE, URL_GIVEN), URL_GIVEN);
  });

  it('hides and keeps secrets in URLs', () => {
    const own = { url: 'http://u:p@localhost/a?token=t&x=1' };
    const hidden = { url: 'http://******@localhost/a?token=******&x=******' };
    assert.deepEqual(hideSecrets(TABLE, own), hidden);
    assert.deepEqual(keep(hidden, own), own);
    const error = faultOf(hidden, { url: 'http://localhost/' });
    assert.deepEqual([error.code, error.field], ['PARAM_INVALID', 'url']);
  });

  it('keeps the current secrets in a change', () => {
    assert.deepEqual(keep(shown, stored), stored);
    const change = { ...shown, password: 'new', headers: { authorization: '******', more: 'b' } };
    assert.deepEqual(keep(change, stored), {
      ...stored,
      password: 'new',
      headers: { authorization: 'Bearer x', more: 'b' }
    });
    assert.equal(keep('no object', stored), 'no object');
  });

  it('keeps every current value for the placeholder, and takes it as a value if there is none and it is not a secret', () => {
    const given = { ...URL_GIVEN, keepalive: '******', list: ['******'], more: { a: '******' } };
    const before = { ...URL_GIVEN, keepalive: '1h', list: ['x'], more: { a: 'y' } };
    assert.deepEqual(keep(given, before), before);
    assert.deepEqual(keep(given, { url: 'x' }), given);
    assert.deepEqual(checkParams({}, given, 'the action "a"'), given);
  });

  it('hides what a name denotes as a secret, except booleans', () => {
    const given = { tokens: ['a'], useToken: true, apiKey: 1 };
    const hidden = { tokens: '******', useToken: true, apiKey: '******' };
    assert.deepEqual(hideSecrets({}, given), hidden);
    assert.deepEqual(keep(hidden, given, {}), given);
  });

  it('keeps no secret for another server or another resource, or without TLS', () => {
    const secret = { headers: { b: 'x' } };
    for (const [before, after] of [
      [URL_GIVEN, { url: 'http://other:8080/a' }],
      [{ address: 'a:1883' }, { address: 'b:1883' }],
      [
        { address: 'a:1883', ssl: 'on' },
        { address: 'a:1883', ssl: 'off' }
      ],
      [
        { address: 'a:1883', tls: 'true' },
        { address: 'a:1883', tls: 'false' }
      ],
      [{ $resource: 'r' }, { $resource: 's' }]
    ]) {
      const { code, field, message } = faultOf({ ...after, headers: { b: '******' } }, { ...before, ...secret });
      assert.deepEqual([code, field], ['PARAM_INVALID', 'headers']);
      const reason = 'cannot be kept for another server, or without TLS: send the secret itself, or leave it out';
      assert.equal(message, `the resource "r": the parameter "headers": ****** ${reason}`);
    }
    const moved = { url: 'http://LOCALHOST:8080/b' };
    assert.deepEqual(keep({ ...moved, headers: { b: '******' } }, { ...URL_GIVEN, ...secret }), {
      ...moved,
      ...secret
    });
  });

  it('keeps all values for the server that is hidden itself', () => {
    const table = { server: row('string'), ssl: row('string'), tls: row('boolean'), password: TABLE.password };
    for (const before of [
      { server: 'a:1883', ssl: 'on', password: 'x' },
      { server: 'a:1883', tls: true, password: 'x' }
    ])
      assert.deepEqual(keep(hideAll(before), before, table), before);
  });

  it('refuses a placeholder without a current secret', () => {
    for (const given of [
      { password: '******' },
      { headers: { b: '******' } },
      { tls: { verify: true, key: '******' } }
    ]) {
      const error = faultOf({ ...URL_GIVEN, ...given }, URL_GIVEN);
      assert.equal(error.code, 'PARAM_INVALID');
      assert.match(error.expected, /^a value$/);
    }
  });
});
