import { FlowCheck } from '../load/flow-check.ts';

/** The operation of a rule: passing rows are sent one by one, or all rows are counted in windows of a second. */
export type Rule = 'filter' | 'window';

/** The statement of a rule over the stream `demo`, without the topic of the output. */
export const STATEMENTS: Readonly<Record<Rule, string>> = {
  filter: 'SELECT * FROM demo WHERE temperature > 30',
  window: 'SELECT count(*) AS c, avg(temperature) AS a, max(temperature) AS m FROM demo GROUP BY TUMBLINGWINDOW(ss, 1)'
};

const FIRST = 1_000_000_000;
const TEXT = '{"temperature":00.0,"n":0000000000}';
const TEMPERATURE_AT = TEXT.indexOf('00.0');
const NUMBER_AT = TEXT.indexOf('0000000000');
const ZERO = 48;

/** The bytes of a row: `{"temperature":31.5,"n":1000000012}`. */
export const ROW_BYTES = TEXT.length;

/** The rows that are published, by their sequence numbers. Of ten consecutive rows, `passing` are above 30 degrees. */
export class Rows {
  /** Number of rows out of ten. */
  readonly passing: number;
  readonly #frame: Buffer;

  constructor(topic: string, passing: number) {
    this.passing = passing;
    const name = Buffer.from(topic);
    const length = 2 + name.length + ROW_BYTES;
    const head = length < 128 ? [0x30, length] : [0x30, (length & 127) | 128, length >> 7];
    this.#frame = Buffer.concat([Buffer.from([...head, name.length >> 8, name.length & 255]), name, Buffer.from(TEXT)]);
  }

  passes(sequence: number): boolean {
    return sequence % 10 < this.passing;
  }

  /** The number of earlier rows that pass. */
  passedBefore(sequence: number): number {
    return Math.floor(sequence / 10) * this.passing + Math.min(sequence % 10, this.passing);
  }

  /** The temperature in tenths of a degree: from 10 to 29.9, or above 30 up to 49.9. */
  tenths(sequence: number): number {
    return this.passes(sequence) ? 301 + ((sequence * 7) % 199) : 100 + ((sequence * 7) % 200);
  }

  /** The PUBLISH packets of rows, with QoS 0. */
  frames(from: number, to: number): Buffer {
    const frame = this.#frame;
    const { length } = frame;
    const bytes = Buffer.allocUnsafe((to - from) * length);
    const payloadAt = length - ROW_BYTES;
    for (let sequence = from, at = 0; sequence < to; sequence++, at += length) {
      bytes.set(frame, at);
      const tenths = this.tenths(sequence);
      const temperatureAt = at + payloadAt + TEMPERATURE_AT;
      bytes[temperatureAt] = ZERO + Math.floor(tenths / 100);
      bytes[temperatureAt + 1] = ZERO + (Math.floor(tenths / 10) % 10);
      bytes[temperatureAt + 3] = ZERO + (tenths % 10);
      let left = FIRST + sequence;
      for (let digit = at + payloadAt + NUMBER_AT + 9; left > 0; digit--, left = Math.floor(left / 10))
        bytes[digit] = ZERO + (left % 10);
    }
    return bytes;
  }
}

/** Checks the output of rules, each of which sends to a separate topic. */
export interface Check {
  /** Called when a message has arrived. */
  take(topic: string, payload: string): void;
  /** Number of rows received from all rules. */
  readonly received: number;
  /** Number of rows expected for the first rows. */
  expected(rows: number): number;
  /** The problems when this number of rows was published. */
  problems(rows: number): string[];
}

/** @param outputs number of rules, and of their topics */
export function checkOf(rule: Rule, rows: Rows, outputs: number): Check {
  return rule === 'filter' ? new PassedRows(rows, outputs) : new CountedRows(rows, outputs);
}

interface Passed {
  readonly temperature?: unknown;
  readonly n?: unknown;
}

class PassedRows implements Check {
  received = 0;
  readonly #rows: Rows;
  readonly #outputs: number;
  readonly #flows: FlowCheck;
  readonly #flowOf = new Map<string, number>();
  #wrong = 0;
  #example = '';

  constructor(rows: Rows, outputs: number) {
    this.#rows = rows;
    this.#outputs = outputs;
    this.#flows = new FlowCheck(outputs);
  }

  take(topic: string, payload: string): void {
    const value = parsed(payload);
    const flow = flowOf(this.#flowOf, topic);
    for (const row of Array.isArray(value) ? value : [value]) this.#row(flow, row as Passed | undefined, payload);
  }

  expected(rows: number): number {
    return this.#rows.passedBefore(rows) * this.#outputs;
  }

  problems(rows: number): string[] {
    const { duplicated, reordered } = this.#flows;
    const lost = this.expected(rows) - (this.received - duplicated);
    const wrong = this.#wrong === 0 ? [] : [`${this.#wrong} rows are wrong, such as ${this.#example}`];
    return [...counted({ lost, duplicated, reordered }), ...wrong];
  }

  #row(flow: number, row: Passed | undefined, payload: string): void {
    const sequence = Number(row?.n) - FIRST;
    const rows = this.#rows;
    if (
      !(sequence >= 0) ||
      flow >= this.#outputs ||
      !rows.passes(sequence) ||
      row?.temperature !== rows.tenths(sequence) / 10
    ) {
      this.#wrong++;
      this.#example = payload.slice(0, 200);
      return;
    }
    this.received++;
    this.#flows.note(flow, rows.passedBefore(sequence));
  }
}

interface Counted {
  readonly c?: unknown;
  readonly a?: unknown;
  readonly m?: unknown;
}

/** The counts of all windows add up to the number of rows, and their averages to the sum of the temperatures. */
class CountedRows implements Check {
  received = 0;
  readonly #rows: Rows;
  readonly #outputs: number;
  readonly #flowOf = new Map<string, number>();
  readonly #counts: number[] = [];
  readonly #sums: number[] = [];
  #wrong = 0;
  #example = '';

  constructor(rows: Rows, outputs: number) {
    this.#rows = rows;
    this.#outputs = outputs;
  }

  take(topic: string, payload: string): void {
    const value = parsed(payload);
    const flow = flowOf(this.#flowOf, topic);
    for (const window of Array.isArray(value) ? value : [value]) {
      const { c, a, m } = (window ?? {}) as Counted;
      if (typeof c !== 'number' || typeof a !== 'number' || typeof m !== 'number' || flow >= this.#outputs) {
        this.#wrong++;
        this.#example = payload.slice(0, 200);
        continue;
      }
      this.received += c;
      this.#counts[flow] = (this.#counts[flow] ?? 0) + c;
      this.#sums[flow] = (this.#sums[flow] ?? 0) + c * a;
    }
  }

  expected(rows: number): number {
    return rows * this.#outputs;
  }

  problems(rows: number): string[] {
    let sum = 0;
    for (let sequence = 0; sequence < rows; sequence++) sum += this.#rows.tenths(sequence) / 10;
    const found = this.#wrong === 0 ? [] : [`${this.#wrong} windows are wrong, such as ${this.#example}`];
    for (let flow = 0; flow < this.#outputs; flow++) {
      const count = this.#counts[flow] ?? 0;
      if (count !== rows) found.push(`the windows of output ${flow} have ${count} of ${rows} rows`);
      else if (Math.abs(this.#sums[flow] - sum) > sum * 1e-9)
        found.push(`the averages of output ${flow} add up to ${this.#sums[flow]} instead of ${sum}`);
    }
    return found;
  }
}

function counted(counts: Readonly<Record<string, number>>): string[] {
  return Object.entries(counts).flatMap(([name, count]) => (count === 0 ? [] : [`${count} rows ${name}`]));
}

function flowOf(known: Map<string, number>, topic: string): number {
  const flow = known.get(topic);
  if (flow !== undefined) return flow;
  known.set(topic, known.size);
  return known.size - 1;
}

function parsed(payload: string): unknown {
  try {
    return JSON.parse(payload);
  } catch {
    return undefined;
  }
}
