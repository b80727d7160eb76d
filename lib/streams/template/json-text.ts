import { BoundedText } from './print.ts';
import { isList, isObject, sortedKeys, type TemplateObject, type TemplateValue } from './template-value.ts';

/** The style in which JSON is written. */
interface JsonStyle {
  /** True to escape `<`, `>`, `&` as `\u003c`, `\u003e`, `\u0026`. */
  readonly escapesHtml: boolean;
  /** Indentation of each level; if empty, the JSON is on one line. */
  readonly indent: string;
}

/**
 * Encode a value as JSON, with sorted keys.
 * @param most maximum number of characters
 * @throws StreamFailure if there are more
 */
export function jsonText(value: TemplateValue, style: JsonStyle, most: number): string {
  const out = new BoundedText(most);
  write(value, style, '', out);
  return out.text;
}

function write(value: TemplateValue, style: JsonStyle, margin: string, out: BoundedText): void {
  if (isList(value)) writeList(value, style, margin, out);
  else if (isObject(value)) writeObject(value, style, margin, out);
  else out.add(scalar(value, style));
}

function writeList(list: readonly TemplateValue[], style: JsonStyle, margin: string, out: BoundedText): void {
  const [inner, line] = layout(style, margin);
  let separator = '[';
  for (const each of list) {
    out.add(`${separator}${line}${inner}`);
    write(each, style, inner, out);
    separator = ',';
  }
  out.add(separator === '[' ? '[]' : `${line}${margin}]`);
}

function writeObject(object: TemplateObject, style: JsonStyle, margin: string, out: BoundedText): void {
  const [inner, line] = layout(style, margin);
  let separator = '{';
  for (const key of sortedKeys(object)) {
    out.add(`${separator}${line}${inner}${scalar(key, style)}:${line === '' ? '' : ' '}`);
    write(object[key], style, inner, out);
    separator = ',';
  }
  out.add(separator === '{' ? '{}' : `${line}${margin}}`);
}

/** The indentation of the next level, and the line break in front of it. */
function layout({ indent }: JsonStyle, margin: string): [inner: string, line: string] {
  return indent === '' ? ['', ''] : [margin + indent, '\n'];
}

function scalar(value: TemplateValue, { escapesHtml }: JsonStyle): string {
  if (typeof value === 'bigint') return String(value);
  const text = JSON.stringify(value) ?? 'null';
  if (typeof value !== 'string') return text;
  return text.replace(escapesHtml ? /[<>&\u2028\u2029]/g : /[\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}
