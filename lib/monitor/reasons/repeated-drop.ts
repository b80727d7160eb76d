import type { QoS } from '../../packets/types.ts';

/** The route of a topic without subscribers. */
export interface UnsubscribedRoute {
  readonly topic: string;
  /** The record of the last drop. */
  lastDrop: object | undefined;
  /** Drops that are not in the log yet. */
  repeatedDrop: object | undefined;
}

/** Drops of one publisher at a route that are not in the log yet. */
export class RepeatedDrop {
  publisher: string;
  qos: QoS;
  /** 0: all are in the log. */
  count: number;
  /** Times of the first and the last one, in milliseconds since 1970. */
  since: number;
  lastAt: number;
  /** Number of the record that these drops begin. */
  number: number;

  constructor(publisher: string, qos: QoS, count: number, at: number, number: number) {
    this.number = number;
    this.publisher = publisher;
    this.qos = qos;
    this.count = count;
    this.since = at;
    this.lastAt = at;
  }

  add(count: number, at: number): void {
    this.count += count;
    this.lastAt = at;
  }

  /** Count the drops of another publisher, or from now on. */
  begin(publisher: string, qos: QoS, count: number, at: number, number: number): void {
    this.number = number;
    this.publisher = publisher;
    this.qos = qos;
    this.count = count;
    this.since = at;
    this.lastAt = at;
  }

  /** Note that the drops are in the log. */
  taken(): void {
    this.count = 0;
  }
}
