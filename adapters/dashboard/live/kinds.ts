import { ALARMS } from './alarms.ts';
import { CLIENT } from './client.ts';
import type { LiveKind } from './live-kind.ts';
import { OVERVIEW } from './overview.ts';
import { TAIL } from './tail.ts';
import { TOPICS } from './topics.ts';

/** The kinds of watches, by their names. */
export const KINDS = {
  overview: OVERVIEW,
  alarms: ALARMS,
  client: CLIENT,
  tail: TAIL,
  topics: TOPICS
} as Readonly<Record<string, LiveKind>>;
