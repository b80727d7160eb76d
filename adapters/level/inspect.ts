import type { FolderReport } from './inspection.ts';

/**
 * Examine a data folder without opening or changing it, also while a broker has it open.
 *
 * All files of a closed folder are read (about 300 MB/s), unless `verify` is false.
 * @param options `verify` (default true): verify the checksums of a closed folder
 * @throws Error from the file system if the folder or a file of it cannot be read
 */
export async function inspectFolder(
  folder: string,
  options: {
    /** Verify the checksums of a closed folder. Default: true. */
    readonly verify?: boolean;
  } = {}
): Promise<FolderReport> {
  // loaded here, because it shares modules with the broker, which embermq/level does not load
  const { inspect } = await import('./inspection.ts');
  return inspect(folder, options);
}
