import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

/** Run a function once, right before the next file or folder is opened with `open` of node:fs/promises. */
export function beforeOpen(run: () => Promise<void>): Disposable {
  const { open } = files;
  const restore = () => {
    files.open = open;
    syncBuiltinESMExports();
  };
  files.open = async (...given) => {
    restore();
    await run();
    return open(...given);
  };
  syncBuiltinESMExports();
  return { [Symbol.dispose]: restore };
}
