import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type AnyActorRef,
  type AnyStateMachine,
  createActor,
  initialTransition,
  type SnapshotFrom,
  toPromise,
  transition,
  waitFor
} from 'xstate';
import type { ActorRef, ActorSnapshot, Inspection } from '../../lib/base/actor.ts';
import { ChartRun } from '../../lib/base/charted.ts';
import { Replay } from '../../lib/base/replay.ts';
import { ReplayedActors } from '../../lib/base/replayed-actor.ts';
import {
  brokerMachine,
  ruleMachine,
  type SessionActions,
  type SessionEvent,
  sessionMachine,
  storeMachine,
  streamRuleMachine
} from '../../lib/machines.ts';

/** The target of an event, and the actions on the way. */
type Target = readonly [to: string, ...actions: string[]];

/** The target of an event by the answer of a guard. Without `no`, the answer false changes nothing. */
interface Guarded {
  readonly guard: string;
  readonly yes: Target;
  readonly no?: Target;
}

/** The transitions of a chart by state and event. An event that is not listed changes nothing. */
type Chart = Readonly<Record<string, Readonly<Record<string, Target | Guarded>>>>;

const SESSION: Chart = {
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
    closed: {
      guard: 'outlivesConnection',
      yes: ['disconnected.waiting', 'release', 'awaitExpiry'],
      no: ['gone', 'release', 'forget']
    },
    takenOver: ['connected', 'release', 'admit', 'goLive']
  },
  'disconnected.waiting': {
    resumed: ['connected', 'cancelExpiry', 'admit', 'goLive'],
    expired: ['gone', 'cancelExpiry', 'forget'],
    discarded: ['gone', 'cancelExpiry', 'forget']
  },
  gone: {}
};

const BROKER: Chart = {
  'idle.built': { start: ['idle.starting', 'open'], stop: ['disconnected.stopped', 'release'] },
  'idle.starting': { started: ['connected', 'accept'], failed: ['idle.built'] },
  connected: { stop: ['disconnected.draining', 'drain'] },
  'disconnected.draining': { stopped: ['disconnected.stopped', 'release'] },
  'disconnected.stopped': { start: ['idle.starting', 'open'] }
};

const IDLE_RULE: Chart[string] = {
  start: { guard: 'isEnabled', yes: ['idle.starting', 'begin'] },
  started: ['connected', 'attach'],
  failed: ['disconnected.waiting', 'awaitRetry'],
  disabled: ['idle.defined'],
  dropped: ['gone', 'forget']
};

const DISCONNECTED_RULE: Chart[string] = {
  start: { guard: 'isEnabled', yes: ['disconnected.starting', 'begin'] },
  started: ['connected', 'cancelRetry', 'attach'],
  failed: ['disconnected.waiting', 'cancelRetry', 'awaitRetry'],
  disabled: ['idle.defined', 'cancelRetry'],
  dropped: ['gone', 'cancelRetry', 'forget']
};

const RULE: Chart = {
  'idle.defined': IDLE_RULE,
  'idle.starting': IDLE_RULE,
  connected: {
    start: { guard: 'isEnabled', yes: ['connected', 'begin'] },
    failed: ['disconnected.waiting', 'detach', 'awaitRetry'],
    disabled: ['idle.defined', 'detach'],
    dropped: ['gone', 'detach', 'forget']
  },
  'disconnected.waiting': DISCONNECTED_RULE,
  'disconnected.starting': DISCONNECTED_RULE,
  gone: {}
};

/** The row of a stream rule that is defined, or starting for the first time. */
function idleStreamRule(state: string): Chart[string] {
  return {
    start: { guard: 'isValid', yes: ['idle.starting', 'begin'], no: [state, 'refuse'] },
    started: ['connected', 'run'],
    failed: ['disconnected.waiting', 'awaitStart'],
    stopped: ['disconnected.waiting', 'awaitStart'],
    dropped: ['gone', 'forget']
  };
}

function stoppedStreamRule(state: string): Chart[string] {
  return {
    start: { guard: 'isValid', yes: ['disconnected.starting', 'begin'], no: [state, 'refuse'] },
    started: ['connected', 'cancelStart', 'run'],
    failed: ['disconnected.waiting', 'cancelStart', 'awaitStart'],
    stopped: ['disconnected.waiting', 'cancelStart', 'awaitStart'],
    dropped: ['gone', 'cancelStart', 'forget']
  };
}

const STREAM_RULE: Chart = {
  'idle.defined': idleStreamRule('idle.defined'),
  'idle.starting': idleStreamRule('idle.starting'),
  connected: {
    started: ['connected', 'halt', 'run'],
    failed: ['disconnected.waiting', 'halt', 'awaitStart'],
    stopped: ['disconnected.waiting', 'halt', 'awaitStart'],
    dropped: ['gone', 'halt', 'forget']
  },
  'disconnected.waiting': stoppedStreamRule('disconnected.waiting'),
  'disconnected.starting': stoppedStreamRule('disconnected.starting'),
  gone: {}
};

const STORE: Chart = {
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

/** The guards of a chart that are true. */
type Truths = ReadonlySet<string>;

/** Returns an object that implements every action by recording its name, and every guard. */
function scribe<A extends object>(
  guards: readonly string[] = [],
  truths: Truths = new Set()
): { done: string[]; actions: A } {
  const done: string[] = [];
  const get = (_: object, name: string | symbol) =>
    guards.includes(String(name)) ? () => truths.has(String(name)) : () => void done.push(String(name));
  return { done, actions: new Proxy({}, { get }) as A };
}

/** Actors whose observers must not throw. */
function quietActors(): ReplayedActors {
  return new ReplayedActors((error) => assert.fail(String(error)));
}

type Run<A extends object> = ChartRun<A>;

/** The replay of a machine for objects with its actions. */
function replayOf<A extends object>(
  machine: object,
  key: string,
  actors = quietActors(),
  failed: (run: Run<A>, error: unknown, action: string) => void = (_, error) => assert.fail(String(error))
): Replay<Run<A>, A> {
  return new Replay<Run<A>, A>(machine as AnyStateMachine, actors, {
    key,
    actionsOf: ({ actions }) => actions,
    idOf: ({ id }) => id,
    failed,
    methodsFor: (id) => `kick of "${id}"`
  });
}

function nested(path: string): unknown {
  const [outer, inner] = path.split('.');
  return inner === undefined ? outer : { [outer]: inner };
}

function joined(value: unknown): string {
  if (typeof value === 'string') return value;
  const [[outer, inner]] = Object.entries(value as Record<string, string>);
  return `${outer}.${inner}`;
}

function eventsOf(chart: Chart): string[] {
  return [...new Set(Object.values(chart).flatMap((row) => Object.keys(row)))].sort();
}

function guardsOf(chart: Chart): string[] {
  const targets = Object.values(chart).flatMap((row) => Object.values(row));
  return [...new Set(targets.flatMap((target) => ('guard' in target ? [target.guard] : [])))].sort();
}

/** Every combination of answers. */
function* answersOf(guards: readonly string[]): Iterable<Truths> {
  for (let bits = 0; bits < 2 ** guards.length; bits++) yield new Set(guards.filter((_, index) => (bits >> index) & 1));
}

function targetOf(chart: Chart, from: string, event: string, truths: Truths): Target {
  const target = chart[from][event] ?? [from];
  if (!('guard' in target)) return target;
  return truths.has(target.guard) ? target.yes : (target.no ?? [from]);
}

/** The paths of all states of a machine that have no inner states and are not left at once. */
function pathsOf(
  states: Record<string, { readonly states?: object; readonly always?: unknown }>,
  prefix = ''
): string[] {
  return Object.entries(states).flatMap(([name, { states: inner, always }]) => {
    if (inner !== undefined) return pathsOf(inner as typeof states, `${prefix}${name}.`);
    return always === undefined ? [prefix + name] : [];
  });
}

for (const [name, machine, key, chart] of [
  ['session', sessionMachine, 'session', SESSION],
  ['broker', brokerMachine, 'broker', BROKER],
  ['rule', ruleMachine, 'rule', RULE],
  ['stream rule', streamRuleMachine, 'rule', STREAM_RULE],
  ['store', storeMachine, 'store', STORE]
] as unknown as [string, AnyStateMachine, string, Chart][]) {
  describe(`The chart of the ${name}`, () => {
    const guards = guardsOf(chart);

    it('matches the table in states, events and guards, and starts in its first state', () => {
      const [snapshot] = initialTransition(machine, { [key]: scribe(guards).actions } as never) as unknown as [
        { value: unknown }
      ];
      assert.equal(joined(snapshot.value), Object.keys(chart)[0]);
      assert.deepEqual(pathsOf(machine.config.states as never), Object.keys(chart));
      assert.deepEqual([...machine.events].sort(), eventsOf(chart));
      assert.deepEqual(Object.keys(machine.implementations.guards).sort(), guards);
    });

    for (const from of Object.keys(chart))
      for (const event of eventsOf(chart))
        for (const truths of answersOf(guards)) {
          const [to, ...actions] = targetOf(chart, from, event, truths);
          const condition = guards.length === 0 ? '' : ` while ${[...truths].join(' and ') || 'no guard'} is true`;

          it(`goes from ${from} on ${event}${condition} to ${to}${actions.length > 0 ? `, with the actions ${actions.join(', ')}` : ', without an action'}`, () => {
            const context = { [key]: scribe(guards, truths).actions };
            const at = machine.resolveState({ value: nested(from), context } as never);
            const [snapshot, taken] = transition(machine, at, { type: event } as never);
            assert.equal(joined(snapshot.value), to);
            assert.deepEqual(
              taken.map(({ type }) => type),
              actions
            );
          });

          it(`goes from ${from} on ${event}${condition} to the same state when it is replayed`, () => {
            const { done, actions: doer } = scribe(guards, truths);
            const run = new ChartRun(replayOf(machine, key), doer, 'a', from);
            const can = run.actor.getSnapshot().can({ type: event });
            assert.equal(
              can,
              machine
                .resolveState({ value: nested(from), context: { [key]: doer } } as never)
                .can({ type: event } as never)
            );
            run.send(event);
            assert.equal(run.at.path, to);
            assert.deepEqual(run.actor.getSnapshot().value, nested(to));
            assert.deepEqual(done, actions);
          });

          it(`goes from ${from} on ${event}${condition} to the same state in an actor of xstate`, () => {
            const { done, actions: doer } = scribe(guards, truths);
            const context = { [key]: doer };
            const snapshot = machine.resolveState({ value: nested(from), context } as never);
            const actor = createActor(machine, { input: context, snapshot } as never).start();
            actor.send({ type: event } as never);
            assert.equal(joined(actor.getSnapshot().value), to);
            assert.deepEqual(done, actions);
          });
        }
  });
}

describe('A replayed chart', () => {
  it('performs the other actions when an action throws, and reports the error', () => {
    const failures: string[] = [];
    const { done, actions } = scribe<SessionActions>(['outlivesConnection'], new Set(['outlivesConnection']));
    const faulty = new Proxy(actions, {
      get: (target, action) =>
        action === 'release'
          ? () => {
              throw new Error('broken');
            }
          : Reflect.get(target, action)
    });
    const replay = replayOf<SessionActions>(sessionMachine, 'session', quietActors(), (run, error, action) => {
      assert.equal(run.actions, faulty);
      failures.push(`${action}: ${(error as Error).message}`);
    });
    const run = new ChartRun(replay, faulty, 'a');
    for (const event of ['connect', 'accepted', 'closed', 'resumed']) run.send(event);
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
    assert.equal(run.state, 'connected');
  });

  /** The chart of a session; `during` is called in each action. */
  function sessionRun(
    actors: ReplayedActors,
    during: (action: string, run: ChartRun<SessionActions>, left: string) => void = () => {},
    guards = { outlivesConnection: false }
  ): ChartRun<SessionActions> & { send(type: SessionEvent['type']): void } {
    const get = (_: object, name: string | symbol) => (left: string) =>
      name === 'outlivesConnection' ? guards.outlivesConnection : during(String(name), run, left);
    const actions = new Proxy({}, { get }) as SessionActions;
    const replay = replayOf<SessionActions>(sessionMachine, 'session', actors);
    const run: ChartRun<SessionActions> = new ChartRun(replay, actions, 'a', 'idle.authenticating');
    return run;
  }

  it('takes an event that is sent by an action after all actions of the transition, and passes them the state that was left', () => {
    const done: string[] = [];
    const run = sessionRun(quietActors(), (action, self, left) => {
      if (action === 'admit') self.send('closed');
      done.push(`${action} in ${self.state} from ${left}`);
    });
    run.send('accepted');
    assert.deepEqual(done, [
      'admit in connected from idle',
      'goLive in connected from idle',
      'release in disconnected from connected',
      'forget in gone from disconnected'
    ]);
  });

  it('takes an event at once that is sent by an action of another one', () => {
    const done: string[] = [];
    const actors = quietActors();
    const other = sessionRun(actors, (action) => done.push(`other ${action}`));
    const run = sessionRun(actors, (action) => {
      done.push(action);
      if (action === 'admit') other.send('accepted');
    });
    run.send('accepted');
    assert.deepEqual(done, ['admit', 'other admit', 'other goLive', 'goLive']);
  });

  it('keeps its actor as long as it is held, with the state of the chart', () => {
    const guards = { outlivesConnection: true };
    const run = sessionRun(quietActors(), undefined, guards);
    const { actor } = run;
    const before = actor.getSnapshot();
    assert.equal(actor.getSnapshot(), before);
    for (const [event, state] of [
      ['accepted', 'connected'],
      ['closed', { disconnected: 'waiting' }],
      ['resumed', 'connected']
    ] as const) {
      run.send(event);
      assert.equal(run.actor, actor);
      assert.deepEqual(actor.getSnapshot().value, state);
      assert.equal(actor.getSnapshot().status, 'active');
    }
    guards.outlivesConnection = false;
    run.send('closed');
    assert.equal(actor.getSnapshot().status, 'done');
    assert.deepEqual(before.value, { idle: 'authenticating' });
  });

  it("gives snapshots with the members of xstate's", () => {
    const snapshot = sessionRun(quietActors()).actor.getSnapshot();
    assert.deepEqual(snapshot.value, { idle: 'authenticating' });
    assert.equal(snapshot.matches('idle'), true);
    assert.equal(snapshot.matches({ idle: 'authenticating' }), true);
    assert.equal(snapshot.matches('connected'), false);
    assert.equal(snapshot.can({ type: 'accepted' }), true);
    assert.equal(snapshot.can({ type: 'expired' }), false);
    assert.equal(snapshot.hasTag('any'), false);
    assert.deepEqual(snapshot.context, { session: 'a' });
    assert.deepEqual(snapshot.getMeta(), {});
    assert.deepEqual(JSON.parse(JSON.stringify(snapshot)), {
      ...{ status: 'active', value: { idle: 'authenticating' }, context: { session: 'a' }, tags: [] },
      ...{ children: {}, historyValue: {} }
    });
    assert.throws(() => {
      (snapshot.value as { idle: string }).idle = 'changed';
    }, TypeError);
  });

  it("works with xstate's waitFor and toPromise", async () => {
    const run = sessionRun(quietActors());
    const { actor } = run;
    const connected = waitFor(actor, (snapshot) => snapshot.matches('connected'));
    const never = waitFor(actor, (snapshot) => snapshot.matches('disconnected'));
    const done = toPromise(actor);
    run.send('accepted');
    assert.equal((await connected).value, 'connected');
    run.send('closed');
    await assert.rejects(never, /terminated/);
    assert.equal(await done, undefined);
    assert.equal(await toPromise(actor), undefined);
    assert.equal((await waitFor(actor, (snapshot) => snapshot.status === 'done')).value, 'gone');
  });

  it("satisfies the types of xstate's actors", () => {
    const { actor } = sessionRun(quietActors());
    const ref: AnyActorRef = actor;
    const snapshot: SnapshotFrom<ActorRef> = ref.getSnapshot();
    const same: ActorSnapshot = snapshot;
    const { unsubscribe } = ref.system.inspect(() => {});
    unsubscribe();
    assert.equal(same.status, 'active');
    assert.equal((ref as unknown as Record<string, () => AnyActorRef>)['@@observable'](), ref);
  });

  it('refuses events and stops from outside, and names what to call', () => {
    const { actor } = sessionRun(quietActors());
    const message = 'the actor of the session "a" takes no events from outside, such as "closed"; call kick of "a"';
    assert.throws(() => actor.send({ type: 'closed' }), { name: 'StateError', code: 'ACTOR_CLOSED', message });
    assert.throws(() => actor.stop(), {
      code: 'ACTOR_CLOSED',
      message: 'the actor of the session "a" cannot be stopped from outside; call kick of "a"'
    });
    assert.equal(actor.start(), actor);
    assert.deepEqual(actor.getSnapshot().value, { idle: 'authenticating' });
  });

  it('gives each new snapshot to the subscribers of its actor, until they unsubscribe or it is done', () => {
    const run = sessionRun(quietActors());
    const { actor } = run;
    const seen: string[] = [];
    const first = actor.subscribe(({ value }) => {
      seen.push(`first ${value}`);
      first.unsubscribe();
    });
    actor.subscribe({
      next: ({ value }) => seen.push(`second ${value}`),
      complete: () => seen.push('second complete')
    });
    for (const type of ['accepted', 'closed', 'closed']) run.send(type);
    actor.subscribe(
      () => assert.fail('it is done'),
      undefined,
      () => seen.push('third complete')
    );
    assert.deepEqual(seen, ['first connected', 'second connected', 'second gone', 'second complete', 'third complete']);
  });

  it('calls no observer that another one has removed, and reports the rejections of observers', async () => {
    const errors: string[] = [];
    const actors = new ReplayedActors((error) => errors.push((error as Error).message));
    const run = sessionRun(actors);
    run.send('accepted');
    const seen: string[] = [];
    run.actor.subscribe(() => {
      seen.push('first');
      second.unsubscribe();
    });
    const second = run.actor.subscribe({ next: () => seen.push('second'), complete: () => seen.push('complete') });
    run.actor.subscribe(async () => {
      throw new Error('subscriber');
    });
    run.actor
      .select(({ value }) => value)
      .subscribe(async () => {
        throw new Error('selected');
      });
    actors.inspect(async ({ type }) => {
      if (type === '@xstate.snapshot') throw new Error('inspector');
    });
    run.send('closed');
    await undefined;
    assert.deepEqual(seen, ['first']);
    assert.deepEqual(errors, ['subscriber', 'selected', 'inspector']);
  });

  it('refuses observers and selectors that are none', () => {
    const { actor } = sessionRun(quietActors());
    for (const none of [null, 'x', 5] as never[]) {
      assert.throws(() => actor.subscribe(none), { code: 'HANDLER_INVALID' });
      assert.throws(() => actor.select(none), { code: 'HANDLER_INVALID' });
      assert.throws(() => actor.select(() => 1).subscribe(none), { code: 'HANDLER_INVALID' });
      assert.throws(() => actor.system.inspect(none), { code: 'HANDLER_INVALID' });
    }
  });

  it('gives a selected part of the snapshots when it changes', () => {
    const run = sessionRun(quietActors(), undefined, { outlivesConnection: true });
    const seen: unknown[] = [];
    const isOnline = run.actor.select((snapshot) => snapshot.matches('connected'));
    const { unsubscribe } = isOnline.subscribe((value) => seen.push(value));
    for (const type of ['accepted', 'takenOver', 'closed', 'resumed']) run.send(type);
    assert.deepEqual([seen, isOnline.get()], [[true, false, true], true]);
    unsubscribe();
    run.send('closed');
    assert.equal(seen.length, 3);
  });

  it('reports errors of observers, and still handles the event', () => {
    const errors: string[] = [];
    const actors = new ReplayedActors((error) => errors.push((error as Error).message));
    const run = sessionRun(actors);
    run.actor.subscribe(() => {
      throw new Error('subscriber');
    });
    actors.inspect((event: Inspection) => {
      throw new Error(event.type);
    });
    run.send('accepted');
    assert.deepEqual(errors, ['@xstate.event', 'subscriber', '@xstate.snapshot']);
    assert.equal(run.state, 'connected');
  });
});
