// The values of a cause, as a person reads them. A name that the table of labels does not have is written in words: `oldestSince` as `Oldest since`.
import { countText, durationText, sizeText, timeText } from '../../model/format.ts';
import { T } from '../../texts.ts';

type EvidenceValue = string | number | boolean;

/** The labels of values whose name in words would not be understood. */
const LABELS: Readonly<Record<string, string>> = T.why.labels;

/** The label of a value. */
export function evidenceLabel(name: string): string {
  if (Object.hasOwn(LABELS, name)) return LABELS[name];
  const words = name
    .replace(/(At|Ms|Sec|Bytes)$/, '')
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A value as text: times in the zone of the reader, sizes and durations with their units. Undefined: it is a name or a sentence. */
export function evidenceText(name: string, value: EvidenceValue): string | undefined {
  if (typeof value === 'boolean') return value ? T.form.yes : T.form.no;
  if (/(At|^since|Since|^until)$/.test(name)) return timeText(value, { ms: true });
  if (typeof value === 'string') return undefined;
  if (/Bytes$|Size$/.test(name)) return sizeText(value);
  if (/Ms$/.test(name)) return durationText(value);
  if (/Sec$/.test(name)) return durationText(value * 1000);
  return countText(value);
}
