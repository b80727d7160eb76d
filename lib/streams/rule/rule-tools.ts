import type { Clock } from '../../base/clock.ts';
import type { PatternCompiler } from '../../sql/patterns.ts';
import type { StreamFunction, StreamFunctionTools } from '../function.ts';
import { RowWork } from '../limits.ts';
import { zoneOffsetMinutes } from '../values/time-zone.ts';
import { StreamFailure } from '../values/values.ts';

/** The settings from which the tools for a rule's functions are made. */
interface ToolSettings {
  readonly ruleId: string;
  readonly clock: Clock;
  /** IANA name of the zone of times without a zone; undefined: the zone of the process. */
  readonly timezone: string | undefined;
  /** The compiler for regular expressions; undefined if the statement has none. */
  patterns(): PatternCompiler | undefined;
  /** The limit of the same name. */
  readonly rowWeight: number;
  /** The time limit of a test. */
  readonly time?: StreamFunctionTools['time'];
}

/** Calls of functions in the text of a statement. */
const CALL = /\b([a-z_]\w*)\s*\(/gi;

/** The tools for the functions of a rule. */
export function ruleTools({ ruleId, clock, timezone, patterns, rowWeight, time }: ToolSettings): StreamFunctionTools {
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

/**
 * Offset from UTC of a zone at a given time, in minutes.
 * @param timezone IANA name; undefined: the zone of the process
 */
export function offsetMinutes(timezone: string | undefined, timeMs: number): number {
  return timezone === undefined ? -new Date(timeMs).getTimezoneOffset() : zoneOffsetMinutes(timezone, timeMs);
}

/** Check whether texts of a rule call a function that takes a regular expression. */
export function usesPatterns(texts: readonly string[], functions: ReadonlyMap<string, StreamFunction>): boolean {
  const names = texts.flatMap((text) => [...text.matchAll(CALL)].map(([, name]) => name.toLowerCase()));
  return names.some((name) => functions.get(name)?.patternAt !== undefined);
}
