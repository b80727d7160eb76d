import {
  ChartRun,
  Replay,
  ReplayedActors,
  type SessionActions,
  type SessionEvent,
  sessionMachine
} from 'embermq/machines';
import { createActor } from 'xstate';
import { median } from './report.ts';

/** The cost of the actor of one session. */
export interface Row {
  readonly logic: string;
  /** CPU microseconds of a whole life: creation, CONNECT, acceptance, close. */
  readonly lifeUs: number;
  /** CPU microseconds to disconnect and resume. */
  readonly resumeUs: number;
  /** Bytes of heap while connected. */
  readonly heapBytes: number;
}

const ROUNDS = 7;
const NOTHING = (): void => {};

/** The answer of the guard `outlivesConnection`. */
let isPersistent = false;

/** Actions that do nothing, because only the chart and its actor are measured. */
const actions: SessionActions = {
  outlivesConnection: () => isPersistent,
  awaitConnect: NOTHING,
  authenticate: NOTHING,
  admit: NOTHING,
  goLive: NOTHING,
  release: NOTHING,
  awaitExpiry: NOTHING,
  cancelExpiry: NOTHING,
  forget: NOTHING
};

interface Actor {
  send(type: SessionEvent['type']): void;
}

/** Measure with this number of sessions at a time, with the replaying logic of the broker and with the machine itself. Needs `--expose-gc`. */
export function run(sessions: number): Row[] {
  const root = createActor(sessionMachine, { input: { session: actions } }).start();
  const onError = (error: unknown) => {
    throw error;
  };
  const replay = new Replay<ChartRun<SessionActions>, SessionActions>(sessionMachine, new ReplayedActors(onError), {
    key: 'session',
    actionsOf: (run) => run.actions,
    idOf: ({ id }) => id,
    failed: (_, error) => onError(error),
    methodsFor: () => ''
  });
  return [
    measure('the machine, replayed', sessions, () => new ChartRun(replay, actions, 'session')),
    measure('the machine itself', Math.ceil(sessions / 10), () => {
      const actor = createActor(sessionMachine, { input: { session: actions }, parent: root }).start();
      return { send: (type) => actor.send({ type }) };
    })
  ];
}

function measure(logic: string, count: number, begin: () => Actor): Row {
  const connect = (): Actor => {
    const actor = begin();
    actor.send('connect');
    actor.send('accepted');
    return actor;
  };
  const end = (actor: Actor): void => actor.send('closed');
  const rounds = (work: () => void): number =>
    median(
      Array.from({ length: ROUNDS }, () => {
        const before = process.cpuUsage();
        for (let i = 0; i < count; i++) work();
        const { user, system } = process.cpuUsage(before);
        return (user + system) / count;
      })
    );
  const lifeUs = rounds(() => end(connect()));
  const kept = connect();
  isPersistent = true;
  const resumeUs = rounds(() => {
    kept.send('closed');
    kept.send('resumed');
  });
  isPersistent = false;
  end(kept);
  const actors: Actor[] = new Array(count).fill(kept);
  const before = heap();
  for (let i = 0; i < count; i++) actors[i] = connect();
  const heapBytes = (heap() - before) / count;
  actors.forEach(end);
  return { logic, lifeUs, resumeUs, heapBytes };
}

function heap(): number {
  // Collect twice, because the first collection only queues objects with finalizers.
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

/** The rows as a Markdown table. */
export function table(rows: readonly Row[]): string {
  return [
    'A life consists of creation, CONNECT, acceptance and close. The actions do nothing. The goal is at most 10 us and 2,048 bytes.',
    '',
    '| session actor | life us | offline and back us | heap bytes while connected |',
    '| --- | --- | --- | --- |',
    ...rows.map(
      (row) => `| ${row.logic} | ${row.lifeUs.toFixed(2)} | ${row.resumeUs.toFixed(2)} | ${row.heapBytes.toFixed(0)} |`
    )
  ].join('\n');
}
