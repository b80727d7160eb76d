import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { addressText, listedFilter } from '../../adapters/management/wire.ts';

describe('The format of the management interface', () => {
  it('formats the address of a listener', () => {
    for (const [address, text] of [
      [{ host: '0.0.0.0', port: 1883 }, '0.0.0.0:1883'],
      [{ host: '::', port: 8883 }, '8883'],
      [{ host: '::1', port: 8083 }, '[::1]:8083'],
      [{ path: '/run/x.sock' }, '/run/x.sock'],
      [undefined, 'undefined']
    ] as const)
      assert.equal(addressText(address), text);
  });

  it('formats the topic filter of a subscription with or without the prefix of its share group', () => {
    for (const [filter, withPrefix, without] of [
      ['a/$queue/b', 'a/$queue/b', 'a/$queue/b'],
      ['$share/g/a', '$share/g/a', 'a'],
      ['$share/g//a', '$share/g//a', '/a'],
      ['$queue/a', '$share/$queue/a', 'a'],
      ['$queue//a', '$share/$queue//a', '/a'],
      ['$queues/a', '$queues/a', '$queues/a']
    ]) {
      assert.equal(listedFilter(filter, true), withPrefix);
      assert.equal(listedFilter(filter, false), without);
    }
  });
});
