import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../lib/base/clock.ts';
import type { FieldTable } from '../../lib/base/fields.ts';
import type { Outboxes } from '../../lib/outbox/outboxes.ts';
import type { Emitter } from '../../lib/streams/sinks/emitter.ts';
import { planSink, type SinkPlanSetup } from '../../lib/streams/sinks/sink-plan.ts';
import type { SinkItem, SinkSetup, SinkType } from '../../lib/streams/types.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** The settings with which sinks are checked. */
export const PLAN: SinkPlanSetup = {
  tools: {
    now: () => 0,
    offsetMinutes: () => 0,
    pattern: (text) => ({ parts: 1, test: (subject) => new RegExp(text).test(subject), replace: (subject) => subject })
  },
  templateCharacters: 10_000
};

interface BenchOptions {
  readonly clock?: Clock;
  readonly outboxes?: Pick<Outboxes, 'open'>;
  readonly dataDir?: string;
  readonly ruleId?: string;
}

/** An action without a rule. */
export interface SinkBench {
  readonly emitter: Emitter;
  readonly logged: string[];
  readonly warned: string[];
  /** Failures that belong to no call of `push`. */
  readonly failures: string[];
}

/** Open an action. @throws as `planSink` and `SinkPlan.open` */
export async function openSink(type: SinkType, properties: unknown, options: BenchOptions = {}): Promise<SinkBench> {
  const { clock = new ManualClock(), dataDir, ruleId = 'r1', outboxes } = options;
  const logged: string[] = [];
  const warned: string[] = [];
  const failures: string[] = [];
  const none = { open: () => Promise.reject(new Error('there is no outbox')) as never };
  const emitter = await planSink(type, properties, PLAN).open({
    ...{ ruleId, index: 0, clock, dataDir, outboxes: outboxes ?? none },
    log: (text) => logged.push(text),
    warn: (text) => warned.push(text),
    failed: (error) => failures.push((error as Error).message)
  });
  return { emitter, logged, warned, failures };
}

/** A sink whose answers the test determines. */
export class TestSink implements SinkType {
  readonly name = 'test';
  readonly about = 'For tests.';
  readonly properties: FieldTable = { topic: { type: 'string', isTemplate: true, about: 'Topic.' } };
  /** The bytes of all items so far, as text. */
  readonly sent: string[] = [];
  readonly items: SinkItem[] = [];
  /** Called for each item; if undefined, the item is sent immediately. */
  answer: ((item: SinkItem) => void | Promise<void>) | undefined;
  setup: SinkSetup | undefined;
  isClosed = false;
  /** The promise that `close` returns. */
  closed: Promise<void> | undefined;

  open(setup: SinkSetup) {
    this.setup = setup;
    return {
      send: (item: SinkItem) => {
        this.items.push(item);
        this.sent.push(String(item.bytes));
        return this.answer?.(item);
      },
      close: () => {
        this.isClosed = true;
        return this.closed;
      }
    };
  }
}

/** Let callbacks scheduled for the next turns run. */
export async function turns(): Promise<void> {
  for (let i = 0; i < 5; i++) await setImmediate();
}
