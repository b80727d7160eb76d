import type { Clock } from '../../base/clock.ts';
import type { PatternCompiler } from '../../sql/patterns.ts';
import type { FunctionTools, StreamFunction } from '../function.ts';
import { RowWork } from '../limits.ts';
import { zoneOffsetMinutes } from '../values/time-zone.ts';
import { StreamFailure } from '../values/values.ts';

/** What the tools of the functions of a rule are made of. */
interface ToolSettings {
  readonly ruleId: string;
  readonly clock: Clock;
  /** IANA name of the zone of times without one; undefined: that of the process. */
  readonly timezone: string | undefined;
  /** Compiles regular expressions; undefined: the statement has none. */
  patterns(): PatternCompiler | undefined;
  /** The bound of this name. */
  readonly rowWeight: number;
  /** Of a test: its time. */
  readonly time?: FunctionTools['time'];
}

/** Calls of functions in the text of a statement. */
const CALL = /\b([a-z_]\w*)\s*\(/gi;

/** What the functions of a rule use. */
export function ruleTools({ ruleId, clock, timezone, patterns, rowWeight, time }: ToolSettings): FunctionTools {
  return {
    ruleId,
    rowWeight,
    rowWork: new RowWork(rowWeight),
    ...(time === undefined ? {} : { time }),
    startedAt: clock.now(),
    now: () => clock.now(),
    random: Math.random,
    pattern: (text) => {
      const compile = patterns();
      if (compile === undefined) throw new StreamFailure('regular expressions are not loaded');
      return compile(text);
    },
    offsetMinutes: (timeMs) => offsetMinutes(timezone, timeMs),
    property: () => undefined,
    hits: { count: 0, lastAt: 0 },
    groupHits: { count: 0, lastAt: 0 },
    delayed: { until: 0 },
    frame: { range: undefined, rowNumber: 0 }
  };
}

/** Offset of a zone from UTC at a time, in minutes. @param timezone IANA name; undefined: the zone of the process */
export function offsetMinutes(timezone: string | undefined, timeMs: number): number {
  return timezone === undefined ? -new Date(timeMs).getTimezoneOffset() : zoneOffsetMinutes(timezone, timeMs);
}

/** Whether texts of a rule call a function that takes a regular expression. */
export function usesPatterns(texts: readonly string[], functions: ReadonlyMap<string, StreamFunction>): boolean {
  const names = texts.flatMap((text) => [...text.matchAll(CALL)].map(([, name]) => name.toLowerCase()));
  return names.some((name) => functions.get(name)?.patternAt !== undefined);
}
