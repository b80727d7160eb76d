import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  asError,
  BrokerError,
  InvalidInput,
  NotAuthorized,
  NotFound,
  ProtocolError,
  StateError
} from '../../lib/base/errors.ts';

describe('BrokerError', () => {
  it('contains a code, a message, a name and the cause', () => {
    const cause = new Error('below');
    const error = new NotFound('SESSION_NOT_FOUND', 'no session "x"', { cause });
    assert.ok(error instanceof BrokerError && error instanceof Error);
    assert.equal(error.code, 'SESSION_NOT_FOUND');
    assert.equal(error.cause, cause);
    assert.equal(String(error), 'NotFound: no session "x"');
    assert.equal(new StateError('NOT_STARTED', 'x').name, 'StateError');
    assert.equal('cause' in new BrokerError('NOT_STARTED', 'x', { cause: undefined }), false);
  });

  it('contains the reason code that is sent', () => {
    assert.equal(new ProtocolError(0x82, 'x').reasonCode, 0x82);
    assert.equal(new ProtocolError(0x82, 'x').code, 'PROTOCOL_ERROR');
    assert.equal(new NotAuthorized('x').reasonCode, 0x87);
    assert.equal(new NotAuthorized('x', 0x8a).reasonCode, 0x8a);
  });
});

describe('InvalidInput', () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  const shown: [got: unknown, text: string][] = [
    ['x', '"x"'],
    ['x'.repeat(100), `"${'x'.repeat(77)}..."`],
    [undefined, 'undefined'],
    [null, 'null'],
    [NaN, 'NaN'],
    [Infinity, 'Infinity'],
    [5n, '5'],
    [Symbol('s'), 'Symbol(s)'],
    [() => 1, 'a function'],
    [{ a: 1 }, '{"a":1}'],
    [Array.from({ length: 100 }, () => 1), `[${'1,'.repeat(38)}...`],
    [circular, '[object Object]'],
    [{ big: 5n }, '[object Object]']
  ];
  for (const [got, text] of shown) {
    it(`shows ${text.slice(0, 30)} as the given value`, () => {
      const error = new InvalidInput('OPTION_INVALID', 'zones.a.qos', '0, 1 or 2', got);
      assert.equal(error.message, `zones.a.qos: expected 0, 1 or 2, got ${text}`);
      assert.equal(error.got, got);
      assert.equal(error.field, 'zones.a.qos');
      assert.equal(error.expected, '0, 1 or 2');
    });
  }

  it('shows neither the credentials and queries of URLs nor passwords in JSON', () => {
    for (const [value, shown] of [
      ['redis://user:pass@host:6379/1', '"redis://***@host:6379/1"'],
      ['http://user:pa/ss@host', '"http://***@host"'],
      ['see http://user:pass@host/?token=t', '"see http://******@host/?token=******"'],
      [`http://${'u'.repeat(100)}:pass@host`, '"http://***@host"'],
      [new URL('http://user:pass@host/'), '"http://******@host/"'],
      [['http://user:pass@host'], '["http://******@host"]'],
      ['<scheme>://user:pass@host:1883', '"<scheme>://******@host:1883"'],
      ['mqtt ://user:pass@host', '"mqtt ://******@host"'],
      ['://user:pass@host', '"://******@host"'],
      ['//user:pass@host', '"//***@host"'],
      ['{{scheme}}://user:pass@host', '"{{scheme}}://******@host"'],
      ['connect mqtt://user:pa/ss@host', '"connect mqtt://***@host"'],
      ['{"passwords":["pass",{"a":"pass"}],"a":1}', '"{\\"passwords\\":******,\\"a\\":1}"'],
      ['{"credentials":{"user":"pass","a":["pass', '"{\\"credentials\\":******"'],
      [{ password: 'pass', a: 1 }, '{"password":"******","a":1}'],
      [{ passwords: ['pass'], credential: { a: 'pass' } }, '{"passwords":"******","credential":"******"}'],
      [{ password: true, tokens: null }, '{"password":true,"tokens":null}']
    ] as const) {
      const error = new InvalidInput('OPTION_INVALID', 'x.y', 'a number', value);
      assert.equal(error.message, `x.y: expected a number, got ${shown}`);
      if (typeof value === 'string' || value instanceof URL)
        assert.doesNotMatch(String(error.got), /pass\b|ss@|token=t/);
    }
  });

  it('shows values that are not secrets: topics that begin with //, and numbers of tokens', () => {
    for (const value of ['//a/#', '//a?b=c', '{"token":true,"secret":null,"max_tokens":5,"tokenizer":"a"}']) {
      const error = new InvalidInput('OPTION_INVALID', 'x.y', 'a number', value);
      assert.equal(error.message, `x.y: expected a number, got ${JSON.stringify(value)}`);
      assert.equal(error.got, value);
    }
    const { message } = new InvalidInput('OPTION_INVALID', 'x', 'y', { max_tokens: 5, tokenizer: 'a' });
    assert.match(message, /got \{"max_tokens":5,"tokenizer":"a"\}$/);
  });

  it('accepts its own message', () => {
    assert.equal(new InvalidInput('X', 'f', 'e', 1, 'say this').message, 'say this');
  });
});

describe('asError', () => {
  it('returns an error even for a value that cannot be converted to a string', () => {
    for (const thrown of [Object.create(null), { toString: () => assert.fail() }, Symbol('s')])
      assert.equal(asError(thrown).cause, thrown);
  });

  it('returns errors unchanged and wraps any other value with its text', () => {
    const error = new TypeError('x');
    assert.equal(asError(error), error);
    assert.equal(asError(undefined).message, 'undefined');
    assert.equal(asError(42).cause, 42);
  });
});
