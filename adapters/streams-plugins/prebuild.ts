import { BrokerError, InvalidInput } from '../../lib/index.ts';
import type { PluginType } from './api.ts';
import { type DownloadLimits, fetchBytes, HttpStatusError } from './download.ts';
import { messageOf } from './errors.ts';

/** The location of plugin offers [stream rules 11.4]. */
interface PrebuildPlace {
  readonly hosts: readonly string[];
  readonly version: string;
  readonly os: string;
}

const MAX_PAGE_BYTES = 1024 * 1024;
const PAGE_TIMEOUT_MS = 30_000;

/** The names of architectures in the file names of offers, if they differ from those of Node. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', ppc64: 'ppc64le' };

/**
 * Read the lists of plugins that hosts offer for this machine. Certificates of https are verified.
 * @returns addresses by name; of equal names, the first host wins
 * @throws InvalidInput PLUGIN_HOSTS_MISSING; BrokerError PLUGIN_HOST_FAILED
 */
export async function offers(
  type: PluginType,
  { hosts, version, os }: PrebuildPlace,
  limits: Pick<DownloadLimits, 'clock' | 'closing' | 'maxRedirects'>
): Promise<Record<string, string>> {
  if (hosts.length === 0) {
    const text = 'Invalid configruation for plugin host in kuiper.yaml.'; // spelled as in the original
    throw new InvalidInput('PLUGIN_HOSTS_MISSING', 'pluginHosts', 'the URL of a server', undefined, text);
  }
  const found = new Map<string, string>();
  for (const host of hosts) {
    const page = `${host}/kuiper-plugins/${version}/${os}/${type}`;
    const html = await readPage(page, limits);
    for (const [name, file] of offersOf(html)) if (!found.has(name)) found.set(name, `${page}/${file}`);
  }
  return Object.fromEntries(found);
}

async function readPage(
  page: string,
  limits: Pick<DownloadLimits, 'clock' | 'closing' | 'maxRedirects'>
): Promise<string> {
  try {
    const bytes = await fetchBytes(new URL(page), { ...limits, maxBytes: MAX_PAGE_BYTES, timeoutMs: PAGE_TIMEOUT_MS });
    return bytes.toString();
  } catch (error) {
    const why =
      error instanceof HttpStatusError
        ? `Cannot fetch plugin list from ${page}, with status error: ${error.status}`
        : `Cannot fetch plugin list from ${page}: ${messageOf(error)}`;
    throw new BrokerError('PLUGIN_HOST_FAILED', why, { cause: error });
  }
}

/** The archives for this machine that a page links to: `random_amd64.zip`, by name. */
function offersOf(html: string): [name: string, file: string][] {
  const ending = `_${ARCHITECTURES[process.arch] ?? process.arch}.zip`;
  const found: [string, string][] = [];
  for (const [, double, single] of html.matchAll(/<a\s[^<>]{0,1000}?href\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)')/gi)) {
    const file = (double ?? single).split('/').at(-1) as string;
    if (file.endsWith(ending)) found.push([file.slice(0, file.lastIndexOf('_')), file]);
  }
  return found;
}
