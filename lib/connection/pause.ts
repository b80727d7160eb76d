/**
 * Why reading is paused; the bits add up. `hook`: a packet waits for a hook, or for the store, and those behind it are not read before.
 * `turn`: the connection has used its share of a turn, and waits until it is served again.
 */
export const Pause = { hook: 1, answers: 2, rate: 4, store: 8, commit: 16, turn: 32 } as const;
