/** Times from here on are milliseconds, smaller ones seconds. */
const MS_FROM = 1e11;

/** A time of a request in milliseconds since 1970. @param time in seconds, or from 1e11 on in milliseconds */
export function msOf(time: number): number {
  return time >= MS_FROM ? time : time * 1000;
}
