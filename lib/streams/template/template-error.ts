/** A syntax error in a template. It never leaves this folder. */
export class TemplateError extends Error {
  /** Offset in the text. */
  readonly at: number;

  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

/** The position of an offset in messages, as in the original: `template: sink:LINE:COLUMN`. */
export function placeOf(text: string, at: number): string {
  const before = text.slice(0, at);
  const line = before.split('\n').length;
  return `template: sink:${line}:${at - before.lastIndexOf('\n') - 1}`;
}
