import { signal } from '@preact/signals';

/** The broker waits for a person to answer its challenge. Apart from the client, which is loaded when its view is first opened. */
export const isChallenged = signal(false);
