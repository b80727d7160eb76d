import { ALARMS } from './alarms.ts';
import { CLIENT } from './client.ts';
import { CLIENTS } from './clients.ts';
import type { LiveKind } from './live-kind.ts';
import { OVERVIEW } from './overview.ts';
import { RULE } from './rule.ts';
import { TAIL } from './tail.ts';
import { TOPICS } from './topics.ts';
import { TRACE } from './trace.ts';

/** The kinds of watches, by their names. */
export const KINDS = {
  overview: OVERVIEW,
  alarms: ALARMS,
  client: CLIENT,
  clients: CLIENTS,
  tail: TAIL,
  topics: TOPICS,
  rule: RULE,
  trace: TRACE
} as Readonly<Record<string, LiveKind>>;
