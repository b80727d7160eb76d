import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decideByRules, rulesOf, type Subject } from '../../lib/access/rule.ts';
import { RuleSet } from '../../lib/access/rule-set.ts';
import { type ClientInfo, covers } from '../../lib/index.ts';
import type { AccessRule, RuleAction } from '../../lib/records/access-rule.ts';
import { randomFilter, randomName, randomSource, slowMatches } from '../topics/slow-matcher.ts';

function client(clientId: string, username?: string, remoteAddress?: string): Subject {
  return { clientId, username, transportInfo: { remoteAddress } };
}

function setOf(...rules: AccessRule[]): RuleSet {
  return new RuleSet(rulesOf(rules));
}

const ANN = client('c1', 'ann', '10.1.2.3');
const BOB = client('c2', 'bob', '2001:db8::1');
const NOBODY = client('c3');

describe('access rules', () => {
  it('decides by the first rule that applies', () => {
    const rules = setOf({ access: 'deny', topic: 'a/secret' }, { access: 'allow', topic: 'a/#' }, { access: 'deny' });
    assert.equal(rules.decide(ANN, 'publish', 'a/secret'), false);
    assert.equal(rules.decide(ANN, 'publish', 'a/b'), true);
    assert.equal(rules.decide(ANN, 'publish', 'b'), false);
    assert.equal(setOf({ access: 'allow', topic: 'a' }).decide(ANN, 'publish', 'b'), undefined);
  });

  it('applies a rule to one action or to both', () => {
    const rules = setOf(
      { access: 'allow', action: 'publish', topic: 'a' },
      { access: 'deny', action: 'sub', topic: 'a' }
    );
    assert.equal(rules.decide(ANN, 'publish', 'a'), true);
    assert.equal(rules.decide(ANN, 'subscribe', 'a'), false);
    for (const action of ['pubsub', 'subpub'] as const) {
      const both = setOf({ access: 'deny', action, topic: 'a' });
      assert.deepEqual([both.decide(ANN, 'publish', 'a'), both.decide(ANN, 'subscribe', 'a')], [false, false]);
    }
  });

  it('selects clients by client id, user name and address, which must all match', () => {
    const rules = setOf(
      { access: 'allow', clientId: 'c1', address: '10.0.0.0/8', topic: 'a' },
      { access: 'allow', username: 'bob', address: ['2001:db8::/32', '2001:db8::1'], topic: 'a' },
      { access: 'deny', hasUsername: true, topic: 'a' }
    );
    assert.equal(rules.decide(ANN, 'publish', 'a'), true);
    assert.equal(rules.decide(client('c1', 'ann', '11.0.0.1'), 'publish', 'a'), false);
    assert.equal(rules.decide(BOB, 'publish', 'a'), true);
    assert.equal(rules.decide(client('c2', 'bob'), 'publish', 'a'), false, 'no address');
    assert.equal(rules.decide(NOBODY, 'publish', 'a'), undefined);
  });

  it('replaces %c and %u as whole levels by the names of the client', () => {
    const rules = setOf({ access: 'allow', topic: ['dev/%c/up', '%u/#', 'x%c'] });
    assert.equal(rules.decide(ANN, 'publish', 'dev/c1/up'), true);
    assert.equal(rules.decide(ANN, 'publish', 'dev/c2/up'), undefined);
    assert.equal(rules.decide(ANN, 'publish', 'ann/a/b'), true);
    assert.equal(rules.decide(ANN, 'publish', 'xc1'), undefined);
    assert.equal(rules.decide(ANN, 'publish', 'x%c'), true);
    assert.equal(rules.decideFilter(ANN, 'ann/#'), true);
    assert.equal(rules.decideFilter(ANN, '+/a'), undefined);
    assert.equal(rules.decide(NOBODY, 'publish', '/a'), undefined, 'no user name');
  });

  it('gives no rights to names that would change a filter, and denies them what the rule denies to any client', () => {
    for (const name of ['#', '+', 'a/b', '+/+', '$SYS', '']) {
      const allow = setOf({ access: 'allow', topic: ['%c/#', 'x/%c'] });
      const them = client(name);
      for (const topic of ['a', 'a/b', 'x/a', 'x/+', '$SYS/a', '#'])
        assert.equal(allow.decide(them, 'publish', topic), undefined, `${name}: ${topic}`);
      for (const filter of ['#', '+/#', 'x/+', 'x/#', 'a/b/#', '$SYS/#'])
        assert.equal(allow.decideFilter(them, filter), undefined, `${name}: ${filter}`);
      assert.equal(setOf({ access: 'deny', topic: 'x/%c' }).decide(them, 'publish', 'x/y'), false, name);
    }
  });

  it('applies a rule to topics under $SYS only if its filter begins with $SYS', () => {
    const rules = setOf({ access: 'allow' }, { access: 'allow', topic: ['#', '+/#'] });
    for (const topic of ['$SYS', '$SYS/a']) assert.equal(rules.decide(ANN, 'subscribe', topic), undefined);
    for (const filter of ['$SYS/#', '$SYS/+']) assert.equal(rules.decideFilter(ANN, filter), undefined);
    assert.equal(rules.decide(ANN, 'subscribe', '$SYSTEM/a'), true);
    assert.equal(setOf({ access: 'allow', topic: '$SYS/#' }).decideFilter(ANN, '$SYS/a/+'), true);
  });

  it('compares exactly if requested', () => {
    const rules = setOf({ access: 'deny', action: 'subscribe', topic: '#', exact: true }, { access: 'allow' });
    assert.equal(rules.decideFilter(ANN, '#'), false);
    assert.equal(rules.decideFilter(ANN, '+/#'), true);
    assert.equal(rules.decide(ANN, 'subscribe', 'a'), true);
    assert.equal(setOf({ access: 'allow', topic: '%c', exact: true }).decide(ANN, 'publish', 'c1'), undefined);
  });

  it('allows a subscription only if a rule covers it, and keeps it if a denied part overlaps', () => {
    const rules = setOf({ access: 'deny', topic: 'a/secret' }, { access: 'allow', topic: 'a/#' });
    for (const filter of ['a/#', 'a/+', 'a', 'a/b/c']) assert.equal(rules.decideFilter(ANN, filter), true, filter);
    for (const filter of ['#', '+/secret', '+/#', 'b'])
      assert.equal(rules.decideFilter(ANN, filter), undefined, filter);
    assert.equal(rules.decideFilter(ANN, 'a/secret'), false);
    assert.equal(rules.mayDeny('a/secret'), true);
    assert.equal(setOf({ access: 'deny', action: 'publish', topic: 'a' }).mayDeny('a'), false);
  });

  it('adds and removes rules at run time', () => {
    const rules = new RuleSet();
    const all = rulesOf([
      { access: 'deny', clientId: 'c1', topic: 'a' },
      { access: 'deny', username: 'ann', topic: 'b' },
      { access: 'deny', topic: 'c' }
    ]);
    for (const rule of all) rules.add(rule);
    assert.deepEqual(
      ['a', 'b', 'c'].map((topic) => rules.decide(ANN, 'subscribe', topic)),
      [false, false, false]
    );
    for (const rule of all) {
      assert.equal(rules.mayDeny('c'), true);
      rules.remove(rule);
      rules.remove(rule);
    }
    assert.deepEqual(
      ['a', 'b', 'c'].map((topic) => rules.decide(ANN, 'subscribe', topic)),
      [undefined, undefined, undefined]
    );
    assert.equal(rules.mayDeny('c'), false);
  });

  it('ignores the removal of a rule that it does not contain', () => {
    const rules = new RuleSet();
    const [kept, removed] = rulesOf([
      { access: 'deny', clientId: 'c1', topic: 'a' },
      { access: 'deny', clientId: 'c1', topic: 'b' }
    ]);
    for (const rule of [kept, removed]) rules.add(rule);
    for (let times = 0; times < 3; times++) rules.remove(removed);
    assert.equal(rules.decide(ANN, 'subscribe', 'a'), false);
    assert.equal(rules.mayDeny('a'), true);
    rules.remove(kept);
    assert.equal(rules.mayDeny('a'), false);
  });

  it('gives the same verdicts with an index as when all rules are compared in order', () => {
    const source = randomSource('access rules');
    const { below, pick } = source;
    const clients = [ANN, BOB, NOBODY, client('#', '+')];
    for (let round = 0; round < 300; round++) {
      const list: AccessRule[] = Array.from({ length: 1 + below(60) }, () => ({
        access: pick(['allow', 'deny'] as const),
        action: pick(['publish', 'subscribe', 'pubsub'] as const),
        ...(below(12) === 0
          ? {}
          : { topic: below(4) === 0 ? pick(['%c/#', 'a/%u', '%u/%c/+']) : randomFilter(source) }),
        ...(below(4) === 0 ? { clientId: pick(['c1', 'c2']) } : {}),
        ...(below(4) === 0 ? { username: pick(['ann', 'bob']) } : {})
      }));
      const rules = rulesOf(list);
      const set = new RuleSet();
      const kept = rules.filter(() => below(3) > 0);
      for (const rule of rules.toSorted(() => below(3) - 1)) set.add(rule);
      for (const rule of rules) if (!kept.includes(rule)) set.remove(rule);
      for (let n = 0; n < 40; n++) {
        const who = pick(clients);
        const action: RuleAction = pick(['publish', 'subscribe']);
        const topic = randomName(source);
        const expected = kept.find(
          (rule) => rule[action] && rule.appliesTo(who) && slowly(rule.filter, who, topic, rule.isAllow)
        );
        assert.equal(set.decide(who, action, topic), expected?.isAllow, `${JSON.stringify(list)} ${topic}`);
        if (expected !== undefined && !expected.isAllow && action === 'subscribe')
          assert.equal(set.mayDeny(topic), true);
        const filter = randomFilter(source);
        const covering = kept.find((rule) => rule.subscribe && rule.appliesTo(who) && rule.covers(who, filter));
        assert.equal(set.decideFilter(who, filter), covering?.isAllow, `${JSON.stringify(list)} ${filter}`);
        if (covering?.isAllow === true && !list.some(({ topic }) => topic === undefined || topic.includes('%')))
          assert.ok(list.some(({ topic }) => covers(topic as string, filter)));
      }
    }
  });

  it('reports what is wrong with a rule', () => {
    const wrong: readonly (readonly [unknown, string])[] = [
      [{ access: 'permit' }, 'rules[0].access'],
      [{ access: 'allow', action: 'read' }, 'rules[0].action'],
      [{ access: 'allow', topic: [] }, 'rules[0].topic'],
      [{ access: 'allow', exact: true }, 'rules[0].topic'],
      [{ access: 'allow', clientId: 5 }, 'rules[0].clientId'],
      [{ access: 'allow', username: '' }, 'rules[0].username'],
      [{ access: 'allow', address: 'localhost' }, 'rules[0].address'],
      [{ access: 'allow', address: '10.0.0.0/33' }, 'rules[0].address'],
      [{ access: 'allow', address: '10.0.0.0/8/8' }, 'rules[0].address']
    ];
    for (const [rule, field] of wrong)
      assert.throws(() => rulesOf([rule as AccessRule]), { code: 'ACCESS_RULE_INVALID', field }, JSON.stringify(rule));
    for (const topic of ['', 'a/#/b', '$share/g/a', 'a+'])
      assert.throws(() => rulesOf([{ access: 'allow', topic }]), { code: 'TOPIC_FILTER_INVALID' }, topic);
    for (const topic of ['eq a/+', ['a', 'eq a']])
      assert.throws(() => rulesOf([{ access: 'deny', topic }]), {
        code: 'ACCESS_RULE_INVALID',
        field: 'rules[0].topic',
        message: /^rules\[0\]\.topic: expected a topic filter without "eq " \(use "exact": true, .*got /
      });
    assert.equal(rulesOf([{ access: 'deny', topic: 'eq a', exact: true }])[0].filter, 'eq a');
    assert.throws(() => rulesOf([{ access: 'allow', topics: 'a' } as never]), { code: 'OPTION_UNKNOWN' });
    assert.throws(() => rulesOf('x' as never), { code: 'ACCESS_RULE_INVALID' });
  });
});

/** The same as `Rule.matches`, by replacing the placeholders level by level. */
function slowly(
  filter: string | undefined,
  { clientId, username = '' }: Subject,
  topic: string,
  isAllow: boolean
): boolean {
  if (filter === undefined) return topic !== '$SYS' && !topic.startsWith('$SYS/');
  let isSafe = true;
  const levels = filter.split('/').map((level) => {
    if (level !== '%c' && level !== '%u') return level;
    const name = level === '%c' ? clientId : username;
    if (name !== '' && !/[/+#]/.test(name)) return name;
    isSafe = false;
    return '+';
  });
  return (isSafe || !isAllow) && slowMatches(levels.join('/'), topic);
}

describe('access rules that the broker does not hold', () => {
  const rules: AccessRule[] = [
    { access: 'deny', topic: 'a/secret' },
    { access: 'deny', topic: '#', exact: true },
    { access: 'allow', topic: 'a/#' },
    { access: 'allow', topic: ['b/c', '%u/#'] }
  ];
  const decide = (action: RuleAction, topic: string, who = ANN) =>
    decideByRules(rules, who as unknown as ClientInfo, action, topic);

  it('decides about a message as rules of the broker do', () => {
    assert.equal(decide('publish', 'a/secret'), false);
    assert.equal(decide('publish', 'a/b'), true);
    assert.equal(decide('publish', 'ann/x'), true);
    assert.equal(decide('publish', 'x'), undefined);
  });

  it('refuses a subscription if a rule denies one of its topics, and allows it only if all are allowed', () => {
    assert.equal(decide('subscribe', 'a/b'), true);
    assert.equal(decide('subscribe', 'a/#'), false);
    assert.equal(decide('subscribe', '+/secret'), false);
    assert.equal(decide('subscribe', '#'), false);
    assert.equal(decide('subscribe', 'b/+'), undefined);
    assert.equal(decide('subscribe', 'ann/+'), true);
    assert.equal(decide('subscribe', '+/x'), undefined);
    const deny = (rule: Partial<AccessRule>, filter: string, who = ANN) =>
      decideByRules([{ access: 'deny', ...rule }], who as unknown as ClientInfo, 'subscribe', filter);
    assert.equal(deny({ topic: 'a/b', exact: true }, 'a/+'), false);
    assert.equal(deny({ topic: 'a/+', exact: true }, 'a/#'), undefined);
    assert.equal(deny({ topic: '%c/x' }, '+/x', client('#')), false, 'a name with a wildcard is everywhere');
    assert.equal(deny({}, '#'), false);
    assert.equal(deny({}, '$SYS/#'), undefined);
  });

  it('reads rules up to the one that decides', () => {
    const list: AccessRule[] = [
      { access: 'allow', topic: 'a' },
      { access: 'allow', topic: 'a/#/b' }
    ];
    assert.equal(decideByRules(list, ANN as unknown as ClientInfo, 'publish', 'a'), true);
    assert.throws(() => decideByRules(list, ANN as unknown as ClientInfo, 'publish', 'b', 'rows'), {
      field: 'rows[1].topic'
    });
  });
});
