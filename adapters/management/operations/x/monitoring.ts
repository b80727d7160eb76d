import type { Operation } from '../../operation.ts';
import { AUDIT } from './audit.ts';
import { DROPS } from './drops.ts';
import { EVENT_STREAM } from './events.ts';
import { FIGURES } from './figures.ts';
import { SLOW } from './slow.ts';
import { STORE_FIGURES } from './store.ts';
import { TOPIC_FIGURES } from './topic-figures.ts';
import { TRACES } from './traces.ts';

/** The observations of the broker about its own operation, and the stream of its events. */
export const MONITORING: readonly Operation[] = [
  ...AUDIT,
  ...DROPS,
  ...EVENT_STREAM,
  ...TRACES,
  ...FIGURES,
  ...TOPIC_FIGURES,
  ...SLOW,
  ...STORE_FIGURES
];
