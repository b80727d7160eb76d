// The states and transitions of a chart, from the configuration of its machine, and the path of a session through them, from the records about its
// client.

import { DISCONNECT_REASONS } from '../../../../lib/events/reasons.ts';

/** A part of the configuration of a machine of xstate. */
export interface ChartConfig {
  readonly id?: string;
  readonly initial?: string;
  readonly states?: Readonly<Record<string, ChartConfig>>;
  readonly on?: Readonly<Record<string, Targets>>;
  readonly always?: Targets;
  readonly type?: string;
}

type Target = string | { readonly target?: string; readonly guard?: unknown };
type Targets = Target | readonly Target[];

/** A transition between two states, given by their paths: `disconnected.waiting`. */
export interface Transition {
  readonly from: string;
  readonly to: string;
  /** The names of its events, or of its guard; none: it is taken at once. */
  readonly labels: readonly string[];
  /** No event is needed. */
  readonly isAlways: boolean;
}

/** The transitions of a chart. Those with the same ends are one. */
export function transitionsOf(chart: ChartConfig): readonly Transition[] {
  const found = new Map<string, Transition>();
  const add = (from: string, name: string | undefined, targets: Targets | undefined) => {
    const list = (Array.isArray(targets) ? targets : targets === undefined ? [] : [targets]) as readonly Target[];
    for (const each of list) {
      const { target, guard } = typeof each === 'string' ? { target: each, guard: undefined } : each;
      if (target === undefined) continue;
      const to = resolved(chart, target, from);
      const key = `${from} ${to} ${name === undefined}`;
      const label = name ?? (typeof guard === 'string' ? guard : undefined);
      const labels = [...(found.get(key)?.labels ?? []), ...(label === undefined ? [] : [label])];
      found.set(key, { from, to, labels, isAlways: name === undefined });
    }
  };
  const visit = ({ states = {}, on = {}, always }: ChartConfig, path: string) => {
    for (const [name, targets] of Object.entries(on)) add(path, name, targets);
    add(path, undefined, always);
    for (const [name, state] of Object.entries(states)) visit(state, path === '' ? name : `${path}.${name}`);
  };
  visit(chart, '');
  return [...found.values()];
}

/** The path of a target: `#session.gone`, a sibling, or `.inner`. A target that has inner states itself stays as it is. */
function resolved(chart: ChartConfig, target: string, from: string): string {
  if (target.startsWith('#')) return target.slice(`#${chart.id}.`.length);
  if (target.startsWith('.')) return from + target;
  const above = from.split('.').slice(0, -1).join('.');
  return above === '' ? target : `${above}.${target}`;
}

/** The states after an event, one after the other. @param outlivesConnection the guard of the chart */
export type Walk = (from: string, event: string, outlivesConnection: boolean) => readonly string[];

/** A record of the history of a client. */
export interface HistoryRecord {
  readonly at: number;
  readonly code: string;
  readonly about: string;
  readonly detail?: string;
}

/** A step of a session through its chart. */
export interface Step {
  /** The same while newer records come. */
  readonly key: string;
  readonly at: number;
  readonly about: string;
  readonly detail?: string | undefined;
  readonly events: readonly string[];
  /** The states, from that before the step to that after it. */
  readonly path: readonly string[];
}

const CONNECTED = 'connected';
const WAITING = 'disconnected.waiting';
const INITIAL = 'idle.awaitingConnect';

/**
 * The steps of the sessions of a client, the oldest first.
 * @param records of the client, the latest first
 * @param state the current state of the session: `disconnected`, for example
 */
export function stepsOf(records: readonly HistoryRecord[], state: string, walk: Walk): readonly Step[] {
  const known = records.filter(({ code }) => eventsOf(code) !== undefined).toReversed();
  const steps: Step[] = [];
  let now = '';
  for (const [index, record] of known.entries()) {
    const { at, code, about, detail } = record;
    const next = known[index + 1];
    if (code === 'session_ended' && now === 'gone') continue; // the step before has led there
    if (code === 'resumed' && now === CONNECTED) continue; // a takeover has led there
    const outlives = next === undefined ? state !== 'gone' : next.code === 'resumed' || endsLater(record, next);
    const path = [stateBefore(code)];
    const events = (eventsOf(code) ?? []).map((event) =>
      event === 'discarded' && isExpiry(detail) ? 'expired' : event
    );
    for (const event of events) path.push(...walk(path[path.length - 1], event, outlives));
    now = path[path.length - 1];
    steps.push({ key: `${at}-${steps.filter((step) => step.at === at).length}`, at, about, detail, events, path });
  }
  return steps;
}

/** The events that a record stands for. @returns undefined if it is not about the chart */
function eventsOf(code: string): readonly string[] | undefined {
  if (code === 'connected') return ['connect', 'accepted'];
  if (code === 'resumed') return ['resumed'];
  if (code === 'session_ended') return ['discarded'];
  if (code === 'disconnected_takeovered') return ['takenOver'];
  return code.startsWith('disconnected_') ? ['closed'] : undefined;
}

function stateBefore(code: string): string {
  return code === 'connected' ? INITIAL : /^(resumed|session_ended)$/.test(code) ? WAITING : CONNECTED;
}

/** Milliseconds between the records of a session that ends with its connection, at most. One that waits does so for at least a second. */
const SAME_END_MS = 500;

/** Check whether a session ends later than its connection. */
function endsLater(record: HistoryRecord, next: HistoryRecord): boolean {
  return next.code === 'session_ended' && next.at - record.at > SAME_END_MS;
}

/** The transitions of a path. A transition of an outer state is one of its inner states, too. */
export function passedBy(transitions: readonly Transition[], path: readonly string[]): readonly Transition[] {
  const isIn = (state: string, outer: string) => state === outer || state.startsWith(`${outer}.`);
  return path
    .slice(1)
    .flatMap((to, index) => transitions.find((one) => isIn(path[index], one.from) && isIn(to, one.to)) ?? []);
}

function isExpiry(detail: string | undefined): boolean {
  return detail?.startsWith(DISCONNECT_REASONS.expired.about) === true; // a limit of the zone may follow
}
