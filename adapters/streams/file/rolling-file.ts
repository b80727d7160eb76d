import type { FileHandle } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';

/** How a file is written. */
interface FileForm {
  readonly fileType: 'lines' | 'json' | 'csv';
  readonly isCompressed: boolean;
}

/** A file to which outputs are appended. A write that fails leaves no part of it behind. */
export class RollingFile {
  readonly openedAt: number;
  /** Outputs that were written since it was opened. */
  count = 0;
  #columns: readonly string[] | undefined;
  readonly #form: FileForm;
  readonly #file: FileHandle;
  /** Bytes of the complete writes. */
  #size: number;
  /** A json file has elements already. */
  #hasElements = false;

  private constructor(file: FileHandle, size: number, form: FileForm, openedAt: number) {
    this.#file = file;
    this.#size = size;
    this.#form = form;
    this.openedAt = openedAt;
  }

  /**
   * Continue a file, which may be empty.
   * @param handle is closed with the file, and if this fails
   * @throws the error of the file system
   */
  static async from(handle: FileHandle, form: FileForm, openedAt: number): Promise<RollingFile> {
    try {
      const { size } = await handle.stat();
      const file = new RollingFile(handle, size, form, openedAt);
      if (form.fileType === 'json' && size > 0) await file.#continueList();
      return file;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** The columns of a csv file: those of its first row. */
  columnsFrom(first: () => readonly string[]): readonly string[] {
    this.#columns ??= first();
    return this.#columns;
  }

  get size(): number {
    return this.#size;
  }

  /** Append lines, or the elements of a JSON list, separated by commas. @throws the error of the file system, such as ENOSPC */
  async append(text: string): Promise<void> {
    const isJson = this.#form.fileType === 'json';
    const separator = !isJson ? '' : this.#hasElements ? ',' : this.#size === 0 ? '[' : '';
    await this.#write(separator + text);
    if (isJson) this.#hasElements = true;
    this.count++;
  }

  /** Complete the file, and close it. */
  async close(): Promise<void> {
    try {
      if (this.#form.fileType === 'json') await this.#write(this.#size === 0 ? '[]' : ']');
    } finally {
      await this.#file.close();
    }
  }

  async #write(text: string): Promise<void> {
    const bytes = this.#form.isCompressed ? gzipSync(text) : Buffer.from(text);
    try {
      await this.#file.appendFile(bytes);
      this.#size += bytes.length;
    } catch (error) {
      await this.#file.truncate(this.#size).catch(() => undefined); // the disk may be gone
      throw error;
    }
  }

  /** Go on with a list that was completed: without its last bracket. */
  async #continueList(): Promise<void> {
    const { buffer } = await this.#file.read(Buffer.alloc(1), 0, 1, this.#size - 1);
    if (buffer.toString() === ']') {
      await this.#file.truncate(--this.#size);
    }
    this.#hasElements = this.#size > 1;
  }
}
