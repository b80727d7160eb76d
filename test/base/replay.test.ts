import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type AnyActorRef, type AnyStateMachine, initialTransition, transition, waitFor } from 'xstate';
import type { Inspection } from '../../lib/base/inspection.ts';
import { Replay, ReplayedActor, type ReplaySystem } from '../../lib/base/replay.ts';
import { brokerMachine } from '../../lib/broker/broker.machine.ts';
import type { SessionActions } from '../../lib/session/life/chart.ts';
import { sessionMachine } from '../../lib/session/life/session.machine.ts';
import { storeMachine } from '../../lib/store/store.machine.ts';

/** The target of each event in each state, and the actions on the way. An event that is not listed changes nothing. */
const SESSION: Record<string, Record<string, [to: string, ...actions: string[]]>> = {
  'idle.awaitingConnect': {
    connect: ['idle.authenticating', 'authenticate'],
    handedOver: ['gone', 'forget'],
    closed: ['gone', 'forget']
  },
  'idle.authenticating': {
    accepted: ['connected', 'admit', 'goLive'],
    handedOver: ['gone', 'forget'],
    closed: ['gone', 'forget']
  },
  connected: {
    detached: ['disconnected', 'release', 'awaitExpiry'],
    closed: ['gone', 'release', 'forget'],
    takenOver: ['connected', 'release', 'admit', 'goLive']
  },
  disconnected: {
    resumed: ['connected', 'cancelExpiry', 'admit', 'goLive'],
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

const STORE: typeof SESSION = {
  closed: { open: ['opening'] },
  opening: { opened: ['open.resting', 'accept'], refused: ['closed'] },
  'open.resting': { commit: ['open.writing', 'write'], close: ['closing', 'shut'] },
  'open.writing': {
    committed: ['open.resting', 'end', 'notify', 'rest'],
    foldRefused: ['open.writing', 'end', 'keepJournals', 'write'],
    failed: ['failed.waiting', 'end', 'refuse', 'raise', 'reject', 'reopen']
  },
  'failed.waiting': { reopened: ['failed.trying', 'write'], close: ['closing', 'shut'] },
  'failed.trying': {
    committed: ['open.resting', 'end', 'recover', 'notify', 'rest'],
    partCommitted: ['failed.trying', 'end', 'notifyPart', 'write'],
    failed: ['failed.waiting', 'end', 'shrink', 'refuse', 'reject', 'reopen']
  },
  closing: { closed: ['closed'] }
};

/** Returns an object that implements every action by recording its name. */
function scribe(): { done: string[]; actions: SessionActions } {
  const done: string[] = [];
  const actions = new Proxy({}, { get: (_, action) => () => done.push(String(action)) }) as SessionActions;
  return { done, actions };
}

/** Returns a system whose observers must not throw. */
function quietSystem(): ReplaySystem {
  return { inspectors: new Set(), onError: (error) => assert.fail(String(error)), actorCount: 0 };
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
  ['broker', brokerMachine, 'broker', BROKER],
  ['store', storeMachine, 'store', STORE]
] as [string, AnyStateMachine, string, typeof SESSION][]) {
  describe(`The chart of the ${name}`, () => {
    const input = { [key]: scribe().actions };

    it('starts in the state of the table', () => {
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

        it(`replays the event ${event} from ${from} with the same result`, () => {
          const { done, actions: doer } = scribe();
          const steps = new Replay(machine, key, quietSystem(), (_actions, error) => assert.fail(String(error)));
          const actor = new ReplayedActor(steps, doer, 'a', from);
          actor.send({ type: event });
          assert.equal(actor.getSnapshot().value, to);
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
    const steps = new Replay<SessionActions>(sessionMachine, 'session', quietSystem(), (who, error, action) => {
      assert.equal(who, faulty);
      failures.push(`${action}: ${(error as Error).message}`);
    });
    const actor = new ReplayedActor(steps, faulty, 'a');
    const send = (type: string) => actor.send({ type });
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
    assert.equal(actor.getSnapshot().value, 'connected');
  });

  /** An actor of the session's chart; `during` is called in each action. */
  function actorOf(system: ReplaySystem, during: (action: string, actor: ReplayedActor<SessionActions>) => void) {
    const actions = new Proxy({}, { get: (_, action) => () => during(String(action), actor) }) as SessionActions;
    const steps = new Replay<SessionActions>(sessionMachine, 'session', system, (_actions, error) =>
      assert.fail(String(error))
    );
    const actor: ReplayedActor<SessionActions> = new ReplayedActor(steps, actions, 'a', 'idle.authenticating');
    return actor;
  }

  it('takes an event that is sent by an action after all actions of the transition', () => {
    const done: string[] = [];
    const actor = actorOf(quietSystem(), (action, self) => {
      if (action === 'admit') self.send({ type: 'closed' });
      done.push(`${action} in ${self.getSnapshot().value}`);
    });
    actor.send({ type: 'accepted' });
    assert.deepEqual(done, ['admit in connected', 'goLive in connected', 'release in gone', 'forget in gone']);
  });

  it("works with xstate's waitFor", async () => {
    const actor = actorOf(quietSystem(), () => {});
    const ref = actor as unknown as AnyActorRef;
    const connected = waitFor(ref, (snapshot) => snapshot.value === 'connected');
    const never = waitFor(ref, (snapshot) => snapshot.value === 'disconnected');
    actor.send({ type: 'accepted' });
    assert.equal((await connected).value, 'connected');
    actor.send({ type: 'closed' });
    await assert.rejects(never, /terminated/);
    assert.equal((await waitFor(ref, (snapshot) => snapshot.status === 'done')).value, 'gone');
  });

  it('gives each new snapshot to its subscribers, until they unsubscribe or it ends', () => {
    const actor = actorOf(quietSystem(), () => {});
    const seen: string[] = [];
    const first = actor.subscribe(({ value }) => {
      seen.push(`first ${value}`);
      first.unsubscribe();
    });
    actor.subscribe({
      next: ({ value }) => seen.push(`second ${value}`),
      complete: () => seen.push('second complete')
    });
    for (const type of ['accepted', 'closed', 'closed']) actor.send({ type });
    actor.subscribe(
      () => assert.fail('has ended'),
      undefined,
      () => seen.push('third complete')
    );
    assert.deepEqual(seen, ['first connected', 'second connected', 'second gone', 'second complete', 'third complete']);
  });

  it('reports errors of observers, and still handles the event', () => {
    const errors: string[] = [];
    const system: ReplaySystem = {
      inspectors: new Set(),
      onError: (error) => errors.push((error as Error).message),
      actorCount: 0
    };
    const actor = actorOf(system, () => {});
    actor.subscribe(() => {
      throw new Error('subscriber');
    });
    system.inspectors.add((event: Inspection) => {
      throw new Error(event.type);
    });
    actor.send({ type: 'accepted' });
    assert.deepEqual(errors, ['@xstate.event', 'subscriber', '@xstate.snapshot']);
    assert.equal(actor.getSnapshot().value, 'connected');
  });
});
