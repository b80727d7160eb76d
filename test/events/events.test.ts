import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { EVENT_NAMES } from '../../lib/events/catalogue.ts';
import { Events } from '../../lib/events/events.ts';
import { Broker } from '../../lib/index.ts';
import { clientInfo } from '../support/client-info.ts';

const client = clientInfo();
const created = { client };

describe('Events', () => {
  it('calls every listener of an event with its value, in order of registration', () => {
    const events = new Events();
    const heard: unknown[] = [];
    events.on('session.created', (event) => heard.push(['first', event]));
    events.on('session.resumed', () => heard.push('another event'));
    events.on('session.created', (event) => heard.push(['second', event]));
    events.emit('session.created', created);
    assert.deepEqual(heard, [
      ['first', created],
      ['second', created]
    ]);
  });

  it('reports for each event whether it has a listener', () => {
    const events = new Events();
    for (const name of EVENT_NAMES) assert.equal(events.heard[name], false);
    const listener = () => {};
    events.on('session.created', listener);
    events.on('session.created', () => {});
    assert.equal(events.heard['session.created'], true);
    assert.equal(events.heard['session.resumed'], false);
    events.off('session.created', listener);
    assert.equal(events.heard['session.created'], true);
  });

  it('stops calling a listener that was removed', () => {
    const events = new Events();
    const listener = () => assert.fail('was taken away');
    events.on('session.created', listener);
    events.off('session.created', listener);
    events.off('session.created', listener);
    assert.equal(events.heard['session.created'], false);
    events.emit('session.created', created);
  });

  it('calls a once listener once', () => {
    const events = new Events();
    let calls = 0;
    events.once('session.created', () => {
      calls++;
      events.emit('session.created', created);
    });
    events.emit('session.created', created);
    assert.equal(calls, 1);
    assert.equal(events.heard['session.created'], false);
  });

  it('registers a listener once, permanently if `on` was among the calls', () => {
    const events = new Events();
    let calls = 0;
    const listener = () => {
      calls++;
    };
    events.once('session.created', listener);
    events.on('session.created', listener);
    events.once('session.created', listener);
    events.emit('session.created', created);
    events.emit('session.created', created);
    assert.equal(calls, 2);
  });

  it('reports an error that a listener throws with an error event, and calls the others', () => {
    const events = new Events();
    const errors: unknown[] = [];
    let others = 0;
    events.on('error', (event) => errors.push([event.error.message, event.during]));
    events.on('session.created', () => {
      throw new Error('broken');
    });
    events.on('session.created', () => others++);
    events.emit('session.created', created);
    assert.deepEqual(errors, [['broken', 'a listener of session.created']]);
    assert.equal(others, 1);
  });

  it('reports a rejection of a listener with an error event, even if it is not an error', async () => {
    const events = new Events();
    events.on('session.created', () => Promise.reject('just a text'));
    const failed = events.next('error');
    events.emit('session.created', created);
    const { error } = await failed;
    assert.equal(error.message, 'just a text');
    assert.equal(error.cause, 'just a text');
  });

  it('emits one warning when an error listener fails itself', async () => {
    const events = new Events();
    let calls = 0;
    events.on('error', () => {
      calls++;
      throw new Error('the error listener is broken');
    });
    const warned = once(process, 'warning');
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    events.emit('error', { error: new Error('x'), during: 'a test', client: undefined });
    events.emit('error', { error: new Error('y'), during: 'a test', client: undefined });
    assert.match(((await warned) as Error[])[0].message, /the error listener is broken/);
    await new Promise(setImmediate);
    process.off('warning', note);
    assert.equal(warnings.length, 1);
    assert.equal(calls, 2);
  });

  it('emits a warning when a listener fails and no error listener exists', async () => {
    const events = new Events();
    events.on('session.resumed', () => {
      throw new Error('without a listener');
    });
    const warned = once(process, 'warning');
    events.emit('session.resumed', created);
    assert.match(((await warned) as Error[])[0].message, /without a listener/);
  });

  it('emits nothing for errors without a listener', () => {
    new Events().emit('error', { error: new Error('x'), during: 'a test', client: undefined });
  });

  it('waits for the next event, and removes its listener afterwards', async () => {
    const events = new Events();
    const next = events.next('session.created');
    assert.equal(events.heard['session.created'], true);
    events.emit('session.created', created);
    assert.equal(await next, created);
    assert.equal(events.heard['session.created'], false);
  });

  it('waits for an event that meets a condition', async () => {
    const events = new Events();
    const wanted = { client: clientInfo({ clientId: 'wanted' }) };
    const next = events.next('session.created', { where: (event) => event.client.clientId === 'wanted' });
    events.emit('session.created', created);
    events.emit('session.created', wanted);
    assert.equal(await next, wanted);
  });

  it('rejects a wait whose condition throws or whose signal aborts, and removes its listener', async () => {
    const events = new Events();
    const broken = events.next('session.created', {
      where: () => {
        throw new Error('bad condition');
      }
    });
    const rejected = assert.rejects(broken, /bad condition/);
    events.emit('session.created', created);
    await rejected;
    const abort = new AbortController();
    const aborted = assert.rejects(events.next('session.created', { signal: abort.signal }), /enough/);
    abort.abort(new Error('enough'));
    await aborted;
    await assert.rejects(events.next('session.created', { signal: abort.signal }), /enough/);
    assert.equal(events.heard['session.created'], false);
  });
});

describe('Listeners and hooks of a broker', () => {
  it('names the option that is similar to a misspelled one', () => {
    const broker = new Broker();
    const calls: Record<string, () => unknown> = {
      filter: () => broker.on('message.publish', () => {}, { filer: 'a/#' } as object),
      where: () => broker.nextEvent('client.connected', { were: () => true } as object),
      isFirst: () => broker.hook('publish', () => undefined, { isFrist: true } as object)
    };
    for (const [name, call] of Object.entries(calls))
      assert.throws(call, { code: 'OPTION_UNKNOWN', message: new RegExp(`did you mean "${name}"`) });
  });
});
