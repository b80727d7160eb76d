import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describeFlags, flag, listFlag, readFlags } from '../../adapters/cli/flags.ts';

const TABLE = {
  host: flag('string', 'localhost', 'where to', { short: 'h', value: 'HOST' }),
  maxCount: flag('integer', 5, 'how many', { min: 1, max: 10, value: 'N' }),
  retain: flag('boolean', false, 'keep it', { short: 'r' }),
  topic: listFlag('what of', { short: 't', value: 'TOPIC' })
};

describe('readFlags', () => {
  it('returns a value for every flag, given or default', () => {
    const { values, words } = readFlags(TABLE, ['-h', 'a', '--max-count=7', 'word', '-r', '-t', 'x', '--topic', 'y']);
    assert.deepEqual(values, { host: 'a', maxCount: 7, retain: true, topic: ['x', 'y'] });
    assert.deepEqual(words, ['word']);
    assert.deepEqual(readFlags(TABLE, []).values, { host: 'localhost', maxCount: 5, retain: false, topic: [] });
  });

  it('turns a boolean flag off with --no-, even after it has been turned on', () => {
    assert.equal(readFlags(TABLE, ['--retain', '--no-retain']).values.retain, false);
  });

  it('reads the value of a boolean flag after = or a space, and leaves other words alone', () => {
    for (const [text, value] of [
      ['true', true],
      ['on', true],
      ['false', false],
      ['off', false]
    ] as const) {
      for (const args of [[`--retain=${text}`], ['--retain', text], ['-r', text]]) {
        const { values, words } = readFlags(TABLE, args);
        assert.deepEqual([values.retain, words], [value, []], args.join(' '));
      }
    }
    assert.deepEqual(readFlags(TABLE, ['--retain', 'word', 'false']).words, ['word', 'false']);
    assert.deepEqual(readFlags(TABLE, ['--no-retain', 'false']).words, ['false']);
    assert.deepEqual(readFlags(TABLE, ['-r', '--', 'false']).words, ['false']);
    assert.deepEqual(readFlags(TABLE, ['-h', 'a', 'false']).words, ['false']);
  });

  it('refuses an unknown flag and suggests the most similar one', () => {
    assert.throws(() => readFlags(TABLE, ['--max-cuont', '7']), {
      code: 'FLAG_UNKNOWN',
      message: /--max-cuont; did you mean --max-count\?/
    });
    assert.throws(() => readFlags(TABLE, ['--no-host']), { code: 'FLAG_UNKNOWN' });
    assert.throws(() => readFlags(TABLE, ['-x']), { code: 'FLAG_UNKNOWN', message: /unknown flag -x/ });
  });

  it('refuses a flag without its value', () => {
    assert.throws(() => readFlags(TABLE, ['--max-count']), {
      code: 'FLAG_INVALID',
      message: /--max-count needs a value/
    });
  });

  it('names the flag, the expected value and the given value if a value is invalid', () => {
    assert.throws(() => readFlags(TABLE, ['--max-count', '11']), {
      code: 'OPTION_INVALID',
      message: '--max-count: expected a whole number from 1 to 10, got "11"'
    });
  });

  it('reads a flag by its other name, and refuses two names with different values', () => {
    const table = { mqttPort: flag('integer', 1, 'a port', { alsoAs: 'port', value: 'PORT' }) };
    assert.deepEqual(readFlags(table, ['--port', '2']).values, { mqttPort: 2 });
    assert.deepEqual(readFlags(table, ['--port=2', '--mqtt-port', '2']).values, { mqttPort: 2 });
    assert.deepEqual(readFlags(table, ['--port', '2', '--port', '3']).values, { mqttPort: 3 });
    assert.throws(() => readFlags(table, ['--mqtt-port', '2', '--port', '3']), {
      code: 'FLAG_INVALID',
      message: '--mqtt-port 2 and --port 3 set the same option to different values; remove one of them'
    });
    assert.match(describeFlags(table), /^ +--mqtt-port, --port PORT {2}a port \[1\]$/);
  });

  it('treats everything after -- as words', () => {
    assert.deepEqual(readFlags(TABLE, ['--', '-r']).words, ['-r']);
  });
});

describe('describeFlags', () => {
  it('shows both spellings, the value and the default', () => {
    assert.equal(describeFlags({ maxCount: TABLE.maxCount }), '      --max-count N  how many [5]');
    assert.match(describeFlags(TABLE), /^ {2}-h, --host HOST +where to \[localhost\]$/m);
    assert.match(describeFlags(TABLE), /^ {2}-r, --retain +keep it$/m);
  });
});
