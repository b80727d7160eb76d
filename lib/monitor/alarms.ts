import { InvalidInput } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import type { AlarmSeverity, PastAlarm, PresentAlarm } from '../records/alarm.ts';

/** An alarm to be raised: a condition that an operator should know. */
export interface AlarmInput {
  /** Identifies the condition, for example `descriptors_short:tcp:1883`. 1 to 256 characters. */
  readonly id: string;
  /** Default `warning`. */
  readonly severity?: AlarmSeverity | undefined;
  /** A few words. Default: the id. */
  readonly title?: string | undefined;
  /** The event and the remedy. Default: the title. */
  readonly summary?: string | undefined;
}

/** The table that keeps the past alarms by id; see `Broker.table`. */
export interface AlarmTable extends Iterable<readonly [key: string, value: Omit<PastAlarm, 'id'>]> {
  readonly size: number;
  set(key: string, value: Omit<PastAlarm, 'id'>): Promise<void>;
  delete(key: string): Promise<boolean>;
}

/** The part of the broker that `Alarms` uses. */
interface AlarmHost {
  readonly table: AlarmTable;
  /** Maximum number of past alarms that are kept. */
  readonly maxHistory: number;
  /** Wall-clock milliseconds. */
  now(): number;
  raised(alarm: PresentAlarm): void;
  cleared(alarm: PastAlarm): void;
  /** Report that the history could not be persisted. */
  failed(error: unknown, during: string): void;
}

/** Fraction by which the table may exceed `maxHistory`. */
const SLACK = 0.1;
const SEVERITIES: readonly AlarmSeverity[] = ['notice', 'warning', 'error', 'critical'];
const INPUT_NAMES = ['id', 'severity', 'title', 'summary'] as const;

/**
 * The alarms: `broker.alarms`. The broker raises and clears its own; the app may use it for its conditions as well.
 *
 * An alarm that is raised again replaces the present one. The history contains the last time at which each alarm was cleared, and is
 * persisted; the present alarms end with the process.
 */
export class Alarms {
  readonly #host: AlarmHost;
  readonly #present = new Map<string, PresentAlarm>();
  /** Past alarms that could not be persisted, because the store has failed or is not open. They are written with the next one. */
  readonly #unwritten = new Map<string, PastAlarm>();

  /** @internal */
  constructor(host: AlarmHost) {
    this.#host = host;
  }

  /** Raise an alarm. @throws InvalidInput ALARM_INVALID, OPTION_UNKNOWN */
  raise(input: AlarmInput): void {
    checkInput(input);
    const { id, severity = 'warning', title = id, summary = title } = input;
    const alarm = { id, severity, title, summary, raisedAt: this.#host.now() };
    this.#present.delete(id);
    this.#present.set(id, alarm);
    this.#host.raised(alarm);
  }

  /** Clear an alarm. @returns whether it was present */
  clear(id: string): boolean {
    const alarm = this.#present.get(id);
    if (alarm === undefined) return false;
    this.#present.delete(id);
    const past = { ...alarm, clearedAt: this.#host.now() };
    this.#remember(past);
    this.#host.cleared(past);
    return true;
  }

  /** The present alarm of an id. */
  get(id: string): PresentAlarm | undefined {
    return this.#present.get(id);
  }

  /** The alarms that are present now, the newest first. */
  present(): PresentAlarm[] {
    return [...this.#present.values()].reverse();
  }

  /** The alarms that were cleared, the newest first. */
  history(): PastAlarm[] {
    const past = new Map([...this.#host.table].map(([id, alarm]) => [id, { id, ...alarm }]));
    for (const [id, alarm] of this.#unwritten) past.set(id, alarm);
    return [...past.values()].sort((a, b) => b.clearedAt - a.clearedAt).slice(0, this.#host.maxHistory);
  }

  /** Delete the history. Resolves when this is persisted; rejects as `Table.delete` does. */
  async deleteHistory(): Promise<void> {
    this.#unwritten.clear();
    await Promise.all([...this.#host.table].map(([id]) => this.#host.table.delete(id)));
  }

  #remember(past: PastAlarm): void {
    const { table, maxHistory } = this.#host;
    this.#unwritten.set(past.id, past);
    for (const alarm of [...this.#unwritten.values()]) this.#write(alarm);
    if (table.size <= maxHistory * (1 + SLACK)) return; // shortened rarely, because this examines all of them
    const kept = new Set(this.history().map(({ id }) => id));
    for (const [id] of [...table]) if (!kept.has(id)) table.delete(id).catch((error: unknown) => this.#failed(error));
  }

  #write(alarm: PastAlarm): void {
    const { id, ...past } = alarm;
    this.#unwritten.delete(id);
    this.#host.table.set(id, past).catch((error: unknown) => {
      if (!this.#unwritten.has(id)) this.#unwritten.set(id, alarm);
      this.#failed(error);
    });
  }

  #failed(error: unknown): void {
    const { code } = error as { readonly code?: unknown };
    // reported already
    if (code !== 'STORE_FAILED' && code !== 'BROKER_NOT_STARTED')
      this.#host.failed(error, 'writing the history of alarms');
  }
}

function checkInput(input: AlarmInput): void {
  checkObject(input, 'alarm');
  checkNames(input, INPUT_NAMES, 'an alarm');
  const { id, severity, title, summary } = input;
  if (typeof id !== 'string' || id === '' || id.length > 256)
    throw new InvalidInput('ALARM_INVALID', 'id', '1 to 256 characters', id);
  if (severity !== undefined && !SEVERITIES.includes(severity))
    throw new InvalidInput('ALARM_INVALID', 'severity', `one of ${SEVERITIES.join(', ')}`, severity);
  if (title !== undefined && typeof title !== 'string')
    throw new InvalidInput('ALARM_INVALID', 'title', 'a string', title);
  if (summary !== undefined && typeof summary !== 'string')
    throw new InvalidInput('ALARM_INVALID', 'summary', 'a string', summary);
}
