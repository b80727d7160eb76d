// The states of rules, and their texts in the documented interface. The console derives the code from the text of a list with the same table, because
// the rows of the documented list have nothing else.

/** State of a stream rule, with the kind of its reason. */
export type StreamRuleCode =
  | 'running'
  /** Stopped with an error; a restart strategy may start it again. */
  | 'failed'
  /** Stopped by a person or the app, or not started yet. */
  | 'stopped'
  /** Not running until the next start of its schedule. */
  | 'waiting'
  /** Stopped, because its schedule has no further run. */
  | 'over'
  /** About to start again: a source that it shares with another rule is opened with another configuration. */
  | 'reopening'
  | 'service_stopped'
  | 'broker_stopped';

/** The code of a rule that was stopped, and has not failed. */
export type StopCode = Exclude<StreamRuleCode, 'running' | 'failed'>;

/** The reason of each code: what follows `Stopped: `. */
export const STOPPED: Readonly<Record<StopCode, string>> = {
  stopped: 'canceled manually.',
  waiting: 'waiting for next schedule.',
  over: 'schedule terminated.',
  reopening: 'a source is opened again.',
  service_stopped: 'the stream service is stopped.',
  broker_stopped: 'the broker has stopped.'
};

const RUNNING = 'Running';
const PREFIX = 'Stopped: ';

/** The text of a state. @param reason of a rule that does not run */
export function stateText(code: StreamRuleCode, reason: string): string {
  return code === 'running' ? RUNNING : PREFIX + reason;
}

/** The code of a text of `stateText`, with the reason. An error with the text of another reason is not told apart. */
export function stateIn(text: string): { readonly code: StreamRuleCode; readonly reason: string } {
  if (text === RUNNING) return { code: 'running', reason: '' };
  const reason = text.startsWith(PREFIX) ? text.slice(PREFIX.length) : text;
  const [code] = Object.entries(STOPPED).find(([, each]) => each === reason) ?? [];
  return { code: (code as StopCode | undefined) ?? 'failed', reason };
}
