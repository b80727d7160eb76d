import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { T } from '../texts.ts';
import { Icon } from './icons.tsx';

/** A window above the page. Escape closes it if `onClose` is given, and the focus returns to where it was. */
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
    dialog.current?.showModal();
    // the browser chooses the first element, which is the button that closes
    dialog.current?.querySelector<HTMLElement>('input, select, textarea')?.focus();
    return () => before?.focus?.();
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
