import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Message } from '../../lib/packets/message.ts';
import { type CatalogueEvent, createEvent } from '../../lib/rules/events/event.ts';
import { RULE_EVENTS } from '../../lib/rules/events/rows.ts';

describe('The payload column of an event', () => {
  for (const payload of ['', 'text', 'ü😀', '\ufeffwith a byte order mark', 'a replacement character: \ufffd'])
    it(`is the string ${JSON.stringify(payload)} as it was published`, () => {
      assert.equal(eventOf(payload).column('payload'), payload);
    });

  it('is bytes if they are not UTF-8', () => {
    const bytes = Buffer.from([0x61, 0xff, 0x62]);
    assert.deepEqual(eventOf(bytes).column('payload'), new Uint8Array(bytes));
  });

  it('is the same after the message has left its chunk', () => {
    const message = messageOf('{"a":1}');
    message.detach();
    Message.releaseTurnFrame(message);
    assert.equal(eventFor(message).column('payload'), '{"a":1}');
  });

  it('is decoded once for the paths of several rules', () => {
    const event = eventOf('{"a":{"b":1}}');
    assert.deepEqual(event.decoded('payload'), { a: { b: 1 } });
    assert.equal(event.decoded('payload'), event.decoded('payload'));
    assert.equal(event.decoded('qos'), 0);
    assert.equal(eventOf('no JSON').decoded('payload'), undefined);
  });
});

function messageOf(payload: string | Buffer): Message {
  return Message.from({ topic: 'a', payload }, undefined, 0, 0);
}

function eventFor(message: Message): CatalogueEvent {
  return createEvent(RULE_EVENTS['message.publish'], { message, client: undefined }, { node: 'node', now: () => 0 });
}

function eventOf(payload: string | Buffer): CatalogueEvent {
  return eventFor(messageOf(payload));
}
