import type { Operation } from '../../operation.ts';
import { AUDIT } from './audit.ts';
import { DROPS } from './drops.ts';
import { EVENT_STREAM } from './events.ts';
import { METRIC_HISTORY } from './metric-history.ts';
import { SLOW } from './slow.ts';
import { STORE_METRICS } from './store.ts';
import { TAIL } from './tail.ts';
import { TOPIC_METRICS } from './topic-counters.ts';
import { TRACES } from './traces.ts';
import { REASONS } from './why.ts';

/** The observations of the broker about its own operation, and the stream of its events. */
export const MONITORING: readonly Operation[] = [
  ...AUDIT,
  ...DROPS,
  ...REASONS,
  ...EVENT_STREAM,
  ...TAIL,
  ...TRACES,
  ...METRIC_HISTORY,
  ...TOPIC_METRICS,
  ...SLOW,
  ...STORE_METRICS
];
