import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Actor, type AnyStateMachine, createActor, initialTransition, transition } from 'xstate';
import { replay } from '../../lib/base/replay.ts';
import { brokerMachine } from '../../lib/broker/broker.machine.ts';
import type { SessionActions } from '../../lib/session/actions.ts';
import { sessionMachine } from '../../lib/session/session.machine.ts';

/** The target of each event in each state, and the actions on the way. An event that is not listed changes nothing. */
const SESSION: Record<string, Record<string, [to: string, ...actions: string[]]>> = {
  'idle.awaitingConnect': {
    connect: ['idle.authenticating', 'authenticate'],
    handedOver: ['gone', 'forget'],
    closed: ['gone', 'forget']
  },
  'idle.authenticating': {
    accepted: ['connected.live', 'admit', 'goLive'],
    handedOver: ['gone', 'forget'],
    closed: ['gone', 'forget']
  },
  'connected.live': {
    reauthenticate: ['connected.reauthenticating', 'reauthenticate'],
    detached: ['disconnected', 'release', 'awaitExpiry'],
    closed: ['gone', 'release', 'forget'],
    takenOver: ['connected.live', 'release', 'admit', 'goLive']
  },
  'connected.reauthenticating': {
    reauthenticated: ['connected.live', 'goLive'],
    detached: ['disconnected', 'release', 'awaitExpiry'],
    closed: ['gone', 'release', 'forget'],
    takenOver: ['connected.live', 'release', 'admit', 'goLive']
  },
  disconnected: {
    resumed: ['connected.live', 'cancelExpiry', 'admit', 'goLive'],
    expired: ['gone', 'cancelExpiry', 'forget'],
    discarded: ['gone', 'cancelExpiry', 'forget']
  },
  gone: {}
};

const BROKER: typeof SESSION = {
  'idle.built': { start: ['idle.starting'], stop: ['disconnected', 'release'] },
  'idle.starting': { started: ['connected.accepting', 'accept'], failed: ['idle.built'] },
  'connected.accepting': { stop: ['connected.draining', 'drain'] },
  'connected.draining': { stopped: ['disconnected', 'release'] },
  disconnected: { start: ['idle.starting'] }
};

/** Returns an object that implements every action by recording its name. */
function scribe(): { done: string[]; actions: SessionActions } {
  const done: string[] = [];
  const actions = new Proxy({}, { get: (_, action) => () => done.push(String(action)) }) as SessionActions;
  return { done, actions };
}

function root(): Actor<never> {
  const logic = {
    transition: (snapshot: unknown) => snapshot,
    getInitialSnapshot: () => ({ status: 'active', output: undefined, error: undefined }),
    getPersistedSnapshot: (snapshot: unknown) => snapshot
  };
  const create = createActor as unknown as (logic: unknown) => Actor<never>;
  return create(logic).start();
}

function nested(value: string): unknown {
  const [outer, inner] = value.split('.');
  return inner === undefined ? outer : { [outer]: inner };
}

function joined(value: unknown): string {
  if (typeof value === 'string') return value;
  const [[outer, inner]] = Object.entries(value as Record<string, string>);
  return `${outer}.${inner}`;
}

function eventsOf(table: typeof SESSION): string[] {
  return [...new Set(Object.values(table).flatMap((row) => Object.keys(row)))];
}

for (const [name, machine, key, table] of [
  ['session', sessionMachine, 'session', SESSION],
  ['broker', brokerMachine, 'broker', BROKER]
] as [string, AnyStateMachine, string, typeof SESSION][]) {
  describe(`The chart of the ${name}`, () => {
    const input = { [key]: scribe().actions };

    it('starts as the table says', () => {
      const [snapshot] = (
        initialTransition as unknown as (machine: AnyStateMachine, input: unknown) => [{ value: unknown }]
      )(machine, input);
      assert.equal(joined(snapshot.value), Object.keys(table)[0]);
    });

    for (const [from, row] of Object.entries(table)) {
      for (const event of eventsOf(table)) {
        const [to, ...actions] = row[event] ?? [from];
        it(`goes from ${from} on ${event} to ${to}${actions.length > 0 ? `, with the actions ${actions.join(', ')}` : ', without an action'}`, () => {
          const at = machine.resolveState({ value: nested(from), context: input } as never);
          const [snapshot, taken] = transition(machine, at, { type: event } as never);
          assert.equal(joined(snapshot.value), to);
          assert.deepEqual(
            taken.map(({ type }) => type),
            actions
          );
        });

        it(`is replayed the same from ${from} on ${event}`, () => {
          const { done, actions: doer } = scribe();
          const logic = replay(machine, key, (_actions, error) => assert.fail(String(error)));
          const snapshot = {
            status: from === 'gone' ? 'done' : 'active',
            value: from,
            actions: doer,
            output: undefined,
            error: undefined
          };
          const actor = createActor(
            logic as never,
            { parent: root(), input: { actions: doer }, snapshot } as never
          ) as Actor<never>;
          actor.start();
          (actor as unknown as { send(event: object): void }).send({ type: event });
          assert.equal((actor.getSnapshot() as { value: string }).value, to);
          assert.deepEqual(done, actions);
        });
      }
    }
  });
}

describe('A replayed actor', () => {
  it('stays active when an action throws, performs the other actions, and reports the error', () => {
    const failures: string[] = [];
    const { done, actions } = scribe();
    const faulty = new Proxy(actions, {
      get: (target, action) =>
        action === 'release'
          ? () => {
              throw new Error('broken');
            }
          : Reflect.get(target, action)
    });
    const logic = replay<SessionActions>(sessionMachine, 'session', (who, error, action) => {
      assert.equal(who, faulty);
      failures.push(`${action}: ${(error as Error).message}`);
    });
    const actor = createActor(logic as never, { parent: root(), input: { actions: faulty } } as never) as Actor<never>;
    actor.start();
    const send = (type: string) => (actor as unknown as { send(event: object): void }).send({ type });
    for (const event of ['connect', 'accepted', 'detached', 'resumed']) send(event);
    assert.deepEqual(failures, ['release: broken']);
    assert.deepEqual(done, [
      'awaitConnect',
      'authenticate',
      'admit',
      'goLive',
      'awaitExpiry',
      'cancelExpiry',
      'admit',
      'goLive'
    ]);
    assert.equal((actor.getSnapshot() as { value: string }).value, 'connected.live');
  });
});
