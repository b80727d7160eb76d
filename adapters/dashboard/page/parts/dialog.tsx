import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { T } from '../texts.ts';
import { Icon } from './icons.tsx';

/** A window above the page. Escape closes it if `onClose` is given, and the focus returns to where it was, or to the title of the view. */
export function Dialog({
  title,
  onClose,
  children,
  isWide = false
}: {
  readonly title: string;
  readonly onClose?: (() => void) | undefined;
  readonly children: ComponentChildren;
  readonly isWide?: boolean;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const shown = dialog.current as HTMLDialogElement;
    show(shown);
    return () => {
      shown.close(); // an element behind an open dialog cannot have the focus
      if (before?.isConnected && before !== document.body) before.focus();
      else document.querySelector<HTMLElement>('main h1')?.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={isWide ? 'wide' : ''}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
      onClose={() => {
        // browsers let a page prevent this only once after each input of the person
        if (dialog.current === null) return;
        if (onClose) onClose();
        else show(dialog.current);
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
        {onClose && (
          <button type="button" class="quiet" aria-label={T.form.close} onClick={onClose}>
            <Icon name="close" />
          </button>
        )}
      </header>
      {children}
    </dialog>
  );
}

function show(dialog: HTMLDialogElement): void {
  dialog.showModal();
  // the browser chooses the first element, which is the button that closes
  dialog.querySelector<HTMLElement>('input:not([data-filled=true]), select, textarea')?.focus();
}
