/** Stands for a secret that is shown. In a change it means the present one. */
export const HIDDEN = '******';
