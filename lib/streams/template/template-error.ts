/** A template cannot be read. It never leaves this folder. */
export class TemplateError extends Error {
  /** Offset in the text. */
  readonly at: number;

  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

/** The place of an offset in messages, as the original has it: `template: sink:LINE:COLUMN`. */
export function placeOf(text: string, at: number): string {
  const before = text.slice(0, at);
  const line = before.split('\n').length;
  return `template: sink:${line}:${at - before.lastIndexOf('\n') - 1}`;
}
