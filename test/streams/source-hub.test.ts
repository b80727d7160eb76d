import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Attachment } from '../../lib/streams/sources/hub.ts';
import type { Column } from '../../lib/streams/types.ts';
import { ALL, Kept, makeHub, need, settled, stream, TestSource } from './source-fixture.ts';

const A: readonly Column[] = [
  { name: 'a', type: { type: 'bigint' } },
  { name: 'b', type: { type: 'string' } }
];

function open(...kept: Kept[]) {
  const type = new TestSource();
  const fixture = makeHub([type]);
  const attachments = kept.map((each) => fixture.hub.attach(stream(), ALL, each));
  return {
    ...fixture,
    type,
    setup: type.setup,
    attachments,
    send: (text: string) => type.setup.bytes(Buffer.from(text))
  };
}

describe('the sources of streams', () => {
  it('shares a source among the rules of a stream, opened with the first and closed with the last', async () => {
    const [one, two] = [new Kept(), new Kept()];
    const { type, attachments, send } = open(one, two);
    assert.equal(type.setups.length, 1);
    send('{"a":1}');
    assert.deepEqual(one.values, [{ a: 1 }]);
    assert.equal(one.rows[0], two.rows[0]);
    await attachments[0].detach();
    await attachments[0].detach();
    assert.equal(type.closed, 0);
    send('{"a":2}');
    assert.deepEqual([one.rows.length, two.rows.length], [1, 2]);
    await attachments[1].detach();
    assert.equal(type.closed, 1);
    send('{"a":3}');
    assert.equal(two.rows.length, 2);
  });

  it('separates sources of different definitions, even of the same name', () => {
    const type = new TestSource();
    const { hub } = makeHub([type]);
    hub.attach(stream(), ALL, new Kept());
    hub.attach(stream({ DATASOURCE: 'x' }), ALL, new Kept());
    assert.deepEqual(
      type.setups.map(({ datasource }) => datasource),
      ['', 'x']
    );
  });

  it('opens a source again after the previous one is closed', async () => {
    const type = new TestSource();
    let release = () => {};
    type.open = (setup) => {
      type.setups.push(setup);
      return { close: () => new Promise<void>((resolve) => (release = resolve)) };
    };
    const { hub } = makeHub([type]);
    const first = hub.attach(stream(), ALL, new Kept());
    const closing = first.detach();
    const second = hub.attach(stream(), ALL, new Kept());
    await settled();
    assert.equal(type.setups.length, 1);
    release();
    await closing;
    await second.opened;
    assert.equal(type.setups.length, 2);
  });

  it('notifies all rules if a source cannot be opened, and tries again for the next rule', async () => {
    const type = new TestSource();
    const good = type.open;
    type.open = () => {
      throw new Error('no such thing');
    };
    const { hub } = makeHub([type]);
    const [one, two] = [hub.attach(stream(), ALL, new Kept()), hub.attach(stream(), ALL, new Kept())];
    await assert.rejects(one.opened, /no such thing/);
    await assert.rejects(two.opened, /no such thing/);
    await one.detach();
    type.open = good;
    await hub.attach(stream(), ALL, new Kept()).opened;
    assert.equal(type.setups.length, 1);
  });

  it('closes a source whose rules are detached while it is being opened', async () => {
    const type = new TestSource();
    let opened = () => {};
    type.open = (setup) => {
      type.setups.push(setup);
      return new Promise((resolve) => (opened = () => resolve({ close: () => void type.closed++ })));
    };
    const { hub } = makeHub([type]);
    const detached = hub.attach(stream(), ALL, new Kept()).detach();
    opened();
    await detached;
    assert.equal(type.closed, 1);
  });

  it('accepts rows that a source produces while it is being opened', () => {
    const type = new TestSource();
    type.open = (setup) => {
      setup.row({ a: 1 });
      return { close: () => undefined };
    };
    const kept = new Kept();
    makeHub([type]).hub.attach(stream(), ALL, kept);
    assert.deepEqual(kept.values, [{ a: 1 }]);
  });

  it('refuses a type that does not exist or is not for this use', () => {
    const type = Object.assign(new TestSource(), { for: ['table'] as const });
    const { hub } = makeHub([type]);
    const unknown = { code: 'SOURCE_NOT_FOUND', message: 'stream demo: unknown source type other' };
    assert.throws(() => hub.attach(stream({ TYPE: 'other' }), ALL, new Kept()), unknown);
    const message = 'stream demo: a source of the type test cannot be used for a stream';
    assert.throws(() => hub.attach(stream(), ALL, new Kept()), { code: 'STREAM_INVALID', message });
    assert.throws(() => hub.attach(stream({ FORMAT: 'xml' }, undefined, 'table'), ALL, new Kept()), {
      code: 'STREAM_INVALID'
    });
  });

  it('passes rows of the app to a stream by its name', () => {
    const kept = new Kept();
    const { hub } = open();
    hub.push('demo', { a: 1 });
    hub.attach(stream(), ALL, kept);
    hub.push('demo', { a: 2 }, { who: 'app' });
    hub.push('other', { a: 3 });
    assert.deepEqual(kept.values, [{ a: 2 }]);
    assert.deepEqual(kept.rows[0].meta('who'), 'app');
  });
});

describe('the rows of a shared source', () => {
  it('assigns rows the time of their arrival', () => {
    const kept = new Kept();
    const { clock, setup, send } = open(kept);
    clock.advance(5);
    send('{}');
    setup.row({}, undefined, 7);
    setup.bytes(Buffer.from('{}'), { k: 'v' }, 8);
    assert.deepEqual(
      kept.rows.map(({ timestamp }) => timestamp),
      [1005, 7, 8]
    );
    assert.deepEqual(kept.rows[2].source, { k: 'v' });
  });

  it('gives rows the columns that any of the rules needs', async () => {
    const type = new TestSource();
    const { hub } = makeHub([type]);
    const [one, two] = [new Kept(), new Kept()];
    hub.attach(stream(), need('a'), one);
    const send = () => type.setup.bytes(Buffer.from('{"a":1,"b":2,"c":3}'));
    send();
    const attachment = hub.attach(stream(), need('b'), two);
    send();
    await attachment.detach();
    send();
    assert.deepEqual(one.values, [{ a: 1 }, { a: 1, b: 2 }, { a: 1 }]);
    hub.attach(stream(), ALL, two);
    send();
    assert.deepEqual(one.values.at(-1), { a: 1, b: 2, c: 3 });
  });

  it('converts rows to the declared types', () => {
    const type = new TestSource();
    const { hub } = makeHub([type]);
    const kept = new Kept();
    hub.attach(stream({}, A), ALL, kept);
    type.setup.bytes(Buffer.from('[{"a":1,"B":"x","c":3},{"a":"x"}]'));
    type.setup.row({ a: 4, b: 'y' });
    assert.deepEqual(kept.values, [
      { a: 1n, b: 'x' },
      { a: null, b: null },
      { a: 4n, b: 'y' }
    ]);
  });

  it('fails only for the rules that need a column which cannot be converted', () => {
    const type = new TestSource();
    const { hub } = makeHub([type]);
    const [a, b, all] = [new Kept(), new Kept(), new Kept()];
    const strict = stream({ STRICT_VALIDATION: 'true' }, A);
    hub.attach(strict, need('a'), a);
    hub.attach(strict, need('b'), b);
    const attachment = hub.attach(strict, ALL, all);
    type.setup.bytes(Buffer.from('{"a":1,"b":2}'));
    const message = 'error in preprocessor: invalid data type for b, expect string but found float64(2)';
    assert.deepEqual([a.values, a.errors], [[{ a: 1n }], []]);
    assert.deepEqual([b.values, b.errors], [[], [message]]);
    assert.deepEqual([all.values, all.errors], [[], [message]]);
    assert.deepEqual(attachment.counters, {
      recordsIn: 1,
      exceptions: 1,
      lastException: message,
      lastExceptionAt: 1000
    });
  });

  it('reports a payload that cannot be decoded, and continues', () => {
    const kept = new Kept();
    const { attachments, send, setup } = open(kept);
    send('no JSON');
    send('{"a":1}');
    setup.failed('the file is gone');
    assert.match(kept.errors[0], /^the payload is not JSON: /);
    assert.equal(kept.errors[1], 'the file is gone');
    assert.deepEqual(kept.values, [{ a: 1 }]);
    const { recordsIn, exceptions, lastException } = attachments[0].counters;
    assert.deepEqual([recordsIn, exceptions, lastException], [3, 2, 'the file is gone']);
  });

  it('assigns rows the time of the column TIMESTAMP in rules with event time', () => {
    const type = new TestSource();
    const { hub } = makeHub([type]);
    const [event, plain] = [new Kept(), new Kept()];
    const definition = stream({ TIMESTAMP: 'ts' });
    hub.attach(definition, { ...need('a'), isEventTime: true }, event);
    hub.attach(definition, need('a'), plain);
    for (const payload of ['{"a":1,"ts":5}', '{"a":2,"ts":"1970-01-01T00:00:01Z"}', '{"a":3}', '{"a":4,"ts":"x"}'])
      type.setup.bytes(Buffer.from(payload));
    assert.deepEqual(
      event.rows.map(({ timestamp }) => timestamp),
      [5, 1000]
    );
    assert.deepEqual(event.errors, [
      'cannot find timestamp field ts in tuple map[a:3]',
      'cannot convert timestamp field ts to timestamp with error x is not a time'
    ]);
    assert.equal(plain.rows.length, 4);
    assert.equal(plain.rows[0].timestamp, 1000);
    const message = 'stream demo needs the option TIMESTAMP, because the rule has isEventTime';
    assert.throws(() => hub.attach(stream(), { ...ALL, isEventTime: true }, event), {
      code: 'STREAM_INVALID',
      message
    });
  });

  it('provides integers for the rules that request them', () => {
    const type = new TestSource();
    const { hub } = makeHub([type]);
    const [floats, integers] = [new Kept(), new Kept()];
    hub.attach(stream(), ALL, floats);
    hub.attach(stream(), { ...ALL, integers: true }, integers);
    type.setup.bytes(Buffer.from('{"a":1,"b":1.5}'));
    assert.deepEqual(floats.values, [{ a: 1, b: 1.5 }]);
    assert.deepEqual(integers.values, [{ a: 1n, b: 1.5 }]);
  });

  it('keeps other rules supplied if one detaches while a row is processed, and excludes rules that attach meanwhile', () => {
    const type = new TestSource();
    const { hub } = makeHub([type]);
    const [floats, integers, late] = [new Kept(), new Kept(), new Kept()];
    const attachment = hub.attach(stream({ TIMESTAMP: 'a' }), ALL, floats);
    floats.push = () => {
      void attachment.detach();
      hub.attach(stream({ TIMESTAMP: 'a' }), { ...ALL, isEventTime: true }, late);
    };
    hub.attach(stream({ TIMESTAMP: 'a' }), { ...ALL, integers: true }, integers);
    type.setup.bytes(Buffer.from('{"a":1}'));
    assert.deepEqual([integers.values, late.values], [[{ a: 1n }], []]);
    type.setup.bytes(Buffer.from('{"a":2}'));
    assert.deepEqual([integers.values, late.values], [[{ a: 1n }, { a: 2n }], [{ a: 2 }]]);
  });

  it('passes a row to the other rules if one throws', () => {
    const bad = new Kept();
    bad.push = () => {
      throw new Error('broken');
    };
    const good = new Kept();
    const { reported, send } = open(bad, good, bad);
    send('{}');
    assert.equal(good.rows.length, 1);
    assert.deepEqual(reported, Array(2).fill('passing a row of stream "demo" to a rule: broken'));
  });

  it('delivers rows in the same order to all rules, even if a rule causes one', () => {
    const [one, two] = [new Kept(), new Kept()];
    const { send } = open(one, two);
    const push = one.push.bind(one);
    one.push = (row) => {
      push(row);
      const { n } = row.values as { n: number };
      if (n < 90) send(`{"n":${n + 1}}`);
    };
    send('{"n":1}');
    assert.equal(two.rows.length, 90);
    assert.deepEqual(two.values, one.values);
  });

  it('ends a chain of rows that trigger each other after 100 of them, and each message begins a new chain', () => {
    const kept = new Kept();
    const { send, reported } = open(kept);
    const push = kept.push.bind(kept);
    kept.push = (row) => {
      push(row);
      send('{}');
    };
    for (const rows of [101, 202]) {
      send('{}');
      assert.equal(kept.rows.length, rows);
    }
    assert.deepEqual(reported, Array(2).fill('stream demo: rules send rows to each other in a cycle'));
  });

  it('limits rows that trigger each other, and takes them in slices', async () => {
    const kept = new Kept();
    const { send, attachments, setup } = open(kept);
    let isFirst = true;
    kept.push = () => {
      if (isFirst) for (let i = 0; i < 102_403; i++) send('{}');
      isFirst = false;
    };
    send('{}');
    assert.equal(attachments[0].counters.recordsIn, 1001);
    while (setup.isFull) await settled();
    assert.equal(attachments[0].counters.recordsIn, 102_401);
    assert.equal(attachments[0].counters.exceptions, 3);
    assert.match(attachments[0].counters.lastException, /^more than 102400 rows are waiting/);
  });
});

describe('the state of a shared source', () => {
  it('shows the connection, and the reason why it was lost', () => {
    const { clock, setup, attachments } = open(new Kept());
    const shown = () => JSON.parse(JSON.stringify(attachments[0].connection));
    assert.deepEqual(shown(), {
      status: 0,
      connectedAt: 0,
      disconnectedAt: 0,
      disconnectedMessage: '',
      triedAt: 1000
    });
    setup.connected();
    clock.advance(10);
    setup.disconnected(new Error('refused'));
    assert.deepEqual(shown(), {
      status: -1,
      connectedAt: 1000,
      disconnectedAt: 1010,
      disconnectedMessage: 'refused',
      triedAt: 1010
    });
  });

  it('reports that there is no room while a rule has none', async () => {
    const { setup, attachments } = open(new Kept(), new Kept());
    const runs: string[] = [];
    setup.whenRoom(() => runs.push('at once'));
    await settled();
    attachments[0].setFull(true);
    attachments[1].setFull(true);
    attachments[1].setFull(true);
    assert.equal(setup.isFull, true);
    setup.whenRoom(() => runs.push('later'));
    attachments[1].setFull(false);
    await settled();
    assert.deepEqual(runs, ['at once']);
    await attachments[0].detach();
    assert.equal(setup.isFull, false);
    await settled();
    assert.deepEqual(runs, ['at once', 'later']);
  });

  it('counts a failure to signal room as an exception', async () => {
    const { setup, attachments } = open(new Kept());
    setup.whenRoom(() => {
      throw new Error('cannot read on');
    });
    await settled();
    assert.equal(attachments[0].counters.lastException, 'cannot read on');
  });
});

describe('tables', () => {
  const table = (options: Record<string, string> = {}) => stream(options, undefined, 'table');
  const values = (each: Kept) => each.tables.map((rows) => rows.map((row) => row.values.n));

  it('contains the last row of a source, or the last RETAIN_SIZE rows', () => {
    for (const [size, expected] of [
      ['', [[1], [2], [3]]],
      ['2', [[1], [1, 2], [2, 3]]]
    ] as const) {
      const type = new TestSource();
      const kept = new Kept();
      makeHub([type]).hub.attach(table({ RETAIN_SIZE: size }), ALL, kept);
      for (const n of [1, 2, 3]) type.setup.row({ n });
      assert.deepEqual(values(kept), expected);
      assert.deepEqual(kept.rows, []);
    }
  });

  it('contains all rows of a batch when it is complete', () => {
    const type = Object.assign(new TestSource(), { isBatch: true as const });
    const kept = new Kept();
    const { hub } = makeHub([type]);
    hub.attach(table(), need('m'), kept);
    for (const n of [1, 2]) type.setup.row({ n });
    assert.deepEqual(values(kept), []);
    type.setup.end();
    type.setup.row({ n: 3 });
    type.setup.end();
    assert.deepEqual(values(kept), [[1, 2], [3]]);
    const late = new Kept();
    hub.attach(table(), ALL, late);
    assert.deepEqual(values(late), [[3]]);
    assert.equal(late.tables[0], kept.tables[1]);
  });

  it('refuses a RETAIN_SIZE that is not a number', () => {
    const { hub } = makeHub([new TestSource()]);
    assert.throws(() => hub.attach(table({ RETAIN_SIZE: 'x' }), ALL, new Kept()), {
      code: 'STREAM_INVALID',
      message: 'RETAIN_SIZE: expected a number from 0 to 10000, got "x"'
    });
  });
});

describe('the properties of a source', () => {
  class Typed extends TestSource {
    readonly properties = {
      url: { type: 'string', about: '', required: true },
      size: { type: 'number', about: '', default: 3 }
    } as const;
    readonly sections = { default: { url: 'of the type' }, other: { size: 9 } };
  }

  function propertiesOf(options: Record<string, string>, section: Record<string, Record<string, unknown>>) {
    const type = new Typed();
    const fixture = makeHub([type], { sourceConfig: { test: section } });
    fixture.hub.attach(stream(options), ALL, new Kept());
    return { properties: { ...type.setup.properties }, reported: fixture.reported };
  }

  it('merges the section of CONF_KEY over default, and sections of the options over those of the type', () => {
    assert.deepEqual(propertiesOf({}, {}).properties, { url: 'of the type', size: 3 });
    assert.deepEqual(propertiesOf({ CONF_KEY: 'other' }, { default: { size: 1 } }).properties, {
      url: 'of the type',
      size: 9
    });
    const own = { default: { url: 'u' }, other: { size: 5, bufferLength: 7 } };
    assert.deepEqual(propertiesOf({ CONF_KEY: 'other' }, own).properties, { url: 'u', size: 5, bufferLength: 7 });
  });

  it('checks properties, and reports unknown ones', () => {
    assert.throws(() => propertiesOf({}, { default: { size: 'x' } }), {
      code: 'PROPERTY_INVALID',
      message: 'source test of stream demo: property size must be a number, got "x"'
    });
    assert.deepEqual(propertiesOf({}, { default: { ur: 'x' } }).reported, [
      'source test of stream demo: the unknown property "ur" has no effect; did you mean "url"?'
    ]);
  });

  it('refuses an unknown section', () => {
    const message = 'source test of stream demo: unknown section "x" (CONF_KEY); use one of default, other';
    assert.throws(() => propertiesOf({ CONF_KEY: 'x' }, {}), { code: 'PROPERTY_INVALID', message });
    const fixture = makeHub([new TestSource()], {});
    assert.throws(() => fixture.hub.attach(stream({ CONF_KEY: 'x' }), ALL, new Kept()), {
      message: 'source test of stream demo: unknown section "x" (CONF_KEY); there are none'
    });
  });
});

describe('many rules on one stream', () => {
  it('matches a slow reference implementation while rules attach and detach at random', async () => {
    const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
    console.log(`seed ${seed}`);
    let state = seed;
    const random = (count: number) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * count);
    };
    const type = new TestSource();
    const { hub } = makeHub([type]);
    const definitions = [stream(), stream({ DATASOURCE: 'x' })];
    interface Rule {
      readonly kept: Kept;
      readonly expected: number[];
      readonly attachment: Attachment;
      readonly definition: number;
    }
    const all: Rule[] = [];
    let attached: Rule[] = [];
    for (let n = 0; n < 3000; n++) {
      const definition = random(2);
      const dice = random(10);
      if (dice < 2) {
        const columns = [need('n'), need('n', 'm'), ALL][random(3)];
        const kept = new Kept();
        const rule = { kept, expected: [], attachment: hub.attach(definitions[definition], columns, kept), definition };
        const push = kept.push.bind(kept);
        // some detach themselves, or another one, while a row is processed
        if (random(5) === 0)
          kept.push = (row) => {
            push(row);
            const other = attached[random(attached.length)];
            attached = attached.filter((each) => each !== other);
            void other.attachment.detach();
          };
        all.push(rule);
        attached.push(rule);
      } else if (dice < 3 && attached.length > 0) {
        const [rule] = attached.splice(random(attached.length), 1);
        void rule.attachment.detach();
      } else {
        const setup = type.setups.findLast((each) => each.datasource === (definition === 0 ? '' : 'x'));
        const before = attached.filter((each) => each.definition === definition);
        setup?.bytes(Buffer.from(`{"n":${n},"m":1,"o":2}`));
        const isThere = (rule: Rule) => rule.kept.rows.at(-1)?.values.n === n;
        // a rule that was detached during the row may have received it before
        for (const rule of before) if (attached.includes(rule) || isThere(rule)) rule.expected.push(n);
        for (const rule of all) if (!before.includes(rule)) assert.equal(isThere(rule), false);
        const rows = new Set(before.filter(isThere).map((rule) => rule.kept.rows.at(-1)));
        assert.ok(rows.size <= 1, 'the row is shared');
      }
      await settled(); // sources are closed
    }
    for (const { kept, expected } of all)
      assert.deepEqual(
        kept.rows.map(({ values }) => values.n),
        expected
      );
    for (const { attachment } of attached) await attachment.detach();
    assert.equal(type.closed, type.setups.length);
  });
});
