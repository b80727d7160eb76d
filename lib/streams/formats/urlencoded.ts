import { bufferOf, type FormatType } from '../format.ts';
import { StreamFailure } from '../values/values.ts';
import { jsonText } from './json-text.ts';

/** Forms: `a=1&b=2`. A name that occurs several times becomes an array; all values are strings. */
export const URLENCODED_FORMAT: FormatType = {
  name: 'urlencoded',
  about: 'A form such as a=1&b=2; its values are strings.',
  make: () => ({
    name: 'urlencoded',
    decode(payload) {
      const row = new Map<string, string | string[]>();
      for (const [name, value] of new URLSearchParams(bufferOf(payload).toString())) {
        const known = row.get(name);
        if (Array.isArray(known)) known.push(value);
        else row.set(name, known === undefined ? value : [known, value]);
      }
      return Object.fromEntries(row);
    },
    encode(value) {
      if (typeof value === 'string') return Buffer.from(value);
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        throw new StreamFailure('format "urlencoded" needs single rows: set "sendSingle" to true');
      const form = new URLSearchParams();
      for (const [name, each] of Object.entries(value)) for (const text of textsOf(each)) form.append(name, text);
      return Buffer.from(form.toString());
    }
  })
};

function textsOf(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value;
  return [typeof value === 'string' ? value : jsonText(value)];
}
