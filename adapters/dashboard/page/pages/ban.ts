import { post } from '../app/requests.ts';
import { session } from '../app/session.ts';
import { flagWords } from '../model/copy.ts';
import type { CopyAs } from '../parts/copy.tsx';
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

/** A ban that a person wants to make. */
interface WantedBan {
  readonly as: string;
  readonly who: string;
  /** Empty: always. */
  readonly minutes: string;
  readonly reason: string;
}

/** The body of a request that adds a ban and ends the connections of its clients. */
function bodyOf({ as, who, minutes, reason }: WantedBan) {
  return {
    as,
    who,
    by: session.value?.id,
    ...(reason !== '' && { reason }),
    until: minutes === '' ? ('undefined' as const) : Math.floor(Date.now() / 1000) + Number(minutes) * 60,
    disconnect: true
  };
}

/** Ban clients, and end their connections. @returns the notice about it */
export async function ban(wanted: WantedBan): Promise<string> {
  const { disconnected = 0 } = await post('/banned', { body: bodyOf(wanted) });
  return C.banned(disconnected);
}

/** The properties of `CopyAs` for a ban. */
export function copyOfBan(wanted: WantedBan): Parameters<typeof CopyAs>[0] {
  const { as, who, minutes, reason } = wanted;
  const words = flagWords({ as, seconds: minutes === '' ? '' : `${Number(minutes) * 60}`, reason });
  // ctl has no ban without an end
  const ctl = minutes === '' ? undefined : ['ban', 'add', ...words, '--disconnect', '--', who];
  return { request: { method: 'POST', path: '/banned', body: bodyOf(wanted) }, ctl };
}
