import type { Operation } from '../operation.ts';
import { CONFIGURATION } from './configuration.ts';
import { PLUGIN_OPERATIONS } from './plugins.ts';
import { RULE_TAGS } from './rule-tags.ts';
import { RULES } from './rules.ts';
import { SERVICE } from './service.ts';
import { STREAMS } from './streams.ts';

/** The operations of the interface. */
export const OPERATIONS: readonly Operation[] = [
  ...SERVICE,
  ...STREAMS,
  ...RULES,
  ...RULE_TAGS,
  ...CONFIGURATION,
  ...PLUGIN_OPERATIONS
];
