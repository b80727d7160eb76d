import type { PluginType } from './api.ts';
import { archiveError } from './errors.ts';

/** The roles of the files of an archive [stream rules 11.1]. */
interface ArchiveContent {
  /** File name of the library or module. */
  readonly library: string;
  /** The version in the file name, without a leading `v`; '' if it has none. */
  readonly version: string;
  readonly hasScript: boolean;
}

const LIBRARY_KINDS = 'so|js|mjs|cjs';

/** A library at the top of an archive: `Random@v1.0.0.so`, `random.mjs`. */
const LIBRARY = new RegExp(`^([^/@]+)(?:@([^/]*))?\\.(?:${LIBRARY_KINDS})$`);

/** The plugin of a library, by its file name; undefined: not the name of a library. */
export function libraryName(file: string): { readonly name: string; readonly version: string } | undefined {
  const [, name, version = ''] = LIBRARY.exec(file) ?? [];
  return name === undefined ? undefined : { name: lowerFirst(name), version: version.replace(/^v/, '') };
}

/**
 * Find the files of a plugin among those of an archive, whose names must match that of the plugin.
 * @throws BrokerError PLUGIN_ARCHIVE_INVALID
 */
export function contentOf(type: PluginType, name: string, paths: readonly string[]): ArchiveContent {
  const isNative = (path: string) => path.endsWith('.so');
  const named = paths.filter((path) => libraryName(path)?.name === name);
  // modules beside a library of the same name belong to it
  const found = named.some(isNative) ? named.filter(isNative) : named;
  const others = paths.filter((path) => libraryName(path) !== undefined);
  const missing = 'so file or conf file is missing';
  if (found.length === 0) {
    const has = others.length === 0 ? '' : `, and ${JSON.stringify(others[0])} does not match the name`;
    throw archiveError(
      `${missing}: a plugin "${name}" needs "${upperFirst(name)}@vVERSION.so" (or .js, .mjs, .cjs)${has}`
    );
  }
  if (found.length > 1) throw archiveError(`there are several libraries: ${found.join(', ')}`);
  const otherNative = others.find((path) => isNative(path) && !named.includes(path));
  if (otherNative !== undefined)
    throw archiveError(`the library "${otherNative}" does not match the name "${name}" of the plugin`);
  if (type === 'sources') checkYaml(name, paths, missing);
  const [library] = found;
  return { library, version: libraryName(library)?.version ?? '', hasScript: paths.includes('install.sh') };
}

function checkYaml(name: string, paths: readonly string[], missing: string): void {
  if (paths.includes(`${name}.yaml`)) return;
  const other = paths.find((path) => /^[^/]+\.ya?ml$/.test(path));
  const has = other === undefined ? '' : `, and "${other}" does not match the name`;
  throw archiveError(`${missing}: a source "${name}" needs "${name}.yaml"${has}`);
}

/** The name under which a library exports something [stream rules 11.1]. */
export function upperFirst(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

function lowerFirst(name: string): string {
  return name.charAt(0).toLowerCase() + name.slice(1);
}
