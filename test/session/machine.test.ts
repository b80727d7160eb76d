import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Actor, type AnyStateMachine, createActor, initialTransition, transition } from 'xstate';
import { brokerMachine } from '../../lib/broker/broker.machine.ts';
import { replay } from '../../lib/replay.ts';
import type { SessionDeeds } from '../../lib/session/deeds.ts';
import { sessionMachine } from '../../lib/session/session.machine.ts';

/** The target of each event in each state, and the actions on the way. An event that is not listed changes nothing. */
const SESSION: Record<string, Record<string, [to: string, ...deeds: string[]]>> = {
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
function scribe(): { done: string[]; deeds: SessionDeeds } {
  const done: string[] = [];
  const deeds = new Proxy({}, { get: (_, deed) => () => done.push(String(deed)) }) as SessionDeeds;
  return { done, deeds };
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
    const input = { [key]: scribe().deeds };

    it('starts as the table says', () => {
      const [snapshot] = (
        initialTransition as unknown as (machine: AnyStateMachine, input: unknown) => [{ value: unknown }]
      )(machine, input);
      assert.equal(joined(snapshot.value), Object.keys(table)[0]);
    });

    for (const [from, row] of Object.entries(table)) {
      for (const event of eventsOf(table)) {
        const [to, ...deeds] = row[event] ?? [from];
        it(`goes from ${from} on ${event} to ${to}${deeds.length > 0 ? `, with the actions ${deeds.join(', ')}` : ', without an action'}`, () => {
          const at = machine.resolveState({ value: nested(from), context: input } as never);
          const [snapshot, actions] = transition(machine, at, { type: event } as never);
          assert.equal(joined(snapshot.value), to);
          assert.deepEqual(
            actions.map(({ type }) => type),
            deeds
          );
        });

        it(`is replayed the same from ${from} on ${event}`, () => {
          const { done, deeds: doer } = scribe();
          const logic = replay(machine, key, (_deeds, error) => assert.fail(String(error)));
          const snapshot = {
            status: from === 'gone' ? 'done' : 'active',
            value: from,
            deeds: doer,
            output: undefined,
            error: undefined
          };
          const actor = createActor(
            logic as never,
            { parent: root(), input: { deeds: doer }, snapshot } as never
          ) as Actor<never>;
          actor.start();
          (actor as unknown as { send(event: object): void }).send({ type: event });
          assert.equal((actor.getSnapshot() as { value: string }).value, to);
          assert.deepEqual(done, deeds);
        });
      }
    }
  });
}

describe('A replayed actor', () => {
  it('stays active when an action throws, performs the other actions, and reports the error', () => {
    const failures: string[] = [];
    const { done, deeds } = scribe();
    const faulty = new Proxy(deeds, {
      get: (target, deed) =>
        deed === 'release'
          ? () => {
              throw new Error('broken');
            }
          : Reflect.get(target, deed)
    });
    const logic = replay<SessionDeeds>(sessionMachine, 'session', (who, error, deed) => {
      assert.equal(who, faulty);
      failures.push(`${deed}: ${(error as Error).message}`);
    });
    const actor = createActor(logic as never, { parent: root(), input: { deeds: faulty } } as never) as Actor<never>;
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
