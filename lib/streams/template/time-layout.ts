const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October'],
  ...['November', 'December']
];
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** The elements of a Go layout, which represent the time Mon Jan 2 15:04:05 MST 2006. */
const PARTS =
  /January|Jan|Monday|Mon|MST|2006|Z07:?00|-07:?00|-07|[.,]0+(?!\d)|[.,]9+(?!\d)|_2|002|0[1-6]|15|PM|pm|[1-5](?!\d)/g;

function two(number: number): string {
  return String(number).padStart(2, '0');
}

/**
 * Format a time by a Go layout, such as `2006-01-02 15:04:05`.
 * @param offsetMinutes offset of the zone from UTC
 */
export function formatTime(time: Date, offsetMinutes: number, layout: string): string {
  const local = new Date(time.getTime() + offsetMinutes * 60_000);
  const nanoseconds = `${String(local.getUTCMilliseconds()).padStart(3, '0')}000000`;
  const hour = local.getUTCHours();
  const month = local.getUTCMonth();
  const day = local.getUTCDate();
  return layout.replace(PARTS, (part) => {
    switch (part) {
      case 'January':
        return MONTHS[month];
      case 'Jan':
        return MONTHS[month].slice(0, 3);
      case 'Monday':
        return DAYS[local.getUTCDay()];
      case 'Mon':
        return DAYS[local.getUTCDay()].slice(0, 3);
      case 'MST':
        return offsetMinutes === 0 ? 'UTC' : zone(offsetMinutes, offsetMinutes % 60 === 0 ? '' : '00', '');
      case '2006':
        return String(local.getUTCFullYear()).padStart(4, '0');
      case '06':
        return two(local.getUTCFullYear() % 100);
      case '01':
        return two(month + 1);
      case '1':
        return String(month + 1);
      case '02':
        return two(day);
      case '_2':
        return String(day).padStart(2);
      case '2':
        return String(day);
      case '002':
        return String(Math.floor((local.getTime() - Date.UTC(local.getUTCFullYear(), 0, 1)) / 86_400_000) + 1).padStart(
          3,
          '0'
        );
      case '15':
        return two(hour);
      case '03':
        return two(hour % 12 || 12);
      case '3':
        return String(hour % 12 || 12);
      case '04':
        return two(local.getUTCMinutes());
      case '4':
        return String(local.getUTCMinutes());
      case '05':
        return two(local.getUTCSeconds());
      case '5':
        return String(local.getUTCSeconds());
      case 'PM':
      case 'pm': {
        const half = hour < 12 ? 'AM' : 'PM';
        return part === 'PM' ? half : half.toLowerCase();
      }
    }
    if (part.startsWith('Z')) return offsetMinutes === 0 ? 'Z' : zone(offsetMinutes, '00', part.slice(3, -2));
    if (part.startsWith('-')) return zone(offsetMinutes, part.length > 3 ? '00' : '', part.slice(3, -2));
    const digits = nanoseconds.slice(0, part.length - 1).padEnd(part.length - 1, '0');
    if (part[1] === '0') return part[0] + digits;
    const short = digits.replace(/0+$/, '');
    return short === '' ? '' : part[0] + short;
  });
}

/** @param minutes `00`: with minutes; empty: without */
function zone(offsetMinutes: number, minutes: string, separator: string): string {
  const size = Math.abs(offsetMinutes);
  const hours = `${offsetMinutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}`;
  return minutes === '' ? hours : `${hours}${separator}${two(size % 60)}`;
}
