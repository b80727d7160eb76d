import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { useWatch } from '../../app/live.ts';
import { shortCount } from '../../model/format.ts';
import type { ClientRow } from './row.ts';

/** Messages per second of a client. */
export interface Rates {
  readonly received: number;
  readonly sent: number;
}

/** The rates of the clients in view, by client id. */
const rates = signal<ReadonlyMap<string, Rates>>(new Map());

/** Maximum number of characters of a client id whose rates the live stream has. */
const MAX_LENGTH = 1_024;

/** Number of components that have watched: another one is another watch, which begins with the rates of all its clients. */
let count = 0;

/** Watches the rates of clients while they are in view. */
export function RatesOf({ rows }: { readonly rows: readonly ClientRow[] }) {
  const clientIds = rows.map(({ clientid }) => clientid).filter(({ length }) => length <= MAX_LENGTH);
  const [name] = useState(() => `clients ${++count}`);
  useWatch(name, clientIds.length === 0 ? undefined : { kind: 'clients', clientIds }, ({ rows: changed = [] }) => {
    const next = new Map(rates.value);
    const inView = new Set(clientIds);
    for (const { clientId, ...rest } of changed as readonly (Rates & { readonly clientId: string })[])
      if (inView.has(clientId)) next.set(clientId, rest);
    rates.value = next;
  });
  useEffect(() => {
    const inView = new Set(clientIds);
    rates.value = new Map([...rates.value].filter(([clientId]) => inView.has(clientId)));
  }, [JSON.stringify(clientIds)]);
  useEffect(
    () => () => {
      rates.value = new Map();
    },
    []
  );
  return null;
}

/** A rate of a client, as it changes. @param measured the rate until the live stream has one */
export function RateOf({
  of: clientId,
  part,
  measured
}: {
  readonly of: string;
  readonly part: keyof Rates;
  readonly measured: number | undefined;
}) {
  const rate = rates.value.get(clientId)?.[part] ?? measured;
  return <>{rate === undefined ? '–' : shortCount(rate)}</>;
}
