// The values of pinned topics are collected in every view, so their watch is not one of a view.
import { signal } from '@preact/signals';
import { bytesOf } from '../model/payload.ts';
import { watchable } from '../model/tree.ts';
import { PINS, useWatch } from './live.ts';

/** Maximum number of values of a pinned topic, and of pinned topics. */
export const MAX_VALUES = 100;
const MAX_PINS = 20;

/** A value of a pinned topic. */
export interface PinnedValue {
  readonly at: number;
  /** The beginning of the payload, as the live stream has it. */
  readonly bytes: Uint8Array;
  /** Bytes of the whole payload. */
  readonly payloadBytes: number;
}

/** The values of pinned topics, by topic. They are discarded when the page is closed. */
export const pins = signal<ReadonlyMap<string, readonly PinnedValue[]>>(new Map());

/** Pin a topic, or end that. */
export function togglePin(topic: string): void {
  const next = new Map(pins.value);
  if (next.has(topic)) next.delete(topic);
  else next.set(topic, []);
  pins.value = new Map([...next].slice(-MAX_PINS));
}

/** A row of the watch. */
interface Row {
  readonly filter: string;
  readonly at: number;
  /** base64; undefined before the first message. */
  readonly payload?: string;
  readonly payloadBytes: number;
}

/** Collect the values of pinned topics. */
export function usePins(): void {
  const topics = [...pins.value.keys()];
  useWatch(PINS, topics.length === 0 ? undefined : { kind: 'topics', topics: watchable(topics) }, (data) => {
    for (const row of (data.rows ?? []) as readonly Row[]) collect(row);
  });
}

function collect({ filter, payload, at, payloadBytes }: Row): void {
  const before = pins.value.get(filter);
  if (before === undefined || payload === undefined || before.at(-1)?.at === at) return;
  const value = { at, bytes: bytesOf(payload) ?? new Uint8Array(), payloadBytes };
  pins.value = new Map(pins.value).set(filter, [...before, value].slice(-MAX_VALUES));
}
