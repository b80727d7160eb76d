import type { FieldRow } from '../parts/fields.tsx';
import { T } from '../texts.ts';

const C = T.client;

/** The duration of a ban in minutes; empty: it has no end. */
export const BAN_DURATION: FieldRow = {
  name: 'minutes',
  label: C.banFor,
  type: 'choice',
  choices: [
    ['60', C.anHour],
    ['1440', C.aDay],
    ['10080', C.aWeek],
    ['', C.forever]
  ]
};

export const BAN_REASON: FieldRow = { name: 'reason', label: C.banReason };

/** The body of a request that adds a ban. */
export function banOf(as: string, who: string, minutes: string, reason: string) {
  return {
    as,
    who,
    ...(reason !== '' && { reason }),
    ...(minutes !== '' && { until: Math.floor(Date.now() / 1000) + Number(minutes) * 60 })
  };
}
