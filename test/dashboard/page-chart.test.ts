// The state chart of sessions in the web page, and the steps that follow from the history of a client.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sessionMachine } from 'embermq/machines';
import { drawingOf, type PlacedState } from '../../adapters/dashboard/page/model/chart-drawing.ts';
import {
  type HistoryRecord,
  passedBy,
  type Step,
  stepsOf,
  transitionsOf
} from '../../adapters/dashboard/page/model/state-chart.ts';
import { SESSION_CHART, walk } from '../../adapters/dashboard/page/pages/client/machine.ts';
import { DISCONNECT_REASONS } from '../../lib/events/reasons.ts';
import { startConsole } from '../support/dashboard.ts';

/** The states and events of steps: `connected -closed-> disconnected.closing disconnected.waiting`. */
const shown = (steps: readonly Step[]) =>
  steps.map(({ events, path: [from, ...to] }) => `${from} -${events.join()}-> ${to.join(' ')}`);

describe('The chart of sessions in the page', () => {
  it('shows the transitions of the machine of the broker', () => {
    assert.equal(SESSION_CHART, sessionMachine.config);
    assert.deepEqual(
      transitionsOf(SESSION_CHART).map(
        ({ from, to, labels, isAlways }) => `${from} ${isAlways ? 'always' : ''}[${labels}] ${to}`
      ),
      [
        'idle [handedOver,closed] gone',
        'idle.awaitingConnect [connect] idle.authenticating',
        'idle.authenticating [accepted] connected',
        'connected [closed] disconnected.closing',
        'connected [takenOver] disconnected.takenOver',
        'disconnected.closing always[outlivesConnection] disconnected.waiting',
        'disconnected.closing always[] gone',
        'disconnected.takenOver always[] connected',
        'disconnected.waiting [resumed] connected',
        'disconnected.waiting [expired,discarded] gone'
      ]
    );
  });

  it('draws no line through a state, and no label on another one', () => {
    const { states, transitions, width, height } = drawingOf(SESSION_CHART);
    const holds = ({ x, y, ...size }: PlacedState, [atX, atY]: readonly [number, number]) =>
      atX > x && atX < x + size.width && atY > y && atY < y + size.height;
    for (const { from, to, points } of transitions) {
      for (const [x, y] of points) assert.ok(x >= 0 && x <= width && y >= 0 && y <= height, `${from} ${to}`);
      for (const [index, [x, y]] of points.slice(1).entries()) {
        const [beforeX, beforeY] = points[index];
        for (let part = 0; part <= 20; part++) {
          const at = [beforeX + ((x - beforeX) * part) / 20, beforeY + ((y - beforeY) * part) / 20] as const;
          for (const { path } of states.filter((one) => holds(one, at)))
            assert.ok(from.startsWith(path) || to.startsWith(path), `${from} ${to} crosses ${path}`);
        }
      }
    }
    const labels = transitions.map(({ label }) => `${label.x} ${label.y}`);
    assert.equal(new Set(labels).size, labels.length);
  });

  it('emphasizes the transitions of a path, also those of the outer state', () => {
    const transitions = transitionsOf(SESSION_CHART);
    const passed = (path: readonly string[]) => passedBy(transitions, path).map(({ from, to }) => `${from} ${to}`);
    assert.deepEqual(passed(['idle.authenticating', 'gone']), ['idle gone']);
    assert.deepEqual(passed(['connected', 'disconnected.closing', 'disconnected.waiting']), [
      'connected disconnected.closing',
      'disconnected.closing disconnected.waiting'
    ]);
    assert.deepEqual(passed([]), []);
  });

  it('shows the steps of a client that connects, is taken over, leaves, returns, is discarded and kicked', async () => {
    await using server = await startConsole({}, { allowAnonymous: true, memoryHighWatermark: 0 });
    const { broker } = server;
    const person = server.browser();
    await person.login('ann');
    const persistent = { clientId: 'a', clean: false, properties: { sessionExpiryInterval: 1_000 } };
    const steps = async () => {
      const { body } = await person.send('GET', '/api/x/clients/a/history');
      const state = broker.sessions.has('a') ? broker.sessions.get('a').state : 'gone';
      return shown(stepsOf(body.data as HistoryRecord[], state, walk));
    };
    const gone = () => broker.nextEvent('client.disconnected');
    const first = await broker.connect(persistent);
    await first.subscribe('x');
    const second = await broker.connect(persistent);
    const left = gone();
    await second.disconnect();
    await left;
    const begun = [
      'idle.awaitingConnect -connect,accepted-> idle.authenticating connected',
      'connected -takenOver-> disconnected.takenOver connected',
      'connected -closed-> disconnected.closing disconnected.waiting'
    ];
    assert.deepEqual(await steps(), begun);
    await broker.connect(persistent);
    await broker.connect({ ...persistent, clean: true });
    await broker.sessions.get('a').kick();
    const passing = await broker.connect({ clientId: 'a' });
    const passed = gone();
    await passing.disconnect();
    await passed;
    assert.deepEqual(await steps(), [
      ...begun,
      'disconnected.waiting -resumed-> connected',
      'connected -closed-> disconnected.closing gone',
      'idle.awaitingConnect -connect,accepted-> idle.authenticating connected',
      'connected -closed-> disconnected.closing gone',
      'idle.awaitingConnect -connect,accepted-> idle.authenticating connected',
      'connected -closed-> disconnected.closing gone'
    ]);
  });

  it('shows the end of a session that waited, by its expiry or by a person, and begins where records are no longer kept', () => {
    const record = (at: number, code: string, detail?: string) => ({ at, code, about: '', ...(detail && { detail }) });
    const ended = (detail: string) => [record(9_000, 'session_ended', detail), record(5, 'disconnected_closed')];
    assert.deepEqual(shown(stepsOf(ended('The session expiry interval passed after the disconnect.'), 'gone', walk)), [
      'connected -closed-> disconnected.closing disconnected.waiting',
      'disconnected.waiting -expired-> gone'
    ]);
    const limited = `${DISCONNECT_REASONS.expired.about} The option \`maxSessionExpiryInterval\` of the zone allows 3 s.`;
    assert.deepEqual(shown(stepsOf(ended(limited), 'gone', walk)).slice(1), ['disconnected.waiting -expired-> gone']);
    assert.deepEqual(shown(stepsOf(ended('The application disconnected it.'), 'gone', walk)).slice(1), [
      'disconnected.waiting -discarded-> gone'
    ]);
    assert.deepEqual(
      shown(stepsOf([record(5, 'resumed'), record(4, 'queue_full'), record(3, 'wrong_password')], 'connected', walk)),
      ['disconnected.waiting -resumed-> connected']
    );
    assert.deepEqual(stepsOf([], 'connected', walk), []);
  });

  it('gives steps of the same time different keys, which stay when newer records come', () => {
    const records = ['disconnected_kicked', 'connected', 'disconnected_kicked', 'connected'].map((code) => ({
      at: 7,
      code,
      about: ''
    }));
    const keys = (from: number) => stepsOf(records.slice(from), 'gone', walk).map(({ key }) => key);
    assert.deepEqual(keys(0), ['7-0', '7-1', '7-2', '7-3']);
    assert.deepEqual(keys(2), ['7-0', '7-1']);
  });
});
