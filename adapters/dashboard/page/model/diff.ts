// The difference of two values, line by line.

/** A line of one value, of the other, or of both. */
export interface DiffLine {
  readonly of: 'both' | 'first' | 'second';
  readonly text: string;
}

/** Maximum number of compared lines; further lines are shown as different. The table of lengths has the square of this number. */
const MAX_LINES = 600;

/** The lines of two texts: those of both, and between them those of the first and then those of the second only. */
export function diffOf(first: string, second: string): readonly DiffLine[] {
  const [a, b] = [first.split('\n'), second.split('\n')];
  if (a.length > MAX_LINES || b.length > MAX_LINES)
    return [
      ...a.map((text): DiffLine => ({ of: 'first', text })),
      ...b.map((text): DiffLine => ({ of: 'second', text }))
    ];
  const width = b.length + 1;
  // the length of the longest common part of the lines from i and j on
  const common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1] + 1
          : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      lines.push({ of: 'both', text: a[i++] });
      j++;
    } else if (common[(i + 1) * width + j] >= common[i * width + j + 1]) lines.push({ of: 'first', text: a[i++] });
    else lines.push({ of: 'second', text: b[j++] });
  }
  for (; i < a.length; i++) lines.push({ of: 'first', text: a[i] });
  for (; j < b.length; j++) lines.push({ of: 'second', text: b[j] });
  return lines;
}

/** Maximum number of fields of JSON that are searched for numbers. */
const MAX_FIELDS = 50;

/** The numbers in a value by their path: `''` for a value that is a number, `a.b.0` inside of JSON. */
export function numbersIn(text: string): Readonly<Record<string, number>> {
  const found: Record<string, number> = {};
  let count = 0;
  const look = (value: unknown, path: string, depth: number): void => {
    if (count >= MAX_FIELDS || depth > 8) return;
    if (typeof value === 'number' && Number.isFinite(value)) {
      found[path] = value;
      count++;
    } else if (typeof value === 'object' && value !== null)
      for (const [name, inner] of Object.entries(value).slice(0, MAX_FIELDS))
        look(inner, path === '' ? name : `${path}.${name}`, depth + 1);
  };
  try {
    look(JSON.parse(text), '', 0);
  } catch {
    // text that is not JSON has no numbers
  }
  return found;
}
