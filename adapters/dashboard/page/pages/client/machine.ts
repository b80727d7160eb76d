// The chart of sessions, as the machine of the broker has it: nothing of it is repeated here.
import { getMicrosteps } from 'xstate';
import { sessionMachine } from '../../../../../lib/machines.ts';
import type { ChartConfig, Walk } from '../../model/state-chart.ts';

/** The states and transitions of sessions. */
export const SESSION_CHART = sessionMachine.config as unknown as ChartConfig;

/** The states that a session passes through with an event. @returns none if the state has no transition for the event */
export const walk: Walk = (from, event, outlivesConnection) => {
  const session = { outlivesConnection: () => outlivesConnection };
  type State = Parameters<typeof sessionMachine.resolveState>[0];
  const snapshot = sessionMachine.resolveState({ value: stateOf(from), context: { session } } as unknown as State);
  return getMicrosteps(sessionMachine, snapshot, { type: event } as Parameters<typeof getMicrosteps>[2])
    .map(([{ value }]) => pathOf(value))
    .filter((path, index, all) => path !== (all[index - 1] ?? from));
};

function stateOf(path: string) {
  const [outer, inner] = path.split('.');
  return inner === undefined ? outer : { [outer]: inner };
}

function pathOf(value: unknown): string {
  return typeof value === 'string' ? value : (Object.entries(value as object)[0] ?? []).join('.');
}
