/**
 * Parse the JSON of a body.
 * @throws SyntaxError if it is not JSON; RangeError for a number beyond the range of floating point numbers, which
 * `JSON.parse` makes infinite
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  // not recursive: a deeply nested body would overflow the stack
  const left: object[] = [{ value }];
  for (let one = left.pop(); one !== undefined; one = left.pop())
    for (const [key, inner] of Object.entries(one)) {
      if (inner === Infinity || inner === -Infinity) {
        const where = Array.isArray(one) ? `entry ${key}` : `"${key}"`;
        throw new RangeError(`the number of ${where} is too large: the greatest float is about 1.8e308`);
      }
      if (typeof inner === 'object' && inner !== null) left.push(inner);
    }
  return value;
}
