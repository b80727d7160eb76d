import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Message } from '../../lib/packets/message.ts';
import { CatalogueEvent } from '../../lib/rules/events/event.ts';
import { RULE_EVENTS } from '../../lib/rules/events/rows.ts';
import { Members } from '../../lib/sql/json-members.ts';

describe('The payload column of an event', () => {
  for (const payload of ['', 'text', 'ü😀', '\ufeffwith a byte order mark', 'a replacement character: \ufffd'])
    it(`returns the string ${JSON.stringify(payload)} as it was published`, () => {
      assert.equal(eventOf(payload).column('payload'), payload);
    });

  it('returns bytes if they are not UTF-8', () => {
    const bytes = Buffer.from([0x61, 0xff, 0x62]);
    assert.deepEqual(eventOf(bytes).column('payload'), new Uint8Array(bytes));
  });

  it('stays the same after the message has been copied from its chunk', () => {
    const message = messageOf('{"a":1}');
    message.detach();
    Message.releaseTurnFrame(message);
    assert.equal(eventFor(message).column('payload'), '{"a":1}');
  });

  it('decodes the payload once for the paths of several rules', () => {
    const event = eventOf('{"a":{"b":1}}');
    assert.deepEqual(event.decoded('payload'), { a: { b: 1 } });
    assert.equal(event.decoded('payload'), event.decoded('payload'));
    assert.equal(event.decoded('qos'), 0);
    assert.equal(eventOf('no JSON').decoded('payload'), undefined);
  });

  it('decodes only the members that a statement reads, not the whole payload', () => {
    const [a, b] = [membersOf('a'), membersOf('b')];
    const event = eventOf('{"a":1,"b":2,"c":3}');
    assert.deepEqual(event.decoded('payload', a), { a: 1 });
    assert.equal(event.decoded('payload', a), event.decoded('payload', a));
    const whole = event.decoded('payload', b);
    assert.deepEqual(whole, { a: 1, b: 2, c: 3 }, 'for other members of another statement');
    assert.equal(event.decoded('payload'), whole);
    assert.equal(event.decoded('payload', a), whole);
  });

  it('decodes the whole payload if its members cannot be read alone', () => {
    const members = membersOf('a');
    const event = eventOf('{"a":{"b":1},"c":"ä"}');
    assert.deepEqual(event.decoded('payload', members), { a: { b: 1 }, c: 'ä' });
    assert.equal(eventOf('{"a":1').decoded('payload', members), undefined);
    assert.deepEqual(eventOf(Buffer.from([0xff])).decoded('payload', members), new Uint8Array([0xff]));
  });

  it('keeps the same members after the message has been copied from its chunk', () => {
    const message = messageOf('{"a":1,"c":3}');
    message.detach();
    Message.releaseTurnFrame(message);
    assert.deepEqual(eventFor(message).decoded('payload', membersOf('a')), { a: 1 });
  });
});

function membersOf(...names: string[]): Members {
  return Members.of(names) as Members;
}

function messageOf(payload: string | Buffer): Message {
  return Message.from({ topic: 'a', payload }, undefined, 0, 0);
}

function eventFor(message: Message): CatalogueEvent {
  return new CatalogueEvent(
    RULE_EVENTS['message.publish'],
    { message, client: undefined },
    { node: 'node', now: () => 0 }
  );
}

function eventOf(payload: string | Buffer): CatalogueEvent {
  return eventFor(messageOf(payload));
}
