import { StateError } from '../base/errors.ts';
import type { Store } from './store.ts';

/** The owners of open stores. Two owners of one store would overwrite and close each other's records. */
const OWNERS = new WeakMap<Store, { readonly owner: object; readonly why: string }>();

/**
 * Reserve a store for one owner in this process, until `release`. The same owner may claim it again.
 * @param why the end of the error message for others: the user of the store, and the remedy
 * @throws StateError STORE_IN_USE
 */
export function claim(store: Store, owner: object, why: string): void {
  const other = OWNERS.get(store);
  if (other !== undefined && other.owner !== owner) throw new StateError('STORE_IN_USE', `${store.name}: ${other.why}`);
  OWNERS.set(store, { owner, why });
}

/** Tell whether an owner has claimed a store. */
export function isClaimedBy(store: Store, owner: object): boolean {
  return OWNERS.get(store)?.owner === owner;
}

/** Release a store for other owners. */
export function release(store: Store): void {
  OWNERS.delete(store);
}
