import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { buildSync } from 'esbuild';

const root = join(import.meta.dirname, '../..');

/**
 * Join the sources of programs into few files, for tests that start them several times: a process that compiles the sources takes a second
 * longer to start. The files are removed when this process ends.
 * @param programs paths below the root
 * @returns the path of each joined program, in the same order
 */
export function joinSources(programs: readonly string[]): string[] {
  const { dependencies, devDependencies, peerDependencies } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8')
  );
  const outdir = mkdtempSync(join(root, 'dist-test-'));
  process.on('exit', () => rmSync(outdir, { recursive: true, force: true }));
  buildSync({
    entryPoints: programs.map((program) => join(root, program)),
    outdir,
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: 'inline',
    conditions: ['embermq-source'],
    external: Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies })
  });
  return programs.map((program) => join(outdir, basename(program).replace(/\.ts$/, '.js')));
}
