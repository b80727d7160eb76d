import { readdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Entries of a profile that are not functions: waiting, unknown time, and the profiler. */
const NOT_WORK = ['(root)', '(idle)', '(program)', 'dispatch'];

/** Rename the newest profile in a folder after its row. @returns its new path; undefined if there is none */
export function nameProfile(folder: string, name: string): string | undefined {
  const file = readdirSync(folder).find((entry) => entry.startsWith('CPU.') && entry.endsWith('.cpuprofile'));
  if (file === undefined) return undefined;
  const path = join(folder, `${name.replaceAll(/[^A-Za-z0-9]+/g, '-')}.cpuprofile`);
  renameSync(join(folder, file), path);
  return path;
}

/** The functions of a profile by self time, as a Markdown table. */
export function profileTable(path: string, lines = 12): string {
  const profile = JSON.parse(readFileSync(path, 'utf8')) as CpuProfile;
  const nodes = new Map(profile.nodes.map((node) => [node.id, node.callFrame]));
  const own = new Map<string, number>();
  let busyUs = 0;
  profile.samples.forEach((id, at) => {
    const { functionName, url, lineNumber } = nodes.get(id) ?? { functionName: '', url: '', lineNumber: 0 };
    if (NOT_WORK.includes(functionName) && url === '') return;
    const place = url === '' ? 'native' : `${url.split('/').slice(-2).join('/')}:${lineNumber + 1}`;
    const name = `${functionName || 'anonymous'} | ${place}`;
    own.set(name, (own.get(name) ?? 0) + profile.timeDeltas[at]);
    busyUs += profile.timeDeltas[at];
  });
  const top = [...own].sort(([, a], [, b]) => b - a).slice(0, lines);
  return [
    '| share | function | where |',
    '| --- | --- | --- |',
    ...top.map(([name, us]) => `| ${((us / busyUs) * 100).toFixed(1)} % | ${name} |`)
  ].join('\n');
}
