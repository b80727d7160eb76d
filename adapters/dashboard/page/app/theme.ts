import { signal } from '@preact/signals';

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEY = 'embermq.theme';

export const theme = signal<Theme>(stored());

function stored(): Theme {
  try {
    return THEMES.find((name) => name === localStorage.getItem(KEY)) ?? 'system';
  } catch {
    return 'system'; // storage is not allowed
  }
}

/** Apply the theme that was chosen before. */
export function applyTheme(chosen = theme.value): void {
  if (chosen === 'system') document.documentElement.removeAttribute('data-theme');
  else document.documentElement.dataset.theme = chosen;
}

/** Choose a theme. */
export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  applyTheme(chosen);
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // storage is not allowed: the choice lasts until the page is closed
  }
}
