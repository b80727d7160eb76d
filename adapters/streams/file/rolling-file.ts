import type { FileHandle } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';

/** The format of a file. */
interface FileForm {
  readonly fileType: 'lines' | 'json' | 'csv';
  readonly isCompressed: boolean;
}

/** A file to which outputs are appended. A failed write leaves nothing behind. */
export class RollingFile {
  readonly openedAt: number;
  /** Number of outputs written since it was opened. */
  count = 0;
  #columns: readonly string[] | undefined;
  readonly #form: FileForm;
  readonly #file: FileHandle;
  /** Number of bytes of complete writes. */
  #size: number;
  /** True if a JSON file already has elements. */
  #hasElements = false;

  private constructor(file: FileHandle, size: number, form: FileForm, openedAt: number) {
    this.#file = file;
    this.#size = size;
    this.#form = form;
    this.openedAt = openedAt;
  }

  /**
   * Continue a file, which may be empty.
   * @param handle closed with the file, or if this method fails
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

  /** The columns of a CSV file: those of its first row. */
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
      await this.#file.truncate(this.#size).catch(() => undefined); // the disk may be unavailable
      throw error;
    }
  }

  /** Continue a completed list: remove its closing bracket. */
  async #continueList(): Promise<void> {
    const { buffer } = await this.#file.read(Buffer.alloc(1), 0, 1, this.#size - 1);
    if (buffer.toString() === ']') {
      await this.#file.truncate(--this.#size);
    }
    this.#hasElements = this.#size > 1;
  }
}
