import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseAclFile } from '../../lib/access/acl-file.ts';

const DEFAULT = `
%% The documented default file.
{allow, {user, "dashboard"}, subscribe, ["$SYS/#"]}.
{allow, {ipaddr, "127.0.0.1"}, pubsub, ["$SYS/#", "#"]}.
{deny, all, subscribe, ["$SYS/#", {eq, "#"}]}. % no other client
{allow, all}.
`;

describe('an ACL file of terms', () => {
  it('gives one access rule for each topic', () => {
    assert.deepEqual(parseAclFile(DEFAULT), [
      { access: 'allow', action: 'subscribe', topic: '$SYS/#', username: 'dashboard' },
      { access: 'allow', action: 'pubsub', topic: '$SYS/#', address: ['127.0.0.1'] },
      { access: 'allow', action: 'pubsub', topic: '#', address: ['127.0.0.1'] },
      { access: 'deny', action: 'subscribe', topic: '$SYS/#' },
      { access: 'deny', action: 'subscribe', topic: '#', exact: true },
      { access: 'allow' }
    ]);
  });

  it('gives a rule for each alternative of an "or", and one rule for an "and"', () => {
    const text = `{deny, {'or', [{user, "a"}, {'and', [{client, "c"}, {ipaddr, "10.0.0.0/8"}, {user, all}]}]}, publish, ["x"]}.`;
    assert.deepEqual(parseAclFile(text), [
      { access: 'deny', action: 'publish', topic: 'x', username: 'a' },
      { access: 'deny', action: 'publish', topic: 'x', clientId: 'c', address: ['10.0.0.0/8'], hasUsername: true }
    ]);
  });

  it('gives no rule for conditions that contradict each other', () => {
    assert.deepEqual(parseAclFile(`{allow, {'and', [{client, "a"}, {client, "b"}]}, pubsub, ["#"]}.`), []);
    const both = `{allow, {'and', [{user, all}, {user, "a"}, {client, all}]}, pubsub, ["#"]}.`;
    assert.deepEqual(parseAclFile(both), [{ access: 'allow', action: 'pubsub', topic: '#', username: 'a' }]);
  });

  it('reads escaped characters, and percent signs within strings', () => {
    const rules = parseAclFile('{allow, {user, "a\\"b\\\\c"}, publish, ["%c/%u"]}.');
    assert.deepEqual(rules, [{ access: 'allow', action: 'publish', topic: '%c/%u', username: 'a"b\\c' }]);
  });

  it('reports what is wrong with line and column', () => {
    const faults: readonly (readonly [string, RegExp])[] = [
      ['{allow, all}', /line 1, column 13: expected a full stop after the rule, found the end of the file/],
      ['\n{permit, all}.', /line 2, column 2: expected allow or deny, found "permit, all}."/],
      ['{allow}.', /expected \{allow, all\} or/],
      ['{allow, bob}.', /column 9: expected all, \{user/],
      ['{allow, all, read, ["a"]}.', /expected subscribe, publish or pubsub/],
      ['{allow, all, publish, "a"}.', /expected a list of topics/],
      ['{allow, all, publish, []}.', /expected at least one topic/],
      ['{allow, all, publish, [{ne, "a"}]}.', /or \{eq, "topic"\}/],
      ['{allow, {user, "a}, publish, ["b"]}.', /expected/],
      ['{allow, all, publish, ["a]}.', /no closing quotation mark/],
      ['{allow, {ipaddr, all}, publish, ["a"]}.', /expected a string/],
      [`${"{'or', [".repeat(30)}all`, /nested/]
    ];
    for (const [text, message] of faults)
      assert.throws(() => parseAclFile(text), { code: 'ACL_FILE_INVALID', message }, text);
  });

  it('reports invalid topic filters and addresses with line and column', () => {
    const faults: readonly (readonly [string, RegExp])[] = [
      [
        '{allow, all}.\n{allow, all, publish, ["b",\n  "a/#/b"]}.',
        /^line 3, column 3: .*"#" may only be the last level/
      ],
      ['{deny, all, publish, [{eq, "a/#/b"}]}.', /^line 1, column 23: .*"#" may only be the last level/],
      ['{deny, all, publish, ["$share/g/a"]}.', /^line 1, column 23: .*leave the share prefix out/],
      ['\n{allow, {ipaddr, "10.0.0.0/40"}, publish, ["a"]}.', /^line 2, column 9: rule 1\.address/],
      ['{allow, all}.\n{allow, {user, ""}}.', /^line 2, column 9: rule 2\.username/]
    ];
    for (const [text, message] of faults)
      assert.throws(() => parseAclFile(text), { code: 'ACL_FILE_INVALID', message }, text);
  });
});

describe('an ACL file in JSON', () => {
  it('reads a list of access rules', () => {
    const rules = [{ access: 'deny', action: 'sub', topic: ['a/#', 'b'], clientId: 'c' }];
    assert.deepEqual(parseAclFile(JSON.stringify(rules)), rules);
  });

  it('reports text that is not JSON, unknown keys and wrong values', () => {
    assert.throws(() => parseAclFile('[{]'), { code: 'ACL_FILE_INVALID', message: /not valid JSON/ });
    assert.throws(() => parseAclFile('[{"acces":"deny"}]'), { message: /did you mean "access"/ });
    assert.throws(() => parseAclFile('[{"access":"no"}]'), {
      message: /^line 1: rule 1\.access: expected "allow" or "deny"/
    });
    const list = '[\n  {"access": "deny", "topic": ["a", "b]{"]},\n\n  {"access": "allow",\n   "topic": "a/#/b"},\n 5]';
    assert.throws(() => parseAclFile(list), {
      code: 'ACL_FILE_INVALID',
      message: /^line 4: .*"#" may only be the last level/
    });
    assert.throws(() => parseAclFile(list.replace('/b', '')), { message: /^line 6: / });
  });
});
