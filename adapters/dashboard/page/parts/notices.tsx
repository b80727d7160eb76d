import { signal } from '@preact/signals';
import { T } from '../texts.ts';
import { Icon } from './icons.tsx';
import { described } from './problem.tsx';

interface Notice {
  readonly id: number;
  readonly text: string;
  readonly isProblem: boolean;
}

/** Maximum number of notices; older ones are removed. */
const MAX_NOTICES = 4;
const SHOWN_MS = 6_000;
const notices = signal<readonly Notice[]>([]);
let last = 0;

/** Show for some seconds that an action has succeeded. Problems are shown until they are closed. */
export function notify(text: string): void {
  const id = add(text, false);
  setTimeout(() => close(id), SHOWN_MS);
}

/** Show that an action has failed, and why. */
export function notifyProblem(error: unknown): void {
  const { message, advice } = described(error);
  add(advice === undefined ? message : `${message} ${advice}`, true);
}

function add(text: string, isProblem: boolean): number {
  const id = ++last;
  const others = notices.value.filter((notice) => notice.text !== text);
  notices.value = [...others.slice(-(MAX_NOTICES - 1)), { id, text, isProblem }];
  return id;
}

function close(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

/** The notices, which screen readers read when they come. */
export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map(({ id, text, isProblem }) => (
        <p key={id} class={isProblem ? 'notice problem-notice' : 'notice'}>
          <span>{text}</span>
          <button type="button" class="quiet" aria-label={T.form.close} onClick={() => close(id)}>
            <Icon name="close" />
          </button>
        </p>
      ))}
    </div>
  );
}
