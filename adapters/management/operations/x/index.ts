import type { Operation } from '../../operation.ts';
import { DATA } from './data.ts';
import { MONITORING } from './monitoring.ts';
import { OPTIONS } from './options.ts';

/** The operations beyond the original products. Their paths begin with `/x/`, and they are the same in all revisions. */
export const EXTENSIONS: readonly Operation[] = [...DATA, ...MONITORING, ...OPTIONS];
