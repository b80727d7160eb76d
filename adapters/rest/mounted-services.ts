import { InvalidInput } from '../../lib/index.ts';
import type { Answer, Call, Service } from './call.ts';

/** Where a request goes, as the server tells it. */
interface Target {
  /** The URL, which a router of the host may have cut. */
  readonly url: string;
  /** The URL before it was cut; undefined: it was not. */
  readonly originalUrl?: string | undefined;
  /** Instead of it, the path that was cut off. */
  readonly base?: string | undefined;
}

/** Where a call goes. */
export type CallPlace = Pick<Call, 'path' | 'mountedAt' | 'query'>;

/** Makes a call of a place. */
type MakeCall = (place: CallPlace) => Call;

interface Place {
  readonly prefix: string;
  readonly service: Service;
}

/** Services that share a server. A path belongs to the longest prefix; what its service does not answer goes to the next one. */
export class MountedServices {
  /** The longest prefix first. */
  readonly #places: readonly Place[];

  /** @throws InvalidInput OPTION_INVALID if two services have the same prefix */
  constructor(services: readonly Service[]) {
    const places: Place[] = [];
    for (const service of services)
      for (const prefix of new Set(service.prefixes)) {
        if (places.some((place) => place.prefix === prefix))
          throw new InvalidInput(
            'OPTION_INVALID',
            'prefix',
            'a prefix that no other interface on this server has',
            prefix
          );
        places.push({ prefix, service });
      }
    this.#places = places.sort((a, b) => b.prefix.length - a.prefix.length);
  }

  /** The prefixes, the longest first. */
  get prefixes(): readonly string[] {
    return this.#places.map(({ prefix }) => prefix);
  }

  /** The methods that are answered for a URL, in order. */
  methods(url: string): string[] {
    const { path } = partsOf(url);
    const methods = this.#places.flatMap(({ prefix, service }) => {
      const rest = restBehind(prefix, path, '');
      return rest === undefined ? [] : service.methods(rest);
    });
    return [...new Set(methods)].sort();
  }

  /**
   * Answer a request. It resolves to undefined if no service does.
   * @returns undefined if no prefix matches
   */
  answer({ url, originalUrl, base: cutOff = '' }: Target, makeCall: MakeCall): Promise<Answer | undefined> | undefined {
    const { path, query } = partsOf(url);
    const base = originalUrl === undefined || originalUrl === url ? cutOff : baseOf(originalUrl, path);
    const found: { service: Service; place: CallPlace }[] = [];
    for (const { prefix, service } of this.#places) {
      const rest = restBehind(prefix, path, base);
      if (rest === undefined) continue;
      const mountedAt = base === '' ? prefix : (base + path).slice(0, -rest.length || undefined);
      found.push({ service, place: { path: rest, mountedAt, query } });
    }
    if (found.length === 0) return undefined;
    if (found.length === 1) return found[0].service.answer(makeCall(found[0].place));
    return askInTurn(found, makeCall);
  }
}

function partsOf(url: string): { readonly path: string; readonly query: string } {
  const mark = url.indexOf('?');
  return mark < 0 ? { path: pathOf(url), query: '' } : { path: pathOf(url.slice(0, mark)), query: url.slice(mark + 1) };
}

async function askInTurn(
  found: readonly { readonly service: Service; readonly place: CallPlace }[],
  makeCall: MakeCall
): Promise<Answer | undefined> {
  for (const { service, place } of found) {
    const answer = await service.answer(makeCall(place));
    if (answer !== undefined) return answer;
  }
  return undefined;
}

/** The path of a request target: it may be a whole URL [RFC 9112 3.2.2]. */
function pathOf(target: string): string {
  return target.startsWith('/') ? target : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '');
}

/** What a router of the host has cut off the path; empty if it has rewritten the path instead. */
function baseOf(originalUrl: string, path: string): string {
  const mark = originalUrl.indexOf('?');
  const original = pathOf(mark < 0 ? originalUrl : originalUrl.slice(0, mark));
  if (original.endsWith(path)) return original.slice(0, original.length - path.length);
  return path === '/' ? original : '';
}

/**
 * The path behind a prefix. The prefix stands in the path itself, because the service is mounted below a path of the host; or the router
 * of the host has cut it off, wholly or in part.
 * @returns undefined if it is not there
 */
function restBehind(prefix: string, path: string, base: string): string | undefined {
  if (path.startsWith(prefix) && isBoundary(path, prefix.length)) return path.slice(prefix.length);
  if (base === '') return undefined;
  const whole = base + path;
  for (
    let at = whole.lastIndexOf(prefix, base.length - 1);
    at >= 0;
    at = at === 0 ? -1 : whole.lastIndexOf(prefix, at - 1)
  )
    if (isBoundary(whole, at + prefix.length)) return whole.slice(at + prefix.length);
  return undefined;
}

function isBoundary(path: string, at: number): boolean {
  return at === path.length || path[at] === '/';
}
