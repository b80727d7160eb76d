import type { QoS } from '../../packets/types.ts';

/** Drops of one publisher at a route that are not in the log yet. */
export class RepeatedDrop {
  publisher = '';
  qos: QoS = 0;
  /** 0: all are in the log. */
  count = 0;
  /** Time of the first one, in milliseconds since 1970. */
  since = 0;
  /** Time of the last one, in milliseconds after a time of the log: a small integer, which is stored without another object. */
  lastAfter = 0;
  /** Number of the record that these drops begin. */
  number = 0;

  add(count: number, after: number): void {
    this.count += count;
    this.lastAfter = after;
  }

  /** Count the drops of another publisher, or from now on. */
  begin(publisher: string, qos: QoS, count: number, at: number, after: number, number: number): void {
    this.number = number;
    this.publisher = publisher;
    this.qos = qos;
    this.count = count;
    this.since = at;
    this.lastAfter = after;
  }

  /** Note that the drops are in the log. */
  taken(): void {
    this.publisher = ''; // it may be long, and its client gone
    this.count = 0;
  }
}
