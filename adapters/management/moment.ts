/** Times of at least this value are milliseconds; smaller ones are seconds. */
const MS_FROM = 1e11;

/**
 * Convert a time of a request to milliseconds since 1970.
 * @param time in seconds, or from 1e11 on in milliseconds
 */
export function msOf(time: number): number {
  return time >= MS_FROM ? time : time * 1000;
}
