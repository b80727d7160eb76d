import { encodeJson, type Value } from '../../lib/index.ts';

/** JSON in the form of the original: HTML characters are escaped. Integers keep their digits. */
export function jsonText(value: unknown): string {
  return escaped(encodeJson(value as Value));
}

/** The same with line breaks, and two spaces per level. */
export function indentedJson(value: unknown): string {
  return escaped(JSON.stringify(value, undefined, 2));
}

function escaped(json: string): string {
  return json.replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  );
}

/** The answer to a change, with a line for each property that has no effect. */
export function withWarnings(text: string, warnings: readonly string[] = []): string {
  return [text, ...warnings].join('\n');
}

/** An object with its keys in alphabetical order, recursively. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, one]) => [name, sorted(one)]));
}

/** Check whether the `Accept` header prefers JSON to text. */
export function wantsJson(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const weightOf = (types: RegExp) =>
    Math.max(
      0,
      ...accept
        .split(',')
        .filter((one) => types.test(one))
        .map(quality)
    );
  const json = weightOf(/^\s*application\/(\w+\+)?json\s*(;|$)/i);
  return json > 0 && json >= weightOf(/^\s*text\/(plain|\*)\s*(;|$)/i);
}

function quality(range: string): number {
  const [, text] = /;\s*q=([\d.]+)/i.exec(range) ?? [];
  return text === undefined ? 1 : Number(text) || 0;
}
