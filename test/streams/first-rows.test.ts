import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FirstRows } from '../../lib/streams/sources/first-rows.ts';
import type { FirstMessage, SourceSetup } from '../../lib/streams/types.ts';
import { ALL, Kept, makeHub, need, stream, TestSource } from './source-fixture.ts';

/** A source that has messages when a rule starts. */
class StatefulSource extends TestSource {
  /** Undefined: a step without a message; an error is thrown. */
  messages: readonly (string | undefined | Error)[] = [];

  override open(setup: SourceSetup) {
    super.open(setup);
    return {
      close: () => void this.closed++,
      first: () => this.#first()
    };
  }

  *#first(): Generator<FirstMessage | undefined, void> {
    for (const text of this.messages) {
      if (text instanceof Error) throw text;
      yield text === undefined ? undefined : { payload: Buffer.from(text), metadata: { old: true } };
    }
  }
}

/** A hub whose turns are taken explicitly. */
function open(...messages: StatefulSource['messages']) {
  const source = new StatefulSource();
  source.messages = messages;
  const waiting: (() => void)[] = [];
  const pause = () => new Promise<void>((resolve) => waiting.push(resolve));
  const fixture = makeHub([source], { pause });
  const turn = async () => {
    for (const resume of waiting.splice(0)) resume();
    for (let at = 0; at < 10; at++) await undefined; // continuations in the same turn
  };
  const start = () => {
    const kept = new Kept();
    const first = new FirstRows(kept);
    const attachment = fixture.hub.attach(stream(), ALL, first, first);
    return { kept, attachment };
  };
  const bytes = (text: string) => source.setup.bytes(Buffer.from(text));
  return { ...fixture, source, turn, start, bytes };
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => JSON.stringify({ n }));
const namesOf = (kept: Kept) => kept.rows.map(({ values }) => values.n);

describe('the first rows of a source', () => {
  it('passes first rows on in slices, one in each turn', async () => {
    const { start, turn } = open(...numbers(250));
    const { kept, attachment } = start();
    assert.deepEqual(kept.values, [], 'nothing in the turn of the start');
    await turn();
    assert.equal(kept.rows.length, 100);
    await turn();
    await turn();
    assert.equal(kept.rows.length, 250);
    assert.equal(kept.rows[0].meta('old'), true);
    await attachment.fed;
    await attachment.detach();
  });

  it('searches for first rows in a few steps in each turn', async () => {
    const { start, turn, bytes } = open(...Array.from({ length: 30 }, () => undefined), '{"n":1}');
    const { kept } = start();
    bytes('{"n":"live"}');
    await turn();
    await turn();
    assert.deepEqual(namesOf(kept), [], 'rows that arrive meanwhile wait');
    await turn();
    assert.deepEqual(namesOf(kept), [1, 'live']);
  });

  it('ends first rows when the source fails, and passes on the rows that arrived in the meantime', async () => {
    const { start, turn, bytes, reported } = open('{"n":1}', new Error('the search fails'));
    const { kept, attachment } = start();
    bytes('{"n":"live"}');
    await turn();
    await attachment.fed;
    assert.deepEqual(namesOf(kept), [1, 'live']);
    assert.match(String(reported), /the search fails/);
  });

  it('uses more turns for large payloads', async () => {
    const { start, turn } = open(...[1, 2, 3].map((n) => JSON.stringify({ n, text: 'x'.repeat(300_000) })));
    const { kept } = start();
    await turn();
    assert.deepEqual(namesOf(kept), [1, 2]);
    await turn();
    assert.deepEqual(namesOf(kept), [1, 2, 3]);
  });

  it('passes first rows on before rows that arrive in the meantime, which wait in order', async () => {
    const { start, turn, bytes } = open(...numbers(120));
    const { kept } = start();
    bytes('{"n":"a"}');
    bytes('{"n":"b"}');
    await turn();
    bytes('{"n":"c"}');
    await turn();
    bytes('{"n":"d"}');
    assert.deepEqual(namesOf(kept), [...Array(120).keys(), 'a', 'b', 'c', 'd']);
  });

  it('passes first rows on faster with each waiting row, so that few rows wait', () => {
    const { start, bytes } = open(...numbers(80));
    const { kept } = start();
    for (let count = 0; count < 10; count++) bytes('{"n":"late"}');
    assert.equal(kept.rows.length, 80, 'eight for each row that has arrived');
  });

  it('passes first rows only to the rule that starts', async () => {
    const { start, turn } = open('{"n":1}');
    const one = start();
    await turn();
    await turn();
    const two = start();
    await turn();
    await turn();
    assert.deepEqual([namesOf(one.kept), namesOf(two.kept)], [[1], [1]]);
  });

  it('ends first rows when their rule ends, and passes on the waiting rows', async () => {
    const { start, turn, bytes } = open(...numbers(500));
    const { kept, attachment } = start();
    await turn();
    bytes('{"n":"a"}');
    await attachment.detach();
    assert.equal(kept.rows.length, 109);
    assert.equal(namesOf(kept).at(-1), 'a');
    await turn();
    assert.equal(kept.rows.length, 109);
  });

  it('neither waits for nor passes on first rows if the rule is detached before the source is open', async () => {
    const { hub, source, turn } = open(...numbers(3));
    const good = source.open.bind(source);
    let opened = () => {};
    source.open = (setup) => new Promise((resolve) => (opened = () => resolve(good(setup)))) as never;
    for (const kind of ['stream', 'table'] as const) {
      const kept = new Kept();
      const first = kind === 'stream' ? new FirstRows(kept) : undefined;
      const attachment = hub.attach(stream({}, undefined, kind), ALL, first ?? kept, first);
      let isSettled = false;
      const settle = () => void (isSettled = true);
      attachment.fed.then(settle, settle);
      const detached = attachment.detach();
      opened();
      await detached;
      await turn();
      assert.deepEqual([isSettled, kept.rows, kept.tables], [true, [], []], kind);
    }
  });

  it('stops waiting for first rows if the rule is detached while a previous source is being closed', async () => {
    const { hub, source } = open(...numbers(3));
    const good = source.open.bind(source);
    source.open = (setup) => ({ ...good(setup), close: () => new Promise(() => {}) as never });
    void hub.attach(stream(), ALL, new Kept()).detach();
    const kept = new Kept();
    const first = new FirstRows(kept);
    const attachment = hub.attach(stream(), ALL, first, first);
    void attachment.detach();
    await attachment.fed.catch(() => undefined);
    assert.deepEqual(kept.rows, []);
  });

  it('passes no first rows to a consumer that requests none, such as a replaced rule', async () => {
    const { hub, turn } = open('{"n":1}');
    const kept = new Kept();
    hub.attach(stream(), ALL, kept);
    await turn();
    assert.deepEqual(kept.values, []);
  });

  it('passes first and later rows to another consumer after a swap', async () => {
    const { start, turn, bytes } = open('{"n":1}');
    const { attachment, kept } = start();
    await turn();
    await turn();
    const next = new Kept();
    attachment.swap(next);
    bytes('{"n":2}');
    assert.deepEqual([namesOf(kept), namesOf(next)], [[1], [2]]);
    await attachment.detach();
    bytes('{"n":3}');
    assert.deepEqual(namesOf(next), [2]);
  });

  it('reports unreadable first rows to the rule that starts, and continues with the others', async () => {
    const { hub, turn, start } = open('{', '{"n":2}');
    const other = new Kept();
    hub.attach(stream(), need('n'), other);
    const { kept, attachment } = start();
    await turn();
    assert.deepEqual(namesOf(kept), [2]);
    assert.equal(kept.errors.length, 1);
    assert.deepEqual(other.errors, []);
    assert.equal(attachment.counters.exceptions, 1);
  });

  it('fills a table before it is passed on, followed by rows that arrived in the meantime', async () => {
    const { hub, turn, bytes } = open(...numbers(150));
    const kept = new Kept();
    const attachment = hub.attach(stream({ RETAIN_SIZE: '3' }, undefined, 'table'), ALL, kept);
    let isFed = false;
    void attachment.fed.then(() => (isFed = true));
    await turn();
    bytes('{"n":"a"}');
    assert.deepEqual([kept.tables.length, isFed], [0, false]);
    await turn();
    assert.deepEqual([kept.table, isFed], [[{ n: 148 }, { n: 149 }, { n: 'a' }], true]);
    const second = new Kept();
    hub.attach(stream({ RETAIN_SIZE: '3' }, undefined, 'table'), ALL, second);
    assert.deepEqual(second.table, kept.table, 'the table is shared');
  });
});
