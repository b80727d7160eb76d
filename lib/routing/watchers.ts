import type { Message } from '../packets/message.ts';
import { FilterIndex } from '../topics/trie.ts';
import type { FollowedRouting } from './followers.ts';

/** Sees each message of its topics, before it is retained and delivered. */
export interface Watcher {
  /** Position of the watcher: those with lower numbers are called first. */
  readonly order: number;
  /** @param shared cache of the watchers of one message */
  watched(message: Message, shared: Shared): void;
}

/** A cache per message, shared by its watchers. */
export interface Shared {
  value: unknown;
  /** Follows the routing of the message; undefined: it is not followed. */
  following?: FollowedRouting | undefined;
}

/** The watchers of a topic that only events observe. */
export const NO_WATCHERS: readonly Watcher[] = [];

/** An observation without a watcher: its listeners are called by their event. */
interface Observation {
  readonly watcher: undefined;
}

/** Finds the watchers of a topic. The result is kept in the route, so topics without watchers cost nothing. */
export class Watchers {
  readonly #index = new FilterIndex<Watcher | Observation>();
  readonly #found: (Watcher | Observation)[] = [];

  /** Watch the topics that a filter matches. @returns a function that stops watching */
  add(filter: string, watcher?: Watcher): () => void {
    const own = watcher ?? { watcher: undefined };
    this.#index.add(filter, own);
    return () => void this.#index.delete(filter, own);
  }

  /** @returns the watchers of a topic in their order; undefined: its messages are not observed at all */
  of(topic: string): readonly Watcher[] | undefined {
    if (this.#index.size === 0) return undefined;
    const found = this.#found;
    if (this.#index.match(topic, found) === 0) return undefined;
    const watchers = new Set(found.filter((each): each is Watcher => 'order' in each));
    found.length = 0;
    return watchers.size === 0 ? NO_WATCHERS : [...watchers].sort((a, b) => a.order - b.order);
  }
}
