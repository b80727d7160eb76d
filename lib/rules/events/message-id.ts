import { randomBytes } from 'node:crypto';
import { type Message, originalOf } from '../../packets/message.ts';

/** The ids that have been requested. */
const ids = new WeakMap<Message, string>();

/** Distinguishes the ids of this process from those of others; created with the first id. */
let processPart: string | undefined;
let count = 0;
/** The last time, and its digits: most messages arrive in the same millisecond as others. */
let lastTimestamp = 0;
let timePart = '';

/**
 * The id of a message in the events of rules: hexadecimal digits of its time in microseconds, of the process and of a
 * number.
 *
 * The id is created when it is first requested, and stays the same while the message is in memory. A message that is
 * read from the store again, or that was published after its delay, counts as a new message.
 */
export function messageId(message: Message): string {
  const original = originalOf(message);
  let id = ids.get(original);
  if (id === undefined) ids.set(original, (id = newId(original.timestamp)));
  return id;
}

/** @param timestamp wall-clock time in milliseconds */
function newId(timestamp: number): string {
  processPart ??= randomBytes(4).toString('hex').toUpperCase();
  count = (count + 1) >>> 0;
  if (timestamp !== lastTimestamp || timePart === '') {
    lastTimestamp = timestamp;
    timePart = hex(Math.floor(timestamp) * 1000);
  }
  return `${timePart}${processPart}${hex(count).padStart(8, '0')}`;
}

function hex(number: number): string {
  return number.toString(16).toUpperCase();
}
