// The values of a cause, as a person reads them. A name that the table of labels does not have is written in words: `oldestSince` as `Oldest since`.
import { countText, durationText, sizeText, timeText } from '../../model/format.ts';

type EvidenceValue = string | number | boolean;

/** The labels of values whose name in words would not be understood. */
const LABELS: Readonly<Record<string, string>> = {
  clientId: 'Receiver',
  qos: 'QoS',
  publishedQos: 'QoS of the message',
  grantedQos: 'QoS of the subscription',
  filter: 'Topic filter',
  to: 'Rewritten to',
  group: 'Share group',
  member: 'Chosen member',
  members: 'Members of the group',
  mountpoint: 'Mount point',
  maxMqueueLen: 'Maximum length of the queue',
  waiting: 'Messages in the queue',
  position: 'Position in the queue',
  isBlocked: 'The client takes nothing',
  since: 'Since',
  until: 'Ended',
  dueAt: 'Due',
  address: 'Address',
  detail: 'Details'
};

/** The label of a value. */
export function evidenceLabel(name: string): string {
  if (LABELS[name] !== undefined) return LABELS[name];
  const words = name
    .replace(/(At|Ms|Sec|Bytes)$/, '')
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A value as text: times in the zone of the reader, sizes and durations with their units. Undefined: it is a name or a sentence. */
export function evidenceText(name: string, value: EvidenceValue): string | undefined {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (/(At|^since|Since|^until)$/.test(name)) return timeText(value, { ms: true });
  if (typeof value === 'string') return undefined;
  if (/Bytes$|Size$/.test(name)) return sizeText(value);
  if (/Ms$/.test(name)) return durationText(value);
  if (/Sec$/.test(name)) return durationText(value * 1000);
  return countText(value);
}
