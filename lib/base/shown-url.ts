/**
 * A URL for messages and logs: user name, password, the values of its query and its fragment are masked, because they may be secrets.
 * @param text also one that is not valid
 */
export function shownUrl(text: string): string {
  const end = text.search(/[?#]/);
  const [place, rest] = end < 0 ? [text, ''] : [text.slice(0, end), text.slice(end)];
  // a password with "?" or "#" is not percent-encoded: then the whole rest belongs to the login
  if (/^[^/]*\/\/[^/]*:[^/]*\D[^/]*$/.test(place) && /^[?#][^/?#]*@/.test(rest))
    return `${place.replace(/\/\/.*$/, '//***@')}***`;
  const masked = rest.replace(/([?&;#])([^=&;#?]*)(=?)[^&;#]*/g, (_, mark, name, sign) =>
    sign === '' ? `${mark}${name === '' ? '' : '***'}` : `${mark}${name}=***`
  );
  return place.replace(/\/\/.*@/, '//***@') + masked;
}
