import { show } from '../../base/errors.ts';
import { StreamFailure } from '../values/values.ts';
import { Run } from './compile.ts';

/** A URL up to the end of its host. */
const HOST = /^\s*https?:\/\/[^/?#\\\s]+[/?#\\]/i;

/**
 * The execution of a template of a URL. Values come from clients, so they are percent-encoded: they cannot add a
 * parameter, a fragment or a segment "..", and cannot change the host. A slash stays in the path, because topics are
 * values. Values before any text of the template are inserted unchanged, as the template leaves the URL to the data.
 */
export class UrlRun extends Run {
  #hasText = false;
  #hasHost = false;
  #hasQuery = false;

  override write(text: string): void {
    this.#hasText ||= text.trim() !== '';
    this.#add(text);
  }

  override insert(text: string): void {
    if (!this.#hasText) this.#add(text);
    else if (!this.#hasHost) this.#add(hostPart(text));
    else {
      const encoded = encodeURIComponent(Buffer.from(text).toString()); // without lone surrogates
      this.#add(this.#hasQuery ? encoded : encoded.replaceAll('%2F', '/'));
    }
  }

  /** Check the result. @throws StreamFailure for segments that would be resolved */
  override end(): void {
    if (!this.#hasText) return;
    const [path] = this.out.replace(/[\t\n\r]/g, '').split(/[?#]/, 1);
    if (/[/\\](\.|%2e){1,2}([/\\]|[\0-\x20]*$)/i.test(path))
      throw new StreamFailure(`the URL ${show(this.out)} has a segment "." or ".."`);
  }

  #add(text: string): void {
    super.write(text);
    this.#hasHost ||= HOST.test(this.out);
    this.#hasQuery ||= /[?#]/.test(text);
  }
}

/** @throws StreamFailure */
function hostPart(text: string): string {
  if (/^[\w.:[\]-]*$/.test(text)) return text;
  throw new StreamFailure(
    `${show(text)} is in the place of the host of a URL, where only letters, digits, ".", "-", "_", ":" and brackets are possible; for a path, write a slash before the placeholder`
  );
}
