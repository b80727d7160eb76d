/** Replaces a secret in output. In a change it means the current one. */
export const HIDDEN = '******';
