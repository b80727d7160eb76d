import type { Operation } from '../../operation.ts';
import { KICK } from './kick.ts';
import { MONITORING } from './monitoring.ts';
import { OPTIONS } from './options.ts';
import { RETAINED_MESSAGES } from './retained.ts';
import { TOPICS } from './topics.ts';

/** The operations beyond the original products. Their paths begin with `/x/`, and they are the same in all revisions. */
export const EXTENSIONS: readonly Operation[] = [...RETAINED_MESSAGES, ...TOPICS, ...KICK, ...MONITORING, ...OPTIONS];
