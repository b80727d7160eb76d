import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as ldapts from 'ldapts';
import { filledDn } from '../../adapters/auth/ldap/names.ts';
import { lineOf } from '../../adapters/streams/influx/line-protocol.ts';
import { hideInText, keepInText } from '../../lib/base/hidden-text.ts';
import { compileConversion } from '../../lib/streams/formats/convert.ts';
import { serveManagement, startBroker } from '../support/management.ts';

/** A length for which an expression whose time grows with the square of the length does not end. */
const LONG = 3_000_000;

describe('strings of clients', () => {
  it('reads numbers in time that grows with the length of a string', () => {
    const parseTime = () => undefined;
    const convert = compileConversion({
      columns: [{ name: 'a', type: { type: 'float' } }],
      isStrict: false,
      parseTime
    });
    assert.deepEqual(convert({ a: `${'1'.repeat(LONG)}x` }), { a: null });
  });

  it('writes tags of the line protocol in time that grows with the length of a string', () => {
    const tag = `${'\\'.repeat(LONG)}x`;
    const line = lineOf({ measurement: 'm', tags: [['t', tag]], fields: [['a', 1]], time: undefined }, 'influx2 sink');
    assert.equal(line.length, tag.length + 'm,t= a=1'.length);
  });

  it('writes distinguished names in time that grows with the length of a string', () => {
    const name = `${' '.repeat(30_000)}a${' '.repeat(30_000)}b`;
    const dn = { fill: ({ u }: Record<string, string>) => u } as unknown as Parameters<typeof filledDn>[1];
    assert.equal(filledDn(ldapts, dn, { u: name }), `${'\\20'.repeat(30_000)}a${' '.repeat(30_000)}b`);
  });

  it('hides the secrets of URLs and of JSON in time that grows with the length of a string', () => {
    const urls = 'a://'.repeat(LONG);
    assert.equal(hideInText(urls), urls);
    const values = (value: string) => `a://b?${`${value}&`.repeat(LONG / 10)}`;
    assert.equal(keepInText(values('******'), values('x')), values('x'));
    for (const json of ['"'.repeat(LONG), '\\"'.repeat(LONG), '":"'.repeat(LONG), '"a" '.repeat(LONG)])
      assert.equal(hideInText(json), json);
  });

  it('refuses base64 over REST in time that grows with the length of a string', async () => {
    await using broker = await startBroker();
    await using api = await serveManagement(broker);
    const payload = `${'='.repeat(900_000)}x`;
    const { body } = await api.call('POST', '/api/mqtt/publish', {
      topic: 'a',
      clientid: 'c',
      payload,
      encoding: 'base64'
    });
    assert.notEqual(body.code, 0);
  });
});
