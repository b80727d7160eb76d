// The rows of the box of the web page that finds everything.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type FinderTexts,
  type Found,
  finderRows,
  searchedText,
  stillFound,
  verbIn
} from '../../adapters/dashboard/page/model/finder.ts';
import { T } from '../../adapters/dashboard/page/texts.ts';

const TEXTS: FinderTexts = {
  pages: (['overview', 'clients', 'alarms', 'tail'] as const).map((view) => [view, T.views[view]]),
  actions: T.finder.actions,
  verbs: T.finder.verbs
};
const found = (kind: Found['kind'], name: string, detail = '') => ({ kind, name, detail });
const FOUND = [
  found('client', 'meter-1', 'connected'),
  found('client', 'meter-2'),
  found('topic', 'meter-1/t'),
  found('rule', 'meter')
];

const shown = (typed: string, entries: readonly Found[] = []) =>
  finderRows(typed, entries, TEXTS).map(({ kind, text, name }) => [kind, text, name].filter(Boolean).join(' '));

describe('The box that finds everything', () => {
  it('lists pages and actions before anything is typed', () => {
    const rows = shown('');
    assert.deepEqual(rows.slice(0, 5), [
      'page Overview',
      'page Clients',
      'page Alarms',
      'page Live tail',
      'action Publish a message'
    ]);
    assert.ok(rows.includes('action Log out'));
  });

  it('ranks the same name first, then beginnings, beginnings of words, and other places, then actions on what was found', () => {
    assert.deepEqual(shown('meter-1', FOUND.slice(0, 3)), [
      'client meter-1',
      'client meter-2',
      'topic meter-1/t',
      'action Why not meter-1',
      'action Kick meter-1',
      'action Ban meter-1',
      'action Trace meter-1',
      'action Tail meter-1/t',
      'action Publish to meter-1/t',
      'action Delete the retained message of meter-1/t',
      'guess meter-1',
      'guess meter-1/#',
      'guess meter-1',
      'guess meter-1'
    ]);
    assert.deepEqual(shown('meter', FOUND)[0], 'rule meter');
    assert.deepEqual(shown('tail').slice(0, 1), ['page Live tail']);
    assert.deepEqual(shown('out').slice(0, 1), ['action Log out']);
    assert.deepEqual(shown('lar').slice(0, 1), ['page Alarms']);
  });

  it('puts an action that is typed before a name first, for each name that it fits', () => {
    assert.deepEqual(shown('kick meter', FOUND).slice(0, 3), [
      'rule meter',
      'action Kick meter-1',
      'action Kick meter-2'
    ]);
    assert.deepEqual(shown('del meter-1/t', FOUND)[0], 'action Delete the retained message of meter-1/t');
    const [row] = finderRows('kick meter-1', FOUND, TEXTS);
    assert.deepEqual(row.to, { view: 'client', choices: { id: 'meter-1', do: 'kick' } });
    assert.equal(row.isChange, true);
  });

  it('offers the ban of a client that has no session', () => {
    const banned = (found: readonly Found[]) =>
      finderRows('ban Gone-1', found, TEXTS).filter(
        ({ text, name }) => text === T.finder.verbs.ban && name === 'Gone-1'
      );
    const row = { view: 'client', choices: { id: 'Gone-1', do: 'ban' } };
    assert.deepEqual(
      banned([]).map(({ to, isChange }) => [to, isChange]),
      [[row, true]]
    );
    assert.equal(banned([{ kind: 'client', name: 'Gone-1', detail: '' }]).length, 1);
  });

  it('searches the name behind an action, and the whole text otherwise, at most 256 characters', () => {
    assert.equal(searchedText(' kick  Meter-1 ', T.finder.verbs), 'Meter-1');
    assert.equal(searchedText('kick', T.finder.verbs), 'kick');
    assert.equal(searchedText('  ', T.finder.verbs), '');
    assert.equal(searchedText('blue meter', T.finder.verbs), 'blue meter');
    assert.equal(searchedText('x'.repeat(70_000), T.finder.verbs).length, 256);
    assert.deepEqual(verbIn('trace a b ', T.finder.verbs), { verb: 'trace', name: 'a b' });
    assert.equal(verbIn('ba x', T.finder.verbs), undefined);
  });

  it('keeps entries that still match until the next answer, and no others', () => {
    assert.deepEqual(
      stillFound(FOUND, 'METER-').map(({ name }) => name),
      ['meter-1', 'meter-2', 'meter-1/t']
    );
    assert.deepEqual(stillFound(FOUND, 'meters'), []);
  });

  it('opens the form of an action on nothing, for administrators', () => {
    for (const [typed, to] of [
      ['webhook', { view: 'webhooks', choices: { do: 'add' } }],
      ['bridge', { view: 'bridges', choices: { do: 'add' } }],
      ['start a trace', { view: 'traces', choices: { do: 'start' } }],
      ['application', { view: 'access', choices: { tab: 'apps', do: 'add' } }],
      ['create a stream', { view: 'definition' }],
      ['schema', { view: 'streams', choices: { tab: 'schemas', do: 'add' } }],
      ['mqtt client', { view: 'websocket' }]
    ] as const) {
      const [row] = finderRows(typed, [], TEXTS);
      assert.deepEqual([row.to, row.isChange], [to, true], typed);
    }
  });

  it('finds actions of rules by their kind, and names the dialogs that they open', () => {
    const rules = [found('rule', 'hot'), found('stream_rule', 'seen')];
    for (const [typed, to] of [
      ['disable hot', { view: 'rule', choices: { id: 'hot', do: 'disable' } }],
      ['test hot', { view: 'rule', choices: { id: 'hot', do: 'test' } }],
      ['stop seen', { view: 'stream', choices: { id: 'seen', do: 'stop' } }],
      ['start seen', { view: 'stream', choices: { id: 'seen', do: 'start' } }],
      ['test seen', { view: 'stream', choices: { id: 'seen', do: 'test' } }]
    ] as const) {
      const [row] = finderRows(typed, [rules[typed.endsWith('hot') ? 0 : 1]], TEXTS);
      assert.deepEqual([row.kind, row.to], ['action', to], typed);
    }
    assert.ok(!shown('stop hot', [rules[0]]).includes('action Stop hot'), 'a rule over events is disabled');
  });

  it('finds the parts of pages once something is typed, and options by key, words of the key and name', () => {
    const texts: FinderTexts = { ...TEXTS, pages: [...TEXTS.pages, ['access', 'Access: Bans', 'bans']] };
    const [bans] = finderRows('bans', [], texts);
    assert.deepEqual(bans.to, { view: 'access', choices: { tab: 'bans' } });
    assert.ok(!finderRows('', [], texts).some(({ text }) => text === 'Access: Bans'));
    const options = [
      { key: 'mqtt.max_packet_size', name: 'maxPacketSize' },
      { key: 'mqtt.max_qos_allowed', name: 'maxQosAllowed' },
      ...Array.from({ length: 20 }, (_, at) => ({ key: `zone.limit_${at}`, name: `limit${at}` }))
    ];
    const named = (typed: string) =>
      finderRows(typed, [], texts, options)
        .filter(({ kind }) => kind === 'option')
        .map(({ name }) => name);
    for (const typed of ['mqtt.max_packet_size', 'max packet', 'maxPacketSize', 'packet'])
      assert.deepEqual(named(typed), ['mqtt.max_packet_size'], typed);
    assert.equal(named('limit').length, 8);
    assert.deepEqual(named('m'), []);
    const row = finderRows('qos allowed', [], texts, options).find(({ kind }) => kind === 'option');
    assert.deepEqual(row?.to, { view: 'options', choices: { q: 'mqtt.max_qos_allowed' } });
  });

  it('offers the topics below a text that may be a level, and nothing below a topic filter', () => {
    const to = (typed: string) =>
      finderRows(typed, [], TEXTS)
        .filter(({ kind }) => kind === 'guess')
        .map(({ to }) => to);
    assert.deepEqual(to('rooms'), [
      { view: 'topics', choices: { topic: 'rooms' } },
      { view: 'topics', choices: { topic: 'rooms/#' } },
      { view: 'tail', choices: { filter: 'rooms' } },
      { view: 'why', choices: { topic: 'rooms' } }
    ]);
    assert.deepEqual(to('rooms/+'), [
      { view: 'topics', choices: { topic: 'rooms/+' } },
      { view: 'tail', choices: { filter: 'rooms/+' } }
    ]);
  });

  it('gives each row a different key', () => {
    const rows = finderRows('meter', [...FOUND, found('stream_rule', 'meter'), found('subscription', 'meter')], TEXTS);
    assert.equal(new Set(rows.map(({ key }) => key)).size, rows.length);
  });

  it('offers no action on the topic for the publishing of messages to a topic filter with wildcards', () => {
    assert.deepEqual(shown('a/', [found('subscription', 'a/#')]).slice(0, 2), ['subscription a/#', 'action Tail a/#']);
  });
});
