import type { Clock } from '../../lib/base/clock.ts';
import { NotFound } from '../../lib/base/errors.ts';
import type { Consumer, Need } from '../../lib/streams/graph/consumer.ts';
import type { StreamTable } from '../../lib/streams/host.ts';
import { SourceHub } from '../../lib/streams/sources/hub.ts';
import type { HubPorts } from '../../lib/streams/sources/hub-ports.ts';
import type { Column, SourceSetup, SourceType, StreamDefinition, StreamsOptions } from '../../lib/streams/types.ts';
import type { StreamRow } from '../../lib/streams/values/tuple.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** A consumer that records its input. */
export class Kept implements Consumer {
  readonly rows: StreamRow[] = [];
  readonly errors: string[] = [];
  readonly tables: (readonly StreamRow[])[] = [];

  push(row: StreamRow): void {
    this.rows.push(row);
  }

  fail(error: unknown): void {
    this.errors.push((error as Error).message);
  }

  replace(rows: readonly StreamRow[]): void {
    this.tables.push(rows);
  }

  /** The columns of the rows. */
  get values(): unknown[] {
    return this.rows.map(({ values }) => values);
  }

  /** The columns of the rows of the table. */
  get table(): unknown[] | undefined {
    return this.tables.at(-1)?.map(({ values }) => values);
  }
}

/** A source that tests control: its setups are those with which it was opened. */
export class TestSource implements SourceType {
  readonly name: string = 'test';
  readonly about = 'A source for tests.';
  readonly setups: SourceSetup[] = [];
  closed = 0;

  open(setup: SourceSetup): { close(): void | Promise<void> } | Promise<{ close(): void }> {
    this.setups.push(setup);
    return { close: () => void this.closed++ };
  }

  get setup(): SourceSetup {
    return this.setups.at(-1) as SourceSetup;
  }
}

export const ALL: Need = { columns: 'all' };

export function need(...columns: string[]): Need {
  return { columns: new Set(columns) };
}

export function stream(
  options: Record<string, string> = {},
  columns?: readonly Column[],
  kind: 'stream' | 'table' = 'stream'
): StreamDefinition {
  const all = { TYPE: 'test', ...options };
  return { kind, name: 'demo', columns, options: all, sql: `${kind} ${JSON.stringify([all, columns])}` };
}

interface HubFixture {
  readonly hub: SourceHub;
  readonly clock: Clock & ManualClock;
  readonly reported: string[];
}

/** Replaced ports; sections of properties are given as for the option `sourceConfig`. */
type GivenPorts = Partial<HubPorts> & Pick<StreamsOptions, 'sourceConfig'>;

export function makeHub(types: readonly SourceType[], { sourceConfig = {}, ...ports }: GivenPorts = {}): HubFixture {
  const clock = new ManualClock(1000);
  const reported: string[] = [];
  const hub = new SourceHub({
    clock,
    dataDir: undefined,
    sections: {
      section: (type, name) => sourceConfig[type]?.[name],
      sectionNames: (type) => Object.keys(sourceConfig[type] ?? {}),
      schemaText: () => undefined
    },
    parseTime: () => undefined,
    formats: () => [],
    source(name) {
      const type = types.find((each) => each.name === name);
      if (type === undefined) throw new NotFound('SOURCE_NOT_FOUND', `unknown source type ${name}`);
      return type;
    },
    sources: () => types,
    find: () => undefined,
    notes: memoryTable(),
    node: 'embermq@here',
    records: undefined,
    isKept: () => false,
    ready: async () => undefined,
    pause: settled,
    failed: (error, during) => reported.push(`${during}: ${(error as Error).message}`),
    warn: (text) => reported.push(text),
    ...ports
  } as HubPorts);
  return { hub, clock, reported };
}

export const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A table without a store. */
export function memoryTable(): StreamTable<string> {
  const values = new Map<string, string>();
  return {
    get: (key) => values.get(key),
    set: async (key, value) => void values.set(key, value),
    delete: async (key) => values.delete(key),
    [Symbol.iterator]: () => [...values].values()
  };
}
