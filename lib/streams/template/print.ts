import { printedFloat } from '../values/values.ts';
import { isList, isObject, sortedKeys, type TemplateValue, tooLong } from './template-value.ts';
import { formatTime } from './time-layout.ts';

/** Collects text up to a limit, so that nested lists cannot exhaust the memory. */
export class BoundedText {
  text = '';
  readonly most: number;

  constructor(most: number) {
    this.most = most;
  }

  /** @throws StreamFailure */
  add(text: string): void {
    this.text += text;
    if (this.text.length > this.most) throw tooLong(this.most);
  }
}

/**
 * A value as an action prints it: `<no value>` for missing values and null.
 * @throws StreamFailure if it is longer than `most`
 */
export function printValue(value: TemplateValue, most: number): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '<no value>' : printInner(value, most);
}

/** A value as the verb `%v` prints it: `<nil>` for null. @throws StreamFailure if it is longer than `most` */
export function printInner(value: TemplateValue, most: number): string {
  switch (typeof value) {
    case 'string':
      return value;
    case 'number':
      return printedFloat(value);
    case 'undefined':
      return '<nil>';
    case 'object':
      break;
    default:
      return String(value);
  }
  if (value === null) return '<nil>';
  if (value instanceof Date) return formatTime(value, 0, '2006-01-02 15:04:05.999999999 -0700 MST');
  const out = new BoundedText(most);
  writeInner(value, out);
  return out.text;
}

function writeInner(value: TemplateValue, out: BoundedText): void {
  if (isList(value)) {
    out.add('[');
    for (let i = 0; i < value.length; i++) {
      if (i > 0) out.add(' ');
      writeInner(value[i], out);
    }
    out.add(']');
  } else if (isObject(value)) {
    let separator = 'map[';
    for (const key of sortedKeys(value)) {
      out.add(`${separator}${key}:`);
      writeInner(value[key], out);
      separator = ' ';
    }
    out.add(separator === ' ' ? ']' : 'map[]');
  } else out.add(printInner(value, out.most));
}

/** Join values. @param print prints one of them @throws StreamFailure if there are more than `most` characters */
export function joined(
  values: readonly TemplateValue[],
  separator: string,
  print: (value: TemplateValue) => string,
  most: number
): string {
  const out = new BoundedText(most);
  for (let i = 0; i < values.length; i++) out.add(i > 0 ? separator + print(values[i]) : print(values[i]));
  return out.text;
}

/** Print values as `print` does: with a space between two values neither of which is a string. */
export function printAll(values: readonly TemplateValue[], most: number): string {
  const out = new BoundedText(most);
  for (let i = 0; i < values.length; i++) {
    if (i > 0 && typeof values[i] !== 'string' && typeof values[i - 1] !== 'string') out.add(' ');
    out.add(printInner(values[i], most));
  }
  return out.text;
}
