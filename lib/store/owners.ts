import { StateError } from '../base/errors.ts';
import type { Store } from './store.ts';

/** Who has which store open: two that write to one would lose what they keep, and whoever closes it closes it under the other. */
const OWNERS = new WeakMap<Store, { readonly owner: object; readonly why: string }>();

/**
 * Have a store alone in this process, until `release`. Again by the same owner, nothing changes.
 * @param why what others are told: who has it, and what to do
 * @throws StateError STORE_IN_USE
 */
export function claim(store: Store, owner: object, why: string): void {
  const other = OWNERS.get(store);
  if (other !== undefined && other.owner !== owner) throw new StateError('STORE_IN_USE', `${store.name}: ${other.why}`);
  OWNERS.set(store, { owner, why });
}

export function isClaimedBy(store: Store, owner: object): boolean {
  return OWNERS.get(store)?.owner === owner;
}

export function release(store: Store): void {
  OWNERS.delete(store);
}
