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

  it('gives each row a different key', () => {
    const rows = finderRows('meter', [...FOUND, found('stream_rule', 'meter'), found('subscription', 'meter')], TEXTS);
    assert.equal(new Set(rows.map(({ key }) => key)).size, rows.length);
  });

  it('offers no action on the topic for the publishing of messages to a topic filter with wildcards', () => {
    assert.deepEqual(shown('a/', [found('subscription', 'a/#')]).slice(0, 2), ['subscription a/#', 'action Tail a/#']);
  });
});
