import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { InvalidInput } from '../../lib/base/errors.ts';
import { createBroker } from '../../lib/broker/broker.ts';
import type { RewriteRule } from '../../lib/broker/configuration/options.ts';
import { compileRewrite } from '../../lib/broker/features/rewrite.ts';
import { loadPatterns } from '../../lib/sql/patterns.ts';
import { evalFlags, SOURCES } from '../support/programs.ts';
import { startBroker } from '../support/wire.ts';

const LINES = ['y/+/z/# ^y/(.+)/z/(.+)$ y/z/$2', 'x/# ^x/y/(.+)$ z/y/x/$1', 'x/y/+ ^x/y/(\\d+)$ z/y/$1'];

const patterns = await loadPatterns();
const compiled = (rules: readonly (RewriteRule | string)[]) => compileRewrite(rules, patterns);

describe('compileRewrite', () => {
  const documented: [from: string, to: string][] = [
    ['y/a/z/b', 'y/z/b'],
    ['y/def', 'y/def'],
    ['x/1/2', 'x/1/2'],
    ['x/y/2', 'z/y/2'],
    ['x/y/z', 'x/y/z']
  ];
  for (const [from, to] of documented) {
    it(`rewrites ${from} to ${to} with the documented set of rules, for every packet`, () => {
      const { rewrite, isEmpty } = compiled(LINES);
      assert.equal(isEmpty, false);
      assert.equal(rewrite(from, 'publish'), to);
      assert.equal(rewrite(from, 'subscribe'), to);
    });
  }

  it('applies only the last rule whose filter matches: x/y/z is unchanged although an earlier rule would change it', () => {
    assert.equal(compiled(LINES.slice(0, 2)).rewrite('x/y/z', 'publish'), 'z/y/x/z');
    assert.equal(compiled(LINES).rewrite('x/y/z', 'publish'), 'x/y/z');
  });

  it('accepts rules as objects, with patterns as strings or regular expressions', () => {
    const rule = { filter: 'a/#', pattern: /^A\/(.*)$/gi, target: 'b/$1' };
    const { rewrite } = compiled([rule]);
    // Two calls, because a "g" expression would continue at its last match.
    assert.equal(rewrite('a/x', 'publish'), 'b/x');
    assert.equal(rewrite('a/x', 'publish'), 'b/x');
    assert.equal(compiled([{ ...rule, pattern: '^a/(.*)$' }]).rewrite('a/x', 'publish'), 'b/x');
  });

  it('changes nothing without rules', () => {
    const { isEmpty, rewrite } = compiled([]);
    assert.equal(isEmpty, true);
    assert.equal(rewrite('a', 'publish'), 'a');
  });

  it('replaces the whole topic, even where the pattern matches only a part', () => {
    assert.equal(compiled([{ filter: '#', pattern: 'b', target: 'c' }]).rewrite('a/b/d', 'publish'), 'c');
  });

  it('distinguishes $1 from $10 and leaves other dollar signs unchanged', () => {
    const pattern = '^(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)$';
    const { rewrite } = compiled([{ filter: '+', pattern, target: '$10/$1/$x/$' }]);
    assert.equal(rewrite('abcdefghij', 'publish'), 'j/a/$x/$');
  });

  it('inserts an empty string for a capture group that did not participate', () => {
    const { rewrite } = compiled([{ filter: 'a/+', pattern: '^a/(?:(x)|y)$', target: 'b/$1' }]);
    assert.equal(rewrite('a/y', 'publish'), 'b/');
  });

  it('applies a rule to the packet types it is defined for', () => {
    const { rewrite } = compiled([
      { filter: 'a', pattern: 'a', target: 'all' },
      { filter: 'a', pattern: 'a', target: 'publish', on: 'publish' }
    ]);
    assert.equal(rewrite('a', 'publish'), 'publish');
    assert.equal(rewrite('a', 'subscribe'), 'all');
  });

  it('rewrites the filter inside a shared filter, but no topic name that looks like one', () => {
    const { rewrite } = compiled(LINES);
    assert.equal(rewrite('$share/g/x/y/1', 'subscribe'), '$share/g/z/y/1');
    assert.equal(rewrite('$queue/x/y/1', 'subscribe'), '$queue/z/y/1');
    assert.equal(rewrite('$share/g/x/y/1', 'publish'), '$share/g/x/y/1');
  });

  it('leaves a topic unchanged if it would become invalid', () => {
    const { rewrite } = compiled([
      { filter: 'a/#', pattern: '^a/(.*)$', target: '$1' },
      { filter: 'b', pattern: 'b', target: 'c/+' }
    ]);
    assert.equal(rewrite('a/', 'publish'), 'a/');
    assert.equal(rewrite('b', 'publish'), 'b');
    assert.equal(rewrite('b', 'subscribe'), 'c/+');
  });

  for (const rules of ['a ^a$ b', 5, null, { filter: 'a', pattern: 'a', target: 'b' }]) {
    it(`refuses ${JSON.stringify(rules)} instead of a list of rules`, () => {
      assert.throws(
        () => createBroker({ rewrite: rules as never }),
        (error) => error instanceof InvalidInput && error.code === 'REWRITE_INVALID' && error.field === 'rewrite'
      );
    });
  }

  const wrong: [what: string, rule: RewriteRule | string, field: string, says: RegExp][] = [
    ['a line of two words', 'a/b c', 'rewrite.1', /<filter> <pattern> <target>/],
    ['a line of four words', 'a b c d', 'rewrite.1', /<filter> <pattern> <target>/],
    ['a bad filter', { filter: 'a/#/b', pattern: 'a', target: 'b' }, 'rewrite.1.filter', /"#" may only be the last/],
    ['a bad expression', { filter: 'a', pattern: '(', target: 'b' }, 'rewrite.1.pattern', /missing closing \)/],
    ['an unknown capture', 'a ^(a)$ b/$2', 'rewrite.1.target', /no capture \$2/],
    ['capture 0', 'a ^(a)$ b/$0', 'rewrite.1.target', /no capture \$0/],
    ['an empty target', { filter: 'a', pattern: 'a', target: '' }, 'rewrite.1.target', /expected a topic/],
    ['an unknown packet', { filter: 'a', pattern: 'a', target: 'b', on: 'connect' as 'all' }, 'rewrite.1.on', /all, /],
    ['no rule at all', null as never, 'rewrite.1', /filter, pattern, target/]
  ];
  for (const [what, rule, field, says] of wrong) {
    it(`refuses ${what} and names ${field}`, () => {
      assert.throws(
        () => compiled([LINES[0], rule]),
        (error) => {
          assert.ok(error instanceof InvalidInput);
          assert.equal(error.code, 'REWRITE_INVALID');
          assert.equal(error.field, field);
          assert.match(error.message, says);
          return true;
        }
      );
    });
  }

  it('refuses an unknown key in a rule and suggests the nearest', () => {
    const rule = { filter: 'a', pattern: 'a', target: 'b', onn: 'publish' };
    assert.throws(() => compiled([rule]), {
      code: 'OPTION_UNKNOWN',
      message: 'unknown option "onn" in rewrite.0; did you mean "on"?'
    });
  });
});

describe('patterns of rewrite rules', () => {
  it('takes time in proportion to the topic for patterns that are strings', () => {
    const { rewrite } = compiled([{ filter: '#', pattern: '^(a+)+$', target: 'b' }]);
    const topic = `${'a'.repeat(60_000)}!`;
    assert.equal(rewrite(topic, 'publish'), topic); // a backtracking expression would not end
    assert.equal(rewrite('a'.repeat(60_000), 'publish'), 'b');
  });

  it('applies RegExp patterns to topics of at most 512 bytes, and reports the first longer topic', () => {
    const reported: string[] = [];
    const rule = { filter: 'a/#', pattern: /^a\/(.*)$/, target: 'b/$1' };
    const { rewrite } = compileRewrite([rule], undefined, ({ code, message }) => reported.push(`${code} ${message}`));
    const longest = `a/${'x'.repeat(510)}`;
    assert.equal(rewrite(longest, 'publish'), longest.replace('a', 'b'));
    for (const topic of [`${longest}x`, `a/${'é'.repeat(256)}`]) assert.equal(rewrite(topic, 'publish'), topic);
    assert.equal(reported.length, 1);
    assert.match(reported[0], /^REWRITE_SKIPPED option rewrite\.0: a topic of 513 bytes is not rewritten/);
  });

  it('refuses syntax that RE2 lacks when the broker starts, with the name of the rule', async () => {
    const broker = createBroker({ rewrite: ['a a b', 'a/# ^a/(?=x)(.*)$ b/$1'] });
    await assert.rejects(broker.start(), {
      code: 'REWRITE_INVALID',
      field: 'rewrite.1.pattern',
      message: /^rewrite\.1\.pattern: .*a RegExp may have these/
    });
    await broker.stop();
  });

  it('accepts syntax that RE2 lacks in RegExp objects, without the package', async () => {
    await using broker = await startBroker({ rewrite: [{ filter: 'a/#', pattern: /^a\/(?=x)(.*)$/, target: 'b/$1' }] });
    const client = await broker.connect({ clientId: 'c' });
    const topics: string[] = [];
    broker.subscribe('#', ({ topic }) => void topics.push(topic));
    await client.publish('a/x', '', { qos: 1 });
    await client.publish('a/y', '', { qos: 1 });
    assert.deepEqual(topics, ['b/x', 'a/y']);
  });

  it('names the rule, the package and the command if the package is missing when the broker starts', async () => {
    const program = `
      import { register } from 'node:module';
      const hooks = "export const resolve = (name, context, next) => { if (name === 're2js') throw new Error('none'); return next(name, context); }";
      register('data:text/javascript,' + encodeURIComponent(hooks));
      const { createBroker } = await import('embermq');
      const rewrite = [{ filter: 'a', pattern: /a/, target: 'b' }, 'a a b'];
      await createBroker({ rewrite }).start().catch(({ code, message }) => console.log(code + ': ' + message));
    `;
    const { stdout } = await promisify(execFile)(process.execPath, evalFlags(program), { cwd: SOURCES });
    const text = 'option rewrite.1.pattern: patterns that are strings need the package re2js: npm install re2js';
    assert.equal(stdout, `PACKAGE_MISSING: ${text}\n`);
  });
});
