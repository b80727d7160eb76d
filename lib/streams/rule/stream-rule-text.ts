import { consoleText, inOneLine } from '../../base/symbols.ts';
import type { DefinedStreamRule } from './defined-stream-rule.ts';

/** Characters of a statement that are shown. */
const MAX_SQL = 200;

/**
 * The text that `console.log` prints for a rule of streams: its state, its statement and its counters.
 * @param rule undefined if it was dropped
 */
export function streamRuleText(
  rule: DefinedStreamRule | undefined,
  id: string,
  depth: number,
  options: object
): string {
  return consoleText('StreamRule', depth, options, ({ quoted, state, count }) => {
    if (rule === undefined) return [`${quoted(id)} ${state('dropped')}`];
    const { status, definition } = rule;
    const sum = (name: RegExp) =>
      Object.entries(status.metrics).reduce((total, [key, value]) => total + (name.test(key) ? Number(value) : 0), 0);
    return [
      `${quoted(id)} ${state(status.state)}: ${inOneLine(status.text)}`,
      inOneLine(definition.sql, MAX_SQL),
      status.state === 'connected'
        ? `${count(sum(/^source_.*_records_in_total$/), 'row')} in, ${sum(/^sink_.*_records_out_total$/)} out, ${count(sum(/_exceptions_total$/), 'error')}`
        : `no counters while it does not run`
    ];
  });
}
