import { InvalidInput } from '../../lib/index.ts';
import type { Answer, Call, Service } from './call.ts';

/** The target of a request, as reported by the server. */
interface Target {
  /** The URL, which a router of the host may have shortened. */
  readonly url: string;
  /** The URL before it was shortened; undefined: unchanged. */
  readonly originalUrl?: string | undefined;
  /** The removed path, as an alternative to `originalUrl`. */
  readonly base?: string | undefined;
}

/** The target of a call. */
export type CallPlace = Pick<Call, 'path' | 'mountedAt' | 'query'>;

/** Creates a call for a target. */
type MakeCall = (place: CallPlace) => Call;

interface Place {
  readonly prefix: string;
  readonly service: Service;
}

/** Services that share a server. A path belongs to the longest prefix; unanswered paths go to the next one. */
export class MountedServices {
  /** Sorted by length, the longest prefix first. */
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
   * Answer a request. Resolves to undefined if no service answers.
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

/** The path that a router of the host has removed; empty if it has rewritten the path instead. */
function baseOf(originalUrl: string, path: string): string {
  const mark = originalUrl.indexOf('?');
  const original = pathOf(mark < 0 ? originalUrl : originalUrl.slice(0, mark));
  if (original.endsWith(path)) return original.slice(0, original.length - path.length);
  return path === '/' ? original : '';
}

/**
 * The path behind a prefix. The prefix is part of the path if the service is mounted below a path of the host, or it
 * was removed in whole or in part by the router of the host.
 * @returns undefined if the path has no such prefix
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
