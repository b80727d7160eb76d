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
  /** Monotonic times of the first and the last one. */
  sinceMs: number;
  lastMs: number;

  constructor(publisher: string, qos: QoS, count: number, nowMs: number) {
    this.publisher = publisher;
    this.qos = qos;
    this.count = count;
    this.sinceMs = nowMs;
    this.lastMs = nowMs;
  }

  add(count: number, nowMs: number): void {
    this.count += count;
    this.lastMs = nowMs;
  }

  /** Count the drops of another publisher, or from now on. */
  begin(publisher: string, qos: QoS, count: number, nowMs: number): void {
    this.publisher = publisher;
    this.qos = qos;
    this.count = count;
    this.sinceMs = nowMs;
    this.lastMs = nowMs;
  }

  /** Note that the drops are in the log. */
  taken(): void {
    this.count = 0;
  }
}
