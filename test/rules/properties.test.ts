import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { messageProperties, propertiesColumn } from '../../lib/rules/events/properties.ts';

describe('The properties of a message in a column', () => {
  it('restores properties from a column, with repeated user properties and bytes', () => {
    const properties = {
      payloadFormatIndicator: 1,
      messageExpiryInterval: 30,
      contentType: 'text/plain',
      responseTopic: 'answers',
      correlationData: Buffer.from([0, 255]),
      userProperties: [
        ['a', '1'],
        ['a', '2'],
        ['__proto__', '3']
      ] as [string, string][]
    } as const;
    assert.deepEqual(messageProperties(propertiesColumn(properties)), properties);
  });

  it('returns no properties if the column has another form', () => {
    for (const column of [undefined, null, 'text', [], { 'Content-Type': 1, 'User-Property-Pairs': 'a' }])
      assert.deepEqual(messageProperties(column), {});
  });
});
