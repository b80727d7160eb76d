import { get } from '../../app/requests.ts';
import type { ConnectorKind } from '../../model/connectors.ts';
import { Badge } from '../../parts/facts.tsx';
import { T } from '../../texts.ts';

const C = T.connectors;

/** A webhook or a bridge, as the interface lists it. */
export interface ConnectorRow {
  readonly name: string;
  readonly started: boolean;
  readonly status: string;
  readonly waiting: number;
  readonly figures: Readonly<Record<string, number>>;
  readonly last_error?: string;
  /** Absent: the app or the configuration of the process has made it. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

/** The path of the connectors of a kind in the interface. */
export const PATHS = { webhook: '/x/webhooks', bridge: '/x/bridges' } as const;
/** The view that lists them. */
export const VIEW = { webhook: 'webhooks', bridge: 'bridges' } as const;

/** Load all connectors of a kind. There are few. */
export async function loadRows(
  kind: ConnectorKind,
  signal: AbortSignal,
  isBackground: boolean
): Promise<readonly ConnectorRow[]> {
  return (await get(PATHS[kind], { signal, isBackground })) as readonly ConnectorRow[];
}

/** Messages or events that were given up, for any reason. */
export function droppedOf({ figures }: ConnectorRow): number {
  return Object.entries(figures).reduce((sum, [name, count]) => (name.startsWith('dropped') ? sum + count : sum), 0);
}

const KINDS: Readonly<Record<string, 'good' | 'bad' | 'warn' | 'quiet'>> = {
  working: 'good',
  connected: 'good',
  down: 'bad',
  disconnected: 'bad',
  missing: 'bad'
};

/** The state of a connector in a word. */
export function StateOf({ row: { started, status } }: { readonly row: ConnectorRow }) {
  const word = started || status === 'missing' ? status : 'stopped';
  const text = (C.states as Readonly<Record<string, string>>)[word] ?? word;
  return <Badge kind={KINDS[word] ?? 'quiet'}>{text}</Badge>;
}

/** The target of a connector, as far as it is known. */
export function targetOf({ settings }: ConnectorRow): string | undefined {
  return typeof settings?.url === 'string' ? settings.url : undefined;
}
